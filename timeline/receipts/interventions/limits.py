"""The limits of a run, in its receipt: what was used of each, which were reached; and who stopped the run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ....tape.exchange import RequestClass
from ....tape.policy.limits import NANO, CountedUsage, Used, show_usd
from ....tape.records.events import Event, EventKind
from ..safe_terminal_text import WIDTH, plain


@dataclass(slots=True)
class LimitsRow:
    """The limits that were in force, what was used of them, and which were exhausted."""

    limits: dict[str, int | float | None]
    """By key; null where there was none."""
    used: Used = field(default_factory=Used)
    reached: list[dict[str, Any]] = field(default_factory=list)
    """Each at the first request that it refused."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; null for what was not looked for."""
        used, priced = self.used, self.limits["usd"] is not None
        read = priced or self.limits["tokens"] is not None
        return {
            "limits": self.limits,
            "used": {
                "calls": used.calls,
                "input_tokens": used.input_tokens if read else None,
                "output_tokens": used.output_tokens if read else None,
                "cached_tokens": used.cached_tokens if read else None,
                "usd": used.nano_usd / NANO if priced else None,
                "estimated_usd": used.estimated / NANO if priced else None,
                "without_usage": used.unstated if read else None,
                "without_price": used.unpriced if priced else None,
            },
            "reached": self.reached,
        }

    def lines(self) -> list[str]:
        """Show each limit with what was used of it."""
        limits, used = self.limits, self.used
        texts = []
        if limits["calls"] is not None:
            texts.append(f"{used.calls} of {limits['calls']} calls")
        if limits["tokens"] is not None:
            texts.append(f"{used.tokens} of {limits['tokens']} tokens")
        if limits["usd"] is not None:
            most = show_usd(Decimal(str(limits["usd"])))
            texts.append(f"{show_usd(used.usd)} of {most} USD")
        if limits["repeats"] is not None:
            texts.append(f"at most {limits['repeats']} times the same in a row")
        lines = ["limits: " + ", ".join(texts)]
        if limits["calls"] is None:
            lines.append(f"  calls: {used.calls}")
        if limits["tokens"] is not None or limits["usd"] is not None:
            tokens = (
                f"{used.input_tokens} in ({used.cached_tokens} cached), {used.output_tokens} out"
            )
            unstated = f"; {used.unstated} model calls stated none" if used.unstated else ""
            lines.append(f"  tokens: {tokens}{unstated}")
        if limits["usd"] is not None and used.estimated:
            most = show_usd(Decimal(used.estimated) / NANO)
            lines.append(f"  {most} USD more estimated, for calls that did not state all they used")
        if limits["usd"] is not None and used.unpriced:
            lines.append(f"  price unknown of {used.unpriced} model calls: not in the sum")
        for one in self.reached:
            lines.append(f"  REACHED at seq {one['seq']}: {plain(one['reason'])}")
        return lines


@dataclass(slots=True)
class LimitsAccount:
    """What limits did to one run, and whoever stopped it."""

    row: LimitsRow | None = None
    """None where the run had none."""
    stopped: dict[str, Any] | None = None
    """Who stopped the run, why and when; what was asked after that was refused."""
    _used: Used = field(default_factory=Used, repr=False)

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        data = event.data
        match event.kind:
            case EventKind.INTENT:
                self._used.calls += data["request_class"] != RequestClass.TELEMETRY.value
            case EventKind.OUTCOME:
                self._used.calls -= bool(data.get("uncounted"))
                if "usage" in data:
                    estimated = data.get("estimated", 0)
                    self._used.add(CountedUsage.from_row(data["usage"], estimated))
            case EventKind.NOTED if "limits" in data:
                limits = data["limits"]
                usd = None if limits["usd"] is None else float(limits["usd"])
                self.row = LimitsRow({**limits, "usd": usd}, self._used)
            case EventKind.LIMITED if self.row is not None:
                told = {key: data[key] for key in ("limit", "seq", "reason")}
                self.row.reached.append({**told, "at_ns": event.at_ns})
            case EventKind.STOPPED:
                told = {key: data[key] for key in ("by", "pid", "reason")}
                self.stopped = {**told, "at_ns": event.at_ns}

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {
            "stopped": self.stopped,
            "limits": None if self.row is None else self.row.to_json(),
        }

    def lines(self) -> list[str]:
        """Give them as text."""
        stopped = [] if self.stopped is None else [_show_stop(self.stopped)]
        return stopped + ([] if self.row is None else self.row.lines())


def _show_stop(told: Mapping[str, Any]) -> str:
    who = told["by"] + (f" (pid {told['pid']})" if told["pid"] else "")
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["at_ns"] / 1e9))
    why = f": {told['reason']}" if told["reason"] else ""
    return plain(f"STOPPED by {who} at {at}{why}", 2 * WIDTH)
