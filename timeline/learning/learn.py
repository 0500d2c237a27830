"""Compare two recordings of one task: which places differ, and which of them are volatile.

`learn` aligns them (`tape/diff/align.py`), lists every place at which partners differ, says what sort of thing stands
there (`tape/diff/classify_differing_values.py`), and proposes rules for what is made anew each time. It never proposes one for content,
nor for a value that an earlier answer of the same recording brought: a replay brings the recorded one again. A rule needs two proofs, for each
request that it would apply to: the place is called as what a client makes anew (`tape/diff/made_anew.py`), and nobody had the value before (`seen_before_sent.py`).
Nothing is applied. Requests are read when they are needed, so memory does not grow with the recordings.

Of two WebSockets the client's messages are compared, each with the one of the same place, as a playback
does. Their places go by their JSON paths, as rules name them for all messages of a WebSocket.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from time import thread_time
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from ...config import IgnoreRule, parse_match
from ...config.parse_values import parse_header_name, parse_json_path, parse_parameter
from ...config.profiles.client_profile import Profile
from ...config.schema import Classes
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import (
    SHIPPED_FIELDS,
    Rules,
    canonical,
    compile_rules,
    fingerprint,
)
from ...tape.canonical.json import show_json
from ...tape.diff.align import Item, align, scrub, scrubbed_key
from ...tape.diff.classify_differing_values import (
    Seen,
    ValueClass,
    bare,
    classify_values,
    decode_shown,
    is_whole,
)
from ...tape.diff.divergence_types import ABSENT, Difference, one_line
from ...tape.diff.field_name_meaning import names_lasting, names_party
from ...tape.diff.made_anew import Value, Window, is_proved, is_time_of
from ...tape.diff.nearest import distance
from ...tape.diff.path_shape import id_shape
from ...tape.diff.request_differences import differences, json_step, show_difference
from ...tape.exchange import Exchange, Fingerprint, Message, Request, RequestClass, Seq
from ...tape.headers.compared_fields import FieldRules
from ...tape.matching.index import reclassify
from ...tape.playback.websocket import as_request, message_differences
from ...tape.redaction.redactor import Redactor
from .changed_secrets import find_changed_secrets, have_one_key
from .compare_websockets import Pair, Said, find_strays
from .id_links import Holders, find_holders
from .identifying_words import HashWord, find_words
from .place_values import Step, find_steps, texts_at, values_at
from .seen_before_sent import Known, When, find_first, find_given, read_answers, read_told

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""

_PLACES = 200
"""Most places listed of one pair."""
_HELD = 64
"""Requests held at a time."""
_STRAYED = 2000
"""Most places listed of one pair of WebSockets."""
_LOOKED_AT = 50
"""Pairs of an endpoint in which all items of a list are checked for the same class of value."""
_MOST_CHARS = 64 * 1024
"""Of a value, in which words are looked for."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{12,}")
_BYTE_TOKEN = re.compile(rb"[A-Za-z0-9_-]{12,}")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_MOST_SIGNS = 8
"""Signs in a word beside which an answer may have brought a part of it."""

_NAMED = ("body", "header", "query", "form")
"""What rules can speak of; where a request goes is content."""

_REPLACED = "(replaced)"
"""Shown where the value cannot be found whole."""

FLOWS = "it comes from an earlier answer of the same recording"
CONTENT = "content"
PARTY = "it says with whom something is done"
UNPROVED = "nothing proves that the client makes it anew"
BROUGHT = "in one request or more it is not the client's own: an answer, the command line, the environment, a file's name or a model's question had it before"
LINKS = "another request of the same recording has the value, too: it may say which one is meant"
PARTLY_SEARCHED = (
    "not all of the answers was searched: one is too large, in an unknown coding, or not kept whole"
)
NOT_EVERYWHERE = "in another request nothing proves that the client makes it anew"
NO_RULE = "no rule can name this place"


class Partnerless(NamedTuple):
    """A request of one recording that the other has nothing like."""

    seq: Seq
    method: str
    url: str


