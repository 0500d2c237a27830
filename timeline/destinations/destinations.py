"""The hosts that runs sent something to: by which agent, of what class, how many bytes, since when, and what sorts of personal data.

What was sent is read from the logs; bodies are read for personal data alone. Of a conversation, which each request repeats, what the request
before to the same host began with is not counted again. What was served from a tape or refused was not sent.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...config.profiles.command_programs import find_program
from ...store import RunInfo, Store
from ...tape.diff.request_differences import common_prefix
from ...tape.exchange import Exchange
from ...tape.records.content_coding import read_codings, undo_coding
from ...tape.records.events import Event, EventKind
from ..reading.logged_place import split_place
from .personal_data import as_said, find_personal_data

_MOST = 16 * 1024 * 1024
_BEFORE = 400
"""Bytes before what is new in a body that are read again: a value may begin there, with six bytes for a character."""


@dataclass(slots=True)
class Destination:
    """A host, and what was sent there."""

    host: str
    first_ns: int
    """When something was first sent, or tried."""
    first_run: str
    requests: int = 0
    refused: int = 0
    """Not sent: refused by a rule, or denied on its way past the proxy."""
    bytes_out: int = 0
    """Of the bodies of requests."""
    bytes_in: int = 0
    agents: dict[str, Counter[str]] = field(default_factory=dict)
    """Requests by agent and class."""
    personal: Counter[str] = field(default_factory=Counter)
    """Sorts of personal data in what was sent."""


class Destinations:
    """The destinations of the runs that were added, oldest first."""

    def __init__(self, since_ns: int = 0) -> None:
        """Begin without any run.

        since_ns: requests before it do not count.
        """
        self._since_ns = since_ns
        self._hosts: dict[str, Destination] = {}

    def all(self) -> list[Destination]:
        """Give the destinations: those first seen last come first, since they are new."""
        return sorted(self._hosts.values(), key=lambda one: (-one.first_ns, one.host))

    def add(self, store: Store, run: RunInfo) -> None:
        """Add what a run sent; for a tape that exploring kept nothing was. Blocking.

        Raises: LogCorrupt.
        """
        if run.is_explored:
            return
        agent = agent_name(run.agent)
        sent: dict[int, Destination] = {}
        bodies: dict[str, bytes] = {}
        for event in store.events.all(run):
            data = event.data
            if event.kind is EventKind.EGRESS:
                host = str(data["target"]).rpartition(":")[0] or str(data["target"])
                self._host(host, event, run).refused += 1
            elif event.kind in (EventKind.INTENT, EventKind.VERDICT):
                if event.at_ns < self._since_ns:
                    continue
                found = self._request(event, run, agent)
                if found is not None:
                    sent[event.seq] = found
            elif event.kind is EventKind.OUTCOME and event.seq in sent:
                _note_outcome(sent[event.seq], data)
        for seq, destination in sent.items():
            exchange = store.exchanges.find(run, seq)
            if exchange is not None:
                destination.personal += _personal(exchange, destination.host, bodies)

    def _request(self, event: Event, run: RunInfo, agent: str) -> Destination | None:
        # What a branch sends to a sandbox is sent there, and not to the host that the agent asked.
        sandbox = event.data.get("sandbox_place")
        place = split_place(event.data["url"] if sandbox is None else f"{sandbox}/")
        if place is None:
            return None
        verdict = event.data.get("verdict", "recorded")
        if verdict in ("served", "stubbed", "hypothetical", "discarded"):
            return None
        found = self._host(place[1].lower(), event, run)
        if verdict in ("refused", "held"):
            found.refused += 1
            return None
        found.requests += 1
        found.agents.setdefault(agent, Counter())[event.data["request_class"]] += 1
        return found

    def _host(self, host: str, event: Event, run: RunInfo) -> Destination:
        found = self._hosts.get(host)
        if found is None:
            found = self._hosts[host] = Destination(host, event.at_ns, run.id)
        elif event.at_ns < found.first_ns:
            found.first_ns, found.first_run = event.at_ns, run.id
        return found


def _note_outcome(destination: Destination, data: Mapping[str, Any]) -> None:
    if "bytes_out" in data:
        destination.bytes_out += data["bytes_out"]
        destination.bytes_in += data["bytes_in"]


def _personal(exchange: Exchange, host: str, bodies: dict[str, bytes]) -> Counter[str]:
    """Count the personal data in what a request says that the one before to its host did not."""
    request = exchange.request
    body = request.body[:_MOST]
    coding = read_codings(request.headers)
    if coding:
        plain = undo_coding(body, coding, _MOST)
        body = body if plain is None else plain
    before = bodies.get(host, b"")
    bodies[host] = body
    known = common_prefix(before, body)
    begin = max(0, known - _BEFORE)
    new = body[begin:]
    is_form = b"form-urlencoded" in (request.header(b"content-type") or b"").lower()
    found = find_personal_data(as_said(new, is_form=is_form))
    if known:
        # A value that stands across the place is counted with what was there before.
        found -= find_personal_data(as_said(new[: known - begin], is_form=is_form))
    path, _, query = request.target.encode("utf-8", "surrogatepass").partition(b"?")
    found |= find_personal_data(as_said(path)) | find_personal_data(as_said(query, is_form=True))
    return Counter(kind for kind, _ in found)


def agent_name(command: str) -> str:
    """Give a short name of an agent: the program that its command runs."""
    return find_program(command.split())[:60] or "unknown"
