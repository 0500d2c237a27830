"""JSON as it is compared."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config.parse_values import parse_json_path
from playhead.tape.canonical.json import JsonPath, canonical_json, encode_tree, json_tree, show_json


def _form(text: str, masks: Sequence[JsonPath] = ()) -> str:
    """Give the form of a text, which may hold half a surrogate pair."""
    return canonical_json(text.encode("utf-8", "surrogatepass"), masks).decode(
        "utf-8", "surrogatepass"
    )


SAME = [
    # Order of keys, at any depth
    ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
    ('[{"x": {"a": 1, "b": 2}}]', '[{"x": {"b": 2, "a": 1}}]'),
    # White space
    ('{"a":[1,2]}', ' {\n "a" : [ 1 , 2 ]\t}\r\n'),
    # Ways to write a character
    ('"é"', '"\\u00e9"'),
    ('"😀"', '"\\ud83d\\ude00"'),
    ('"a/b"', '"a\\/b"'),
    ('{"a:b": ":"}', '{"a\\u003ab": "\\u003A"}'),
    ('{"k\\u0000": "\\u0000"}', '{"\\u006b\\u0000": "\\u0000"}'),
    # Order of keys beside a key that stands twice
    ('{"a": 1, "a": 2, "b": 3}', '{"b": 3, "a": 1, "a": 2}'),
]

DIFFERENT = [
    # Numbers, by their text
    ("1", "1.0"),
    ("1.0", "1e0"),
    ("1e0", "1E0"),
    ("0", "-0"),
    ("NaN", "null"),
    ("100000000000000000001", "100000000000000000000"),
    # Kinds
    ("1", '"1"'),
    ("true", '"true"'),
    ("null", '""'),
    ("[]", "{}"),
    ('["a", 1]', '{"a": 1}'),
    # Strings that look like what numbers and marks are kept as
    ("1", '"\\u00001"'),
    ('"1"', '"\\u00001"'),
    ('"\\u0000*"', '"\\u0000\'"'),
    ('{"a": 1, "a": 2}', '{"a": ["\\u0000=", 1, 2]}'),
    ('{"a": "\\u0000*"}', '{"a": "*"}'),
    ('{"\\u0000a": 1}', '{"a": 1}'),
    # Order of a list
    ("[1, 2]", "[2, 1]"),
    # Keys that stand twice
    ('{"a": 1, "a": 2}', '{"a": 2}'),
    ('{"a": 1, "a": 2}', '{"a": 2, "a": 1}'),
    ('{"a": 1, "a": 2}', '{"a": [1, 2]}'),
    ('{"a": 1, "a": 1}', '{"a": 1}'),
    ('{"a": 1, "a": "\\u003a"}', '{"a": ":"}'),
    ('[{"a": {"b": 1, "b": 2}}]', '[{"a": {"b": 2}}]'),
]

_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8) | st.sampled_from(
    [":", "::", "\x00", "\x00*", "\x001", "\x01", "a", "b", ""]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_means_the_same_has_one_text(one: str, other: str) -> None:
    """How a value is written does not matter."""
    assert _form(one) == _form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_has_two_texts(one: str, other: str) -> None:
    """Number texts, kinds, list order and repeated keys matter."""
    assert _form(one) != _form(other)


@given(_values, st.booleans())
def test_the_quick_way_and_the_exact_way_agree(value: object, escape: bool) -> None:
    """Which way a text is read makes no difference to what comes out."""
    text = json.dumps(value, ensure_ascii=escape)
    if text.encode("utf-8", "replace").decode() != text:
        text = json.dumps(value)  # half a surrogate pair can only be escaped in UTF-8
    assert _form(text) == encode_tree(json_tree(text))


@given(_values, _values)
def test_only_equal_values_share_a_text(one: object, other: object) -> None:
    """Two values have one canonical text exactly when sorted JSON says so."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (_form(json.dumps(one)) == _form(json.dumps(other))) is same


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c:d"]), st.integers(0, 2)), max_size=5))
def test_a_repeated_key_is_always_seen(pairs: list[tuple[str, int]]) -> None:
    """No value of an object is lost, whatever stands twice."""
    text = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in pairs) + "}"
    kept = [(name, value) for name, value in sorted(pairs, key=lambda pair: pair[0])]
    again = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in kept) + "}"
    assert _form(text) == _form(again)
    changed = [*kept[:-1], (kept[-1][0], kept[-1][1] + 1)] if kept else [("a", 1)]
    other = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in changed) + "}"
    assert _form(text) != _form(other)


