"""One exchange, readable: what was asked and answered, a stream as it came, and what was decided on it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from ...tape.canonical.canonical_request import BodyKind, open_body
from ...tape.dialects.framing.sse import read_events
from ...tape.exchange import Exchange, HttpRequest, HttpResponse, Message, Secret
from ...tape.headers.shipped_lists import KEYS_OF_EFFECTS
from ...tape.matching.traceable_values import answer_body
from ...timeline.blame.exchange_values import answered_leaves, describe_body
from ...timeline.reading.exact_body_values import read_form, read_json, says_more
from ...timeline.receipts.effects import describe_outcome
from .safe_text import Shown, safe_block, safe_short, show_block, show_bytes, show_time
from .value_tree import LINES, Line, list_pairs, list_value, scalar_line

PAUSE_US = 250_000
"""A pause of a stream from which on it is marked."""
_PIECES = 300
_FIELDS = 100
_VALUE = 500
_READ = 4 * 1024 * 1024
"""Bytes of a body that are parsed for a page."""
_PIECE = 400
_TOLD = KEYS_OF_EFFECTS | {b"content-type", b"content-encoding", b"location", b"retry-after"}
"""Header fields that say what a body is, where to, when again, and whether a second effect is a retry."""
_TRAILERS = 20


@dataclass(slots=True)
class Piece:
    """A piece of a stream."""

    at_us: int
    size: int
    text: str
    pause_us: int = 0
    """Time since the piece before, where that is a pause."""
    from_client: bool = False


@dataclass(slots=True)
class Side:
    """A request or an answer."""

    head: str
    fields: list[tuple[str, str]]
    more_fields: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)
    """What is shown without a look at all fields: those of `_TOLD`, the protocol, and trailers."""
    lines: list[Line] = field(default_factory=list)
    """Of a body with values."""
    text: Shown | None = None
    """Of a body without."""
    note: str = ""
    """What is to be said of a body that is not shown."""
    pieces: list[Piece] = field(default_factory=list)
    more_pieces: int = 0
    body_bytes: int = 0
    replaced: str = ""
    """Kinds of the placeholders in it, each with how many there are."""

    @property
    def pauses_us(self) -> list[int]:
        """Lengths of the pauses between its pieces, the longest first."""
        return sorted((one.pause_us for one in self.pieces if one.pause_us), reverse=True)


@dataclass(slots=True)
class ExchangeView:
    """One exchange."""

    exchange: Exchange
    outcome: str
    request: Side
    answer: Side | None
    facts: list[tuple[str, str]]
    notes: list[str]


def view_exchange(exchange: Exchange, messages: list[Message] | None = None) -> ExchangeView:
    """Read an exchange for a page.

    messages: those of a WebSocket, the first ones.
    """
    request = exchange.request
    asked = _side(request, f"{request.method} {request.url}")
    body, content = open_body(request)
    if content is not None and content.kind is BodyKind.FORM and len(body) <= _READ:
        form = read_form(body)
        _note_lost(asked, form.lost)
        asked.lines = [] if form.lost else list_pairs(form.value, "form ")
    if not asked.lines:
        _fill(asked, body, describe_body(request))
    answer = None
    response = exchange.response
    if response is not None:
        reason = response.reason.decode("latin-1")
        answer = _side(response, f"{response.status} {reason}".strip())
        answer.told[:0] = [
            ("before it", safe_short(f"{one.status} {one.reason.decode('latin-1')}", 100))
            for one in exchange.interim[:_TRAILERS]
        ]
        _fill_answer(answer, exchange)
    if messages is not None:
        answer = answer or Side("", [])
        answer.pieces, answer.lines, answer.text = [], [], None
        _add_messages(answer, exchange, messages)
    return ExchangeView(
        exchange,
        safe_short(describe_outcome(exchange)),
        asked,
        answer,
        _facts(exchange),
        _notes(exchange),
    )


def _side(message: HttpRequest | HttpResponse, head: str) -> Side:
    fields = [
        (
            safe_short(name.decode("latin-1"), 100),
            safe_short(value.decode("utf-8", "replace"), _VALUE),
        )
        for name, value in message.headers[:_FIELDS]
    ]
    return Side(
        safe_short(head, 2000),
        fields,
        max(0, len(message.headers) - _FIELDS),
        _told(message),
        body_bytes=message.body_bytes,
        replaced=_kinds(message.secrets),
    )


def _told(message: HttpRequest | HttpResponse) -> list[tuple[str, str]]:
    protocol = [] if message.http_version == "HTTP/1.1" else [("protocol", message.http_version)]
    fields = [pair for pair in message.headers[:_FIELDS] if pair[0].lower() in _TOLD]
    told = [(name.decode("latin-1").lower(), value) for name, value in fields]
    told += [
        (f"trailer {name.decode('latin-1')}", value) for name, value in message.trailers[:_TRAILERS]
    ]
    return protocol + [
        (safe_short(name, 100), safe_short(value.decode("utf-8", "replace"), _VALUE))
        for name, value in told
    ]


def _kinds(secrets: Sequence[Secret]) -> str:
    counts = Counter(one.kind for one in secrets)
    return safe_short(
        ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts.items())
    )


def _note_lost(side: Side, lost: tuple[str, ...]) -> None:
    """Say why a body is shown as it came."""
    if lost:
        side.note = f"shown as it came: {'; '.join(lost)}"


def _fill_values(side: Side, body: bytes, root: str) -> bool:
    """Show the values of a body of JSON; False where it is none, or says more than its values do."""
    tree = read_json(body) if len(body) <= _READ else None
    if tree is None:
        return False
    _note_lost(side, tree.lost)
    if not tree.lost:
        side.lines = list_value(tree.value, root)
    return not tree.lost


def _fill(side: Side, body: bytes, told: str) -> None:
    """Show a body: its values, or its text."""
    if not body:
        side.note = told if "file of its own" in told else "no body"
        return
    if not side.note and _fill_values(side, body, "$"):
        return
    try:
        text = body[: _READ // 16].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(body[: _READ // 16]) - 4:
            side.note = f"{show_bytes(len(body))} that are no text"
            side.text = Shown(body[:256].hex(" "), max(0, len(body) - 256))
            return
        text = body[: error.start].decode("utf-8", "replace")
    side.text = show_block(text)
    rest = len(body) - min(len(body), _READ // 16)
    if rest:
        side.text = Shown(side.text.text, side.text.left_out + rest)


def _fill_answer(side: Side, exchange: Exchange) -> None:
    response = exchange.response
    assert response is not None
    body = answer_body(response)
    if response.chunks and len(response.chunks) > 1:
        _add_pieces(side, exchange)
    if not body:
        _fill(side, b"", describe_body(response))
        return
    if _fill_values(side, body, "answer $"):
        return
    if len(body) <= _READ and not side.note:
        found = (
            one
            for one in answered_leaves(exchange, response)
            if not one.place.startswith("header ") and not one.is_name
        )
        leaves = list(islice(found, LINES + 1))
        if response.is_events and any(one.place.startswith("event ") for one in leaves):
            _note_lost(side, _find_lost_event(body))
        if not side.note and any(one.place != "body" for one in leaves):
            side.lines = [
                scalar_line(one.value, f"answer {one.place}", safe_short(one.place, 120))
                for one in leaves[:LINES]
            ]
            if len(leaves) > LINES:
                side.lines.append(Line(0, "", "", more=1 + sum(1 for _ in found)))
            return
    _fill(side, body, describe_body(response))


def _find_lost_event(body: bytes) -> tuple[str, ...]:
    """Say what the values of the first event leave out that does not say what its bytes do."""
    for number, event in enumerate(read_events(body), 1):
        if why := says_more(event.data):
            return (f"event {number}: {why}",)
    return ()


def _add_pieces(side: Side, exchange: Exchange) -> None:
    """Give a stream as it came: each piece with its time, pauses marked."""
    response = exchange.response
    assert response is not None
    at, before = 0, response.head_us
    for chunk in response.chunks[:_PIECES]:
        data = response.body[at : at + chunk.size]
        pause = chunk.at_us - before
        side.pieces.append(
            Piece(
                chunk.at_us,
                chunk.size,
                safe_block(data[:_PIECE].decode("utf-8", "backslashreplace")).strip("\n"),
                pause if pause >= PAUSE_US else 0,
            )
        )
        at, before = at + chunk.size, chunk.at_us
    side.more_pieces = max(0, len(response.chunks) - _PIECES)


def _add_messages(side: Side, exchange: Exchange, messages: list[Message]) -> None:
    before = 0
    for message in messages[:_PIECES]:
        pause = message.at_us - before if before else 0
        text = safe_block(message.data[:_PIECE].decode("utf-8", "backslashreplace"))
        side.pieces.append(
            Piece(
                message.at_us,
                len(message.data),
                text,
                pause if pause >= PAUSE_US else 0,
                message.from_client,
            )
        )
        before = message.at_us
    summary = exchange.websocket
    count = summary.messages if summary is not None else len(messages)
    side.more_pieces = max(0, count - len(side.pieces))


def _facts(exchange: Exchange) -> list[tuple[str, str]]:
    response = exchange.response
    facts = [
        ("class", exchange.request_class.value),
        ("verdict", f"{exchange.verdict.value}: {safe_short(exchange.reason)}"),
    ]
    if response is not None:
        facts.append(("head after", show_time(response.head_us)))
    facts.append(("known after", show_time(exchange.end_us)))
    facts.append(("fingerprint", exchange.fingerprint.hex()))
    if exchange.lane is not None and exchange.lane.overlaps:
        seqs = ", ".join(map(str, exchange.lane.overlaps[:20]))
        facts.append(("under way with", seqs))
    return facts


def _notes(exchange: Exchange) -> list[str]:
    notes = []
    repeat, gone = exchange.repeat, exchange.gone
    if repeat is not None:
        unseen = ", whose answer the client had not seen" if repeat.unseen else ""
        notes.append(f"{repeat.kind.value} of {repeat.of}{unseen}")
    if gone is not None:
        notes.append(f"the client left after {show_time(gone.at_us)}")
    if exchange.fault is not None:
        notes.append(
            safe_short(
                f"{exchange.fault.kind.value} in {exchange.fault.phase.value}: {exchange.fault.text}"
            )
        )
    close = exchange.websocket.close if exchange.websocket is not None else None
    if close is not None and any(close.reasons):
        notes.append(safe_short(f"closing frame: {' / '.join(filter(None, close.reasons))}"))
    if exchange.withheld:
        notes.append(safe_short(f"withheld from the client: {exchange.withheld}"))
    if exchange.redactions:
        places = ", ".join(one.place for one in exchange.redactions[:20])
        notes.append(safe_short(f"replaced by placeholders: {places}", 400))
    return notes + [safe_short(one) for one in exchange.warnings[:20]]
