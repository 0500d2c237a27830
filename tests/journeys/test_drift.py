"""Model drift with the real SDKs: refused with the flag that would allow it, served once it is typed, told apart."""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from playhead.config import Config, IgnoreRule, Mode, ModelDrift, parse_match
from playhead.proxy.operations.find_tape import redactor_of
from playhead.tape.exchange import RunId
from playhead.tape.records.events import EventKind
from playhead.tests.support.answers import Log, over_http1
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead
from playhead.timeline import Receipt, exit_code, render_receipt
from playhead.timeline.rules.reindex import plan

TALK = [{"role": "user", "content": "say something"}]
ASKED: dict[str, Any] = {"model": "m-1", "messages": TALK, "temperature": 0.5}
Ask = Callable[..., str]


@dataclass
class Stage:
    """A deck, an origin, and the SDKs' clients that reach it through the deck."""

    deck: Deck
    origin: Origin
    clients: ExitStack

    def client(self) -> httpx2.Client:
        trust = ssl.create_default_context(cafile=self.deck.running.ca)
        made = httpx2.Client(proxy=self.deck.running.url_for("tape"), verify=trust, trust_env=False)
        return self.clients.enter_context(made)

    def openai(self) -> Ask:
        """Give a function that asks for a chat, and gives the model that answered or what was raised."""
        import openai  # here: every process that runs tests collects this file

        sdk = openai.OpenAI(
            base_url=f"{self.origin.url}/v1", api_key="sk-test-1", http_client=self.client()
        )

        def ask(**more: Any) -> str:
            try:
                return str(sdk.chat.completions.create(**{**ASKED, **more}).model)
            except openai.APIStatusError as error:
                return f"{error.status_code}: {error.message}"

        return ask

    def anthropic(self) -> Ask:
        """The same with the other package."""
        import anthropic

        sdk = anthropic.Anthropic(
            base_url=self.origin.url, api_key="sk-ant-1", http_client=self.client()
        )

        def ask(**more: Any) -> str:
            try:
                asked = {**ASKED, "max_tokens": 9, **more}
                asked["extra_body"] = {"temperature": asked.pop("temperature")}
                return str(sdk.messages.create(**asked).model)
            except anthropic.APIStatusError as error:
                return f"{error.status_code}: {error.message}"

        return ask

    def play(self, *allowed: str) -> None:
        """Stop the origin and play, with these opt-ins."""
        self.deck.end("tape")
        self.origin.stop()
        self.clients.close()  # connections of the recording
        config = self.deck.running.registry.config
        opt_ins = tuple(ModelDrift(*one.split("=")) for one in allowed)
        playback = replace(config.playback, allow_model_drift=opt_ins)
        self.deck.do(self._change, playback)
        self.deck.play()

    async def ignore(self, rule: IgnoreRule) -> None:
        """Play under other rules than were recorded under."""
        self.deck.running.change(ignore=(rule,))

    async def reindex(self, config: Config) -> None:
        """Give the tape an index under other rules."""
        store = self.deck.running.store
        tape = store.runs.get(RunId("tape"))
        made = plan(store, tape, config, redactor_of(config))
        await asyncio.to_thread(store.index.replace, tape, made.index)

    async def _change(self, playback: Any) -> None:
        self.deck.running.change(playback=playback)

    def end(self) -> Receipt:
        """End the playback."""
        self.deck.end("tape@1")
        return self.deck.receipt("tape@1")


