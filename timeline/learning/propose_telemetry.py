"""Find endpoints whose requests read like telemetry in two recordings of one task: a class for a person to look at, never applied.

An endpoint is proposed if in both recordings

1. what is sent there is a POST that neither a pattern nor a table names, and that would be an effect;
2. the bodies differ mostly: of what stands at the places of each two, three at least, less than half is the same, and rules
   of `ignore` would not make them match;
3. each request is answered with success and nothing else, so that no later request can depend on it;
4. each body is a batch of events: a list of objects that each have the time at which they were made, and are called events, logs, metrics or
   spans;
5. the path says that it takes telemetry, and nothing else, and so does each member of a body: a list of what orders may be called would never
   end (`reboot`, `disarm`, `hire`), so both are known words. Beside, no word of a value is that of a party, a quantity or a deed, and no value is
   a sentence, an address or an amount. Text that is JSON, also in base64, is looked into like the rest;
   Each value is of a kind that orders nothing, as its name says (`telemetry_words.py`): a time or a duration of the recording, an identifier that
   is made anew, a version, a level, an outcome, the name of what happened. An endpoint that lacks only this is listed, and not proposed;
6. it sends nothing that a model asked a tool for, or that the command line has: what an agent does on somebody's word is a deed, however much it
   differs.
"""

import base64
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...config import EffectRule, parse_match
from ...config.schema import Classes
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.diff.field_name_meaning import name_words, names_deed
from ...tape.diff.made_anew import Window, is_time_of
from ...tape.diff.path_shape import path_shape
from ...tape.exchange import Exchange, Request, RequestClass
from ...tape.matching.index import reclassify
from ...tape.policy.decide import Facts
from ..receipts.command.command_end import find_command
from .identifying_words import HashWord, find_parts, find_words
from .learn import FLOWS, Lesson
from .seen_before_sent import find_given, read_answers
from .telemetry_words import STAMP, find_made_ids, is_harmless, is_told, takes_reports

