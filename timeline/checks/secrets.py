"""Search a store for text that looks like a secret, placeholders aside: a check of the redaction.

Looked at are heads, bodies with their codings undone and the compressed files in them, messages of WebSockets, texts of events and the agent's
command, of every run or of one: with the formats and names that redaction knows, under the rules of now, and with the
detectors of detect-secrets, where it is installed. Those of high entropy are left out, since ids are random too. A value is never
shown, only where it stands.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import open_body
from ...tape.exchange import BODY, TARGET, Exchange, Headers, Request, Secret
from ...tape.matching.traceable_values import answer_body
from ...tape.records.events import EventKind
from ...tape.redaction.credential_fields import is_credential
from ...tape.redaction.placeholders.same_form_value import reads_as_made
from ...tape.redaction.redactor import Redactor
from ...tape.redaction.rewriting.rewriter import list_replaced
from ..receipts.safe_terminal_text import plain
from .packed_files import list_packed

_BLANK = b"*"
"""In the place of each character of a placeholder; no detector takes a row of it for a value."""
_LINE = 4096
_OVERLAP = 512
_NAME = 120
_LEFT_OUT = frozenset(
    (
        *("Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"),
        "PrivateKeyDetector",  # takes the line before a key for the key; ours looks behind it
    )
)

Detect = Callable[[str], set[str]]
"""Gives the names of what a text holds."""


class Finding(NamedTuple):
    """A place that holds what reads like a secret."""

    run: str
    seq: int
    """0 for what belongs to the run itself."""
    place: str
    kind: str

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {"run": self.run, "seq": self.seq, "place": self.place, "kind": self.kind}


def find_secrets(
    store: Store,
    runs: Iterable[RunInfo],
    redactor: Callable[[], Redactor],
    detect: Detect,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Iterator[Finding]:
    """Find what reads like a secret in runs of a store, in their order. Reads all of them; blocks.

    redactor: makes one that has learned nothing.
    Raises: LogCorrupt.
    """
    for run in runs:
        look = _Look(redactor(), detect)
        known = _list_replaced_words(store, run)
        for kind in look.stored(_blank_known(run.agent, known)):
            yield Finding(run.id, 0, "agent", kind)
        for exchange in store.exchanges.all(run):
            progress(exchange.seq, run.exchanges)
            known |= _placeholders(exchange)
            for place, kind in dict.fromkeys(_exchange(look, store, run, exchange)):
                yield Finding(run.id, exchange.seq, place, kind)
        for event in store.events.all(run):
            for name, text in _texts(event.data):
                text = _blank_known(text, known)
                if event.kind is EventKind.MARKED:
                    text = _blank_label(text)
                for kind in look.url(text) if "://" in text else look.stored(text):
                    place = f"event {event.number} {event.kind.value} {name}"
                    yield Finding(run.id, event.data.get("seq", 0), place, kind)


class _Look:
    def __init__(self, redactor: Redactor, detect: Detect) -> None:
        self.redactor = redactor
        self._detect = detect

    def text(self, data: bytes, headers: Headers = ()) -> list[str]:
        """Give the kinds of what a text holds."""
        request = Request("POST", "https", "a.example", 443, "/", "HTTP/1.1", headers)
        _, places = self.redactor.request_body(request, data)
        found = dict.fromkeys(one.kind for one in places)
        return [*found, *sorted(self._detect(data.decode("utf-8", "replace")))]

    def url(self, url: str) -> list[str]:
        """Give the kinds of what a URL holds, values of declared query keys aside."""
        data = self.redactor.without_declared(url.encode("utf-8", "surrogatepass"))
        return self.text(_blanked(data, self.redactor.find_made(data)))

    def stored(self, text: str) -> list[str]:
        """Give the kinds of what a text holds of which nothing tells where its placeholders are: what reads as one is one."""
        data = text.encode("utf-8", "surrogatepass")
        return self.text(_blanked(data, self.redactor.find_made(data)))


def _exchange(
    look: _Look, store: Store, run: RunInfo, exchange: Exchange
) -> Iterator[tuple[str, str]]:
    told = {one.place for one in exchange.redactions}
    request, response = exchange.request, exchange.response
    _, places = look.redactor.head(replace(request, target=_blank_target(request), secrets=()))
    for place, kind in places:
        if place not in told:
            yield place, kind
    asked = _body(request)
    yield from (("request.body", kind) for kind in look.text(asked, request.headers))
    yield from _packed(look, "request.body", asked)
    _, places = look.redactor.interim(exchange.interim)
    yield from ((one.place, one.kind) for one in places if one.place not in told)
    if response is not None:
        _, places = look.redactor.response_headers(response.headers)
        yield from ((one.place, one.kind) for one in places if one.place not in told)
        _, places = look.redactor.response_headers(response.trailers, "response.trailer.")
        yield from ((one.place, one.kind) for one in places if one.place not in told)
        # Where placeholders are is told of the body as it is kept, which may have a coding.
        body = answer_body(replace(response, body=_blanked(response.body, response.secrets)))
        yield from (("response.body", kind) for kind in look.text(body, response.headers))
        yield from _packed(look, "response.body", body)
        if response.spilled is not None:
            pieces = (data for _, data in store.bodies.read(response.spilled))
            for kind in _spilled(look, pieces, response.secrets):
                yield "response.body", kind
    if request.spilled is not None:
        pieces = (data for _, data in store.bodies.read(request.spilled))
        yield from (("request.body", kind) for kind in _spilled(look, pieces, request.secrets))
    if exchange.websocket is not None:
        for number, message in enumerate(store.messages.all(run, exchange.seq)):
            for kind in look.text(_blanked(message.data, message.secrets)):
                yield f"message[{number}]", kind


_SLICE = 256 * 1024


def _packed(look: _Look, place: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Look into a compressed file that is a body."""
    for file in list_packed(body):
        name = plain(look.redactor.redact_text(file.name), _NAME)
        for at in range(0, len(file.data), _SLICE):
            for kind in look.text(file.data[max(0, at - _OVERLAP) : at + _SLICE]):
                yield f"{place} {name}", kind


