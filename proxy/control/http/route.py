"""A row of the route table: method, path, parameters, body and handler.

The server looks requests up in it and `openapi.py` describes it, so neither can say what the other does not do. A
new route is a row in `ROUTES`, a handler in a file of its own, and the schemas that it names.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from ....addons.run.registry import RunRegistry
from ....store import Store
from ...engine import Engine
from .caller import Caller
from .error_body import ControlError

JSON = "application/json"
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format."""
BODY_BYTES = 2 * 1024 * 1024
"""Of the body of a request."""
ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""No control character and no end of a line; a pattern of JSON Schema too."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: JSON can say it, and no file can hold it."""
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ProxyState:
    """What handlers may look at and act on. Belongs to the event loop."""

    store: Store
    registry: RunRegistry
    engine: Engine


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was let in."""

    proxy_state: ProxyState
    parameters: Mapping[str, str]
    """Of the path."""
    body: Mapping[str, Any]
    """Empty where none was sent; its fields have the types that the route names."""
    find_caller: Callable[[], Awaitable[Caller]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said."""

    body: Any
    """JSON types; text where `kind` is no JSON."""
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further header fields, or in place of ours."""


@dataclass(frozen=True, slots=True)
class Text:
    """A field of a body: text which can be written down, on one line unless it says otherwise."""

    most: int
    """Characters."""
    about: str
    words: tuple[str, ...] = ()
    """What it may be; empty for anything."""
    is_any: bool = False
    """Whether it may have several lines and control characters, as a body has."""
    is_needed: bool = False

    @property
    def kind(self) -> str:
        """What it has to be, for a person."""
        return "text without half a surrogate pair" if self.is_any else "text on one line"

    def fits(self, value: object) -> bool:
        """Say whether this may stand there."""
        if not isinstance(value, str) or len(value) > self.most:
            return False
        if self.words:
            return value in self.words
        is_line = self.is_any or re.fullmatch(ONE_LINE, value) is not None
        return is_line and _HALF.search(value) is None


@dataclass(frozen=True, slots=True)
class Route:
    """One thing to ask."""

    method: str
    path: str
    """With `{name}` for a part of it."""
    name: str
    about: str
    handler: Callable[[Call], Awaitable[Answer]]
    answers: Mapping[int, str]
    """Schema of the body by status, or `text`, or `page`."""
    body: Mapping[str, Text] = field(default_factory=dict)
    """Fields of the body, each of which may be left out unless it is needed; what is not here is refused."""
    open: bool = False
    """Whether it needs no token: it says nothing about any run."""


def find_route(routes: tuple[Route, ...], method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Find the route of a request, and the parts of its path.

    path: as it was sent, without query.
    Raises: ControlError.
    """
    allowed = []
    for route in routes:
        parameters = match_path(route.path, path)
        if parameters is None:
            continue
        if route.method == method:
            return route, parameters
        allowed.append(route.method)
    if allowed:
        methods = ", ".join(allowed)
        raise ControlError(
            405,
            "this is not how it is asked",
            expected=methods,
            found=method[:_SHOWN],
            headers=(("allow", methods),),
        )
    raise ControlError(
        404, "there is nothing here", expected="a path of /openapi.json", found=path[:_SHOWN]
    )


def match_path(pattern: str, path: str) -> dict[str, str] | None:
    """Give what a path has in the places of `{NAME}` of a pattern, decoded; None where it is another path."""
    expected, given = pattern.split("/"), path.split("/")
    if len(expected) != len(given):
        return None
    parameters = {}
    for part, value in zip(expected, given, strict=True):
        if part.startswith("{"):
            try:
                parameters[part[1:-1]] = unquote_to_bytes(value).decode()
            except UnicodeDecodeError:
                return None
        elif part != value:
            return None
    return parameters
