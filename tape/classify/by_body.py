"""Classify a POST by its body: one that only queries is a read, one that asks a model a model call, and a report telemetry.

Protocols that send everything by POST to one URL (JSON-RPC, so MCP, and GraphQL) say in the body what is done. Rules:

1. A read is looked for only where no pattern speaks of a request, its method makes it an `effect`, and it can be taken in one
   way alone: one whose fields or URL claim another method, place or path is an effect, whatever its body says.
   What may leave in playback is never decided here: for that the class is the one that method and URL give.
2. JSON-RPC 2.0 is read where each message, of one or of a batch, is a call of a method in `json_rpc_client_ids.READS`.
3. GraphQL is read where the operation that is executed is a query; of a list, each. A query that does not begin with
   the word counts only at a URL that says `graphql` or `gql`. One whose URL has a part of it, too, is none: some servers take
   that part.
4. A model call by its path alone, at a host that may be anybody's, is one only if its body says so, too: an object in JSON
   with `model` and what models are asked by. Else it is an effect, as a message to people is. A body that is too large to be
   read stays what its path says.
5. A report to a collector of telemetry is known by path and body (`telemetry_bodies.py`), where rule 1 looks for a read.
6. In doubt it is an effect: a body that is coded, no JSON, larger than `MAX_READ`, or that holds a key twice or one
   that the protocol does not know, which servers may read in two ways.

Bounded, for the event loop: a body is read up to the first key that its protocol does not know.
"""

import json
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import msgspec

from ...config.schema import Classes
from ...config.targets.request_interpretations import find_ways
from ..canonical import graphql, json_rpc_client_ids
from ..canonical.canonical_request import BodyKind, open_body
from ..canonical.target_overrides import claimed, claims_of
from ..exchange import HttpRequest, RequestClass
from .by_method_and_url import Kind, classify, classify_ways
from .telemetry_bodies import is_report

_IN_URL = frozenset({"query", "operationname", "variables", "extensions"})
MAX_READ = 64 * 1024
"""Bytes of a body beyond which it is taken for an effect."""
MAX_ASKED = 8 * 1024 * 1024
"""Bytes beyond which a body is taken for what its path says: model calls hold whole conversations, with pictures."""


def class_now(request: HttpRequest, classes: Classes) -> RequestClass:
    """Say what kind of call a whole request is, under these patterns."""
    return find_class(request, classes).of


class ClassNow(NamedTuple):
    """What kind of call a whole request is."""

    of: RequestClass
    by_body: bool
    """Whether its body makes it that: method and URL alone would not."""


def find_class(request: HttpRequest, classes: Classes) -> ClassNow:
    """Say what kind of call a whole request is, under these patterns, and whether its body makes it that."""
    if request.method == "CONNECT":
        return ClassNow(class_of_tunnel(request, classes), by_body=False)
    more = claimed(claims_of(request), request.scheme, request.port)
    ways = find_ways(
        request.method.upper(), request.scheme, request.host, request.port, request.target, more
    )
    kind = classify_ways(ways, classes).kind
    now = class_by_body(kind, request)
    return ClassNow(now, now is not kind.of)


def class_of_tunnel(tunnel: HttpRequest, classes: Classes) -> RequestClass:
    """Say what kind of call a tunnel is: by itself it changes nothing, and to where telemetry alone is sent it is telemetry."""
    place = tunnel.scheme, tunnel.host, tunnel.port, tunnel.target
    kind = classify(tunnel.method, *place, classes).of
    return kind if kind is RequestClass.TELEMETRY else RequestClass.READ


def class_by_body(kind: Kind, request: HttpRequest) -> RequestClass:
    """Say what kind of call a request is by its body, too."""
    if reads_by_body(kind, request):
        return RequestClass.READ
    if _may_be_harmless(kind) and is_report(request):
        return RequestClass.TELEMETRY
    return RequestClass.EFFECT if kind.by_path and not asks_model(request) else kind.of


def asks_model(request: HttpRequest) -> bool:
    """Say whether a body is what a model is asked, or is too large to be read."""
    if request.spilled is not None:
        return True
    body = open_body(request)[0]
    if len(body) > MAX_ASKED:
        return True
    try:
        asked = _read_asked(body)
    except (ValueError, RecursionError):
        return False
    unset = msgspec.UNSET
    if asked.prompt is not unset and request.path.endswith("/completions"):
        return True  # servers of one model need not be told which
    given = (asked.messages, asked.given, asked.prompt, asked.previous)
    return asked.model is not unset and any(one is not unset for one in given)


def reads_by_body(kind: Kind, request: HttpRequest) -> bool:
    """Say whether its body makes a request a read that its method and URL make an effect."""
    return _may_be_harmless(kind) and asks_to_read(request)


def _may_be_harmless(kind: Kind) -> bool:
    """Say whether a body may make a request something else than the effect that method and URL make it."""
    return kind.of is RequestClass.EFFECT and not kind.named and kind.plain


def asks_to_read(request: HttpRequest) -> bool:
    """Say whether a POST asks for nothing but to be read something."""
    body = request.body
    if request.method != "POST" or not body or len(body) > MAX_READ:
        return False
    if request.header(b"content-encoding") is not None or not _is_json(request):
        return False
    reads = json_rpc_client_ids.only_reads(body) or (
        not _asks_in_url(request) and _only_queries(body, _is_named(request))
    )
    return reads and _is_plain(body)


def _is_json(request: HttpRequest) -> bool:
    content = open_body(request)[1]
    return content is not None and content.kind is BodyKind.JSON


def _asks_in_url(request: HttpRequest) -> bool:
    """Say whether a URL has what GraphQL servers take before the body's: which operation is executed, or all of it."""
    query = request.target.partition("?")[2]
    names = {unquote_plus(pair.partition("=")[0]).lower() for pair in query.split("&")}
    return not names.isdisjoint(_IN_URL)


def _is_named(request: HttpRequest) -> bool:
    place = f"{request.host}{request.path}".lower()
    return "graphql" in place or "gql" in place


class _Asked(msgspec.Struct):
    """What tells a model call: of the APIs of Anthropic (messages), OpenAI (responses, completions) and what speaks them."""

    model: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    given: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="input")
    prompt: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    previous: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="previous_response_id"
    )


_read_asked = msgspec.json.Decoder(_Asked).decode


class _Posted(msgspec.Struct, forbid_unknown_fields=True):
    query: str
    name: str | None = msgspec.field(default=None, name="operationName")
    variables: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    extensions: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_read_posted = msgspec.json.Decoder(_Posted | list[_Posted]).decode


def _only_queries(body: bytes, named: bool) -> bool:
    try:
        found = _read_posted(body)
    except (ValueError, RecursionError):  # msgspec's own errors are among them
        return False
    kinds = ("query", "{") if named else ("query",)
    posted = found if isinstance(found, list) else [found]
    executed = [graphql.find_executed(one.query, one.name) for one in posted]
    return bool(posted) and all(one is not None and one.kind in kinds for one in executed)


def _is_plain(body: bytes) -> bool:
    """Say whether no object of a body holds a key twice."""
    try:
        _strict(body.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key is repeated")


_strict = json.JSONDecoder(object_pairs_hook=_once).decode