def _spilled(look: _Look, pieces: Iterable[bytes], secrets: tuple[Secret, ...]) -> set[str]:
    found: set[str] = set()
    held, start = b"", 0
    for piece in (*pieces, None):
        held += piece or b""
        if piece is None or len(held) >= _SLICE:
            inside = [one._replace(at=one.at - start) for one in secrets]
            found.update(look.text(_blanked(held, inside)))
            start += max(0, len(held) - _OVERLAP)
            held = held[-_OVERLAP:]
    return found


def _body(request: Request) -> bytes:
    if request.body and any(secret.part == BODY for secret in request.secrets):
        return _blanked(request.body, request.secrets)
    return open_body(request)[0]


def _blanked(data: bytes, secrets: Iterable[Secret]) -> bytes:
    for one in secrets:
        first, last = max(0, one.at), min(one.at + one.size, len(data))
        if one.part == BODY and first < last:
            data = data[:first] + _BLANK * (last - first) + data[last:]
    return data


def _blank_target(request: Request) -> str:
    target = request.target
    for one in request.secrets:
        if one.part == TARGET:
            target = target[: one.at] + "*" * one.size + target[one.at + one.size :]
    return target


def _placeholders(exchange: Exchange) -> set[str]:
    """Give the placeholders that may stand in events of an exchange."""
    request = exchange.request
    return {
        request.target[one.at : one.at + one.size]
        for one in request.secrets
        if one.part == TARGET and one.size
    }


def _blank_label(label: str) -> str:
    """Blank the words of a label that read as a placeholder: where those are is not told."""
    words = label.split("/")
    return "/".join("*" * len(one) if reads_as_made(one.encode()) else one for one in words)


def _list_replaced_words(store: Store, run: RunInfo) -> set[str]:
    """Give the words of a command in which its recording has put placeholders."""
    noted = store.events.of_kind(run, EventKind.NOTED)
    return {word.decode("utf-8", "surrogatepass") for one in noted for word in list_replaced(one)}


def _blank_known(text: str, known: set[str]) -> str:
    for placeholder in known:
        text = text.replace(placeholder, "*" * len(placeholder))
    return text


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield name, key
            yield from _texts(item, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, name)


def detect_nothing(_text: str) -> set[str]:
    """Stand in for the detectors of detect-secrets where it is not installed."""
    return set()


def find_detectors() -> Detect | None:
    """Give the detectors of detect-secrets; None where it is not installed."""
    try:
        from detect_secrets.settings import default_settings, get_plugins
    except ImportError:
        return None
    with default_settings():
        plugins = [one for one in get_plugins() if type(one).__name__ not in _LEFT_OUT]

    def detect(text: str) -> set[str]:
        found: set[str] = set()
        for line in _lines(_RUN.sub(_shorter, text)):
            for plugin in plugins:
                for secret in plugin.analyze_line(filename="", line=line, line_number=1):
                    value = secret.secret_value or ""
                    loose = type(plugin).__name__ in ("KeywordDetector", "BasicAuthDetector")
                    if value.strip("*") and (not loose or is_credential(value.encode(), 8)):
                        found.add(f"detect-secrets: {secret.type}")
        return found

    return detect


_RUN = re.compile(r"(.)\1{40,}")
"""Some detectors take a time that grows with the square of such a run."""


def _shorter(run: re.Match[str]) -> str:
    return run[1] * 40


_BREAK = re.compile(r"\n|\\n|(?<=,)(?=\")")
"""Lines, also those of a text in JSON, and members of an object."""


def _lines(text: str) -> Iterator[str]:
    for line in _BREAK.split(text):
        for at in range(0, max(1, len(line)), _LINE):
            yield line[at : at + _LINE + _OVERLAP]


def render_findings(found: list[Finding], runs: int) -> str:
    """Show what was found, one line each, values never."""
    if not found:
        return f"no secrets in {runs} run{'' if runs == 1 else 's'}"
    lines = [f"{one.run} {one.seq or '-'} {one.place}: {one.kind}" for one in found]
    return "\n".join([*lines, f"{len(found)} places in {runs} run{'' if runs == 1 else 's'}"])
