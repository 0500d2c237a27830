"""What a run did, one act an exchange, as far as another run can be compared with it.

An act of a model call has what is new in its request since the call before of its lane: what was said before was compared with that
one. Of any other exchange it has the request, and of both the answer.
"""

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from zlib import crc32

from ...tape.canonical.canonical_request import Rules
from ...tape.canonical.canonical_url import canonical_url
from ...tape.canonical.json import canonical_json
from ...tape.dialects import InferenceResponse
from ...tape.diff.made_anew import Window
from ...tape.exchange import Exchange, Fingerprint, RequestClass, Seq, Spilled
from ...tape.records.content_coding import read_codings, undo_coding
from ..reading.made_answers import MADE
from ..show.listing import show_arguments
from ..state.calls_before import NO_OUTCOME, Exchanges
from ..state.context_parts import ContextPart, split_items
from ..steps.agent_lanes import Placed, count_same
from ..steps.model_call import ModelCall
from ..steps.model_context import Item
from ..steps.step import Edge, Step, StepKind
from ..steps.tracer import Tracer
from .fields_beyond_dialect import counted_parts, find_links, read_beside, read_unread
from .made_anew import Anew, Told, find_anew, find_counted, find_numbers, find_short_ids, find_steps

_MOST = 8 * 1024 * 1024
"""Bytes of a body that are compared as text."""
_SEARCHED = 1024 * 1024
"""Characters of a text up to which ids and times are looked for in it."""
_WORDS = re.compile(r"\w+")
_LONG_NUMBER = re.compile(r"[0-9]{10}")
_UNDER_WAY = {RequestClass.INFERENCE.value: StepKind.MODEL_CALL}
_SPOKEN = frozenset(("user", "assistant", "system", "developer", "tool call", "thought", "image"))
"""What agents and models say: the ids in it are from elsewhere."""
_UNREAD = "no answer"
_SKETCHED = 4000
"""Characters of an act that its sketch is made of."""


@dataclass(slots=True)
class Said:
    """One part of what was asked or answered."""

    what: str
    name: str
    text: str
    call: str | None = None
    """Id of a tool call."""
    item: int = 0
    """Place of its message in the request, from 0."""
    form: bytes = b""
    """Hash of the text with a constant for whatever looks like an id or a time."""
    tokens: tuple[Anew, ...] = ()
    """Its ids and times, in order."""
    begins: bool = False
    """Whether ids first appear here: in an answer, or in the result of a tool."""
    makes: bool = False
    """Whether the answer to an effect: what is counted is made there."""

    @property
    def key(self) -> tuple[str, str, bytes]:
        """What two parts have to share to be the same but for ids and times."""
        return self.what, self.name, self.form


class Target(NamedTuple):
    """What is asked, of what is no model call; and whether anybody answered that, of all."""

    method: str
    origin: str
    path: str
    form: str = ""
    """The path with a constant for its ids."""
    tokens: tuple[Anew, ...] = ()
    made: str = ""
    """What the answer is if nobody gave it: `hypothetical`, `stubbed`. It is shown, and not compared."""


_NO_TARGET = Target("", "", "")


@dataclass(slots=True)
class Settings:
    """What a model call asks with, beside its messages."""

    model: str | None
    system: str
    beside: dict[str, str]
    """Every other member of the request that counts, as JSON by its name."""
    links: tuple[tuple[str, str, bool], ...] = ()
    """Ids of what the provider keeps: name, id, and whether one may stand for another from here on."""
    dropped: int = 0
    """How many messages it has no more that the call before had."""


