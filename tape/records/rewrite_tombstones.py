"""Read what the log says of records that were rewritten: each hash of before is a tombstone of the record that it was taken of.

A record is rewritten if a rule of redaction applies to it that was not known when it was written. The events of before
stay, and a `rewritten` event behind them says which hashes are those of now. An event that held a secret itself is replaced
in its place; the events behind it are linked anew, and the `rewritten` event has the links that stood there.
"""

from collections.abc import Iterable, MutableMapping
from typing import Any, NamedTuple

from .events import Event, EventKind

ROWS = 1000
"""Most rows of one event; a rewrite of more has several events, all of one time."""


class Tombstone(NamedTuple):
    """What became of the record of an exchange."""

    seq: int
    before: bytes
    """16 bytes: hash of the record that is no more."""
    now: bytes
    """Hash of the record in its place."""
    said_before: bytes = b""
    """The same over the messages of a WebSocket; empty where there are none."""
    said_now: bytes = b""


class ReplacedEvent(NamedTuple):
    """An event that was replaced in its place."""

    number: int
    before: bytes
    """16 bytes: chain hash that stood there."""


class Rewritten(NamedTuple):
    """One rewrite of a run."""

    at_ns: int
    rules: tuple[str, ...]
    """Names of the rules that applied: a place in the configuration, or a shipped format's kind."""
    exchanges: tuple[Tombstone, ...]
    events: tuple[ReplacedEvent, ...]
    chain: bytes
    """The hash in which the log ended before it was linked anew; empty where no event was replaced."""
    texts: tuple[bytes, ...] = ()
    """Hashes of texts in which placeholders stand that nothing else tells of."""
    in_folder: int = 0
    """How many paths of the working folder's manifest changed, or files of it."""

    def to_events(self) -> list[Event]:
        """Give the events that say so."""
        rows = max(len(self.exchanges), len(self.events), len(self.texts), 1)
        return [
            Event(
                EventKind.REWRITTEN,
                self.at_ns,
                {
                    "rules": self.rules,
                    "exchanges": self.exchanges[at : at + ROWS],
                    "events": self.events[at : at + ROWS],
                    "chain": self.chain,
                    "texts": self.texts[at : at + ROWS],
                    **({"in_folder": self.in_folder} if self.in_folder and not at else {}),
                },
            )
            for at in range(0, rows, ROWS)
        ]

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; times in nanoseconds, hashes in hexadecimal."""
        return {
            "at_ns": self.at_ns,
            "rules": list(self.rules),
            "exchanges": [
                {
                    "seq": one.seq,
                    "before": one.before.hex(),
                    "now": one.now.hex(),
                    "messages_before": one.said_before.hex(),
                    "messages_now": one.said_now.hex(),
                }
                for one in self.exchanges
            ],
            "events": [{"number": one.number, "before": one.before.hex()} for one in self.events],
            "chain": self.chain.hex(),
            "in_folder": self.in_folder,
        }


def read_rewritten(event: Event) -> Rewritten:
    """Read an event of kind `rewritten`, whose fields `check_event_fields` has checked."""
    data = event.data
    return Rewritten(
        event.at_ns,
        tuple(data["rules"]),
        tuple(Tombstone(*row) for row in data["exchanges"]),
        tuple(ReplacedEvent(*row) for row in data["events"]),
        data["chain"],
        tuple(data["texts"]),
        data.get("in_folder", 0),
    )


def join_rewrites(found: Iterable[Rewritten]) -> list[Rewritten]:
    """Put together what several events say of one rewrite; in order."""
    joined: list[Rewritten] = []
    for one in found:
        last = joined[-1] if joined else None
        if last is None or (last.at_ns, last.rules) != (one.at_ns, one.rules):
            joined.append(one)
            continue
        joined[-1] = last._replace(
            exchanges=last.exchanges + one.exchanges,
            events=last.events + one.events,
            texts=last.texts + one.texts,
            in_folder=last.in_folder + one.in_folder,
        )
    return joined


def replace_hashes(
    rewritten: Rewritten, hashes: MutableMapping[Any, bytes], said: MutableMapping[Any, bytes]
) -> list[int]:
    """Put the hashes of now in the place of those of before; give the seqs of which the log had another one.

    hashes, said: by seq, of exchanges and of messages, as the log has told them so far.
    """
    wrong = []
    for one in rewritten.exchanges:
        if hashes.get(one.seq, one.before) != one.before:
            wrong.append(one.seq)
        hashes[one.seq] = one.now
        if one.said_now:
            said[one.seq] = one.said_now
    return wrong
