"""Find the recorded model call that lists the same tool results in another order, after a miss; off the loop."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...tape.dialects.common.sort_tool_results import Block
from ...tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
from ...tape.playback.tool_result_order import Arranged, Span, find_moved, ran_side_by_side

_LOOKED_AT = 512
"""Exchanges of the tape that are looked at for what was asked between two model calls."""
_COMPARED = 128
"""Requests between two model calls that are compared by their times."""


class Reordered(NamedTuple):
    """A recorded call that says the same."""

    seq: Seq
    fingerprint: Fingerprint
    """Under which the cursor has it."""


class ToolResults:
    """The recorded model calls of one playback by what their results say, whatever their order."""

    def __init__(
        self,
        find_candidates: Callable[[Request], Iterable[Seq]],
        load: Callable[[Seq], Exchange | None],
        arrange: Callable[[Request], Arranged | None],
        fingerprint_of: Callable[[Exchange], Fingerprint],
    ) -> None:
        """Begin for a playback with a tape; nothing is read before the first miss.

        find_candidates: gives the calls to the endpoint of a request that have not been served, in tape order.
        load: reads an exchange of the tape.
        arrange: takes a call apart under the rules of the run.
        fingerprint_of: gives the fingerprint under which the cursor has a recorded call.
        """
        self._find_candidates = find_candidates
        self._load = load
        self._arrange = arrange
        self._fingerprint_of = fingerprint_of
        self._arranged: dict[Seq, tuple[Fingerprint, Arranged] | None] = {}
        self._free: dict[tuple[Block, Block], bool] = {}
        """Blocks as recorded and as asked: whether their calls ran side by side."""

    def find(self, request: Request) -> Reordered | None:
        """Find the first call that has not been served and differs in the order of results alone. Blocking; one at a time."""
        asked = self._arrange(request)
        if asked is None:
            return None
        for seq in self._find_candidates(request):
            known = self._get(seq)
            moved = find_moved(known[1], asked) if known is not None else None
            if known is None or not moved:
                continue
            if all(self._is_free(seq, *pair) for pair in moved):
                return Reordered(seq, known[0])
        return None

    def _get(self, seq: Seq) -> tuple[Fingerprint, Arranged] | None:
        if seq not in self._arranged:
            recorded, found = self._load(seq), None
            if recorded is not None and recorded.request_class is RequestClass.INFERENCE:
                found = self._arrange(recorded.request)
            self._arranged[seq] = (
                (self._fingerprint_of(recorded), found)
                if recorded is not None and found is not None
                else None
            )
        return self._arranged[seq]

    def _is_free(self, seq: Seq, recorded: Block, asked: Block) -> bool:
        """Say whether the calls of a block ran side by side; seq: of a recorded call that lists it."""
        known = self._free.get((recorded, asked))
        if known is None:
            known = self._free[recorded, asked] = self._look(seq, recorded, asked)
        return known

    def _look(self, seq: Seq, recorded: Block, asked: Block) -> bool:
        """Look at what was asked between the turn of the model that made the calls and the first request that lists their results."""
        between: list[Exchange] = []
        for number in range(seq - 1, max(seq - _LOOKED_AT, 0), -1):
            exchange = self._load(Seq(number))
            if exchange is None or exchange.request_class is RequestClass.TELEMETRY:
                continue
            if exchange.request_class is RequestClass.INFERENCE:
                if all(key.encode() in exchange.request.body for key in recorded):
                    between.clear()  # it lists them already: what came after it is no part of them
                    continue
                calls = _find_calls(exchange)
                if set(recorded) <= set(calls):
                    made = Span.of(exchange).ended
                    spans = [Span.of(one) for one in reversed(between)]
                    spans = [one for one in spans if one.began >= made][:_COMPARED]
                    return ran_side_by_side(calls, recorded, asked, spans)
            between.append(exchange)
        return False


def _find_calls(exchange: Exchange) -> list[str]:
    """Give the keys of the calls that a model made, by id, or by name where results have none."""
    # It reads every dialect: for a miss, not for a start.
    from ...tape.dialects.reader import read_response

    answer = read_response(exchange.request, exchange.response) if exchange.response else None
    made = [call for one in answer.choices for call in one.message.tool_calls] if answer else []
    return [call.id or call.name or "" for call in made]
