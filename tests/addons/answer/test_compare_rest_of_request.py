"""What a request says after its answer has begun: the same as the recorded one, or where it is another."""

import pytest

from playhead.addons.answer.compare_rest_of_request import compare, compare_given_up
from playhead.addons.run.exchange_parts.request_body import Early
from playhead.config import Mode
from playhead.tape.exchange import Exchange, Gone
from playhead.tests.support.exchanges import make_exchange, make_request, make_response
from playhead.tests.support.pending import NotedRun, make_pending

WHAT = "POST https://api.test/t.S/Pay"


def recorded(body: bytes, *, given_up: bool = False) -> Exchange:
    """One that ended before its answer did, or that its client gave up before it had ended it."""
    answer = make_response(b"", complete=not given_up, end_need=len(body) if given_up else None)
    left = Gone(900, 1, head=True) if given_up else None
    return make_exchange(3, WHAT, body=body, response=answer, gone=left)


@pytest.mark.parametrize(
    ("given_up", "begun", "came", "ended", "place", "text"),
    [
        (False, 2, b"cd", False, "", ""),
        (False, 2, b"cd", True, "", ""),
        (False, 2, b"cX", False, "body byte 3", "went on otherwise after its answer had begun"),
        (False, 2, b"cde", False, "body byte 4", "went on for 1 bytes more than the recorded one"),
        (False, 2, b"c", True, "body byte 3", "ended 1 bytes before the recorded one"),
        (False, 2, b"c", False, "", ""),
        (True, 2, b"cd", True, "body", "ended, and the recorded one had not"),
        (True, 2, b"cde", False, "", ""),
    ],
    ids=["goes on", "same", "another", "longer", "shorter", "not all yet", "ended", "unknown rest"],
)
async def test_a_request_is_the_recorded_one_or_diverges_at_a_byte(
    given_up: bool, begun: int, came: bytes, ended: bool, place: str, text: str
) -> None:
    """The place of the first byte that differs, and in words how it does; once."""
    run = NotedRun(mode=Mode.PLAYBACK)
    pending, early = make_pending(run, WHAT), Early(recorded(b"abcd", given_up=given_up), begun)
    pending.body.have_sent([came])
    if not ended:
        pending.body.open_both_ways()
    for _ in range(2):
        compare(pending, make_request(WHAT), early)
    rows = [data["divergence"] for _, data in run.noted]
    assert len(rows) == bool(text)
    assert early.diverged is bool(text)
    for row in rows:
        assert text in row["text"]
        assert (row["nearest_seq"], row["differences"][0]["place"]) == (3, place)


async def test_a_request_that_is_given_up_at_its_end_differs_in_its_end() -> None:
    """All of it came, and its end did not: the two sides say so, and are not the same words."""
    run = NotedRun(mode=Mode.PLAYBACK)
    pending, early = make_pending(run, WHAT), Early(recorded(b"abcd"), 2)
    pending.body.have_sent([b"cd"])
    pending.body.open_both_ways()
    compare(pending, make_request(WHAT), early)
    compare_given_up(pending, make_request(WHAT), early)
    (row,) = [data["divergence"] for _, data in run.noted]
    told = row["differences"][0]
    assert (told["place"], told["recorded"], told["asked"]) == ("body", "ended", "never ended")
