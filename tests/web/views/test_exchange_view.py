"""A body is shown as values only where these say what its bytes do; else as it came, with the reason."""

from dataclasses import replace

import pytest

from playhead.tape.exchange import Request
from playhead.tests.support.exchanges import make_exchange, make_request, make_response
from playhead.web.views.exchange_view import Side, view_exchange

_JSON, _FORM = b"application/json", b"application/x-www-form-urlencoded"
_EVENTS = b"text/event-stream"


def _request(body: bytes, kind: bytes) -> Request:
    made = make_request("POST https://api.test/v1/wires", body)
    others = tuple(pair for pair in made.headers if pair[0].lower() != b"content-type")
    return replace(made, headers=(*others, (b"content-type", kind)))


def _asked(body: bytes, kind: bytes) -> Side:
    return view_exchange(replace(make_exchange(), request=_request(body, kind))).request


def _answered(body: bytes, kind: bytes) -> Side:
    response = make_response(body, headers=((b"content-type", kind),))
    side = view_exchange(make_exchange(response=response)).answer
    assert side is not None
    return side


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"to":"mallory","to":"alice"}', _JSON),
        (b'{"fee":NaN,"to":"mallory"}', _JSON),
        (b'\xef\xbb\xbf{"to":"mallory"}', _JSON),
        (b"to=mallory;to=alice", _FORM),
    ],
)
def test_what_values_do_not_say_is_shown_as_it_came(body: bytes, kind: bytes) -> None:
    """In requests and answers."""
    sides = [_asked(body, kind), *([_answered(body, kind)] if kind == _JSON else [])]
    for side in sides:
        assert side.lines == []
        assert side.note.startswith("shown as it came: ")
        assert side.text is not None
        assert "mallory" in side.text.text


def test_numbers_are_as_they_were_written() -> None:
    """In requests and answers; others are as before."""
    body = b'{"amount":49.00,"fee":1E400,"n":[-0,1]}'
    for side in (_asked(body, _JSON), _answered(body, _JSON)):
        texts = {one.name: one.text for one in side.lines if one.kind == "number"}
        assert texts == {"amount": "49.00", "fee": "1E400", "0": "-0", "1": "1"}
        assert side.note == ""


def test_a_long_form_says_how_much_is_left_out() -> None:
    """It has a place for each of its pairs."""
    side = _asked(b"&".join(b"a%d=%d" % (at, at) for at in range(1000)), _FORM)
    assert (side.lines[0].place, side.lines[0].name, side.lines[0].text) == ("form a0", "a0", "0")
    assert side.lines[-1].more == 600


@pytest.mark.parametrize("event", [b'{"to":"mallory","to":"alice"}', b'{"amount":49.00}'])
def test_events_whose_values_do_not_say_it_are_shown_as_they_came(event: bytes) -> None:
    """The first of them is named."""
    side = _answered(b'data: {"a":1}\n\ndata: ' + event + b"\n\n", _EVENTS)
    assert side.lines == []
    assert "event 2: " in side.note
    assert side.text is not None
    assert event.decode() in side.text.text
    plain = _answered(b'data: {"a":1}\n\ndata: {"a":2}\n\n', _EVENTS)
    assert [one.text for one in plain.lines] == ["1", "2"]
