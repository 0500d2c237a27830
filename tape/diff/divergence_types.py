"""Divergences as values: kinds, differences, and the text for a person.

Values are shown as one line of at most 200 characters, with nothing that a terminal would act on. Where two
requests differ is found in `request_differences.py`, which recorded request was meant in `nearest.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from ..exchange import Seq
from ..visible_text import show_visibly

MAX_SHOWN = 200
"""Characters of a value that are shown."""
ABSENT = "(absent)"
"""Shown for a place that one side does not have; a JSON string would stand in quotes."""

UNKEPT = "whose answer was not kept whole"
"""In the text of a divergence: the tape cannot say whether the request would be answered as it was."""


SERVED_ALL_THE_SAME = "served all the same: {}"
"""Text of a divergence that was answered from the tape, with what differs."""

UNKNOWN_OUTCOME = "seq {} of the tape is this request; its outcome is unknown: the recording ended while it was under way"


COMMAND = "command"
"""Stands in the place of a method where the command ended otherwise, and no request of it differs."""


class DivergenceKind(StrEnum):
    """How a run left its tape."""

    CHANGED = "changed"
    """Not on the tape, but something near it is."""
    UNEXPECTED = "unexpected"
    """Not on the tape, nor is anything near it."""
    EXHAUSTED = "exhausted"
    """On the tape, and served as often as it was recorded."""
    REORDERED = "reordered"
    """On the tape, but before what it depends on, or after what came behind it in its lane."""
    UNUSED = "unused"
    """On the tape, and never asked for."""
    DRIFTED = "drifted"
    """Only fields changed that may be allowed to."""
    LEFT = "left"
    """The client left its answer before or after it had left it on the tape."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two requests differ."""

    place: str
    """`method`, `scheme`, `host`, `path`, `query NAME`, `header NAME`, `trailer NAME`, `form NAME`, `body JSONPATH`,
    `body part N` or `body byte N`, `body` where only its length or end differs; of a WebSocket `message[N]` with such a place, or
    `close`; parts count from 1, bytes, list items and messages from 0."""
    recorded: str
    """One line, `(absent)` where the tape has nothing there."""
    asked: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, asked {self.asked}"


@dataclass(frozen=True, slots=True)
class Dependence:
    """A value that a request has from an answer of the tape."""

    tape_seq: Seq
    """Of the answer."""
    place: str
    """In the request."""
    source: str
    """Place in the answer: `header NAME`, `body` or `body JSONPATH`."""
    value: str

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types; the value as one line of at most 200 characters."""
        return {
            "tape_seq": self.tape_seq,
            "place": one_line(self.place),
            "source": one_line(self.source),
            "value": one_line(self.value),
        }


@dataclass(frozen=True, slots=True)
class Origin:
    """The answer that a value came from."""

    seq: Seq | None
    """In the playback run; None where it was not given in it."""
    tape_seq: Seq | None
    """On the tape; None of a stub and of a live answer."""
    place: str
    """`header NAME`, `body` or `body JSONPATH`."""
    replaced: bool = False
    """Whether redaction replaced the value there, or a part of it."""

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types."""
        return {
            "seq": self.seq,
            "tape_seq": self.tape_seq,
            "place": one_line(self.place),
            "replaced": self.replaced,
        }


@dataclass(frozen=True, slots=True)
class Cause:
    """Where the two values of a difference came from; None where that cannot be found."""

    place: str
    """Of the difference."""
    recorded: Origin | None
    asked: Origin | None

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types."""
        return {
            "place": one_line(self.place),
            "recorded": self.recorded.to_json() if self.recorded else None,
            "asked": self.asked.to_json() if self.asked else None,
        }


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
    needs: Dependence | None = None
    """What a reordered request depends on that had not been served."""
    cause: Cause | None = None
    """Which answers the values of a changed request came from."""
    replaced: tuple[str, ...] = ()
    """Places of differences that redaction caused: only one of the two values was replaced, or one was made from a placeholder."""
    rule: str = ""
    """Lines of YAML: what `ignore` would have to hold for the request to match; never applied."""
    note: str = ""
    """What speaks against the rule."""

    def to_json(self) -> dict[str, Any]:
        """Render as JSON types."""
        return {
            "kind": self.kind.value,
            "seq": self.seq,
            "method": self.method,
            "url": one_line(self.url),
            "nearest_seq": self.nearest_seq,
            "differences": [
                {"place": one_line(one.place), "recorded": one.recorded, "asked": one.asked}
                for one in self.differences
            ],
            "needs": self.needs.to_json() if self.needs else None,
            "cause": self.cause.to_json() if self.cause else None,
            "replaced": [one_line(place) for place in self.replaced],
            "rule": self.rule or None,
            "note": self.note or None,
            "text": self.text,
        }


def one_line[Text: str](text: Text, limit: int = MAX_SHOWN) -> Text:
    """Render a text on one line of at most so many characters, without anything a terminal would act on."""
    cut: str = text[: limit + 1]
    cut = show_visibly(cut)
    return cast("Text", cut if len(cut) <= limit else cut[: limit - 3] + "...")
