"""A client that posts once, and waits so long and no longer; it blocks, for threads."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from playhead.tape.exchange import Ending

from .http2 import Http2Client
from .sockets import ending_of, open_tunnel, post

Enough = Callable[[bytes], bool]
"""Says of what has come whether the client leaves by itself."""
_LONG_S = 20.0


@dataclass(frozen=True)
class Seen:
    """What a client saw."""

    status: int
    """0 without an answer."""
    body: bytes
    """Without its chunks."""
    how: str
    """`end`, `gave up`, `left`, or how the connection or stream ended."""
    headers: dict[str, str] = field(default_factory=dict, compare=False)


def ask(
    over: str,
    proxy: str,
    url: str,
    ca: Path,
    body: bytes,
    patience_s: float,
    enough: Enough = lambda _: False,
    begun: Enough = lambda _: True,
) -> Seen:
    """Post over `h1` or `h2`, in a tunnel of its own.

    begun: says of what has come whether patience begins to run out, however long it took to come.
    """
    talk = _ask_http1 if over == "h1" else _ask_http2
    return talk(proxy, url, ca, body, patience_s, enough, begun)


def _ask_http1(
    proxy: str, url: str, ca: Path, body: bytes, patience_s: float, enough: Enough, begun: Enough
) -> Seen:
    received, how = b"", ""
    with open_tunnel(proxy, url, ca) as tunnel:
        post(tunnel, url, body)
        while not how:
            tunnel.settimeout(patience_s if begun(received) else _LONG_S)
            try:
                data = tunnel.recv(65536)
            except TimeoutError:
                how = "gave up"
            except OSError as error:
                how = ending_of(error).value
            else:
                received += data
                if _is_whole(received):
                    how = "end"
                elif not data:
                    how = Ending.CLOSE.value
                elif enough(received):
                    how = "left"
    status, fields, rest = _parts(received)
    return Seen(status, _unchunked(rest) if _is_chunked(fields) else rest, how, fields)


def _parts(received: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]) if received else 0, fields, body


def _is_chunked(fields: dict[str, str]) -> bool:
    return fields.get("transfer-encoding") == "chunked"


def _is_whole(received: bytes) -> bool:
    if b"\r\n\r\n" not in received:
        return False
    _, fields, body = _parts(received)
    if _is_chunked(fields):
        return body.endswith(b"0\r\n\r\n")
    return "content-length" in fields and len(body) >= int(fields["content-length"])


def _unchunked(rest: bytes) -> bytes:
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


def _ask_http2(
    proxy: str, url: str, ca: Path, body: bytes, patience_s: float, enough: Enough, begun: Enough
) -> Seen:
    with open_tunnel(proxy, url, ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        stream = client.ask("POST", url, body)
        got, how = client.got[stream], ""

        def is_over() -> bool:
            return bool(got) and isinstance(got[-1], str)

        try:
            client.read_until(lambda: is_over() or begun(client.data(stream)), _LONG_S)
            client.read_until(lambda: is_over() or enough(client.data(stream)), patience_s)
            how = got[-1] if is_over() else "left"
        except TimeoutError:
            how = "gave up"
        except OSError as error:
            how = ending_of(error).value
        if how in ("left", "gave up"):
            client.cancel(stream)
            client.settle()  # the proxy has heard of it before the connection ends
        fields = next((item for item in got if isinstance(item, dict)), {})
        return Seen(int(fields.get(":status", 0)), client.data(stream), how, fields)
