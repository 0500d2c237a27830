"""Where two values of JSON differ: each side with its own place and value."""

from typing import Any

import pytest

from playhead.timeline.diff.compare_trees import TreeComparison, make_place
from playhead.timeline.diff.row import Change, Row
from playhead.timeline.diff.stand_ins import StandIns

IDS = "re_7Ex15JAwXt1CQEW4", "re_7fF3TAewxfCLGZG9"
LONG = "and so on, one thing after the other, " * 10


def walk(old: Any, new: Any, *, is_call: bool = True) -> list[tuple[str, str, str]]:
    """Give the places: in the second as `FIRST = SECOND` where they are two."""
    ids = StandIns(Row(None, None, Change.ASKED), is_proof=False)
    return [
        (
            one.place.removeprefix("body ")
            + (f" = {one.second_place.removeprefix('body ')}" if one.second_place else ""),
            one.recorded,
            one.asked,
        )
        for one in TreeComparison(ids, is_call).walk(old, new)
    ]


def test_a_value_behind_one_more_has_two_places() -> None:
    """Its index is another one in each list."""
    old = {"items": [{"n": 1}, {"n": 2}, {"n": 3, "q": 3}]}
    new = {"items": [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3, "q": 4}]}
    assert walk(old, new) == [
        ("$.items[0]", "(absent)", '{"n": 0}'),
        ("$.items[2].q = $.items[3].q", "3", "4"),
    ]


def test_an_id_moves_no_element() -> None:
    """What is put in is found among elements whose ids all differ."""
    old = [{"id": IDS[0], "text": f"paid {IDS[0]}"}, {"text": "end"}]
    new = [{"text": "new"}, {"id": IDS[1], "text": f"paid {IDS[1]}"}, {"text": "end"}]
    assert walk(old, new) == [("$[0]", "(absent)", '{"text": "new"}')]


def test_a_long_text_is_shown_where_it_differs_and_not_at_an_id() -> None:
    """The id in front stands for the other."""
    texts = (f"{one} {LONG} it is {euros}" for one, euros in zip(IDS, (40, 41), strict=True))
    ((place, first, second),) = walk({"note": next(texts)}, {"note": next(texts)})
    assert place == "$.note"
    assert (first[-3:], second[-3:]) == ('40"', '41"')


def test_two_spellings_of_one_message_are_the_same() -> None:
    """A content that is a text, and one of a single part."""
    old = {"input": [{"role": "user", "content": "a"}], "t": 1}
    part = {"type": "input_text", "text": "a", "cache_control": {"type": "ephemeral"}}
    new = {"input": [{"type": "message", "role": "user", "content": [part]}], "t": 2}
    assert walk(old, new) == [("$.t", "1", "2")]
    assert walk({"input": "a", "t": 1}, new) == [("$.t", "1", "2")]
    assert len(walk(old, new, is_call=False)) > 1


def test_arguments_of_a_tool_call_are_compared_as_values() -> None:
    """White space in them says nothing."""
    old, new = {"arguments": '{"a": 1}', "b": 1}, {"arguments": '{"a":1}', "b": 2}
    assert walk(old, new) == [("$.b", "1", "2")]
    other = {"arguments": '{"a":2}', "b": 1}
    assert [one[0] for one in walk(old, other)] == ["$.arguments"]


def test_what_proves_a_thought_is_no_difference() -> None:
    """It is made anew with each answer; a member of the same name that somebody chose is one."""
    old, new = (
        {
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": name},
                {"type": "tool_use", "input": {"signature": name}},
            ]
        }
        for name in ("one", "other")
    )
    assert walk(old, new) == [("$.content[1].input.signature", '"one"', '"other"')]


@pytest.mark.parametrize("values", [(1, True), (1, 1.0), ("1", 1), (None, 0), ([], {}), ([1], [])])
def test_values_of_two_kinds_differ(values: tuple[Any, Any]) -> None:
    """As they are written."""
    assert walk({"a": values[0]}, {"a": values[1]})


def test_a_place_says_where_its_line_differs() -> None:
    """Also in a line that shows a part of the value."""
    texts = f"{LONG}40", f"{LONG} 41"
    place = make_place(("a", "b"), texts, (len(LONG), len(LONG)))
    assert place.at is not None
    assert place.recorded[place.at[0] :] == "40"
    assert place.asked[place.at[1] :] == " 41"
    assert place.name_in("B") == "a, in B b"
    assert make_place(("a", "a"), texts).name_in("B") == "a"
