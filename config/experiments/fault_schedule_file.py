"""The file of `playhead explore --schedule`: which recorded answers of a run meet which faults."""

from dataclasses import dataclass, field
from pathlib import Path

from ..document import Fields
from ..key_declarations import declare, key, optional, read_section, required
from ..parse_values import Integer, parse_duration
from ..sections.faults import MOST
from .read_yaml_file import read_given

_RUN = "missing; expected the recording whose answers meet faults, as `run: refund`"
_FAULTS = "a list of faults, as `faults: [{seq: 4, kind: late}]`"
_SEQ = "missing; expected the exchange whose answer meets it, as `seq: 4`"
_KIND = "missing; expected a fault, as `kind: late`"


def _text(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class FaultKeys:
    """One fault."""

    seq: int = field(metadata=required(Integer(1, MOST), _SEQ, 1, "The exchange whose answer."))
    kind: str = field(metadata=required(_text, _KIND, "", "What is done to it."))
    other: int | None = optional(Integer(1, MOST), "The other exchange, of two answers.")
    share: int = key("0", Integer(0, 7), "With `cut`: after how many eighths of the body.")


def _read_faults(given: Fields, at: str) -> tuple[FaultKeys, ...]:
    return tuple(read_section(FaultKeys, item) for item in given.required_items(at, _FAULTS))


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """A schedule of faults."""

    run: str = field(metadata=required(_text, _RUN, "", "The recording."))
    faults: tuple[FaultKeys, ...] = declare(
        _read_faults, (), "What its answers meet.", section=FaultKeys, shape={"type": "array"}
    )
    seed: int | None = optional(Integer(0, MOST), "The seed it was drawn from.")
    late_s: float = key("10s", parse_duration, "How late a late answer is.", name="late")
    tape: str | None = optional(_text, "The tape that was kept of it.")


def load_schedule(path: Path) -> ScheduleFile:
    """Read a schedule.

    Raises: ConfigError with every fault.
    """
    return read_given(path, ScheduleFile, _RUN)
