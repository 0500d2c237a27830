"""The redactor: replaces every known secret with a placeholder before anything is written.

Rules:

1. What stands for a secret depends on the store's key and its value alone, and has its length and alphabet
   (`placeholder.py`).
2. What stands in a declared place (`credential_fields.py`, `secrets_in_heads.py`, `redact_heads.py`) is learned, and looked for everywhere
   else in the run: in bodies both ways, paths, queries, other header fields, messages (`search.py`).
3. What came (`RawRequest`, `RawResponse`) goes in, and what may be kept (`Request`, `Response`) comes out: nothing else makes these
   but the store's codec.
4. A body with a content coding that holds a secret is kept decoded, and its exchange says so; also if the secret is in bytes of the
   coding that are no content, as the name of a file in the head of gzip. An answer whose coding has no end, or is
   damaged, is kept in it without compression, so that its client reads as much and fails at the same place.
5. An answer whose body is another one states digests of that body, or none (`placeholders/body_digests.py`), and its exchange says so.

In matching, a redacted query value counts by its kind alone (`Redactor.redacted_query`), and so does every other
place (`Request.secrets`, `compare_placeholders.py`), so a tape plays under other credentials, with one exception: services also
call harmless things `key`. Its value counts unless the host is Google's or the value reads like a
credential; redacted it is in any case.

One redactor is for one run: what it has learned is that run's. It may be used from any thread.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from http import HTTPStatus

from ...config.parse_values import compile_regex
from ...config.schema import KeepRule, RedactRule
from ..exchange import (
    BODY,
    DIGEST,
    TARGET,
    UNLOADABLE,
    UNSEARCHED,
    Chunk,
    Close,
    Headers,
    HttpRequest,
    HttpResponse,
    Interim,
    Message,
    RawAnswer,
    RawInterim,
    RawMessage,
    RawRequest,
    RawResponse,
    RawWebSocketSummary,
    RedactedText,
    Redaction,
    Request,
    Response,
    Secret,
    WebSocketMessage,
    WebSocketSummary,
)
from ..records.content_coding import find_beside, is_broken, undo_coding, undo_what_came
from ..records.credential_parts import list_tokens
from ..records.redacted_value_spelling import InnerSecret, Spelling, list_texts_in_base64
from ..records.unterminated_content_coding import write_without_end
from .credential_fields import (
    GOOGLE,
    HEADERS,
    SECRET,
    is_query_secret,
    kind_of_header,
    nth_value,
)
from .finding.finder import finder
from .finding.literals import Later
from .finding.pattern_prefilter import KeptSets
from .learned import Learned, list_needles
from .placeholders.body_digests import FittedHeaders, fit_digests, leave_out_digests
from .placeholders.mend_checksums import mend_checksums
from .placeholders.placeholder import Keeper, MadeKeeper, Placeholders, unescape
from .placeholders.prefixes import prefix_size
from .placeholders.same_form_value import reads_as_made
from .placeholders.split_values import list_values
from .placeholders.unloadable_private_keys import has_unloadable_key
from .redact_heads import Fields, find_apart, in_order
from .redact_large_body import Stream
from .replaced_places import find_inner_secrets, find_own_fields
from .search import Kind, Search, Searched, Span, see_framing
from .secrets_in_heads import URLS, Heads, bare_name, blank, plain_name

_NONE: frozenset[str] = frozenset()
_FORM = b"application/x-www-form-urlencoded"
_STREAM = b"text/event-stream"
_LINES = frozenset(
    b"application/" + name
    for name in (
        *(b"x-ndjson", b"ndjson", b"jsonl", b"x-jsonl", b"jsonlines", b"x-jsonlines"),
        *(b"json-lines", b"json-seq", b"stream+json", b"x-json-stream"),
    )
)
"""What has a document of JSON in each line."""
_CODING = b"content-encoding"
_WORD_DIGITS = 16
_LEAST_GIVEN = 8
"""Bytes of a placeholder that is looked for."""
_LEAST_CODED = 16
"""Characters of base64 in which one is."""
_WORDS_OF_FIELD = re.compile(rb"[^\s\"'<>()\[\]{},;&?#@=]+(?:={1,2}(?![^\s\"'<>,;&]))?")
_FIELDS = ("response.header.", "response.trailer.")
"""Begin the places of what was replaced in fields of an answer."""
_PLAIN = Kind()
_PHRASES = frozenset(status.phrase.encode() for status in HTTPStatus) | {b""}
"""Reason phrases that nobody looks for secrets in."""


class Redactor:
    """Replaces credentials by placeholders; one a run, with the store's key."""

    def __init__(
        self,
        key: bytes,
        rules: Sequence[RedactRule] = (),
        kept: Sequence[KeepRule] = (),
        later: Later | None = None,
        given: Iterable[bytes] = (),
    ) -> None:
        """Take the store's key, and what a configuration adds to the shipped places and takes from them.

        later: takes work that nobody waits for, to be done by another thread: to make the search of many learned secrets fast.
        given: secrets for certain, in whatever place they stand.

        Raises: ValueError for an empty key.
        """
        self._placeholders = Placeholders(key)
        self._rules = rules, kept
        self._learned = Learned(later, given)
        self._heads = Heads(self._placeholders, self._learned, rules, kept)
        self._keeper = Keeper(self._placeholders)
        self._given = Heads(self._keeper, self._learned, rules, kept)
        self._made = MadeKeeper(self._placeholders)
        self._exported = Heads(self._made, self._learned, rules, kept)
        self._search = Search(self._placeholders, self._learned, rules, kept)
        paths = tuple(compile_regex(rule.path) for rule in rules if rule.path)
        self._fields = Fields(self._heads, self._search, self._learned, self._placeholders, paths)
        self._keys = frozenset(rule.query.lower() for rule in rules)
        self._own_fields = frozenset(
            name
            for name in (rule.header.lower() for rule in rules if rule.header)
            if kind_of_header(name) is None
        )
        self.placeholder = self._heads.placeholder

    # ---- requests ------------------------------------------------------------------------------

    def request(self, request: HttpRequest) -> tuple[Request, tuple[Redaction, ...]]:
        """Give a request without its secrets, and where they were."""
        kept, found = self.head(request)
        kept, more = self.request_body(kept, request.body)
        return kept, (*found, *more)

    def head(self, request: HttpRequest) -> tuple[Request, tuple[Redaction, ...]]:
        """Give a request without its body and the secrets of its head, and where they were."""
        return self._fields.request(request)

    def request_body(self, request: Request, came: bytes) -> tuple[Request, tuple[Redaction, ...]]:
        """Put the body that came into a request, without its secrets; those of its head have been learned."""
        if not came:
            return request, ()
        codings = _codings(request.headers)
        plain = undo_coding(came, b",".join(codings)) if codings else None
        body = came if plain is None else plain
        kind = see_framing(_kind(request.headers), body)
        searched = self._search.search(body, kind, goes_on=True)
        if codings and plain is None:
            searched = self._find_coded(came, codings, kind) or searched
        beside = () if plain is None else self._find_beside(came, codings, "request.body")
        if searched is None and beside:
            searched = Searched(body, ())
        if searched is None:
            return replace(request, body=came), ()
        headers = request.headers if plain is None else _decoded_head(request.headers, len(body))
        secrets = (*request.secrets, *_secrets(searched))
        new = replace(request, headers=headers, body=searched.data, secrets=secrets)
        return new, tuple(dict.fromkeys((*_places("request.body", searched), *beside)))

    def _find_beside(self, came: bytes, codings: list[bytes], place: str) -> tuple[Redaction, ...]:
        """Say what secrets the bytes of a coding have that are no content: they are gone from a body that is kept decoded."""
        words = find_beside(came, b",".join(codings))
        searched = self._search.search(words) if words else None
        return () if searched is None else _places(place, searched)

    def _find_coded(self, came: bytes, codings: list[bytes], kind: Kind) -> Searched | None:
        """Leave out a body whose coding can be undone in part alone, and that has a secret there: it cannot be coded again."""
        part = undo_what_came(came, b",".join(codings))
        if not part or self._search.search(part, kind) is None:
            return None
        return self._search.leave_out(came)

    def recorded(self, request: Request) -> Request:
        """Give a recorded request as it is compared under the rules of now: what they hide counts by kind."""
        found, _ = self.request(replace(request, secrets=()))
        if not found.secrets:
            return request
        old = request.secrets
        more = find_apart(found.secrets, old)
        return replace(request, secrets=tuple(in_order([*old, *more])))

    # ---- answers -------------------------------------------------------------------------------

    def response_headers(
        self, headers: Headers, place: str = "response.header."
    ) -> tuple[Headers, tuple[Redaction, ...]]:
        """Give a response's header fields without their secrets, and where they were.

        Of a `set-cookie` the first value is replaced, its attributes stay.
        """
        return self._fields.response(headers, place)

    def interim(
        self, answers: Iterable[RawInterim | Interim]
    ) -> tuple[tuple[Interim, ...], tuple[Redaction, ...]]:
        """Give interim answers without their secrets, and where they were."""
        kept: list[Interim] = []
        found: list[Redaction] = []
        for one in answers:
            headers, places = self.response_headers(one.headers, "response.interim.")
            reason = self._reason(one.reason)
            if reason != one.reason:
                places = (*places, Redaction("response.reason", SECRET))
            kept.append(Interim(one.at_us, one.status, reason, headers))
            found += places
        return tuple(kept), tuple(found)

    def _reason(self, reason: bytes) -> bytes:
        return reason if reason in _PHRASES else self.text(reason)

    def response(
        self, response: HttpResponse
    ) -> tuple[Response, tuple[Redaction, ...], tuple[str, ...]]:
        """Give an answer without its secrets, where they were, and what else has changed."""
        headers, found = self.response_headers(response.headers)
        trailers, more = response.trailers, tuple[Redaction, ...]()
        if trailers:
            trailers, more = self.response_headers(trailers, "response.trailer.")
        reason = self._reason(response.reason)
        if reason != response.reason:
            more = (*more, Redaction("response.reason", SECRET))
        found = (*found, *more)
        kept = Response(
            status=response.status,
            reason=reason,
            http_version=response.http_version,
            headers=headers,
            body=response.body,
            head_us=response.head_us,
            chunks=response.chunks,
            trailers=trailers,
            complete=response.complete,
            spilled=response.spilled,
            head_need=response.head_need,
            end_need=response.end_need,
            end_after=response.end_after,
            ragged=response.ragged,
            secrets=response.secrets,
        )
        if not kept.body:
            if kept.spilled is not None and kept.secrets:
                kept, more = without_digests(kept)
                found = (*found, *more)
            return kept, found, ()
        searched, coded, beside = self._search_answer(kept)
        if searched is None:
            return kept, found, ()
        warnings: tuple[str, ...] = ()
        chunks = kept.chunks
        if coded is not None:
            chunks = _scaled(chunks, len(kept.body), len(searched.data))
            headers = fit_head(kept, coded, len(searched.data))
            coding = b", ".join(_codings(kept.headers)).decode("latin-1")
            how = "in this coding without compression" if coded else "decoded"
            warnings = (
                f"the answer was coded ({coding[:40]}) and held a secret: it is kept {how}",
            )
        kept = replace(
            kept,
            headers=headers,
            body=searched.data,
            chunks=chunks,
            secrets=tuple(_secrets(searched)),
        )
        found = (*found, *dict.fromkeys((*_places("response.body", searched), *beside)))
        if has_unloadable_key(kept):
            found = (*found, Redaction("response.body", UNLOADABLE))
        kept, more = with_digests(response, kept)
        return kept, (*found, *more), warnings

    def _search_answer(
        self, answer: Response
    ) -> tuple[Searched | None, bool | None, tuple[Redaction, ...]]:
        """Search the body of an answer: give it without its secrets, how it is coded, and what secrets were beside its content.

        The second is None where the coding was not touched, False where it was undone, True where it stays but for its compression.
        """
        body, codings = answer.body, _codings(answer.headers)
        coding = b",".join(codings)
        plain = undo_coding(body, coding) if codings else None
        part = undo_what_came(body, coding) if codings and plain is None else plain
        if not part:
            # What is not what it says it is is searched as it came.
            return self._search_plain(answer, body), None, ()
        searched = self._search_plain(answer, part, cut=plain is None)
        beside = self._find_beside(body, codings, "response.body")
        if searched is None and beside:
            searched = Searched(part, ())
        if searched is None:
            as_it_came = plain is None and answer.complete
            return (self._search_plain(answer, body) if as_it_came else None), None, ()
        broken = plain is None and is_broken(body, coding)
        if plain is not None or not (answer.complete or broken):
            return searched, False, beside
        # Its client reads up to a place, and may fail there: decoded it would read a whole answer.
        written = write_without_end(searched.data, coding, body, broken=broken)
        if written is None:
            return self._search.leave_out(body), None, ()
        spans = tuple(
            Span(at, size, one.kind, one.coded)
            for one in searched.spans
            for at, size in written.place(one.at, one.size)
        )
        return Searched(written.data, spans), True, beside

    def _search_plain(self, answer: Response, body: bytes, *, cut: bool = False) -> Searched | None:
        final = answer.complete and not cut
        kind = _answer_kind(answer.headers, body)._replace(final=final)
        searched = self._search.search(body, kind)
        if searched is None:
            return None
        return searched._replace(data=mend_checksums(body, searched.data))

    def stream(self, headers: Headers, *, answer: bool, originals: bool = False) -> Stream | None:
        """Give what takes the secrets out of a body that is too large to be held; None where it is coded.

        originals: remember what is replaced, too.
        """
        if any(name.lower() == _CODING for name, _ in headers):
            return None
        kind = _kind(headers)._replace(answer=answer)
        if answer and not kind.stream and _may_come_in_pieces(headers):
            kind = kind._replace(lines=True)
        return Stream(self._search, kind, originals=originals)

    def learn_originals(self, answer: RawAnswer) -> None:
        """Learn the secrets of an answer that is given as it came, as when it was recorded. Any thread."""
        self.interim(answer.interim)
        if answer.response is not None:
            self.response(answer.response)
        for reason in answer.close or ():
            self.redact_text(reason)
        for _, value in answer.pieces:
            self._learned.add(unescape(value))

    def learn(
        self, response: Response, redactions: Iterable[Redaction] = ()
    ) -> list[tuple[str, bytes, bytes]]:
        """Take the placeholders of a recorded answer for secrets: the agent it is given to sends them back.

        redactions: what was replaced in the exchange. The other fields of its answer are not looked into.

        They stand for themselves from then on, wherever the agent puts them. Gives each with what it is when it comes back, behind
        the name of the cookie that it is, or an empty one.
        """
        found = []
        searched = {
            one.place.rpartition(".")[2] for one in redactions if one.place.startswith(_FIELDS)
        }
        for name, value in (*response.headers, *response.trailers):
            self._keeper.found.clear()
            if not self._heads.names_in_answer(name):
                self._given.field(name, value, in_request=False)
            elif reads_as_made(
                value.strip()
            ):  # what is no placeholder was not hidden in the requests either
                self._learned.add(value.strip())
                self._keeper.of(value.strip())
            if not self._keeper.found and name.decode("latin-1").lower() in searched:
                self._keep_inside(value)
            if self._keeper.found:
                is_cookie = name.lower() == b"set-cookie"
                cookie = value.partition(b"=")[0].strip().decode("latin-1") if is_cookie else ""
                # Without a value it takes the cookie back.
                found += [(cookie, one, one) for one in self._keeper.found if one.strip(b' "')]
        if response.body:
            values = self._keep_all(list_body_values(response))
            found += [("", value, value) for value in values]
        return found

    def _keep_inside(self, value: bytes) -> None:
        """Keep the placeholders in a field that a search replaced: a tape does not say where in the field they are."""
        for one in _list_inside(value):
            self._learned.add(one)
            self._keeper.of(one)

    @staticmethod
    def list_given(response: Response) -> list[bytes]:
        """Give what a recorded answer may have given: what was replaced in its body, and the values of header fields and cookies. Any thread."""
        found = list_body_values(response) if response.body else []
        for name, value in (*response.headers, *response.trailers):
            found += _list_inside(value)
            cookie = value.partition(b";")[0].partition(b"=")[2]
            found.append(cookie if name.lower() == b"set-cookie" else value.strip())
        return [*found, *(token for one in found for _, token in list_tokens(one))]

    @staticmethod
    def list_forms(values: Iterable[bytes]) -> list[bytes]:
        """List in which ways an agent may write the placeholders that it was given: plain, hex, base64; what is short may stand anywhere."""
        long = (value for value in values if len(value) >= _LEAST_GIVEN)
        return [needle.text for value in long for needle in list_needles(value)]

    def keep_exported(
        self,
        request: RawRequest,
        answers: Iterable[RawResponse | RawInterim],
        messages: Iterable[RawMessage],
        replaced: Container[str],
    ) -> tuple[Redaction, ...]:
        """Keep the placeholders of an exchange that was exported: they stand for themselves from then on.

        Only what reads as a placeholder is kept: whoever wrote the exchange may have named a secret as one.

        replaced: places where secrets were replaced, as in `Redaction.place`. Gives those of fields that were kept.
        """
        parts = [("request.header.", request.headers), ("request.trailer.", request.trailers)]
        for one in answers:
            if isinstance(one, RawInterim):
                parts.append(("response.interim.", one.headers))
            else:
                parts += [("response.header.", one.headers), ("response.trailer.", one.trailers)]
                self._keep_made_values(list_body_values(one))
        found: dict[Redaction, None] = {}
        for prefix, headers in parts:
            for name, value in headers:
                lower = name.decode("latin-1").lower()
                if prefix + lower in replaced:
                    self._made.found.clear()
                    self._exported.field(name, value, in_request=prefix.startswith("request"))
                    if self._made.found:
                        found[Redaction(prefix + lower, HEADERS.get(lower, SECRET))] = None
        target = request.target.encode("utf-8", "surrogatepass")
        for pair in self._exported.pairs(target):
            if f"request.query.{pair.name}" in replaced:
                self._keep_made(target, [Secret(TARGET, pair.at, pair.size, pair.kind)], TARGET)
        self._keep_made(request.body, request.secrets, BODY)
        # Its places count characters.
        self._keep_made(request.target.encode("latin-1", "replace"), request.secrets, TARGET)
        for message in messages:
            self._keep_made(message.data, message.secrets, BODY)
        return tuple(found)

    def _keep_made(self, data: bytes, secrets: Iterable[Secret], part: str) -> None:
        values = [data[one.at : one.at + one.size] for one in secrets if one.part == part]
        self._keep_made_values(map(unescape, values))

    def _keep_made_values(self, values: Iterable[bytes]) -> None:
        for value in values:
            if reads_as_made(value):
                self._learned.add(value)
                self._made.of(value)

    def learn_message(self, message: Message) -> list[bytes]:
        """Take the placeholders of a recorded message of a WebSocket for secrets, as those of an answer; give them."""
        return self._keep_all(_values_of(message.data, message.secrets, _PLAIN))

    def _keep_all(self, values: list[bytes]) -> list[bytes]:
        for value in values:
            self._learned.add(value)
            self._keeper.in_text(value)
        return values

    @staticmethod
    def use_kept(kept: KeptSets) -> None:
        """Have all redactors of this process search with what other processes have compiled. Before any other thread begins."""
        finder().use_kept(kept)

    @staticmethod
    def prepare() -> None:
        """Make what all redactors of this process search with, so that the first text need not wait for it. Any thread."""
        finder().prepare()

    @property
    def key_id(self) -> str:
        """What tells this redactor's placeholders from those that are made with another key, or in another way."""
        return self._placeholders.key_id

    def make_as(self, key_id: str) -> bool:
        """Make placeholders as a tape has them, which is of this key or of another one; say whether it is of this one.

        key_id: of the tape's placeholders. Asked before anything is redacted.
        """
        return all(one.make_as(key_id) for one in (self._placeholders, self._keeper, self._made))

    def stands_for(self, value: bytes) -> bytes:
        """Give the placeholder of a value."""
        return self._placeholders.of(value)

    # ---- the rest ------------------------------------------------------------------------------

    def message(self, message: WebSocketMessage) -> Message:
        """Give a message of a WebSocket without its secrets."""
        kind = see_framing(Kind(answer=not message.from_client), message.data)
        searched = self._search.search(message.data, kind)
        if searched is None and isinstance(message, Message):
            return message
        return Message(
            message.at_us,
            message.from_client,
            message.kind,
            message.data if searched is None else searched.data,
            message.frames,
            message.after,
            message.secrets if searched is None else tuple(_secrets(searched)),
        )

    def websocket(self, websocket: RawWebSocketSummary | None) -> WebSocketSummary | None:
        """Give how a WebSocket went, without the secrets in the reasons for which it was closed."""
        if websocket is None:
            return None
        came, close = websocket.close, None
        if came is not None:
            reason, answer = self.redact_text(came.reason), None
            if came.answer is not None:
                answer = came.answer[0], self.redact_text(came.answer[1])
            close = Close(came.at_us, came.by_client, came.code, reason, answer)
        return WebSocketSummary(websocket.messages, websocket.size, close)

    def text(self, data: bytes) -> bytes:
        """Give any text without its secrets."""
        searched = self._search.search(data)
        return data if searched is None else searched.data

    def find_made(self, data: bytes) -> list[Secret]:
        """Give where what looks like a secret in any text reads as a placeholder; of a URL the user, too, whose password does."""
        searched = self._search.search(data)
        found = [] if searched is None else _secrets(searched)
        for url in URLS.finditer(data):
            for pair in self._heads.pairs(url[0]):
                found.append(Secret(BODY, url.start() + pair.at, pair.size, pair.kind))
        return [one for one in found if _is_made(data[one.at : one.at + one.size])]

    def without_declared(self, url: bytes) -> bytes:
        """Give a URL with nothing in the place of the values of declared query keys."""
        return blank(url, self._heads.pairs(url))

    def redact_text(self, text: str) -> RedactedText:
        """Give a text for people, as a command line, without its secrets."""
        data = self.text(text.encode("utf-8", "surrogatepass"))
        return RedactedText(data.decode("utf-8", "surrogatepass"))

    def hash_word(self, word: bytes) -> str:
        """Give the keyed hash of a word that is not kept, by which it would be known again, as 16 hexadecimal digits."""
        return self._placeholders.hash(b"word\0" + word)[:_WORD_DIGITS]

    def redact_command(self, words: Sequence[str]) -> list[RedactedText]:
        """Give the words of a command without its secrets: what a word is may be said by the one before it."""
        said = [word.encode("utf-8", "surrogatepass") for word in words]
        line, at = self.text(b" ".join(said)), 0
        found: list[RedactedText] = []
        for word, raw in zip(words, said, strict=True):
            part = line[at : at + len(raw)]
            at += len(raw) + 1
            same = part == raw
            text = part.decode("utf-8", "surrogatepass")
            found.append(self.redact_text(word) if same else RedactedText(text))
        return found

    def redacted_query(self, request: HttpRequest) -> frozenset[str]:
        """Give the lower-case names of a request's query keys whose values count by their kind alone.

        Of a key that has other values beside, each such value by itself: `nth_value`.
        The same for a request and its redacted copy.
        """
        query = request.target.partition("?")[2]
        if not query:
            return _NONE
        found: dict[str, list[bool]] = {}
        for part in query.split("&"):
            name, _, value = part.partition("=")
            name = plain_name(name)
            bare = bare_name(name)
            if name in self._heads.query or bare in self._heads.query:
                secret = (
                    name in self._keys
                    or is_query_secret(bare, value)
                    or (name == "key" and GOOGLE.search(request.host) is not None)
                )
                found.setdefault(name, []).append(secret)
        names: list[str] = []
        for name, secret_values in found.items():
            if all(secret_values):
                names.append(name)
            else:
                names += [nth_value(name, n) for n, one in enumerate(secret_values, 1) if one]
        return frozenset(names)

    def inner_secrets(self, request: Request) -> Iterator[InnerSecret]:
        """Yield each secret of a request, as stored, outside of header fields for credentials."""
        yield from find_inner_secrets(request, self.redacted_query(request))
        if self._own_fields:
            yield from find_own_fields(request, self._own_fields)

    def inner_secret(self, stored: bytes, came: bytes) -> tuple[InnerSecret, InnerSecret]:
        """Give a stored value of a body as `inner_secrets` does, and what came in its place, as it would be stored there."""
        # Of what was learned base64 may have come, which is written otherwise.
        new = self._placeholders.in_text(came)
        if new != stored and self.text(came) == stored:
            new = stored
        old, now = unescape(stored), unescape(new)
        return (
            InnerSecret(BODY, old, old[: prefix_size(old)], True, Spelling(stored)),
            InnerSecret(BODY, now, now[: prefix_size(now)], True, Spelling(new)),
        )


