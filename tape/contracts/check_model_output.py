"""Check a model's answer against the output schema and the tools that its request declares.

1. Declared are the schemas of the agent's own tools, and the format of what is said. A request that declares neither
   says nothing, and its answer is not looked at; one without tools may have them kept at its provider.
2. The arguments of each tool call are held against the schema of the tool of that name; a name that was not declared
   is a violation. Tools of the provider, and those whose input is free text, have no schema.
3. A text is held against the format where it is the answer: said to its end, without tool calls or a refusal.
4. An answer that was cut, by a limit of tokens or on its way, is not judged, nor one that a filter held back: it is not
   what the model would have said.

Pure; reads every dialect, too slow for the way of a request.
Source: the API references named in `dialects/`; Gemini API reference, "Schema", for its kind of schema.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial

from ..dialects import (
    Choice,
    Finish,
    InferenceRequest,
    InferenceResponse,
    Text,
    Tool,
    ToolCall,
    read_request,
    read_response,
)
from ..dialects.common.untrusted_json import (
    Json,
    JsonObject,
    as_object,
    as_text,
    find_json,
    first_set,
)
from ..diff.divergence_types import one_line
from ..exchange import HttpRequest, HttpResponse
from .check import FINE, Checked, Unchecked, Violation, check_value

_MARKS = (
    b'"tools"',
    b'"functions"',
    b'"toolConfig"',
    b'"response_format"',
    b'"format"',
    b'"output_format"',
    b'"textFormat"',
    b'"functionDeclarations"',
    b'esponseSchema"',
    b'esponseJsonSchema"',
    b'esponseMimeType"',
    b'"response_schema"',
    b'"response_json_schema"',
    b'"response_mime_type"',
)
"""One of these stands in every body that declares something."""
_SAID = frozenset({None, Finish.STOP, Finish.TOOL_CALLS, Finish.OTHER})
_OWN = frozenset({"function", "custom", "freeform"})
"""Kinds of the agent's own tools."""
_ANY: JsonObject = {}
_OBJECT: JsonObject = {"type": "object"}
_NAME = 80


def declares(request: HttpRequest) -> bool:
    """Say whether a request may declare what its answer looks like; quick, and in doubt yes."""
    if request.header(b"content-encoding") is not None:
        return True
    return any(mark in request.body for mark in _MARKS)


def check_answer(request: HttpRequest, response: HttpResponse, shown: HttpResponse) -> Checked:
    """Check a model's answer, streamed or not, against what its request declares.

    shown: the same answer without its secrets.
    """
    if request.spilled is not None or not declares(request) or not 200 <= response.status < 300:
        return FINE
    asked = read_request(request)
    if asked is None or not (asked.tools or asked.sampling.response_format):
        return FINE
    if response.spilled is not None:
        return Checked(unchecked=("the model's answer is too large to be held",))
    answer = read_response(request, response)
    if answer is None:
        return Checked(unchecked=("the model's answer cannot be read",))
    if not answer.complete or answer.error is not None:
        return FINE
    return _check(asked, answer, _Shown(request, shown))


class _Shown:
    """The redacted copy of an answer, read where something of it is to be shown."""

    def __init__(self, request: HttpRequest, response: HttpResponse) -> None:
        self._request = request
        self._response = response
        self._answer: InferenceResponse | None = None

    def arguments(self, at: int, number: int) -> Json:
        """Give the arguments of a tool call in one of its choices."""
        choice = self._choice(at)
        calls = choice.message.tool_calls if choice is not None else ()
        return calls[number].arguments if number < len(calls) else None

    def said(self, at: int) -> Json:
        """Give what one of its choices says."""
        choice = self._choice(at)
        value, text = (None, None) if choice is None else _said(choice)
        return value if text is None else text

    def _choice(self, at: int) -> Choice | None:
        if self._answer is None:
            found = read_response(self._request, self._response)
            self._answer = found or InferenceResponse()
        choices = self._answer.choices
        return choices[at] if at < len(choices) else None


def _check(asked: InferenceRequest, answer: InferenceResponse, shown: _Shown) -> Checked:
    tools = {tool.name: tool for tool in asked.tools}
    schema = output_schema(asked)
    found: list[Violation] = []
    unchecked: list[str] = []
    for at, choice in enumerate(answer.choices):
        if choice.finish not in _SAID:
            continue
        calls = choice.message.tool_calls
        for number, call in enumerate(calls if tools else ()):
            try:
                find = partial(shown.arguments, at, number)
                found += _check_call(asked, tools, call, find)
            except Unchecked as error:
                unchecked.append(one_line(f"tool call {call.name}: {error}"))
        if schema is not None and not calls and choice.message.refusal is None:
            try:
                found += _check_output(schema, choice, partial(shown.said, at))
            except Unchecked as error:
                unchecked.append(one_line(f"output: {error}"))
    return Checked.of(found, unchecked)


# ---- tool calls ------------------------------------------------------------------------------------


