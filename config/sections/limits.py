"""What one run may use up of the world, and where its effects are told."""

from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

from ..document import Fields
from ..key_declarations import SCALAR, custom, key, optional, optional_path
from ..parse_values import (
    Integer,
    is_loopback,
    parse_duration,
    parse_reason,
    parse_sink_url,
    parse_usd,
    show,
    url_host,
)
from .faults import MOST


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use up of the world; None is no limit."""

    calls: int | None = optional(Integer(1, MOST), "Most requests that leave, telemetry aside.")
    tokens: int | None = optional(Integer(1, MOST), "Tokens of model calls, asked and answered.")
    usd: Decimal | None = optional(
        parse_usd, "US dollars of model calls, as `5.00`; needs `playhead[prices]`."
    )
    repeats: int | None = optional(
        Integer(1, MOST), "How often the same request may come in a row at its endpoint."
    )

    def check(self, given: Fields) -> None:
        """Note a limit that needs what is not installed."""
        if self.usd is not None and find_spec("genai_prices") is None:
            given.given["usd"].fault(
                "the prices of models are not installed; install playhead[prices], or limit tokens"
            )


@dataclass(frozen=True, slots=True)
class Sink:
    """Where each effect is told as it happens."""

    file: Path | None = optional_path(
        "File to which JSON lines are appended; links are not followed."
    )
    url: str = custom(
        lambda value: value.parsed(parse_sink_url, ""),
        "",
        "`http` or `https` URL to which effects are posted, without credentials.",
        shown="null",
        shape=SCALAR,
    )
    reason: str = custom(
        lambda value: value.parsed(parse_reason, ""),
        "",
        "Why; required if the `url` leads to another machine.",
        shown="null",
        shape=SCALAR,
    )
    patience_s: float = key(
        "5s",
        parse_duration,
        "How long effects wait for a slow sink before rows are lost and counted.",
        name="patience",
    )

    @property
    def used(self) -> bool:
        """Whether there is one."""
        return self.file is not None or bool(self.url)

    def check(self, given: Fields) -> None:
        """Note another machine that is told without a reason."""
        if self.url and not is_loopback(url_host(self.url)) and not self.reason:
            given.given["url"].fault(
                f"{show(url_host(self.url))} is another machine: effects are sent to it in playback, too, so it needs a"
                " reason, as a live rule does; add sink.reason, or name 127.0.0.1"
            )