@dataclass(frozen=True, slots=True)
class Place:
    """One place at which partners differed."""

    match: str
    """Of the endpoint, as a rule names it."""
    place: str
    """As in a divergence; `[*]` if several items of a list differ in the same way."""
    value_class: ValueClass
    form: str
    """What such values look like, for people; may be empty."""
    seen: int
    """In how many pairs, each item of a list counted."""
    flows: int
    """How many of these came from an earlier answer."""
    seqs: tuple[Seq, Seq]
    """The first pair."""
    values: tuple[str, str]
    """Its values, shortened; redacted as stored."""
    proposed: bool
    why: str
    """Why no rule is proposed, or empty."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What two recordings teach."""

    first: str
    second: str
    requests: tuple[int, int]
    aligned: int
    same: int
    """How many of the aligned pairs are the same question already."""
    would_match: int
    """How many would be with the proposed rules."""
    only_first: tuple[Partnerless, ...]
    only_second: tuple[Partnerless, ...]
    places: tuple[Place, ...]
    rules: tuple[IgnoreRule, ...]
    pairs: tuple[tuple[Seq, Seq], ...] = ()
    """The aligned ones."""
    telemetry: tuple[str, ...] = ()
    """Patterns of endpoints that read like telemetry."""
    telemetry_unproved: tuple[str, ...] = ()
    """Those with values that may order something: for a person to look at."""
    words: Mapping[Seq, Mapping[str, str]] = field(default_factory=dict)
    """By request of the second: words that earlier answers brought, and those that the first's brought for them."""

    def to_json(self) -> dict[str, Any]:
        """Give the lesson as JSON types; `docs/commands-rules.md` describes them."""
        return {
            "first": self.first,
            "second": self.second,
            "requests": list(self.requests),
            "aligned": self.aligned,
            "same": self.same,
            "would_match": self.would_match,
            "only_first": [one._asdict() for one in self.only_first],
            "only_second": [one._asdict() for one in self.only_second],
            "places": [
                {
                    "match": one.match,
                    "place": one.place,
                    "class": one.value_class.value,
                    "form": one.form,
                    "seen": one.seen,
                    "flows": one.flows,
                    "seqs": list(one.seqs),
                    "values": list(one.values),
                    "proposed": one.proposed,
                    "why": one.why,
                }
                for one in self.places
            ],
            "snippet": render_telemetry(self.telemetry) + render_rules(self.rules),
            "telemetry": list(self.telemetry),
            "telemetry_unproved": list(self.telemetry_unproved),
        }


def learn(
    store: Store,
    first: RunInfo,
    second: RunInfo,
    ignore: tuple[IgnoreRule, ...],
    redactor: Redactor,
    progress: Progress = lambda _done, _of: None,
    classes: Classes = Classes(),  # noqa: B008, frozen
    fields: FieldRules = SHIPPED_FIELDS,
    profiles: Sequence[Profile] = (),
    hashed: HashWord | None = None,
) -> Lesson:
    """Compare two sealed recordings under the rules of now. Blocking; reads both once, and partners again.

    hashed: gives the keyed hashes of words as the environments of the recordings have them; without it these are not known.
    Raises: LogCorrupt.
    """
    rules = compile_rules(ignore, thread_time, fields, profiles)
    tapes = (
        _Tape(store, first, rules, redactor, classes),
        _Tape(store, second, rules, redactor, classes),
    )
    total = first.exchanges + second.exchanges
    items = [list(tapes[0].items(progress, 0, total))]
    items.append(list(tapes[1].items(progress, first.exchanges, total)))

    def near(one: Seq, other: Seq) -> float:
        return distance(tapes[0].scrubbed(one), tapes[1].scrubbed(other))

    found = align(items[0], items[1], near, (tapes[0].key, tapes[1].key))
    one, other = ({item.seq: item.fingerprint for item in tape} for tape in items)
    comparable = have_one_key(store, first, second)
    changed = {
        pair
        for pair in found.pairs
        if one[pair[0]] != other[pair[1]]
        or (comparable and _have_other_secrets(tapes, pair, rules))
    }
    strayed = {pair for pair in found.pairs if not _have_same_messages(tapes, pair, rules)}

    def observe(under: Rules) -> list[_Observation]:
        seen: list[_Observation] = []
        for pair in found.pairs:
            if pair in changed:
                seen += _observe(tapes, pair, under, comparable=comparable)
            if pair in strayed:
                seen += islice(_observe_messages(tapes, pair, under), _STRAYED)
        _mark_flows(tapes, seen)
        return seen

    seen = observe(rules)
    places = _prove_everywhere(tapes, _judge(tapes, seen), hashed)
    proposed = _rules_of(places)
    after = compile_rules((*ignore, *proposed), thread_time, fields, profiles)
    differed = changed | strayed
    # What an earlier answer of the same recording brought is in a replay what it was.
    left = {one.seqs for one in observe(after) if not one.flows}
    matching = len(differed - left)
    same = len(found.pairs) - len(differed)
    return Lesson(
        first=first.id,
        second=second.id,
        requests=(len(items[0]), len(items[1])),
        aligned=len(found.pairs),
        same=same,
        would_match=same + matching,
        only_first=tuple(map(tapes[0].partnerless, found.only_first)),
        only_second=tuple(map(tapes[1].partnerless, found.only_second)),
        places=tuple(places),
        rules=proposed,
        pairs=tuple(found.pairs),
        words=_collect_words(seen),
    )


