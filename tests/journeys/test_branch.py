"""A run is branched: what comes before the point is never sent again, what comes after leaves only as it was declared."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest

from playhead.config import Answer, Config, Limits, LiveRule, Mode, parse_match
from playhead.proxy.cli import main
from playhead.store import Store
from playhead.tape.exchange import RequestClass, RunId, Seq
from playhead.tape.policy.branch import (
    HYPOTHETICAL,
    Branch,
    HypotheticalAnswer,
    RequestChange,
    parse_route,
)
from playhead.tests.support.branch_cases import ASKED, WORDS, Asked, Request, Words
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead, read_json
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.refund_agent import (
    CAREFUL,
    CHAT,
    Agent,
    lists_refunds,
    send_by_urllib,
)
from playhead.tests.support.refund_service import AGENT, serve
from playhead.timeline import Receipt, build, render_receipt
from playhead.timeline.receipts.exchange_rows import rows


class World(NamedTuple):
    """A shop with a model, a copy of it, and a store with a tape of the agent."""

    shop: Origin
    sandbox: Origin
    store: Path

    def words(self, *words: str | Path) -> list[str]:
        """Give the words of a branch of the agent."""
        told = ["--store", str(self.store), "--no-sandbox", "-q", *map(str, words)]
        return ["branch", "tape", *told, "--", sys.executable, *AGENT, self.shop.url]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One recording for all that follows."""
    folder = tmp_path_factory.mktemp("branch")
    with Origin({"/{tail:.*}": serve}) as shop, Origin({"/{tail:.*}": serve}) as sandbox:
        made = World(shop, sandbox, folder / "store")
        agent = (sys.executable, *AGENT, shop.url)
        done = playhead("record", "--store", made.store, "--run", "tape", "-q", "--", *agent)
        assert (done.returncode, done.stdout.split(":")[0]) == (0, "Refunded"), done.stderr
        assert len(shop.requests) == 5
        yield made


@pytest.fixture
def quiet(world: World) -> World:
    """The same, with nothing counted yet."""
    world.shop.requests.clear()
    world.sandbox.requests.clear()
    return world


def live(kind: RequestClass, host: str = "127.0.0.1") -> tuple[LiveRule, RequestClass]:
    return LiveRule(parse_match(f"* *://{host}"), "a test"), kind


def hypothetical(body: bytes) -> Answer:
    length = ("content-length", str(len(body)))
    return Answer(200, (("content-type", "application/json"), length), body, HYPOTHETICAL)


class Branched(NamedTuple):
    """A branch that was run in the test's own process."""

    running: Running
    world: World

    def send(self, request: Request) -> tuple[int, Any]:
        """Ask for something by way of the proxy. Blocking."""
        method, _, path = request.what.partition(" ")
        url = f"http://{request.host or '127.0.0.1'}:{self.world.shop.port}{path}"
        proxy = self.running.url_for("tape")
        return send_by_urllib(method, url, request.body, request.headers, proxy)

    def run_agent(self) -> tuple[str, list[int]]:
        """Run the agent; give what it said last, and the statuses that it got. Blocking."""
        agent = Agent(lambda method, path, body: self.send(Request(f"{method} {path}", body)))
        return agent.run(), agent.statuses

    async def do(self, work: Callable[..., Any], *given: Any) -> Any:
        """Have an agent work beside the engine."""
        with ThreadPoolExecutor(1) as thread:
            return await asyncio.get_running_loop().run_in_executor(thread, work, *given)

    async def end(self) -> Receipt:
        """End the run; give its receipt."""
        (open_run,) = self.running.registry.open
        assert open_run.info is not None
        name = open_run.info.id
        await self.running.end(name)
        return build(self.running.store, self.running.store.runs.get(RunId(name)))


@asynccontextmanager
async def branched(world: World, branch: Branch, **changes: Any) -> AsyncIterator[Branched]:
    """Open a branch."""
    config = Config(store=world.store, mode=Mode.PLAYBACK, **changes)
    async with running_engine(config) as running:
        running.registry.branch = branch
        yield Branched(running, world)


