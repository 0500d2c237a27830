"""Under which key each exchange of a tape is found, and what becomes of that under other rules.

Rules:

1. An index holds for one digest: of the rules, of the version of the canonical form, and of the places that a
   configuration redacts, since those count by their kind. Under another digest it has to be made again.
2. Raw bytes are the record, so it always can be.
3. Where two requests that are not the same bytes came to share a key and were answered differently, one may get
   the other's answer: that is a *collision*, and a person has to see it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from ..config.schema import KeepRule, RedactRule
from .canonical import CANONICAL_VERSION, Rules, canonical, fingerprint, raw_key
from .model import Exchange, Fingerprint, RequestClass, Seq
from .redact import Redactor


class Entry(NamedTuple):
    """Where one exchange stands in an index."""

    seq: Seq
    fingerprint: Fingerprint
    raw: bytes
    """16 bytes over the request, before any parsing."""


@dataclass(frozen=True, slots=True)
class Index:
    """The keys of a tape under some rules."""

    entries: tuple[Entry, ...]
    digest: bytes
    canonical: int = CANONICAL_VERSION
    """Version of the canonical form."""


@dataclass(frozen=True, slots=True)
class Change:
    """What another index does to a tape; groups of seqs, each in order."""

    changed: int
    """How many fingerprints are others."""
    equal: tuple[tuple[Seq, ...], ...]
    """What was apart and has one key now."""
    apart: tuple[tuple[Seq, ...], ...]
    """What had one key and has several now."""
    collisions: tuple[tuple[Seq, ...], ...]


def index_digest(
    rules: Rules, redact: Iterable[RedactRule] = (), kept: Iterable[KeepRule] = ()
) -> bytes:
    """Give the 16 bytes that say under which rules an index was made."""
    # Header fields that hold a secret are not compared.
    rules_told: list[RedactRule | KeepRule] = [*redact, *kept]
    names = sorted(repr(rule) for rule in rules_told if not rule.header)
    if not names:
        return rules.digest
    return blake2b(rules.digest + repr(names).encode(), digest_size=16).digest()


def index_entry(exchange: Exchange, rules: Rules, redactor: Redactor) -> Entry:
    """Give the keys of an exchange under some rules."""
    request, kind = redactor.recorded(exchange.request), exchange.request_class
    secret = redactor.redacted_query(request)
    found = fingerprint(canonical(request, kind, rules, secret))
    return Entry(exchange.seq, found, raw_key(request, kind))


def answer_hash(exchange: Exchange) -> bytes:
    """Give 16 bytes over what an exchange answered: status, body, failure; empty where that never matters."""
    if exchange.request_class is RequestClass.TELEMETRY:
        return b""
    response, fault = exchange.response, exchange.fault
    told = blake2b(digest_size=16)
    if response is not None:
        told.update(b"%d " % response.status)
        told.update(response.spilled.digest if response.spilled is not None else response.body)
    if fault is not None:
        told.update(f"\n{fault.kind.value} {fault.phase.value}".encode())
    return told.digest()


def compare(old: Mapping[Seq, Fingerprint], new: Index, answers: Mapping[Seq, bytes]) -> Change:
    """Say what an index does to a tape.

    old: fingerprints under the index of before.
    answers: `answer_hash` of each exchange.
    """
    now = {entry.seq: entry.fingerprint for entry in new.entries}
    raws = {entry.seq: entry.raw for entry in new.entries}
    groups = _groups(now)
    return Change(
        changed=sum(old.get(seq) != key for seq, key in now.items()),
        equal=tuple(group for group in groups if len({old.get(seq) for seq in group}) > 1),
        apart=tuple(
            group for group in _groups(old) if len({now[seq] for seq in group if seq in now}) > 1
        ),
        collisions=tuple(
            group
            for group in groups
            if len({raws[seq] for seq in group}) > 1 and len({answers[seq] for seq in group}) > 1
        ),
    )


def _groups(keys: Mapping[Seq, Fingerprint]) -> list[tuple[Seq, ...]]:
    found: dict[Fingerprint, list[Seq]] = {}
    for seq in sorted(keys):
        found.setdefault(keys[seq], []).append(seq)
    return [tuple(group) for group in found.values()]
