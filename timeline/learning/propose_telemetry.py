"""Find endpoints whose requests read like telemetry in two recordings of one task: a class for a person to look at, never applied.

An endpoint is proposed if in both recordings

1. what is sent there is a POST that neither a pattern nor a table names, and that would be an effect;
2. the bodies differ mostly: of what stands at the places of each two, three at least, less than half is the same, and rules
   of `ignore` would not make them match;
3. it is answered with little, and nothing depends on that: no later request has a value of an answer;
4. it sends nothing that a model asked a tool for: what an agent does on a model's word is a deed, however much it differs.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...config import EffectRule, parse_match
from ...config.schema import Classes
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.diff.path_shape import path_shape
from ...tape.exchange import Exchange, Request, RequestClass
from ...tape.matching.index import reclassify
from ...tape.policy.decide import Facts
from .learn import FLOWS, Lesson

_ANSWER_BYTES = 4096
"""Telemetry is answered with less."""
_SHORT = 4
"""Characters from which on a text says what it is of; a shorter one is looked for in targets alone."""
_SAME = 0.5
_LEAST = 3
"""Values of a body, below which it says too little to be told apart."""
_WORD = re.compile(r"[A-Za-z0-9_.-]+")
_TELLING = (b"location", b"etag", b"set-cookie")

_Endpoint = tuple[str, str]
"""Origin, and path without ids."""


@dataclass(slots=True)
class _Sent:
    """What one recording sent to an endpoint."""

    bodies: list[dict[str, str]] = field(default_factory=list)
    """Values by their places."""
    depends: bool = False
    """Whether something rests on it, or it on what a model asked for."""


def find_telemetry(
    store: Store,
    runs: Iterable[RunInfo],
    classes: Classes,
    effects: tuple[EffectRule, ...],
    lesson: Lesson,
) -> tuple[str, ...]:
    """Give patterns of the endpoints. Blocking; reads the recordings once.

    effects: what they name is an effect.
    lesson: what `learn` says of the two.
    Raises: LogCorrupt.
    """
    first, second = (_read(store, run, classes, effects) for run in runs)
    found, unlike = [], set(_find_unlike(lesson))
    for endpoint, one in first.items():
        other = second.get(endpoint)
        if endpoint not in unlike or other is None or one.depends or other.depends:
            continue
        if all(_differ_mostly(*pair) for pair in zip(one.bodies, other.bodies, strict=False)):
            found.append(f"POST {endpoint[0]}{endpoint[1]}")
    return tuple(sorted(text for text in found if _is_pattern(text)))


def _find_unlike(lesson: Lesson) -> Iterator[_Endpoint]:
    """Give the endpoints at which more differs than rules would leave out."""
    asked = [one.match for one in lesson.places if not one.proposed and one.why != FLOWS]
    asked += [f"{one.method} {one.url}" for one in (*lesson.only_first, *lesson.only_second)]
    for text in asked:
        url = text.partition(" ")[2].partition("?")[0]
        scheme, _, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        yield f"{scheme}://{host}", path_shape(f"{slash}{path}")


def _read(
    store: Store, run: RunInfo, classes: Classes, effects: tuple[EffectRule, ...]
) -> dict[_Endpoint, _Sent]:
    found: dict[_Endpoint, _Sent] = {}
    answers: dict[_Endpoint, set[str]] = {}
    tools: list[str] = []
    for recorded in store.exchanges.all(run):
        exchange = reclassify(recorded, classes)
        request, target = exchange.request, exchange.request.target
        said = " ".join([target, *_text(request)])
        for endpoint, values in answers.items():
            if any(one in (said if len(one) >= _SHORT else target) for one in values):
                found[endpoint].depends = True
        if exchange.request_class is RequestClass.INFERENCE:
            tools += _find_calls(exchange)
        if not _may_be(exchange, classes, effects):
            continue
        endpoint = f"{request.scheme}://{request.authority}", path_shape(request.path)
        sent = found.setdefault(endpoint, _Sent())
        places = dict(_places(request))
        sent.bodies.append(places)
        given = _answered(exchange)
        asked_for = any(
            len(one) >= _SHORT and one in call for one in places.values() for call in tools
        )
        sent.depends = sent.depends or given is None or asked_for
        answers.setdefault(endpoint, set()).update(given or ())
    return found


def _may_be(exchange: Exchange, classes: Classes, effects: tuple[EffectRule, ...]) -> bool:
    request = exchange.request
    if exchange.request_class is not RequestClass.EFFECT or request.method != "POST":
        return False
    if not request.body or request.spilled is not None or exchange.websocket is not None:
        return False
    facts, kind = Facts.of_request(request, classes)
    return not kind.named and not any(rule.match.maybe(facts.ways) for rule in effects)


def _text(request: Request) -> Iterator[str]:
    for _, value in request.headers:
        yield value.decode("latin-1")
    if request.spilled is None:
        yield open_body(request)[0].decode("utf-8", "replace")


def _places(request: Request) -> Iterator[tuple[str, str]]:
    """Give what stands in a body: of JSON each value by its path, else each word by its place among them."""
    text = open_body(request)[0].decode("utf-8", "replace")
    try:
        yield from _leaves("$", json.loads(text))
    except (ValueError, RecursionError):
        yield from ((str(at), word) for at, word in enumerate(_WORD.findall(text)))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(f"{path}[{at}]", inner)
    elif not (value is None or isinstance(value, bool) or value == ""):
        yield path, str(value)


def _answered(exchange: Exchange) -> set[str] | None:
    """Give the values of an answer on which something could depend; None where it is more than telemetry is told."""
    response = exchange.response
    if response is None:
        return set()
    if response.spilled is not None or len(response.body) > _ANSWER_BYTES:
        return None
    text = response.body.decode("utf-8", "replace")
    try:
        found = {value for _, value in _leaves("$", json.loads(text))}
    except (ValueError, RecursionError):
        found = set(_WORD.findall(text))
    told = (value.decode("latin-1") for name, value in response.headers if name.lower() in _TELLING)
    return found.union(*map(_WORD.findall, told))


def _find_calls(exchange: Exchange) -> Iterator[str]:
    """Give the arguments of the tools that a model asked for, and the values in them."""
    # It reads every dialect.
    from ...tape.dialects.reader import read_response

    answer = read_response(exchange.request, exchange.response) if exchange.response else None
    for choice in answer.choices if answer else ():
        for call in choice.message.tool_calls:
            yield call.text or ""
            yield from (value for _, value in _leaves("$", call.arguments))


def _differ_mostly(one: dict[str, str], other: dict[str, str]) -> bool:
    both = one.keys() | other.keys()
    same = sum(one.get(place) == other.get(place) for place in both)
    return len(both) >= _LEAST and same < _SAME * len(both)


def _is_pattern(text: str) -> bool:
    try:
        return bool(parse_match(text))
    except ValueError:
        return False