def render_rules(rules: Sequence[IgnoreRule]) -> str:
    """Give rules as YAML for a configuration; empty where there are none."""
    if not rules:
        return ""
    lines = ["ignore:"]
    for rule in rules:
        # A JSON string is one of YAML too, and holds whatever a name may.
        lines.append(f"  - match: {json.dumps(rule.match.text)}")
        for key in ("json", "header", "query", "form"):
            names = getattr(rule, key)
            if names:
                lines.append(f"    {key}: {json.dumps(list(names))}")
    return "\n".join(lines) + "\n"


def render_telemetry(patterns: Sequence[str]) -> str:
    """Give patterns of telemetry as YAML for a configuration; empty where there are none."""
    lines = [f"    - {json.dumps(text)}" for text in patterns]
    return "\n".join(["classes:", "  telemetry:", *lines]) + "\n" if lines else ""


class _Tape:
    """The requests of one recording."""

    def __init__(
        self, store: Store, info: RunInfo, rules: Rules, redactor: Redactor, classes: Classes
    ) -> None:
        self.store = store
        self.info = info
        self.rules = rules
        self.redactor = redactor
        self.classes = classes
        self.websockets: set[Seq] = set()
        """Those that became a WebSocket; known once `items` has been read."""
        self.exchange = lru_cache(_HELD)(self._exchange)
        self.scrubbed = lru_cache(_HELD)(self._scrubbed)

    def items(self, progress: Progress, done: int, total: int) -> Iterator[Item]:
        for recorded in self.store.exchanges.all(self.info):
            exchange = reclassify(recorded, self.classes)
            progress(done + exchange.seq, total)
            # A tunnel that failed is found by counting, telemetry by its path.
            if exchange.tunnel.number and exchange.request.method == "CONNECT":
                continue
            if exchange.request_class is RequestClass.TELEMETRY:
                continue
            request = exchange.request
            if exchange.websocket is not None:
                self.websockets.add(exchange.seq)
            yield Item(
                exchange.seq,
                self._fingerprint(exchange, self.rules),
                request.method,
                f"{request.scheme}://{request.authority}",
                request.path,
            )

    def fingerprint(self, seq: Seq, rules: Rules) -> Fingerprint:
        return self._fingerprint(self.exchange(seq), rules)

    def _fingerprint(self, exchange: Exchange, rules: Rules) -> Fingerprint:
        secret = self.redactor.redacted_query(exchange.request)
        return fingerprint(canonical(exchange.request, exchange.request_class, rules, secret))

    def messages(self, seq: Seq, after: int = -1) -> Iterator[Message]:
        """Give the messages of a WebSocket behind a place in it."""
        return self.store.messages.all(self.info, seq, after)

    def asked(self, seq: Seq, number: int | None) -> Request:
        """Give a request, or a message of its WebSocket as one."""
        request = self.exchange(seq).request
        if number is None:
            return request
        return as_request(request, next(self.messages(seq, number - 1)).data)

    def partnerless(self, seq: Seq) -> Partnerless:
        request = self.exchange(seq).request
        return Partnerless(seq, request.method, one_line(request.url))

    def key(self, seq: Seq) -> bytes:
        return scrubbed_key(self.exchange(seq).request)

    def _exchange(self, seq: Seq) -> Exchange:
        found = self.store.exchanges.find(self.info, seq)
        assert found is not None
        return reclassify(found, self.classes)

    def _scrubbed(self, seq: Seq) -> Request:
        return scrub(self.exchange(seq).request)


