"""Find requests of one lane that come in another order than on the tape.

Of two exchanges A and B of the tape, A is before B if

1. both are of one lane: they came from one client process; in the playback, too, as far as that can be seen;
2. B was asked for when A had been answered, and can have waited for it (below);
3. in the default order one of them is an effect and the other an effect, a read or a model call; in the strict one any two
   are compared. Telemetry never counts, nor do WebSockets, streams of pushed events that the client left or during which it
   asked for something else, and calls that are answered on one, which overlap everything. What an MCP client says over a pipe
   without waiting for an answer counts if it overlaps nothing;
4. in the default order not both were asked for between an answer of a model with several calls of tools and the next model
   call: tools that run side by side race, whether or not they overlapped;
5. in the default order they are not of two sessions of MCP: each is an agent's own;
6. in the default order no two model calls of the lane overlapped up to B, and no two effects anywhere but for tools as in
   rule 4: several agents or workers share such a process.

B is then *reordered* with A if B is asked for before A in the playback, and was answered by the time A came.

A process does several things at once, and a playback is faster than its recording: a read of a thread that nobody waits for may
have been answered before an effect on the tape, and come after it in a playback. So B can have waited for what was answered last
before it was asked for; for what had been asked for side by side with that one, whose answer a playback holds back for the other
(`timeline/lookup/endpoints.py`); an effect for the last answer of a model, too; and for all that these can have waited for. What
overlapped nothing is always in turn. In the strict order, an effect waited for all that was answered before it, and all that came
after its answer for the effect.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..canonical.json_rpc_client_ids import STDIO_HOST
from ..exchange import IMPORTED, Exchange, Lane, RequestClass, Seq
from ..headers.shipped_lists import MCP_SESSION

_ACCEPTED = 202
_LOOKED_AT = 64
"""Most exchanges that one late request is compared with: the ones that are nearest behind it. Most that one can have waited for."""
TOGETHER_NS = 250_000_000
"""Exchanges that began so soon after another one are side by side with it; later ones may be polls during a long answer."""


class Placed(NamedTuple):
    """One exchange of the tape, as far as its order goes."""

    seq: Seq
    lane: int
    overlaps: frozenset[Seq]
    request_class: RequestClass
    counts: bool
    """False where it overlaps whatever comes: telemetry, a WebSocket, a stream of pushed events, a call that is answered on one."""
    session: bytes = b""
    """Of MCP; empty where it is of none."""
    if_alone: bool = False
    """Whether it counts only if nothing was asked meanwhile, and is no overlap to others: a read that was answered with a stream of
    events, and a message over a pipe to which nothing is answered."""
    began_ns: int = 0
    ended_ns: int = 0


def place(exchange: Exchange, request_class: RequestClass) -> Placed | None:
    """Take from an exchange what its order needs; None where the tape does not say what overlapped it.

    request_class: its class of now.
    """
    lane = exchange.lane
    if (
        lane is None or exchange.reason == IMPORTED
    ):  # whose process of an import it was is not known
        return None
    response = exchange.response
    events = response is not None and response.is_events and request_class is RequestClass.READ
    whole = response is not None and response.complete and exchange.gone is None
    pushed = (events and not whole) or exchange.websocket is not None
    # What JSON-RPC says to a 202 comes on a stream: whether it had come by then is not known.
    elsewhere = response is not None and response.status == _ACCEPTED
    elsewhere = elsewhere and b'"jsonrpc"' in exchange.request.body
    # Over a pipe nothing is said to it at all.
    piped = elsewhere and exchange.request.host == STDIO_HOST
    pushed = pushed or (elsewhere and not piped)
    counts = request_class is not RequestClass.TELEMETRY and not pushed
    session = exchange.request.header(MCP_SESSION) or b""
    overlaps = frozenset(lane.overlaps)
    began = exchange.started_ns
    return Placed(
        exchange.seq,
        lane.number,
        overlaps,
        request_class,
        counts,
        session,
        events or piped,
        began,
        began + exchange.end_us * 1000,
    )


class ServedLanes:
    """What has been served of each lane of a tape: gives, for one that comes late, what came before it."""

    def __init__(self) -> None:
        """Begin with nothing served."""
        self._served: dict[int, list[Seq]] = {}

    def take(self, seq: Seq, lane: Lane | None) -> tuple[Seq, ...]:
        """Note that an exchange is served; give those of its lane that the tape has behind it and that were served already."""
        if lane is None:
            return ()
        served = self._served.setdefault(lane.number, [])
        if not served or seq > served[-1]:
            served.append(seq)
            return ()
        at = bisect_right(served, seq)
        later = tuple(served[at : at + _LOOKED_AT])
        insort(served, seq)
        return later


class LaneOrder:
    """The order that a tape has within its lanes."""

    def __init__(self, exchanges: Iterable[Placed], calls: Callable[[Seq], int]) -> None:
        """Take what is on the tape.

        exchanges: by seq.
        calls: says how many tools the answer to a model call asked for.
        """
        self._lanes: dict[int, list[Placed]] = {}
        overlapped: dict[int, set[Seq]] = {}
        for one in exchanges:
            if one.counts:
                self._lanes.setdefault(one.lane, []).append(one)
                overlapped.setdefault(one.lane, set()).update(one.overlaps)
        for lane, placed in self._lanes.items():
            placed[:] = [
                one
                for one in placed
                if not one.if_alone or not (one.overlaps or one.seq in overlapped[lane])
            ]
        self._seqs = {lane: [one.seq for one in placed] for lane, placed in self._lanes.items()}
        self._shared: dict[int, Seq | None] = {}
        """By lane that was asked for, the first exchange that shows that it is of several agents; of some lanes None."""
        self._calls = calls

    def is_before(self, first: Seq, second: Seq, lane: int, *, strict: bool) -> bool:
        """Say whether an exchange comes before another one of its lane."""
        placed, seqs = self._lanes.get(lane, []), self._seqs.get(lane, [])
        at, to = bisect_right(seqs, first) - 1, bisect_right(seqs, second) - 1
        if at < 0 or seqs[at] != first or seqs[to] != second or at >= to:
            return False
        has_effect = RequestClass.EFFECT in (placed[at].request_class, placed[to].request_class)
        if strict and has_effect:
            return first not in placed[to].overlaps
        if not (strict or has_effect) or not self._may_have_waited(placed, to, at):
            return False
        if strict:
            return True
        one, other = placed[at].session, placed[to].session
        if one and other and one != other:
            return False
        if self._are_parallel(placed, at, to):
            return False
        if lane not in self._shared:
            self._shared[lane] = self._find_shared(placed)
        shared = self._shared[lane]
        return shared is None or shared > second

    def _is_alone(self, placed: list[Placed], at: int) -> bool:
        """Say whether no other request of the lane overlapped one."""
        one = placed[at]
        before = placed[max(0, at - _LOOKED_AT) : at] if one.overlaps else ()
        if not one.overlaps.isdisjoint([other.seq for other in before]):
            return False
        return at + 1 >= len(placed) or one.seq not in placed[at + 1].overlaps

    def _may_have_waited(self, placed: list[Placed], to: int, at: int) -> bool:
        """Say whether a request can have waited for an earlier one, or for what waited for that one."""
        if placed[at].seq in placed[to].overlaps:
            return False
        if self._is_alone(placed, at):
            return True
        # All that came after one that was alone came after all before it.
        behind = range(at + 1, min(to, at + _LOOKED_AT))
        left = [next((one for one in behind if self._is_alone(placed, one)), to)]
        seen = set(left)
        while left and len(seen) <= _LOOKED_AT:
            waited = self._find_waited_for(placed, left.pop())
            if at in waited:
                return True
            new = {one for one in waited if one > at} - seen
            seen |= new
            left += new
        return False

    def _find_waited_for(self, placed: list[Placed], at: int) -> set[int]:
        """Find what one request can have waited for itself."""
        one = placed[at]
        done = [
            other
            for other in range(max(0, at - _LOOKED_AT), at)
            if placed[other].seq not in one.overlaps
        ]
        if not done:
            return set()
        by_end = sorted(done, key=lambda other: placed[other].ended_ns)
        last = placed[by_end[-1]]
        found = {by_end[-1]}
        for other in done:
            beside = placed[other]
            overlapped = beside.seq in last.overlaps or last.seq in beside.overlaps
            if overlapped and beside.began_ns <= last.began_ns + TOGETHER_NS:
                found.add(other)
        if one.request_class is RequestClass.EFFECT:
            model = RequestClass.INFERENCE
            said = next((o for o in reversed(by_end) if placed[o].request_class is model), None)
            if said is not None and not self._is_of_tool(placed, said):
                found.add(said)
        return found

    def _is_of_tool(self, placed: list[Placed], at: int) -> bool:
        """Say whether a model may have been asked by one of several tools that run side by side: an agent may be a tool."""
        model = RequestClass.INFERENCE
        for before in range(at - 1, max(-1, at - _LOOKED_AT), -1):
            if placed[before].request_class is model and self._is_alone(placed, before):
                return self._calls(placed[before].seq) > 1
        return False

    def _are_parallel(self, placed: list[Placed], at: int, to: int) -> bool:
        """Say whether two requests may be of tools that one answer of a model asked for side by side."""
        model = RequestClass.INFERENCE
        if any(one.request_class is model for one in placed[at : to + 1]):
            return False
        asked = next((one for one in reversed(placed[:at]) if one.request_class is model), None)
        return asked is not None and self._calls(asked.seq) > 1

    def _find_shared(self, placed: list[Placed]) -> Seq | None:
        """Find the first exchange of a lane from which on several agents or workers share its process."""
        at_of = {one.seq: at for at, one in enumerate(placed)}
        shared: Seq | None = None
        for at, one in enumerate(placed):
            before = [at_of[seq] for seq in one.overlaps if at_of.get(seq, at) < at]
            alike = [other for other in before if placed[other].request_class is one.request_class]
            match one.request_class:
                case RequestClass.INFERENCE if alike and shared is None:
                    shared = one.seq
                case RequestClass.EFFECT if not all(
                    self._are_parallel(placed, other, at) for other in alike
                ):
                    # Workers begin and end one by one: what was alone is of any of them.
                    return placed[0].seq
        return shared
