"""What a branch declares: a playback that leaves its tape from one exchange on, its point.

1. Until the exchange at the point has been asked for, and all that come before it, everything is answered from the tape, and
   nothing is sent.
2. Then the tape still answers what it holds. What it does not hold is answered as was declared, the first of: a hypothetical
   answer, a sandbox, the upstream itself for a class that goes live. What was not declared is refused.
   A branch may also have every call of a model go live (`afresh`), so that one which changes nothing is a sample of the model as well.
3. Effects never go live. They may go to a sandbox.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from ...config import Answer, LiveRule, Match, parse_match
from ...config.targets.request_interpretations import find_ways
from ..exchange import Exchange, Request, RequestClass, Seq

HYPOTHETICAL = "hypothetical"
"""The kind of an answer that nobody gave."""
MAY_GO_LIVE = (RequestClass.INFERENCE, RequestClass.READ)
"""Classes that a branch may declare live."""
_ROUTE = re.compile(r"(?P<match>.+)=(?P<url>https?://\S+)", re.DOTALL)
_PORTS = {"http": 80, "https": 443}
_MOST = 2000
"""Characters of a route."""


@dataclass(frozen=True, slots=True)
class SandboxRoute:
    """Requests that are sent to a copy of their service, which may be written to."""

    match: Match
    scheme: str
    host: str
    port: int
    path: str
    """What comes before the path of a request; no slash at its end."""
    reason: str

    @property
    def place(self) -> str:
        """Where requests go, as it is shown: scheme, host, port, and what comes before their paths."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def target(self, target: str) -> str:
        """Give path and query there, of a request with these."""
        return f"{self.path}{target}" if target.startswith("/") else target


@dataclass(frozen=True, slots=True)
class HypotheticalAnswer:
    """What is answered to requests that the tape does not hold."""

    match: Match
    answer: Answer


@dataclass(frozen=True, slots=True)
class RequestChange:
    """How the model call at the point is asked otherwise."""

    system: str | None = None
    """The system prompt in the place of the recorded one, there and wherever it is sent after that; None leaves it."""
    patch: Mapping[str, Any] | None = None
    """What is laid over the body of that one call, as RFC 7396 says; None changes nothing."""
    whole: Mapping[str, Any] | None = None
    """The body in the place of the recorded one; None changes nothing."""


class Spliced(NamedTuple):
    """What a question is given that the tape alone does not answer."""

    answer: Answer
    tape_seq: Seq | None
    """Of the exchange of the tape in whose place it is given; None where the tape has no such question."""
    source: str
    """Whose answer it is, in words."""


class SplicedAnswers(Protocol):
    """The answers of another recording that a branch is given (`tape/splicing/splice.py`). Belongs to one run."""

    name: str
    """Of the other recording."""
    count: int
    """How many of its answers are spliced in."""

    def replace(self, seq: Seq) -> Spliced | None:
        """Give what is answered in the place of an exchange of the tape that has just been asked for; None for its own answer."""

    def find(self, request: Request, request_class: RequestClass) -> Spliced | None:
        """Find what answers a question that the tape does not hold as it stands; None where nothing does."""


class FaultSchedule(Protocol):
    """The faults that a branch meets (`tape/schedules/remaining_faults.py`). Belongs to one run."""

    reordered: set[tuple[Seq, Seq]]
    """Pairs of exchanges of which the first is answered after the second."""
    texts: list[str]
    """Each fault in a few words."""

    @property
    def unmet(self) -> list[str]:
        """Those of them that have changed nothing yet."""

    def take(self, recorded: Exchange) -> Any:
        """Give what is done to a recorded answer that has been asked for, as `Met`; None for nothing."""


class ModelUse(NamedTuple):
    """The most that one call of a model has used so far."""

    nano_usd: int = 0
    output_tokens: int = 0

    def widen(self, nano_usd: int | None, output_tokens: int) -> "ModelUse":
        """Give the most with one more call; None for a price that is not known."""
        return ModelUse(max(self.nano_usd, nano_usd or 0), max(self.output_tokens, output_tokens))


