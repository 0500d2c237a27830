"""Give the steps of a run, exchange by exchange."""

import heapq
import json
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

from ...tape.dialects import (
    InferenceResponse,
    Rpc,
    RpcKind,
    ToolCall,
    ToolResult,
    read_request,
    read_response,
)
from ...tape.dialects.common.untrusted_json import as_object
from ...tape.exchange import Exchange, RequestClass, Seq, VerdictKind
from ...tape.exchange import Message as WebSocketMessage
from ..reading.exchange_json import came_late
from ..reading.request_fate import states_less
from .agent_lanes import MIN_TEXT, Lanes, LaneState, Made, PendingCall, Placed, Split
from .causing_tool_call import find_cause
from .model_call import (
    ModelCall,
    find_calls,
    find_results,
    is_among,
    is_drawn,
    read_call,
    user_texts,
)
from .model_context import Context, read_context
from .program_versions import Versions
from .searchable_text import read_plain, read_texts
from .step import Edge, Evidence, Lane, Step, StepKind, Timing
from .tool_call_arrival import Arrival, is_to_come, read_late_answer
from .websocket_calls import split_websocket

IDLE_S = 60
"""Seconds without any exchange from which on a pause is marked."""
LOOP = 3
"""Times that the same tool calls have to come in a row to be a loop."""
_PERIOD = 3
_REMEMBERED = 4096
_PENDING = 256
_LATE = 256
"""Answers in the background that may yet come."""
_MOVED = 1024
"""Steps that may yet be found to be of another lane."""
_CLIENT = 200
"""Characters of a user agent that are kept."""
_ANSWER = 64 * 1024
LATER = "later"
"""Why a model call ended that is answered in the background."""
Price = Callable[[Exchange, InferenceResponse, str], Decimal | None]
"""What a model call cost, of its exchange, its answer and the model, in US dollars; None where no price is known."""
_WANTED = (VerdictKind.RECORDED, VerdictKind.SERVED, VerdictKind.LIVE)
_DECLARED = (VerdictKind.SANDBOXED, VerdictKind.HYPOTHETICAL)
"""What a branch has declared: no failure, and to be seen all the same."""


class Tracer:
    """Takes the exchanges of a run in order, and gives the steps of each."""

    def __init__(
        self,
        happened: Mapping[int, Sequence[tuple[StepKind, str]]] | None = None,
        observe: Callable[[ModelCall, Placed], None] | None = None,
        observe_aside: Callable[[ModelCall], None] | None = None,
        price: Price | None = None,
        *,
        texts: bool = False,
    ) -> None:
        """Begin with nothing.

        happened: what the log tells of exchanges beside: decisions of people, contracts.
        observe: is handed each model call of a lane, with its place.
        observe_aside: is handed each one beside the conversation.
        price: says what a model call cost; without it none has a price.
        texts: whether a step has what was sent and answered beside its text.
        """
        self.versions = Versions()
        self._lanes = Lanes()
        self._pending: list[PendingCall] = []
        self._agents: set[int] = set()
        self._hosts: set[str] = set()
        self._seen: OrderedDict[bytes, tuple[Seq, bool]] = OrderedDict()
        self._end_ns = 0
        self._waiting: list[tuple[int, int, Seq, int, InferenceResponse | None, Exchange]] = []
        self.arrived: dict[tuple[int, int], int] = {}
        """Of model calls of WebSockets, by seq and part: the exchange that had arrived last when each was asked."""
        self._last = 0
        self._kept: deque[Step] = deque(maxlen=_MOVED)
        self._happened = {} if happened is None else happened
        self._observe = observe
        self._observe_aside = observe_aside
        self._price = price
        self._called = Counter[Seq]()
        """Tool calls so far by the seqs of their exchanges: of a WebSocket those of all its parts."""
        self._texts = texts
        self._late: OrderedDict[str, tuple[ModelCall, LaneState]] = OrderedDict()
        """Model calls that are answered in the background, by the ids of their answers."""

    @property
    def lanes(self) -> Sequence[Lane]:
        """The lanes so far."""
        return self._lanes.all

    @property
    def open_since(self) -> Seq | None:
        """The first exchange whose steps may yet be found to be of another lane; None where there is none."""
        return self._lanes.open_since

    def add(self, exchange: Exchange, messages: Iterable[WebSocketMessage] = ()) -> list[Step]:
        """Give the steps of the next exchange; a later one may show that they are of another lane, and changes them.

        messages: those of a WebSocket.
        """
        early = self._flush(exchange)
        self._last = exchange.seq
        steps = self._read(exchange, messages)
        marks = self._marks(exchange)
        first = next((one for one in steps if one.timing is not None), None)
        if marks and first is not None:
            first.marks = (*first.marks, *marks)
        for kind, text in self._happened.get(exchange.seq, ()):
            steps.append(Step(kind, exchange.seq, "", text, lane=steps[0].lane))
        if exchange.verdict not in _WANTED:
            text = f"{exchange.verdict.value}: {exchange.reason}"
            failed = exchange.verdict not in _DECLARED
            steps.append(
                Step(StepKind.POLICY, exchange.seq, "", text, lane=steps[0].lane, failed=failed)
            )
        self._note_own_host(exchange, steps)
        self._kept.extend(one for one in steps if one.lane)
        return early + steps

    def _note_own_host(self, exchange: Exchange, steps: list[Step]) -> None:
        """Note a host that the agent asks by itself: it does so while a tool is under way, too."""
        lane = exchange.lane
        by_agent = lane is not None and lane.number in self._agents | {0, 1}
        if steps[0].cause is None and not self._pending and by_agent and len(self._hosts) < 1000:
            self._hosts.add(exchange.request.authority)

    def end(self) -> list[Step]:
        """Give the steps of model calls of WebSockets that nothing has come after."""
        return self._flush(None)

    def _flush(self, until: Exchange | None) -> list[Step]:
        """Read the model calls of WebSockets that were made before an exchange: their tools' requests have later seqs.

        Times say so where the order of arrival is not known; those of messages of a tape are not those of its playback.
        """
        steps = []
        while self._waiting:
            after, started_ns = self._waiting[0][:2]
            if until is not None and (
                after >= until.seq if after else started_ns > until.started_ns
            ):
                break
            _, _, seq, part, answer, made = heapq.heappop(self._waiting)
            self.arrived[seq, part] = after or self._last
            for step in self._model(made, answer, part):
                step.part = part
                steps.append(step)
                self._kept.append(step)
        return steps

    def _read(self, exchange: Exchange, messages: Iterable[WebSocketMessage]) -> list[Step]:
        if exchange.websocket is not None:
            for part, (said, made, after) in enumerate(split_websocket(exchange, messages), 1):
                row = after, made.started_ns, exchange.seq, part, said, made
                heapq.heappush(self._waiting, row)
            return [self._http(exchange), *_failure(exchange, None, 0)]
        if exchange.request.spilled is None:
            answer = None
            if exchange.request_class is RequestClass.INFERENCE or _may_be_rpc(exchange):
                answer = _read_answer(exchange)
            found = self._model(exchange, answer, 0)
            if found:
                return found
        return [self._http(exchange), *self._answer_late(exchange), *_failure(exchange, None, 0)]

    def _answer_late(self, exchange: Exchange) -> list[Step]:
        """Give what a model said in the background, where it is read; by the seq of the call that asked for it."""
        late = read_late_answer(exchange) if self._late else None
        found = self._late.pop(late[1].id or "", None) if late is not None else None
        if late is None or found is None:
            return []
        made, answer = late
        call, state = found
        call.answer, call.failed = answer, answer.error is not None
        steps = self._answer(call, state, Arrival(made))
        for step in steps:
            step.part = call.part
        return steps

    # Model calls

    def _model(self, exchange: Exchange, answer: InferenceResponse | None, part: int) -> list[Step]:
        if exchange.request_class is not RequestClass.INFERENCE:
            return self._rpc(exchange, answer) if _may_be_rpc(exchange) else []
        context = self._context(exchange)
        if context is None:
            return []
        if context.asked.rpc:
            return self._rpc(exchange, answer)
        call = read_call(exchange, context, answer, part)
        self._hosts.add(exchange.request.authority)
        self._agents.add(call.process)
        self.versions.see_client(exchange)
        timing = _timing(exchange, answer)
        step = Step(
            StepKind.MODEL_CALL,
            exchange.seq,
            context.asked.model or (answer.model if answer and answer.model else "") or "",
            part=part,
            timing=timing,
            usage=answer.usage if answer is not None else None,
            at_least=states_less(exchange, answer),
            finish=_finish(answer),
            messages=len(context.items),
        )
        if self._texts:
            said = user_texts(context.new())
            step.beside = tuple(one for text in said for one in (text, *read_plain(text)))
        if self._price is not None and answer is not None and step.usage is not None:
            step.usd = self._price(exchange, answer, answer.model or step.name)
        if context.asked.dialect == "openai-embeddings":
            step.kind = StepKind.RETRIEVAL
            return [step, *_failure(exchange, answer, 0)]
        if call.aside:
            if self._observe_aside is not None:
                self._observe_aside(call)
            step.aside = call.aside
            step.text = call.said
            return [step, *_failure(exchange, answer, 0)]
        return self._turn(exchange, call, step, answer)

    def _turn(
        self, exchange: Exchange, call: ModelCall, step: Step, answer: InferenceResponse | None
    ) -> list[Step]:
        placed = self._lanes.place(call, self._had_come(exchange))
        if placed.split is not None:
            self._move(placed.split)
        if self._observe is not None:
            self._observe(call, placed)
        state, lane = placed.state, placed.state.lane
        step.lane = lane.number
        results = self._results(call, placed)
        step.edges = (*placed.edges, *(edge for one in results for edge in one[1]))
        if placed.retry_of is not None:
            step.marks = (f"retry of {placed.retry_of}",)
        _count(lane, step)
        if not lane.client:
            agent = exchange.request.header(b"user-agent") or b""
            lane.client = agent.decode("utf-8", "backslashreplace")[:_CLIENT]
        said = self._answer(call, state, Arrival(exchange))
        if answer is not None and answer.id and is_to_come(answer):
            self._late[answer.id] = call, state
            if len(self._late) > _LATE:
                self._late.popitem(last=False)
        return [
            *(one[0] for one in results),
            step,
            *said,
            *_failure(exchange, answer, lane.number),
        ]

    def _move(self, split: Split) -> None:
        """Put what a branch of a lane did into its own lane."""
        old, new = split.old, split.new.lane
        seqs = {seq for seq, _ in split.calls}
        for step in self._kept:
            is_own = (step.seq, step.part) in split.calls
            is_caused = step.cause is not None and step.cause[0] in seqs
            if step.lane != old.number or not (is_own or is_caused):
                continue
            step.lane = new.number
            if step.kind is StepKind.MODEL_CALL:
                _count(old, step, -1)
                _count(new, step)
                if step.seq == new.first:
                    kept = {one.rule for one in split.placed.edges}
                    had = tuple(one for one in step.edges if one.call or one.rule in kept)
                    found = tuple(one for one in split.placed.edges if one not in had)
                    step.edges = (*found, *had)
        for one in self._pending:
            if one.lane == old.number and one.seq in seqs:
                one.lane = new.number

    def _context(self, exchange: Exchange) -> Context | None:
        """Read the context against the one of which it repeats most."""
        best: Context | None = None
        for before in self._lanes.candidates():
            found = read_context(exchange.request, exchange.seq, before)
            if found is None:
                return None
            if best is None or found.same > best.same:
                best = found
            if before.items and found.same >= len(before.items) - 1:
                break
        if best is not None:
            return best
        return read_context(exchange.request, exchange.seq)

    def _results(self, call: ModelCall, placed: Placed) -> list[tuple[Step, list[Edge]]]:
        """Give the results of tools that are new in a call, and why they are there."""
        found: list[tuple[Step, list[Edge]]] = []
        state = placed.state
        # Who goes on with a conversation of another lane has the results of that one's calls.
        before = {edge.source for edge in placed.edges}
        left = {one.last.seq for one in state.left}
        waiting = [
            one
            for one in self._pending
            if (one.lane == state.lane.number and one.seq not in left)
            or (one.seq in before and one.id is None)
        ]
        asked = find_calls(call.context.items)
        for given in find_results(call.context.new()):
            one = _find_pending(self._pending, waiting, given, asked)
            known = state.calls.get(given.id or "")
            if (
                one is None
                and known is None
                and given.id is None
                and not waiting
                and given.name is None
            ):
                continue
            name = one.name if one is not None else known or given.name or ""
            step = Step(StepKind.TOOL_RESULT, call.seq, name, given.text, failed=given.failed)
            step.lane, step.call = state.lane.number, given.id
            edges = []
            if one is not None:
                self._pending.remove(one)
                if one in waiting:
                    waiting.remove(one)
                edges = _edges_of(one, given, call.seq)
            found.append((step, edges))
        # What a lane has gone on without has no result to wait for, unless it was another agent that went on.
        self._pending = [
            one
            for one in self._pending
            if one.lane != state.lane.number or call.failed or one.seq in left
        ]
        return found

    def _had_come(self, exchange: Exchange) -> list[PendingCall]:
        """Give the tool calls that the agent had when it sent a request: it made the request for no other."""
        return [one for one in self._pending if one.had_come(exchange.seq)]

    def _answer(self, call: ModelCall, state: LaneState, arrival: Arrival) -> list[Step]:
        """Give what the model thought, said and wants called."""
        message = call.answer.message if call.answer is not None else None
        if message is None:
            return []
        steps = []
        number, seq = state.lane.number, call.seq
        if message.thinking:
            steps.append(Step(StepKind.THOUGHT, seq, "", message.thinking, lane=number))
        said = message.text or message.refusal or ""
        if said and not message.tool_calls:
            steps.append(Step(StepKind.OUTPUT, seq, "", said, lane=number))
        elif said:
            steps.append(Step(StepKind.THOUGHT, seq, "said", said, lane=number))
        for at, one in enumerate(message.tool_calls):
            text = (
                one.text if one.text is not None else json.dumps(one.arguments, ensure_ascii=False)
            )
            if call.is_half(one):
                steps.append(Step(StepKind.THOUGHT, seq, "cut", f"{one.name} {text}", lane=number))
                continue  # nobody can make it
            self._called[seq] += 1
            step = Step(StepKind.TOOL_CALL, seq, one.name, text, lane=number, call=one.id)
            state.signatures.append(f"{one.name} {text}")
            loop = find_loop(state.signatures)
            if loop:
                step.marks = (loop,)
            steps.append(step)
            self._pending.append(
                PendingCall(
                    seq,
                    number,
                    one.name,
                    one.id,
                    one.arguments,
                    text[:_ANSWER],
                    self._called[seq],
                    arrival=arrival,
                    at=at,
                )
            )
            if one.id:
                state.calls[one.id] = one.name
        del state.signatures[:-64]
        del self._pending[:-_PENDING]
        while len(state.calls) > _REMEMBERED:
            state.calls.popitem(last=False)
        return steps

    # Other exchanges

    def _rpc(self, exchange: Exchange, answer: InferenceResponse | None) -> list[Step]:
        asked = read_request(exchange.request)
        if asked is None or not asked.rpc:
            return []
        step = self._http(exchange)
        step.kind = StepKind.MCP
        step.name = _rpc_name(asked.rpc)
        given = [one.tool_result for one in answer.rpc if one.tool_result] if answer else []
        server = _server_of(answer)
        if server:
            self.versions.see_server(exchange, server)
            step.text = server
        if given:
            step.text = given[0].text
            step.failed |= any(one.failed for one in given)
            self._remember(exchange, given[0].text)
        return [step, *_failure(exchange, answer, step.lane)]

    def _http(self, exchange: Exchange) -> Step:
        request = exchange.request
        step = Step(
            StepKind.HTTP,
            exchange.seq,
            f"{request.method} {request.url}",
            _outcome(exchange),
            effect=exchange.request_class is RequestClass.EFFECT,
            failed=exchange.response is None or exchange.response.status >= 400,
            timing=_timing(exchange, None),
        )
        if self._texts:
            step.beside = read_texts(exchange)
        left = frozenset(one.last.seq for state in self._lanes.warm for one in state.left)
        agents, hosts = frozenset(self._agents), frozenset(self._hosts)
        found = find_cause(exchange, self._had_come(exchange), agents, hosts, left)
        if found is not None:
            calls = found.calls
            step.lane, step.cause = calls[0].lane, (calls[0].seq, found.name)
            step.edges = tuple(
                Edge(one.seq, exchange.seq, found.evidence, found.rule, one.id, one.number)
                for one in calls
            )
            body = exchange.response.body[:_ANSWER] if exchange.response is not None else b""
            text = body.decode("utf-8", "replace").strip()
            for one in calls:
                one.exchanges.append(Made(exchange.seq, text, is_certain=len(calls) == 1))
                del one.exchanges[:-_PENDING]
            if len(calls) == 1:
                self.versions.see_tool(exchange, found.name)
                if exchange.lane is not None and exchange.lane.number:
                    calls[0].processes.add(exchange.lane.number)
        return step

    def _remember(self, exchange: Exchange, text: str) -> None:
        """Note the text of an answer for the tool call that made the exchange."""
        for one in self._pending:
            if one.exchanges and one.exchanges[-1].seq == exchange.seq:
                one.exchanges[-1] = one.exchanges[-1]._replace(answer=text.strip())

    def _marks(self, exchange: Exchange) -> list[str]:
        marks = []
        started = exchange.started_ns
        idle = (started - self._end_ns) // 1_000_000_000 if self._end_ns else 0
        self._end_ns = max(self._end_ns, started + exchange.end_us * 1000)
        repeat = exchange.repeat
        before = self._seen.pop(exchange.fingerprint, None)
        if repeat is not None and repeat.is_duplicate:
            marks.append(f"possible duplicate of {repeat.of}")
        elif repeat is not None:
            marks.append(f"safe retry of {repeat.of}")
        elif (
            before is not None
            and before[1]
            and exchange.request_class is not RequestClass.INFERENCE
        ):
            marks.append(f"retry of {before[0]}")
        self._seen[exchange.fingerprint] = exchange.seq, _failed(exchange)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if exchange.gone is not None and came_late(exchange):
            marks.append(exchange.gone.text)
        if idle >= IDLE_S:
            marks.append(f"idle for {idle} s")
        return marks


def find_loop(signatures: Sequence[str]) -> str | None:
    """Say what the newest tool calls repeat, and how many times; None where they repeat nothing."""
    for period in range(1, _PERIOD + 1):
        round_ = signatures[-period:]
        if len(round_) < period or (period > 1 and len(set(round_)) == 1):
            continue
        times = 1
        while (
            len(signatures) >= period * (times + 1)
            and signatures[-period * (times + 1) : -period * times] == round_
        ):
            times += 1
        if times >= LOOP:
            names = ", ".join(one.partition(" ")[0] for one in round_)
            return f"loop of {names}, {times} times"
    return None


def _may_be_rpc(exchange: Exchange) -> bool:
    return b'"jsonrpc"' in exchange.request.body[:4096]


def _read_answer(exchange: Exchange) -> InferenceResponse | None:
    response = exchange.response
    if response is None or response.spilled is not None:
        return None
    return read_response(exchange.request, response)


def _timing(exchange: Exchange, answer: InferenceResponse | None) -> Timing:
    first = answer.first_token_us if answer is not None else None
    return Timing(exchange.started_ns, exchange.end_us, first)


def _finish(answer: InferenceResponse | None) -> str | None:
    if answer is None:
        return None
    if not answer.complete:
        return "cut"
    if is_to_come(answer):
        return LATER
    return answer.finish.value if answer.finish is not None else None