@dataclass(slots=True)
class _Observation:
    """One place of one pair."""

    seqs: tuple[Seq, Seq]
    requests: tuple[tuple[str, str, str], tuple[str, str, str]]
    """Method, origin and path of both."""
    difference: Difference
    full: tuple[str, str]
    """Both values, not shortened where they could be found whole."""
    at_s: tuple[float, float]
    kind: RequestClass
    """Of the request. A message of a WebSocket has no class of its own, and may be an effect."""
    numbers: tuple[int, int] | None = None
    """Of the messages, in WebSockets."""
    before: tuple[When, When] = ((0, 0), (0, 0))
    """An answer before this can have brought the value."""
    flows: bool = field(default=False)
    words: dict[str, str] = field(default_factory=dict)
    """Words of the second that earlier answers brought, with those of the first."""

    @property
    def seen(self) -> Seen:
        found = self.difference
        old, new = (decode_shown(found.place, shown) for shown in (found.recorded, found.asked))
        return Seen(old, new, *self.at_s)


def _have_other_secrets(tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules) -> bool:
    """Say whether a value that redaction has replaced in both is another one."""
    return next(_changed_secrets(tapes, pair, rules), None) is not None


def _changed_secrets(
    tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules
) -> Iterator[str]:
    one, other = (tape.exchange(seq) for tape, seq in zip(tapes, pair, strict=True))
    return find_changed_secrets(one, other, rules, tapes[0].redactor.inner_secrets)


def _show_secrets(one: Request, other: Request, place: str) -> Difference:
    """Show two values that redaction has replaced, or a part of which it has."""
    steps = find_steps(place)
    if steps is not None:
        olds, news = (list(values_at(request, steps)) for request in (one, other))
        if len(olds) == len(news) == 1:
            return show_difference(place, *map(show_json, (olds[0], news[0])))
    return Difference(place, _REPLACED, _REPLACED)


def _observe(
    tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules, *, comparable: bool
) -> Iterator[_Observation]:
    one, other = tapes[0].exchange(pair[0]), tapes[1].exchange(pair[1])
    secret = tapes[0].redactor.redacted_query(one.request)
    secret |= tapes[1].redactor.redacted_query(other.request)
    kind = one.request_class if one.request_class is other.request_class else RequestClass.EFFECT
    places = list(differences(one.request, other.request, rules, kind, secret, _PLACES))
    known = {found.place for found in places}
    for place in _changed_secrets(tapes, pair, rules) if comparable else ():
        if place not in known:
            places.append(_show_secrets(one.request, other.request, place))
    for found in places:
        yield _Observation(
            pair,
            (_whence(one.request), _whence(other.request)),
            found,
            (
                _full(one.request, found.place, found.recorded),
                _full(other.request, found.place, found.asked),
            ),
            (one.started_ns / 1e9, other.started_ns / 1e9),
            kind,
            before=((pair[0], -1), (pair[1], -1)),
        )


def _have_same_messages(tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules) -> bool:
    """Say whether the client said the same on both WebSockets, where there are two."""
    return next(_strays(tapes, pair, rules), None) is None


def _strays(tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules) -> Iterator[Pair]:
    if pair[0] not in tapes[0].websockets or pair[1] not in tapes[1].websockets:
        return iter(())
    handshake = tapes[0].exchange(pair[0])
    masks = rules.of(handshake.request, handshake.request_class).masks
    return find_strays(tapes[0].messages(pair[0]), tapes[1].messages(pair[1]), masks)


def _observe_messages(
    tapes: tuple[_Tape, _Tape], pair: tuple[Seq, Seq], rules: Rules
) -> Iterator[_Observation]:
    one, other = (tape.exchange(seq) for tape, seq in zip(tapes, pair, strict=True))
    whence = _whence(one.request), _whence(other.request)
    is_model = one.request_class is RequestClass.INFERENCE
    may_be = RequestClass.INFERENCE if is_model else RequestClass.EFFECT
    for first, second in _strays(tapes, pair, rules):
        if first is None or second is None or first.message.kind is not second.message.kind:
            found = Difference("message", _name(first), _name(second))
            at_s = one.started_ns / 1e9, other.started_ns / 1e9
            yield _Observation(pair, whence, found, (found.recorded, found.asked), at_s, may_be)
            continue
        old, new = first.message, second.message
        kind = one.request_class
        data = old.data, new.data
        for found in message_differences(one.request, old.kind, *data, rules, kind, _PLACES):
            yield _Observation(
                pair,
                whence,
                found,
                (
                    _full(as_request(one.request, old.data), found.place, found.recorded),
                    _full(as_request(other.request, new.data), found.place, found.asked),
                ),
                (one.started_ns / 1e9 + old.at_us / 1e6, other.started_ns / 1e9 + new.at_us / 1e6),
                may_be,
                (first.number, second.number),
                ((old.after, first.number), (new.after, second.number)),
            )


