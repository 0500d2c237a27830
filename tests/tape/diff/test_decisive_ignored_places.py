"""Tests for which places may decide what a request does, where the user's own rules leave them out."""

import pytest

from playhead.tape.diff.decisive_ignored_places import may_decide
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
        ("body $.timestamp", READ, False),
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