# ---- what a branch does --------------------------------------------------------------------------------


async def test_a_branch_that_changes_nothing_is_the_run_again(quiet: World) -> None:
    """Every answer is from the tape, and nothing is sent."""
    async with branched(quiet, Branch(Seq(3))) as made:
        said, statuses = await made.do(made.run_agent)
        receipt = await made.end()
    assert (said[:8], statuses) == ("Refunded", [200] * 5)
    assert quiet.shop.requests == []
    account = receipt.to_json()["branch"]
    assert (account["at"], account["reached"]) == (3, 3)
    assert (account["served_before"], account["served_after"]) == (2, 3)
    assert (receipt.to_json()["exit_code"], receipt.faithful) == (0, None)
    assert "branch of tape at 3" in render_receipt(receipt)


async def test_another_answer_is_followed_by_what_was_declared(quiet: World) -> None:
    """The model goes live, the tape still answers what it holds, and the effect is stubbed."""
    body = b'{"order": 7, "amount": 10}'
    declared = Branch(Seq(2), (live(RequestClass.INFERENCE),), answer=hypothetical(body))
    async with branched(quiet, declared) as made:
        said, statuses = await made.do(made.run_agent)
        receipt = await made.end()
        run = made.running.store.runs.get(receipt.run)
        listed = [row["verdict"] for row in rows(made.running.store, run)]
        kept = made.running.store.exchanges.find(run, Seq(2))
    assert statuses == [200] * 5
    assert '"amount": 10' in said.replace("\\", "")
    assert quiet.shop.requests == [f"POST {CHAT}"] * 2
    assert listed == ["served", "hypothetical", "live", "stubbed", "live"]
    assert kept is not None
    assert kept.response is not None
    assert kept.response.body == body
    assert dict(kept.response.headers)[b"x-playhead"].startswith(b"hypothetical; ")
    account = receipt.to_json()["branch"]
    assert account["hypothetical"] == [
        {"seq": 2, "method": "GET", "url": f"{quiet.shop.url}/orders/7", "in_place_of": 2}
    ]
    counts = receipt.to_json()["counts"]
    assert (counts["hypothetical"], counts["live"], counts["stubbed"]) == (1, 2, 1)
    assert receipt.to_json()["exit_code"] == 0
    assert not receipt.divergences


async def test_an_effect_goes_to_a_sandbox_and_is_never_called_live(quiet: World) -> None:
    """The shop is asked for nothing."""
    route = parse_route(f"POST {quiet.shop.url}/v1/refunds={quiet.sandbox.url}", "a copy")
    declared = Branch(
        Seq(2),
        (live(RequestClass.INFERENCE),),
        (route,),
        answer=hypothetical(b'{"order": 7, "amount": 10}'),
    )
    async with branched(quiet, declared) as made:
        _, statuses = await made.do(made.run_agent)
        receipt = await made.end()
        run = made.running.store.runs.get(receipt.run)
        kept = made.running.store.exchanges.find(run, Seq(4))
    assert statuses == [200] * 5
    assert quiet.sandbox.requests == ["POST /v1/refunds"]
    assert quiet.shop.requests == [f"POST {CHAT}"] * 2
    assert kept is not None
    assert (kept.verdict.value, kept.request.port) == ("sandboxed", quiet.shop.port)
    told = receipt.to_json()
    assert [row["seq"] for row in told["branch"]["sandboxed"]] == [4]
    assert 4 not in [row["seq"] for row in told["live"]]
    (effect,) = told["effects"]
    assert effect["answered_by"] == f"sandbox {route.place}"
    assert "sandboxed:" in render_receipt(receipt)


