"""What a text is: a stream of events, or none."""

import pytest

from playhead.tape.redaction.finding.join_stream_pieces import has_events


@pytest.mark.parametrize(
    "text",
    [
        b"data: 1\n\n",
        b"\xef\xbb\xbfdata: 1\n\n",
        b"event: a\ndata: 1\n\n",
        b"event: a\rdata: 1\r\r",
        b": hello\r\ndata: 1\r\n\r\n",
        b'{"a": 1}\ndata:',
    ],
)
def test_a_line_of_an_event_makes_a_stream(text: bytes) -> None:
    """However lines end, and whatever was said before."""
    assert has_events(text)


@pytest.mark.parametrize(
    "text", [b"", b'{"a":"data: 1"}', b'{\n"data": 1\n}', b"some data: 1\n", b"event: a\n\n"]
)
def test_the_word_alone_makes_none(text: bytes) -> None:
    """In JSON, whole or printed over lines, and in prose."""
    assert not has_events(text)
