"""What the times of imported lines say: which requests were on their way when one came, and which had come when a piece of an answer did.

1. A line has times if it states `started_ns` and `end_us`. Nothing is said of one without.
2. A request that came while another was on its way comes later in the file, so a line waits until one of its run begins after its end.
   Lines that are far out of order are taken as they come.
"""

from bisect import bisect_left, bisect_right, insort
from dataclasses import replace

from ...tape.exchange import Chunk, Lane, RequestClass, Seq
from .jsonl import ParsedLine

_MOST_OVERLAPS = 64
_LOOKED_AT = 4096
"""Exchanges before one that may have been on their way when it came."""


def _has_times(parsed: ParsedLine) -> bool:
    return bool(parsed.started_ns and parsed.end_us)


class Times:
    """The times of the exchanges of one run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._begun: list[tuple[int, Seq]] = []
        """When each request came, in nanoseconds."""
        self._way: list[tuple[int, int, Seq]] = []
        """Begin, end and seq of the last ones that a client waited for."""

    def begin(self, seq: Seq, parsed: ParsedLine) -> None:
        """Note when a request came."""
        if parsed.started_ns:
            insort(self._begun, (parsed.started_ns, seq))

    def is_known(self, parsed: ParsedLine) -> bool:
        """Say whether every request has come that came before the end of one; none is expected of a file in order."""
        end_ns = parsed.started_ns + parsed.end_us * 1000
        return not _has_times(parsed) or self._begun[-1][0] >= end_ns

    def place(self, seq: Seq, parsed: ParsedLine) -> ParsedLine:
        """Say of each piece of an answer which requests had come by then, unless the line says so."""
        response = parsed.response
        if response is None or not _has_times(parsed) or any(one.after for one in response.chunks):
            return parsed
        chunks = response.chunks or (Chunk(parsed.end_us, len(response.body)),)
        begin = bisect_right(self._begun, (parsed.started_ns, seq))
        placed = []
        for chunk in chunks:
            until_ns = parsed.started_ns + chunk.at_us * 1000
            end = bisect_left(self._begun, (until_ns, Seq(0)))
            after = max((other for _, other in self._begun[begin:end]), default=seq)
            placed.append(chunk._replace(after=max(after, seq)))
        if all(one.after == seq for one in placed):
            return parsed  # nothing came meanwhile
        return parsed._replace(response=replace(response, chunks=tuple(placed)))

    def find_lane(self, seq: Seq, parsed: ParsedLine, kind: RequestClass) -> Lane | None:
        """Give what was on its way when a request came; None where its line has no times."""
        if not _has_times(parsed):
            return None
        start_ns = parsed.started_ns
        self._way = [one for one in self._way if one[1] > start_ns][-_LOOKED_AT:]
        found = sorted(other for begin, _, other in self._way if begin <= start_ns)
        response = parsed.response
        pushed = response is not None and response.is_events and kind is RequestClass.READ
        if parsed.websocket is None and kind is not RequestClass.TELEMETRY and not pushed:
            took_us = min(parsed.end_us, parsed.gone.at_us if parsed.gone else parsed.end_us)
            self._way.append((start_ns, start_ns + took_us * 1000, seq))
        return Lane(0, tuple(found[:_MOST_OVERLAPS]))