@pytest.fixture
def stage(tmp_path: Path, certificates: Certificates) -> Iterator[Stage]:
    """Record what comes."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    routes = {"/{tail:.*}": over_http1(Log())}
    with Deck(config) as deck, Origin(routes, certificates) as origin, ExitStack() as clients:
        yield Stage(deck, origin, clients)


SDKS = ["openai", "anthropic"]


@pytest.mark.parametrize("sdk", SDKS)
def test_drift_is_refused_with_the_flag_that_would_allow_it(stage: Stage, sdk: str) -> None:
    """The SDK prints it; the receipt has kind, exchange and every field with both values."""
    getattr(stage, sdk)()()
    stage.play()
    flag = "--allow-model-drift m-1=m-2"
    printed = getattr(stage, sdk)()(model="m-2", temperature=0.25)
    assert printed.startswith("424: ")
    assert flag in printed
    receipt = stage.end()
    (told,) = receipt.divergences
    assert (told["kind"], told["seq"], told["nearest_seq"]) == ("drifted", 1, 1)
    assert list(told["differences"]) == [
        {"place": "body $.model", "recorded": '"m-1"', "asked": '"m-2"'},
        {"place": "body $.temperature", "recorded": "0.5", "asked": "0.25"},
    ]
    assert told["text"].endswith(flag)
    assert (receipt.faithful, receipt.faithful_but_for, exit_code(receipt)) == (False, [], 121)
    assert receipt.counts["unused"] == 1


@pytest.mark.parametrize("sdk", SDKS)
def test_drift_that_was_allowed_is_served_and_named(stage: Stage, sdk: str) -> None:
    """The recorded answer; counted apart, the opt-in an event of the run, and the replay not plainly faithful."""
    getattr(stage, sdk)()()
    stage.play("m-1=m-2", "x=y")
    prompt: dict[str, Any] = {"system": "Be brief."} if sdk == "anthropic" else {"seed": 5}
    assert getattr(stage, sdk)()(model="m-2", **prompt) == "m-1"
    receipt = stage.end()
    assert receipt.matched == {"drifted": 1}
    assert receipt.divergences == []
    told = receipt.to_json()
    assert told["model_drift"] == [
        {"allowed": "m-1=m-2", "served": 1, "seqs": [1]},
        {"allowed": "x=y", "served": 0, "seqs": []},
    ]
    assert (told["faithful"], told["faithful_but_for"]) == (False, ["m-1=m-2"])
    assert (told["exit_code"], told["counts"]["unused"]) == (0, 0)
    text = render_receipt(receipt)
    assert "FAITHFUL BUT FOR MODEL DRIFT, allowed as m-1=m-2: replay of tape" in text
    assert "  m-1=m-2: served 1, seq 1\n  x=y: nothing needed it\n" in text
    store = stage.deck.running.store
    events = list(store.events.read(store.runs.get("tape@1")))
    noted = [
        event.data["allow_model_drift"] for event in events if "allow_model_drift" in event.data
    ]
    assert noted == [("m-1", "m-2"), ("x", "y")]
    first = next(at for at, event in enumerate(events) if event.kind is EventKind.VERDICT)
    last = max(at for at, event in enumerate(events) if "allow_model_drift" in event.data)
    assert last < first


def test_an_opt_in_that_nothing_needed_leaves_a_replay_faithful(stage: Stage) -> None:
    """It is in the receipt all the same."""
    stage.openai()()
    stage.play("m-1=m-2")
    assert stage.openai()() == "m-1"
    receipt = stage.end()
    assert (receipt.faithful, receipt.faithful_but_for) == (True, [])
    assert [one.allowed for one in receipt.model_drift] == ["m-1=m-2"]
    assert receipt.matched == {"exact": 1}


def test_one_name_twice_allows_the_rest_under_that_model(stage: Stage) -> None:
    """Temperature, seed, tools and prompt; another model is refused still."""
    ask = stage.openai()
    ask()
    ask()
    stage.play("m-1=m-1")
    ask = stage.openai()
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    messages = [{"role": "system", "content": "Be brief."}, *TALK]
    assert ask(temperature=1, seed=5, tools=[tool], messages=messages) == "m-1"
    assert "--allow-model-drift m-1=m-2" in ask(model="m-2")
    receipt = stage.end()
    assert receipt.matched == {"drifted": 1}
    assert [told["kind"] for told in receipt.divergences] == ["drifted"]
    assert receipt.faithful_but_for == []


@pytest.mark.parametrize("length", [150, 490])
def test_a_flag_is_told_whole_or_not_at_all(stage: Stage, length: int) -> None:
    """However long the models' names are: a part of one would allow something else."""
    names = ("arn:" + "a" * length, "arn:" + "b" * length)
    flag = f"--allow-model-drift {names[0]}={names[1]}"
    stage.openai()(model=names[0])
    stage.play()
    asked = {**ASKED, "model": names[1]}
    reply = stage.client().post(
        f"{stage.origin.url}/v1/chat/completions",
        json=asked,
        headers={"Authorization": "Bearer sk-test-1", "Accept": "application/json"},
    )
    refused = reply.json()
    assert refused["message"] == refused["error"]["message"]
    assert flag in refused["message"]
    assert "--allow" not in refused["playhead"]["reason"] + reply.headers["x-playhead"]
    receipt = stage.end()
    assert flag in str(receipt.divergences[0]["text"])
    text = render_receipt(receipt)
    assert text.count("--allow-model-drift") == text.count(flag) == 1


def test_drift_and_a_message_are_a_change(stage: Stage) -> None:
    """No opt-in helps: the answer was to another question."""
    stage.openai()()
    stage.play("m-1=m-2")
    told = stage.openai()(model="m-2", messages=[{"role": "user", "content": "say nothing"}])
    assert "--allow-model-drift" not in told
    receipt = stage.end()
    assert [told["kind"] for told in receipt.divergences] == ["changed"]


