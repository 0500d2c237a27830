"""The table of routes as an OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from .... import __version__
from ..http.route import ONE_LINE, Answer, Call, Route, Text

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_STOPPED = _object(by=_TEXT, pid=_COUNT, reason=_TEXT, at_ns=_COUNT)

_GATE = {
    "id": _TEXT,
    "run": _TEXT,
    "seq": _COUNT,
    "method": _TEXT,
    "url": _TEXT,
    "digest": _TEXT,
    "reason": _TEXT,
    "rule": _TEXT,
    "repeats": {"type": ["integer", "null"], "description": "Seq of the effect it may repeat."},
    "headers": {"type": "array", "items": {"type": "array", "items": _TEXT}},
    "body": _TEXT,
    "replaced": {
        "type": "array",
        "description": "Placeholders in `body`, in order.",
        "items": _object(
            at={**_COUNT, "description": "Characters before it."}, size=_COUNT, kind=_TEXT
        ),
    },
    "body_bytes": _COUNT,
    "whole": {"type": "boolean", "description": "Whether `body` is all of it."},
    "since_ns": _COUNT,
    "deadline_ns": _COUNT,
    "now_ns": _COUNT,
}

_BREAK = {
    "id": _TEXT,
    "seq": _COUNT,
    "tape_seq": {"type": ["integer", "null"], "description": "Of the exchange that answers it."},
    "why": {**_TEXT, "description": "The breakpoint, or `step`."},
    "method": _TEXT,
    "url": _TEXT,
    "verdict": _TEXT,
    "reason": _TEXT,
    "body": _TEXT,
    "since_ns": _COUNT,
    "now_ns": _COUNT,
}

SCHEMAS: dict[str, Any] = {
    "Run": _object(
        id=_TEXT,
        mode={"enum": ["record", "playback"]},
        status={"enum": ["open", "ending", "sealed", "recovered"]},
        tape={"type": ["string", "null"], "description": "The tape of a playback."},
        agent=_TEXT,
        created_ns=_COUNT,
        requests=_COUNT,
        in_flight=_COUNT,
        stopped={"oneOf": [_STOPPED, {"type": "null"}]},
    ),
    "Runs": _object(runs={"type": "array", "items": {"$ref": "#/components/schemas/Run"}}),
    "Gate": _object(**_GATE),
    "Gates": _object(
        gates={"type": "array", "items": {"$ref": "#/components/schemas/Gate"}}, held=_COUNT
    ),
    "Link": _object(
        path={**_TEXT, "description": "With a token that is valid once."},
    ),
    "Ruled": _object(**_GATE, ruling={"enum": ["approved", "denied"]}, by=_TEXT),
    "Break": _object(**_BREAK),
    "Breaks": _object(breaks={"type": "array", "items": {"$ref": "#/components/schemas/Break"}}),
    "Commanded": _object(**_BREAK, command={"enum": ["step", "continue", "answer", "quit"]}),
    "Health": _object(status={"const": "ok"}),
    "Ready": _object(
        status={"enum": ["ready", "not ready"]},
        checks={"type": "object", "additionalProperties": {"type": "boolean"}},
    ),
    "Document": {"type": "object"},
    "Problem": _object(error=_TEXT, expected=_TEXT, found=_TEXT, hint=_TEXT),
}

_MEDIA = {"text": "text/plain", "page": "text/html"}
"""What is no JSON."""

_ABOUT = {
    200: "As asked.",
    202: "It has begun.",
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Asked by another name, or from another site.",
    404: "There is no such run, or nothing is held by this name.",
    405: "Asked with another method.",
    409: "The run has ended, or is another process's; the request is not held, or is another.",
    413: "The body is too long.",
    415: "The body is no JSON.",
    422: "The body says something else than it may.",
    503: "It cannot be done now.",
}


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Give the document."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Playhead control API",
            "version": __version__,
            "description": "Look at the runs of a proxy, stop them, rule on held requests, and check its health.",
        },
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class Describe:
    """Answers with the document."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        """Describe a table, once."""
        self._document = document(routes)

    async def __call__(self, _: Call) -> Answer:
        """Give it."""
        return Answer(self._document)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.about}
    if route.open:
        operation["security"] = []
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    if names:
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
            }
            for name in names
        ]
    if route.method == "POST":
        operation["requestBody"] = {
            "required": any(field.is_needed for field in route.body.values()),
            "content": {"application/json": {"schema": _body(route.body)}},
        }
    statuses: dict[int, str] = dict.fromkeys((400, 403), "Problem")
    if not route.open:
        statuses[401] = "Problem"
    if route.method == "POST":
        statuses |= dict.fromkeys((413, 415, 422), "Problem")
    statuses |= route.answers
    operation["responses"] = {
        str(status): _response(status, schema) for status, schema in sorted(statuses.items())
    }
    return operation


def _body(fields: Mapping[str, Text]) -> dict[str, Any]:
    needed = [name for name, field in fields.items() if field.is_needed]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"description": field.about, **_field(field)} for name, field in fields.items()
        },
        **({"required": needed} if needed else {}),
    }


def _field(field: Text) -> dict[str, Any]:
    if field.words:
        return {"enum": list(field.words)}
    text = {"type": "string", "maxLength": field.most}
    return text if field.is_any else {**text, "pattern": ONE_LINE}


def _response(status: int, schema: str) -> dict[str, Any]:
    if schema in _MEDIA:
        content: dict[str, Any] = {_MEDIA[schema]: {"schema": _TEXT}}
    else:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": _ABOUT[status], "content": content}
