"""A store with one exchange of every state and kind, for tests of the page and for looking at it.

`PLAN` is the plan: what there is, and words that the page shows at that step. `python -m playhead.tests.web.cases.kinds_store FOLDER`
writes the store; then `playhead ui --store FOLDER` shows it.
"""

import gzip
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from playhead.store import RunInfo, Store
from playhead.tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from playhead.tape.exchange import (
    Chunk,
    Close,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Interim,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    Redaction,
    Repeat,
    RepeatKind,
    Request,
    RequestClass,
    Secret,
    Seq,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import (
    S,
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    call,
    chat,
    chat_answer,
    result,
    said,
    text,
    thinking,
    use,
    user,
)
from playhead.tests.support.dialects import (
    cut,
    load_sample,
    make_request,
    make_response,
    make_stream,
    sample_names,
)
from playhead.tests.support.exchanges import make_intent, make_record
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.stored import LARGE, save_folder

RUN, PLAYED, BRANCH, CRASHED, STOPPED = "every", "every@1", "every@2", "crashed", "stopped"
_AT_NS = 1_700_000_000_000_000_000
_PAY, _SHOP = "https://pay.test/v1", "https://shop.test"
_CHAT = [said("system", "You are a shop's agent."), said("user", "Refund order 7.")]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0\4\x85\1\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"  # fmt: skip
"""A picture of one pixel."""


@dataclass
class Making:
    """The tape of the recording, and what stands in the store beside its exchanges."""

    tape: Tape = field(default_factory=lambda: Tape(RUN))
    messages: dict[int, list[Message]] = field(default_factory=dict)
    """Of WebSockets, by seq."""
    spilled: list[int] = field(default_factory=list)
    """Seqs whose answers are body files."""
    events: list[tuple[int, EventKind, dict[str, Any]]] = field(default_factory=list)
    """What the log has behind an exchange, by its seq."""

    def note(self, behind: int, kind: EventKind, **data: Any) -> None:
        """Have an event behind an exchange."""
        self.events.append((behind, kind, data))


@dataclass(frozen=True)
class Kind:
    """Something that there is, and how it is made; gives its seq."""

    name: str
    group: str
    make: Callable[[Making], int]
    shows: tuple[str, ...]
    """Words that the page has at this step."""


# ---- model calls -------------------------------------------------------------------------------------


def _sample(name: str) -> Callable[[Making], int]:
    def make(making: Making) -> int:
        request, response = load_sample(name)
        return making.tape.model(request, response)

    return make


def _plain(making: Making) -> int:
    return making.tape.model(chat(_CHAT), chat_answer("On it.", id="chatcmpl-plain"))


def _thought(making: Making) -> int:
    blocks = thinking("The order comes first."), use("toolu_1", "Read", file_path="orders/7")
    stream = anthropic_stream(*blocks, stop="tool_use", id="msg_1")
    return making.tape.model(anthropic([user("Refund order 7.")]), stream)


def _result(making: Making) -> int:
    asked = [user("Refund order 7."), assistant(use("toolu_1", "Read", file_path="orders/7"))]
    asked.append(user(result("toolu_1", "total: 49.00")))
    answer = anthropic_stream(use("toolu_2", "Task", prompt="Find the policy."), id="msg_2")
    return making.tape.model(anthropic(asked), answer)


def _helper(making: Making) -> int:
    asked = anthropic([user("Find the policy.")], system="You search.", tools=("Read",))
    return making.tape.model(asked, anthropic_stream(text("30 days."), id="msg_3"))


def _compacted(making: Making) -> int:
    asked = [user("Summary: order 7 is to be refunded within 30 days.")]
    return making.tape.model(anthropic(asked), anthropic_stream(text("Done."), id="msg_4"))


def _title(making: Making) -> int:
    system = "Generate a concise title of 3-6 words for this coding session."
    asked = anthropic([user("Refund order 7.")], system=system, tools=(), model="claude-haiku-4-5")
    return making.tape.model(asked, anthropic_stream(text("Refund an order"), id="msg_5"))


def _limited_model(making: Making) -> int:
    error = {"error": {"message": "slow down", "type": "rate_limit"}}
    return making.tape.model(
        chat(_CHAT),
        make_response(error, 429, {"retry-after": "1", "content-type": "application/json"}),
    )


def _paused_stream(making: Making) -> int:
    """A stream with a pause of two seconds between two pieces."""
    deltas = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("One", " two")]
    made = make_stream(*deltas, done=True)
    first, *rest = made.chunks
    late = tuple(one._replace(at_us=one.at_us + 2 * S) for one in rest)
    return making.tape.model(
        chat(_CHAT, stream=True), replace(made, chunks=(first, *late)), took_us=3 * S
    )