@dataclass(slots=True)
class Act:
    """One exchange, or one model call of a WebSocket."""

    seq: Seq
    part: int
    kind: StepKind
    name: str
    """Of a model call the model, else method and URL."""
    fingerprint: Fingerprint
    lane: int = 0
    overlaps: frozenset[int] = frozenset()
    """Seqs that were under way when it came."""
    cause: tuple[Seq, int] | None = None
    """Of what a tool did: the answer that called it, and the place of the call among those of the answer: many calls have no id."""
    effect: bool = False
    settings: Settings | None = None
    answer_id: str = ""
    """Of a model call, what later requests may call its answer by."""
    asked: list[Said] = field(default_factory=list)
    first_item: int = 0
    """Place of the first message in `asked`."""
    answered: list[Said] = field(default_factory=list)
    outcome: str = ""
    """How it ended: status, `cut`, a fault; and whether the agent saw it."""
    target: Target = _NO_TARGET
    edges: tuple[Edge, ...] = ()
    """Why it followed from others."""
    asked_key: bytes = b""
    """Hash of what it asks, ids and times aside."""
    answered_key: bytes = b""
    _sketch: int = -1

    @property
    def sketch(self) -> int:
        """512 bits: acts that say much of the same have most of them in common. Computed once it is asked for."""
        if self._sketch < 0:
            said = (f"{one.what} {one.name} {one.text}" for one in (*self.answered, *self.asked))
            self._sketch = sketch(" ".join(said)[:_SKETCHED])
        return self._sketch

    @property
    def is_call(self) -> bool:
        """Whether a model was asked, in a conversation."""
        return self.settings is not None

    @property
    def drops(self) -> bool:
        """Whether messages are gone that the call before had."""
        return self.settings is not None and bool(self.settings.dropped)

    @property
    def place(self) -> str:
        """SEQ, or SEQ.PART of a WebSocket."""
        return f"{self.seq}.{self.part}" if self.part else str(self.seq)


def read_acts(exchanges: Exchanges, rules: Rules | None = None) -> list[Act]:
    """Read what a run did, in order; telemetry and failed tunnels aside.

    rules: say what of a request does not count.
    Raises: LogCorrupt.
    """
    reader = _Reader(rules)
    for seq in exchanges.seqs:
        exchange = exchanges.find_taken(seq)
        if exchange is None:
            continue
        reader.exchange = exchange
        messages = exchanges.messages(exchange) if exchange.websocket is not None else ()
        reader.take(exchange, reader.tracer.add(exchange, messages))
    reader.take(None, reader.tracer.end())
    reader.end()
    reader.acts += _under_way(exchanges)
    arrived = reader.tracer.arrived
    reader.acts.sort(key=lambda act: (arrived.get((act.seq, act.part), act.seq), act.part > 0))
    finisher = _Finisher(reader.acts, reader.asked_s)
    for act in reader.acts:
        finisher.finish(act)
    return reader.acts


def _under_way(exchanges: Exchanges) -> list[Act]:
    """Give the requests that a run ended in the midst of: the log has them, without an outcome."""
    found = []
    for event in exchanges.under_way():
        data = event.data
        if data["request_class"] == RequestClass.TELEMETRY.value or data["method"] == "CONNECT":
            continue
        url = urlsplit(data["url"])
        found.append(
            Act(
                event.seq,
                0,
                _UNDER_WAY.get(data["request_class"], StepKind.HTTP),
                f"{data['method']} {data['url']}",
                Fingerprint(data["fingerprint"]),
                effect=data["request_class"] == RequestClass.EFFECT.value,
                outcome=NO_OUTCOME,
                target=Target(data["method"], _origin(data["url"]), url.path),
                asked=[_make("query", url.query)] if url.query else [],
            )
        )
    return found


def _origin(url: str) -> str:
    """Give scheme and authority of a URL; the case of a host and a port that is the scheme's own do not count."""
    found = canonical_url(url)
    # One that is broken has neither.
    return f"{found.scheme}://{found.authority}" if found.authority else url.partition("?")[0]


def _find_proven(acts: list[Act]) -> frozenset[str]:
    """Find the numbers that a run has as ids: in a path, or where the name of the place says so."""
    found = set[str]()
    for act in acts:
        if _LONG_NUMBER.search(act.target.path):
            found.update(one for one in map(unquote, act.target.path.split("/")) if one.isdigit())
        for said in (*act.asked, *act.answered):
            if len(said.text) <= _SEARCHED and _LONG_NUMBER.search(said.text):
                found.update(find_numbers(said.text))
    return frozenset(found)


