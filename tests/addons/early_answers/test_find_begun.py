"""What a request that is sent as it comes may still say, by how the recorded one ended."""

from dataclasses import replace

import pytest

from playhead.addons.early_answers.find_begun import said_all, was_open
from playhead.tape.exchange import Exchange, Gone
from playhead.tests.support.exchanges import make_exchange, make_response

_MESSAGE = b"\0\0\0\0\1a"


def _call(body: bytes, *, complete: bool, end_need: int | None, gone: bool) -> Exchange:
    left = Gone(900, 1, head=True) if gone else None
    answer = make_response(b"", complete=complete, end_need=end_need)
    made = make_exchange(what="POST http://api.test/t.S/Pay", body=body, response=answer, gone=left)
    headers = ((b"content-type", b"application/grpc+proto"),)
    return replace(made, request=replace(made.request, headers=headers))


@pytest.mark.parametrize(
    ("body", "complete", "end_need", "gone", "expected"),
    [
        (_MESSAGE, True, None, False, (True, False)),
        (_MESSAGE, True, 6, False, (False, False)),
        (2 * _MESSAGE, False, 12, True, (True, True)),
        (2 * _MESSAGE, False, None, True, (True, False)),
        (_MESSAGE + b"\0\0\0", False, 9, True, (False, True)),
    ],
    ids=["ended", "server ended", "cancelled", "cancelled once ended", "cancelled in a message"],
)
def test_a_client_that_gave_up_had_said_all(
    body: bytes,
    complete: bool,
    end_need: int | None,
    gone: bool,
    expected: tuple[bool, bool],
) -> None:
    """Unless it gave up within a message; where the server ended first, nobody knows what it would have said."""
    call = _call(body, complete=complete, end_need=end_need, gone=gone)
    assert (said_all(call), was_open(call)) == expected
