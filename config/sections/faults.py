"""Faults on purpose: which requests they hit, and what they do to them."""

from dataclasses import dataclass, field
from enum import StrEnum

from ..document import Fields
from ..key_declarations import declare, key, optional, required
from ..match_pattern import Match
from ..parse_values import (
    Choice,
    Integer,
    choice,
    member,
    parse_duration,
    parse_fault_name,
    parse_share,
)
from ..value_types import Mode
from .live import PATTERN

MOST = 999_999_999
"""Of what is counted."""


class Inject(StrEnum):
    """What is done on purpose to a request or its answer."""

    DELAY = "delay"
    """The answer begins later."""
    STATUS = "status"
    """An answer of ours; the upstream is not asked."""
    CUT = "cut"
    """The answer ends after so many bytes."""
    RESET = "reset"
    """The connection ends before any answer; the upstream is not asked."""
    TIMEOUT = "timeout"
    """Nothing is ever answered; the upstream is not asked."""
    TIMEOUT_AFTER_SUCCESS = "timeout_after_success"
    """The upstream is asked and does it; the client is told nothing."""

    @property
    def short_circuits(self) -> bool:
        """Whether the upstream is never asked; such a fault needs no answer, so it hits WebSockets too."""
        return self in (Inject.STATUS, Inject.RESET, Inject.TIMEOUT)


_OF_KIND = {
    "delay": (Inject.DELAY,),
    "status": (Inject.STATUS,),
    "retry_after": (Inject.STATUS,),
    "after_bytes": (Inject.CUT,),
    "ending": (Inject.CUT, Inject.RESET),
}
"""Keys of a fault that only some kinds have."""
_NEEDED = {
    Inject.DELAY: ("delay", "missing; expected how much later the answer begins, as 10s"),
    Inject.STATUS: ("status", "missing; expected the answer's status, as 503"),
}
"""The key that a kind cannot do without, and what is said where it is missing."""
_CHOOSING = ("nth", "every", "share")
_MODES = (Mode.RECORD, Mode.PLAYBACK)
_parse_mode = Choice({mode.value: mode for mode in _MODES})


def _read_modes(given: Fields, at: str) -> tuple[Mode, ...]:
    return given.texts(at, _parse_mode, Mode.RECORD) or _MODES


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A fault on purpose: which requests it hits, and what they meet with."""

    match: Match = field(metadata=PATTERN)
    inject: Inject = field(
        metadata=required(
            member(Inject),
            f"missing; expected one of {', '.join(Inject)}",
            Inject.RESET,
            f"The [fault](faults.md): {', '.join(f'`{kind}`' for kind in Inject)}.",
        )
    )
    name: str = key("", parse_fault_name, "Its name in logs, receipts and header fields.", start="")
    """Empty: what it does and its pattern."""
    nth: int | None = optional(
        Integer(1, MOST),
        "Only the nth match. At most one of `nth`, `every`, `share`; default: all.",
        shown="",
    )
    every: int | None = optional(Integer(1, MOST), "Every so many that match.", shown="")
    share: float | None = optional(
        parse_share, "About this part of them, drawn with `fault_seed`.", shown=""
    )
    delay_s: float = key(
        "",
        parse_duration,
        "With `delay`: the delay.",
        start=0.0,
        name="delay",
    )
    status: int = key("", Integer(400, 599), "With `status`: 400 to 599.", start=0)
    retry_after_s: int | None = optional(
        Integer(0, 86_400),
        "With `status`: seconds for a `Retry-After`.",
        name="retry_after",
        shown="",
    )
    after_bytes: int = key("0", Integer(0, MOST), "With `cut`: bytes of the body before it.")
    ending: str = key("rst", choice("rst", "fin"), "With `cut` and `reset`: `rst` or `fin`.")
    modes: tuple[Mode, ...] = declare(
        _read_modes,
        _MODES,
        "In which modes.",
        shown="[record, playback]",
        shape={"type": "array", "items": _parse_mode.shape},
    )

    @property
    def label(self) -> str:
        """Its name in logs, receipts and header fields."""
        return self.name or f"{self.inject.value} {self.match.text}"

    def check(self, given: Fields) -> None:
        """Note keys that do not go together, or are missing for what is injected."""
        keys = given.given
        chosen = [name for name in _CHOOSING if name in keys and not keys[name].empty]
        if len(chosen) > 1:
            keys[chosen[1]].fault(f"beside {chosen[0]}; expected one of {', '.join(_CHOOSING)}")
        if "inject" not in keys or keys["inject"].text() not in set(Inject):
            return
        for name, kinds in _OF_KIND.items():
            if name in keys and self.inject not in kinds:
                keys[name].fault(
                    f"only for {' and '.join(kinds)}, but this rule injects {self.inject.value}; remove it"
                )
        needed, missing = _NEEDED.get(self.inject, ("", ""))
        if needed and needed not in keys:
            given.value.missing(needed, missing)
