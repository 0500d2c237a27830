"""Find the tool call that made an exchange: the `curl` of a shell, the `git` of a script, the call of an MCP server.

The rules, the strongest first:

1. A call of an MCP server has the tool's name and its arguments.
2. The URL is in the arguments, whole: recorded, if the call fits exactly, or no other call could have made the request. It begins with
   one that is there: inferred.
3. A value of the arguments is in the URL or the body.
4. It comes from a process that the tool call has made a request from before.
5. One tool call alone was under way, or one alone has all of its arguments in the request, however short; and the request is not one
   that the agent makes by itself.

Where several fit, the one does all of whose values are in the request, then the one that has a value that no other has. Where several
are left, calls of one answer are all named, as inferred; of several answers none is.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from ...tape.canonical.canonical_request import normal_encodings
from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.exchange import Exchange, RequestClass
from .agent_lanes import PendingCall
from .model_call import argument_texts
from .step import Evidence

_URL = re.compile(r"https?://[^\s'\"<>|;)`\\]+")
_URL_ENDS = re.compile(r"/?(?:$|[\s'\"<>|)`\\\]}#]|[.,:;!?](?:$|[\s'\"\\]))")
"""What is behind a URL in a text, where it is not but the beginning of a longer one."""
_URL_BEFORE = re.compile(r"://[^\s'\"<>|`\\]*$")
_MIN_VALUE = 3
_MAX_BODY = 64 * 1024
_LEAVES = 200
"""Values of a body that are looked for in arguments."""
_NAMES = 120
"""Characters of names of tools that a rule has."""


@dataclass(frozen=True, slots=True)
class Found:
    """The tool call that made an exchange."""

    calls: tuple[PendingCall, ...]
    """One; or those of one answer that could each have made it."""
    evidence: Evidence
    rule: str

    @property
    def name(self) -> str:
        """Name of its tool, or of each that it could be."""
        return " or ".join(dict.fromkeys(one.name for one in self.calls))


class _Place(IntEnum):
    """How a URL is in the arguments of a call; the higher, the more it says."""

    NOWHERE = 0
    BEGINS = 1
    TEXT = 2
    """Whole, in a longer text."""
    WHOLE = 3
    """An argument by itself."""


def find_cause(
    exchange: Exchange,
    pending: list[PendingCall],
    agents: frozenset[int],
    hosts: frozenset[str],
    left: frozenset[int] = frozenset(),
) -> Found | None:
    """Find the tool call that made an exchange, with the evidence and what it rests on.

    pending: the tool calls under way, the newest last.
    agents: processes that ask models.
    hosts: what the agent asks by itself, models among it.
    left: answers that their lanes seem to have gone on without: their tool calls count by what is in the request alone, and after the others.
    """
    if not pending or exchange.request_class is RequestClass.TELEMETRY:
        return None
    current = [one for one in pending if one.seq not in left]
    found, fitting = None, tuple(current)
    for some in (current, [one for one in pending if one.seq in left]):
        found = _by_content(exchange, some) if some else None
        if found is not None:
            fitting = found.calls
            break
    if found is not None and len(found.calls) == 1:
        return found
    process = exchange.lane.number if exchange.lane is not None else 0
    of_process = tuple(one for one in fitting if process and process in one.processes)
    if len(of_process) == 1 and process not in agents:
        return Found(of_process, Evidence.INFERRED, "same process as another of its requests")
    if found is not None:
        return found if len({one.seq for one in found.calls}) == 1 else None
    if process in agents and exchange.request.authority in hosts:
        return None
    if len(current) == 1:
        return Found(fitting, Evidence.INFERRED, "the one tool call under way")
    leaves = {*_body_values(exchange), *_head_values(exchange)}
    exact = tuple(one for one in current if _values(one) and _values(one) <= leaves)
    if len(exact) == 1:
        return Found(exact, Evidence.INFERRED, "all of its arguments are in the request")
    return None


def _by_content(exchange: Exchange, some: list[PendingCall]) -> Found | None:
    """Find the calls that what is in a request is from; those of several answers where nothing tells them apart."""
    fitting = [one for one in some if _is_tool_call_of(exchange, one)]
    if fitting:
        return _choose(fitting, "same tool and arguments")
    url = exchange.request.url
    places = [_place_of(url, one) for one in some]
    best = max(places)
    if best[0] is not _Place.NOWHERE:
        named = [one for one, place in zip(some, places, strict=True) if place == best]
        return _by_url(exchange, some, named, best[0])
    fitting = _narrow(exchange, _inmost([one for one in some if _shared(exchange, one)]))
    if not fitting:
        return None
    call = fitting[0]
    others = {value for one in some if one is not call for value in _values(one)}
    telling = min(_shared(exchange, call), key=others.__contains__)
    return _choose(fitting, f"{telling[:40]!r} is in its arguments")


def _by_url(
    exchange: Exchange,
    some: list[PendingCall],
    named: list[PendingCall],
    place: _Place,
) -> Found:
    """Choose among the calls that have the URL of a request, and those that have what else is in it."""
    rule = "its URL is in the arguments"
    if place is _Place.BEGINS:
        rule = "its URL begins with one in the arguments"
    rest = [one for one in some if one not in named]
    named = _narrow(exchange, _inmost(named))
    rivals = [one for one in rest if _has_what_none_has(exchange, one, named)]
    if rivals or len(named) > 1:
        return _choose([*named, *rivals], rule)
    call = named[0]
    if place is _Place.BEGINS:
        return Found((call,), Evidence.INFERRED, rule)
    # Who is told of a URL need not ask it: another call may have it from its program.
    others = [one for one in rest if _URL.search(one.text) is None]
    is_whole = place is _Place.WHOLE and not exchange.request.body
    if not others or is_whole or _has_body(exchange, call):
        return Found((call,), Evidence.RECORDED, rule)
    beside = [one for one in others if one.seq == call.seq]
    if exchange.request.body and beside:
        return _choose([call, *beside], rule)
    names = ", ".join(dict.fromkeys(one.name for one in others))[:_NAMES]
    return Found((call,), Evidence.INFERRED, f"{rule} of {call.name}; at one time with {names}")


def _choose(fitting: list[PendingCall], rule: str) -> Found:
    """Give the calls that fit, as far as they are of the newest answer of their lane."""
    newest: dict[int, int] = {}
    for one in fitting:
        newest[one.lane] = max(one.seq, newest.get(one.lane, 0))
    calls = tuple(one for one in fitting if one.seq == newest[one.lane])
    if len(calls) > 1:
        rule = f"{rule}, or made by another of {', '.join(one.name for one in calls)[:_NAMES]}"
    return Found(calls, Evidence.INFERRED, rule)


def _inmost(fitting: list[PendingCall]) -> list[PendingCall]:
    """Leave out a call whose sub-agent has one that fits: what an agent was given it hands on to its tools."""
    lanes = {one.lane for one in fitting}
    return [one for one in fitting if not one.lanes & lanes]


def _narrow(exchange: Exchange, fitting: list[PendingCall]) -> list[PendingCall]:
    """Leave of several calls the ones that have all of a request, else those of which it has all, else all or one of its own."""
    if len(fitting) < 2:
        return fitting
    leaves = {*_body_values(exchange), *_head_values(exchange)}
    values = {id(one): _values(one) for one in fitting}
    shared = {
        id(one): {it for it in values[id(one)] if it in leaves or _is_in(exchange, it)}
        for one in fitting
    }
    whole = [one for one in fitting if values[id(one)] and shared[id(one)] == values[id(one)]]
    left = [one for one in fitting if _has_body(exchange, one)] or whole or fitting
    own = [
        one
        for one in left
        if any(
            all(it not in shared[id(other)] for other in left if other is not one)
            for it in shared[id(one)]
        )
    ]
    return own if len(own) == 1 else left


def _has_what_none_has(exchange: Exchange, one: PendingCall, others: list[PendingCall]) -> bool:
    """Say whether a call has a value of a request that others have nowhere."""
    return any(all(value not in other.text for other in others) for value in _shared(exchange, one))


def _has_body(exchange: Exchange, one: PendingCall) -> bool:
    """Say whether a call has all that is in the body of a request."""
    leaves = _body_values(exchange)
    texts = one.values or [one.text]
    return bool(leaves) and all(
        any(_stands_in(leaf, text) for text in texts) for leaf in leaves[:_LEAVES]
    )


def _body_values(exchange: Exchange) -> list[str]:
    """Give the strings and numbers in the body of a request; of other text than JSON and forms all of it."""
    body = exchange.request.body[:_MAX_BODY]
    tree = find_json(body)
    if isinstance(tree, dict | list):
        return argument_texts(tree)
    text = body.decode("utf-8", "replace").strip()
    content = exchange.request.header(b"content-type") or b""
    if content.startswith(b"application/x-www-form-urlencoded"):
        return [value for _, value in parse_qsl(text) if value]
    return [text] if text else []


def _head_values(exchange: Exchange) -> list[str]:
    """Give the segments of the path and the values of the query."""
    path, _, query = exchange.request.target.partition("?")
    return [*map(unquote, path.split("/")), *(value for _, value in parse_qsl(query))]


def _is_tool_call_of(exchange: Exchange, one: PendingCall) -> bool:
    body = exchange.request.body
    if b"tools/call" not in body[:_MAX_BODY]:
        return False
    tree = find_json(body)
    params = tree.get("params") if isinstance(tree, dict) else None
    if not isinstance(params, dict):
        return False
    name: Json = params.get("name")
    return (
        isinstance(name, str)
        and bool(name)
        and (one.name == name or one.name.endswith((f"_{name}", f".{name}", f"-{name}")))
        and (params.get("arguments") or {}) == (one.arguments or {})
    )


def _place_of(url: str, one: PendingCall) -> tuple[_Place, int]:
    """Say how a URL is in the arguments of a call, and how much of it where it begins with one there."""
    url, whole = _encoded(url), _encoded(one.text)
    bare = url.rstrip("/")
    if any(_encoded(text).rstrip("/") == bare for text in one.values):
        return _Place.WHOLE, 0
    at = whole.find(bare)
    while at >= 0:
        if _URL_ENDS.match(whole, at + len(bare)) and not _URL_BEFORE.search(whole[:at]):
            return _Place.TEXT, 0
        at = whole.find(bare, at + 1)
    begun = [len(found) for found in _URL.findall(whole) if _begins(url, found)]
    return (_Place.BEGINS, max(begun)) if begun else (_Place.NOWHERE, 0)


@lru_cache(256)
def _encoded(text: str) -> str:
    """Write percent-encodings one way: a client may have written those of a URL anew."""
    return normal_encodings(text)


def _begins(url: str, found: str) -> bool:
    found = found.rstrip("/")
    return url.startswith(found) and (len(url) == len(found) or url[len(found)] in "/?&#.")


def _values(one: PendingCall) -> set[str]:
    return {value for value in one.values if value}


def _shared(exchange: Exchange, one: PendingCall) -> list[str]:
    """Give the values of the arguments that are in a request, in order."""
    return [value for value in one.values if _is_in(exchange, value)]


def _is_in(exchange: Exchange, value: str) -> bool:
    if len(value) < _MIN_VALUE:
        return False
    return _stands_in(value, exchange.request.target) or _stands_in(
        value, _text_of(exchange.request.body)
    )


@lru_cache(4)
def _text_of(body: bytes) -> str:
    """Decode a body, which each value of each tool call is looked for in."""
    return body[:_MAX_BODY].decode("utf-8", "replace")


def _stands_in(value: str, text: str) -> bool:
    """Say whether a value is in a text by itself, not as a piece of a word or of a number."""
    at = text.find(value)
    while at >= 0:
        before, behind = text[max(0, at - 2) : at], text[at + len(value) : at + len(value) + 2]
        joined = _are_one(before[-1:], value[:1]) or _are_one(value[-1:], behind[:1])
        fraction = (before[-1:] == "." and before[:1].isdigit() and value[:1].isdigit()) or (
            behind[:1] == "." and behind[1:].isdigit() and value[-1:].isdigit()
        )
        if not joined and not fraction:
            return True
        at = text.find(value, at + 1)
    return False


def _are_one(one: str, other: str) -> bool:
    return bool(one and other) and one.isalnum() and other.isalnum()