def _name(said: Said | None) -> str:
    return ABSENT if said is None else f"message[{said.number}], {said.message.kind.value}"


def _whence(request: Request) -> tuple[str, str, str]:
    return request.method, f"{request.scheme}://{request.authority}", request.path


def _full(request: Request, place: str, shown: str) -> str:
    """Give a value of a JSON body whole where it was shortened, else as it is shown."""
    if is_whole(shown) or not place.startswith("body $"):
        return shown
    values = list(values_at(request, find_steps(place) or ()))
    text = show_json(values[0])[:_MOST_CHARS] if len(values) == 1 else shown
    # Where items moved, something else stands there.
    return text if shown.strip(".")[:40] in text else shown


# ---- what flows --------------------------------------------------------------------------------------


def _mark_flows(tapes: tuple[_Tape, _Tape], seen: Sequence[_Observation]) -> None:
    """Mark the values that an earlier answer of the same recording brought."""
    wanted: tuple[set[str], set[str]] = (set(), set())
    for one in seen:
        for side in (0, 1):
            words = _TOKEN.findall(one.full[side])
            wanted[side].update(words, *map(_parts_of, words))
    if not wanted[0] or not wanted[1]:
        return
    brought = [_first_seen(tape, words) for tape, words in zip(tapes, wanted, strict=True)]
    for one in seen:
        texts = [
            _TOKEN.sub(partial(_placeholder, brought[side], one.before[side]), one.full[side])
            for side in (0, 1)
        ]
        one.flows = texts[0] == texts[1] and "\x00" in texts[0]
        olds, news = (_TOKEN.findall(text) for text in one.full)
        if len(olds) == len(news):
            one.words = {
                new: old
                for old, new in zip(olds, news, strict=True)
                if old != new
                and brought[0].get(old, one.before[0]) < one.before[0]
                and brought[1].get(new, one.before[1]) < one.before[1]
            }


def _collect_words(seen: Sequence[_Observation]) -> dict[Seq, dict[str, str]]:
    found: dict[Seq, dict[str, str]] = {}
    for one in seen:
        if one.words:
            found.setdefault(one.seqs[1], {}).update(one.words)
    return found


def _placeholder(brought: dict[str, When], before: When, found: re.Match[str]) -> str:
    word = found[0]
    for part in (word, *_parts_of(word)):
        if brought.get(part, before) < before:
            return word.replace(part, "\x00")
    return word


def _parts_of(word: str) -> list[str]:
    """Give what an answer may have brought of a word beside what the agent has written: of `v1-TOKEN` the token. Longest first."""
    signs = [at for at, char in enumerate(word) if char in "-_"][:_MOST_SIGNS]
    parts = [*(word[at + 1 :] for at in signs), *(word[:at] for at in signs)]
    return sorted((one for one in parts if _TOKEN.fullmatch(one)), key=len, reverse=True)


def _first_seen(tape: _Tape, wanted: set[str]) -> dict[str, When]:
    """Find the first answers that hold words of 12 characters or more."""
    words = {word.encode() for word in wanted}
    found: dict[str, When] = {}
    for when, told, _ in read_answers(tape.store, tape.info):
        if told is None:
            continue
        here = words.intersection(_BYTE_TOKEN.findall(_ESCAPE.sub(b" ", told)))
        for word in map(bytes.decode, here):
            found[word] = min(when, found.get(word, when))
        if len(found) == len(words) and not tape.websockets:
            break
    return found


# ---- what it is --------------------------------------------------------------------------------------


