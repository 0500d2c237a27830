"""Contracts of bodies: what fits, what does not and how that is said, what is too much work."""

import gzip
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.contracts.can_hold_back import can_hold
from playhead.tape.contracts.check import (
    FINE,
    MOST,
    Checked,
    Unchecked,
    check_request,
    check_response,
    check_value,
    measure,
    show_path,
)
from playhead.tape.exchange import Spilled
from playhead.tests.support.dialects import make_request, make_response

URL = "https://api.example.com/v1/refunds"
OBJECT = json.dumps({"type": "object", "required": ["amount"]})


def texts(checked: Checked) -> list[str]:
    return [one.text for one in checked.violations]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        # what fits says nothing
        ({"type": "integer"}, 3, None),
        ({"type": "integer"}, 3.0, None),
        ({"type": "integer"}, 10**40, None),
        (True, {"a": 1}, None),
        ({"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"}, None, None),
        # types and values
        ({"type": "integer"}, "5", '$: expected integer, found "5"'),
        ({"type": ["string", "null"]}, 5, "$: expected null or string, found 5"),
        ({"type": "number"}, None, "$: expected number, found null"),
        ({"enum": ["a", 1]}, "b", '$: expected one of "a", 1, found "b"'),
        ({"const": {"a": 1}}, [], '$: expected exactly {"a": 1}, found []'),
        ({"minimum": 3}, 2, "$: expected at least 3, found 2"),
        ({"exclusiveMaximum": 3}, 3, "$: expected less than 3, found 3"),
        ({"multipleOf": 0.5}, 0.7, "$: expected a multiple of 0.5, found 0.7"),
        ({"minLength": 2}, "a", '$: expected characters: at least 2, found "a"'),
        ({"pattern": "^a+$"}, "b", '$: expected text that matches "^a+$", found "b"'),
        (False, 1, "$: expected no value, found 1"),
        ({"not": {"type": "string"}}, "a", '$: expected anything but this, found "a"'),
        # objects and lists
        ({"required": ["a"]}, {}, "$.a: expected a value, found nothing"),
        ({"additionalProperties": False}, {"a b": 1}, '$["a b"]: expected no such field, found 1'),
        ({"unevaluatedProperties": False}, {"a": 1}, "$.a: expected no such field, found 1"),
        ({"properties": {"a": {"items": {"type": "null"}}}}, {"a": [None, 1]}, "$.a[1]: expected null, found 1"),
        ({"uniqueItems": True}, [1, 1], "$: expected items that differ, found [1, 1]"),
        ({"maxItems": 1}, [1, 2], "$: expected items: at most 1, found [1, 2]"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, '$: expected what propertyNames says, found {"ab": 1}'),
        # alternatives
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "$: expected string or null, found 1"),
        ({"oneOf": [{"type": "string"}, {"minimum": 3}]}, 1, "$: expected what one of 2 alternatives says, found 1"),
        ({"oneOf": [{}, {}]}, 1, "$: expected what one of 2 alternatives says, and only one, found 1"),
        # drafts: `format` says something in the older ones alone
        ({"format": "ipv4"}, "x", None),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "format": "ipv4"}, "x",
         '$: expected the format "ipv4", found "x"'),
        # hostile text is shown on one line, cut
        ({"type": "null"}, "a\n\x1b[31m", r'$: expected null, found "a\n\u001b[31m"'),
        ({"type": "null"}, "x" * 500, f'$: expected null, found "{"x" * 116}...'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_in_one_line(schema: Any, value: Any, said: str | None) -> None:
    """Where, what was expected, what was found."""
    found = check_value(json.dumps(schema), value, value, "request")
    assert [one.text for one in found] == ([] if said is None else [said])


def test_values_are_shown_as_they_are_stored() -> None:
    """What the redacted copy has at the place; where it has none, nothing of the value."""
    schema = json.dumps({"properties": {"a": {"type": "null"}, "b": {"type": "null"}}})
    found = check_value(schema, {"a": "secret", "b": "secret"}, {"a": "XXXXXX"}, "request")
    assert [one.found for one in found] == ['"XXXXXX"', "something else"]


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b'{"amount": 1}', {}, []),
        (gzip.compress(b'{"amount": 1}', mtime=0), {"content-encoding": "gzip"}, []),
        (b"{}", {}, ["$.amount: expected a value, found nothing"]),
        (gzip.compress(b"{}", mtime=0), {"content-encoding": "gzip"}, ["$.amount: expected a value, found nothing"]),
        (b"null", {}, ["$: expected object, found null"]),
        (b"", {}, ["$: expected JSON, found nothing"]),
        (b"a=1", {}, ["$: expected JSON, found 3 bytes that are none, or nested too deep"]),
        (b"[" * 5000 + b"]" * 5000, {}, ["$: expected JSON, found 10000 bytes that are none, or nested too deep"]),
    ],
)  # fmt: skip
def test_a_requests_body_is_json_that_fits(
    body: bytes, headers: dict[str, str], said: list[str]
) -> None:
    """Its coding undone; nothing, a form and what is nested too deep are no JSON."""
    request = make_request(URL, body, headers)
    assert texts(check_request(OBJECT, request, request)) == said


