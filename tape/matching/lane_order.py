"""Find requests of one lane that come in another order than on the tape.

Of two exchanges A and B of the tape, A is before B if

1. both are of one lane: they came from one client process; in the playback, too, as far as that can be seen;
2. B was asked for when A had been answered, and no other request of the lane overlapped A or B;
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
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..canonical.json_rpc_client_ids import STDIO_HOST
from ..exchange import IMPORTED, Exchange, Lane, RequestClass, Seq
from ..headers.shipped_lists import MCP_SESSION

_ACCEPTED = 202
_LOOKED_AT = 64
"""Most exchanges that one late request is compared with: the ones that are nearest behind it."""


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
    return Placed(
        exchange.seq, lane.number, overlaps, request_class, counts, session, events or piped
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
        if not (self._is_alone(placed, at) and self._is_alone(placed, to)):
            return False
        if strict:
            return True
        if RequestClass.EFFECT not in (placed[at].request_class, placed[to].request_class):
            return False
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