async def test_hypothetical_answers_of_a_file_answer_what_the_tape_does_not_hold(
    quiet: World,
) -> None:
    """The model is told to list refunds, and one is there already."""
    found = b'{"refunds": [{"id": "re_1Qx8"}]}'
    declared = Branch(
        Seq(1),
        (live(RequestClass.INFERENCE),),
        answers=(
            HypotheticalAnswer(
                parse_match(f"GET {quiet.shop.url}/v1/refunds*"), hypothetical(found)
            ),
        ),
        answer=hypothetical(lists_refunds()),
    )
    async with branched(quiet, declared) as made:
        said, statuses = await made.do(made.run_agent)
        receipt = await made.end()
    assert (said[:8], statuses) == ("Refunded", [200] * 3)
    assert quiet.shop.requests == [f"POST {CHAT}"]
    assert [row["in_place_of"] for row in receipt.to_json()["branch"]["hypothetical"]] == [1, None]


async def test_another_system_prompt_is_sent_from_the_point_on(quiet: World) -> None:
    """Wherever the recorded one would be; the agent is not changed."""
    change = RequestChange(system=CAREFUL)
    kinds = (live(RequestClass.INFERENCE), live(RequestClass.READ))
    async with branched(quiet, Branch(Seq(1), kinds, change=change)) as made:
        said, statuses = await made.do(made.run_agent)
        receipt = await made.end()
        run = made.running.store.runs.get(receipt.run)
        kept = made.running.store.exchanges.find(run, Seq(1))
    assert (said[:8], statuses) == ("Refunded", [200] * 7)
    chats, reads = [f"POST {CHAT}"] * 4, "GET /v1/refunds?order=7"
    assert quiet.shop.requests == [chats[0], reads, *chats[1:]]
    assert receipt.to_json()["branch"]["asked_otherwise"] == [1, 3, 5, 7]
    assert kept is not None
    assert json.loads(kept.request.body)["messages"][0]["content"] == CAREFUL
    # The order and the refund are as they were.
    assert receipt.to_json()["branch"]["served_after"] == 2


async def test_a_changed_request_is_sent_once(quiet: World) -> None:
    """Only the call at the point is another; with the same answer the rest is from the tape."""
    change = RequestChange(patch={"temperature": 0.5})
    declared = Branch(Seq(3), (live(RequestClass.INFERENCE),), change=change)
    async with branched(quiet, declared) as made:
        said, _ = await made.do(made.run_agent)
        receipt = await made.end()
    assert said[:8] == "Refunded"
    assert quiet.shop.requests == [f"POST {CHAT}"]
    account = receipt.to_json()["branch"]
    assert (account["asked_otherwise"], account["served_after"]) == ([3], 2)


def test_an_answer_that_nobody_gave_is_no_cause_of_the_service(
    quiet: World, tmp_path: Path
) -> None:
    """Blame, diff and the graph say that it is hypothetical, as text and as JSON."""
    answer = tmp_path / "answer.json"
    answer.write_text('{"order": 7, "amount": 4321}')
    change = ("--at", "2", "--answer", answer, "--live", "inference", "--reason", "a test", "--yes")
    done = playhead(*quiet.words(*change))
    with Store.open(quiet.store) as store:
        name = max(store.runs.all(), key=lambda info: info.number).id
    at = ("--store", quiet.store)
    assert done.returncode in (0, 121), done.stderr
    blamed = ("blame", name, "4", "$.amount", *at)
    shown = playhead(*blamed).stdout
    assert "  hypothetical, not given by the service: GET http://" in shown, shown
    assert read_json(*blamed)["origin"]["made"] == "hypothetical"
    compared = ("diff", "tape", name, *at)
    assert "B 2 hypothetical: GET 127.0.0.1" in playhead(*compared).stdout
    told = json.loads(playhead(*compared, "--json").stdout)
    assert told["divergence"]["second"]["made"] == "hypothetical"
    assert told["divergence"]["first"]["made"] is None
    graph = playhead("show", name, "--graph", "mermaid", *at).stdout
    assert "2 hypothetical: GET 127.0.0.1" in graph, graph


