"""Schemas: what is read, what is refused, and how much work they may be."""

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import ConfigError, loads
from playhead.config.safe_json_schema import (
    MAX_EFFORT,
    MAX_SCHEMA,
    BadSchema,
    compile_schema,
    unpanicked,
)
from playhead.tape.contracts.check import Unchecked, check_value
from playhead.tests.support.counts import tries


def compiled(tree: Any) -> Any:
    return compile_schema(json.dumps(tree))


def doubling(steps: int) -> Any:
    """A schema of some lines that unfolds into 2 to the power of `steps`."""
    named = {f"s{at}": {"allOf": [{"$ref": f"#/$defs/s{at + 1}"}] * 2} for at in range(steps)}
    return {"$defs": {**named, f"s{steps}": {"type": "object"}}, "$ref": "#/$defs/s0"}


def chain(steps: int) -> Any:
    """Schemas that refer to one another in a row."""
    named: dict[str, Any] = {f"s{at}": {"$ref": f"#/$defs/s{at + 1}"} for at in range(steps)}
    return {"$defs": {**named, f"s{steps}": {}}, "$ref": "#/$defs/s0"}


def nested(levels: int) -> Any:
    tree: Any = {}
    for _ in range(levels):
        tree = {"items": tree}
    return tree


@pytest.mark.parametrize(
    ("tree", "begins"),
    [
        # no schema
        ([1], "expected a schema, which is a mapping, found list"),
        ("x", "expected a schema, which is a mapping, found str"),
        ({"type": "strin"}, "no type; expected array, boolean"),
        ({"minimum": "1"}, '"1" is not of type "number"'),
        ({"$schema": "https://a.test/own"}, "Unknown meta-schema"),
        ({"$ref": "#/$defs/none"}, "Pointer '/$defs/none' does not exist"),
        # what would have to be fetched
        ({"$ref": "https://a.test/x.json"}, "$ref 'https://a.test/x.json' leads out of the schema"),
        ({"properties": {"a": {"$ref": "file:///etc/hosts"}}}, "$ref 'file:///etc/hosts' leads"),
        ({"$defs": {"a": {"$dynamicRef": "other#x"}}}, "$dynamicRef 'other#x' leads out"),
        # patterns that may hang
        ({"pattern": "(?=a)b"}, '"(?=a)b" is not a "regex" of the kind that is read here'),
        ({"patternProperties": {r"(a)\1": {}}}, r'"(a)\\1" is not a "regex" of the kind'),
        ({"pattern": "(a{1000}){1000}"}, '"(a{1000}){1000}" is not a "regex"'),
        # too much
        ({"title": "x" * MAX_SCHEMA}, f"longer than {MAX_SCHEMA} characters"),
        ({"allOf": [{"pattern": "a"}] * 101}, "101 patterns, which are more than 100"),
        (nested(101), "nested deeper than 100"),
        (doubling(30), f"unfolds into more than {MAX_EFFORT} schemas"),
        (chain(3000), f"unfolds into more than {MAX_EFFORT} schemas"),
    ],
)
def test_what_is_no_schema_here_says_why(tree: Any, begins: str) -> None:
    """A sentence each, and never a crash."""
    with pytest.raises(BadSchema) as caught:
        compiled(tree)
    assert str(caught.value).startswith(begins)


def test_a_reference_is_never_followed_out_of_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by a socket that is opened and closed: also where a value only looks like a reference."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(BadSchema):
        compiled({"$ref": "http://127.0.0.1:9/x.json"})
    assert compiled({"const": {"$ref": "http://127.0.0.1:9/x.json"}}).validator.is_valid(
        {"$ref": "http://127.0.0.1:9/x.json"}
    )
    assert compiled({"properties": {"$ref": {"type": "string"}}}).validator.is_valid({"$ref": "x"})