def _is_made(value: bytes) -> bool:
    """Say whether a value, or the password of a user, reads as a placeholder."""
    return any(reads_as_made(unescape(one)) for one in (value, value.rpartition(b":")[2]))


def _list_inside(value: bytes) -> Iterator[bytes]:
    """Yield what reads as a placeholder in the value of a field, and in base64 in it."""
    for word in _WORDS_OF_FIELD.findall(value):
        made = list(_list_made(word))
        yield from made
        if made != [word] and len(word) >= _LEAST_CODED:
            for text in list_texts_in_base64(unescape(word)):
                for one in _WORDS_OF_FIELD.findall(text):
                    yield from _list_made(one)


def _list_made(word: bytes) -> Iterator[bytes]:
    """Yield a word that reads as a placeholder, or its parts that do: a sign such as `/` is a part of some secrets and separates others."""
    parts = [word] if reads_as_made(word) else re.split(rb"[/:=]", word)
    yield from (one for one in parts if len(one) >= _LEAST_GIVEN and reads_as_made(one))


def _codings(headers: Headers) -> list[bytes]:
    return [value for name, value in headers if len(name) == 16 and name.lower() == _CODING]


def _kind(headers: Headers) -> Kind:
    for name, value in headers:
        if len(name) == 12 and name.lower() == b"content-type":
            return _kind_of(value)
    return _PLAIN


