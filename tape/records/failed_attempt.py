"""Attempts that came to nothing: connections to a host on which nothing was asked that could be answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..exchange import NO_TEXT, RedactedText, Seq


class AttemptKind(StrEnum):
    """How an attempt came to nothing."""

    EMPTY_TUNNEL = "empty tunnel"
    """Connected, and nothing was asked, in TLS or without."""
    FAILED_HANDSHAKE = "failed handshake"
    """The client broke TLS off."""
    MALFORMED_REQUEST = "malformed request"
    """No request of HTTP, or one that can be read in several ways."""
    CUT_REQUEST = "cut request"
    """The client left before a request had ended."""


_START = Seq(0)

NOTHING_SAID = RedactedText("nothing was said in it")
"""Detail of an empty tunnel in which not even TLS was begun."""
GREETED = RedactedText("nothing but the greeting of HTTP/2 was said in its TLS")
"""Detail of an empty tunnel whose client went on once TLS was there."""
CUT_HEAD = RedactedText("the client left before the head of a request had ended")
"""Detail of a request that was cut in its head."""
CUT_BEHIND = RedactedText("the client left before the request ahead of it had been answered")
"""Detail of a request that waited behind another on its connection, and was not read."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that came to nothing."""

    kind: AttemptKind
    host: str
    """In lower case; empty where it was the proxy itself."""
    port: int
    process: RedactedText = NO_TEXT
    """Command name of the client, as it calls itself; empty where it cannot be seen."""
    detail: RedactedText = NO_TEXT
    """In words, for people."""
    after: Seq = _START
    """The last request of the run that had arrived by then."""
    beside: bool = False
    """Whether a request to the same host was under way, or began, while its connection was open: it is one of a pool then, or
    was made ahead."""
    distrusted: bool = False
    """Whether the client said that it does not trust the certificate."""
    egress: RedactedText = NO_TEXT
    """Why it counts as trying to leave, in words, unless the tape has the same; empty where it does not."""
    spared: bool = False
    """Whether it does not count so where something was asked of this host and port, on another connection."""

    @property
    def place(self) -> str:
        """Where it went, for people."""
        if not self.host:
            return "the proxy itself"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def to_event(self) -> dict[str, Any]:
        """Give it as the log has it."""
        return {
            "kind": self.kind.value,
            "host": self.host,
            "port": self.port,
            "process": self.process,
            "detail": self.detail,
            "after": self.after,
            "beside": self.beside,
            "distrusted": self.distrusted,
            "egress": self.egress,
            "spared": self.spared,
        }

    @classmethod
    def from_event(cls, told: Mapping[str, Any]) -> "Attempt":
        """Read it from the log."""
        return cls(**{**told, "kind": AttemptKind(told["kind"]), "after": Seq(told["after"])})
