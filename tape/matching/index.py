"""The index of a tape: the fingerprint of each exchange, and the changes under other match rules.

Rules:

1. An index holds for one digest: of the rules, of the version of the canonical form, of the places that a
   configuration redacts, since those count by their kind, and of its classes, since telemetry counts by its path.
   Under another digest it has to be made again.
2. Raw bytes are the record, so it always can be.
3. Where two requests that are not the same bytes came to share a key and were answered differently, one may get
   the other's answer: that is a *collision*, and a person has to see it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

from ...config.schema import Classes, Config, KeepRule, RedactRule
from ..canonical.canonical_request import CANONICAL_VERSION, Rules, canonical, fingerprint, raw_key
from ..canonical.json_rpc_client_ids import find_places
from ..classify.by_body import class_now
from ..exchange import Exchange, Fingerprint, RequestClass, Response, Seq
from ..redaction.redactor import Redactor

_NO_CLASSES = Classes()


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


def index_digest(rules: Rules, config: Config | None = None) -> bytes:
    """Give the 16 bytes that say under which rules an index was made.

    config: what it says of secrets and classes counts, too; None where it says nothing of them.
    """
    told = ""
    if config is not None:
        # Header fields that hold a secret stand in the digest of the rules.
        secrets: list[RedactRule | KeepRule] = [*config.redact, *config.redact_off]
        places = sorted(repr(rule) for rule in secrets if not rule.header)
        told = repr(places) if places else ""
        classes = config.classes
        if classes != _NO_CLASSES:
            own = (classes.inference, classes.read, classes.effect, classes.telemetry)
            told += repr([[match.text for match in matches] for matches in own])
    if not told:
        return rules.digest
    return blake2b(rules.digest + told.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def reclassify(exchange: Exchange, classes: Classes) -> Exchange:
    """Give an exchange with the class that its request has now: as it would be asked today."""
    now = class_now(exchange.request, classes)
    return exchange if now is exchange.request_class else replace(exchange, request_class=now)


def index_entry(exchange: Exchange, rules: Rules, redactor: Redactor) -> Entry:
    """Give the keys of an exchange under some rules."""
    request, kind = redactor.recorded(exchange.request), exchange.request_class
    secret = redactor.redacted_query(request)
    found = fingerprint(canonical(request, kind, rules, secret))
    return Entry(exchange.seq, found, raw_key(request, kind))


_TELLING = frozenset({b"location", b"grpc-status", b"grpc-message"})
"""Fields of an answer that say what its body does not; most others say when and by whom."""


def answer_hash(exchange: Exchange) -> bytes:
    """Give 16 bytes over what an exchange answered: status, body, failure; empty where that never matters.

    The ids of JSON-RPC do not count in a body: whoever is served it gets its own.
    """
    if exchange.request_class is RequestClass.TELEMETRY:
        return b""
    response, fault = exchange.response, exchange.fault
    told = blake2b(digest_size=16)
    if response is not None:
        told.update(b"%d " % response.status)
        for name, value in (*response.headers, *response.trailers):
            if name.lower() in _TELLING:
                told.update(b"%b: %b\n" % (name.lower(), value))
        told.update(response.spilled.digest if response.spilled is not None else _said(response))
    if fault is not None:
        told.update(f"\n{fault.kind.value} {fault.phase.value}".encode())
    return told.digest()


def _said(response: Response) -> bytes:
    body, parts, at = response.body, [], 0
    for place in find_places(body, events=response.is_events):
        parts.append(body[at : place.start])
        at = place.end
    return b"".join((*parts, body[at:]))


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