def _judge(tapes: tuple[_Tape, _Tape], seen: Sequence[_Observation]) -> list[Place]:
    groups: dict[tuple[str, ...], list[_Observation]] = {}
    for one in seen:
        groups.setdefault(_group(one), []).append(one)
    places = [place for group in groups.values() for place in _places(tapes, group)]
    return sorted(places, key=lambda place: (place.match, place.seqs))


def _group(one: _Observation) -> tuple[str, ...]:
    """Give what makes differences the same place: endpoint without ids, and path without indexes."""
    method, origin, path = one.requests[0]
    return method, origin, id_shape(path), with_indexes(one.difference.place, None)


def with_indexes(place: str, indexes: tuple[Step, ...] | None) -> str:
    """Give a JSON place with other indexes; None stands for `*`, and no tuple for `*` everywhere."""
    steps = find_steps(place)
    if steps is None:
        return place
    given = iter(indexes or ())
    text = ""
    for step in steps:
        if isinstance(step, int):
            index = next(given, None)
            text += f"[{'*' if index is None else index}]"
        elif step is None:
            text += "[*]"
        else:
            text += json_step(step)
    return f"body ${text}"


def _indexes(place: str) -> tuple[Step, ...]:
    steps = find_steps(place)
    return tuple(step for step in steps or () if isinstance(step, int))


def _places(tapes: tuple[_Tape, _Tape], group: list[_Observation]) -> list[Place]:
    """Give the places of one group: one if all items differ in the same way, else one for each that is volatile."""
    whole = _place(tapes, group)
    if whole.value_class is not ValueClass.CONTENT and _all_have_class(tapes, group, whole):
        return [whole]
    by_place: dict[str, list[_Observation]] = {}
    for one in group:
        by_place.setdefault(one.difference.place, []).append(one)
    if len(by_place) == 1:
        return [whole]
    single = {place: _place(tapes, found) for place, found in by_place.items()}
    rest = [
        one
        for place, found in by_place.items()
        if single[place].value_class is ValueClass.CONTENT
        for one in found
    ]
    kept = [one for one in single.values() if one.value_class is not ValueClass.CONTENT]
    return [*kept, *([_place(tapes, rest)] if rest else [])]


def _place(tapes: tuple[_Tape, _Tape], group: list[_Observation]) -> Place:
    own = [one for one in group if not one.flows]
    kind, form = ValueClass.CONTENT, ""
    if group[0].difference.place.partition(" ")[0] in _NAMED:
        kind, form = classify_values([one.seen for one in own or group])
    first = (own or group)[0]
    is_party = is_unproved = False
    if kind is not ValueClass.CONTENT and not all(_is_proved(tapes, kind, one) for one in own):
        is_party = names_party(first.difference.place)
        is_unproved = not is_party and kind is not ValueClass.COUNTER
        kind, form = ValueClass.CONTENT, ""
    places = [_indexes(one.difference.place) for one in group]
    # An index that is the same everywhere stays.
    varying = tuple(at[0] if len(set(at)) == 1 else None for at in zip(*places, strict=True))
    place = with_indexes(first.difference.place, varying)
    why = PARTY if is_party else UNPROVED if is_unproved else CONTENT
    why = why if own else FLOWS
    if own and kind is not ValueClass.CONTENT:
        why = "" if _nameable(place) and _leads_somewhere(tapes, first, place) else NO_RULE
    return Place(
        match=_match(group),
        place=place,
        value_class=kind,
        form=form,
        seen=len(group),
        flows=len(group) - len(own),
        seqs=first.seqs,
        values=(first.difference.recorded, first.difference.asked),
        proposed=not why,
        why=why,
    )


def _is_proved(tapes: tuple[_Tape, _Tape], kind: ValueClass, one: _Observation) -> bool:
    seen = one.seen
    begun = [tape.info.created_ns / 1e9 for tape in tapes]
    windows = [Window(*at) for at in zip(begun, one.at_s, strict=True)]
    return is_proved(
        one.difference.place,
        kind,
        [Value(seen.one, windows[0]), Value(seen.other, windows[1])],
        is_call=_is_call(tapes[0], one),
    )


def _is_call(tape: _Tape, one: _Observation) -> bool:
    """Say whether a place is the `id` of a JSON-RPC message."""
    place = one.difference.place
    steps = find_steps(place)
    if not steps or steps[-1] != "id" or any(isinstance(step, str) for step in steps[:-1]):
        return False
    number = None if one.numbers is None else one.numbers[0]
    beside = values_at(tape.asked(one.seqs[0], number), (*steps[:-1], "jsonrpc"))
    return next(beside, None) is not None


