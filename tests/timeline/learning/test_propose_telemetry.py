"""Which endpoints two recordings show to be telemetry."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from playhead.config import Config, loads
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.recordings import Asked, ask, record_run
from playhead.timeline.learning.identifying_words import hash_environment
from playhead.timeline.learning.learn import learn
from playhead.timeline.learning.propose_telemetry import Telemetry, find_telemetry

HOOK = "https://stats.test/v2/telemetry/batch"
CHAT = "https://api.openai.com/v1/chat/completions"
HASHED = Redactor(b"key").hash_word
NOTED = {
    "child_exit": 0,
    "command": ["agent", "--mode", "playhead-7"],
    "environment": hash_environment(["T1C2K3E4T5"], HASHED),
}
Task = Callable[[Random], list[Asked]]


def _report(chance: Random, answer: object = b"", url: str = HOOK, **more: Any) -> Asked:
    told = {"event": "step_completed", "event_id": chance.getrandbits(64), "at": time.time()}
    ids = {f"{name}_id": f"{chance.getrandbits(128):032x}" for name in ("session", "trace", "span")}
    return ask({"batch": [told | ids | more]}, answer, url=url)


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
    return _find_both(folder, task, config).proposed


def _find_both(folder: Path, task: Task, config: Config | None = None) -> Telemetry:
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


@pytest.mark.parametrize(
    "more",
    [
        *({"name": one} for one in ("reboot", "wipe", "overwrite", "rollback", "assign")),
        *({"name": one} for one in ("restore", "drain", "halt", "pump", "startProcess", "Öffne")),
        *({"event": one} for one in ("step", "session.end", "process.start", "started.reboot")),
        *({"status": one} for one in ("up", "down", "open")),
        *({"level": one} for one in ("high", 3)),
        *({"duration_ms": one} for one in (3_600_000, -1)),
        *({"duration": 5}, {"steps": 5}, {"tokens": 500}, {"code": 4711}, {"is_session": True}),
        *({"end_session": True}, {"end_process_id": "0" * 31 + "1"}, {"end_session": [{}]}),
        *({"session_id": "gate-7-now-open-it"}, {"session_id": 7}, {"version": "reboot"}),
        *({"timestamp": 4102444800}, {"created_at": "2031-01-01T00:00:00Z"}),
        *({"platform": "pump"}, {"library": {"name": "reboot"}}, {"properties": ["reboot"]}),
        {"session_id": "8c6976e5b5410415bde908bd4dee15df"},
    ],
    ids=str,
)
def test_a_value_that_may_order_something_makes_it_one_to_check(
    more: dict[str, Any], tmp_path: Path
) -> None:
    """No list of deeds is whole: what is of no known kind may be one, and so may an identifier that is always the same."""
    found = _find_both(tmp_path, lambda chance: [_report(chance, **more)])
    assert found.proposed == ()


def test_an_event_called_as_a_deed_is_listed(tmp_path: Path) -> None:
    """A person may know better."""
    found = _find_both(tmp_path, lambda chance: [_report(chance, name="reboot")])
    assert found == ((), (f"POST {HOOK}",))


def test_a_query_makes_it_one_to_check(tmp_path: Path) -> None:
    """It may say what is to be done."""
    url = f"{HOOK}?do=reboot"
    assert _find(tmp_path, lambda chance: [_report(chance, url=url)]) == ()


@pytest.mark.parametrize(
    ("plain", "odd"),
    [
        (b'"event":', b'"event":"reboot","event":'),
        (b'"event":', b'"properties":' + b'{"context":' * 900 + b"{}" + b"}" * 900 + b',"event":'),
    ],
    ids=["a member twice", "deep"],
)
def test_a_body_that_may_be_read_otherwise_is_none(
    plain: bytes, odd: bytes, tmp_path: Path
) -> None:
    """Nobody knows what counts."""

    def run(chance: Random) -> list[Asked]:
        request, _ = _report(chance)
        return [ask(request.body.replace(b" ", b"").replace(plain, odd), b"", url=HOOK)]

    assert _find(tmp_path, run) == ()


def test_an_identifier_from_an_answer_makes_it_one_to_check(tmp_path: Path) -> None:
    """The client did not make it."""

    def run(chance: Random) -> list[Asked]:
        made = f"{chance.getrandbits(128):032x}"
        return [ask({"a": 1}, {"door": made}), _report(chance, session_id=made)]

    assert _find_both(tmp_path, run) == ((), (f"POST {HOOK}",))


@pytest.mark.parametrize(
    "more",
    [
        {"name": "tengu_api_success", "status": "ok", "level": "info", "sdk_version": "1.4.0"},
        {"duration_ms": 0.5, "seq": 4, "is_ci": False, "os": "linux", "platform": None},
        {"properties": {"event_type": "session.started", "status_code": 200}, "arch": "arm64"},
    ],
)
def test_values_of_known_kinds_are_telemetry(more: dict[str, Any], tmp_path: Path) -> None:
    """As agents report."""

    def run(chance: Random) -> list[Asked]:
        ids = {f"{name}_id": f"{chance.getrandbits(128):032x}" for name in ("turn", "request")}
        return [_report(chance, **ids, **more, anonymous_id=f"{chance.getrandbits(128):032x}")]

    assert _find(tmp_path, run) == (f"POST {HOOK}",)


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
