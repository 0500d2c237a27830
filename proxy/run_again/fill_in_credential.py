"""Put a credential into a recorded request: no tape has one, only the place where it stood."""

import os
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from ...tape.classify.model_apis import MODEL_APIS
from ...tape.exchange import Exchange, Headers, Request
from ..errors import EngineError

VARIABLES = {host: names for api in MODEL_APIS for host, names in api.keys.items()}
"""Variables that have a provider's key, by the hosts that are its own."""
_QUERIES = frozenset(("key", "api-key", "api_key"))
"""Names in a query under which a key is sent."""
_PLACES = frozenset(("authorization", "x-api-key", "api-key", "x-goog-api-key"))
"""Header fields in which a key is sent."""
_SIGNED = b"AWS4-"
_HEADER, _QUERY = "request.header.", "request.query."


class Filled(NamedTuple):
    """A request that can be sent."""

    request: Request
    variable: str = ""
    """The variable whose value it carries; empty where it carries none."""


def with_credential(
    recorded: Exchange, variable: str | None, environment: Mapping[str, str] = os.environ
) -> Filled:
    """Give a recorded request with a key in the place of its placeholder.

    variable: the name of the variable that has it; None for that of the provider whose host is asked.
    Raises: EngineError, where there is none, or where it cannot be put there.
    """
    request = recorded.request
    if (request.header(b"authorization") or b"").startswith(_SIGNED):
        raise EngineError(
            "the call is signed (AWS), and nobody but its client can sign it again",
            "run the agent: playhead branch",
        )
    places = [one.place for one in recorded.redactions if one.place.startswith("request.")]
    headers = {one.removeprefix(_HEADER) for one in places if one.startswith(_HEADER)}
    queries = {one.removeprefix(_QUERY) for one in places if one.startswith(_QUERY)}
    strange = sorted(headers - _PLACES) + sorted(queries - _QUERIES)
    strange += [one for one in places if not one.startswith((_HEADER, _QUERY))]
    if strange:
        raise EngineError(
            f"the call has secrets in {', '.join(strange)}, which no tape keeps",
            "run the agent: playhead branch",
        )
    if not places:
        return Filled(request)
    if len(headers) + len(queries) > 1:
        raise EngineError(
            f"the call has credentials in {', '.join(sorted(headers | queries))}, and nobody knows which key goes where",
            "run the agent: playhead branch",
        )
    named = _find_variable(request, variable, environment)
    key = environment[named]
    fields = tuple(
        (name, _fill(value, key) if name.decode("latin-1").lower() in headers else value)
        for name, value in request.headers
    )
    filled = replace(
        request, headers=fields, target=_fill_query(request.target, queries, key), secrets=()
    )
    return Filled(filled, named)


def _find_variable(request: Request, variable: str | None, environment: Mapping[str, str]) -> str:
    names = (variable,) if variable is not None else _find_default(request)
    for name in names:
        if environment.get(name):
            return name
    if names:
        raise EngineError(
            f"{names[0]} is not set, and the call was recorded with a credential, which no tape keeps",
            "set it, or name another variable with --key-env",
        )
    raise EngineError(
        f"the call was recorded with a credential, and {request.scheme}://{request.authority} is no host of a known provider,"
        " so no key of your environment is sent to it unasked",
        "name the variable that has its key with --key-env",
    )


def _find_default(request: Request) -> tuple[str, ...]:
    if (request.scheme, request.port) != ("https", 443):
        return ()
    return VARIABLES.get(request.host.lower(), ())


def _fill(value: bytes, key: str) -> bytes:
    """Put a key in the place of what a field has, behind the word for its scheme."""
    scheme, blank, _ = value.partition(b" ")
    return scheme + blank + key.encode() if blank else key.encode()


def _fill_query(target: str, names: Set[str], key: str) -> str:
    path, mark, query = target.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&"))
    filled = (
        f"{name}={key}" if name in names else f"{name}{sign}{value}" for name, sign, value in pairs
    )
    return f"{path}{mark}{'&'.join(filled)}"


def without_framing(headers: Headers) -> Headers:
    """Give the header fields that a client sends again: those of the connection and of the length follow anew."""
    dropped = frozenset(
        b"connection proxy-connection proxy-authorization keep-alive content-length transfer-encoding expect te upgrade".split()
    )
    return tuple(field for field in headers if field[0].lower() not in dropped)