def _all_have_class(tapes: tuple[_Tape, _Tape], group: list[_Observation], whole: Place) -> bool:
    """Say whether a place with `[*]` leads to nothing but values of its class, also where none differed."""
    steps = find_steps(whole.place)
    if steps is None or None not in steps or whole.value_class is ValueClass.COUNTER:
        return True
    for one in group[:_LOOKED_AT]:
        for side in (0, 1):
            at_s = one.at_s[side]
            number = None if one.numbers is None else one.numbers[side]
            for value in values_at(tapes[side].asked(one.seqs[side], number), steps):
                shown = one_line(show_json(value))
                kind, _ = classify_values([Seen(shown, shown, at_s, at_s)])
                if kind is not whole.value_class:
                    return False
    return True


def _match(group: list[_Observation]) -> str:
    method, origin, path = group[0].requests[0]
    shape = id_shape(path)
    others = {request[2] for one in group for request in one.requests} - {path}
    if others and all(id_shape(other) == shape for other in others):
        # Only the ids that differ: what was seen of one order may be said of the next.
        segments = zip(*(one.split("/") for one in (path, *others)), strict=True)
        path = "/".join(one[0] if len(set(one)) == 1 else "*" for one in segments)
    where = f"{origin}{path if path.startswith('/') else ''}"
    # A method or a spelling that patterns have no word for: the rule names none, or has a star there.
    wide = origin + _starred(path)
    for text in (f"{method} {where}", where, f"{method} {wide}"):
        with contextlib.suppress(ValueError):
            return parse_match(text).text
    return wide


def _starred(path: str) -> str:
    """Put a star in the place of each segment that is spelled as no pattern may be."""
    if not path.startswith("/"):
        return ""
    segments = path[1:].split("/")
    return "".join(f"/{_star(segment)}" for segment in segments)


def _star(segment: str) -> str:
    try:
        return parse_match(f"*://x/{segment}").path[1:] if segment else "*"
    except ValueError:
        return "*"


# ---- what is proved of all requests that a rule would apply to ----


class _Sent(NamedTuple):
    """A value at a place, in any request of one recording."""

    shown: str
    before: When
    at_s: float
    asked: Request

    @property
    def words(self) -> set[bytes]:
        return find_words(self.shown.encode("utf-8", "surrogatepass"))


def _prove_everywhere(
    tapes: tuple[_Tape, _Tape], places: list[Place], hashed: HashWord | None
) -> list[Place]:
    """Withdraw the rules that would also apply to a request in which nothing proves that the client made the value."""
    asked = [one for one in places if one.proposed]
    if not asked:
        return places
    sent, told = list[dict[Place, list[_Sent]]](), list[Mapping[bytes, When]]()
    holders = list[Holders]()
    runs = tuple(tape.info for tape in tapes)
    for tape in tapes:
        found = _find_sent(tape, asked)
        wanted = {word for values in found.values() for one in values for word in one.words}
        sent.append(found)
        holders.append(find_holders(tape.store, tape.info, tape.classes, _find_linking(found)))
        asks_a_model = partial(_asks_a_model, tape)
        first = find_first(read_told(tape.store, tape.info, runs, asks_a_model), wanted)
        told.append(first | find_given(tape.store, runs, wanted, hashed))
    why = {
        one: _why_not(
            one,
            (sent[0][one], sent[1][one]),
            (Known(told[0]), Known(told[1])),
            (holders[0], holders[1]),
            (runs[0].created_ns / 1e9, runs[1].created_ns / 1e9),
        )
        for one in asked
    }
    return [
        replace(one, proposed=not why[one], why=why[one]) if one in why else one for one in places
    ]


def _asks_a_model(tape: _Tape, exchange: Exchange) -> bool:
    return reclassify(exchange, tape.classes).request_class is RequestClass.INFERENCE