@dataclass(frozen=True, slots=True)
class Branch:
    """All that one branch declares."""

    at: Seq
    """The exchange of the tape that is its point."""
    live: tuple[tuple[LiveRule, RequestClass], ...] = ()
    """A rule for each host, with the class that goes live there."""
    routes: tuple[SandboxRoute, ...] = ()
    answers: tuple[HypotheticalAnswer, ...] = ()
    answer: Answer | None = None
    """What is answered at the point; None for what the tape has."""
    change: RequestChange | None = None
    alone: bool = False
    """Whether the exchange at the point is all that is asked: nothing that comes before it is waited for."""
    splice: SplicedAnswers | None = None
    """Answers of another recording that it is given."""
    schedule: FaultSchedule | None = None
    """Faults that its recorded answers meet."""
    afresh: bool = False
    """Whether a model call that goes live does so from the point on also where the tape has its answer."""
    known_use: Mapping[str, ModelUse] | None = None
    """Where a cap in dollars applies, the most that calls of each model have used on the tape: what others can cost is
    estimated by it, and reserved before they are sent. None without a cap."""

    @property
    def sends(self) -> bool:
        """Whether anything may leave."""
        return bool(self.live or self.routes)

    def declares_way_out(self, recorded: Exchange) -> bool:
        """Say whether a request like a recorded one would leave where the tape does not answer it."""
        request, kind = recorded.request, recorded.request_class
        ways = find_ways(request.method, request.scheme, request.host, request.port, request.target)
        if any(one.match.clearly(ways) for one in self.answers):
            return False
        if any(one.match.surely(ways) for one in self.routes):
            return True
        return any(only is kind and rule.match.surely(ways) for rule, only in self.live)


class BranchPoint:
    """Whether a branch has come to its point. Belongs to the event loop."""

    def __init__(self, branch: Branch | None) -> None:
        """Begin before it; None for a playback that is no branch."""
        self.branch = branch
        self.reached = False
        """Whether it has, and it is known what comes before it."""
        self._came = False
        self.system: str | None = None
        """The system prompt that was recorded at the point."""
        self._left: frozenset[Seq] = frozenset()
        """Exchanges before the point that have not been asked for, as far as is known."""

    @property
    def at(self) -> Seq:
        """The exchange of the tape that is the point; 0 for a playback that is no branch."""
        return Seq(0) if self.branch is None else self.branch.at

    @property
    def is_alone(self) -> bool:
        """Whether the exchange at the point is all that is asked, so that what comes before it counts as asked and answered."""
        return self.branch is not None and self.branch.alone

    def reach(self, seq: Seq) -> bool:
        """Note that a recorded exchange answers; say whether it is the one at the point, for the first time."""
        if self.branch is None or self.branch.at != seq or self._came:
            return False
        self._came = True
        return True

    def wait_for(self, before: frozenset[Seq]) -> None:
        """Note which exchanges come before the point, and are asked for each time: until they were, nothing leaves."""
        self._left, self.reached = before, True

    def find_awaited(self, served: Callable[[Seq], bool]) -> Seq | None:
        """Find what is still to be asked for before anything may leave; None where that is nothing."""
        if self.branch is None or not self.reached:
            return None if self.branch is None else self.branch.at
        if self._left:
            self._left = frozenset(seq for seq in self._left if not served(seq))
        return min(self._left, default=None)


def parse_route(text: str, reason: str) -> SandboxRoute:
    """Parse a route as `MATCH=URL`.

    Raises: ValueError, whose text says what would be right.
    """
    expected = "expected one as 'POST https://api.example.com/v1/*=http://127.0.0.1:9000'"
    found = _ROUTE.fullmatch(text) if len(text) <= _MOST else None
    if found is None:
        raise ValueError(f"{text[:80]!r} is no route; {expected}")
    match = parse_match(found["match"].strip())
    try:
        url = urlsplit(found["url"])
        port = url.port if url.port is not None else _PORTS[url.scheme]
    except ValueError as error:
        raise ValueError(f"{found['url'][:80]!r} is no URL: {error}; {expected}") from None
    if not url.hostname or not port:
        raise ValueError(f"{found['url'][:80]!r} names no host; {expected}")
    if "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            f"the URL of a route has a scheme, a host, a port and a path, and nothing else; {expected}"
        )
    if not (found["url"].isascii() and found["url"].isprintable()):
        raise ValueError(f"the URL of a route has characters that no URL has; {expected}")
    return SandboxRoute(match, url.scheme, url.hostname, port, url.path.rstrip("/"), reason)


def parse_live_class(
    text: str, parse_host: Callable[[str], str]
) -> tuple[RequestClass, tuple[str, ...]]:
    """Parse a class that goes live, as `CLASS` or `CLASS=HOST[,HOST]`; give it with the hosts that are named.

    Raises: ValueError, whose text says what would be right.
    """
    name, sign, hosts = text.partition("=")
    known = {one.value: one for one in MAY_GO_LIVE}
    if name == RequestClass.EFFECT.value:
        raise ValueError(
            "effects never go live in a branch; send them to a copy of their service with --route MATCH=URL"
        )
    if name not in known:
        raise ValueError(f"{name[:40]!r} cannot go live; expected {' or '.join(known)}")
    if not sign:
        return known[name], ()
    named = [one.strip() for one in hosts.split(",")]
    if not all(named):
        raise ValueError(
            f"--live {name}= names no host; expected {name}=api.example.com, or {name} alone for the hosts on the tape"
        )
    return known[name], tuple(dict.fromkeys(map(parse_host, named)))