async def test_a_branch_can_have_the_model_asked_afresh(quiet: World) -> None:
    """Nothing is changed, and from the point on each of its calls is sent, also where the tape has the same; all else is from the tape."""
    declared = Branch(Seq(3), (live(RequestClass.INFERENCE),), afresh=True)
    async with branched(quiet, declared) as made:
        said, statuses = await made.do(made.run_agent)
        receipt = await made.end()
    assert (said[:8], statuses) == ("Refunded", [200] * 5)
    assert quiet.shop.requests == [f"POST {CHAT}"] * 2
    account = receipt.to_json()["branch"]
    assert (account["served_before"], account["served_after"]) == (2, 1)
    assert (account["asked_otherwise"], receipt.to_json()["exit_code"]) == ([], 0)
    assert not receipt.divergences
    assert "a model that goes live is asked also what the tape answers" in render_receipt(receipt)


async def test_what_does_not_go_live_is_not_asked_afresh(quiet: World) -> None:
    """It is answered from the tape."""
    declared = Branch(Seq(3), (live(RequestClass.READ),), afresh=True)
    async with branched(quiet, declared) as made:
        _, statuses = await made.do(made.run_agent)
        receipt = await made.end()
    assert (statuses, quiet.shop.requests) == ([200] * 5, [])
    assert receipt.to_json()["branch"]["served_after"] == 3


async def test_a_gate_holds_what_goes_to_a_sandbox(quiet: World) -> None:
    """Nobody lets it go, so it goes nowhere."""
    from playhead.config import EffectRule, Gate

    route = parse_route(f"POST {quiet.shop.url}/v1/refunds={quiet.sandbox.url}", "a copy")
    gated = EffectRule(parse_match(f"POST {quiet.shop.url}/v1/refunds"), gate=Gate(deadline_s=0.05))
    declared = Branch(Seq(2), (), (route,), answer=hypothetical(b'{"order": 7, "amount": 1}'))
    async with branched(quiet, declared, effects=(gated,)) as made:
        refund = Request("POST /v1/refunds", {"order": 7, "amount": 1})

        def ask() -> int:
            made.send(Request(f"POST {CHAT}", _first()))
            made.send(Request("GET /orders/7"))
            return made.send(refund)[0]

        assert await made.do(ask) == 424
        receipt = await made.end()
    assert quiet.sandbox.requests == []
    assert [row.ruling for row in receipt.gates] == ["expired"]


def _first() -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": Agent(lambda *_: (200, {})).messages}


# ---- misuses -------------------------------------------------------------------------------------------


def test_there_are_sixty_misuses() -> None:
    """Each has a name of its own."""
    names = [case.name for case in (*WORDS, *ASKED)]
    assert len(names) == len(set(names)) >= 60


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
async def test_nothing_leaves_that_was_not_declared(quiet: World, case: Asked) -> None:
    """Counted by listeners."""
    kinds = [one for one in (RequestClass.INFERENCE, RequestClass.READ) if one in case.declared]
    routes = (parse_route(f"{quiet.shop.url}/v1/*={quiet.sandbox.url}", "a copy"),)
    declared = Branch(
        Seq(2),
        tuple(map(live, kinds)),
        routes if "route" in case.declared else (),
    )
    limits = Limits(calls=case.calls)
    async with branched(quiet, declared, limits=limits) as made:

        def ask() -> list[int]:
            made.send(Request(f"POST {CHAT}", _first()))
            if not case.before:
                assert made.send(Request("GET /orders/7"))[0] == 200
            return [made.send(one)[0] for one in case.requests]

        statuses = await made.do(ask)
        receipt = await made.end()
    assert tuple(statuses) == case.statuses
    went = quiet.sandbox.requests if case.sandboxed else quiet.shop.requests
    assert tuple(went) == case.leaves
    assert (quiet.shop.requests if case.sandboxed else quiet.sandbox.requests) == []
    told = receipt.to_json()
    assert told["counts"]["live"] + told["counts"]["sandboxed"] == len(case.leaves)
    refused = [row["reason"] for row in told["refused"]]
    assert len(refused) == statuses.count(424)
    if case.before:
        assert all("sends nothing before exchange 2 has been" in reason for reason in refused)
        assert told["branch"]["reached"] is None
    assert (told["exit_code"] == 121) is bool(refused)