@lru_cache(maxsize=256)
def _kind_of(content_type: bytes) -> Kind:
    media = content_type.partition(b";")[0].strip().lower()
    return Kind(form=media == _FORM, stream=media == _STREAM, lines=media in _LINES)


def _may_come_in_pieces(headers: Headers) -> bool:
    """Say whether an answer may be a list whose items come one by one: one of no known length."""
    return not any(name.lower() == b"content-length" for name, _ in headers)


def _answer_kind(headers: Headers, body: bytes) -> Kind:
    """Say what is known of the body of an answer before it is searched."""
    kind = see_framing(_kind(headers)._replace(answer=True), body)
    pieces = not kind.stream and _may_come_in_pieces(headers)
    return kind._replace(lines=True) if pieces else kind


def list_body_values(answer: HttpResponse) -> list[bytes]:
    """Give what an agent reads in the places of an answer's body where placeholders are."""
    secrets = [one for one in answer.secrets if one.part == BODY]
    return _values_of(answer.body, secrets, _answer_kind(answer.headers, answer.body))


def _values_of(data: bytes, secrets: Sequence[Secret], kind: Kind) -> list[bytes]:
    kind = see_framing(kind, data)
    events = kind.stream if kind.stream or kind.lines else None
    return list_values(data, secrets, events=events)