@pytest.mark.parametrize(
    ("tree", "efforts"),
    [
        # by levels of the value: 0, 1, 2, 3 and 10
        (True, (1, 1, 1, 1, 1)),
        ({"type": "string"}, (1, 1, 1, 1, 1)),
        ({"properties": {"a": {}, "b": {"items": {}}}}, (1, 3, 4, 4, 4)),
        ({"allOf": [{}, {"anyOf": [{}]}], "not": {}}, (5, 5, 5, 5, 5)),
        (doubling(3), (30, 30, 30, 30, 30)),
        # what refers to itself grows with the value
        ({"$ref": "#"}, (1, 1, 1, 1, 1)),
        ({"properties": {"next": {"$ref": "#"}}}, (1, 3, 5, 7, 21)),
        ({"$anchor": "a", "items": {"$ref": "#a"}}, (1, 3, 5, 7, 21)),
        ({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, (1, 6, 16, 36, 5116)),
    ],
)
def test_effort_is_how_many_schemas_one_value_may_meet(tree: Any, efforts: tuple[int, ...]) -> None:
    """References unfolded; a value is as deep as it is."""
    made = compiled(tree)
    assert tuple(made.effort(depth) for depth in (0, 1, 2, 3, 10)) == efforts
    assert made.effort(200) <= MAX_EFFORT + 1


def test_the_same_schema_is_compiled_once() -> None:
    """An agent declares its tools with every request."""
    assert compiled({"title": "once"}) is compiled({"title": "once"})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"type": "object"}', ""),
        ("a.yaml", "type: object\nproperties:\n  a: {type: integer}", ""),
        ("a.json", '{"type": "objekt"}', "a.json, $.type: no JSON Schema: no type"),
        ("a.json", "{", "a.json: no JSON Schema: no JSON: Expecting property name"),
        (
            "a.yml",
            "type: object\nproperties:\n  a: {type: strin}",
            "a.yml:3:13: properties.a.type: no",
        ),
        ("a.yaml", "a: b: c", "a.yaml:1:5: not YAML"),
        ("a.yaml", "", "is empty; expected a JSON Schema"),
        ("a.json", "\x00\xff", "is not UTF-8"),
        ("a.json", " " * (MAX_SCHEMA + 1), f"is longer than {MAX_SCHEMA} bytes"),
    ],
)
def test_a_schema_may_stand_in_a_file(tmp_path: Path, name: str, text: str, says: str) -> None:
    """Its path starts from the configuration's folder; a fault names both places."""
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    given = f"contracts:\n- match: https://a\n  request: {name}"
    if not says:
        (rule,) = loads(given, "f", tmp_path).contracts
        assert json.loads(rule.request)["type"] == "object"
        return
    with pytest.raises(ConfigError) as caught:
        loads(given, "f", tmp_path)
    (fault,) = caught.value.faults
    assert fault.where == "f:3:12"
    assert says in fault.text


def test_a_schema_that_is_a_folder_is_told(tmp_path: Path) -> None:
    """As any file that cannot be read."""
    with pytest.raises(ConfigError, match=r"3:12: contracts\[0\]\.request: .*cannot be read: Is a"):
        loads("contracts:\n- match: https://a\n  request: .", "f", tmp_path)


def test_a_panic_of_the_library_is_an_error_like_others() -> None:
    """It is no Exception where it comes from, and would end the thread that writes."""

    class Panic(BaseException):
        pass

    with pytest.raises(ValueError, match="the library failed: at 3"), unpanicked():
        raise Panic("at 3")
    with pytest.raises(KeyboardInterrupt), unpanicked():
        raise KeyboardInterrupt


_leaves = st.sampled_from(
    [True, False, None, 1, -1.5, "", "a", "#", "#/a", "integer", "^a", "(", "x:y"]
)
_words = st.sampled_from(
    [
        *("type", "$ref", "properties", "items", "anyOf", "oneOf", "allOf", "not", "pattern"),
        *("enum", "const", "minimum", "required", "additionalProperties", "$defs", "a"),
        *("patternProperties", "if", "then", "contains", "$anchor", "$id", "dependentSchemas"),
    ]
)
_trees = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=12,
)


@tries(50, 2000)
@given(_trees, _trees)
def test_anything_is_a_schema_or_says_why_not(tree: Any, value: Any) -> None:
    """And any value fits it, does not, or cannot be checked."""
    found = []
    with suppress(BadSchema, Unchecked):
        compiled(tree)
        found = check_value(json.dumps(tree), value, value, "request")
    assert all(one.text.isprintable() for one in found)
