"""What a run did that its tape does not hold, as values: kinds, differences, and the text for a person.

Values are shown as one line of at most 200 characters, with nothing that a terminal would act on. Where two
requests differ is found in `difference.py`, which recorded request was meant in `nearness.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .model import Request, Seq

MAX_SHOWN = 200
"""Characters of a value that are shown."""
ABSENT = "(absent)"
"""Shown for a place that one side does not have; a JSON string would stand in quotes."""


class DivergenceKind(StrEnum):
    """How a run left its tape."""

    CHANGED = "changed"
    """Not on the tape, but something near it is."""
    UNEXPECTED = "unexpected"
    """Not on the tape, nor is anything near it."""
    EXHAUSTED = "exhausted"
    """On the tape, and served as often as it was recorded."""
    REORDERED = "reordered"
    """On the tape, but before what it depends on."""
    UNUSED = "unused"
    """On the tape, and never asked for."""
    DRIFTED = "drifted"
    """Only fields changed that may be allowed to."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two requests differ."""

    place: str
    """`method`, `scheme`, `host`, `path`, `query NAME`, `header NAME`, `form NAME`, `body JSONPATH`,
    `body part N` or `body byte N`; parts count from 1, bytes and list items from 0."""
    recorded: str
    """One line, `(absent)` where the tape has nothing there."""
    asked: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, asked {self.asked}"


@dataclass(frozen=True, slots=True)
class Divergence:
    """One thing a playback run did that its tape does not hold."""

    kind: DivergenceKind
    seq: Seq
    """In the playback run; of an unused exchange, its place on the tape."""
    method: str
    url: str
    nearest_seq: Seq | None = None
    """On the tape."""
    differences: tuple[Difference, ...] = ()
    text: str = ""
    """For people: one line."""

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types."""
        return {
            "kind": self.kind.value,
            "seq": self.seq,
            "method": self.method,
            "url": self.url,
            "nearest_seq": self.nearest_seq,
            "differences": [
                {"place": one.place, "recorded": one.recorded, "asked": one.asked}
                for one in self.differences
            ],
            "text": self.text,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Divergence":
        """Read what `to_json` wrote; unknown keys are passed over.

        Raises: ValueError where a key is missing or of another kind.
        """
        try:
            nearest_seq = data["nearest_seq"]
            return cls(
                DivergenceKind(data["kind"]),
                Seq(int(data["seq"])),
                str(data["method"]),
                str(data["url"]),
                None if nearest_seq is None else Seq(int(nearest_seq)),
                tuple(
                    Difference(str(one["place"]), str(one["recorded"]), str(one["asked"]))
                    for one in data["differences"]
                ),
                str(data["text"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no divergence: {error!r} in {one_line(repr(data))}") from error


def explain(
    kind: DivergenceKind,
    seq: Seq,
    request: Request,
    nearest_seq: Seq | None = None,
    found: tuple[Difference, ...] = (),
) -> Divergence:
    """Give a divergence with its text; `request` is redacted."""
    what = one_line(f"{request.method} {request.url}")
    match kind:
        case DivergenceKind.EXHAUSTED:
            text = f"{what} was asked more often than it was recorded"
        case DivergenceKind.UNUSED:
            text = f"{what} is on the tape and was never asked for"
        case DivergenceKind.REORDERED:
            text = f"{what} was asked before what it depends on"
        case DivergenceKind.DRIFTED:
            text = f"{what} differs in what may be allowed to drift"
        case _:
            text = f"{what} is not on the tape"
    if nearest_seq is not None:
        text += f"; nearest is exchange {nearest_seq}"
        if found:
            text += f", which differs at {found[0]}"
            if len(found) > 1:
                text += f", and at {len(found) - 1} further place{'s' * (len(found) > 2)}"
    return Divergence(kind, seq, request.method, request.url, nearest_seq, found, text)


def one_line(text: str) -> str:
    """Render a text on one line of at most 200 characters, without anything a terminal would act on."""
    cut = text[: MAX_SHOWN + 1]
    if not cut.isprintable():
        cut = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
        )
    return cut if len(cut) <= MAX_SHOWN else cut[: MAX_SHOWN - 3] + "..."