MASKED = [
    ("$.id", '{"id": 1, "x": 2}', '{"id": "a:b", "x": 2}'),
    ("$.id", '{"id": {"a": 1, "b": [{"c": "::"}]}, "x": 2}', '{"id": null, "x": 2}'),
    ("$.items[*].ts", '{"items": [{"ts": 1}, {"ts": 2}]}', '{"items": [{"ts": 3}, {"ts": 4}]}'),
    ("$.items[1]", '{"items": [1, 2]}', '{"items": [1, 3]}'),
    ("$[0].a", '[{"a": 1}]', '[{"a": 2}]'),
    ("$['a b'].*", '{"a b": {"x": 1}}', '{"a b": {"x": 2}}'),
    ("$.a", '{"a": 1, "a": 2}', '{"a": 3, "a": 4}'),
    ("$.a.b", '{"a": {"b": 1}, "a": {"b": 2}}', '{"a": {"b": 3}, "a": {"b": 4}}'),
    # A text that reads like a mark of the exact reader
    ("$[*]", '["\\u0000=", [1, 2]]', '["\\u0000=", [1, 3]]'),
]

NOT_MASKED = [
    ("$.id", '{"id": 1}', "{}"),
    ("$.id", '{"id": 1, "x": 2}', '{"id": 1, "x": 3}'),
    ("$.id", '{"x": {"id": 1}}', '{"x": {"id": 2}}'),
    ("$.items[1]", '{"items": [1, 2]}', '{"items": [2, 2]}'),
    ("$.items[9]", '{"items": [1]}', '{"items": [2]}'),
    ("$.id", '{"id": 1}', '{"id": 1, "id": 1}'),
    ("$.id", '{"id": 1}', '{"id": "\\u0000*", "x": 1}'),
    ("$.a[0]", '{"a": {"0": 1}}', '{"a": {"0": 2}}'),
    ("$[0]", '["\\u0000=", [1, 2]]', '["\\u0000=", [3, 2]]'),
]


@pytest.mark.parametrize(("path", "one", "other"), MASKED)
def test_a_masked_value_does_not_count(path: str, one: str, other: str) -> None:
    """Two texts that differ in masked values alone are one."""
    masks = (parse_json_path(path),)
    assert _form(one, masks) == _form(other, masks)
    assert _form(one) != _form(other)


@pytest.mark.parametrize(("path", "one", "other"), NOT_MASKED)
def test_a_mask_hides_its_place_and_no_other(path: str, one: str, other: str) -> None:
    """That a masked place is there counts, and so does everything beside it."""
    masks = (parse_json_path(path),)
    assert _form(one, masks) != _form(other, masks)


@given(_values)
def test_masks_do_not_change_which_way_is_right(value: object) -> None:
    """The quick way counts what a mask took away."""
    text = json.dumps({"a": value, "b": [value, 1], ":": ":"})
    masks = (("a",), ("b", None), ("a", "a"))
    assert _form(text, masks) == encode_tree(json_tree(text, masks))


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a': 1}", "\ufeff{}", "nan", '"\x01"', "1 2"])
def test_what_is_no_json_is_refused(text: str) -> None:
    """No text is read as something it is not."""
    with pytest.raises(ValueError, match=r"."):
        _form(text)


@pytest.mark.parametrize(
    "text", ["[" * 200_000 + "]" * 200_000, '{"a":1,"a":' + "[" * 5000 + "]" * 5000 + "}"]
)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    """Depth ends in an error that can be caught."""
    with pytest.raises(RecursionError):
        _form(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": 1.50, "b": ["x", null]}', '{"a": 1.50, "b": ["x", null]}'),
        ('{"a": 1, "a": "2"}', '{"a": 1, "a": "2"}'),
        ('"\\u0000x"', '"\\u0000x"'),
        ("[NaN]", "[NaN]"),
    ],
)
def test_a_tree_is_shown_as_the_json_it_was(text: str, shown: str) -> None:
    """What is kept in marks is shown without them."""
    assert show_json(json_tree(text)) == shown