async def test_nothing_leaves_before_all_that_comes_before_the_point_was_asked(
    quiet: World,
) -> None:
    """An agent that begins with the exchange at the point has not repeated its prefix."""
    kinds = (live(RequestClass.INFERENCE), live(RequestClass.READ))
    other = Request("GET /v1/refunds?order=8")
    async with branched(quiet, Branch(Seq(2), kinds)) as made:

        def ask() -> list[int]:
            asked = (Request("GET /orders/7"), other, Request(f"POST {CHAT}", _first()), other)
            return [made.send(one)[0] for one in asked]

        assert await made.do(ask) == [200, 424, 200, 200]
        receipt = await made.end()
    assert quiet.shop.requests == ["GET /v1/refunds?order=8"]
    (row,) = receipt.refused
    assert "a branch at 2 sends nothing before exchange 1 has been asked for" in row["reason"]


@pytest.fixture(scope="module")
def stored(world: World) -> World:
    """The same with tapes that other words need."""
    done = playhead(
        *world.words("--at", "3", "--receipt", world.store.parent / "first.json"), timeout_s=60
    )
    assert done.returncode == 0, done.stderr
    with Store.open(world.store) as store:
        noted = {"child_exit": 0, "command": ["touch", "planted"]}
        record_run(store, "carries", [ask()], noted=noted)
        record_run(store, "plain", [ask(), ask(b"2")], kind=RequestClass.READ)
    return world