def _secrets(searched: Searched, part: str = BODY) -> list[Secret]:
    return [Secret(part, *span) for span in searched.spans]


def _places(place: str, searched: Searched) -> tuple[Redaction, ...]:
    return redactions_of(place, (span.kind for span in searched.spans))


def redactions_of(place: str, kinds: Iterable[str]) -> tuple[Redaction, ...]:
    """Say that kinds of secrets were replaced in a place, each once; what was not searched is a place of its own."""
    found = dict.fromkeys(
        Redaction(f"{place}.{UNSEARCHED}", UNSEARCHED)
        if kind.startswith(UNSEARCHED)
        else Redaction(place, kind)
        for kind in kinds
    )
    return tuple(found)


def _decoded_head(headers: Headers, size: int) -> Headers:
    """Give the header fields of a body whose codings were undone."""
    length = b"%d" % size
    return tuple(
        (name, length if name.lower() == b"content-length" else value)
        for name, value in headers
        if name.lower() != _CODING
    )


def fit_head(came: Response, coded: bool, size: int) -> Headers:
    """Give the header fields of an answer whose body has another size now.

    coded: whether it has its coding yet. An answer that was cut announces as many bytes more than it has as before: else it is whole.
    """
    if not came.complete:
        declared = came.header(b"content-length") or b""
        if declared.strip().isdigit():
            size += max(1, int(declared) - len(came.body))
    headers = _decoded_head(came.headers, size)
    if not coded:
        return headers
    fields = iter(headers)
    return tuple(
        (name, value) if name.lower() == _CODING else next(fields) for name, value in came.headers
    )