class _Reader:
    def __init__(self, rules: Rules | None) -> None:
        self.acts: list[Act] = []
        self.exchange: Exchange | None = None
        """That is being read."""
        self._rules = rules
        self.tracer = Tracer(observe=self._observe)
        self._calls: dict[tuple[int, int], Act] = {}
        self._system: dict[int, str] = {}
        self._beside: dict[int, tuple[object, object, dict[str, str]]] = {}
        """By lane, what is before and behind the messages, and what of it counts."""
        self._names: dict[str, str] = {}
        self._steps: list[tuple[Act, Step]] = []

    @property
    def asked_s(self) -> dict[str, float]:
        """When acts were asked, by their places."""
        return {
            act.place: step.timing.started_ns / 1e9
            for act, step in self._steps
            if step.timing is not None
        }

    def end(self) -> None:
        """Put acts into the lanes that the whole run shows."""
        for act, step in self._steps:
            act.lane = step.lane

    def _observe(self, call: ModelCall, placed: Placed) -> None:
        context, before = call.context, placed.before
        same = count_same(before.context.items, context.items) if before is not None else 0
        lane, asked = placed.state.lane.number, context.asked
        beside, unread = self._read_rest(call, lane, same)
        system = context.system
        if self._system.get(lane) == system:
            system = self._system[lane]
        self._system[lane] = system
        settings = Settings(
            asked.model,
            system,
            beside,
            find_links(context, begins=bool(call.part)),
            0 if before is None or context.is_kept else len(before.context.items) - same,
        )
        act = Act(
            call.seq,
            call.part,
            StepKind.MODEL_CALL,
            asked.model or "",
            Fingerprint(b""),
            lane,
            call.overlaps,
            settings=settings,
            answer_id=(call.answer.id or "") if call.answer is not None else "",
            first_item=same,
        )
        act.asked = [
            _said(one, same)
            for one in split_items(context.items[same:], self._names)
            if one.what != "system" and not _is_empty(one)
        ] + unread
        act.answered = _answer_parts(call.answer, self._names)
        act.outcome = _outcome_of(call)
        self._calls[call.seq, call.part] = act

    def _read_rest(
        self, call: ModelCall, lane: int, same: int
    ) -> tuple[dict[str, str], list[Said]]:
        """Give what a request has beside its messages, and what of its new messages no dialect reads."""
        context, split = call.context, call.context.split
        elements = {at: split.element(at) for at in range(same, len(split.places))} if split else {}
        around, exchange = context.tree, self.exchange
        if exchange is not None and exchange.seq == call.seq and not call.part:
            key = split.key if split else ""
            around, elements = counted_parts(exchange, self._rules, around, key, elements)
        known = self._beside.get(lane)
        if split and known and known[0] is split.head and known[1] is split.tail:
            beside = known[2]
        else:
            beside = read_beside(context, around)
            if split:
                self._beside[lane] = split.head, split.tail, beside
        unread = []
        for at, tree in elements.items():
            text = read_unread(context.items[at], tree)
            if text:
                unread.append(_make("beside", text, item=at))
        return beside, unread

    def take(self, exchange: Exchange | None, steps: list[Step]) -> None:
        """Make acts of the steps of an exchange."""
        told: set[tuple[int, int]] = set()
        for step in steps:
            place = step.seq, step.part
            if place in told:
                continue
            told.add(place)
            found = self._calls.pop(place, None)
            if found is not None:
                found.edges = tuple(
                    edge for one in steps if one.seq == step.seq for edge in one.edges
                )
                if exchange is not None and exchange.seq == step.seq:
                    found.fingerprint = exchange.fingerprint
                    if not step.part:
                        _add_ending(found, exchange)
                    found.target = found.target._replace(made=MADE.get(exchange.verdict.value, ""))
                self.acts.append(found)
                self._steps.append((found, step))
            elif exchange is not None and exchange.seq == step.seq and _counts(exchange):
                self.acts.append(_other(exchange, step))
                self._steps.append((self.acts[-1], step))


def _counts(exchange: Exchange) -> bool:
    failed_tunnel = exchange.tunnel.number and exchange.request.method == "CONNECT"
    return not failed_tunnel and exchange.request_class is not RequestClass.TELEMETRY