def test_each_recorded_call_answers_once_whoever_drifts(stage: Stage) -> None:
    """In tape order among those with the same rest; one that is asked for as recorded is not taken twice."""
    ask = stage.openai()
    for temperature in (0.1, 0.2, 0.3):
        assert ask(temperature=temperature) == "m-1"
    assert ask(model="m-3", temperature=0.4) == "m-3"
    stage.play("m-1=m-2")
    ask = stage.openai()
    assert ask(temperature=0.1) == "m-1"
    assert ask(model="m-2") == "m-1"
    assert ask(model="m-2") == "m-1"
    # What is left is another model's, which was not allowed; then that model asks for itself.
    assert "--allow-model-drift m-3=m-2" in ask(model="m-2")
    assert ask(model="m-3", temperature=0.4) == "m-3"
    assert "drifted" not in ask(model="m-2")
    receipt = stage.end()
    assert receipt.matched == {"exact": 2, "drifted": 2}
    assert receipt.counts["unused"] == 0
    store = stage.deck.running.store
    served = [
        event.data["tape_seq"]
        for event in store.events.read(store.runs.get("tape@1"))
        if event.kind is EventKind.VERDICT and "tape_seq" in event.data
    ]
    assert served == [1, 2, 3, 4]


def test_parallel_calls_that_drift_are_each_given_their_own(stage: Stage) -> None:
    """Each recorded answer once, however they meet."""
    ask = stage.openai()
    for number in range(8):
        ask(seed=number)
    stage.play("m-1=m-2")
    ask = stage.openai()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: ask(model="m-2", seed=100 + number), range(8)))
    assert answers == ["m-1"] * 8
    receipt = stage.end()
    assert receipt.matched == {"drifted": 8}
    assert receipt.counts["unused"] == 0
    assert sorted(receipt.model_drift[0].seqs) == list(range(1, 9))


def test_what_drift_took_is_not_served_again_under_new_rules(stage: Stage) -> None:
    """A tape that was indexed under other rules has other fingerprints; the cursor goes by those of now."""
    stage.openai()()
    stage.play("m-1=m-2")
    stage.deck.do(stage.ignore, IgnoreRule(parse_match("*://*"), query=("nonce",)))
    ask = stage.openai()
    assert ask(model="m-2") == "m-1"
    assert "exhausted" in ask()
    assert stage.end().matched == {"drifted": 1}


def test_what_drift_took_is_not_served_again_from_a_later_index(stage: Stage) -> None:
    """`reindex` gives a tape other fingerprints than those of its exchanges; the cursor goes by them."""
    stage.openai()()
    ignore = (IgnoreRule(parse_match("*://*"), query=("nonce",), json=("$.temperature",)),)
    stage.play("m-1=m-2")
    config = replace(stage.deck.running.registry.config, ignore=ignore)
    stage.deck.do(stage.reindex, config)
    stage.deck.do(stage.ignore, *ignore)
    ask = stage.openai()
    assert ask(model="m-2") == "m-1"
    assert "exhausted" in ask()
    assert stage.end().matched == {"drifted": 1}


def test_a_call_that_was_asked_too_often_has_not_drifted(stage: Stage) -> None:
    """The same question is on the tape: it is exhausted, even where another is left that is like it."""
    ask = stage.openai()
    ask()
    ask(temperature=0.1)
    stage.play("m-1=m-1")
    ask = stage.openai()
    assert ask() == "m-1"
    assert "exhausted" in ask()
    assert ask(temperature=0.1) == "m-1"
    assert [told["kind"] for told in stage.end().divergences] == ["exhausted"]


ASK = """
import json, sys, urllib.request
body = json.dumps({"model": sys.argv[2], "messages": []}).encode()
head = {"content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head))
"""


def test_the_flag_lets_a_replay_end_as_its_command(tmp_path: Path) -> None:
    """Exit code 121 without it, the command's own with it; the receipt names it."""
    told, store = tmp_path / "receipt.json", ("--store", tmp_path / "store")
    run = (sys.executable, "-c", ASK)
    with Origin({"/{tail:.*}": over_http1(Log())}) as origin:
        url = f"{origin.url}/v1/chat/completions"
        recorded = playhead("record", *store, "--run", "tape", "--", *run, url, "m-1")
        assert recorded.returncode == 0, recorded.stderr
    again = ("--", *run, url, "m-2")
    refused = playhead("replay", "tape", *store, *again)
    assert refused.returncode == 121
    assert "--allow-model-drift m-1=m-2" in refused.stderr
    allow = ("--allow-model-drift", "x=y", "--allow-model-drift", "m-1=m-2")
    served = playhead("replay", "tape", *store, *allow, "--receipt", told, *again)
    assert served.returncode == 0, served.stderr
    assert "FAITHFUL BUT FOR MODEL DRIFT, allowed as m-1=m-2" in served.stderr
    assert json.loads(told.read_text())["faithful_but_for"] == ["m-1=m-2"]
    assert "m-1=m-2: served 1, seq 1" in served.stderr
