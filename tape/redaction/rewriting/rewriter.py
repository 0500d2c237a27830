"""Apply the rules of now to the exchanges, messages and texts of a stored run.

Rules:

1. A placeholder that stands in the run stays as it is. Spans tell of those in bodies, targets and messages; of header fields
   and query keys the redactions of the exchange tell, by place and kind.
2. What is found beside them is replaced by the placeholder that a recording would have made, and told of in the same way.
3. Whoever rewrites a run reads it twice. The first time, secrets in declared places are learned; the second time, they are
   known from the first exchange on. So what was said before it was known goes, too.
4. Of a text without spans (an event, the reason of a fault) nothing tells where placeholders stand. What reads as one is one; of a text that
   a rewrite has changed, and that is remembered by its hash, whatever looks like a secret is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from blake3 import blake3

from ....config.schema import KeepRule, RedactRule
from ...exchange import (
    BODY,
    HEADER,
    TARGET,
    Exchange,
    Headers,
    Interim,
    Message,
    RedactedText,
    Redaction,
    Request,
    Response,
    Secret,
    WebSocketSummary,
)
from ...records.content_coding import undo_coding, undo_what_came
from ...records.events import Event, EventKind
from ...records.rewrite_tombstones import Rewritten
from ...records.unterminated_content_coding import write_without_end
from ..credential_fields import CONFIGURED, SECRET
from ..learned import MAX_VALUES, Learned
from ..placeholders.mend_checksums import mend_checksums
from ..placeholders.placeholder import Placeholders, unescape
from ..redact_heads import find_apart, in_order
from ..redact_large_body import Piece, Stream
from ..redactor import Redactor, _codings, _kind, fit_head, list_body_values, with_digests
from ..search import Kind, Searched, Span
from ..secrets_in_heads import Heads, Pair
from .find_rule import RuleNames
from .merge_spans import Merged, merge

_TEXT_HASH_BYTES = 8
_NAMES = frozenset(
    (
        "id",
        "mode",
        "parent",
        "method",
        "request_class",
        "verdict",
        "match",
        "placeholders",
    )
)
"""Keys of events whose values are names of ours, or of runs; keys of what is inside of them are not."""


class Place(NamedTuple):
    """A place whose value is replaced, and the rule by which it is."""

    place: str
    rule: str


class _Collector(Placeholders):
    """Notes what would be replaced, and replaces it by zeros."""

    def __init__(self) -> None:
        super().__init__(b"collector")
        self.found: list[bytes] = []

    def of(self, value: bytes) -> bytes:
        self.found.append(value)
        return bytes(len(value))


class Rewriter(Redactor):
    """Redacts what is stored; one for a run and what plays it, with the store's key."""

    def __init__(
        self, key: bytes, rules: Sequence[RedactRule] = (), kept: Sequence[KeepRule] = ()
    ) -> None:
        """Take the store's key and the rules of now."""
        super().__init__(key, rules, kept)
        self._names = RuleNames(rules, kept)
        self._collector = _Collector()
        self._told_heads = Heads(self._collector, Learned(), rules, kept)
        self._origins: dict[bytes, str] = {}
        """Rules by the values that were found by them."""
        self._urls: dict[str, tuple[str, str]] = {}
        """URLs of now and rules, by the URLs of before."""
        self._plain_keys: set[str] = set()
        """Members of events whose names are of the format."""
        self._done: set[bytes] = set()
        self._places: dict[Place, bytes] = {}
        """Of what is being redacted: places, each with the text in which a secret was."""
        self.texts: dict[bytes, None] = {}
        """Hashes of texts that were changed since this was emptied."""

    @classmethod
    def of(cls, redactor: Redactor) -> "Rewriter":
        """Make one with the key and the rules of a redactor, that makes the same placeholders."""
        made = cls(redactor._placeholders._key, *redactor._rules)
        made.make_as(redactor.key_id)
        return made

    def note(self, rewritten: Rewritten) -> None:
        """Take what the log says of an earlier rewrite."""
        self._done |= set(rewritten.texts)

    def note_command(self, event: Event) -> None:
        """Take what the log says of a command: which words of it have placeholders."""
        for word in list_replaced(event):
            self._done.add(_hash(word))
            self._keep_all_in(word)

    def exchange(self, exchange: Exchange) -> tuple[Exchange, tuple[Place, ...]]:
        """Give an exchange under the rules of now, and the places that change; itself where none does.

        Bodies in files are not looked at (`body`), nor messages.
        """
        self._begin()
        told = _by_place(exchange)
        self._keep_told(exchange, told)
        redactions = list[Redaction]()
        request = self._request(exchange.request, told, redactions)
        response = exchange.response
        warnings: tuple[str, ...] = tuple(
            self._text(text, "warnings") for text in exchange.warnings
        )
        if response is not None:
            response, more = self._response(response, told, redactions)
            warnings = (*warnings, *(one for one in more if one not in warnings))
        fault = exchange.fault
        if fault is not None:
            fault = replace(fault, text=self._text(fault.text, "fault"))
        new = replace(
            exchange,
            request=request,
            response=response,
            interim=self._interim(exchange.interim, told, redactions),
            fault=fault,
            reason=self._text(exchange.reason, "reason"),
            withheld=self._text(exchange.withheld, "withheld"),
            warnings=warnings,
            websocket=self._close(exchange.websocket),
        )
        places = self._end()
        if not places:
            return exchange, ()
        found = [one for one in dict.fromkeys(redactions) if one not in exchange.redactions]
        if request.url != exchange.request.url:
            self._urls[exchange.request.url] = request.url, places[0].rule
        return replace(new, redactions=(*exchange.redactions, *found)), places

    def asked(self, exchange: Exchange) -> Request:
        """Give the request of an exchange under the rules of now; itself where nothing changes."""
        self._begin()
        told = _by_place(exchange)
        self._keep_told(exchange, told)
        request = self._request(exchange.request, told, [])
        return request if self._end() else exchange.request

    def stored_message(self, message: Message, number: int) -> tuple[Message, tuple[Place, ...]]:
        """Give a message of a WebSocket under the rules of now, and what changes; see `exchange`."""
        self._begin()
        self._keep_spans(message.data, message.secrets)
        found = self.message(replace(message, secrets=()))
        merged = merge(message.data, _spans(message.secrets), found.data, _spans(found.secrets))
        self._note_fresh(f"message[{number}]", message.data, merged)
        places = self._end()
        if not places:
            return message, ()
        secrets = tuple(Secret(BODY, *span) for span in merged.spans)
        return replace(message, data=merged.data, secrets=secrets), places

    def event(self, event: Event) -> tuple[Event, tuple[Place, ...]]:
        """Give an event under the rules of now, and what changes; see `exchange`."""
        self._begin()
        data = self._walk(event.data, "")
        if event.kind is EventKind.MARKED and self._places:
            data["labels"] = order_labels(data["labels"])
        places = self._end()
        return (replace(event, data=data), places) if places else (event, ())

    def labels(self, labels: Iterable[str]) -> tuple[tuple[str, ...], tuple[Place, ...]]:
        """Give the labels of a run under the rules of now, and what changes; see `exchange`."""
        self._begin()
        new = order_labels([self._text(label, "labels") for label in labels])
        return new, self._end()

    def stored_text(self, text: str, place: str) -> tuple[str, tuple[Place, ...]]:
        """Give any text that is stored under the rules of now, and what changes; see `exchange`."""
        self._begin()
        new = self._text(text, place)
        return new, self._end()

    def file(
        self, data: bytes, placeholders: Iterable[tuple[int, int]], place: str
    ) -> tuple[bytes, tuple[tuple[int, int], ...], tuple[Place, ...]]:
        """Give the content of a file under the rules of now, where placeholders stand in it, and what changes; see `exchange`.

        placeholders: where they stand in it before, by first byte and size, as what is given.
        """
        self._begin()
        old = [Span(at, size, SECRET) for at, size in placeholders]
        for one in old:
            self._keep(data[one.at : one.at + one.size])
        found = self._search.search(data)
        after, spans = (found.data, found.spans) if found is not None else (data, ())
        merged = merge(data, old, after, spans)
        self._note_fresh(place, data, merged)
        return merged.data, tuple((one.at, one.size) for one in merged.spans), self._end()

    def body(
        self, headers: Headers, secrets: Iterable[Secret], place: str
    ) -> "BodyRewriter | None":
        """Begin a stored body that is read in pieces; None where it is coded, since those are not searched.

        headers, secrets: of its message.
        place: `request.body` or `response.body`.
        """
        self._begin()
        if _codings(headers):
            return None
        return BodyRewriter(self, headers, [one for one in secrets if one.part == BODY], place)

    # ---- what stays ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._places = {}
        # Of very many learned values those before are forgotten.
        for value in self._origins:
            self._learned.add(value)

    def _end(self) -> tuple[Place, ...]:
        """Note by which rules the values that are new were found; give the places that change."""
        plain = {data: unescape(data) for data in self._places.values()}
        for value in self._learned.values if self._places else ():
            if value in self._origins or len(self._origins) >= MAX_VALUES:
                continue
            if self._placeholders.of(value) == value:
                continue
            for place, data in self._places.items():
                if value in data or value in plain[data]:
                    self._origins[value] = place.rule
                    break
        return tuple(self._places)

    def _keep(self, value: bytes) -> None:
        self._placeholders.keep(value)
        self._placeholders.keep(unescape(value))

    def _keep_spans(self, data: bytes, secrets: Iterable[Secret], part: str = BODY) -> None:
        for one in secrets:
            if one.part == part:
                self._keep(data[one.at : one.at + one.size])

    def _keep_told(self, exchange: Exchange, told: Mapping[str, set[str]]) -> None:
        """Keep the placeholders that stand in an exchange."""
        request, response = exchange.request, exchange.response
        target = request.target.encode("latin-1", "replace")
        self._keep_spans(target, request.secrets, TARGET)
        self._keep_spans(request.body, request.secrets)
        for at, pair in self._pairs(target).items():
            if pair.kind in told.get(f"request.query.{pair.name}", ()):
                value = target[at : at + pair.size]
                for one in value.split(b":") if pair.name == "userinfo" else (value,):
                    self._keep(one)
        self._keep_fields(request.headers, "request.header.", told)
        self._keep_fields(request.trailers, "request.trailer.", told)
        for interim in exchange.interim:
            self._keep_fields(interim.headers, "response.interim.", told)
        if response is not None:
            for value in list_body_values(response):
                self._keep(value)
            self._keep_fields(response.headers, "response.header.", told)
            self._keep_fields(response.trailers, "response.trailer.", told)

    def _keep_fields(self, headers: Headers, prefix: str, told: Mapping[str, set[str]]) -> None:
        for name, value in headers:
            kinds = told.get(_place(prefix, name))
            if kinds is None:
                continue
            now, values = self._declared(name, value, prefix)
            if now and kinds.issuperset(now):
                for one in values:
                    self._keep(one)
            if SECRET in kinds:
                self._keep_found(value)

    def _pairs(self, target: bytes) -> dict[int, Pair]:
        """Find the values of declared query keys in a target, by their places."""
        # A path that begins with two slashes names no host.
        extra = max(0, len(target) - len(target.lstrip(b"/")) - 1)
        return {pair.at + extra: pair for pair in self._told_heads.pairs(target[extra:])}

    def _declared(
        self, name: bytes, value: bytes, prefix: str
    ) -> tuple[tuple[str, ...], list[bytes]]:
        """Give the kinds of what a field's name says is a secret, and the values."""
        self._collector.found = []
        in_request = prefix.startswith("request")
        _, kinds, _ = self._told_heads.field(name, value, in_request=in_request)
        return kinds, self._collector.found

    def _keep_all_in(self, data: bytes) -> None:
        """Keep what looks like a secret in a text that is known to hold placeholders, and what is in places of secrets there."""
        self._keep_found(data)
        kinds, values = self._declared(b"", data, "")
        if CONFIGURED not in kinds:
            for one in values:
                self._keep(one)

    def _keep_made_in(self, data: bytes) -> None:
        """Keep what reads as a placeholder in a text of which no more is known; of a URL the user, too, whose password does."""
        for one in self.find_made(data):
            value = data[one.at : one.at + one.size]
            for part in (value, *value.split(b":")):
                self._keep(part)

    def _keep_found(self, data: bytes) -> None:
        """Keep what reads like a secret in a text that is known to hold placeholders."""
        for kind, value in self._names.kinds(data):
            plain = unescape(value)
            if kind != CONFIGURED and not any(one in plain for one in self._origins):
                self._keep(value)

    # ---- what changes --------------------------------------------------------------------------

    def _note_place(self, place: str, kinds: Iterable[str], value: bytes, data: bytes) -> None:
        """Note that a value in a text is replaced."""
        for kind in kinds:
            inside = data if kind == CONFIGURED else value
            for rule in self._names.find(place, (kind,), inside, self._origins):
                self._places.setdefault(Place(place, rule), data)

    def _note_values(self, found: Iterable[tuple[str, Span]], data: bytes) -> None:
        """Note the values of one text that are replaced, each with its place.

        All that are of one kind have the same rule, unless only their bytes tell it. So the rule is asked once: a text may have
        very many, and a rule of the configuration is found by searching all of the text.
        """
        asked = dict.fromkeys(
            (place, one.kind, data[one.at : one.at + one.size] if one.kind == SECRET else b"")
            for place, one in found
        )
        for place, kind, value in asked:
            self._note_place(place, (kind,), value, data)

    def _note_fresh(self, place: str, data: bytes, merged: Merged) -> list[Redaction]:
        self._note_values(((place, one) for one in merged.fresh), data)
        return [Redaction(place, one.kind) for one in merged.fresh]

    def _request(
        self, request: Request, told: Mapping[str, set[str]], redactions: list[Redaction]
    ) -> Request:
        head, _ = self.head(replace(request, secrets=()))
        target, secrets = self._target(request, head, redactions)
        headers = self._fields_of(
            request.headers, head.headers, "request.header.", told, redactions
        )
        trailers = self._fields_of(
            request.trailers, head.trailers, "request.trailer.", told, redactions
        )
        new = replace(
            request,
            target=target,
            headers=headers,
            trailers=trailers,
            names=tuple((kind, self._text(text, "names")) for kind, text in request.names),
        )
        inside = [one for one in request.secrets if one.part == BODY]
        if request.body:
            found, places = self.request_body(replace(new, secrets=()), request.body)
            merged = merge(request.body, _spans(inside), found.body, _spans(found.secrets))
            if not merged.fresh and len(merged.data) != len(request.body):
                # The secret was beside the content of a coding.
                redactions += places
                new = replace(new, headers=found.headers, body=merged.data)
            elif merged.fresh:
                plain = _plain(request.body, request.headers)
                redactions += self._note_fresh("request.body", plain, merged)
                new = replace(new, headers=found.headers, body=merged.data)
                inside = [Secret(BODY, *span) for span in merged.spans]
        old = [one for one in request.secrets if one.part.startswith(HEADER)]
        fresh = [one for one in head.secrets if one.part.startswith(HEADER)]
        fresh = find_apart(fresh, old)
        return replace(new, secrets=(*in_order([*old, *fresh]), *secrets, *inside))

    def _target(
        self, request: Request, head: Request, redactions: list[Redaction]
    ) -> tuple[str, list[Secret]]:
        old = [one for one in request.secrets if one.part == TARGET]
        if len(head.target) != len(request.target):
            return request.target, old
        before = request.target.encode("latin-1", "replace")
        after = head.target.encode("latin-1", "replace")
        pairs = self._pairs(before)
        alone = [Span(at, pair.size, pair.kind) for at, pair in pairs.items() if pair.alone]
        found = sorted({*alone, *_spans(head.secrets, TARGET)})
        merged = merge(before, _spans(old, TARGET), after, found)
        target = list(request.target)
        places = list[tuple[str, Span]]()
        for one in merged.fresh:
            target[one.at : one.at + one.size] = head.target[one.at : one.at + one.size]
            pair = pairs.get(one.at)
            place = f"request.query.{pair.name}" if pair is not None else "request.target"
            redactions.append(Redaction(place, one.kind if pair is not None else SECRET))
            places.append((place, one))
        self._note_values(places, before)
        secrets = [Secret(TARGET, *span) for span in merged.spans if span not in alone]
        return "".join(target), secrets

    def _fields_of(
        self,
        before: Headers,
        after: Headers,
        prefix: str,
        told: Mapping[str, set[str]],
        redactions: list[Redaction],
    ) -> Headers:
        new = list(before)
        for at, ((name, value), (_, redacted)) in enumerate(zip(before, after, strict=True)):
            if redacted == value:
                continue
            place = _place(prefix, name)
            kinds, _ = self._declared(name, value, prefix)
            if not kinds and told.get(place, set()) - {SECRET}:
                continue  # all of it is the placeholder of a rule of before
            new[at] = name, redacted
            kinds = kinds or (SECRET,)
            redactions += [Redaction(place, kind) for kind in kinds]
            self._note_place(place, kinds, value, value)
        return tuple(new)

    def _response(
        self, response: Response, told: Mapping[str, set[str]], redactions: list[Redaction]
    ) -> tuple[Response, tuple[str, ...]]:
        found, places, warnings = self.response(replace(response, secrets=()))
        after, _ = self.response_headers(response.headers)
        after_trailers, _ = self.response_headers(response.trailers, "response.trailer.")
        headers = self._fields_of(response.headers, after, "response.header.", told, redactions)
        trailers = self._fields_of(
            response.trailers, after_trailers, "response.trailer.", told, redactions
        )
        new = replace(response, headers=headers, trailers=trailers)
        if found.reason != response.reason and "response.reason" not in told:
            self._note_place("response.reason", (SECRET,), response.reason, response.reason)
            redactions.append(Redaction("response.reason", SECRET))
            new = replace(new, reason=found.reason)
        merged = merge(response.body, _spans(response.secrets), found.body, _spans(found.secrets))
        if not merged.fresh and (not warnings or found.body == response.body):
            return new, ()
        if not merged.fresh:  # the secret was beside the content of a coding
            redactions += [one for one in places if one.place == "response.body"]
        coded = bool(_codings(found.headers))
        plain = _plain(response.body, response.headers, coded=bool(warnings) and coded)
        redactions += self._note_fresh("response.body", plain, merged)
        secrets = tuple(Secret(BODY, *span) for span in merged.spans)
        if warnings:  # its coding was undone, or is another one
            headers = fit_head(replace(response, headers=headers), coded, len(found.body))
        body = mend_checksums(response.body, merged.data)
        new = replace(new, headers=headers, body=body, chunks=found.chunks, secrets=secrets)
        new, digests = with_digests(response, new)
        redactions += digests
        return new, warnings

    def _interim(
        self,
        answers: tuple[Interim, ...],
        told: Mapping[str, set[str]],
        redactions: list[Redaction],
    ) -> tuple[Interim, ...]:
        found, _ = self.interim(answers)
        new = []
        for one, other in zip(answers, found, strict=True):
            headers = self._fields_of(
                one.headers, other.headers, "response.interim.", told, redactions
            )
            reason = one.reason
            if other.reason != reason and "response.reason" not in told:
                self._note_place("response.reason", (SECRET,), reason, reason)
                redactions.append(Redaction("response.reason", SECRET))
                reason = other.reason
            new.append(one._replace(headers=headers, reason=reason))
        return tuple(new)

    def _close(self, websocket: WebSocketSummary | None) -> WebSocketSummary | None:
        if websocket is None or websocket.close is None:
            return websocket
        close = websocket.close
        answer = close.answer
        if answer is not None:
            answer = answer[0], self._text(answer[1], "close")
        return replace(
            websocket,
            close=replace(close, reason=self._text(close.reason, "close"), answer=answer),
        )

    # ---- texts ---------------------------------------------------------------------------------

    def _walk(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            if name in _NAMES:
                return value
            known = self._urls.get(value)
            if known is None:
                return self._text(value, name)
            self._places.setdefault(Place(name, known[1]), value.encode("utf-8", "surrogatepass"))
            return known[0]
        if isinstance(value, dict):
            return {
                self._key(key, name): self._walk(item, f"{name}.{key}".lstrip("."))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return tuple(self._walk(item, name) for item in value)
        return value

    def _key(self, key: str, name: str) -> str:
        """Give a member's own name, which may be a file's: most are names of the format, and are looked at once."""
        if key in self._plain_keys:
            return key
        now = self._text(key, name)
        if now == key and key.isidentifier():
            self._plain_keys.add(key)
        return now

    def _text(self, text: str, place: str) -> RedactedText:
        if not text:
            return RedactedText(text)
        data = text.encode("utf-8", "surrogatepass")
        if _hash(data) in self._done:
            self._keep_all_in(data)
        ((_, new),), _ = self.response_headers(((b"", data),), "")
        if new != data:
            self._keep_made_in(data)
            ((_, new),), _ = self.response_headers(((b"", data),), "")
        if new == data:
            return RedactedText(text)
        kinds, _ = self._declared(b"", data, "")
        self._note_place(place, kinds or (SECRET,), data, data)
        self.texts[_hash(new)] = None
        return RedactedText(new.decode("utf-8", "surrogatepass"))


class BodyRewriter:
    """One stored body that is read in pieces. Belongs to one thread at a time."""

    def __init__(
        self, rewriter: Rewriter, headers: Headers, secrets: list[Secret], place: str
    ) -> None:
        """Use `Rewriter.body` instead."""
        self._rewriter = rewriter
        self._old = _spans(secrets)
        self._place = place
        self._search = rewriter._search
        kind = _kind(headers)._replace(answer=place.startswith("response"))
        self._stream = Stream(self, kind)

    def feed(self, data: bytes) -> Piece:
        """Take the next piece of what is stored; give what is sure by now."""
        return self._stream.feed(data)

    def finish(self) -> tuple[Piece, tuple[Secret, ...], tuple[Place, ...]]:
        """Give the rest, where placeholders stand in the whole, and what has changed."""
        piece = self._stream.finish()
        return piece, tuple(self._stream.secrets), self._rewriter._end()

    def search(self, data: bytes, kind: Kind) -> Searched | None:
        """Search a window of it, for the stream; placeholders that stand there stay."""
        start, end = self._stream.held_at, self._stream.held_at + len(data)
        old = []
        for one in self._old:
            first, last = max(one.at, start), min(one.at + one.size, end)
            if first < last:
                old.append(Span(first - start, last - first, one.kind, one.coded))
                self._rewriter._keep(data[first - start : last - start])
        found = self._search.search(data, kind)
        after, spans = (found.data, found.spans) if found is not None else (data, ())
        merged = merge(data, old, after, spans)
        self._rewriter._note_fresh(self._place, data, merged)
        return Searched(merged.data, merged.spans) if merged.spans else None


def list_replaced(event: Event) -> Iterator[bytes]:
    """Yield the words of a command that have placeholders, as its recording says."""
    words = event.data.get("command", ())
    for at in event.data.get("command_replaced", ()):
        if 0 <= at < len(words):
            yield words[at].encode("utf-8", "surrogatepass")


def order_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Give labels in order, each once: two may have become one."""
    return tuple(sorted(set(labels)))


def _place(prefix: str, name: bytes) -> str:
    return prefix + name.decode("latin-1").lower()


def _spans(secrets: Iterable[Secret], part: str = BODY) -> list[Span]:
    return [Span(*one[1:]) for one in secrets if one.part == part]


def _hash(data: bytes) -> bytes:
    return blake3(data).digest(_TEXT_HASH_BYTES)


def _by_place(exchange: Exchange) -> dict[str, set[str]]:
    """Give the kinds of what was replaced in an exchange, by place."""
    told: dict[str, set[str]] = {}
    for place, kind in exchange.redactions:
        told.setdefault(place, set()).add(kind)
    return told


def _plain(body: bytes, headers: Headers, *, coded: bool = False) -> bytes:
    """Give a body as it is searched.

    coded: whether it keeps its coding: then give it as what is found is placed.
    """
    codings = _codings(headers)
    if not codings:
        return body
    coding = b",".join(codings)
    plain = undo_coding(body, coding)
    plain = undo_what_came(body, coding) if plain is None else plain
    if plain is None:
        return body
    written = write_without_end(plain, coding, body, broken=False) if coded else None
    return plain if written is None else written.data