def _other(exchange: Exchange, step: Step) -> Act:
    request = exchange.request
    act = Act(
        exchange.seq,
        step.part,
        step.kind,
        f"{request.method} {request.url}",
        exchange.fingerprint,
        step.lane,
        frozenset(exchange.lane.overlaps) if exchange.lane is not None else frozenset(),
        effect=step.effect,
        target=Target(
            request.method,
            _origin(request.url),
            request.path,
            made=MADE.get(exchange.verdict.value, ""),
        ),
        edges=step.edges,
    )
    if step.cause is not None:
        act.cause = step.cause[0], next((edge.number for edge in step.edges if edge.number), 0)
    query = request.target.partition("?")[2]
    body = _text_of(request.body, request.headers, request.spilled)
    act.asked = [_make("query", query)] if query else []
    act.asked += [_make("body", body)] if body else []
    response = exchange.response
    if response is not None:
        said = _text_of(response.body, response.headers, response.spilled)
        act.answered = [_make("body", said, begins=True)] if said else []
        for one in act.answered:
            one.makes = step.effect
        act.outcome = str(response.status)
        if not response.complete and exchange.fault is None and exchange.gone is None:
            act.outcome = f"cut {response.status}"
    if exchange.fault is not None:
        act.outcome = f"{exchange.fault.kind.value} {act.outcome}".strip()
    act.outcome = f"{act.outcome}{_delivery(exchange)}".removeprefix(", ")
    return act


def _add_ending(act: Act, exchange: Exchange) -> None:
    """Say of a model call how it failed, and what the agent saw of it; an answer that no dialect reads is kept as it came."""
    response, fault = exchange.response, exchange.fault
    if fault is not None:
        act.outcome = f"{fault.kind.value} {act.outcome}"
    if response is not None and act.outcome == _UNREAD:
        act.outcome = f"{response.status}" if response.complete else f"cut {response.status}"
        said = _text_of(response.body, response.headers, response.spilled)
        act.answered = [_make("body", said, begins=True)] if said else []
    act.outcome = f"{act.outcome}{_delivery(exchange)}".removeprefix(", ")


def _delivery(exchange: Exchange) -> str:
    """Say what the agent did not see of an answer; empty where it saw the whole, but perhaps for its end."""
    response, gone = exchange.response, exchange.gone
    if exchange.withheld:
        return ", withheld"
    if gone is None:
        return ""
    if response is None:
        return ", client left"
    if not gone.head:
        return ", not seen"
    whole = response.complete and response.spilled is None and len(response.chunks) <= gone.chunks
    return "" if whole else ", seen in part"


def _text_of(body: bytes, headers: tuple[tuple[bytes, bytes], ...], spilled: Spilled | None) -> str:
    if spilled is not None:
        return f"({spilled.size} bytes, BLAKE3 {spilled.match.hex()})"
    coding = read_codings(headers)
    if coding:
        plain = undo_coding(body, coding, _MOST)
        body = body if plain is None else plain
    return _form_of(body[:_MOST]).decode("utf-8", "surrogateescape")