def _failed(exchange: Exchange) -> bool:
    response = exchange.response
    if exchange.fault is not None or response is None:
        return True
    return response.status >= 400 or not response.complete


def _failure(exchange: Exchange, answer: InferenceResponse | None, lane: int) -> list[Step]:
    text = ""
    if exchange.fault is not None:
        text = f"{exchange.fault.kind.value}: {exchange.fault.text}"
    elif answer is not None and answer.error is not None:
        status = f"{answer.status} " if answer.status >= 400 else ""
        text = f"{status}{answer.error.message}"
    elif answer is not None and (told := _failed_tool(answer)) is not None:
        text = told
    elif exchange.gone is not None and exchange.response is None and exchange.verdict in _WANTED:
        text = exchange.gone.text if exchange.gone.aborted else f"the {exchange.gone.text}"
    if not text:
        return []
    return [Step(StepKind.ERROR, exchange.seq, "", text, lane=lane, failed=True)]


def _failed_tool(answer: InferenceResponse) -> str | None:
    """Give what a server of tools says of a tool that failed: it answers with success, and `isError` in its result."""
    results = (one.tool_result for one in answer.rpc)
    failed = next((one for one in results if one is not None and one.failed), None)
    return None if failed is None else failed.text or "the tool failed"


def _outcome(exchange: Exchange) -> str:
    response = exchange.response
    if exchange.websocket is not None:
        return f"WebSocket, {exchange.websocket.messages} messages"
    if response is None:
        return "no answer"
    return f"{response.status}, {response.body_bytes} bytes"


def _count(lane: Lane, step: Step, sign: int = 1) -> None:
    lane.calls += sign
    if step.name and step.name not in lane.models and len(lane.models) < 16:
        lane.models.append(step.name)
    lane.at_least += sign * step.at_least
    if step.usage is not None:
        counted = step.usage.count()
        lane.input_tokens += sign * (counted.asked or 0)
        lane.output_tokens += sign * (counted.said or 0)
        lane.usd += sign * (step.usd or 0)
        lane.unpriced += sign * (step.usd is None)


def _find_pending(
    pending: list[PendingCall],
    waiting: list[PendingCall],
    given: ToolResult,
    asked: list[ToolCall],
) -> PendingCall | None:
    """Find the tool call that a result is of: by its id, else by its name, in order.

    asked: the tool calls in the context of the result. Of another lane a call counts if nobody else can have its id, or the context has it.
    """
    if given.id is not None:
        named = [one for one in pending if one.id == given.id]
        by_id = next((one for one in named if one in waiting), None)
        if by_id is None:
            by_id = next(
                (
                    one
                    for one in named
                    if is_drawn(given.id) or is_among(one.id, one.name, one.arguments, asked)
                ),
                None,
            )
        if by_id is not None:
            return by_id
    return next(
        (
            one
            for one in waiting
            if (one.id is None or given.id is None) and given.name in (None, one.name)
        ),
        None,
    )


