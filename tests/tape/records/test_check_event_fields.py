"""An event from elsewhere holds what those of its kind do, or is named."""

import re
from typing import Any

import pytest

from playhead.tape.records.check_event_fields import check_event
from playhead.tape.records.codec import BadRecord
from playhead.tape.records.events import CHAIN_START, Event, EventKind, decode_event, encode_event
from playhead.tape.records.failed_attempt import Attempt, AttemptKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record

ASKED: dict[str, Any] = {
    "seq": 1,
    "method": "POST",
    "url": "https://api.test/v1",
    "request_class": "effect",
    "fingerprint": b"f" * 16,
    "verdict": "served",
    "reason": "it is on the tape",
    "tape_seq": 4,
    "match": "exact",
}
ATTEMPT = Attempt(AttemptKind.EMPTY_TUNNEL, "api.test", 443).to_event()
GAP = {"since_ns": 1, "until_ns": 0, "reason": "full"}


def check(event: Event) -> None:
    """Check an event as it is read."""
    check_event(decode_event(encode_event(event, CHAIN_START)[0], 3))


def test_what_is_written_here_passes() -> None:
    """A request, its outcome, what was decided; and keys of a newer version."""
    outcome = make_record(make_exchange()).outcome
    assert outcome is not None
    for event in (make_intent(make_exchange()), outcome):
        check(event)
    check(Event(EventKind.VERDICT, 1, {**ASKED, "repeat": (1, "safe retry", False), "new": [1]}))
    check(Event(EventKind.OUTCOME, 1, {"seq": 1, "gone_us": 7}))
    check(Event(EventKind.NOTED, 1, {"attempt": ATTEMPT, "cut": ("POST", "https://api.test/")}))
    check(Event(EventKind.GAP, 1, GAP))
    check(Event(EventKind.JOURNAL, 1, {"process": {"pid": 1}, "looks": b"x"}))


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        # what is needed
        (EventKind.VERDICT, {name: ASKED[name] for name in ASKED if name != "url"}, "'url' is missing"),
        (EventKind.VERDICT, {**ASKED, "verdict": "forged"}, "'verdict' is 'forged'"),
        (EventKind.VERDICT, {**ASKED, "method": b"POST"}, "'method' is b'POST'"),
        (EventKind.FOREIGN, {"sockets": [1]}, "'sockets'"),
        # what comes together
        (EventKind.VERDICT, {name: ASKED[name] for name in ASKED if name != "match"}, "'match' is missing"),
        (EventKind.VERDICT, {**ASKED, "after": (1,)}, "'answered_by' is missing"),
        (EventKind.OUTCOME, {"seq": 1, "status": 200}, "'verdict' is missing"),
        (EventKind.GAP, {**GAP, "records": 1}, "'exchanges' is missing"),
        # what may be there
        (EventKind.VERDICT, {**ASKED, "repeat": (1, "safe retry")}, "'repeat'"),
        (EventKind.VERDICT, {**ASKED, "tape_seq": 1 << 63}, "'tape_seq'"),
        (EventKind.OUTCOME, {"seq": 1, "fault": ("cut", "nowhere", "text")}, "'fault'"),
        (EventKind.NOTED, {"cut": ("POST",)}, "'cut'"),
        (EventKind.NOTED, {"attempt": {**ATTEMPT, "kind": "forged"}}, "'attempt'"),
        (EventKind.NOTED, {"attempt": {**ATTEMPT, "port": "443"}}, "'attempt'"),
        (EventKind.NOTED, {"attempt": {**ATTEMPT, "more": 1}}, "'attempt'"),
        (EventKind.SEALED, {"reason": "x", "exchanges": 1, "unfinished": 7}, "'unfinished' is 7"),
        (EventKind.NOTED, {"rules": {"ignore": [("x", 1)]}}, "'rules'"),
    ],
)  # fmt: skip
def test_what_is_otherwise_is_named(kind: EventKind, data: dict[str, Any], told: str) -> None:
    """By its number, its kind and the key."""
    with pytest.raises(BadRecord, match=rf"event 3 \({kind.value}\) whose {re.escape(told)}"):
        check(Event(kind, 1, data))