def _cut_stream(making: Making) -> int:
    made = anthropic_stream(text("This ends in the middle of it."), id="msg_6")
    fault = Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), S, Ending.RST)
    return making.tape.model(anthropic([user("Go on.")]), cut(made, 700), fault=fault)


# ---- other requests ----------------------------------------------------------------------------------


def _read(
    name: str, body: object, *, status: int = 200, kind: str = "application/json", **fields: str
) -> Callable[[Making], int]:
    def make(making: Making) -> int:
        request = make_request(f"{_SHOP}/{name}", b"", method="GET")
        response = make_response(
            body,
            status,
            {
                "content-type": kind,
                **{key.replace("_", "-"): value for key, value in fields.items()},
            },
        )
        return making.tape.add(request, response, RequestClass.READ)

    return make


def _changed(name: str, **changes: Any) -> Callable[[Making], int]:
    """A read whose answer has something more."""

    def make(making: Making) -> int:
        response = replace(make_response(f"{name} ".encode() * 3), **changes)
        asked = make_request(f"{_SHOP}/{name}", b"", method="GET")
        return making.tape.add(asked, response, RequestClass.READ)

    return make


def _over_http2(making: Making) -> int:
    request = replace(make_request(f"{_SHOP}/h2", b"", method="GET"), http_version="HTTP/2.0")
    response = replace(make_response({"over": "h2"}), http_version="HTTP/2.0", reason=b"")
    return making.tape.add(request, response, RequestClass.READ)


def _interim(making: Making) -> int:
    hints = Interim(100, 103, b"Early Hints", ((b"link", b"</a.css>; rel=preload"),))
    request = make_request(f"{_SHOP}/hints", b"", method="GET")
    return making.tape.add(request, make_response({}), RequestClass.READ, interim=(hints,))


def _large(making: Making) -> int:
    seq = _read("large.bin", b"", kind="application/octet-stream")(making)
    making.spilled.append(seq)
    return seq


def _telemetry(making: Making) -> int:
    asked = make_request("https://telemetry.test/v1/traces", {"resourceSpans": []})
    return making.tape.add(asked, make_response({}), RequestClass.TELEMETRY)


def _tunnel(making: Making) -> int:
    asked = replace(
        make_request("https://down.test:443/", b"", method="CONNECT"), target="down.test:443"
    )
    fault = Fault(FaultKind.DNS, Phase.CONNECT, RedactedText("no such host"), 1000)
    return making.tape.add(asked, None, RequestClass.READ, fault=fault)


def _redacted(making: Making) -> int:
    body = b'{"key": "sk-proj-0000000000000000"}'
    request = make_request(f"{_SHOP}/keys", body, {"authorization": "Bearer 0000000000"})
    secret = Secret("body", 9, 24, "openai")
    redaction = Redaction("request.header.authorization", "credentials")
    asked = replace(request, secrets=(secret,))
    return making.tape.add(asked, make_response({}), RequestClass.READ, redactions=(redaction,))


