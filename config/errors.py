"""What can be wrong with a configuration: all faults at once, each with its exact place."""

from dataclasses import dataclass

from .. import PlayheadError


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and what would be right."""

    where: str
    """`file:line:column` (both from 1), or the flag that set the value, as `--listen`."""
    path: str
    """Dotted key, as `playback.effects` or `live[2].reason`."""
    text: str
    """What is wrong, what would be right."""

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.path}: {self.text}" if self.path else f"{self.where}: {self.text}"
        )


class ConfigError(PlayheadError):
    """The configuration cannot be used; `faults` lists every problem found, in file order."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults
