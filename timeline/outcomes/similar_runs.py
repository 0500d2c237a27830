"""Which runs are like one: cosine over hashed n-grams of their contexts.

The context of a run is its largest request to a model, which has most of what was said, and the answer to it. Words, pairs and triples of
words are hashed into a vector; what most runs say, as a system prompt, weighs little (inverse document frequency).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from ...store import RunInfo, Store
from ...store.tables.run_info import began
from ...tape.exchange import Exchange, RequestClass
from ...tape.records.events import EventKind
from ..state.calls_before import read_answer
from ..state.context_parts import split_items
from ..steps.model_context import Item, read_context

_WORD = re.compile(r"\w+")
_DIMENSIONS = 1 << 20
_MOST = 512 * 1024
"""Characters of a context that are read."""
_GRAM = 3

Vector = dict[int, float]


@dataclass(frozen=True, slots=True)
class Like:
    """A run, and how like another one it is."""

    run: RunInfo
    likeness: float
    """0 to 1."""


def find_similar(of: Counter[int], others: Sequence[tuple[RunInfo, Counter[int]]]) -> list[Like]:
    """Rank runs by their likeness to one, the nearest first; of equally near ones the newest."""
    seen: Counter[int] = Counter()
    for _, grams in others:
        seen.update(grams.keys())
    seen.update(of.keys())
    total = len(others) + 1
    weight = {gram: math.log1p(total / count) for gram, count in seen.items()}
    mine = _vector(of, weight)
    ranked = [Like(run, _cosine(mine, _vector(grams, weight))) for run, grams in others]
    return sorted(ranked, key=lambda one: (round(one.likeness, 6), *began(one.run)), reverse=True)


def _vector(grams: Counter[int], weight: dict[int, float]) -> Vector:
    return {gram: (1 + math.log(count)) * weight[gram] for gram, count in grams.items()}


def _cosine(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    dot = sum(value * other[gram] for gram, value in one.items() if gram in other)
    size = math.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in other.values()))
    return min(1.0, dot / size) if size else 0.0


def count_grams(text: str) -> Counter[int]:
    """Count the words of a text, and its pairs and triples of words, each as a number."""
    words = [word.lower() for word in _WORD.findall(text[:_MOST])]
    found: Counter[int] = Counter()
    for size in range(1, _GRAM + 1):
        for at in range(len(words) - size + 1):
            gram = " ".join(words[at : at + size]).encode("utf-8", "surrogatepass")
            found[crc32(gram) % _DIMENSIONS] += 1
    return found


def read_grams(store: Store, run: RunInfo) -> Counter[int]:
    """Count the n-grams of a run's context; nothing where no model was asked that a dialect reads. Blocking.

    Raises: LogCorrupt.
    """
    exchange = _find_largest(store, run)
    return count_grams(context_text(exchange)) if exchange is not None else Counter()


def _find_largest(store: Store, run: RunInfo) -> Exchange | None:
    """Find the largest request to a model, of a playback that which its tape answered."""
    asks: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for event in store.events.all(run):
        data = event.data
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            if data["request_class"] == "inference":
                asks[event.seq] = data.get("tape_seq", 0)
        elif event.kind is EventKind.OUTCOME and "bytes_out" in data:
            sizes[event.seq] = data["bytes_out"]
    tape = store.runs.find_tape(run) if any(asks.values()) else None
    served = max(asks.values(), default=0)
    if tape is not None and served:
        return store.exchanges.find(tape, served)
    if asks:
        return store.exchanges.find(run, max(asks, key=lambda one: (sizes.get(one, 0), one)))
    calls = (  # a log that tells of no request, as of some imports
        one for one in store.exchanges.all(run) if one.request_class is RequestClass.INFERENCE
    )
    return max(calls, key=lambda one: (one.request.body_bytes, one.seq), default=None)


def context_text(exchange: Exchange) -> str:
    """Give all that was said in a model call, and in the answer."""
    if exchange.request.spilled is not None:
        return ""
    context = read_context(exchange.request, exchange.seq)
    if context is None:
        return ""
    items = list(context.items)
    answer = read_answer(exchange)
    if answer is not None and answer.message is not None:
        items.append(Item((answer.message,), exchange.seq))
    said = (f"{part.name} {part.text}" for part in split_items(items))
    return "\n".join((context.asked.system or "", *said))
