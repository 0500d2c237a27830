"""What a playback owes to profiles of clients, and which clients of it have none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....tape.counted import counted
from ..safe_terminal_text import plain

_MOST = 20
"""Clients without a profile that are listed."""


@dataclass(slots=True)
class ProfileRow:
    """One profile, and what was served by it."""

    profile: str
    version: int
    requests: int = 0
    """Served requests, and WebSockets, that are the recorded ones by it alone."""
    unconditional: int = 0
    """Of these, reads with another condition, which were answered in full."""
    places: list[str] = field(default_factory=list)
    """JSON paths at which a value differed and did not count."""

    def __str__(self) -> str:
        told = []
        by_place = self.requests - self.unconditional
        if by_place:
            places, requests = counted(len(self.places), "place"), counted(by_place, "request")
            told.append(f"{places} in {requests}")
        if self.unconditional:
            told.append(counted(self.unconditional, "unconditional answer"))
        return f"profile {self.profile} {self.version}: {', '.join(told)}"


@dataclass(slots=True)
class ProfileRows:
    """All of them, by name."""

    rows: dict[str, ProfileRow] = field(default_factory=dict)
    unprofiled: dict[str, None] = field(default_factory=dict)
    """Products that clients without a profile begin their `user-agent` with, of which a model call diverged."""
    _matched: dict[int, str] = field(default_factory=dict)
    """How each WebSocket's handshake matched, by seq; its messages may match in another way."""

    def verdict(self, data: Mapping[str, Any]) -> None:
        """Take in a verdict."""
        self._take(data)
        if data.get("match") in ("exact", "canonical") and data["request_class"] == "inference":
            self._matched[data["seq"]] = data["match"]

    def noted(self, data: Mapping[str, Any]) -> str:
        """Take in what was noted of a WebSocket; give how its handshake matched, where its messages needed a profile."""
        self._take(data)
        return self._matched.pop(data["seq"], "") if "profile" in data and "seq" in data else ""

    def lines(self) -> list[str]:
        """Give them as text."""
        return [plain(str(row)) for row in self.rows.values()]

    def hint_lines(self) -> list[str]:
        """Say what to do for clients without a profile."""
        return [
            f"no profile for the client {plain(product, 60)}: record it twice, then `playhead learn FIRST SECOND --profile NAME`"
            " proposes one"
            for product in self.unprofiled
        ]

    def _take(self, data: Mapping[str, Any]) -> None:
        if "profile" in data:
            name, version, places = data["profile"]
            row = self.rows.setdefault(name, ProfileRow(name, version))
            row.requests += 1
            row.unconditional += data.get("match") == "unconditional"
            row.places += [place for place in places if place not in row.places]
        if data.get("unprofiled") and len(self.unprofiled) < _MOST:
            self.unprofiled[data["unprofiled"]] = None
