"""Which recorded request one may still become whose client waits for an answer before it says more."""

from dataclasses import replace

import pytest

from playhead.addons.early_answers.match_partial_request import is_alike
from playhead.tape.exchange import Exchange, Gone, Spilled
from playhead.tests.support.exchanges import make_exchange, make_response

_ONE, _TWO = b"\0\0\0\0\1a", b"\0\0\0\0\1b"


def _call(
    body: bytes = _ONE + _TWO,
    *,
    complete: bool = True,
    end_need: int | None = None,
    gone: bool = False,
) -> Exchange:
    left = Gone(900, 0, head=False) if gone else None
    answer = None if gone else make_response(b"", complete=complete, end_need=end_need)
    made = make_exchange(what="POST http://api.test/t.S/Say", body=body, response=answer, gone=left)
    kind = ((b"content-type", b"application/grpc"),)
    return replace(made, request=replace(made.request, headers=kind))


@pytest.mark.parametrize(
    ("call", "came", "expected"),
    [
        (_call(), b"", True),
        (_call(), _ONE[:3], True),
        (_call(), _ONE, True),
        (_call(), _ONE + _TWO, True),
        (_call(), _TWO, False),
        (_call(), _ONE + _ONE, False),
        (_call(), _ONE + _TWO + _ONE, False),
        # What the client would have said, if the server had not ended first or failed, nobody knows.
        (_call(end_need=6), _ONE + _TWO + _ONE, True),
        (_call(complete=False), _ONE + _TWO + _ONE, True),
        (_call(complete=False), _TWO, False),
        (_call(gone=True), _ONE, True),
        (_call(gone=True), _TWO, False),
    ],
    ids=[
        "its head",
        "part of a message",
        "one message",
        "both",
        "another message",
        "another second message",
        "a message more",
        "more, and the server ended first",
        "more, and the answer was cut",
        "another one, and the answer was cut",
        "given up",
        "another one that was given up",
    ],
)
def test_a_request_may_still_become_one_that_begins_so(
    call: Exchange, came: bytes, expected: bool
) -> None:
    """Else it is refused once its client is quiet: it waits for an answer that never comes."""
    assert is_alike(call, came) is expected


def test_nobody_looks_into_a_body_in_a_file() -> None:
    """It may be the same, so it is waited for."""
    call = _call()
    spilled = Spilled(b"0" * 32, 12, b"0" * 32)
    assert is_alike(replace(call, request=replace(call.request, body=b"", spilled=spilled)), _TWO)
