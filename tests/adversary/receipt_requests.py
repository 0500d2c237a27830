"""Requests of receipts_*.yaml as bytes: what a client sends, and what a server answers while it is recorded."""

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

BODIES = ("json", "form", "multipart", "ndjson", "text", "base64")
_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "ndjson": "application/x-ndjson",
    "text": "text/plain",
    "base64": "application/octet-stream",
}
_HOME = "https://api.example.test"
_DEFAULT = "GET /"
_PORTS = {"https": 443, "http": 80}
_TOLD = re.compile(r"\$\{(\d+)\.(\w+)\}")

Fields = tuple[tuple[str, str], ...]
Request = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request, ready to be sent."""

    method: str
    scheme: str
    authority: str
    """As it is written in the URL."""
    target: str
    headers: Fields
    body: bytes | None = None
    trailers: Fields | None = None
    connect: str = ""
    """HOST:PORT of the tunnel."""
    sni: str = ""
    transport: str = "h1"
    answer: Mapping[str, Any] | None = None
    rpc_id: Any = None
    """Of a JSON-RPC call."""

    @property
    def url(self) -> str:
        """The absolute URL."""
        return f"{self.scheme}://{self.authority}{self.target}"

    def told(self, answers: Mapping[int, bytes]) -> "Asked":
        """Put members of earlier answers in, by the number of their requests."""

        def find(match: re.Match[str]) -> str:
            return str(json.loads(answers[int(match[1])])[match[2]])

        fields = tuple((name, _TOLD.sub(find, value)) for name, value in self.headers)
        return replace(self, headers=fields)

    def has(self, name: str) -> bool:
        """Say whether it has a header field."""
        return any(one.lower() == name for one, _ in self.headers)


def joined(both: Request, one: Request) -> dict[str, Any]:
    """Add what is common to a request: a key of its own wins, and fields follow one another."""
    common = dict(both)
    if any(kind in one for kind in BODIES):
        common = {key: value for key, value in common.items() if key not in BODIES}
    found = {**common, **one}
    for key in ("headers", "metadata"):
        if key in both and key in one:
            found[key] = [*both[key], *one[key]]
    return found


def read_request(request: Request, transport: str = "h1") -> Asked:
    """Read a request of a case."""
    method, _, url = str(request.get("to", _DEFAULT)).partition(" ")
    if url.startswith("/"):
        url = _HOME + url
    scheme, _, rest = url.partition("://")
    cut = next((place for place, char in enumerate(rest) if char in "/?"), len(rest))
    authority, target = rest[:cut], rest[cut:] or "/"
    place = urlsplit(f"//{authority}")
    headers = [(str(name), str(value)) for name, value in request.get("headers", ())]
    named = {name.lower() for name, _ in headers}
    body, kind = _read_body(request)
    if kind and "content-type" not in named:
        headers.append(("content-type", kind))
    if "gzip" in request:
        assert body is not None
        body = gzip.compress(body, request["gzip"], mtime=0)
        headers.append(("content-encoding", "gzip"))
    trailers = request.get("trailers")
    value = request.get("json")
    return Asked(
        method,
        scheme,
        authority,
        target,
        tuple(headers),
        body,
        None if trailers is None else tuple((name, value) for name, value in trailers),
        request.get("connect", f"{place.hostname}:{place.port or _PORTS[scheme]}"),
        request.get("sni", place.hostname or ""),
        request.get("transport", transport),
        request.get("answer", {}),
        value.get("id") if isinstance(value, dict) and "jsonrpc" in value else None,
    )


def _read_body(request: Request) -> tuple[bytes | None, str]:
    kind = next((kind for kind in BODIES if kind in request), "")
    value = request.get(kind)
    match kind:
        case "json":
            made = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        case "form":
            made = urlencode([(name, text) for name, text in value or ()]).encode()
        case "ndjson":
            lines = (json.dumps(one, separators=(",", ":")) for one in value or ())
            made = "".join(f"{line}\n" for line in lines).encode()
        case "text":
            made = str(value).encode()
        case "base64":
            made = base64.b64decode(str(value))
        case "multipart":
            boundary = request.get("boundary", "cases")
            parts = b"".join(_part(boundary, *part) for part in value or ())
            return parts + f"--{boundary}--\r\n".encode(), (
                f"multipart/form-data; boundary={boundary}"
            )
        case _:
            return None, ""
    return made, _TYPES[kind]


def _part(boundary: str, name: str, file: str | None, kind: str | None, text: str) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
    head += f'; filename="{file}"' if file is not None else ""
    head += f"\r\nContent-Type: {kind}" if kind is not None else ""
    return f"{head}\r\n\r\n{text}\r\n".encode()


@dataclass(frozen=True)
class Answer:
    """What a server says to one request."""

    status: int
    headers: Fields
    pieces: tuple[bytes, ...]
    """Each flushed on its own."""
    whole: bool = True
    """Whether its length is known before it begins."""
    gap_s: float = 0.0
    hold: int | None = None
    """After how many pieces it waits; 0 before its head."""
    is_open: bool = False
    interim: tuple[tuple[int, Fields], ...] = ()


def read_answer(asked: Asked, number: int) -> Answer:
    """Read what is answered to the `number`th request of a recording."""
    given = asked.answer or {}
    headers = [(str(name), str(value)) for name, value in given.get("headers", ())]
    pieces, kind, whole = _read_pieces(given, asked, number)
    if kind and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", kind))
    return Answer(
        given.get("status", 200),
        tuple(headers),
        pieces,
        whole,
        given.get("gap", 0) / 1000,
        given.get("hold"),
        bool(given.get("open")),
        tuple(
            (status, tuple((name, value) for name, value in fields))
            for status, fields in given.get("interim", ())
        ),
    )


def _read_pieces(
    given: Mapping[str, Any], asked: Asked, number: int
) -> tuple[tuple[bytes, ...], str, bool]:
    if "pieces" in given:
        made = tuple(
            b"a" * piece["bytes"] if isinstance(piece, dict) else str(piece).encode()
            for piece in given["pieces"]
        )
        return made, "application/octet-stream", False
    if given.get("empty"):
        return (), "", True
    if "text" in given:
        return (str(given["text"]).encode(),), "text/plain", True
    told = given.get("json", {"answer": number})
    if "json" not in given and asked.rpc_id is not None:
        told = {"jsonrpc": "2.0", "id": asked.rpc_id, "result": told}
    return (json.dumps(told).encode(),), "application/json", True


def hosts_of(cases: Any) -> Iterator[str]:
    """Give every name of a host in a file of cases."""
    if isinstance(cases, Mapping):
        for value in cases.values():
            yield from hosts_of(value)
    elif isinstance(cases, list):
        for value in cases:
            yield from hosts_of(value)
    elif isinstance(cases, str):
        yield from re.findall(r"https?://([A-Za-z0-9.-]+)", cases)
        yield from re.findall(r"^(?:connect|tls|hello|distrust) ([A-Za-z0-9.-]+)", cases)
        yield from re.findall(r"^([a-z0-9.-]+\.test)(?::\d+)?$", cases)