_NOTHING = (b"", b"{}", b"[]", b"null")
"""What telemetry is answered with."""
_SUCCESS = range(200, 300)
_SHORT = 4
"""Characters from which on a text says what it is of."""
_EVENTS = frozenset(("event", "log", "metric", "span", "trace"))
"""Words by which a list of events, or the member with the name of one, is called."""
_SAME = 0.5
_LEAST = 3
"""Values of a body, below which it says too little to be told apart."""
_WORD = re.compile(r"[A-Za-z0-9_.-]+")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/+=-]*")
"""What is no sentence, address or amount."""
_DEEP = 8
"""Texts in texts that are looked into; what is deeper may be anything."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_TELLING = frozenset((b"location", b"etag", b"set-cookie"))
"""Header fields of an answer that a later request may depend on."""
_Endpoint = tuple[str, str]
"""Origin, and path without ids."""


@dataclass(slots=True)
class _Sent:
    """What one recording sent to an endpoint."""

    bodies: list[dict[str, str]] = field(default_factory=list)
    """Values by their places."""
    is_deed: bool = False
    """Whether one of them is no batch of events, is answered with more than nothing, or does what a model asked for."""
    is_harmless: bool = True
    """Whether each value is of a kind that orders nothing."""
    ids: set[str] = field(default_factory=set)
    """Identifiers that were sent there."""


class Telemetry(NamedTuple):
    """Patterns of endpoints."""

    proposed: tuple[str, ...]
    unproved: tuple[str, ...]
    """Those that read like telemetry, but have values that may order something."""


def find_telemetry(
    store: Store,
    runs: Sequence[RunInfo],
    classes: Classes,
    effects: tuple[EffectRule, ...],
    lesson: Lesson,
    hashed: HashWord | None = None,
) -> Telemetry:
    """Give patterns of the endpoints. Blocking; reads the recordings once, and their answers again if there are any.

    effects: what they name is an effect.
    lesson: what `learn` says of the two.
    hashed: as for `learn`.
    Raises: LogCorrupt.
    """
    first, second = (_read(store, run, classes, effects) for run in runs)
    for run, sent in zip(runs, (first, second), strict=True):
        _mark_given(store, run, sent, hashed)
    unlike = set(_find_unlike(lesson))
    found: dict[str, _Endpoint] = {}
    for endpoint, one in first.items():
        other = second.get(endpoint)
        if endpoint not in unlike or other is None or one.is_deed or other.is_deed:
            continue
        if not takes_reports(endpoint[1]):
            continue
        if all(_differ_mostly(*pair) for pair in zip(one.bodies, other.bodies, strict=False)):
            found[f"POST {endpoint[0]}{endpoint[1]}"] = endpoint
    answered = {
        run.number: _find_answered(
            store, run, {word for one in found.values() for word in _find_all_words(sent[one].ids)}
        )
        for run, sent in zip(runs, (first, second), strict=True)
        if found
    }
    proposed: list[str] = []
    unproved: list[str] = []
    for text in sorted(filter(_is_pattern, found)):
        one, other = first[found[text]], second[found[text]]
        is_own = one.ids.isdisjoint(other.ids) and all(
            told is not None and told.isdisjoint(_find_all_words(sent.ids))
            for told, sent in zip(answered.values(), (one, other), strict=True)
        )
        is_proved = is_own and one.is_harmless and other.is_harmless
        (proposed if is_proved else unproved).append(text)
    return Telemetry(tuple(proposed), tuple(unproved))


def _find_answered(store: Store, run: RunInfo, wanted: set[bytes]) -> set[bytes] | None:
    """Give the words that an answer had, also a later one; None where one cannot be searched."""
    found = set[bytes]()
    for told in read_answers(store, run):
        if told.text is None:
            return None
        found |= wanted & find_parts(told.text)
    return found


def _find_all_words(values: Iterable[str]) -> set[bytes]:
    return {word for value in values for word in find_words(value.encode("utf-8", "surrogatepass"))}


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
    others: set[_Endpoint] = set()
    tools = list(find_command(store.events.all(run)))
    for recorded in store.exchanges.all(run):
        exchange = reclassify(recorded, classes)
        request = exchange.request
        endpoint = f"{request.scheme}://{request.authority}", path_shape(request.path)
        if exchange.request_class is RequestClass.INFERENCE:
            tools += _find_calls(exchange)
        if not _may_be(exchange, classes, effects):
            if request.method == "POST":
                others.add(endpoint)
            continue
        sent = found.setdefault(endpoint, _Sent())
        places = dict(_places(request))
        sent.bodies.append(places)
        window = Window(run.created_ns / 1e9, exchange.started_ns / 1e9)
        tree = _read_tree(request)
        is_batch = False
        # What is deeper may be anything.
        with contextlib.suppress(RecursionError):
            is_batch = _is_answered_with_nothing(exchange) and _is_batch(tree, window)
            if is_batch:
                is_plain = "?" not in request.target and is_harmless(tree, window)
                sent.is_harmless = sent.is_harmless and is_plain
                sent.ids.update(find_made_ids(tree))
        asked_for = any(
            len(one) >= _SHORT and one in call for one in places.values() for call in tools
        )
        sent.is_deed = sent.is_deed or not is_batch or asked_for
    return {endpoint: sent for endpoint, sent in found.items() if endpoint not in others}


def _mark_given(
    store: Store, run: RunInfo, found: dict[_Endpoint, _Sent], hashed: HashWord | None
) -> None:
    """Mark the endpoints to which a word of the environment was sent."""
    words = {
        endpoint: _find_all_words(value for body in sent.bodies for value in body.values())
        for endpoint, sent in found.items()
    }
    given = find_given(store, (run,), set().union(*words.values()), hashed).keys()
    for endpoint, sent in found.items():
        sent.is_deed = sent.is_deed or not given.isdisjoint(words[endpoint])


def _may_be(exchange: Exchange, classes: Classes, effects: tuple[EffectRule, ...]) -> bool:
    request = exchange.request
    if exchange.request_class is not RequestClass.EFFECT or request.method != "POST":
        return False
    if not request.body or request.spilled is not None or exchange.websocket is not None:
        return False
    facts, kind = Facts.of_request(request, classes)
    return not kind.named and not any(rule.match.maybe(facts.ways) for rule in effects)


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


def _is_answered_with_nothing(exchange: Exchange) -> bool:
    """Say whether an answer is a success, and nothing can depend on it."""
    response = exchange.response
    if response is None or response.spilled is not None or response.status not in _SUCCESS:
        return False
    told = {name.lower() for name, _ in response.headers}
    return response.body.strip() in _NOTHING and _TELLING.isdisjoint(told)


def _read_tree(request: Request) -> Any | None:
    """Read a body of JSON, or with a line of it for each event; None where it is neither."""
    text = open_body(request)[0].decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text, object_pairs_hook=_join)
    with contextlib.suppress(ValueError, RecursionError):
        lines = text.splitlines()
        return [json.loads(line, object_pairs_hook=_join) for line in lines if line.strip()]
    return None


def _join(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; one with two members of a name is none, since nobody knows which of them counts."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a member is there twice")
    return found


def _is_batch(tree: Any, window: Window) -> bool:
    """Say whether a body is a list of events, or has one."""
    if _may_be_order(tree):
        return False
    lists = tree.items() if isinstance(tree, dict) else [("", tree)]
    return any(
        isinstance(one, list)
        and one
        and all(_is_event(item, window, is_named=_names_event(name)) for item in one)
        for name, one in lists
    )


def _may_be_order(value: Any, depth: int = 0) -> bool:
    """Say whether a value, or a text in it, may say that something is to be done to somebody or with a sum."""
    if depth > _DEEP:
        return True
    if isinstance(value, dict):
        return any(
            not is_told(name) or _may_be_order(inner, depth) for name, inner in value.items()
        )
    if isinstance(value, list):
        return any(_may_be_order(inner, depth) for inner in value)
    if not isinstance(value, str):
        return False
    inner = _open_text(value)
    if inner is not None:
        return _may_be_order(inner, depth + 1)
    if STAMP.fullmatch(value) is not None:
        return False
    return _PLAIN.fullmatch(value) is None or names_deed(name_words(value))


def _open_text(text: str) -> Any | None:
    """Give what a text of JSON, or of base64 with text in it, has in it; None where it is neither."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict | list | str):
            return found
    if _BASE64.fullmatch(text):
        with contextlib.suppress(ValueError):
            told = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_").decode()
            return told if told.isprintable() else None
    return None


def _is_event(item: Any, window: Window, *, is_named: bool) -> bool:
    """Say whether an item of a list is an event; is_named: of the list it is said to be one of events."""
    if not isinstance(item, dict) or not (is_named or any(map(_names_event, item))):
        return False
    return any(is_time_of(value, window) for _, value in _leaves("$", item))


def _names_event(name: str) -> bool:
    return any(word.removesuffix("s") in _EVENTS for word in name_words(name))


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
