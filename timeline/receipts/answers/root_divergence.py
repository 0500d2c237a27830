"""Find the root divergence of a replay, and fold under it what only looks like further ones.

Rules:

1. The root is the first divergence that touched a model call, a tool or an effect. A tool is a read after the first model call.
2. Where its differing value came from the answer to a call of start-up that diverged, or was left out, that call is the root.
   A call of start-up is a read before the first model call of a run whose tape asks a model.
   A message of a WebSocket comes after all requests that had arrived when it was sent, not where its handshake was.
3. Attempts that came to nothing and how the command ended come after these, what was left on the tape comes last.
4. A refused request that is asked again is a retry: it is counted with the first one, and is no divergence of its own.

Telemetry is never among them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ....tape.diff.divergence_types import DivergenceKind
from ....tape.exchange import RequestClass, VerdictKind

Row = Mapping[str, Any]

START_UP = "start-up call"
RETRIES = "retries"
_MOST = 100_000
"""Requests of a run whose repetition is noticed; of start-up as many are known."""
_CHAIN = 32
"""Start-up calls of which one follows from the other."""
_MESSAGE = "message["
"""Begins the place of a difference in a WebSocket."""
_TUNNEL = "CONNECT"
_COMMAND = "command"


class Calls:
    """What a run's log says of its requests, as far as roots go."""

    def __init__(self) -> None:
        """Begin before the first request."""
        self.first_model: int | None = None
        """Seq of the first call of a model."""
        self._reads: set[int] = set()
        """Those that came before any call of a model, and some that came with it."""
        self._alike: dict[bytes, list[int]] = {}
        """Seqs by fingerprint."""
        self._refused: set[int] = set()
        self._noted = 0
        self._last = 0
        self._after: dict[int, int] = {}
        """Highest seq that had arrived when a WebSocket went another way, by the seq of the WebSocket."""

    def take(self, data: Row) -> None:
        """Take in an intent or a verdict."""
        seq, kind = int(data["seq"]), data["request_class"]
        self._last = max(self._last, seq)
        if kind == RequestClass.TELEMETRY.value or data.get("again"):
            return
        if kind == RequestClass.INFERENCE.value:
            self.first_model = min(seq, self.first_model or seq)
        elif (
            kind == RequestClass.READ.value
            and self.first_model is None
            and len(self._reads) < _MOST
        ):
            self._reads.add(seq)
        fingerprint = data.get("fingerprint") or b""
        if fingerprint and self._noted < _MOST:
            self._noted += 1
            self._alike.setdefault(bytes(fingerprint), []).append(seq)
            if data.get("verdict") == VerdictKind.REFUSED.value:
                self._refused.add(seq)

    def note_diverged(self, row: Row) -> None:
        """Take in a divergence, where it stands in the log."""
        if any(str(one["place"]).startswith(_MESSAGE) for one in row["differences"]):
            self._after.setdefault(int(row["seq"]), self._last)

    def when(self, row: Row) -> tuple[int, int]:
        """Give what orders divergences by when they happened."""
        seq = int(row["seq"])
        return max(seq, self._after.get(seq, 0)), seq in self._after

    def is_start_up(self, seq: int) -> bool:
        """Say whether a request was a read before the first call of a model."""
        return seq in self._reads and (self.first_model is None or seq < self.first_model)

    def find_retries(self, diverged: Iterable[int]) -> dict[int, int]:
        """Give the refused requests that repeat one which diverged or was refused before, with that one's seq."""
        led, found = self._refused.union(diverged), dict[int, int]()
        for seqs in self._alike.values():
            if len(seqs) < 2:  # one alone repeats none
                continue
            first = min((seq for seq in seqs if seq in led), default=None)
            if first is not None:
                found |= {seq: first for seq in seqs if seq != first and seq in self._refused}
        return found


class Folded(NamedTuple):
    """The root of a run, and what is folded under it."""

    root: Row | None
    rows: list[dict[str, Any]]
    """`what`, `seq`, `method`, `url`, `kind` and `count`, by seq."""
    retries: dict[int, int]
    """Retries, each with the seq of the request that it repeats."""


def fold(divergences: Sequence[Row], unused: Sequence[Row], own: Calls, tape: Calls) -> Folded:
    """Find the root among divergences and what was left on the tape, and what is folded under it.

    unused: divergences of that kind, made of what was left on the tape.
    """
    retries = own.find_retries(int(row["seq"]) for row in divergences)
    kept = [row for row in divergences if int(row["seq"]) not in retries]
    asks_model = own.first_model is not None or tape.first_model is not None

    def is_start_up(row: Row) -> bool:
        calls = tape if _is_unused(row) else own
        return asks_model and calls.is_start_up(int(row["seq"]))

    candidates = [*kept, *unused]

    def rank(row: Row) -> tuple[bool, bool, int, int]:
        calls = tape if _is_unused(row) else own
        return *_rank(row, start_up=is_start_up(row)), *calls.when(row)

    root = min(candidates, key=rank, default=None)
    start_up = [row for row in candidates if is_start_up(row)]
    for _ in range(_CHAIN):
        source = _find_source(root, start_up) if root is not None else None
        if source is None or source is root:
            break
        root = source
    rows = [_row(START_UP, row, 1) for row in start_up if row is not root and not _is_unused(row)]
    rows += _fold_retries(kept, retries)
    return Folded(root, sorted(rows, key=lambda row: int(row["seq"])), retries)


def _fold_retries(kept: Sequence[Row], retries: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    counts = Counter(retries.values())
    for row in kept:
        count = counts.pop(int(row["seq"]), 0)  # once, where a request diverged in two ways
        if count:
            yield _row(RETRIES, row, count)


def _row(what: str, row: Row, count: int) -> dict[str, Any]:
    named = {key: row[key] for key in ("seq", "method", "url", "kind")}
    return {"what": what, **named, "count": count}


def _is_unused(row: Row) -> bool:
    return bool(row["kind"] == DivergenceKind.UNUSED.value)


def _rank(row: Row, *, start_up: bool) -> tuple[bool, bool]:
    """Order divergences by which can be the root: what was left out is never the cause of what was asked."""
    beside = start_up or row["method"] in (_TUNNEL, _COMMAND)
    return _is_unused(row), beside


def _find_source(row: Row, start_up: Sequence[Row]) -> Row | None:
    """Find the call of start-up from whose answer the differing value of a divergence came."""
    cause = row.get("cause")
    if not cause:
        return None
    asked, recorded = cause.get("asked") or {}, cause.get("recorded") or {}
    given, had = asked.get("seq"), recorded.get("tape_seq")
    for one in start_up:
        if _is_unused(one):
            if had is not None and one["seq"] == had:
                return one
        elif (given is not None and one["seq"] == given) or (
            had is not None and one.get("nearest_seq") == had
        ):
            return one
    return None
