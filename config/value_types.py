"""Types of single values of the configuration, which `parse_values.py` parses."""

from dataclasses import dataclass
from enum import StrEnum

CONFIG_VERSION = 1
"""The version of the configuration file that is read: what its key `version` may say."""


LATEST = "latest"
"""In place of a run's name: the newest recording that has ended."""


class Mode(StrEnum):
    """What happens to a new run; fixed for the run's life."""

    RECORD = "record"
    PLAYBACK = "playback"
    PASSTHROUGH = "passthrough"


@dataclass(frozen=True, slots=True)
class Listen:
    """Address the proxy listens on; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 8080

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """An opt-in: what was asked of one model is answered by what another had said."""

    recorded: str
    asked: str
    """May be the same: then all but the model may drift."""

    def __str__(self) -> str:
        return f"{self.recorded}={self.asked}"