def _form_of(body: bytes) -> bytes:
    """Give the form under which a body of JSON is compared: the order of its keys and its white space do not count. Any other body stays."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return body
    try:
        return canonical_json(body)
    except (ValueError, RecursionError):
        return body


def _answer_parts(answer: InferenceResponse | None, names: dict[str, str]) -> list[Said]:
    """Give the parts of what a model answered."""
    if answer is None or answer.message is None:
        return []
    parts = split_items([Item((answer.message,), 0)], names)
    return [_said(one) for one in parts if not _is_empty(one)]


def _is_empty(part: ContextPart) -> bool:
    """Say whether a model said nothing in a part: a stream may end with an empty text, which a plain answer has not."""
    return part.what == "assistant" and not part.text


def _outcome_of(call: ModelCall) -> str:
    answer = call.answer
    if answer is None:
        return _UNREAD
    if answer.error is not None:
        return f"error {answer.status}: {answer.error.message}"
    if not answer.complete:
        return "cut"
    if answer.finish is None:
        return ""
    # An agent goes by the provider's word, which may be one of several for the same.
    finish, word = answer.finish.value, answer.finish_reason
    return finish if word in (None, finish) else f"{finish} ({word})"


class _Finisher:
    """Adds the forms and keys by which acts are found in the other run; takes them in order."""

    def __init__(self, acts: list[Act], asked_s: dict[str, float]) -> None:
        """Begin.

        asked_s: when acts were asked, by their places.
        """
        self._numbers = _find_proven(acts)
        self._asked_s = asked_s
        self._begun_s = min(asked_s.values(), default=0)
        self._times = set[str]()
        """That the run was given, or has sent, so far."""
        self._counted = set[str]()
        """Numbers of few digits that the run had as ids so far."""
        self._words = set[str]()
        """Short texts that answers to effects made as ids so far."""
        self._system = ""

    def finish(self, act: Act) -> None:
        """Take the next act."""
        at_s = self._asked_s.get(act.place)
        window = Window(self._begun_s, at_s) if at_s is not None else None
        self._note_counted(act)
        told = Told(self._numbers, self._counted, self._words, window, self._times)
        if act.settings is not None and act.settings.system != self._system:
            self._system = act.settings.system
            self._note(find_anew(self._system[:_SEARCHED])[1])
        form, tokens = find_steps(act.target.path, told)
        act.target = act.target._replace(form=form, tokens=tokens)
        for side in (act.asked, act.answered):
            for one in side:
                shown = one.text
                if len(one.text) <= _SEARCHED:
                    shown, one.tokens = find_anew(one.text, told)
                one.form = _hash(shown)
            for one in side:
                self._note(one.tokens)
        kind = "call" if act.is_call else " ".join(act.target[:2])
        act.asked_key = _key(f"{kind} {form} {act.drops}", act.asked)
        act.answered_key = _key(find_anew(act.outcome)[0], act.answered)

    def _note_counted(self, act: Act) -> None:
        steps = act.target.path.split("/")
        self._counted.update(one for one in steps if 6 <= len(one) <= 9 and one.isdecimal())
        for one in (*act.asked, *act.answered):
            if len(one.text) <= _SEARCHED:
                self._counted.update(find_counted(one.text))
                if one.makes:
                    self._words |= find_short_ids(one.text)

    def _note(self, tokens: tuple[Anew, ...]) -> None:
        self._times.update(one.text for one in tokens if one.is_time)


def _said(part: ContextPart, first: int = 0) -> Said:
    text = part.text if part.data is None else part.data
    begins = part.what not in _SPOKEN
    return _make(part.what, text, part.name, part.call, first + part.item, begins=begins)


def _make(
    what: str,
    text: str,
    name: str = "",
    call: str | None = None,
    item: int = 0,
    *,
    begins: bool = False,
) -> Said:
    return Said(what, name, text, call, item, begins=begins)


def _key(head: str, parts: list[Said]) -> bytes:
    told = blake2b(head.encode("utf-8", "surrogatepass"), digest_size=16)
    for one in parts:
        told.update(f"\0{one.what}\0{one.name}\0".encode("utf-8", "surrogatepass") + one.form)
    return told.digest()


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def sketch(text: str) -> int:
    """Give a set of a text's words as bits: of two texts that share most words most bits are the same."""
    bits = 0
    for word in set(_WORDS.findall(text)):
        bits |= 1 << (crc32(word.encode("utf-8", "surrogatepass")) & 511)
    return bits


def likeness(one: int, other: int) -> float:
    """Say how much two sketches share, from 0 to 1."""
    both = (one | other).bit_count()
    return (one & other).bit_count() / both if both else 1.0


def says(act: Act) -> str:
    """Say in one line what an act was."""
    return f"{act.target.made}: {_says(act)}" if act.target.made else _says(act)


def _says(act: Act) -> str:
    if not act.is_call:
        method, origin, path = act.target[:3]
        sign = "* " if act.effect else ""
        return f"{sign}{method} {origin.partition('://')[2]}{path} {act.outcome}".rstrip()
    for part in act.answered:
        if part.what == "tool call":
            return f"{part.name} {show_arguments(part.text)}"
    text = next((one.text for one in act.answered if one.what != "thought" and one.text), "")
    return f"= {text}" if text else f"({act.outcome})"