def _failed(kind: FaultKind, phase: Phase) -> Callable[[Making], int]:
    def make(making: Making) -> int:
        fault = Fault(kind, phase, RedactedText(f"it was {kind.value}"), S // 2)
        asked = make_request(f"{_SHOP}/{kind.value}", b"", method="GET")
        response = make_response(b"part", complete=False) if phase is Phase.BODY else None
        return making.tape.add(asked, response, RequestClass.READ, fault=fault)

    return make


_PHASES = dict.fromkeys(FaultKind, Phase.HEAD) | {FaultKind.REFUSED: Phase.CONNECT, FaultKind.DNS: Phase.CONNECT, FaultKind.TLS: Phase.TLS, FaultKind.CUT: Phase.BODY, FaultKind.DENIED: Phase.REQUEST}  # fmt: skip


# ---- WebSockets and gRPC -----------------------------------------------------------------------------


def _websocket(
    making: Making, messages: list[Message], close: Close | None, url: str, **changes: Any
) -> int:
    request = make_request(url, b"", {"upgrade": "websocket", "connection": "upgrade"}, "GET")
    size = sum(len(one.data) for one in messages)
    summary = WebSocketSummary(len(messages), size, close)
    seq = making.tape.add(
        request, make_response(b"", 101), RequestClass.READ, websocket=summary, **changes
    )
    making.messages[seq] = messages
    return seq


def _socket(making: Making) -> int:
    messages = [
        Message(1000, True, MessageKind.TEXT, b'{"say": "hello"}'),
        Message(2000, False, MessageKind.BINARY, b"\0\1\2\xff"),
        Message(3000, False, MessageKind.PING, b""),
    ]
    return _websocket(
        making, messages, Close(4000, False, 1000, RedactedText("bye")), "https://chat.test/socket"
    )


def _cut_socket(making: Making) -> int:
    fault = Fault(FaultKind.RESET, Phase.BODY, RedactedText("reset"), S)
    messages = [Message(1000, True, MessageKind.TEXT, b"anybody there?")]
    return _websocket(making, messages, None, "https://chat.test/cut", fault=fault)


def _grpc(making: Making) -> int:
    frame = b"\0\0\0\0\5\n\3abc"
    kind = {"content-type": "application/grpc", "te": "trailers"}
    request = replace(
        make_request("https://grpc.test/shop.Orders/Get", frame, kind), http_version="HTTP/2.0"
    )
    response = make_response(pieces=[frame, frame], headers={"content-type": "application/grpc"})
    trailers = ((b"grpc-status", b"0"), (b"grpc-message", b""))
    return making.tape.add(
        request, replace(response, trailers=trailers, http_version="HTTP/2.0"), RequestClass.READ
    )


# ---- effects -----------------------------------------------------------------------------------------


def _effect(name: str, key: str = "", **changes: Any) -> Callable[[Making], int]:
    def make(making: Making) -> int:
        fields = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
        asked = make_request(f"{_PAY}/refunds", {"order": 7, "why": name}, fields)
        answer = changes.get("response", make_response({"id": f"re_{name}", "status": "succeeded"}))
        more = {one: value for one, value in changes.items() if one != "response"}
        if repeat := more.pop("repeats", None):
            more["repeat"] = Repeat(Seq(len(making.tape.exchanges)), repeat, True)
        return making.tape.add(asked, answer, RequestClass.EFFECT, **more)

    return make


def _gated(ruling: str) -> Callable[[Making], int]:
    def make(making: Making) -> int:
        approved = ruling == "approved"
        verdict = VerdictKind.RECORDED if approved else VerdictKind.REFUSED
        answer: dict[str, Any] = {} if approved else {"response": None}
        seq = _effect(f"gate-{ruling}", verdict=verdict, reason=f"gate: {ruling}", **answer)(making)
        held = {"method": "POST", "url": f"{_PAY}/refunds", "digest": "ab" * 16, "rule": "effects[0]", "reason": "a gate", "deadline_s": 600}  # fmt: skip
        making.note(seq, EventKind.HELD, seq=seq, **held)
        by, via = ("", "") if ruling in ("expired", "left", "ended") else ("ann (pid 7)", "page")
        making.note(
            seq,
            EventKind.RULED,
            seq=seq,
            digest="ab" * 16,
            ruling=ruling,
            by=by,
            via=via,
            reason=f"it was {ruling}",
        )
        return seq

    return make


def _with_event(kind: EventKind, **data: Any) -> Callable[[Making], int]:
    """An effect, and an event behind it that is about it."""

    def make(making: Making) -> int:
        seq = _effect(kind.value)(making)
        own = {"seq": seq} if kind in _OF_EXCHANGES else {}
        making.note(seq, kind, **own, **data)
        return seq

    return make


_OF_EXCHANGES = {EventKind.INJECTED, EventKind.CONTRACT, EventKind.LIMITED, EventKind.ANNOTATED}
_VIOLATION = ("response", "$.amount", "integer", "49.00")
_FAULTS = tuple(
    Kind(f"fault: {kind.value}", "fault", _failed(kind, phase), (kind.value,))
    for kind, phase in _PHASES.items()
)
_DIALECTS = tuple(Kind(f"dialect: {name}", "model", _sample(name), ()) for name in sample_names())
_RULINGS = tuple(
    Kind(f"gate: {ruling}", "gate", _gated(ruling), (ruling,))
    for ruling in ("approved", "denied", "expired", "left", "ended")
)

PLAN: tuple[Kind, ...] = (
    Kind("a model call", "model", _plain, ("On it.",)),
    Kind("a thought and a tool call, streamed", "model", _thought, ("The order comes first.", "Read", "orders/7")),
    Kind("a tool result", "model", _result, ("total: 49.00", "entered")),
    Kind("a sub-agent", "lane", _helper, ("30 days.",)),
    Kind("a context that was compacted", "model", _compacted, ("Summary: order 7", "left")),
    Kind("a title", "model", _title, ("Refund an order",)),
    Kind("a model that refuses", "model", _limited_model, ("429", "slow down")),
    Kind("a stream with a pause", "stream", _paused_stream, ("One", "two", "2.0 s")),
    Kind("a stream that was cut", "stream", _cut_stream, ("cut",)),
    *_DIALECTS,
    Kind("JSON", "read", _read("orders/7", {"total": "49.00", "paid": True, "note": None}), ("49.00",)),
    Kind("a page", "read", _read("page", b"<h1>Shop</h1>", kind="text/html"), ("<h1>Shop</h1>",)),
    Kind("a picture", "read", _read("dot.png", PNG, kind="image/png"), ("image/png", f"{len(PNG)}")),
    Kind("gzip", "read", _read("zip", gzip.compress(b'{"in": "gzip"}', mtime=0), content_encoding="gzip"), ("gzip",)),
    Kind("deflate", "read", _read("deflate", zlib.compress(b'{"in": "deflate"}'), content_encoding="deflate"), ("deflate",)),
    Kind("nothing", "read", _read("nothing", b"", status=204), ("204",)),
    Kind("a redirect", "read", _read("old", b"", status=302, location=f"{_SHOP}/new"), ("302", f"{_SHOP}/new")),
    Kind("not modified", "read", _read("cached", b"", status=304), ("304",)),
    Kind("not found", "read", _read("none", {"error": "no such order"}, status=404), ("404", "no such order")),
    Kind("an error of the server", "read", _read("broken", b"oops", status=500, kind="text/plain"), ("500", "oops")),
    Kind("text that is no UTF-8", "read", _read("latin", b"caf\xe9 \xff", kind="text/plain; charset=latin-1"), ("latin",)),
    Kind("trailers", "read", _changed("trailers", trailers=((b"x-sum", b"7"),)), ("x-sum",)),
    Kind("an answer in pieces", "stream", _changed("pieces", chunks=(Chunk(1000, 7), Chunk(900_000, 14))), ("pieces",)),
    Kind("HTTP/2", "read", _over_http2, ("HTTP/2",)),
    Kind("an interim answer", "read", _interim, ("103",)),
    Kind("a body in a file", "read", _large, (f"{len(LARGE):,}",)),
    Kind("telemetry", "read", _telemetry, ("telemetry",)),
    Kind("a tunnel that failed", "fault", _tunnel, ("CONNECT", "down.test", "dns")),
    Kind("redacted", "read", _redacted, ("openai",)),
    *_FAULTS,
    Kind("a WebSocket", "websocket", _socket, ("hello", "bye", "1000")),
    Kind("a WebSocket that was cut", "websocket", _cut_socket, ("anybody there?", "reset")),
    Kind("gRPC", "grpc", _grpc, ("grpc-status",)),
    Kind("an effect", "effect", _effect("plain"), ("re_plain", "succeeded")),
    Kind("an effect with a key", "effect", _effect("keyed", "key-7"), ("key-7",)),
    Kind("a safe retry", "effect", _effect("keyed", "key-7", repeats=RepeatKind.SAFE_RETRY), ("safe retry of",)),
    Kind("an effect that was given up on", "effect", _effect("late", gone=Gone(S // 2, 0, False)), ("client left after",)),
    Kind("a possible duplicate", "effect", _effect("late", repeats=RepeatKind.POSSIBLE_DUPLICATE), ("possible duplicate of",)),
    Kind("an effect without an outcome", "effect", _effect("lost", response=None, fault=Fault(FaultKind.UNKNOWN, Phase.REQUEST, RedactedText("the proxy died"), S)), ("unknown",)),
    Kind("an effect that was refused", "effect", _effect("refused", response=None, verdict=VerdictKind.REFUSED, reason="a rule refuses it"), ("refused", "a rule refuses it")),
    Kind("an answer that was withheld", "effect", _effect("withheld", withheld=RedactedText("it breaks a contract")), ("it breaks a contract",)),
    *_RULINGS,
    Kind("a fault on purpose", "effect", _with_event(EventKind.INJECTED, rule="what if", inject="reset", nth=1, seed=0), ("what if",)),
    Kind("a broken contract", "effect", _with_event(EventKind.CONTRACT, of="response", rule="POST *", refused=True, recorded=False, count=1, violations=(_VIOLATION,), unchecked=()), ("$.amount",)),
    Kind("a limit", "effect", _with_event(EventKind.LIMITED, limit="calls", reason="5 calls were made", calls=5, tokens=9, usd="0.1"), ("5 calls were made",)),
    Kind("a note", "effect", _with_event(EventKind.ANNOTATED, text="to be looked at", by="ann"), ("to be looked at",)),
    Kind("a snapshot", "effect", _with_event(EventKind.NOTED, snapshot='{"plan": ["look", "refund"]}'), ("look",)),
    Kind("something denied", "effect", _with_event(EventKind.EGRESS, target="198.51.100.7:53", by="kernel", reason="no network"), ("198.51.100.7:53",)),
    Kind("a gap of the log", "effect", _with_event(EventKind.GAP, since_ns=1, until_ns=2, reason="the disk was full", exchanges=1, effects=0, records=1), ("the disk was full",)),
    Kind("effects that a sink lost", "effect", _with_event(EventKind.LOST, lost={"url": 1}), ()),
    Kind("a socket past the proxy", "effect", _with_event(EventKind.FOREIGN, sockets=({"protocol": "tcp", "address": "198.51.100.7", "port": 443, "process": "curl", "pid": 7, "count": 1},)), ()),
    Kind("an outcome of the agent's own", "effect", _with_event(EventKind.NOTED, outcome="failed", why="no stock"), ()),
    Kind("an idle gap", "read", lambda making: making.tape.get(f"{_SHOP}/later", wait_us=480 * S), ("idle",)),
    Kind("the last words", "model", lambda making: making.tape.model(chat([*_CHAT, said("assistant", "On it.")]), chat_answer("Done.", call("call_9", "close"), id="chatcmpl-end")), ("Done.", "close")),
)  # fmt: skip


def make_plan() -> tuple[Making, dict[str, int]]:
    """Make the recording; give it with the seq of each entry of the plan by its name."""
    making = Making()
    return making, {kind.name: kind.make(making) for kind in PLAN}


def write_kinds_store(folder: Path) -> Path:
    """Write the store; give its folder."""
    return write_store(folder, _write)


async def _write(store: Store) -> None:
    making, _ = make_plan()
    run = await _record(store, making)
    await _play(store, run, making.tape.exchanges)
    await _branch(store, run, making.tape.exchanges)
    crashed = await store.runs.create(
        CRASHED, mode="record", at_ns=_AT_NS + 10**13, agent=RedactedText("python agent.py")
    )
    await _save(store, crashed, making.tape.exchanges[:3])
    stopped = await store.runs.create(STOPPED, mode="record", at_ns=_AT_NS + 10**13)
    await _save(store, stopped, making.tape.exchanges[:1])
    _tell(store, stopped, EventKind.STOPPED, by="ann", pid=7, reason="enough", at_ns=_AT_NS)
    await store.runs.seal(stopped, reason="stopped by ann: enough", at_ns=_AT_NS + 2 * 10**13)


def _tell(store: Store, run: RunInfo, kind: EventKind, **data: Any) -> None:
    store.events.append(run.number, Event(kind, _AT_NS + 10**12, data))


async def _save(store: Store, run: RunInfo, exchanges: list[Exchange]) -> None:
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))


async def _record(store: Store, making: Making) -> RunInfo:
    run = await store.runs.create(
        RUN, mode="record", at_ns=_AT_NS, agent=RedactedText("python agent.py")
    )
    behind: dict[int, list[tuple[EventKind, dict[str, Any]]]] = {}
    for seq, kind, data in making.events:
        behind.setdefault(seq, []).append((kind, data))
    for exchange in making.tape.exchanges:
        made = await _spill(store, exchange) if exchange.seq in making.spilled else exchange
        store.events.append(run.number, make_intent(made))
        for number, message in enumerate(making.messages.get(made.seq, ())):
            store.messages.append(run.number, made.seq, number, message)
        await store.exchanges.save(run.number, partial(make_record, made))
        for kind, data in behind.get(made.seq, ()):
            at_ns = made.started_ns + made.end_us * 1000
            store.events.append(run.number, Event(kind, at_ns, data))
    save_folder(store, run, RUN)
    _tell(store, run, EventKind.NOTED, child_exit=1, command=("python", "agent.py"), contained=True)
    sealed = await store.runs.seal(run, reason="the command ended with 1", at_ns=_AT_NS + 10**12)
    marks = {"labels": ("ci", "bad"), "pinned": True, "by": "ann"}
    return store.runs.mark(sealed, lambda _: Event(EventKind.MARKED, _AT_NS + 10**12, marks))


async def _spill(store: Store, exchange: Exchange) -> Exchange:
    assert exchange.response is not None
    spool = store.bodies.spool()
    spool.write(LARGE, Chunk(10, len(LARGE)))
    kept = await spool.keep()
    spool.drop()
    response = replace(exchange.response, body=b"", spilled=kept)
    return replace(exchange, response=response)


def _verdict(exchange: Exchange, seq: int, verdict: VerdictKind, reason: str) -> dict[str, Any]:
    request: Request = exchange.request
    told = {
        "seq": seq,
        "method": request.method,
        "url": request.url,
        "request_class": exchange.request_class.value,
    }
    told |= {
        "verdict": verdict.value,
        "reason": reason,
        "fingerprint": exchange.fingerprint,
        "key": None,
    }
    if verdict is VerdictKind.SERVED:
        told |= {"tape_seq": exchange.seq, "match": "exact"}
    return told


async def _play(store: Store, tape: RunInfo, exchanges: list[Exchange]) -> None:
    """Write a playback with each verdict and each divergence that a playback has."""
    run = await store.runs.create(tape.id, mode="playback", at_ns=_AT_NS + 10**12, parent=tape)
    verdicts = (
        VerdictKind.SERVED,
        VerdictKind.STUBBED,
        VerdictKind.DISCARDED,
        VerdictKind.LIVE,
        VerdictKind.REFUSED,
    )
    seq = 0
    for verdict in verdicts:
        seq += 1
        exchange = exchanges[seq - 1]
        if verdict is VerdictKind.LIVE:
            live = replace(exchange, seq=Seq(seq), verdict=verdict, reason="a live rule")
            await _save(store, run, [live])
        else:
            data = _verdict(exchange, seq, verdict, f"it is {verdict.value}")
            store.events.append(run.number, Event(EventKind.VERDICT, _AT_NS + 10**12, data))
    for kind in DivergenceKind:
        data = {"seq": seq, "divergence": _divergence(kind, exchanges[seq - 1]).to_json()}
        store.events.append(run.number, Event(EventKind.DIVERGED, _AT_NS + 10**12, data))
    await store.runs.seal(run, reason="the command ended with 1", at_ns=_AT_NS + 10**12 + 1)


def _divergence(kind: DivergenceKind, exchange: Exchange) -> Divergence:
    request = exchange.request
    difference = Difference("body $.order", "7", "8")
    return Divergence(
        kind,
        exchange.seq,
        request.method,
        request.url,
        exchange.seq,
        (difference,),
        f"it is {kind.value}",
    )


async def _branch(store: Store, tape: RunInfo, exchanges: list[Exchange]) -> None:
    """Write a branch with the verdicts that only branches have."""
    run = await store.runs.create(tape.id, mode="playback", at_ns=_AT_NS + 2 * 10**12, parent=tape)
    branch = {"at": 2, "changes": ("answer",), "live": (), "routes": (("POST *", "http://127.0.0.1:9", "a copy"),), "answers": ()}  # fmt: skip
    _tell(store, run, EventKind.NOTED, branch=branch)
    store.events.append(
        run.number,
        Event(EventKind.VERDICT, _AT_NS, _verdict(exchanges[0], 1, VerdictKind.SERVED, "on tape")),
    )
    _tell(store, run, EventKind.NOTED, branched=(2, 2))
    for seq, verdict in ((2, VerdictKind.HYPOTHETICAL), (3, VerdictKind.SANDBOXED)):
        made = replace(
            exchanges[seq - 1], seq=Seq(seq), verdict=verdict, reason=f"it is {verdict.value}"
        )
        await _save(store, run, [made])
    await store.runs.seal(run, reason="the command ended with 0", at_ns=_AT_NS + 3 * 10**12)


if __name__ == "__main__":
    print(write_kinds_store(Path(sys.argv[1])))
