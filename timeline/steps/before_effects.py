"""Find the last step before each effect: the model call that asked for it, or else the last one before it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .step import Step, StepKind

_TEXT = 2000
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class BeforeEffect:
    """An effect, and the step before it."""

    effect: int
    """Its seq."""
    name: str
    """Its method and URL."""
    outcome: str
    marks: tuple[str, ...]
    seq: int | None
    """Of the model call before it; None where there was none."""
    tool: str
    """The tool whose call made it, `note or refund` where either may have; empty where that is not known."""
    evidence: str
    """On what it rests that the tool call made it: `recorded` or `inferred`, and by which rule."""
    said: str
    """What the model wanted: the tool call, each of them where several may have made it, or the beginning of what it said before."""
    part: int = 0
    """Of the model call before it among those of one WebSocket; 0 elsewhere."""

    @property
    def step(self) -> str:
        """The name of the model call before it: SEQ, or SEQ.PART of a WebSocket."""
        return f"{self.seq}.{self.part}" if self.part else str(self.seq)

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {**asdict(self), "marks": list(self.marks), "part": self.part or None}


def find_before_effects(steps: Iterable[Step]) -> list[BeforeEffect]:
    """Find the step before each effect of a run."""
    finder = EffectFinder()
    return [found for step in steps if (found := finder.take(step)) is not None]


class EffectFinder:
    """Finds the step before each effect of a run, step by step."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self._last: tuple[int | None, int] = None, 0
        """Seq and part of the last model call."""
        self._wanted: dict[tuple[int, int], tuple[str, int]] = {}
        """Tool calls by the seqs and numbers that edges have, each with the part whose answer asked for it."""
        self._called = Counter[int]()
        self._said = ""
        self._ended_ns = 0

    def take(self, step: Step) -> BeforeEffect | None:
        """Take the next step; give the one before it, where it is an effect."""
        if step.kind is StepKind.MODEL_CALL and not step.aside:
            self._last = step.seq, step.part
            self._said, self._ended_ns = "", _end_ns(step)
        elif step.kind in (StepKind.TOOL_CALL, StepKind.OUTPUT):
            told = f"{step.name} {step.text[:_TEXT]}".strip()
            self._said = self._said or told
            if step.kind is StepKind.TOOL_CALL:
                self._called[step.seq] += 1
                self._wanted[step.seq, self._called[step.seq]] = told, step.part
            if len(self._wanted) > _REMEMBERED:
                self._wanted.pop(next(iter(self._wanted)))
        elif step.effect:
            had_come = step.timing is None or self._ended_ns <= step.timing.started_ns
            return _make(step, self._last, self._wanted, self._said if had_come else "")
        return None


def _end_ns(step: Step) -> int:
    timing = step.timing
    return timing.started_ns + timing.took_us * 1000 if timing is not None else 0


def _make(
    step: Step,
    last: tuple[int | None, int],
    wanted: dict[tuple[int, int], tuple[str, int]],
    said: str,
) -> BeforeEffect:
    (seq, part), tool, evidence = last, "", ""
    if step.cause is not None and step.edges:
        edge = step.edges[0]
        seq, tool = step.cause
        evidence = f"{edge.evidence.value}: {edge.rule}"
        asked = [wanted[seq, one.number] for one in step.edges if (seq, one.number) in wanted]
        said = " or ".join(told for told, _ in asked)
        part = max((one for _, one in asked), default=part if seq == last[0] else 0)
    return BeforeEffect(step.seq, step.name, step.text, step.marks, seq, tool, evidence, said, part)
