"""The file of `playhead sweep`: variants of what happens at one exchange, and how often each is run."""

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from ..document import Fields
from ..key_declarations import declare, key, optional, optional_path, read_section, required, texts
from ..parse_values import Integer, parse_fault_name, parse_reason, parse_usd
from ..sections.faults import MOST
from .read_yaml_file import read_given

_RUN = "missing; expected the recording that is branched, as `run: refund`"
_AT = "missing; expected the exchange at which the variants differ, as `at: 5`"
_NAME = "missing; expected the name of the variant, as `name: careful`"
_VARIANTS = "a list of variants, as `variants: [{name: as it was}]`"


def _text(text: str) -> str:
    return text


def _read_yes(given: Fields, at: str) -> bool:
    value = given.given.get(at)
    return value is not None and value.text() == "true"


@dataclass(frozen=True, slots=True)
class Variant:
    """What is another in one variant."""

    name: str = field(metadata=required(parse_fault_name, _NAME, "", "Its name in the table."))
    answer: Path | None = optional_path("File with the body that answers the exchange.")
    system: Path | None = optional_path("File with another system prompt.")
    request_change: Path | None = optional_path("File with a JSON merge patch for the call.")
    answers: Path | None = optional_path("File of hypothetical answers.")
    live: tuple[str, ...] = texts(
        _text, "Classes that go live, in place of those for all variants."
    )
    routes: tuple[str, ...] = texts(_text, "Routes to sandboxes, in place of those for all.")
    reason: str | None = optional(parse_reason, "Why they may leave.")


def _read_variants(given: Fields, at: str) -> tuple[Variant, ...]:
    found: dict[str, Variant] = {}
    for item in given.required_items(at, _VARIANTS):
        variant = read_section(Variant, item)
        if variant.name in found:
            item.fault(f"{variant.name!r} is there already; give each variant a name of its own")
        found[variant.name] = variant
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class SweepFile:
    """Variants over one shared prefix."""

    run: str = field(metadata=required(_text, _RUN, "", "The recording that is branched."))
    at: int = field(
        metadata=required(Integer(0, MOST), _AT, 0, "The exchange at which the variants differ.")
    )
    variants: tuple[Variant, ...] = declare(
        _read_variants, (), "The command.", section=Variant, shape={"type": "array"}
    )
    command: tuple[str, ...] = texts(_text, "The command, word by word.")
    times: int = key("1", Integer(1, 1000), "How often each variant is run.")
    parallel: int | None = optional(Integer(1, 64), "How many run at the same time.")
    judged_by: str | None = optional(_text, "A command that judges each run.", name="check")
    label: bool = declare(_read_yes, False, "Whether labels judge.", shown="false")
    live: tuple[str, ...] = texts(_text, "Classes that go live, as `inference`.")
    routes: tuple[str, ...] = texts(_text, "Routes to sandboxes, as `MATCH=URL`.")
    reason: str | None = optional(parse_reason, "Why they may leave.")
    cap: Decimal | None = optional(parse_usd, "Most dollars for models, over all runs.")
    max_calls: int | None = optional(Integer(1, MOST), "Most requests that leave, over all runs.")


def load_sweep(path: Path) -> SweepFile:
    """Read a sweep.

    Raises: ConfigError with every fault.
    """
    return read_given(path, SweepFile, _RUN)
