"""Tests for which places may decide what a request does, where the user's own rules leave them out."""

import pytest

from playhead.tape.diff.decisive_ignored_places import Moments, may_decide
from playhead.tape.diff.divergence_types import Difference
from playhead.tape.exchange import RequestClass

EFFECT, INFERENCE = RequestClass.EFFECT, RequestClass.INFERENCE
READ, TELEMETRY = RequestClass.READ, RequestClass.TELEMETRY


@pytest.mark.parametrize(
    ("place", "kind", "decides"),
    [
        # No list has these names.
        *((f"header {name}", READ, True) for name in ("x-act-as", "x-principal", "x-amount")),
        ("header x-on-behalf-of", INFERENCE, True),
        ("query mailbox", READ, True),
        ("form of", READ, True),
        ("body $.bucket", READ, True),
        ("body byte 12", READ, True),
        ("path", READ, True),
        *((f"body $.{name}", INFERENCE, True) for name in ("model", "seed", "messages[0].text")),
        # Whose it is counts in metadata, too.
        ("body $.metadata.customer_id", INFERENCE, True),
        ("body $.metadata.window", INFERENCE, False),
        ("body $.client_metadata['x-window']", INFERENCE, False),
        ("body $.metadata", INFERENCE, True),
        # A client makes these anew.
        ("body $.request_id", INFERENCE, False),
        ("body $.timestamp", INFERENCE, False),
        ("query nonce", READ, False),
        # Of an effect everything counts.
        ("body $.request_id", EFFECT, True),
        ("query nonce", EFFECT, True),
        ("header x-act-as", TELEMETRY, False),
    ],
)
def test_what_is_not_made_anew_decides(place: str, kind: RequestClass, decides: bool) -> None:
    """Whatever its name is."""
    assert may_decide(Difference(place, "1", "2"), kind) is decides


MOMENTS = Moments(1_795_884_529.2, 1_795_890_000.7)
NOW = "1795884529", "1795890000"


@pytest.mark.parametrize(
    "place",
    [f"query {name}" for name in ("date", "time", "now", "created_at", "sent_at", "timestamp")]
    + ["body $.date", "form created_at"],
)
@pytest.mark.parametrize(
    ("recorded", "asked", "decides"),
    [
        (*NOW, False),
        ("1795884529200", "1795890000100", False),
        ('"2026-11-28T16:48:49Z"', '"2026-11-28T18:20:00.5Z"', False),
        # Of the clock of the tape.
        (NOW[0], "1795884531", False),
        # Somebody chose these: a day, a minute, another time, a time then and none now.
        ("2026-01-01", "2031-12-31", True),
        ("2026-11-28", "2026-11-29", True),
        ("2026-11-28T16:48", "2026-11-28T18:20", True),
        ("1795884529", "1796884529", True),
        ("1795800000", "1795890000", True),
        ("1795884529", "(absent)", True),
        ("1", "2", True),
    ],
)
def test_the_time_of_a_read_decides_unless_it_is_the_present_one(
    place: str, recorded: str, asked: str, decides: bool
) -> None:
    """Whatever its place is called: `?date=` chooses an answer."""
    difference = Difference(place, recorded, asked)
    assert may_decide(difference, READ, MOMENTS) is decides
    assert may_decide(difference, READ)
