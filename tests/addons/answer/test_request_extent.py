"""How much of a request that is sent as it comes is compared, by how the recorded one ended."""

from dataclasses import replace

import pytest

from playhead.addons.answer.request_extent import find_extent, has_ended, was_open
from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.tape.exchange import Exchange, Gone, Spilled
from playhead.tests.support.exchanges import make_exchange, make_response

_MESSAGE = b"\0\0\0\0\1a"
_EVENT = b"\0\0\0\x10" + b"." * 12
_GRPC, _CONNECT = b"application/grpc+proto", b"application/connect+json"
_EVENTS = b"application/vnd.amazon.eventstream"


def _call(
    body: bytes, *, complete: bool, end_need: int | None, gone: bool, kind: bytes = _GRPC
) -> Exchange:
    left = Gone(900, 1, head=True) if gone else None
    answer = make_response(b"", complete=complete, end_need=end_need)
    made = make_exchange(what="POST http://api.test/t.S/Pay", body=body, response=answer, gone=left)
    return replace(made, request=replace(made.request, headers=((b"content-type", kind),)))


@pytest.mark.parametrize(
    ("body", "complete", "end_need", "gone", "expected"),
    [
        (_MESSAGE, True, None, False, (6, 6, False, True)),
        (_MESSAGE, True, 6, False, (6, None, False, False)),
        (_MESSAGE, False, None, False, (0, None, False, False)),
        (2 * _MESSAGE, False, 12, True, (12, 12, True, False)),
        (2 * _MESSAGE, False, None, True, (12, 12, False, False)),
        (2 * _MESSAGE, True, None, True, (12, 12, False, True)),
        (_MESSAGE + b"\0\0\0", False, 9, True, (7, None, True, False)),
        (_MESSAGE + b"\0\0\0\0\5ab", False, 13, True, (7, 16, True, False)),
        (b"", False, 0, True, (0, 0, True, False)),
    ],
    ids=[
        "ended",
        "server ended",
        "failed",
        "cancelled",
        "cancelled, of an earlier version",
        "cancelled once ended",
        "cancelled in a length",
        "cancelled in a message",
        "cancelled at once",
    ],
)
def test_all_messages_count_that_were_sent_before_a_client_gave_up(
    body: bytes,
    complete: bool,
    end_need: int | None,
    gone: bool,
    expected: tuple[int, int | None, bool, bool],
) -> None:
    """Of one that was cut any part will do; where the server ended first, nobody knows what else it would have said."""
    call = _call(body, complete=complete, end_need=end_need, gone=gone)
    assert (*find_extent(call), was_open(call), has_ended(call)) == expected


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (_CONNECT, 2 * _MESSAGE, (12, 12)),
        (_EVENTS, 2 * _EVENT, (32, 32)),
        (_EVENTS, _EVENT + _EVENT[:9], (17, 32)),
        (_EVENTS, b"\0\0\0\0" * 2, (8, 8)),
        (b"text/plain", b"words", (5, None)),
    ],
)
def test_the_messages_of_each_protocol_are_told_apart(
    kind: bytes, body: bytes, expected: tuple[int, int | None]
) -> None:
    """By their lengths; a length that is none ends nothing else."""
    call = _call(body, complete=False, end_need=len(body), gone=True, kind=kind)
    assert find_extent(call) == expected


def test_of_a_request_in_a_file_the_size_alone_counts() -> None:
    """One that ended is as long; one that was given up is at least too large to be held."""
    in_file = Spilled(b"", HELD_BYTES + 10, b"")
    ended = _call(b"", complete=True, end_need=None, gone=False)
    given_up = _call(b"", complete=False, end_need=HELD_BYTES + 10, gone=True)
    for call, expected in ((ended, (in_file.size,) * 2), (given_up, (HELD_BYTES, None))):
        assert (
            find_extent(replace(call, request=replace(call.request, spilled=in_file))) == expected
        )
