"""What a run with limits has used: what is counted, what is asked for repeats, and what stands in a request's way."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from mitmproxy import http

from playhead.addons.run.exchange_parts.answer import Answer
from playhead.addons.run.exchange_parts.arrival import Arrival
from playhead.addons.run.exchange_parts.phases import Recording
from playhead.addons.run.usage_meter import RequestUsage, UsageMeter
from playhead.config import Classes, Config, Limits
from playhead.tape.exchange import (
    Fault,
    FaultKind,
    Fingerprint,
    Phase,
    RedactedText,
    RequestClass,
    Seq,
)
from playhead.tape.policy.decide import Facts, Policy
from playhead.tape.policy.limits import CountedUsage, Spent
from playhead.tape.records.events import EventKind
from playhead.tests.support.exchanges import make_request, make_response

CHAT = "https://api.openai.com/v1/chat/completions"
ANSWER = b'{"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d}}'


@dataclass
class Asked:
    """A request as the meter sees it."""

    facts: Facts
    request_class: RequestClass
    seq: Seq = Seq(1)  # noqa: RUF009, immutable
    fingerprint: Fingerprint | None = Fingerprint(b"f" * 16)  # noqa: RUF009, immutable
    usage: RequestUsage = field(default_factory=RequestUsage)
    progress: Recording = field(default_factory=Recording)
    arrival: Arrival = field(default_factory=Arrival)
    answer: Answer = field(default_factory=Answer)


def ask(
    kind: RequestClass = RequestClass.READ, path: str = "/x", host: str = "api.test", **changes: Any
) -> Asked:
    """A request of a class."""
    method = "GET" if kind is RequestClass.READ else "POST"
    return Asked(Facts(method, "https", host, 443, path, kind), kind, **changes)


def meter(noted: list[tuple[EventKind, dict[str, Any]]] | None = None, **limits: Any) -> UsageMeter:
    """A meter with limits, and an empty policy; what it notes goes to a list."""
    noted = [] if noted is None else noted
    return UsageMeter(
        Limits(**limits),
        Classes(),
        lambda: Policy.of(Config()),
        lambda kind, **data: noted.append((kind, data)),
    )


@pytest.mark.parametrize("kind", RequestClass)
def test_all_but_telemetry_is_counted(kind: RequestClass) -> None:
    """What did not leave after all is taken back."""
    counted, asked = meter(calls=5), ask(kind)
    counted.count(asked)
    assert counted.used.calls == (kind is not RequestClass.TELEMETRY)
    counted.uncount(asked)
    assert counted.used.calls == 0


@pytest.mark.parametrize(
    ("limits", "reads"),
    [
        ({}, False),
        ({"calls": 5}, False),
        ({"repeats": 5}, False),
        ({"tokens": 5}, True),
        ({"usd": Decimal(5)}, True),
    ],
)
def test_answers_are_read_where_they_state_what_is_limited(
    limits: dict[str, Any], reads: bool
) -> None:
    """Calls and repeats are known without."""
    assert meter(**limits).reads_answers is reads


@pytest.mark.parametrize(
    ("repeats", "kind", "asks"),
    [
        (3, RequestClass.READ, True),
        (3, RequestClass.EFFECT, True),
        (3, RequestClass.INFERENCE, True),
        (3, RequestClass.TELEMETRY, False),
        (None, RequestClass.READ, False),
    ],
)
def test_what_repeats_has_to_be_known_before_it_leaves(
    repeats: int | None, kind: RequestClass, asks: bool
) -> None:
    """Where a limit says so; telemetry may be sent as often as it likes."""
    assert meter(repeats=repeats).asks_for_repeats(ask(kind)) is asks


@pytest.mark.parametrize(
    ("limits", "asked", "asks"),
    [
        ({"tokens": 9}, ask(RequestClass.INFERENCE), True),
        ({"calls": 9}, ask(RequestClass.INFERENCE), True),
        ({"tokens": 9}, ask(RequestClass.READ), False),
        (
            {"tokens": 9},
            ask(RequestClass.EFFECT, "/v1/chat/completions", "api.openai.com"),
            True,
        ),
        (
            {"calls": 9},
            ask(RequestClass.EFFECT, "/v1/chat/completions", "api.openai.com"),
            False,
        ),
    ],
)
def test_what_can_be_taken_for_a_model_call_is_one(
    limits: dict[str, Any], asked: Asked, asks: bool
) -> None:
    """By its class, or, where answers are read, by any way in which it can be read; asked once."""
    counted = meter(**limits)
    assert counted.asks_model(asked) is asks
    assert counted.asks_model(asked) is asks


@pytest.mark.parametrize(
    ("limits", "used", "kind", "limit"),
    [
        ({"calls": 2}, {"calls": 1}, RequestClass.READ, None),
        ({"calls": 2}, {"calls": 2}, RequestClass.READ, "calls"),
        ({"calls": 2}, {"calls": 2}, RequestClass.TELEMETRY, None),
        ({"tokens": 9}, {"input_tokens": 5, "output_tokens": 4}, RequestClass.INFERENCE, "tokens"),
        ({"tokens": 9}, {"input_tokens": 5, "output_tokens": 3}, RequestClass.INFERENCE, None),
        ({"tokens": 9}, {"input_tokens": 99}, RequestClass.READ, None),
        ({"usd": Decimal(1)}, {"nano_usd": 10**9}, RequestClass.INFERENCE, "usd"),
        ({"usd": Decimal(1)}, {"nano_usd": 10**9 - 1}, RequestClass.INFERENCE, None),
    ],
)
def test_a_limit_that_is_exhausted_is_found(
    limits: dict[str, Any], used: dict[str, int], kind: RequestClass, limit: str | None
) -> None:
    """Of what the request would use more of."""
    counted = meter(**limits)
    for name, value in used.items():
        setattr(counted.used, name, value)
    spent = counted.find_spent(ask(kind))
    assert (spent.limit if spent is not None else None) == limit


@pytest.mark.parametrize(
    ("forms", "spent"),
    [
        ([b"a", b"a", b"a"], [False, False, True]),
        ([b"a", b"b", b"a"], [False, False, False]),
    ],
)
def test_repeats_are_those_in_a_row(forms: list[bytes], spent: list[bool]) -> None:
    """Of one endpoint; another request there begins anew."""
    counted = meter(repeats=2)
    found = []
    for form in forms:
        asked = ask()
        counted.note_forms(asked, frozenset({form}))
        found.append(counted.find_spent(asked) is not None)
    assert found == spent


@pytest.mark.parametrize(
    ("answers", "spent"),
    [
        ([b"same", b"same", b"same"], True),
        ([b"one", b"two", b"three"], False),
        ([None, None, None], True),
    ],
)
def test_a_poll_that_is_answered_anew_is_no_repeat(
    answers: list[bytes | None], spent: bool
) -> None:
    """What a read was answered counts, and not only what was asked."""
    counted = meter(repeats=2)
    found = False
    for body in answers:
        asked = ask()
        counted.note_forms(asked, frozenset({b"a"}))
        found = counted.find_spent(asked) is not None
        if body is not None:
            asked.answer.pieces = [body]
        counted.heard(asked, None if body is None else http.Response.make(200))
    assert found is spent


@pytest.mark.parametrize(
    "asked",
    [ask(RequestClass.EFFECT), ask(RequestClass.INFERENCE), ask(fingerprint=None)],
)
def test_only_the_answer_of_a_read_is_heard(asked: Asked) -> None:
    """And only of one whose repeats are counted."""
    counted = meter(repeats=1)
    counted.note_forms(asked, frozenset({b"a"}))
    counted.find_spent(asked)
    counted.heard(asked, None)
    again = ask(asked.request_class)
    counted.note_forms(again, frozenset({b"a"}))
    assert (counted.find_spent(again) is not None) == (asked.fingerprint is not None)


def test_an_exhausted_limit_is_told_once() -> None:
    """Each one, with what was used by then."""
    noted: list[tuple[EventKind, dict[str, Any]]] = []
    counted = meter(noted, calls=1, repeats=1)
    counted.count(ask())
    for limit in ("calls", "repeats", "calls"):
        counted.report(ask(seq=Seq(7)), Spent(limit, f"{limit} exhausted"))
    assert [kind for kind, _ in noted] == [EventKind.LIMITED] * 2
    assert noted[0][1] == {
        "seq": 7,
        "limit": "calls",
        "reason": "calls exhausted",
        "calls": 1,
        "tokens": 0,
        "usd": "0",
    }
    assert noted[1][1]["limit"] == "repeats"


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"calls": 3}, {"calls": 3, "tokens": None, "usd": None, "repeats": None}),
        ({"repeats": 2}, {"calls": None, "tokens": None, "usd": None, "repeats": 2}),
    ],
)
def test_the_log_has_the_limits(limits: dict[str, Any], told: dict[str, Any]) -> None:
    """From the beginning of a run."""
    noted: list[tuple[EventKind, dict[str, Any]]] = []
    meter(noted, **limits).begin()
    assert noted == [(EventKind.NOTED, {"limits": told})]


def read(
    counted: UsageMeter, asked: Asked, tokens: int | None, *, size: int = 0
) -> CountedUsage | None:
    """Have the answer of a model call counted: one that states so many tokens, or none."""
    response = None
    if tokens is not None:
        response = make_response(ANSWER % tokens + b" " * size)
    counted.count_usage(asked, make_request(f"POST {CHAT}", b'{"model":"gpt-4o"}'), response)
    return asked.usage.counted


def test_an_answer_that_goes_on_is_counted_in_place_of_its_beginning() -> None:
    """And no second time where nothing has come since."""
    counted, asked = meter(tokens=100), ask(RequestClass.INFERENCE)
    for tokens, size, total in ((5, 0, 15), (5, 0, 15), (7, 1, 17)):
        read(counted, asked, tokens, size=size)
        assert (counted.used.tokens, counted.used.unstated) == (total, 0)
    other = ask(RequestClass.INFERENCE)
    read(counted, other, 1)
    assert counted.used.tokens == 28


@pytest.mark.parametrize(
    ("phase", "unstated"),
    [
        (None, 1),
        (Phase.CONNECT, 0),
        (Phase.TLS, 0),
        (Phase.REQUEST, 1),
        (Phase.HEAD, 1),
        (Phase.BODY, 1),
    ],
)
def test_a_call_without_an_answer_has_used_what_nobody_knows(
    phase: Phase | None, unstated: int
) -> None:
    """Unless it was never sent."""
    counted, asked = meter(tokens=100), ask(RequestClass.INFERENCE)
    asked.progress.send_on(connected=phase not in (Phase.CONNECT, Phase.TLS))
    if phase is not None:
        asked.progress.fail(Fault(FaultKind.RESET, phase, RedactedText("gone"), 1))
    found = read(counted, asked, None)
    assert (found is None) == (unstated == 0)
    assert (counted.used.tokens, counted.used.unstated) == (0, unstated)


# ---- what is reserved, where there is a cap ------------------------------------------------------------

STREAM = b'{"model": "gpt-4o", "stream": true, "max_tokens": 100, "messages": []}'
CALL = 1_000_000 + len(STREAM) // 3 * 2_500
"""What one can cost, in billionths of a dollar: 100 tokens of output, and its own."""
PIECE = b'data: {"object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
USED = b'data: {"object":"chat.completion.chunk","model":"gpt-4o","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":30}}\n\ndata: [DONE]\n\n'
EVENTS = ((b"content-type", b"text/event-stream"),)


def capped(usd: str) -> UsageMeter:
    """A meter with a cap, of a branch whose tape has no call of a model."""
    limits, policy = Limits(usd=Decimal(usd)), Policy.of(Config())
    return UsageMeter(limits, Classes(), lambda: policy, lambda *_, **__: None, {})


def leave(counted: UsageMeter) -> Asked | None:
    """Have a model call leave; None where it is refused."""
    asked = ask(RequestClass.INFERENCE, "/v1/chat/completions", "api.openai.com")
    counted.estimate(asked, make_request(f"POST {CHAT}", STREAM))
    asked.seq = Seq(counted.used.calls + 1)
    if counted.find_spent(asked) is not None:
        return None
    counted.count(asked)
    asked.progress.send_on(connected=True)
    return asked


def end(counted: UsageMeter, asked: Asked, body: bytes | None, status: int = 200) -> None:
    """Have it be answered, or not."""
    response = None
    if body is not None:
        response = make_response(body, status=status, headers=EVENTS)
    counted.count_usage(asked, make_request(f"POST {CHAT}", STREAM), response)


def test_calls_at_the_same_time_reserve_what_each_can_cost() -> None:
    """Before they are sent: all together never pass the cap. What they did not use is there again."""
    counted = capped("0.003")
    first, second = leave(counted), leave(counted)
    assert first is not None
    assert second is not None
    assert leave(counted) is None
    end(counted, first, PIECE + USED % 20)
    assert (counted.used.nano_usd, counted.used.estimated) == (225_000, 0)
    assert leave(counted) is not None
    counted.uncount(second)  # a gate has denied it
    assert leave(counted) is not None


@pytest.mark.parametrize(
    ("body", "status", "known", "estimated"),
    [
        # Left, cut, or never begun: what it can have cost.
        (PIECE, 200, 0, CALL),
        (PIECE * 3, 200, 0, CALL),
        (None, 200, 0, CALL),
        (b"nobody can read this", 200, 0, CALL),
        # More came than was thought of.
        (PIECE * 1000, 200, 0, CALL + 900 * 10_000),
        # It came to its end, or was an error.
        (PIECE + USED % 20, 200, 225_000, 0),
        (b"{}", 429, 0, 0),
    ],
)
def test_a_call_that_does_not_state_its_usage_counts_as_what_it_can_have_cost(
    body: bytes | None, status: int, known: int, estimated: int
) -> None:
    """Under a cap."""
    counted = capped("1")
    asked = leave(counted)
    assert asked is not None
    end(counted, asked, body, status)
    assert (counted.used.nano_usd, counted.used.estimated) == (known, estimated)


def test_streams_that_are_left_come_to_the_cap() -> None:
    """However many are begun."""
    counted = capped("0.005")
    for _ in range(9):
        asked = leave(counted)
        if asked is not None:
            end(counted, asked, PIECE)
    assert counted.used.calls == 5_000_000 // CALL == 4


def test_a_call_is_expected_to_cost_what_others_did() -> None:
    """What its request does not show, as files named by an id, was in the price of the last."""
    counted = capped("1")
    asked = leave(counted)
    assert asked is not None
    end(counted, asked, (PIECE + USED % 20).replace(b":10,", b":200000,"))
    assert leave(counted) is None


def test_a_call_that_cannot_be_read_does_not_leave_under_a_cap() -> None:
    """Nobody knows what it can cost, and it says why."""
    counted = capped("1000")
    asked = ask(RequestClass.INFERENCE, "/v1/chat/completions", "api.openai.com")
    coded = replace(make_request(f"POST {CHAT}", b"?"), headers=((b"content-encoding", b"gzip"),))
    counted.estimate(asked, coded)
    spent = counted.find_spent(asked)
    assert spent is not None
    assert (spent.limit, "its body is no whole gzip" in spent.text) == ("usd", True)


def test_without_a_cap_nothing_is_estimated() -> None:
    """A limit of the configuration counts what is stated."""
    counted = meter(usd=Decimal("0.001"))
    for _ in range(9):
        asked = leave(counted)
        assert asked is not None
        end(counted, asked, PIECE)
    assert (counted.used.unstated, counted.used.estimated) == (9, 0)
