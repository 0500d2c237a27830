"""Which endpoints two recordings show to be telemetry."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from playhead.config import Config, loads
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.recordings import Asked, ask, record_run
from playhead.timeline.learning.learn import learn
from playhead.timeline.learning.propose_telemetry import find_telemetry

HOOK = "https://stats.test/v2/collect"
CHAT = "https://api.openai.com/v1/chat/completions"
Task = Callable[[Random], list[Asked]]


def _report(chance: Random, answer: object = b"", **more: object) -> Asked:
    words = [chance.choice(("read", "write", "look")) + str(chance.random())[:5] for _ in range(3)]
    body = {"event": "step", "did": words, "id": chance.getrandbits(64), **more}
    return ask(body, answer, url=HOOK)


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
            record_run(store, "a", task(Random(1)), kind=RequestClass.EFFECT),
            record_run(store, "b", task(Random(2)), kind=RequestClass.EFFECT),
        )
        lesson = learn(store, *runs, made.ignore, Redactor(b"key"), classes=made.classes)
        return find_telemetry(store, runs, made.classes, made.effects, lesson)


def test_what_differs_mostly_and_is_answered_with_nothing_is_telemetry(tmp_path: Path) -> None:
    """However often it is sent."""
    assert _find(tmp_path, lambda chance: [_report(chance), _report(chance), ask()]) == (
        f"POST {HOOK}",
    )


@pytest.mark.parametrize(
    "task",
    [
        lambda chance: [ask({"event": "step", "text": "the same", "n": chance.random()}, url=HOOK)],
        lambda chance: [ask({"a": "x", "b": f"{chance.getrandbits(64):016x}"}, url=HOOK)],
        lambda chance: [_report(chance, {"id": "ticket-17"}), ask({"about": "ticket-17"})],
        lambda chance: [_report(chance, {"id": 17}), ask({}, url="https://api.test/orders/17")],
        lambda chance: [_report(chance, b"x" * 5000)],
        lambda chance: [_model_asks(chance, "a pear"), _report(chance, item="a pear", n=1)],
        lambda chance: [ask({"a": chance.random()}, url=CHAT)],
    ],
    ids=[
        "alike",
        "an id alone",
        "depends",
        "depends in a path",
        "large answer",
        "asked for",
        "model call",
    ],
)
def test_what_something_depends_on_is_none(tmp_path: Path, task: Task) -> None:
    """Nor what is alike, is answered at length, or is what a model asked for."""
    assert _find(tmp_path, task) == ()


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
