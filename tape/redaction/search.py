"""Search texts for secrets: bodies, messages, paths and undeclared header fields.

Rules:

1. A text is replaced in place, length and all, so chunks, frames and messages stay as they were.
2. Hidden are: known formats, values behind telling names and credentials in their own places (`finding/`), what a configuration
   names, and whatever was learned in the run: as it is, in base64 or hex, percent-encoded, with JSON escapes, or spread over the
   events of a stream.
3. Only text is hidden: no number, no `true`, no name of a field.
4. A text is searched in one pass for formats and names and one for what was learned; escapes are undone around where they are, and
   words with digits and letters outside of ASCII are judged with letters of ASCII.
5. Where a text was cut, or goes on, what may be the beginning of a secret at its end is hidden too.
6. A text that has too many places is searched up to one of them. What is behind it is not kept: its bytes are zeros, and the kind
   of its place has its keyed hash.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from heapq import merge
from typing import NamedTuple
from urllib.parse import unquote_plus, unquote_to_bytes

from ...config.parse_values import compile_regex
from ...config.schema import KeepRule, RedactRule
from ...config.sections.secrets import field_of
from ..exchange import PIECE, UNSEARCHED
from ..records.redacted_value_spelling import in_base64, tell_place
from .configured import ConfiguredFields
from .credential_fields import CONFIGURED, QUERY, SECRET, TOKEN, is_one
from .finding.finder import (
    LOOKS,
    Finder,
    Finding,
    Looked,
    Run,
    apart,
    finder,
    has_mixed,
    most_looks,
)
from .finding.join_stream_pieces import Spelled, find_spelled, has_events, has_lines
from .finding.pattern_prefilter import Head, HeadSet, compile_heads
from .finding.personal import PersonalData
from .finding.searched_text import Context, Found
from .finding.secrets_by_name import read_name
from .finding.secrets_in_base64 import encode
from .incremental_search import LEAST, Resumed
from .learned import Learned, Match, how_coded, tell_within, write_match
from .looks_like_secret import is_declared, is_strong
from .placeholders.non_ascii_letters import LETTER_OUTSIDE, narrow_letter
from .placeholders.placeholder import Placeholders, rewrite, unescape

SHORTEST = len(b"://:x@")
"""Bytes below which a text holds no secret, unless a configuration says so."""
MAX_PAIRS = 20_000
"""Pairs of a form beyond which it is searched as a text only."""
_TRIPLET = re.compile(rb"%[2-7][0-9A-Fa-f]")
_BACKSLASHED = re.compile(rb"\\(?<!\\\\)\\*+(?:u00[2-7][0-9A-Fa-f]|/)")
"""With a triplet, what can stand in a secret, which is ASCII. A text is passed quickly for the one byte each begins with."""
_ANY_TRIPLET = re.compile(rb"%[0-9A-Fa-f]{2}")
_MOST_LEARNED = 64
"""Secrets of one text that are looked for elsewhere: a text with more is a list of them."""
_AROUND = 512
"""Bytes before and behind an escape that are read with it."""
_FEW_ESCAPES = 32
_BLOCK = 1024
"""Bytes that are asked at once whether an escape is in them."""
_ASCII = {
    digits.encode(): bytes([code])
    for code in range(0x20, 0x80)
    for digits in {f"{code:02x}", f"{code:02X}", f"{code:02x}".capitalize()}
}
"""Characters by their two digits."""
_MOST_ESCAPES = 150_000
"""Escapes of one sort in a text: to undo one takes some 0.3 us."""
_MOST_WINDOWS = 64
_DEEPEST = 4
"""Escapes around escapes that are undone: a URL in a URL in a URL in JSON."""
_COLOUR = re.compile(
    rb"(?:\x1b|\\(?<!\\\\)\\*+u001[bB]|\\(?<!\\\\)\\*+(?:x1[bB]|033))\[[0-9;]{0,12}[mK]"
)
_JSON_ESCAPE = re.compile(rb"\\(?:u00[2-7]|/)")
_GRANTS = frozenset(
    ("code", "assertion", "refresh_token", "subject_token", "device_code", "code_verifier")
)


class Kind(NamedTuple):
    """What is known of a text before it is searched."""

    form: bool = False
    stream: bool = False
    """Whether it is a stream of events."""
    lines: bool = False
    """Whether it may be a stream of lines of JSON, or of the items of a list."""
    answer: bool = False
    final: bool = True
    """False where it was cut, or goes on."""


_PLAIN = Kind()
_PLAINEST = (_PLAIN, Kind(answer=True))
"""Of a text that is whole, and neither a form nor a stream of events."""


def see_framing(kind: Kind, data: bytes) -> Kind:
    """Say whether a text comes in pieces by what it is: servers label streams as JSON or text, or not at all, and clients read them."""
    if has_events(data):
        return kind._replace(stream=True)
    if has_lines(data):
        return kind._replace(stream=False, lines=True)
    return kind


class Span(NamedTuple):
    """A place in a text that was replaced."""

    at: int
    size: int
    kind: str
    coded: str = ""
    """See `Secret.coded`."""


class Searched(NamedTuple):
    """A text without its secrets."""

    data: bytes
    spans: tuple[Span, ...]


class _Edit(NamedTuple):
    start: int
    end: int
    new: bytes
    kind: str
    declared: bool
    coded: str = ""
    goes_on: bool = False
    """Whether the value began in an earlier piece of a stream."""
    whole: int = 0
    """Characters of the base64 that it is a piece of: what one piece alone means is a part of the value."""
    within: str = ""
    """Where in base64 the value is, as `tell_place` says it."""


class Search:
    """Finds secrets in texts, and learns what it finds."""

    def __init__(
        self,
        placeholders: Placeholders,
        learned: Learned,
        rules: Sequence[RedactRule] = (),
        kept: Sequence[KeepRule] = (),
    ) -> None:
        """Take what a configuration adds to the shipped places, and what it takes from them."""
        self._placeholders = placeholders
        self._learned = learned
        names = list(filter(None, map(field_of, rules)))
        self._fields = {name.lower(): CONFIGURED for name in names}
        self._patterns = tuple(compile_regex(r.pattern) for r in rules if r.pattern)
        self._kept = frozenset(field_of(rule).lower() for rule in kept)
        self._kept_formats = frozenset(rule.format for rule in kept if rule.format)
        self._configured = ConfiguredFields(names) if names else None
        kinds = [kind for rule in rules for kind in rule.pii]
        self._personal = PersonalData(kinds) if kinds else None
        self._finder = finder()
        self._resumed = Resumed(self._finder, learned)
        self.configured = bool(names or self._patterns or kinds)
        """Whether a configuration has places of its own: of them nothing is known."""

    def search(self, data: bytes, kind: Kind = _PLAIN, *, goes_on: bool = False) -> Searched | None:
        """Give a text without its secrets, or None where it holds none.

        goes_on: whether it may begin as an earlier text did, as the requests of a conversation do.
        """
        sign = data.find(b"\x1b")
        # The first one says whether they are codes of colours: to look for all of them takes as long as the rest.
        coloured = sign >= 0 and data[sign + 1 : sign + 2] == b"["
        plain = kind in _PLAINEST and not self.configured and not coloured
        clean = None
        if goes_on and plain and len(data) >= LEAST:
            looked, clean = self._resumed.look(data)
        else:
            looked = self._finder.look(data)
            if looked is None and plain and self._learned.is_clean(data):
                return None
        if looked is None and clean is not None and not coloured:
            return None
        edits: list[_Edit] = []
        context = Context(
            data, kind.final, kind.answer, self._fields, self._kept, self._kept_formats
        )
        escaped = looked is not None and looked.escaped
        coloured = coloured or (looked is not None and looked.coloured)
        places = len(looked.places) if looked is not None else 0
        most = most_looks(len(data), places, answer=kind.answer)
        again = escaped or coloured or kind.form or kind.stream or kind.lines
        if again and not kind.answer:
            most = most * 2 // 5  # to read a text another way takes as long
        finding = self._finder.confirm(context, looked, most * 7 // 8 if again else most)
        founds = finding.found
        if kind.form and data.count(b"&") <= MAX_PAIRS:
            founds = founds + self._form(data)
        founds = founds + self._find_patterns(data) + self._find_configured(context)
        if founds or finding.runs:
            self._take_all(data, finding._replace(found=founds), edits)
        until = min(finding.searched, _escaped_until(data)) if escaped else finding.searched
        whole, data = data, data[:until] if until < len(data) else data
        context = context._replace(data=data)
        # In a form a blank is written as `+`, and a text in it is words like any other.
        spaced = data.replace(b"+", b" ") if kind.form else data
        views = _windows(spaced) if escaped else []
        if spaced is not data and spaced != data:
            views.append(_View(spaced, lambda: [(0, 0, len(spaced))]))
        if coloured:
            views.append(_without_colours(data))
        searched = len(data)
        most -= finding.spent
        narrowed = (
            _narrowed(data, views)
            if looked is not None and (looked.lettered or looked.escaped)
            else []
        )
        if narrowed:
            most = max(most, LOOKS // 8)
            views += narrowed
        if views:
            clean_views = self._are_clean(views)
            if not clean_views or not context.final:
                until, spent = self._find_in_views(
                    data, views, context, edits, most, cut_only=clean_views
                )
                searched, most = min(searched, until), most - spent
        if kind.stream or kind.lines:
            spelled, until = self._find_spelled(data, context, edits, most, events=kind.stream)
            views += spelled
            searched = min(searched, until)
        data = data[:searched] if searched < len(data) else data
        if self._learned:
            known_clean = clean is not None and clean is self._learned.values
            until = self._find_learned(
                data, views, edits, final=kind.final, known_clean=known_clean
            )
            searched = min(searched, until)
        if searched < len(whole):
            edits.append(self._leave_out(whole, searched, edits))
        return self._apply(whole, edits, answer=kind.answer) if edits else None

    def is_plainly_clean(self, texts: Sequence[bytes]) -> bool:
        """Say at once whether texts hold no secret: none has a place where one may be, or what was learned.

        They are not searched as one text: then a name at the end of one would speak for the beginning of the next.
        """
        data = b"\n".join(texts)
        # A pattern of a configuration may look for the ends of a text.
        return (
            not self.configured
            and b"\x1b" not in data
            and self._finder.look(data) is None
            and self._learned.is_clean(data)
        )

    def leave_out(self, data: bytes) -> Searched:
        """Give a text of which nothing may be kept: zeros, and its keyed hash."""
        return self._apply(data, [self._leave_out(data, 0, [])])

    # ---- inside --------------------------------------------------------------------------------

    def _find_configured(self, context: Context) -> list[Found]:
        """Find what a configuration names: its fields, and the kinds of personal data."""
        fields = self._configured.find(context) if self._configured is not None else []
        return fields + self._find_personal(context.data)

    def _find_patterns(self, data: bytes) -> list[Found]:
        return [found for pattern in self._patterns for found in _pattern(pattern, data)]

    def _find_personal(self, data: bytes) -> list[Found]:
        return self._personal.find(data) if self._personal is not None else []

    def _are_clean(self, views: list["_View"]) -> bool:
        """Say at once whether texts have no place where a secret may be: one text of all of them has each place that one of them has."""
        if self.configured:
            return False
        first, *more = views
        looked = self._finder.look(_together(views)) if more else first.look(self._finder)
        return looked is None or not looked.places

    def _find_in_views(
        self,
        data: bytes,
        views: list["_View"],
        context: Context,
        edits: list[_Edit],
        most: int,
        *,
        cut_only: bool,
    ) -> tuple[int, int]:
        """Find what is written with escapes; give how much of the text was searched, and what was spent.

        most: looks that may be spent. cut_only: whether no view has any place, so that only its end is looked at.
        """
        document = self._is_document(data)
        done = [] if cut_only else _list_done(data, edits)
        spent, searched = 0, len(data)
        for view in views:
            inner = context._replace(data=view.data, document=document)
            if cut_only:
                places = self._finder.find_cut(inner)
            else:
                finding = self._look_again(view, inner, most - spent, done)
                spent += finding.spent
                if finding.searched < len(view.data):
                    searched = min(searched, view.cut(finding.searched))
                places = finding.found + self._find_configured(inner)
                self._spread_runs(view, data, finding.runs, edits)
            for found in places:
                if view.depth > 1:
                    self._spread(view, data, found, edits)
                    continue
                spread = view.spread(found.start, found.end)
                start, end = spread[0][0], spread[-1][1]
                self._take(data, found._replace(start=start, end=end), edits)
        return searched, spent

    def _look_again(
        self, view: "_View", context: Context, most: int, done: list[tuple[int, int]]
    ) -> Finding:
        """Find the secrets of a text as it is read another way.

        done: what was found in it as it is.
        """
        looked = view.look(self._finder)
        skipped = view.within(done) if looked is not None and looked.places and done else ()
        return self._finder.confirm(context, looked, most, skipped)

    def _find_spelled(
        self, data: bytes, context: Context, edits: list[_Edit], most: int, *, events: bool
    ) -> tuple[list["_View"], int]:
        """Find what a stream says piece by piece; give what it says, and how much of the stream was searched.

        most: looks that may be spent.
        """
        searched = len(data)
        views = _spelled(data, events=events)
        mixed = [(view, words) for view in views if (words := _list_mixed(view.data))]
        for view, words in mixed:
            read = _Narrowed(view.data, words)
            joined = context._replace(data=read.data, document=True)
            finding = self._finder.confirm(joined, read.look(self._finder), max(most, LOOKS // 8))
            if finding.searched < len(read.data):
                searched = min(searched, view.cut(read.cut(finding.searched)))
            for found in finding.found:
                spread = read.spread(found.start, found.end)
                placed = found._replace(start=spread[0][0], end=spread[-1][1])
                self._spread(view, data, placed, edits)
        if not views or (context.final and self._are_clean(views)):
            return views, searched
        for view in views:
            joined = context._replace(data=view.data, document=True)
            finding = self._finder.confirm(joined, view.look(self._finder), most)
            most -= finding.spent
            if finding.searched < len(view.data):
                searched = min(searched, view.cut(finding.searched))
            configured = self._find_patterns(view.data) + self._find_configured(joined)
            for found in finding.found + configured:
                self._spread(view, data, found, edits)
            self._spread_runs(view, data, finding.runs, edits)
        return views, searched

    def _leave_out(self, data: bytes, at: int, edits: list[_Edit]) -> _Edit:
        """Replace what was not searched: nobody knows what it has."""
        for edit in edits:
            if edit.start < at < edit.end:
                at = edit.end
        rest = data[at:]
        kind = f"{UNSEARCHED}:{self._placeholders.hash(rest)}"
        return _Edit(at, len(data), bytes(len(rest)), kind, declared=True)

    def _is_document(self, data: bytes) -> bool:
        return data[:1] in (b"{", b"[") or data[:5] in (b"data:", b"event")

    def _take_all(self, data: bytes, finding: Finding, edits: list[_Edit]) -> None:
        for found in apart(list(finding.found)):
            self._take(data, found, edits)
        for start, end, text, within in self._write_runs(data, finding.runs, edits):
            how = in_base64(data[start:end])
            edits.append(_Edit(start, end, text, SECRET, False, coded=how, within=within))

    def _write_runs(
        self, data: bytes, runs: list[Run], edits: list[_Edit]
    ) -> Iterator[tuple[int, int, bytes, str]]:
        """Learn what runs of base64 mean; yield where each secret is written in a text, what replaces it there, and where it is within."""
        for run in runs:
            for found in run.found:
                value = run.coded.plain[found.start : found.end]
                if found.learn and len(edits) < _MOST_LEARNED:
                    self._learned.add(unescape(value))
                new = self._placeholders.in_text(value)
                within = tell_place(0, found.start % 3, len(value))
                yield *encode(data, run.coded, found.start, found.end, new), within

    def _spread_runs(self, view: "_View", data: bytes, runs: list[Run], edits: list[_Edit]) -> None:
        """Take what runs of base64 in a view mean: they are written over several places, or with escapes."""
        for start, end, text, within in self._write_runs(view.data, runs, edits):
            how = in_base64(view.data[start:end])
            whole = end - start
            self._write(view, data, start, end, text, edits, coded=how, whole=whole, within=within)

    def _form(self, data: bytes) -> list[Found]:
        """Find the fields of a form that hold a secret."""
        founds: list[Found] = []
        granted = b"grant_type=" in data
        at = 0
        for part in data.split(b"&"):
            raw, eq, value = part.partition(b"=")
            start, at = at + len(raw) + 1, at + len(part) + 1
            if not eq or not value:
                continue
            name = unquote_plus(raw.decode("latin-1"))
            lower = name.lower()
            if lower in self._kept:
                continue
            kind, declared = self._form_kind(name, lower, unescape(value), granted=granted)
            if kind:
                founds.append(Found(start, start + len(value), kind, True, declared))
        return founds

    def _form_kind(self, name: str, lower: str, plain: bytes, *, granted: bool) -> tuple[str, bool]:
        """Give the kind of the value of a form, an empty one for no secret; and whether its name alone says so."""
        if lower in self._fields:
            return (CONFIGURED if is_one(plain) else ""), True
        if granted and lower in _GRANTS:
            return (TOKEN if is_one(plain) else ""), True
        place = read_name(name.encode("latin-1", "replace"))
        if place is not None and place.declared:
            return (
                place.kind if is_declared(plain, password=place.password or granted) else ""
            ), True
        if place is not None:
            return (SECRET if place.accepts(plain) else ""), False
        if lower in QUERY or lower in ("samlresponse", "samlrequest"):
            return (SECRET if is_strong(plain) else ""), False
        return "", False

    def _take(self, data: bytes, found: Found, edits: list[_Edit]) -> None:
        raw = data[found.start : found.end]
        if found.learn and len(edits) < _MOST_LEARNED:
            self._learned.add(unescape(raw))
            if b"\\\\" in raw:  # a backslash of its own, or one of a text of JSON in a text of JSON
                self._learned.add(_read_json(raw))
        new = self._placeholders.in_text(raw)
        edits.append(_Edit(found.start, found.end, new, found.kind, found.declared))

    def _spread(self, view: "_View", data: bytes, found: Found, edits: list[_Edit]) -> None:
        """Take what is spread over several places."""
        value = view.data[found.start : found.end]
        if found.learn and len(edits) < _MOST_LEARNED:
            self._learned.add(unescape(value) if view.depth == 1 else value)
        new = self._placeholders.in_text(value)
        kind = found.kind if view.depth > 1 or found.kind == CONFIGURED else SECRET
        self._write(view, data, found.start, found.end, new, edits, kind)

    def _write(
        self,
        view: "_View",
        data: bytes,
        start: int,
        end: int,
        new: bytes,
        edits: list[_Edit],
        kind: str = SECRET,
        coded: str = "",
        whole: int = 0,
        within: str = "",
    ) -> None:
        at = 0
        for first, last, size in view.spread(start, end):
            raw, told = data[first:last], new[at : at + size]
            written = _rewrite(raw, told, view.depth)
            if written == raw and told != view.data[start + at : start + at + size]:
                written = self._placeholders.in_text(raw)  # written in a way of its own
            edits.append(_Edit(first, last, written, kind, False, coded, at > 0, whole, within))
            at += size

    def _find_learned(
        self,
        data: bytes,
        views: list["_View"],
        edits: list[_Edit],
        *,
        final: bool,
        known_clean: bool,
    ) -> int:
        """Find what was learned; give how much was searched.

        known_clean: whether the text itself has none of it.
        """
        matches, searched = ([], len(data)) if known_clean else self._learned.find(data)
        for match in matches:
            start, end, new = self._written(data, match)
            # Padding says how long it was, and nothing else.
            how = how_coded(data[start:end], match)
            within = tell_within(start, match)
            edits.append(_Edit(start, end, new, SECRET, False, how, within=within))
        # What was learned is looked for in each coding: not with other letters in the place of its own.
        views = [view for view in views if not isinstance(view, _Narrowed)]
        some = bool(views) and not self._learned.is_clean(_together(views))
        for view in views if some else ():
            for match in self._learned.find(view.data)[0]:
                start, end, new = self._written(view.data, match)
                how = how_coded(view.data[start:end], match)
                within = tell_within(start, match)
                self._write(view, data, start, end, new, edits, coded=how, within=within)
        if final:
            return searched
        at = self._learned.find_part(data)
        if at >= 0:
            self._take(data, Found(at, len(data), SECRET, learn=False), edits)
        for view in views:
            at = self._learned.find_part(view.data)
            if at >= 0:
                self._spread(view, data, Found(at, len(view.data), SECRET, learn=False), edits)
        return searched

    def _written(self, data: bytes, match: Match) -> tuple[int, int, bytes]:
        return write_match(data, match, self._placeholders.of(match.needle.value))

    def _apply(self, data: bytes, edits: list[_Edit], *, answer: bool = False) -> Searched:
        edits.sort(key=lambda edit: (edit.start, -edit.end, not edit.declared, -edit.whole))
        merged: list[_Edit] = []
        for edit in edits:
            last = merged[-1] if merged else None
            if last is None or edit.start >= last.end:
                merged.append(edit)
            elif edit.end > last.end:
                raw = data[last.start : edit.end]
                new = self._placeholders.in_text(raw)
                merged[-1] = last._replace(end=edit.end, new=new, within="")
        parts: list[bytes] = []
        at = 0
        for edit in merged:
            parts += (data[at : edit.start], edit.new)
            at = edit.end
        parts.append(data[at:])
        spans = tuple(
            Span(
                edit.start,
                edit.end - edit.start,
                edit.kind,
                _say_coded(edit) if answer else edit.coded,
            )
            for edit in merged
        )
        return Searched(b"".join(parts), spans)


def _say_coded(edit: _Edit) -> str:
    """Say how a value of an answer is written, so that it is known as the agent reads it."""
    return PIECE if edit.goes_on else edit.coded + edit.within


def _read_json(raw: bytes) -> bytes:
    """Give what a text means that is written as in JSON; the text itself if it is not."""
    try:
        text: str = json.loads(b'"%s"' % raw)
        return text.encode()
    except ValueError:
        return raw


def _rewrite(raw: bytes, plain: bytes, depth: int) -> bytes:
    """Write other characters in the place of those that a text means, in its own escapes around escapes."""
    if depth > 1:
        plain = _rewrite(unescape(raw), plain, depth - 1)
    return rewrite(raw, plain)


def _pattern(pattern: re.Pattern[bytes], data: bytes) -> list[Found]:
    founds = []
    for found in pattern.finditer(data):
        start, end = found.span(found.lastindex or 0)
        if start < end:
            founds.append(Found(start, end, CONFIGURED, learn=True))
    return founds


_Pieces = list[tuple[int, int, int]]


class _View:
    """A text as it is read: escapes undone, or pieces of a stream put together."""

    depth = 1
    """How often escapes were undone, one around the other."""

    def __init__(
        self, data: bytes, pieces: Callable[[], Iterable[tuple[int, int, int]]], offset: int = 0
    ) -> None:
        """Take the text.

        offset: where what it was read from begins.
        pieces: for each piece of it where it begins, where that is written, and how long that is; read as far as somebody asks.
        """
        self.data = data
        self._size = len(data)
        self._made = pieces
        self._source: Iterator[tuple[int, int, int]] | None = None
        self._pieces: _Pieces = []
        self._starts: list[int] = []
        self._offset = offset
        self._looked: tuple[Looked | None] | None = None

    def look(self, finder: Finder) -> Looked | None:
        """Find where secrets may be in the text, once."""
        if self._looked is None:
            self._looked = (finder.look(self.data),)
        return self._looked[0]

    def cut(self, at: int) -> int:
        """Leave out the text from a character on; give where that is written."""
        place = self.spread(at, at + 1)[0][0]
        self.data = self.data[:at]
        return place

    def within(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Give what is written in some places, which are in order, by the positions in the text."""
        self._read(self._size)
        raws = [piece[1] + self._offset for piece in self._pieces]
        found: list[tuple[int, int]] = []
        for start, end in places:
            at, last = bisect_right(raws, start) - 1, bisect_right(raws, end - 1) - 1
            if at >= 0:
                first = self._starts[at] + min(start - raws[at], self._pieces[at][2])
                size = min(end - raws[last], self._pieces[last][2])
                found.append((first, self._starts[last] + size))
        return found

    def _read(self, until: int) -> None:
        """Read the pieces up to a position of the text, and the next one."""
        if self._source is None:
            self._source = iter(self._made())
        while not self._starts or self._starts[-1] <= until:
            piece = next(self._source, None)
            if piece is None:
                break
            self._pieces.append(piece)
            self._starts.append(piece[0])

    def spread(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Give the places that a part of the text stands in: begin, end, and how many characters it holds.

        Places beside each other are one.
        """
        self._read(end)
        found: list[tuple[int, int, int]] = []
        at = bisect_right(self._starts, start) - 1
        while start < end:
            begins, raw, size = self._pieces[at]
            ends = self._starts[at + 1] if at + 1 < len(self._pieces) else self._size
            stop = min(end, ends)
            # A piece that is longer than what it means is one character with its escape.
            literal = size == ends - begins
            first = raw + (start - begins if literal else 0)
            last = raw + (stop - begins if literal else size)
            count = stop - start
            if found and found[-1][1] == first:
                found[-1] = (found[-1][0], last, found[-1][2] + count)
            else:
                found.append((first, last, count))
            start, at = stop, at + 1
        if self._offset:
            return [
                (first + self._offset, last + self._offset, count) for first, last, count in found
            ]
        return found


class _Nested(_View):
    """A text whose escapes are undone that is itself read from a view: a URL that is a parameter of a URL, or JSON in a form."""

    def __init__(self, view: _View, inner: _View) -> None:
        """Take a view, and its text as it is read with its escapes undone."""
        super().__init__(inner.data, inner._made)
        self._view = view
        self.depth = view.depth + 1

    def within(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Give what is written in some places, which are in order, by the positions in the text."""
        return super().within(self._view.within(places))

    def spread(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Give the places that a part of the text stands in: begin, end, and how many characters it holds."""
        found: list[tuple[int, int, int]] = []
        for first, last, count in super().spread(start, end):
            written = self._view.spread(first, last)
            found.append((written[0][0], written[-1][1], count))
        return found


class _Narrowed(_View):
    """A text with a letter of ASCII in the place of each letter outside of it, so that each place is found and judged as any other."""

    def __init__(
        self,
        data: bytes,
        words: list[tuple[int, int]],
        around: _View | None = None,
        offset: int = 0,
    ) -> None:
        """Take the text, the words of it whose letters are another, and what it was read from, if its escapes were undone."""
        parts: list[bytes] = []
        at = 0
        for start, end in words:
            parts += (data[at:start], LETTER_OUTSIDE.sub(narrow_letter, data[start:end]))
            at = end
        parts.append(data[at:])
        super().__init__(b"".join(parts), partial(_letters_of, data, words), offset)
        self._around = around

    def within(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Give what is written in some places, which are in order, by the positions in the text."""
        return super().within(self._around.within(places) if self._around else places)

    def spread(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Give the places that a part of the text stands in: begin, end, and how many characters it holds."""
        found = super().spread(start, end)
        if self._around is None:
            return found
        first, last = found[0][0], found[-1][1]
        written = self._around.spread(first, last)
        return [(written[0][0], written[-1][1], end - start)]


_ESCAPES = (b"%", b"\\", b"\x1b", b"+", *(bytes([code]) for code in range(0x80, 0x100)))
"""What begins an escape, or a letter outside of ASCII."""


def _list_done(data: bytes, edits: list[_Edit]) -> list[tuple[int, int]]:
    """Give the places in a text that are replaced, in order, but for those that an escape follows: they may go on behind it."""
    places = sorted((edit.start, edit.end) for edit in edits)
    return [(start, end) for start, end in places if not data.startswith(_ESCAPES, end)]


_WORD = re.compile(rb"(?:[!#-&(-;=?-\[\]-~\x80-\xff]++|\\{1,7}u[0-9A-Fa-f]{4}){1,256}+")
_HAS_DIGIT = re.compile(rb"(?:[^0-9\\]++|\\++(?:u[0-9A-Fa-f]{4})?)*+[0-9]")


def _list_mixed(data: bytes) -> list[tuple[int, int]]:
    """Find the words of a text that have a digit and a letter outside of ASCII."""
    if not has_mixed(data):
        return []
    return [
        one.span()
        for one in _WORD.finditer(data)
        if (b"\\u" in (word := one[0]) or not word.isascii())
        and _HAS_DIGIT.match(word)
        and LETTER_OUTSIDE.search(word)
    ]


def _narrowed(data: bytes, views: list[_View]) -> list[_View]:
    """Give what is around such words, as it is judged."""
    found: list[_View] = []
    for view in (None, *(view for view in views if view.depth == 1)):
        text = data if view is None else view.data
        words = _list_mixed(text)
        if words and view is not None:
            found.append(_Narrowed(text, words, view))
        merged: list[tuple[int, int, list[tuple[int, int]]]] = []
        for start, end in words if view is None else ():
            first, last = max(0, start - _AROUND), min(len(data), end + _AROUND)
            if merged and first <= merged[-1][1]:
                first, _, inside = merged.pop()
                inside.append((start - first, end - first))
                merged.append((first, last, inside))
            else:
                merged.append((first, last, [(start - first, end - first)]))
        found += [
            _Narrowed(data[first:last], inside, offset=first) for first, last, inside in merged
        ]
    return found


def _together(views: list[_View]) -> bytes:
    """Give one text that has each text of some views."""
    return b"\n".join([view.data for view in views]) if len(views) > 1 else views[0].data


def _escaped_until(data: bytes) -> int:
    """Give how far a text is read with its escapes undone: as far as it has no more than `_MOST_ESCAPES` of a sort."""
    until = len(data)
    for mark in (b"%", b"\\u00"):
        if until > 2 * _MOST_ESCAPES and data.count(mark) > _MOST_ESCAPES:
            until = min(until, _find_nth(data, mark, _MOST_ESCAPES))
    return until


def _find_nth(data: bytes, mark: bytes, number: int) -> int:
    """Find where a mark is for the so manieth time, where it is as often: by counting halves, for it may be very often."""
    start, end = 0, len(data)
    while end - start > 1:
        middle = (start + end) // 2
        count = data.count(mark, start, middle + len(mark) - 1)
        if count < number:
            start, number = middle, number - count
        else:
            end = middle
    return start


@cache
def _escape_heads() -> tuple[HeadSet, HeadSet]:
    # In one set hyperscan (0.9.1) misses some at the end of a text of 17 bytes and more, the last two being `\/`.
    return compile_heads([Head("%[2-7][0-9A-Fa-f]")]), compile_heads([Head(r"\\(?:u00[2-7]|/)")])


def _windows(data: bytes) -> list[_View]:
    """Give what is around escapes with the escapes undone: a secret may be written with them."""
    hits = [heads.find(data, _FEW_ESCAPES) for heads in _escape_heads()]
    ends = sorted([end for one in hits if one is not None for end, _ in one.found])
    if not ends:
        return []
    if len(ends) < _FEW_ESCAPES:
        blocks = [(max(0, end - 6), end) for end in ends]
    else:
        blocks = [
            (at, at + _BLOCK)
            for at in range(0, len(data), _BLOCK)
            # An escape across the edge of two blocks begins in the first one.
            if _TRIPLET.search(data, at, at + _BLOCK + 5)
            or _JSON_ESCAPE.search(data, at, at + _BLOCK + 5)
        ]
    merged: list[tuple[int, int]] = []
    for first, last in blocks:
        start, end = max(0, first - _AROUND), min(len(data), last + _AROUND)
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
    if len(merged) > _MOST_WINDOWS:
        merged = [(0, len(data))]
    views = [_unescaped(data[start:end], start) for start, end in merged]
    return [nested for view in views for nested in _deeper(view)]


def _deeper(view: _View) -> Iterator[_View]:
    """Give a text with its escapes undone, and the same again as long as there are escapes in what is left."""
    yield view
    while view.depth < _DEEPEST and _has_escapes(view.data):
        view = _Nested(view, _unescaped(view.data))
        yield view


def _has_escapes(data: bytes) -> bool:
    return _TRIPLET.search(data) is not None or _JSON_ESCAPE.search(data) is not None


def _without_colours(data: bytes) -> _View:
    """Give a text without what colours it in a terminal."""
    return _View(_COLOUR.sub(b"", data), partial(_between_colours, data))


def _between_colours(data: bytes) -> Iterator[tuple[int, int, int]]:
    size = at = 0
    for found in _COLOUR.finditer(data):
        if found.start() > at:
            yield size, at, found.start() - at
            size += found.start() - at
        at = found.end()
    if at < len(data):
        yield size, at, len(data) - at


def _unescaped(data: bytes, offset: int = 0) -> _View:
    # A text has mostly one sort of escape, and thousands of it.
    triplets = _TRIPLET.search(data) is not None
    if b"\\u00" not in data and b"\\/" not in data:
        return _View(unquote_to_bytes(data), partial(_escapes, data, _ANY_TRIPLET), offset)
    made = partial(_escapes, data, _TRIPLET, _BACKSLASHED)
    if not triplets and b"\\\\" not in data:
        plain = data.replace(b"\\/", b"/") if b"\\/" in data else data
        return _View(_without_unicode(plain), made, offset)
    parts: list[bytes] = []
    at = 0
    for start, end in _spans(data, _TRIPLET, _BACKSLASHED):
        parts += (data[at:start], unescape(data[start:end]))
        at = end
    parts.append(data[at:])
    return _View(b"".join(parts), made, offset)


def _without_unicode(data: bytes) -> bytes:
    """Undo the escapes of ASCII in a text of JSON without double backslashes."""
    first, *rest = data.split(b"\\u00")
    parts = [first]
    for part in rest:
        char = _ASCII.get(part[:2])
        parts += (char, part[2:]) if char is not None else (b"\\u00", part)
    return b"".join(parts)


def _spans(data: bytes, *escapes: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Find where escapes stand, in order; those of two patterns never overlap."""
    return merge(*(map(re.Match.span, escape.finditer(data)) for escape in escapes))


def _escapes(data: bytes, *escapes: re.Pattern[bytes]) -> Iterator[tuple[int, int, int]]:
    at = size = 0
    for start, end in _spans(data, *escapes):
        if start > at:
            yield size, at, start - at
            size += start - at
        yield size, start, end - start
        size += 1
        at = end
    if at < len(data):
        yield size, at, len(data) - at


def _letters_of(data: bytes, words: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    at = size = 0
    for start, end in words:
        for letter in LETTER_OUTSIDE.finditer(data, start, end):
            if letter.start() > at:
                yield size, at, letter.start() - at
                size += letter.start() - at
            yield size, letter.start(), letter.end() - letter.start()
            size, at = size + 1, letter.end()
    if at < len(data):
        yield size, at, len(data) - at


def _spelled(data: bytes, *, events: bool) -> list[_View]:
    """Put together what a stream says piece by piece."""
    return [_View(one.data, partial(_pieces_of, one)) for one in find_spelled(data, events=events)]


def _pieces_of(spelled: Spelled) -> _Pieces:
    pieces: _Pieces = []
    size = 0
    for start, end in spelled.places():
        pieces.append((size, start, end - start))
        size += end - start
    return pieces