def _edges_of(one: PendingCall, given: ToolResult, seq: Seq) -> list[Edge]:
    """Give the edges that lead to a result: from the exchanges of its tool call, and from the answer that asked for it."""
    by_id = one.id is not None and one.id == given.id
    edges = [
        Edge(
            one.seq,
            seq,
            Evidence.RECORDED if by_id else Evidence.INFERRED,
            "the id of the tool call" if by_id else "name and order of the tool call",
            one.id,
        )
    ]
    text = given.text
    for source, body, is_certain in one.exchanges:
        told = body == text.strip() if len(body) < MIN_TEXT else body in text
        told = told and bool(body)
        if not told and not is_certain:
            continue
        rule = "its answer is in the result" if told else "made by the tool call"
        evidence = Evidence.RECORDED if told else Evidence.INFERRED
        edges.append(Edge(source, seq, evidence, rule, one.id))
    return edges


def _server_of(answer: InferenceResponse | None) -> str:
    """Give name and version of an MCP server, from its answer to `initialize`."""
    for one in answer.rpc if answer is not None else ():
        info = as_object(as_object(one.result).get("serverInfo"))
        words = [info[name] for name in ("name", "version") if name in info]
        if words:
            return " ".join(map(str, words))
    return ""


def _rpc_name(messages: tuple[Rpc, ...]) -> str:
    first = messages[0]
    if first.kind is RpcKind.ANSWER:
        return f"answer {first.method or ''}".strip()
    name = first.method or ""
    return f"{name} {first.tool_call.name}" if first.tool_call is not None else name
