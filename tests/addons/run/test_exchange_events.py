"""What a run's log says of a request as it comes, and of an exchange as it ends."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.addons.run.exchange_events import (
    idempotency_key,
    intent_row,
    outcome_event,
    repeat_row,
)
from playhead.tape.exchange import (
    DIGEST,
    UNLOADABLE,
    Close,
    Fault,
    FaultKind,
    Gone,
    Headers,
    Phase,
    RedactedText,
    Redaction,
    Repeat,
    RepeatKind,
    RequestClass,
    Seq,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.policy.limits import CountedUsage
from playhead.tape.records.events import EventKind
from playhead.tests.support.exchanges import make_exchange, make_request, make_response

EFFECT = make_request("POST https://pay.test/refunds", b'{"amount": 5}')
FAULT = Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), 7)


def with_fields(*fields: tuple[bytes, bytes]) -> Any:
    """The effect with header fields."""
    return replace(EFFECT, headers=fields)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (((b"Idempotency-Key", b"a"),), ((b"idempotency-key", b"a"),), True),
        (((b"Idempotency-Key", b"a"),), ((b"Idempotency-Key", b"b"),), False),
        (((b"Idempotency-Key", b"a"),), (), False),
        ((), (), True),
    ],
)
def test_idempotency_keys_are_told_apart(one: Headers, other: Headers, same: bool) -> None:
    """By eight bytes that are not the key, or by there being none."""
    found = [idempotency_key(with_fields(*fields)) for fields in (one, other)]
    assert (found[0] == found[1]) == same
    assert {len(key) for key in found if key is not None} <= {8}
    assert b"a" * 8 not in found


@pytest.mark.parametrize("kind", RequestClass)
def test_only_an_effect_has_an_idempotency_key(kind: RequestClass) -> None:
    """The field of another request is a field like any other."""
    found = idempotency_key(with_fields((b"Idempotency-Key", b"a")), kind)
    assert (found is not None) == (kind is RequestClass.EFFECT)


@pytest.mark.parametrize(
    ("repeat", "row"),
    [
        (
            Repeat(Seq(1), RepeatKind.SAFE_RETRY, unseen=False),
            [1, "safe retry", False],
        ),
        (
            Repeat(Seq(2), RepeatKind.POSSIBLE_DUPLICATE, unseen=True),
            [2, "possible duplicate", True],
        ),
    ],
)
def test_an_intent_says_what_it_repeats(repeat: Repeat, row: list[Any]) -> None:
    """Of what repeats nothing it says nothing of that."""
    assert repeat_row(repeat) == row
    told = intent_row(3, EFFECT, RequestClass.EFFECT, b"f" * 16, repeat=repeat)
    plain = intent_row(3, EFFECT, RequestClass.EFFECT, b"f" * 16)
    assert told == {**plain, "repeat": row}
    assert plain == {
        "seq": 3,
        "method": "POST",
        "url": "https://pay.test/refunds",
        "request_class": "effect",
        "fingerprint": b"f" * 16,
        "key": None,
    }


PLAIN = {
    "seq": 4,
    "verdict": "recorded",
    "status": 201,
    "complete": True,
    "bytes_in": 5,
    "bytes_out": 3,
    "end_us": 2000,
}
NO_ANSWER = {"status": 0, "complete": False, "bytes_in": 0}


@pytest.mark.parametrize(
    ("changes", "arguments", "row"),
    [
        ({}, {}, PLAIN),
        ({"response": None}, {}, PLAIN | NO_ANSWER),
        ({"verdict": VerdictKind.LIVE}, {}, PLAIN | {"verdict": "live"}),
        (
            {"verdict": VerdictKind.LIVE, "reason": "metrics"},
            {"live": True},
            PLAIN | {"verdict": "live", "reason": "metrics"},
        ),
        ({}, {"usage": CountedUsage()}, PLAIN | {"usage": []}),
        ({}, {"usage": CountedUsage(True, 1, 2, 3, 4)}, PLAIN | {"usage": [1, 2, 3, 4]}),
        ({}, {"usage": CountedUsage(estimated=5)}, PLAIN | {"usage": [], "estimated": 5}),
        ({"fault": FAULT}, {}, PLAIN | {"fault": ["cut", "body", "closed"]}),
        (
            {"response": None, "gone": Gone(9, 0, head=False)},
            {},
            PLAIN | NO_ANSWER | {"gone_us": 9},
        ),
        (
            {"websocket": WebSocketSummary(2, 6, None)},
            {},
            PLAIN | {"conversation": [2, 6, 0, False]},
        ),
        (
            {"websocket": WebSocketSummary(2, 6, Close(3, True, 1001, RedactedText("bye")))},
            {},
            PLAIN | {"conversation": [2, 6, 1001, True]},
        ),
        ({"redactions": (Redaction("request.header.cookie", "x"),)}, {}, PLAIN),
        (
            {"redactions": (Redaction("response.body", "x"),)},
            {},
            PLAIN | {"replaced": True},
        ),
        (
            {"redactions": (Redaction("response.body", UNLOADABLE),)},
            {},
            PLAIN | {"replaced": True, "unloadable_key": True},
        ),
        (
            {"redactions": (Redaction("response.header.content-md5", DIGEST),)},
            {},
            PLAIN | {"replaced": True, "other_digest": True},
        ),
        ({"warnings": ("trailers",)}, {}, PLAIN | {"warnings": ("trailers",)}),
    ],
)
def test_an_outcome_says_how_an_exchange_ended(
    changes: dict[str, Any], arguments: dict[str, Any], row: dict[str, Any]
) -> None:
    """What is not the case stands nowhere; its time is that of the end."""
    exchange = make_exchange(4, body=b"abc", response=make_response(b"12345", 201))
    event = outcome_event(replace(exchange, **changes), **arguments)
    assert (event.kind, event.data) == (EventKind.OUTCOME, row)
    assert event.at_ns == exchange.started_ns + 2_000_000
