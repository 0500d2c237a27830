"""Check a body against a contract (a JSON Schema), and describe the violations.

1. A value is first asked whether it fits, which is quick; only one that does not is asked why, which is not. Both are
   bounded before they are begun (`safe_json_schema.py`): what is too much work is *unchecked*, never taken for sound.
2. What is shown of a value is what is stored of it: it is looked up in the redacted copy. The names of fields are
   shown as they stand in the body.
3. An answer is judged where it says that all went well (2xx) and has come whole. A stream is no JSON; of a model's see
   `check_model_output.py`.

Pure; imports what is slow, for who has contracts alone.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from ...config.safe_json_schema import BadSchema, Schema, compile_schema, unpanicked
from ..dialects.common.untrusted_json import Json, find_json
from ..diff.divergence_types import one_line
from ..exchange import HttpRequest, HttpResponse
from ..records.content_coding import read_codings, undo_coding
from .can_hold_back import is_judged, is_stream

MOST = 10
"""Violations of one body that are told; the first."""
_MOST_WORK = 10_000_000
"""Schemas met by values, counted at most: a third of a second."""
_MOST_TOLD = 100_000
"""The same where it is said what is wrong."""
_LETTERS_AT_ONCE = 4
"""Letters that a slow pattern looks at in the time that a schema takes."""
_SHOWN = 120
_PLACE = 300
_MAX_BODY = 16 * 1024 * 1024

_UNREADABLE = (ValueError, RecursionError)
"""Raised over what the library cannot take in, as half of a surrogate pair."""
_NOTHING = "nothing"
_NOWHERE = object()


class Violation(NamedTuple):
    """One violation of a contract. Texts are one line each, and hold nothing a terminal would act on."""

    what: str
    """`request`, `response`, `tool_call`, `tool_name` or `output`."""
    place: str
    """JSON path in the body; of a tool call, the tool's name and the path in its arguments."""
    expected: str
    found: str

    @property
    def text(self) -> str:
        """It in one line."""
        return f"{self.place}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check."""

    violations: tuple[Violation, ...] = ()
    """The first."""
    count: int = 0
    """How many there were in what was looked at."""
    unchecked: tuple[str, ...] = ()
    """What could not be checked, and why."""

    @property
    def text(self) -> str:
        """The first violation in one line, and how many more there are; empty without one."""
        if not self.violations:
            return ""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{self.violations[0].text}{more}"

    @classmethod
    def of(cls, found: Sequence[Violation], unchecked: Sequence[str] = ()) -> "Checked":
        """Keep the first violations and the count of all."""
        return cls(tuple(found[:MOST]), len(found), tuple(dict.fromkeys(unchecked))[:MOST])


FINE = Checked()


class Unchecked(ValueError):
    """A value cannot be checked; says why."""


def check_request(schema: str, request: HttpRequest, shown: HttpRequest) -> Checked:
    """Check a request's body.

    schema: JSON text of a schema that has been compiled once.
    shown: the same request without its secrets.
    """
    if request.spilled is not None:
        return Checked(unchecked=("the request is too large to be held",))
    return _check_body(schema, "request", _plain(request), _plain(shown))


def check_response(schema: str, response: HttpResponse, shown: HttpResponse) -> Checked:
    """Check the body of an answer; one that is not to be judged is fine.

    shown: the same answer without its secrets.
    """
    if not is_judged(response.status) or not response.complete:
        return FINE
    if response.spilled is not None:
        return Checked(unchecked=("the answer is too large to be held",))
    if is_stream(response.headers):
        return Checked(unchecked=("the answer is a stream",))
    return _check_body(schema, "response", _plain(response), _plain(shown))


def _plain(message: HttpRequest | HttpResponse) -> bytes | None:
    """Give a body with its codings undone; None where they cannot be."""
    coding = read_codings(message.headers)
    return undo_coding(message.body, coding, _MAX_BODY) if coding else message.body


def _check_body(schema: str, what: str, body: bytes | None, shown: bytes | None) -> Checked:
    if body is None:
        return Checked(unchecked=(f"the {what}'s content coding cannot be undone",))
    if len(body) > _MAX_BODY:
        return Checked(unchecked=(f"the {what} is larger than {_MAX_BODY} bytes",))
    value = find_json(body)
    if value is None and body.strip() != b"null":
        found = f"{len(body)} bytes that are none, or nested too deep" if body.strip() else _NOTHING
        return Checked.of([Violation(what, "$", "JSON", found)])
    try:
        return Checked.of(check_value(schema, value, find_json(shown or b""), what))
    except Unchecked as error:
        return Checked(unchecked=(f"the {what}: {error}",))


