"""What is decided on is shown as it was sent, wherever values do not say what the bytes do."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.timeline.reading.exact_body_values import (
    Number,
    read_form,
    read_json,
    render_json,
    says_more,
    show_json,
)

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))


@pytest.mark.parametrize(
    "number", ["0.1000000000000000055511", "49.00", "1E400", "1e2", "-0", "1.0E+2"]
)
def test_a_number_is_as_it_was_written(number: str) -> None:
    """Whatever a program makes of it."""
    read = read_json(f'{{"fee":{number}}}'.encode())
    assert read is not None
    assert (read.value, read.lost, read.has_odd_numbers) == ({"fee": number}, (), True)
    assert isinstance(read.value["fee"], Number)
    assert render_json(read.value) == f'{{\n  "fee": {number}\n}}'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"to":"mallory","to":"alice"}', 'member "to" comes 2 times'),
        (rb'{"to":"mallory","\u0074o":"alice"}', 'member "to" comes 2 times'),
        (b'{"a":[{"n":{"to":1,"to":1,"to":2}}]}', 'member "to" comes 3 times'),
        (b'{"fee":NaN}', "NaN is no JSON"),
        (b'[-Infinity, {"b":Infinity}]', "-Infinity is no JSON"),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
        (rb'{"a":"\ud83d"}', "half of a surrogate pair"),
        (rb'{"\uDE00":1}', "half of a surrogate pair"),
        (b'{"%s":1}' % (b"n" * 201), "201 characters"),
        (b"[" * 60 + b"1" + b"]" * 60, "deeper than 40 levels"),
    ],
)
def test_what_values_do_not_say(body: bytes, why: str) -> None:
    """It is said, and so the body is shown as it was sent."""
    read = read_json(body)
    assert read is not None
    assert why in "; ".join(read.lost)
    assert why in says_more(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"1",
        b'"{}"',
        b'{"a":1}{"a":2}',
        b'{"a":1} x',
        b"{'a':1}",
        b'{"a":"\xff"}',
        b"[" * 10**5,
    ],
)
def test_what_is_no_object_or_list_is_shown_as_it_is(body: bytes) -> None:
    """Trailing data, other quotes, bytes that are no text."""
    assert read_json(body) is None
    assert says_more(body) == ""


def test_of_many_reasons_a_few_are_named() -> None:
    """They stand on a page."""
    twice = ",".join(f'"{at}":0,"{at}":1' for at in range(500))
    read = read_json(f"{{{twice}}}".encode())
    assert read is not None
    assert (len(read.lost), read.lost[-1]) == (4, "and 497 more")


@given(_JSON)
def test_of_other_json_nothing_is_lost(value: Any) -> None:
    """What it is rendered as is the same value again."""
    body = json.dumps(value).encode()
    read = read_json(body)
    if read is None or read.lost:
        assert read is not None
        assert "half of a surrogate" in "".join(read.lost) or "characters" in "".join(read.lost)
        return
    assert json.loads(render_json(read.value)) == value
    assert json.loads(show_json(read.value)) == value


@pytest.mark.parametrize(
    ("body", "pairs"),
    [
        (b"to=mallory&to=alice&n=", [("to", "mallory"), ("to", "alice"), ("n", "")]),
        (b"note=a+b%3Cb%3E%26", [("note", "a b<b>&")]),
        (b"&".join(b"a=%d" % at for at in range(3000)), [("a", str(at)) for at in range(3000)]),
        (b"", []),
    ],
)
def test_a_form_has_all_its_pairs(body: bytes, pairs: list[tuple[str, str]]) -> None:
    """Also those that come twice, however many there are."""
    assert read_form(body) == (pairs, (), False)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"to=mallory;to=alice", "some programs take for &"),
        (b"to", "no = behind it"),
        (b"to=%zz", "is no escape"),
        (b"to=%ff", "is no UTF-8"),
        (b"%s=1" % (b"n" * 201), "too long"),
    ],
)
def test_what_pairs_do_not_say(body: bytes, why: str) -> None:
    """The form is shown as it was sent."""
    assert why in "; ".join(read_form(body).lost)