def _find_sent(tape: _Tape, places: Sequence[Place]) -> dict[Place, list[_Sent]]:
    """Find what is at some places in all requests of a recording."""
    found: dict[Place, list[_Sent]] = {one: [] for one in places}
    matches = [(one, parse_match(one.match)) for one in places]
    for recorded in tape.store.exchanges.all(tape.info):
        exchange = reclassify(recorded, tape.classes)
        request, kind = exchange.request, exchange.request_class
        target = (request.method, request.scheme, request.host, request.port, request.target)
        here = [one for one, match in matches if match.matches(*target)]
        if not here or kind is RequestClass.TELEMETRY:
            continue
        begun_s = exchange.started_ns / 1e9
        said = [(request, (int(exchange.seq), -1), begun_s)]
        if exchange.websocket is not None:
            said += [
                (
                    as_request(request, message.data),
                    (int(message.after), number),
                    begun_s + message.at_us / 1e6,
                )
                for number, message in enumerate(tape.messages(exchange.seq))
                if message.from_client
            ]
        for place in here:
            for asked, before, at_s in said:
                found[place] += [
                    _Sent(one, before, at_s, asked) for one in texts_at(asked, place.place)
                ]
    return found


def _find_linking(sent: Mapping[Place, list[_Sent]]) -> set[bytes]:
    """Give the words by which one request may mean another: those of drawn values at places whose names do not say that they last."""
    return {
        word
        for place, values in sent.items()
        if place.value_class in (ValueClass.ID, ValueClass.RANDOM)
        and not names_lasting(place.place)
        for one in values
        for word in one.words
    }


def _why_not(
    place: Place,
    sent: tuple[list[_Sent], list[_Sent]],
    known: tuple[Known, Known],
    holders: tuple[Holders, Holders],
    begun_s: tuple[float, float],
) -> str:
    """Say why a place has no rule after all; empty where each of its values is proved to be made anew."""
    if not sent[0] or not sent[1]:
        return NO_RULE
    is_time = place.value_class is ValueClass.TIME
    for values, words, begun in zip(sent, known, begun_s, strict=True):
        counts = place.value_class is ValueClass.COUNTER
        if any(words.is_unsearched(one.before) for one in values):
            return PARTLY_SEARCHED
        if any(
            words.holds(bare(one.shown), one.before, is_time=is_time or counts) for one in values
        ):
            return BROUGHT
        if is_time and not all(
            is_time_of(bare(one.shown), Window(begun, one.at_s)) for one in values
        ):
            return NOT_EVERYWHERE
    if place.value_class is ValueClass.COUNTER:
        return ""
    for values, others in zip(sent, holders, strict=True):
        if any(others.has_another(one.words, one.asked) for one in values):
            return LINKS
    if {one.shown for one in sent[0]} & {one.shown for one in sent[1]}:
        return NOT_EVERYWHERE
    both = (*sent[0], *sent[1])
    kind, _ = classify_values([Seen(one.shown, one.shown, one.at_s, one.at_s) for one in both])
    drawn = (ValueClass.ID, ValueClass.RANDOM)
    is_alike = kind is place.value_class or (kind in drawn and place.value_class in drawn)
    return "" if is_alike else NOT_EVERYWHERE


# ---- what to write -----------------------------------------------------------------------------------


def _nameable(place: str) -> bool:
    key, _, name = place.partition(" ")
    try:
        match key:
            case "body":
                return name.startswith("$") and bool(parse_json_path(name))
            case "header":
                return bool(parse_header_name(name))
            case "query" | "form":
                return bool(parse_parameter(unquote_plus(name, errors="strict")))
            case _:
                return False
    except ValueError:
        return False


def _leads_somewhere(tapes: tuple[_Tape, _Tape], one: _Observation, place: str) -> bool:
    """Say whether a JSON path finds the value; it does not where a name is shown with escapes, or shortened."""
    steps = find_steps(place)
    if steps is None:
        return True
    number = None if one.numbers is None else one.numbers[0]
    return any(True for _ in values_at(tapes[0].asked(one.seqs[0], number), steps))


def _rules_of(places: Sequence[Place]) -> tuple[IgnoreRule, ...]:
    """Give one rule for each endpoint that has volatile places."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in places:
        if not one.proposed:
            continue
        key, _, name = one.place.partition(" ")
        if key in ("query", "form"):
            name = unquote_plus(name)
        names = found.setdefault(one.match, {}).setdefault("json" if key == "body" else key, [])
        if name not in names:
            names.append(name)
    return tuple(
        IgnoreRule(parse_match(match), **{key: tuple(names) for key, names in keys.items()})
        for match, keys in found.items()
    )