def check_value(
    schema: str, value: Json, shown: Json, what: str, place: str = ""
) -> list[Violation]:
    """Check a value; gives all that is wrong with it, but of a large one no more than that something is.

    shown: the same value without its secrets.
    place: what stands before each path.
    Raises: Unchecked.
    """
    try:
        compiled = compile_schema(schema)
    except BadSchema as error:
        raise Unchecked(f"its schema cannot be read: {one_line(str(error), _SHOWN)}") from None
    depth, values = measure(value)
    work = compiled.effort(depth) * values
    searched = compiled.patterns * _letters(value) // _LETTERS_AT_ONCE if compiled.patterns else 0
    if work + searched > _MOST_WORK:
        raise Unchecked("too large for a schema of this kind")
    try:
        with unpanicked():
            if compiled.validator.is_valid(value):
                return []
    except _UNREADABLE as error:
        raise Unchecked(f"cannot be read: {one_line(str(error), _SHOWN)}") from None
    if work <= _MOST_TOLD:
        with contextlib.suppress(*_UNREADABLE), unpanicked():
            return list(_describe(compiled, value, shown, what, place))
    somewhere = f"something else, somewhere among its {values} values"
    return [Violation(what, f"{place}$", "what its schema says", somewhere)]


def measure(value: Json) -> tuple[int, int]:
    """Give how many levels a value has inside, and how many values are in it with itself."""
    level: list[Any] = [value]
    depth = values = 0
    while level:
        values += len(level)
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        depth += bool(level)
    return depth, values


def _letters(value: Json) -> int:
    """Count the letters of all texts in a value, names of fields among them."""
    level: list[Any] = [value]
    count = 0
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                count += len(one)
            elif isinstance(one, dict):
                below += one
                below += one.values()
            elif isinstance(one, list):
                below += one
        level = below
    return count


# ---- what is wrong ---------------------------------------------------------------------------------


def _describe(
    compiled: Schema, value: Json, shown: Json, what: str, place: str
) -> Iterator[Violation]:
    for error in compiled.validator.iter_errors(value):
        path = error.instance_path
        told = error.kind.as_dict()
        match error.kind.name:
            case "required":
                yield _violation(what, place, [*path, told["property"]], "a value", _NOTHING)
            case "additionalProperties" | "unevaluatedProperties":
                yield from _unexpected(what, place, path, told["unexpected"], shown)
            case "falseSchema" if error.schema_path[-1:] == ["additionalProperties"]:
                # Told of the first alone, and as if of the object.
                yield from _unexpected(what, place, path, _find(value, path), shown)
            case name:
                expected = _expected(name, told)
                yield _violation(what, place, path, expected, _look(shown, path))


def _unexpected(
    what: str, place: str, path: Sequence[str | int], names: Iterable[str], shown: Json
) -> Iterator[Violation]:
    for name in islice(names, MOST):
        at = [*path, name]
        yield _violation(what, place, at, "no such field", _look(shown, at))


def _violation(
    what: str, place: str, path: Sequence[str | int], expected: str, found: str
) -> Violation:
    at = one_line(f"{place}{show_path(path)}", _PLACE)
    return Violation(what, at, one_line(expected, _SHOWN), one_line(found, _SHOWN))


def show_path(path: Sequence[str | int]) -> str:
    """Write a JSON path."""
    return "$" + "".join(map(_step, path))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{show(step)}]"


def show(value: Any) -> str:
    """Write a value as JSON on one line, cut."""
    try:
        return one_line(json.dumps(value, ensure_ascii=False, default=str), _SHOWN)
    except (ValueError, RecursionError):
        return "a value that cannot be shown"


def _look(shown: Json, path: Sequence[str | int]) -> str:
    """Show what stands at a place of the redacted copy."""
    found = _find(shown, path)
    return "something else" if found is _NOWHERE else show(found)


def _find(value: Json, path: Sequence[str | int]) -> Any:
    """Find what stands at a place; `_NOWHERE` where there is none."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return _NOWHERE
    return value


_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
    "minItems": "items: at least",
    "maxItems": "items: at most",
    "minProperties": "fields: at least",
    "maxProperties": "fields: at most",
    "pattern": "text that matches",
    "format": "the format",
    "const": "exactly",
}
_PLAIN = {
    "falseSchema": "no value",
    "uniqueItems": "items that differ",
    "contains": "an item of another kind among them",
    "not": "anything but this",
}


def _expected(name: str, told: dict[str, Any]) -> str:
    """Say what a keyword asks for."""
    if name == "type":
        return " or ".join(map(str, told["types"]))
    if name == "enum":
        return "one of " + ", ".join(map(show, told["options"]))
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _LIMITS and told:
        return f"{_LIMITS[name]} {show(next(iter(told.values())))}"
    if name in ("anyOf", "oneOf"):
        return _alternatives(told["context"])
    return f"what {name} says"


def _alternatives(context: Sequence[Sequence[Any]]) -> str:
    """Say what alternatives ask for, by what was wrong with each."""
    if not all(context):
        return f"what one of {len(context)} alternatives says, and only one"
    kinds: list[str] = []
    for errors in context:
        if len(errors) != 1 or errors[0].kind.name != "type":
            return f"what one of {len(context)} alternatives says"
        kinds += errors[0].kind.as_dict()["types"]
    return " or ".join(dict.fromkeys(kinds))
