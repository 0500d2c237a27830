"""What is fast finds the same as what is slow: each shorter way through the search beside the long one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.redaction import search as search_of
from playhead.tape.redaction.finding import finder as finder_of
from playhead.tape.redaction.finding import heads as heads_of
from playhead.tape.redaction.finding.finder import Looked, finder
from playhead.tape.redaction.finding.heads import Head, Hits, HyperscanHeads, Re2Heads

MARK = b'"content":"'
HEADS = [Head("b[0-9]"), Head("%[2-7]", once=True), Head("a")]
_ENGINES = [HyperscanHeads, Re2Heads] if heads_of.hyperscan is not None else [Re2Heads]


@given(st.lists(st.sampled_from([b'"', b"\\", b"\\\\", b"x", MARK, b'"}\n']), max_size=30))
def test_strings_of_a_stream_are_joined_as_by_their_places(parts: list[bytes]) -> None:
    """Also where quotes are escaped, and where strings have no end."""
    data = b"".join(parts)
    places = search_of._places_behind(data, [MARK])
    long = b"".join([data[start:end] for start, end in places]) if places[1:] else b""
    short = search_of._joined_behind(data, MARK)
    assert short is None or short == long


def test_strings_of_most_streams_are_joined_at_once() -> None:
    """Quotes in them too."""
    said = ['he said "', "", "a\\", '"b"', "\n"]
    data = b"".join(
        b"data: " + json.dumps({"content": one}, separators=(",", ":")).encode() + b"\n\n"
        for one in said
    )
    assert search_of._joined_behind(data, MARK) == json.dumps("".join(said))[1:-1].encode()


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
