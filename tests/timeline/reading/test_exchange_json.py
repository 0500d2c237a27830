"""Exchanges as JSON: what a reader looks for first is told outright."""

import pytest

from playhead.tape.exchange import Chunk, Gone, Response, Spilled
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.timeline.reading.exchange_json import exchange_json

TWO = (Chunk(1000, 1), Chunk(2000, 1))


@pytest.mark.parametrize(
    ("response", "gone", "late"),
    [
        # The client stayed.
        (make_response(), None, False),
        (None, None, False),
        # It left, and nothing came.
        (None, Gone(500, 0, False), False),
        (make_response(chunks=TWO, complete=False), Gone(3000, 2, True), False),
        # It left, and the end came, of which SDKs know before.
        (make_response(chunks=TWO), Gone(3000, 2, True), False),
        # It left, and all of it or the rest came.
        (make_response(), Gone(500, 0, False), True),
        (make_response(complete=False, body=b""), Gone(500, 0, False), True),
        (make_response(chunks=TWO, complete=False), Gone(1500, 1, True), True),
        (make_response(b"", spilled=Spilled(b"d" * 32, 2, b"m" * 32)), Gone(1500, 1, True), True),
    ],
)
def test_an_exchange_says_when_its_client_left_and_what_came_after(
    response: Response | None, gone: Gone | None, late: bool
) -> None:
    """`client_gone_at` and `late_response`."""
    document = exchange_json(make_exchange(response=response, gone=gone))
    assert document["client_gone_at"] == (gone.at_us if gone else None)
    assert document["late_response"] is late
