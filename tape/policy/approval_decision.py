"""Gates: a person approves or denies exactly one request.

A gate's name says which request waits (`RUN:SEQ`), its digest what that request is. Whoever approves names both, so
that what is sent is what was looked at.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from blake3 import blake3

from ..exchange import Phase, Request
from ..records.codec import pack_map

_DIGEST_BYTES = 16


class Ruling(StrEnum):
    """How the waiting ended."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    """Nobody ruled before the deadline."""
    LEFT = "left"
    """Its client gave up."""
    ENDED = "ended"
    """Its run was ended or stopped."""


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """How the waiting ended, on whose word."""

    ruling: Ruling
    by: str = ""
    """Who ruled, as they are known to the machine; empty where it was the clock or the client."""
    via: str = ""
    """How they said so: `command`, `api`, `page`."""
    reason: str = ""

    @property
    def text(self) -> str:
        """One line for people."""
        who = f" by {self.by}" if self.by else ""
        why = f": {self.reason}" if self.reason else ""
        return _TEXTS[self.ruling] + who + why


def confirm(
    decided: ApprovalDecision, *, left: bool, stopped: str, withdrawn: bool
) -> ApprovalDecision:
    """Give how the waiting ended, by what has happened while somebody approved.

    left: the client left.
    stopped: who stopped the run and why, or empty.
    withdrawn: the live rule that would let the request out was removed.
    """
    if decided.ruling is not Ruling.APPROVED:
        return decided
    if left:
        return replace(decided, ruling=Ruling.LEFT)
    if stopped:
        return ApprovalDecision(Ruling.ENDED, reason=stopped)
    return ApprovalDecision(Ruling.ENDED, reason=_WITHDRAWN) if withdrawn else decided


_WITHDRAWN = "its live rule was removed from the configuration while it was held"
_TEXTS = {
    Ruling.APPROVED: "approved",
    Ruling.DENIED: "denied",
    Ruling.EXPIRED: "not approved before the deadline",
    Ruling.LEFT: "not sent: its client had left",
    Ruling.ENDED: "not sent: its run was ended",
}


_MAYBE = frozenset({408, 409, 425})
"""Refusals after which an effect may have happened all the same: a timeout, a conflict with oneself, too early."""


def is_undone(status: int, phase: Phase | None) -> bool:
    """Say whether an effect is known not to have happened: it was never sent, or its server refused it.

    status: of its answer, or 0.
    phase: in which it failed, or None.
    """
    return phase in (Phase.CONNECT, Phase.TLS) or (400 <= status < 500 and status not in _MAYBE)


def may_be_done(status: int) -> bool:
    """Say whether an effect may have happened although its answer, with this status, says that it failed."""
    return status >= 500 or status in _MAYBE


def gate_name(run: str, seq: int) -> str:
    """Give the name of a held request."""
    return f"{run}:{seq}"


def request_digest(request: Request) -> str:
    """Give 32 hexadecimal digits that change with anything that is sent: method, URL, fields, body, trailers.

    request: redacted; a secret counts by its placeholder, which is another for another secret.
    """
    spilled = request.spilled
    what = {
        "method": request.method,
        "url": request.url,
        "headers": [list(pair) for pair in request.headers],
        "body": request.body,
        "spilled": spilled.digest if spilled is not None else b"",
        "trailers": [list(pair) for pair in request.trailers],
        "names": [list(pair) for pair in request.names],
    }
    return blake3(pack_map(what)).hexdigest(length=_DIGEST_BYTES)
