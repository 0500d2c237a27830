"""The WebSocket handshake, as far as a proxy must understand it.

What both sides agree on in header fields stays as it was said, but for two: extensions that nobody here can
read are not offered to the upstream, and `Sec-WebSocket-Accept` depends on a key that is new every time.

Source: RFC 6455 sections 4 and 9, RFC 7692 for permessage-deflate.
"""

import base64
from dataclasses import replace
from hashlib import sha1
from typing import NamedTuple

from ...tape.exchange import Headers, HttpResponse, Request

_ACCEPT = b"sec-websocket-accept"
EXTENSIONS = "sec-websocket-extensions"
_EXTENSIONS = EXTENSIONS.encode()
_PROTOCOL = b"sec-websocket-protocol"
_DEFLATE = "permessage-deflate"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Deflate(NamedTuple):
    """The negotiated parameters of permessage-deflate."""

    client_keeps_context: bool = True
    server_keeps_context: bool = True
    server_bits: int = 15
    """Largest window of the server's, as its power of two."""


def is_upgrade(headers: Headers) -> bool:
    """Say whether a request asks for a WebSocket, as the canonical form sees it."""
    return any(value.lower() == b"websocket" for value in _values(headers, b"upgrade"))


def known_offers(values: list[str]) -> list[str] | None:
    """Give the values that offer only what can be read here; None where they do so already."""
    offered = [part.strip() for value in values for part in value.split(",")]
    known = [part for part in offered if _name(part) == _DEFLATE]
    if known == offered:
        return None
    return [", ".join(known)] if known else []


def find_deflate(headers: Headers) -> Deflate | None:
    """Find what an answer agrees on for compression."""
    for value in _values(headers, _EXTENSIONS):
        for part in value.decode("latin-1").split(","):
            if _name(part) == _DEFLATE:
                return _parse(part)
    return None


def answer_again[Answer: HttpResponse](
    recorded: Request, response: Answer, asked: Request
) -> Answer | str:
    """Give a recorded answer for a new handshake, or say why it cannot be given.

    An answer that was wrong for its own key stays as it is: the client turned it down.
    """
    protocols = _values(response.headers, _PROTOCOL)
    offered = {
        word.strip() for value in _values(asked.headers, _PROTOCOL) for word in value.split(b",")
    }
    if protocols and protocols[0] not in offered:
        return f"the tape has the subprotocol {protocols[0].decode('latin-1')!r}, which was not asked for"
    right = _values(response.headers, _ACCEPT) == [accept_key(recorded)]
    same = _offers(recorded) == _offers(asked)
    headers = tuple(
        (name, accept_key(asked) if right and name.lower() == _ACCEPT else value)
        for name, value in response.headers
        # Messages are played uncompressed to a client that asked for something else.
        if same or name.lower() != _EXTENSIONS
    )
    return replace(response, headers=headers, body=b"", chunks=(), trailers=(), secrets=())


def accept_key(request: Request) -> bytes:
    """Give the key that accepts a request."""
    key = b"".join(_values(request.headers, b"sec-websocket-key"))
    return base64.b64encode(sha1(key + _GUID, usedforsecurity=False).digest())


def _values(headers: Headers, wanted: bytes) -> list[bytes]:
    size = len(wanted)
    return [
        value.strip() for name, value in headers if len(name) == size and name.lower() == wanted
    ]


def _offers(request: Request) -> list[str]:
    value = b",".join(_values(request.headers, _EXTENSIONS)).decode("latin-1")
    offered = ("".join(part.split()).lower() for part in value.split(","))
    return [part for part in offered if _name(part) == _DEFLATE]


def _name(part: str) -> str:
    return part.partition(";")[0].strip().lower()


def _parse(part: str) -> Deflate:
    given: dict[str, str] = {}
    for parameter in part.split(";")[1:]:
        name, _, value = parameter.partition("=")
        given[name.strip().lower()] = value.strip().strip('"')
    bits = given.get("server_max_window_bits", "")
    return Deflate(
        "client_no_context_takeover" not in given,
        "server_no_context_takeover" not in given,
        int(bits) if bits.isascii() and bits.isdigit() else 15,
    )