def with_digests(came: HttpResponse, kept: Response) -> tuple[Response, tuple[Redaction, ...]]:
    """Give an answer whose header fields state the digests of its body, in the place of those of the one that came; say which."""
    if kept.body == came.body:
        return kept, ()
    codings = _codings(came.headers)
    plain = undo_coding(came.body, b",".join(codings)) if codings else None
    bodies = [came.body] if plain is None else [came.body, plain]
    return _with_fields(kept, partial(fit_digests, came=bodies, body=kept.body))


def without_digests(kept: Response) -> tuple[Response, tuple[Redaction, ...]]:
    """Give an answer without what states the digests of its body, which is another one now; say which there were."""
    return _with_fields(kept, leave_out_digests)


def _with_fields(
    kept: Response, fit: Callable[[Headers], FittedHeaders]
) -> tuple[Response, tuple[Redaction, ...]]:
    headers, names = fit(kept.headers)
    trailers, more = fit(kept.trailers)
    if not names and not more:
        return kept, ()
    found = [Redaction(f"response.header.{name}", DIGEST) for name in names]
    found += [Redaction(f"response.trailer.{name}", DIGEST) for name in more]
    return replace(kept, headers=headers, trailers=trailers), tuple(found)


def _scaled(chunks: tuple[Chunk, ...], before: int, now: int) -> tuple[Chunk, ...]:
    """Give the pieces of a body that has another length now: what came at a time stays a share of it."""
    scaled, came, given = [], 0, 0
    for chunk in chunks:
        came += chunk.size
        upto = now * came // before
        scaled.append(chunk._replace(size=upto - given))
        given = upto
    return tuple(scaled)
