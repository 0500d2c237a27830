"""Which endpoints two recordings show to be telemetry."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from playhead.config import Config, loads
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.recordings import Asked, ask, record_run
from playhead.timeline.learning.learn import learn
from playhead.timeline.learning.propose_telemetry import find_telemetry
from playhead.timeline.learning.words import hash_environment

HOOK = "https://stats.test/v2/telemetry/batch"
CHAT = "https://api.openai.com/v1/chat/completions"
HASHED = Redactor(b"key").hash_word
NOTED = {
    "child_exit": 0,
    "command": ["agent", "--mode", "playhead-7"],
    "environment": hash_environment(["T1C2K3E4T5"], HASHED),
}
Task = Callable[[Random], list[Asked]]


def _report(chance: Random, answer: object = b"", url: str = HOOK, **more: object) -> Asked:
    words = [chance.choice(("read", "write", "look")) + str(chance.random())[:5] for _ in range(3)]
    told = {"event": "step", "steps": words, "event_id": chance.getrandbits(64), "at": time.time()}
    return ask({"batch": [told | more]}, answer, url=url)


def _payout(chance: Random, answer: object = b"", url: str = HOOK, **more: object) -> Asked:
    """Ask to pay somebody: each time another sum, and somebody else."""
    body = {"amount": chance.randrange(10**5), "to": f"acct_{chance.getrandbits(60):015x}"}
    return ask({**body, "memo": f"for {chance.random()}", **more}, answer, url=url)


def _hidden(chance: Random, wrap: Callable[[str], object]) -> list[Asked]:
    """Ask to pay somebody within what reads like an event."""
    order = {"to": f"alice-{chance.randrange(99)}", "amount": chance.randrange(10**5)}
    return [_report(chance, properties=wrap(json.dumps(order)))]


def _model_asks(chance: Random, item: str) -> Asked:
    call = {"name": "send", "arguments": json.dumps({"item": item})}
    said = {"tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    return ask(
        {"model": "m", "messages": [{"role": "user", "content": "go"}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, **said}}]},
        url=CHAT,
    )


def _find(folder: Path, task: Task, config: Config | None = None) -> tuple[str, ...]:
    made = config or Config()
    with Store.open(folder) as store:
        runs = (
            record_run(store, "a", task(Random(1)), kind=RequestClass.EFFECT, noted=NOTED),
            record_run(store, "b", task(Random(2)), kind=RequestClass.EFFECT, noted=NOTED),
        )
        lesson = learn(store, *runs, made.ignore, Redactor(b"key"), classes=made.classes)
        return find_telemetry(store, runs, made.classes, made.effects, lesson, HASHED)


def test_what_differs_mostly_and_is_answered_with_nothing_is_telemetry(tmp_path: Path) -> None:
    """However often it is sent."""
    assert _find(tmp_path, lambda chance: [_report(chance), _report(chance), ask()]) == (
        f"POST {HOOK}",
    )


@pytest.mark.parametrize(
    "task",
    [
        lambda chance: [_report(chance, {"id": "ticket-17"})],
        lambda chance: [_report(chance, b"x")],
        lambda chance: [_model_asks(chance, "a pear"), _report(chance, tool="a pear")],
        lambda chance: [ask({"a": chance.random()}, url=CHAT)],
        lambda chance: [_payout(chance, {"id": "po_1"}), _payout(chance, {"id": "po_2"})],
        lambda chance: [_payout(chance), _payout(chance)],
        lambda chance: [
            ask(
                {"payouts": [json.loads(_payout(chance, type="pay", at=time.time())[0].body)]},
                b"",
                url=HOOK,
            )
        ],
        lambda chance: [
            ask(
                {
                    "operations": [
                        {"type": "delete", "path": f"/{chance.random()}", "at": time.time(), "n": 1}
                    ]
                },
                b"",
                url=HOOK,
            )
        ],
        lambda chance: [_report(chance), _payout(chance)],
        lambda chance: _hidden(chance, lambda text: text),
        lambda chance: _hidden(chance, lambda text: base64.b64encode(text.encode()).decode()),
        lambda chance: _hidden(chance, lambda text: json.dumps({"context": text})),
        lambda chance: _hidden(
            chance, lambda text: {"amount": {"version": json.loads(text)["to"]}}
        ),
        lambda chance: [_report(chance, context=f"pay {chance.randrange(99)} EUR to bob")],
        lambda chance: [_report(chance, context=f"bob{chance.randrange(9)}@mail.test")],
        lambda chance: [_report(chance, name="payout.requested")],
        lambda chance: [_report(chance, context="playhead-7")],
        lambda chance: [_report(chance, context="t1c2k3e4t5")],
        lambda chance: [(_report(chance)[0], make_response(b"", 500))],
        lambda chance: [_report(chance, at=17)],
    ],
    ids=[
        "answered with an id",
        "answered with something",
        "asked for",
        "model call",
        "payouts",
        "payouts without an answer",
        "a batch of payouts",
        "a batch of operations",
        "a batch and something else",
        "a payout in JSON text",
        "a payout in base64",
        "a payout two texts deep",
        "a quantity around",
        "a sentence",
        "an address",
        "a name that orders",
        "a word of the command line",
        "a word of the environment",
        "failed",
        "another time",
    ],
)
def test_what_may_be_a_deed_is_none(tmp_path: Path, task: Task) -> None:
    """Telemetry is proposed only of batches of events that are answered with nothing: a payout differs each time, too."""
    assert _find(tmp_path, task) == ()


def test_what_no_path_calls_telemetry_is_none(tmp_path: Path) -> None:
    """A batch of commands reads like one of events."""
    url = "https://site.test/c/reboot"
    assert _find(tmp_path, lambda chance: [_report(chance, url=url, event="reboot")]) == ()


@pytest.mark.parametrize("wrap", [lambda told: told, lambda told: json.dumps([told])])
def test_a_member_that_reports_do_not_have_makes_it_none(
    wrap: Callable[[object], object], tmp_path: Path
) -> None:
    """Wherever it is."""
    told = wrap({"pump": "bxv7q2"})
    assert _find(tmp_path, lambda chance: [_report(chance, context=told)]) == ()


@pytest.mark.parametrize(
    "rule",
    [
        'classes: {effect: ["POST https://stats.test"]}',
        'effects: [{match: "POST https://stats.test", on_miss: refuse}]',
    ],
)
def test_what_a_rule_names_stays_what_that_says(tmp_path: Path, rule: str) -> None:
    """A person has looked at it."""
    assert _find(tmp_path, lambda chance: [_report(chance)], loads(rule)) == ()
