"""What was not edited is as it was, byte for byte: line ends, which a text box does not keep, and numbers."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.edits.editable_text import as_typed, indent_json, restore_layout, restore_lines

_TEXT = st.text(st.sampled_from("ab\r\n\0 \u2028"), max_size=30)


@given(_TEXT)
def test_a_text_that_was_not_edited_is_as_it_was(text: str) -> None:
    """With all its line ends, and what a text box replaces."""
    assert restore_lines(text, as_typed(text)) == text


_PIECES = st.lists(
    st.sampled_from(["a\n", "b\r\n", "c\r", "\0\n", "\n", "x", "\0", "\u2028"]), max_size=8
)


@given(_TEXT | _PIECES.map("".join), _TEXT | _PIECES.map("".join))
def test_an_edited_text_says_what_was_typed(text: str, edited: str) -> None:
    """In the text box it would look the same."""
    typed = as_typed(edited)
    assert as_typed(restore_lines(text, typed)) == typed


@given(st.lists(st.sampled_from(["a", "\r\n", "\n", "\r", "\0", "\ufffd"]), max_size=30), st.data())
def test_what_is_around_an_edit_is_as_it_was(pieces: list[str], data: st.DataObject) -> None:
    """Whatever its line ends are, and whatever a text box has in place of them."""
    shown = "".join(pieces)
    pieces = re.findall(r"\r\n|.", shown, re.DOTALL)
    begin = data.draw(st.integers(0, len(pieces)))
    end = data.draw(st.integers(begin, len(pieces)))
    edited = "".join(as_typed(piece) for piece in (*pieces[:begin], "#", *pieces[end:]))
    assert restore_lines(shown, edited) == "".join((*pieces[:begin], "#", *pieces[end:]))


@pytest.mark.parametrize(
    ("shown", "edited", "made"),
    [
        ("to;amount\r\nalice;1\r\n", "to;amount\nbob;1\n", "to;amount\r\nbob;1\r\n"),
        ("a\r\nb\r\n", "a\nnew\nb\n", "a\r\nnew\r\nb\r\n"),
        ("a\r\nb\r\n", "a\nb", "a\r\nb"),
        ("a\r\nb", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\nb\r\nc\n", "a\nb\nd\n", "a\nb\r\nd\n"),
        ("a\rb\rc", "a\nX\nc", "a\rX\rc"),
        ("one\0\r\ntwo\r\n", "one\ufffd\n2\n", "one\0\r\n2\r\n"),
        ("a\r\n", "", ""),
        ("", "a\nb", "a\nb"),
        # The ends are of more than one kind: an edited line has its own.
        ('{"a":1}\n{"a":"x"}\r\n', '{"a":1}\n{"a":"y"}\n', '{"a":1}\n{"a":"y"}\r\n'),
        ("1\r\n2 x\n3\r4\r\n\r\r5", "1\n2 y\n3\n4\n\n\n5", "1\r\n2 y\n3\r4\r\n\r\r5"),
        ("a x\rb\nc\r\nd x\n", "a y\nb\nc\nd y\n", "a y\rb\nc\r\nd y\n"),
        ("a x\rb\nc x\r\nd x\n", "a y\nb\nnew\nc y\nd y\n", "a y\rb\nnew\nc y\r\nd y\n"),
        # NUL within an edited line; one that a person writes is the character that a text box shows.
        ("a\0b x\0\r\nc\0", "a\ufffdb y\ufffd\nc\ufffd!", "a\0b y\0\r\nc\0!"),
        ("a\0 \ufffd x", "a\ufffd \ufffd y\ufffd", "a\0 \ufffd y\ufffd"),
        # A text that a script has put into the box keeps it.
        ("a\0b x\0\r\nc\0", "a\0b y\0\nc\0\0", "a\0b y\0\r\nc\0\0"),
        # Without what was between them, a CR and an LF would be one line end.
        ("a\rx\nb\r\n", "a\n\nb\n", "a\r\r\nb\r\n"),
    ],
)
def test_lines_end_as_they_did(shown: str, edited: str, made: str) -> None:
    """New ones as most of the others do."""
    assert restore_lines(shown, edited) == made


_LONG = "".join(f"{at}{end}" for at, end in enumerate(["\r\n", "\n", "\r"] * 5000))


def test_a_long_text_is_as_it_was_between_its_edits() -> None:
    """Also where it is too long to be compared line by line."""
    edited, made = as_typed(_LONG), _LONG
    for old, new in (("\n1000\n", "\nX\nY\n"), ("\n2500\n", "\n"), ("\n14000\n", "\n14 000\n")):
        assert old in edited
        edited = edited.replace(old, new)
    made = made.replace("\n1000\n", "\nX\r\nY\n").replace("\r\n2500\n", "\r\n")
    made = made.replace("14000\r", "14 000\r")
    restored = restore_lines(_LONG, edited)
    assert as_typed(restored) == edited
    assert sum(one != other for one, other in zip(restored, made, strict=True)) == 0


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('{"a":49.00,"b":[1E400,-0],"a":1}', '{\n  "a": 49.00,\n  "b": [\n    1E400,\n    -0\n  ],\n  "a": 1\n}'),
        (r'{"a":"{[,:]}\" \\","b":{ },"c":[ ]}', '{\n  "a": "{[,:]}\\" \\\\",\n  "b": {},\n  "c": []\n}'),
        ("[true,null,\"\\u0061\"]", '[\n  true,\n  null,\n  "\\u0061"\n]'),
        ('"x"', '"x"'),
    ],
)  # fmt: skip
def test_json_is_indented_by_its_tokens(text: str, made: str) -> None:
    """Numbers as they are written, and members that come twice."""
    assert indent_json(text) == made


_WHITE = st.text(st.sampled_from(" \t\r\n"), max_size=4)


@given(
    st.lists(_WHITE, min_size=14, max_size=14),
    st.integers(0, 5),
    st.sampled_from(['"x"', "1E400", "[]"]),
)
def test_edited_json_keeps_the_white_space_around_it(gaps: list[str], at: int, value: str) -> None:
    """Another value changes nothing beside it, wherever it is."""
    tokens = ["{", '"a"', ":", "1.0", ",", '"b"', ":", "[", "2", ",", '"2"', "]", "}", ""]
    recorded = "".join(gap + token for gap, token in zip(gaps, tokens, strict=True))
    place = [3, 8, 10][at % 3]
    edited = [*tokens[:place], value, *tokens[place + 1 :]]
    wanted = "".join(gap + token for gap, token in zip(gaps, edited, strict=True))
    shown, typed = indent_json(recorded), indent_json("".join(edited))
    if value == "[]":  # two tokens, as a person writes them
        assert json.loads(restore_layout(recorded, shown, typed)) == json.loads(wanted)
    else:
        assert restore_layout(recorded, shown, typed) == wanted


@pytest.mark.parametrize(
    ("recorded", "old", "new", "made"),
    [
        ('{"a":1}\r\n', "1", "2", '{"a":2}\r\n'),
        ('{\r\n "a": 1,\r\n "b": 2}', '\n  "b": 2', '\n  "b": 2,\n  "c": 3', '{\r\n "a": 1,\r\n "b": 2,\r\n  "c": 3}'),
        ('{\n\t"a" : 1, "b":2\n}\n', '\n  "a": 1,', "", '{ "b":2\n}\n'),
        ('{"a":1,"a":1.50}', "1.50", "7", '{"a":1,"a":7}'),
    ],
)  # fmt: skip
def test_members_that_are_new_or_gone_leave_the_others_as_they_were(
    recorded: str, old: str, new: str, made: str
) -> None:
    """New lines end as most do."""
    end = "\n" if recorded.endswith("\n") else ""
    shown = indent_json(recorded) + end
    assert old in shown
    assert restore_layout(recorded, shown, shown.replace(old, new)) == made


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_indented_json_is_what_json_indents(value: Any) -> None:
    """As the standard library writes it."""
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        assert indent_json(text) == json.dumps(value, ensure_ascii=ascii_only, indent=2)