def _check_call(
    asked: InferenceRequest, tools: dict[str, Tool], call: ToolCall, find_shown: Callable[[], Json]
) -> Iterator[Violation]:
    name = one_line(call.name, _NAME)
    tool = tools.get(call.name)
    if tool is None:
        if not _is_foreign(asked, call):
            expected = "a tool that the request declares: " + ", ".join(sorted(tools))
            yield Violation("tool_name", name, one_line(expected), "one that it does not")
        return
    if tool.kind != "function" or not isinstance(tool.schema, dict) or asked.dialect == "cohere-v1":
        return
    value, text = call.arguments, call.text
    if value is None and text is not None and text.strip() not in ("", "null"):
        yield Violation("tool_call", f"{name}: $", "JSON", f"{len(text)} characters that are none")
        return
    if value is None and not (text and text.strip()):
        value = {}
    schema = _as_json_schema(tool.schema) if asked.dialect == "gemini" else tool.schema
    yield from _check_shown(schema, value, find_shown, "tool_call", f"{name}: ")


def _check_shown(
    schema: Json, value: Json, find_shown: Callable[[], Json], what: str, place: str
) -> list[Violation]:
    """Check a value; the redacted copy is found only where something is wrong.

    Raises: Unchecked.
    """
    text = json.dumps(schema)
    found = check_value(text, value, None, what, place)
    return check_value(text, value, find_shown(), what, place) if found else found


def _is_foreign(asked: InferenceRequest, call: ToolCall) -> bool:
    """Say whether a call may be of a tool that the provider has, which goes by another name there."""
    if asked.dialect != "openai-responses" or call.text is not None:
        return False
    return any(tool.kind not in _OWN for tool in asked.tools)


# ---- what is said ----------------------------------------------------------------------------------


def output_schema(asked: InferenceRequest) -> JsonObject | None:
    """Give the schema of what is to be said; None where it is free."""
    given = asked.sampling.response_format
    if isinstance(given, str):
        return _ANY if given in ("json", "application/json") else None
    body = as_object(given)
    kind = as_text(body.get("type"))
    inner = as_object(body.get("json_schema"))
    if kind == "json_schema":
        kept = as_object(as_object(body.get("structure")).get("jsonSchema")).get("schema")
        found = first_set([inner.get("schema"), body.get("schema"), kept])
        parsed = find_json(found.encode("utf-8", "replace")) if isinstance(found, str) else found
        return parsed if isinstance(parsed, dict) else _ANY
    if kind == "json_object":
        found = first_set([body.get("schema"), body.get("json_schema")])
        return found if isinstance(found, dict) else _OBJECT
    if asked.dialect == "gemini" and body:
        return as_object(_as_json_schema(body))
    return body if asked.dialect == "ollama" and body else None


def _check_output(
    schema: JsonObject, choice: Choice, find_shown: Callable[[], Json]
) -> list[Violation]:
    value, text = _said(choice)
    if text is not None:
        if schema.get("type") in ("string", "STRING") and "enum" in schema:
            value = text  # Gemini says a word of an enumeration without quotes
        else:
            found = f"{len(text)} characters that are none" if text.strip() else "nothing"
            return [Violation("output", "$", "JSON", found)]
    return _check_shown(schema, value, find_shown, "output", "")


def _said(choice: Choice) -> tuple[Json, str | None]:
    """Give what was said as JSON; else None, and the text that is none.

    What was said before the answer proper stands in a part of its own, in some formats.
    """
    texts = [part.text for part in choice.message.parts if isinstance(part, Text)]
    for text in ("".join(texts), *texts[-1:]):
        value = find_json(text.encode("utf-8", "surrogatepass"))
        if value is not None or text.strip() == "null":
            return value, None
    return None, "".join(texts)


# ---- Gemini's schemas ------------------------------------------------------------------------------

_TYPES = (
    *("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER"),
    *("BOOLEAN", "ARRAY", "OBJECT", "NULL"),
)
"""In the order of the numbers that may stand in their place."""
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_SINGLE = ("items", "additionalProperties", "not")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "defs", "definitions")


def _as_json_schema(schema: Json) -> Json:
    """Give Gemini's kind of schema as JSON Schema: types in capitals or as numbers, `nullable`, counts as text."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    kind = made.get("type")
    if isinstance(kind, int) and 0 <= kind < len(_TYPES):
        kind = _TYPES[kind]
    if isinstance(kind, str):
        made["type"] = kind.lower()
        if kind == _TYPES[0]:
            del made["type"]
    if made.pop("nullable", None) is True:
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        if isinstance(made.get("enum"), list):
            made["enum"] = [*made["enum"], None]  # type: ignore[misc]  # a list, as was just seen
    for name in _COUNTS:
        count = made.get(name)
        if isinstance(count, str) and count.isdecimal():
            made[name] = int(count)
    for name in _SINGLE:
        if name in made:
            made[name] = _as_json_schema(made[name])
    for name in _LISTS:
        if isinstance(inner := made.get(name), list):
            made[name] = [_as_json_schema(one) for one in inner]
    for name in _MAPS:
        if isinstance(named := made.get(name), dict):
            made[name] = {key: _as_json_schema(one) for key, one in named.items()}
    return made
