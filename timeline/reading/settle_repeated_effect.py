"""What an effect repeats, once it is known which requests were sent.

It is noted before an effect is sent. The earlier one may be under way by then, and end without having been sent: a delayed request
whose client leaves, or a connection that is not made. What was noted stays in the log; whoever reads it asks here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...store import RunInfo, Store
from ...tape.exchange import Exchange, FaultKind, Phase, Repeat, RepeatKind, Seq, is_unreached
from ...tape.records.events import Event, EventKind


def find_settled(store: Store, run: RunInfo, seq: int) -> Exchange | None:
    """Find an exchange of a run as the store does, with what it repeats as is known now.

    Raises: LogCorrupt.
    """
    exchange = store.exchanges.find(run, seq)
    if exchange is None or exchange.repeat is None:
        return exchange
    repeat: Repeat | None = exchange.repeat
    if exchange.is_unsent and exchange.repeat.of > seq:
        repeat = None
    read = {seq}
    while repeat is not None and repeat.of not in read:
        read.add(repeat.of)
        first = store.exchanges.find(run, repeat.of)
        if first is None or not first.is_unsent:
            break
        repeat = repeat.without_first(first.repeat)
    return exchange if repeat == exchange.repeat else replace(exchange, repeat=repeat)


def read_repeat(data: Mapping[str, Any]) -> Repeat | None:
    """Read what an intent or a verdict repeats, as was known when it was written."""
    if "repeat" not in data:
        return None
    of, kind, unseen = data["repeat"]
    return Repeat(Seq(of), RepeatKind(kind), unseen)


class Repeats:
    """What the effects of a run repeat, by its log: nothing that ended without having been sent."""

    def __init__(self) -> None:
        """Begin without any."""
        self._found: dict[int, Repeat | None] = {}
        self._by_first: dict[int, list[int]] = {}
        self._unsent: set[int] = set()

    def take(self, event: Event) -> list[int]:
        """Take in an event of the run's log; give the seqs for which something else is repeated now, or nothing."""
        match event.kind:
            case EventKind.INTENT | EventKind.VERDICT:
                repeat = read_repeat(event.data)
                if repeat is not None:
                    self._note(event.seq, repeat)
            case EventKind.OUTCOME if "fault" in event.data:
                kind, phase, _ = event.data["fault"]
                if is_unreached(FaultKind(kind), Phase(phase)):
                    self._unsent.add(event.seq)
                    return [event.seq, *self._take_back(event.seq)]
        return []

    def find(self, seq: int) -> Repeat | None:
        """Find what an effect repeats, as far as the log has been read."""
        repeat = self._found.get(seq)
        # It arrived first, was held or delayed meanwhile, and was not sent: it repeats nothing.
        dropped = repeat is not None and seq in self._unsent and repeat.of > seq
        return None if dropped else repeat

    def _note(self, seq: int, repeat: Repeat | None) -> None:
        while repeat is not None and repeat.of in self._unsent:
            repeat = repeat.without_first(self._found.get(repeat.of))
        self._found[seq] = repeat
        if repeat is not None:
            self._by_first.setdefault(repeat.of, []).append(seq)

    def _take_back(self, first: int) -> list[int]:
        changed = self._by_first.pop(first, [])
        for seq in changed:
            self._note(seq, self._found[seq])
        return changed
