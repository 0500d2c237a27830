"""What is fast finds the same as what is slow: each shorter way through the search beside the long one."""

import json
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from playhead.tape.redaction import search as search_of
from playhead.tape.redaction.finding import finder as finder_of
from playhead.tape.redaction.finding import join_stream_pieces
from playhead.tape.redaction.finding import pattern_prefilter as heads_of
from playhead.tape.redaction.finding.finder import Looked, finder
from playhead.tape.redaction.finding.pattern_prefilter import Head, Hits, HyperscanHeads, Re2Heads

HEADS = [Head("b[0-9]"), Head("%[2-7]", once=True), Head("a")]
_ENGINES = [HyperscanHeads, Re2Heads] if heads_of.hyperscan is not None else [Re2Heads]


def _spelled(data: bytes, *, events: bool, quick: bool) -> set[bytes]:
    """Give what a stream says at each place; each piece is where it is said to be."""
    with pytest.MonkeyPatch.context() as patch:
        if not quick:
            patch.setattr(join_stream_pieces, "_find_form", lambda *_: None)
        found = list(join_stream_pieces.find_spelled(data, events=events))
    for one in found:
        assert b"".join([data[start:end] for start, end in one.places()]) == one.data
    return {one.data for one in found}


@given(
    st.lists(st.sampled_from(["a", 'b"', "", "\\", 'c\\"', "\n", "x y"]), max_size=12),
    st.sampled_from(['{"content": %s}', '{"n": 1, "d": [{"index": 0, "t": %s}], "e": "f"}', "%s"]),
    st.sampled_from([("data: ", "\n\n"), ("event: a\r\ndata: ", "\r\n\r\n"), ("", "\n")]),
    st.sampled_from(["", ": ping\n\n", 'data: {"role": "a", "content": "b"}\n\n']),
)
def test_events_that_are_alike_are_joined_as_by_their_quotes(
    said: list[str], form: str, around: tuple[str, str], odd: str
) -> None:
    """Also where quotes are escaped, and where another event is among them."""
    events = [around[0] + form % json.dumps(one) + around[1] for one in said]
    if around[0]:
        events.insert(len(events) // 2, odd.replace("\n", around[1][: len(around[1]) // 2]))
    data = "".join(events).encode()
    quick = _spelled(data, events=bool(around[0]), quick=True)
    assert quick == _spelled(data, events=bool(around[0]), quick=False)
    if len({one for one in said if one}) > 1 and "role" not in odd:
        assert json.dumps("".join(said))[1:-1].encode() in quick


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", 'b"', "", "\\", 'c\\"', "\n", "x y"]),
            st.sampled_from([0, 7, -1.5, 4e30, None, True]),
            st.sampled_from(["pad", "", "p"]),
        ),
        max_size=12,
    ),
    st.sampled_from(
        [
            '{"n": %(n)s, "delta": %(text)s, "pad": %(pad)s}',
            '{"d": [{"index": %(n)s, "t": %(text)s}], "e": {"pad": %(pad)s, "n": [%(n)s, 1]}}',
            '{"delta": %(text)s, "n": %(n)s}',
        ]
    ),
    st.sampled_from([("data: ", "\n\n"), ("id: %(at)d\r\ndata: ", "\r\n\r\n"), ("", "\n")]),
    st.sampled_from(
        ["", ": ping\n\n", 'data: {"n": 1, "delta": "b"}\n\n', 'data: {"m": ["b"]}\n\n']
    ),
)
@example(
    [('b"', 0, "pad"), ("a", 0, "pad"), ("a", 0, "")],
    '{"n": %(n)s, "delta": %(text)s, "pad": %(pad)s}',
    ("data: ", "\n\n"),
    "",
)
def test_events_that_differ_in_several_strings_and_numbers(
    said: list[tuple[str, float | None, str]], form: str, around: tuple[str, str], odd: str
) -> None:
    """Are joined as by their quotes."""
    events = [
        (around[0] + form + around[1])
        % {"at": at, "n": json.dumps(number), "text": json.dumps(text), "pad": json.dumps(pad)}
        for at, (text, number, pad) in enumerate(said)
    ]
    if around[0]:
        events.insert(len(events) // 2, odd.replace("\n", around[1][: len(around[1]) // 2]))
    data = "".join(events).encode()
    quick = _spelled(data, events=bool(around[0]), quick=True)
    assert quick == _spelled(data, events=bool(around[0]), quick=False)


def test_a_stream_of_responses_has_one_form() -> None:
    """Its number and two strings differ, also where the same is said many times."""
    said = ["a", "a", "a", "b c", "a", "a"] * 20
    data = "".join(
        f'data: {{"n": {at}, "delta": {json.dumps(one)}, "pad": "{"x" * (at % 7)}"}}\n\n'
        for at, one in enumerate(said)
    )
    form = join_stream_pieces._find_form(data.encode(), 0, b"\n\n")
    assert form is not None
    assert form.texts == (False, True, True)


def test_an_event_of_another_item_that_is_as_long_is_told_apart() -> None:
    """What is the same in all events is passed by its size at first."""
    said = [(at // 20, str(at)) for at in range(100)]
    data = "".join(
        f'data: {{"item": "msg_{item}", "d": [{{"index": {item}, "t": "{text}"}}]}}\n\n'
        for item, text in said
    ).encode()
    spelled_at_once = _spelled(data, events=True, quick=True)
    assert spelled_at_once == _spelled(data, events=True, quick=False)
    for item in range(5):
        assert "".join(text for of, text in said if of == item).encode() in spelled_at_once


def test_a_form_is_wider_where_most_events_are_not_of_it() -> None:
    """Events that were compared may have said the same by chance."""
    said = [b"%d" % at if at < 90 else b"a" for at in range(100)]
    data = b"".join(b'data: {"n": %d, "d": "%b"}\n\n' % pair for pair in enumerate(said))
    narrow = join_stream_pieces._Form(
        (b'data: {"n": ', b', "d": "a", "p": "', b'"}'), (False, True)
    )
    padded = data.replace(b'"}\n', b'", "p": "x"}\n')
    wide = join_stream_pieces._widen(
        narrow, join_stream_pieces._split(padded, narrow, b"\n\n"), b"\n\n", len(padded)
    )
    assert wide is not None
    assert wide.texts == (False, True)
    assert b', "d": "' in wide.constants


def test_objects_in_one_another_cost_no_more_the_deeper_they_are() -> None:
    """A path has so many steps at most."""
    pieces = (b'{"a":"b","c":' * 5000 + b'"d"').split(b'"')
    paths, _, _ = join_stream_pieces._walk(pieces)
    assert len(paths) == 5001
    path, steps = paths[max(paths)], 0
    while path:
        path, steps = cast("tuple[object, ...]", path[0]), steps + 1
    assert steps == join_stream_pieces._DEEPEST + 1


@given(
    st.lists(st.sampled_from([b'"', b"\\", b"x", b'data: {"a":"', b'"}\n\n', b"\n\n"]), max_size=30)
)
def test_pieces_of_any_stream_are_where_they_are_said_to_be(parts: list[bytes]) -> None:
    """However odd it is."""
    _spelled(b"".join(parts), events=True, quick=True)


@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_marks_are_no_places(engine: type[HyperscanHeads] | type[Re2Heads], most: int) -> None:
    """They do not count against what a text may have, and a search ends where it would without them."""
    data = b"%2 b1 %3%4 a b2%5 a"
    with_marks = engine(HEADS).find(data, most)
    without = engine([HEADS[0], Head("never"), HEADS[2]]).find(data, most)
    assert with_marks is not None
    assert without is not None
    places = [hit for hit in with_marks.found if hit[1] != 1]
    assert (places, with_marks.searched) == (without.found, without.searched)


@given(st.lists(st.sampled_from([b"%", b"2", b"F", b"\\", b"u00", b"/", b" ", b"a"]), max_size=30))
@example([b"%%%%%%%%%u00u00\\/"])
def test_a_text_without_a_mark_has_no_escapes(parts: list[bytes]) -> None:
    """The mark of the first pass says what a pass for escapes alone would say."""
    data = b"".join(parts)
    looked = finder().look(data)
    assert (looked is not None and looked.escaped) == bool(search_of._windows(data))


@given(
    st.lists(st.sampled_from([3, 5, 8, 9, 14]), unique=True, max_size=5).map(sorted),
    st.lists(st.sampled_from([4, 6, 10, 15]), unique=True, max_size=4).map(sorted),
    st.integers(1, 6),
)
def test_a_second_pass_adds_its_places_as_if_there_were_one(
    first: list[int], second: list[int], most: int
) -> None:
    """In order, and up to the bound of places."""
    size = 20
    every = sorted([(end, 0) for end in first] + [(end, finder()._reversed) for end in second])
    cut = every[most][0] if len(every) > most else size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finder_of, "most_places", lambda _size: most)
        one = first[most] if len(first) > most else size
        other = second[most] if len(second) > most else size
        looked = finder()._with_reversed(
            Looked([(end, 0) for end in first[:most]], one, escaped=False),
            Hits([(end, 0) for end in second[:most]], other),
            size,
        )
    assert (looked.places, looked.searched) == (every[:most], cut)


@given(st.lists(st.sampled_from([b"a", b'"', b"'", b"\\", b":", b" ", b"password", b"\n"])))
def test_no_cut_member_is_passed_over(parts: list[bytes]) -> None:
    """The look at the last quote is no narrower than the pattern behind it."""
    data = b"".join(parts)
    if finder_of._CUT_MEMBER.search(data):
        quote = max(data.rfind(b'"'), data.rfind(b"'"))
        assert data[:quote].rstrip(b"\\").rstrip().endswith(b":")