def test_long_texts_under_many_patterns_are_work_too() -> None:
    """A hundred patterns over megabytes of text take as long as they are many."""
    schema = json.dumps(
        {"allOf": [{"pattern": f"(\\p{{L}}|[^x]){{0,90}}{at}"} for at in range(100)]}
    )
    with pytest.raises(Unchecked, match="too large for a schema of this kind"):
        check_value(schema, {"a": ["é" * 500_000]}, None, "request")
    assert check_value(schema, "é" * 1000, None, "request")


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        ({"required": [f"r{at}" for at in range(2000)]}, {}),
        ({"dependentRequired": {"a": [f"r{at}" for at in range(2000)]}}, {"a": 1}),
        ({"enum": [{"a": at} for at in range(1000)]}, {"a": 999}),
        ({"enum": [at + 0.5 for at in range(2000)]}, 1999.5),
    ],
)
def test_what_a_schema_compares_a_value_with_is_work_too(inner: Any, value: Any) -> None:
    """A thousand missing fields in each of a thousand items are a million violations."""
    schema = json.dumps({"items": inner})
    with pytest.raises(Unchecked, match="too large for a schema of this kind"):
        check_value(schema, [value] * 6000, None, "request")
    few = check_value(schema, [value] * 2, None, "request")
    assert bool(few) is ("equired" in str(inner))


def test_what_cannot_be_looked_at_is_unchecked_and_not_fine() -> None:
    """Too large to be held, a coding that is none, half of a character, too much work."""
    request = make_request(URL, b"{}")
    large = replace(request, spilled=Spilled(bytes(32), 9_000_000, bytes(32)))
    coded = make_request(URL, b"{}", {"content-encoding": "br, unknown"})
    half = make_request(URL, rb'{"amount": "\ud800"}')
    for asked, why in (
        (large, "too large to be held"),
        (coded, "content coding cannot be undone"),
        (half, "the request: cannot be read"),
    ):
        schema = json.dumps({"properties": {"amount": {"pattern": "^a"}}})
        checked = check_request(schema, asked, asked)
        assert checked.violations == ()
        assert why in checked.unchecked[0]
    both = {"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    with pytest.raises(Unchecked, match="too large for a schema of this kind"):
        check_value(json.dumps(both), [deep] * 100, None, "request")


def test_of_a_large_body_it_is_said_that_it_does_not_fit() -> None:
    """Saying where takes a thousand times as long."""
    schema = json.dumps({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    (found,) = check_value(schema, [1] * 50_000, None, "response")
    assert (found.place, found.expected) == ("$", "what its schema says")
    schema = json.dumps({"properties": {"a": {"type": "null"}}})
    (half,) = check_value(schema, {"a": "\ud800"}, None, "response")
    assert half.found == "something else, somewhere among its 2 values"


def test_the_first_violations_are_told_and_all_are_counted() -> None:
    """A list of a hundred wrong items is a hundred violations."""
    response = make_response([1] * 100)
    schema = json.dumps({"items": {"type": "null"}})
    checked = check_response(schema, response, response)
    assert (len(checked.violations), checked.count) == (MOST, 100)
    assert checked.text == "$[0]: expected null, found 1 (and 99 more)"


@pytest.mark.parametrize(
    ("status", "kind", "complete", "judged"),
    [
        (200, "application/json", True, True),
        (299, "text/plain", True, True),
        (204, "application/json", True, False),
        (304, "application/json", True, False),
        (402, "application/json", True, False),
        (500, "application/json", True, False),
        (200, "application/json", False, False),
    ],
)
def test_an_answer_is_judged_where_all_went_well(
    status: int, kind: str, complete: bool, judged: bool
) -> None:
    """Errors have other shapes, and what was cut is not what would have come."""
    response = make_response({}, status, {"content-type": kind}, complete=complete)
    checked = check_response(OBJECT, response, response)
    assert (checked != FINE) is judged


@pytest.mark.parametrize(
    ("method", "status", "kind", "held"),
    [
        ("POST", 200, b"application/json", True),
        ("GET", 201, b"", True),
        ("POST", 200, b"text/event-stream; charset=utf-8", False),
        ("POST", 200, b"Text/Event-Stream", False),
        ("POST", 200, b"application/vnd.amazon.eventstream", False),
        ("POST", 200, b"application/x-ndjson", False),
        ("HEAD", 200, b"application/json", False),
        ("POST", 204, b"application/json", False),
        ("POST", 424, b"application/json", False),
    ],
)
def test_what_is_of_use_before_its_end_is_not_held_back(
    method: str, status: int, kind: bytes, held: bool
) -> None:
    """Streams, and what is not judged at all."""
    assert can_hold(method, status, ((b"Content-Type", kind),)) is held
    response = make_response(b"x", status, {"content-type": kind.decode()})
    if kind.lower().startswith(b"text/event-stream"):
        assert check_response(OBJECT, response, response).unchecked == ("the answer is a stream",)


def test_paths_and_sizes() -> None:
    """As they are told and counted."""
    assert show_path(["a", 0, "b c", 'd"']) == '$.a[0]["b c"]["d\\""]'
    assert measure(1) == (0, 1)
    assert measure({}) == (0, 1)
    assert measure({"a": [1, {"b": 2}]}) == (3, 5)
    assert re.fullmatch(r"\$(\[\d+\])+", show_path([1, 2]))
