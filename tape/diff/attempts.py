"""Attempts that came to nothing: connections to a host on which nothing was asked that could be answered.

They are compared by their number: of each kind, host and port a replay is to have as many as its tape. What merely may have been
asked on another connection is reported alone, since clients connect ahead of what they ask, as often as they like: see `Attempt.beside`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..exchange import Seq


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
    HALF_CLOSED = "half-closed connection"
    """The client ended its sending half before it was answered."""


MAY_VARY = frozenset({AttemptKind.EMPTY_TUNNEL, AttemptKind.FAILED_HANDSHAKE})
"""Kinds that clients leave behind which connect ahead of what they ask, or to several addresses at once."""


_START = Seq(0)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that came to nothing."""

    kind: AttemptKind
    host: str
    """In lower case; empty where it was the proxy itself."""
    port: int
    process: str = ""
    """Command name of the client, as it calls itself; empty where it cannot be seen."""
    detail: str = ""
    """In words, for people."""
    after: Seq = _START
    """The last request of the run that had arrived by then."""
    beside: bool = False
    """Whether a request to the same host was under way, or began, while its connection was open: it is one of a pool then, or
    was made ahead."""
    distrusted: bool = False
    """Whether the client said that it does not trust the certificate."""
    egress: str = ""
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


@dataclass(frozen=True, slots=True)
class Compared:
    """All attempts of one kind at one place, and what became of the comparison with the tape."""

    first: Attempt
    """Of those of the run; of the tape's where the run has none."""
    count: int
    recorded: int | None
    """None where there is no tape."""
    differs: bool = False
    """Whether it is a divergence."""
    surplus: tuple[Attempt, ...] = ()
    """Those that the tape does not have, in order."""
    processes: tuple[str, ...] = ()


Key = tuple[AttemptKind, str, int]


def group(attempts: Iterable[Attempt]) -> dict[Key, list[Attempt]]:
    """Sort attempts by kind, host and port; in order of the first of each."""
    found: dict[Key, list[Attempt]] = {}
    for one in attempts:
        found.setdefault((one.kind, one.host, one.port), []).append(one)
    return found


def summarize(attempts: Iterable[Attempt]) -> list[Compared]:
    """Count the attempts of a run that has no tape."""
    return [
        Compared(rows[0], len(rows), None, processes=_processes(rows))
        for rows in group(attempts).values()
    ]


def compare(
    present: Iterable[Attempt], recorded: Iterable[Attempt], answered: Iterable[Key] = ()
) -> list[Compared]:
    """Compare the attempts of a replay with those of its tape, by their number.

    answered: further places at which the tape has the same in another form, as a client that left; once for each.
    """
    now, then = group(present), group(recorded)
    forgiven: dict[Key, int] = {}
    for key in answered:
        forgiven[key] = forgiven.get(key, 0) + 1
    return [
        _compare(key, now.get(key, []), then.get(key, []), forgiven.get(key, 0))
        for key in dict.fromkeys((*now, *then))
    ]


def _compare(key: Key, now: list[Attempt], then: list[Attempt], forgiven: int) -> Compared:
    """Compare those of one kind at one place: an attempt that may vary is neither missed nor surplus."""
    firm_now = [one for one in now if not _varies(one)]
    firm_then = sum(not _varies(one) for one in then)
    surplus = tuple(firm_now[len(then) + forgiven :])
    missing = firm_then > len(now) and key[0] is not AttemptKind.HALF_CLOSED
    return Compared(
        (surplus or now or then)[0],
        len(now),
        len(then),
        differs=bool(surplus) or missing,
        surplus=surplus,
        processes=_processes(now or then),
    )


def _varies(one: Attempt) -> bool:
    return one.kind in MAY_VARY and one.beside and not one.distrusted


def _processes(rows: list[Attempt]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.process for one in rows if one.process))
