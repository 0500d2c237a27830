"""A YAML text as values that know their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import ConfigError
from playhead.config.document import MAX_BYTES, Faults, parse_document


def _json(text: str) -> str:
    faults = Faults("f")
    value = parse_document(text, faults)
    assert value is not None
    rendered = value.json()
    faults.raise_any()
    return rendered


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{a: 1, b: -0.50, c: 1e5}", '{"a":1,"b":-0.50,"c":1e5}'),
        ("[true, False, ~, null]", "[true,false,null,null]"),
        ("{a: , b: ''}", '{"a":null,"b":""}'),
        ("['1', \"true\", 'null']", '["1","true","null"]'),
        # what YAML 1.1 would turn into something else
        ("[yes, off, 0x10, 007, 1_0, 12:30, 2024-01-01, .5, .inf]", None),
        ("on: no", '{"on":"no"}'),
        ("1: a", '{"1":"a"}'),
        ("[&a {b: é}, *a]", '[{"b":"é"},{"b":"é"}]'),
        ("|\n a\n b\n", '"a\\nb\\n"'),
    ],
)
def test_json_is_what_json_would_read(text: str, rendered: str | None) -> None:
    """Numbers stay as written; what JSON would not read is a string."""
    words = text.strip("[]").split(", ")
    assert _json(text) == (rendered or json.dumps(words, separators=(",", ":")))


# JSON writes what is above U+FFFF as two escapes, which YAML reads as two halves, and leaves U+007F
# unescaped, which YAML does not read.
_CHARACTERS = st.characters(max_codepoint=0xD7FF, exclude_characters="\x7f")
_JSON_VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(_CHARACTERS, max_size=8),
    lambda inner: (
        st.lists(st.none() | inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner)
    ),
    max_leaves=8,
)


@given(_JSON_VALUES)
def test_json_is_yaml(value: object) -> None:
    """A JSON text read as YAML renders to the same JSON."""
    assert json.loads(_json(json.dumps(value))) == value


def _doublings(count: int) -> str:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, count)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("[" * 50_000, "f:1:33: nested deeper than 32"),
        ("- " * 50_000, "f:1:65: nested deeper than 32"),
        ("{a: " * 50_000, "f:1:126: nested deeper than 32"),
        (_doublings(60), "f:13:18: too many values"),
        ("a: &a [b, *a]", "f:1:11: an alias is inside its own anchor"),
        ("? &a [*a]\n: b", "f:1:7: an alias is inside its own anchor"),
        (f"a: &a {'x' * 200_000}\nb: [{'*a, ' * 100}]", "f:2:41: too many values"),
    ],
    ids=range(7),
)
def test_no_text_blows_up(text: str, begins: str) -> None:
    """Depth and unfolded size are bounded while the text is parsed."""
    with pytest.raises(ConfigError) as caught:
        parse_document(text, Faults("f"))
    assert str(caught.value).startswith(begins)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "---\n...", "~", "null", "\ufeff"])
def test_nothing_is_nothing(text: str) -> None:
    """A text without a value is no document."""
    assert parse_document(text, Faults("f")) is None


def test_a_name_without_end_is_cut() -> None:
    """PyYAML quotes an alias in full."""
    with pytest.raises(ConfigError, match="found undefined alias") as caught:
        parse_document(f"*{'a' * 100_000}", Faults("f"))
    assert len(str(caught.value)) < 300


def test_many_small_values_are_allowed() -> None:
    """The bound is far above what a person writes."""
    text = "".join(f"- {{match: 'https://a{n}.example/*', reason: r}}\n" for n in range(2_000))
    assert len(text) < MAX_BYTES
    value = parse_document(text, Faults("f"))
    assert value is not None
    assert len(value.items()) == 2_000