def test_misused_words_are_refused_before_anything_runs(
    stored: World,
    quiet: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each with a sentence that says what is wrong; no run is made, and nobody is asked."""
    monkeypatch.chdir(tmp_path)
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    with Store.open(stored.store, readonly=True) as store:
        before = len(store.runs.all())
    wrong = [text for case in WORDS if (text := _refuse(stored, case, tmp_path, capfd))]
    assert wrong == []
    with Store.open(stored.store, readonly=True) as store:
        assert len(store.runs.all()) == before
    assert quiet.shop.requests == quiet.sandbox.requests == []
    assert not (tmp_path / "planted").exists()


def _refuse(world: World, case: Words, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Give what is wrong with how words are refused; nothing where all is right."""
    file = folder / "given"
    file.write_bytes(case.text.encode("utf-8", "surrogateescape"))
    known = {"URL": world.shop.url}
    words = [file.name if word == "FILE" else word for word in case.words]
    for name, value in known.items():
        words = [word.replace(name, value) for word in words]
    with pytest.raises(SystemExit) as ended:
        main(["branch", "--store", str(world.store), "--no-sandbox", *words])
    said = " ".join(capfd.readouterr().err.split())
    if ended.value.code != 2 or case.says not in said:
        return f"{case.name}: {ended.value.code}: {said}"
    return ""


# ---- the command ---------------------------------------------------------------------------------------


def test_the_command_says_what_leaves_and_what_it_cost(quiet: World, tmp_path: Path) -> None:
    """Twice over, from one tape; the runs have a parent, and the folder stays as it is."""
    (tmp_path / "answer.json").write_text('{"order": 7, "amount": 10}')
    words = quiet.words(
        *("--at", "2", "--answer", tmp_path / "answer.json", "--times", "2", "--yes"),
        *("--live", "inference", "--reason", "trying less"),
    )
    done = playhead(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('\\"amount\\": 10') == done.stdout.count("Refunded") == 2 or (
        done.stdout.count("Refunded") == 2
    )
    assert quiet.shop.requests == [f"POST {CHAT}"] * 4
    for text in (
        "never sent again",
        "at 2: another answer, which is hypothetical",
        "live: inference at 127.0.0.1 (trying less)",
        "from there on the tape has of these 2 calls",
        "cap: 20 calls in all",
        "run 1 of 2",
        "spent so far 4 calls",
        "left 16 calls",
    ):
        assert text in done.stderr, (text, done.stderr)
    listed = read_json("runs", "--store", quiet.store)
    assert [row["parent"] for row in listed if row["mode"] == "playback"][-2:] == ["tape"] * 2
    tree = playhead("runs", "--store", quiet.store, "--tree").stdout.splitlines()
    at = next(index for index, line in enumerate(tree) if line.startswith("tape "))
    assert tree[at + 1].startswith("  tape@")
    assert "branch at 2" in tree[-1] or any("branch at 2" in line for line in tree)


def test_a_cap_ends_it_and_says_what_is_left(quiet: World, tmp_path: Path) -> None:
    """What would be one call too many is refused, and no further run is begun."""
    (tmp_path / "answer.json").write_text('{"order": 7, "amount": 10}')
    words = quiet.words(
        *("--at", "2", "--answer", tmp_path / "answer.json", "--times", "3", "--yes"),
        *("--live", "inference", "--reason", "r", "--max-calls", "3"),
    )
    done = playhead(*words, cwd=tmp_path)
    assert done.returncode == 121, done.stderr
    assert quiet.shop.requests == [f"POST {CHAT}"] * 3
    assert "spent so far 3 calls" in done.stderr
    assert "left 0 calls" in done.stderr
    assert "stopped after 1 of 3: a cap or limit was reached; go on with a higher one and --times 2" in done.stderr  # fmt: skip


def test_a_cap_between_two_runs_ends_it_as_one_within_a_run(quiet: World, tmp_path: Path) -> None:
    """Not all were made, which is no success."""
    (tmp_path / "answer.json").write_text('{"order": 7, "amount": 10}')
    words = quiet.words(
        *("--at", "2", "--answer", tmp_path / "answer.json", "--times", "3", "--yes"),
        *("--live", "inference", "--reason", "r", "--max-calls", "4"),
    )
    done = playhead(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout.count("Refunded")) == (121, 2), done.stderr
    assert "stopped after 2 of 3" in done.stderr


ROUTED_USD = "0.0070"
"""Of a run: two calls."""


def _route_model(world: World, folder: Path, *words: str) -> CompletedProcess[str]:
    """Branch so that the calls of the model go to the copy."""
    (folder / "answer.json").write_text('{"order": 7, "amount": 10}')
    route = f"POST {world.shop.url}{CHAT}={world.sandbox.url}"
    told = ("--at", "2", "--answer", folder / "answer.json", "--route", route, "--reason", "r")
    return playhead(*world.words(*told, "--yes", *words), cwd=folder)


def test_what_a_routed_model_call_costs_is_told_alike_everywhere(
    quiet: World, tmp_path: Path
) -> None:
    """A copy may be a gateway: before it is sent, in its receipt, in what was spent and in the bill."""
    receipt = tmp_path / "receipt.json"
    done = _route_model(quiet, tmp_path, "--cap", "1", "--receipt", str(receipt))
    assert done.returncode == 0, done.stderr
    assert (quiet.shop.requests, quiet.sandbox.requests) == ([], [f"POST {CHAT}"] * 2)
    assert f"price: from there on the tape has of these 2 calls, {ROUTED_USD} USD" in done.stderr
    assert f"spent so far 2 calls, {ROUTED_USD} USD; left 0.99 USD" in done.stderr
    told = json.loads(receipt.read_text())
    bill = read_json("cost", "--store", quiet.store, told["run"])
    assert (bill["sent"], bill["spent"]["calls"]) == (2, 2)
    assert float(bill["spent"]["usd"]) == told["limits"]["used"]["usd"] > 0


def test_a_routed_model_call_that_can_pass_a_cap_is_not_sent(quiet: World, tmp_path: Path) -> None:
    """Over all runs together."""
    done = _route_model(quiet, tmp_path, "--times", "3", "--cap", "0.011")
    assert done.returncode == 121, done.stderr
    assert quiet.sandbox.requests == [f"POST {CHAT}"] * 3
    assert "stopped after 1 of 3" in done.stderr


def test_a_call_that_can_pass_a_cap_is_not_sent(quiet: World, tmp_path: Path) -> None:
    """What it can cost is reserved before: 0.0035 USD as on the tape, or more."""
    words = quiet.words(
        *("--at", "1", "--request-change", tmp_path / "other.json", "--yes"),
        *("--live", "inference", "--reason", "r", "--cap", "0.003"),
    )
    (tmp_path / "other.json").write_text('{"temperature": 0}')
    done = playhead(*words, cwd=tmp_path)
    assert done.returncode == 121, done.stderr
    assert quiet.shop.requests == []
    assert "spent so far 0 calls, 0.00 USD; left 0.0030 USD" in done.stderr


# ---- the bars ------------------------------------------------------------------------------------------

STEPS, AT, VARIANTS = (100, 92, 100) if FULL else (30, 28, 2)
PREFIX, PREFIX_S = 27, 0.25


@pytest.fixture(scope="module")
def long(world: World) -> World:
    """A tape of a hundred model calls, each with the answer to the one before."""
    with Store.open(world.store) as store:
        asked = [
            ask(_step(number), _say(number), _chat_url(world)) for number in range(1, STEPS + 1)
        ]
        record_run(store, "long", asked)
    return world


def _chat_url(world: World) -> str:
    return f"{world.shop.url}{CHAT}"


def _step(number: int, last: str = "") -> dict[str, Any]:
    messages = [{"role": "user", "content": f"step {number}: {last or number - 1}"}]
    return {"model": "gpt-4o", "messages": messages}


def _say(number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": str(number)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def _walk(made: Branched, steps: int = STEPS) -> None:
    """Ask step after step, each with what was said last."""
    last = ""
    for number in range(1, steps + 1):
        status, said = made.send(Request(f"POST {CHAT}", _step(number, last)))
        assert status == 200, said
        last = said["choices"][0]["message"]["content"] or "another"


async def test_variants_of_one_step_send_what_comes_after_it_and_nothing_before(
    long: World,
) -> None:
    """A hundred variants at step 92 of 100 make 900 calls of 10,000, counted at the upstream."""
    long.shop.requests.clear()
    async with branched(long, Branch(Seq(AT))) as made:
        made.running.registry.name_sole_run("long")
        for number in range(VARIANTS):
            change = RequestChange(patch={"temperature": number / 100})
            made.running.registry.branch = Branch(
                Seq(AT), (live(RequestClass.INFERENCE),), change=change
            )
            await made.do(_walk, made)
            receipt = await made.end()
            assert receipt.to_json()["branch"]["served_before"] == AT - 1
    assert long.shop.requests == [f"POST {CHAT}"] * ((STEPS - AT + 1) * VARIANTS)


async def test_a_prefix_is_served_at_once(long: World) -> None:
    """27 steps take a quarter of a second in all, of processing time: the machine may be busy."""
    async with branched(long, Branch(Seq(PREFIX + 1))) as made:
        made.running.registry.name_sole_run("long")
        await made.do(_walk, made, PREFIX)  # the first run reads what it needs
        await made.end()
        begun = time.process_time()
        await made.do(_walk, made, PREFIX)
        took = time.process_time() - begun
        await made.end()
    assert took < PREFIX_S * (1 if FULL else 4), took


def test_a_secret_in_a_reason_is_not_kept(world: World) -> None:
    """Neither of a class that is live nor of a route, in store, receipt and decisions."""
    secret = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5jK7mN9pQ2rS4tU6vW8x"
    live = ("--live", "inference", "--route", f"POST *://*/*={world.sandbox.url}")
    words = world.words("--at", "2", *live, "--reason", f"as {secret} asks", "--yes")
    done = playhead(*words, cwd=world.store.parent)
    run = read_json("runs", "--store", world.store)[-1]["id"]
    told = playhead("receipt", "--store", world.store, run, "--json").stdout
    assert "inference" in json.dumps(json.loads(told)["branch"]["declared"]["live"])
    assert secret not in told + done.stdout
    with Store.open(world.store, readonly=True) as store:
        kept = [repr(event.data) for event in store.events.all(store.runs.get(run))]
    assert secret not in "".join(kept)
