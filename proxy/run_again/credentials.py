"""Put a credential into a recorded request: no tape has one, only the place where it stood."""

import os
from collections.abc import Mapping, Set
from dataclasses import replace

from ...tape.dialects import find_dialect
from ...tape.exchange import Exchange, Headers, Request
from ..errors import EngineError

VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY", "COHERE_API_KEY"),
}
"""Variables that have a provider's key, by the first word of the dialect's name."""
_PLACES = frozenset(("authorization", "x-api-key", "api-key", "x-goog-api-key"))
"""Header fields in which a key is sent."""
_SIGNED = b"AWS4-"
_HEADER, _QUERY = "request.header.", "request.query."


def with_credential(
    recorded: Exchange, variable: str | None, environment: Mapping[str, str] = os.environ
) -> Request:
    """Give a recorded request with a key in the place of its placeholder.

    variable: the name of the variable that has it; None for that of its provider.
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
    strange = sorted(headers - _PLACES)
    strange += [one for one in places if not one.startswith((_HEADER, _QUERY))]
    if strange:
        raise EngineError(
            f"the call has secrets in {', '.join(strange)}, which no tape keeps",
            "run the agent: playhead branch",
        )
    if not places:
        return request
    key = _find_key(request, variable, environment)
    fields = tuple(
        (name, _fill(value, key) if name.decode("latin-1").lower() in headers else value)
        for name, value in request.headers
    )
    return replace(
        request, headers=fields, target=_fill_query(request.target, queries, key), secrets=()
    )


def _find_key(request: Request, variable: str | None, environment: Mapping[str, str]) -> str:
    dialect = find_dialect(request)
    family = dialect.name.partition("-")[0] if dialect is not None else ""
    names = (variable,) if variable is not None else VARIABLES.get(family, ())
    for name in names:
        if environment.get(name):
            return environment[name]
    if names:
        raise EngineError(
            f"{names[0]} is not set, and the call was recorded with a credential, which no tape keeps",
            "set it, or name another variable with --key-env",
        )
    raise EngineError(
        f"nobody knows which variable has the key for {request.host}",
        "name it with --key-env",
    )


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
