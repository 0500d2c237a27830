"""The events of a run's log: what happened, in commit order.

Each event has a kind, a wall-clock time for people, and a small map whose keys depend on the kind:

    opened    id, mode, parent, agent         the run began
    intent    seq, method, url, request_class, fingerprint, key      a request arrived; before it is forwarded
              rule                          what decided that it is
              claims                        what its head says of host, method or path beside, as kind and text
              repeat                        an effect asked for before: seq, kind, whether that went unseen
              sandbox_place                 of a branch: where it is sent to in the place of its upstream
              asked_otherwise               of a branch: whether it is another request than the agent's
              resumed                       behind the crash point of a run that is resumed
              unknown_effect                an effect of a crashed run without an outcome, asked for again: run, seq
              traces                        ids of the traces that its header fields name
    verdict   seq, method, url, request_class, verdict, reason, rule, fingerprint, key, tape_seq, match, repeat
              waits                         the client is kept waiting, since it gave up then
              allowed                         opt-ins without which it would have been refused: RECORDED=NEW
              ignored_content                 what it is about differs, where a rule has that ignored
              profile                         of the client, without which it would not match: name, version, JSON paths
              unprofiled                      product of a client without a profile, whose model call is not on the tape
              answered_by                     of a stub: a key of `stubs/kinds.py`
              in_place_of                     seq of the tape whose answer a hypothetical one replaces
              after                           seqs of the tape after whose answers a stub was made
              drifted                       how its idempotency key or a linked value differs from the tape's, in words
              headers, merged               reported fields that differ; credentials that stand for several on the tape
    outcome   seq, verdict, status, complete, fault, gone_us, bytes_in, bytes_out, end_us,
                                              of a refused or stubbed request seq and hash alone: its verdict says the rest;
                                              of a served one seq and gone_us, if its client left, and `taken`: whether
                                              it was sent the head (1 or 0), and how many bytes of the body;
                                              `late` where it was served what the recorded client had left
              usage                           of a model call under limits: tokens asked, answered, cached; 1e-9 USD
              estimated                       1e-9 USD that a call under a cap can have cost beyond what it states
              uncounted                       of a request that did not leave, so that no limit counts it
              conversation                    messages, bytes, closing code or 0, closed by the client
              hash, said                      over the exchange as it was written, and over its messages
    marked    labels, pinned, by              its labels, and whether it is pinned, as they are from then on
    annotated seq or 0, text, by              somebody's words; also after the closing row
    diverged  seq, and a divergence as JSON types
    held      seq, method, url, digest, rule, reason, deadline_s, repeat, unknown_effect      a gate holds the request
              given                           seq of the run's that another process had asked for, and this one does once more
    ruled     seq, digest, ruling, by, via, reason      how the waiting ended
    injected  seq, rule, inject, nth, seed    a fault on purpose: its rule's name, what, which of those that match
              answer, after_bytes, ending   what was given: status, header fields and body of ours, or where one was cut
    contract  seq, of, rule, refused, count, violations, unchecked     contract violations: of `request`, `response`
              or `model`; the first violations as what, place, expected, found; what could not be checked, and why
              recorded                      the client was refused the same on the tape
    egress    target, by, reason, protocol, process, count      something tried to leave and was denied, the latter
                                              three where the kernel denied it
    foreign   sockets                         sockets seen outside the proxy
    gap       since_ns, until_ns, reason      what follows was not written; until_ns is 0 while that goes on
              exchanges, effects, records     how many outcomes, intents of effects sent on, and rows in all; at its end
    lost      lost                            effects that a sink did not get, by its name, over the run so far
    stopped   by, pid, reason                 somebody stopped the run; every request after that is refused
    limited   seq, limit, reason, calls, tokens, usd      a limit is exhausted; once for each
    journal   process, looks                  what a process saw of the clock: a piece of it, compressed
    noted     attempt                         of a client, which came to nothing: kind, host, port, process, detail, after,
                                              beside, distrusted, egress, spared
              cut                             method and URL of a request whose client left before it had ended
              text                            for people: a warning, a loss, a reload
              snapshot                        what the agent had kept of its state by the control host, as JSON text
              outcome                         `ok` or `failed`, as the agent told the control host; `why` in its words
              child_exit, command, contained  from the launcher
              command_replaced                which words of it have placeholders, from 0
              left_running                    processes that outlived the command: number (0 where they ended with its sandbox), name
              environment                     of a recording: keyed hashes of the words with digits in the values of its environment
              stdout, files                   hash and bytes of what the command wrote; hashes of the files it changed, by path
              compare                         what of these a replay compares
              sandbox                         what was seen of the sandbox, as receipts have it
              capture                         what the capture of a recording has taken and left, as receipts have it
              determinism                     what was seen of clock and randomness, as receipts have it
              basis                           what a replay makes them from: level, seed, hash_seed, start_ns
              live                            the live rules of a playback: pattern, class or None
              branch                          what a branch declares: at, changes, live, routes, answers
              branched                        it has come to its point: seq, seq of the tape
              resume                          what a run resumes: of, unknown (run, seq, method and URL of each effect without an outcome),
                                              unanswered (seqs of what is asked anew)
              joined                          processes join the run by its name, and one of them may have been started again
              ended_well                      all processes of the run have ended with 0: seq of its last request by then
              crash_point                     all of the prefix has been asked for again: seq
              allow_model_drift               an opt-in of a playback: model recorded, model asked for
              limits                          what the run may use up, by key; usd as text
              classes                         of a playback: the patterns of the configuration's classes, by class
              rules                           the configuration's rules by their key, in the same form
    sealed    reason, exchanges, unfinished   the run ended; nothing but words follows
    recovered reason, unknown                 its process died; the closing row in place of `sealed`
    rewritten rules, exchanges, events, chain, texts      rules of redaction were applied to what was stored before: seq and
              hashes before and now of each record, number and link before of each event, the link in which the log ended
              (`rewrite_tombstones.py`); behind the closing row

Every event carries the hash of the one before it (`chain`), so that a run cannot be changed unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from blake3 import blake3

from ..exchange import Seq
from .codec import BadRecord, pack_map, unpack

EVENT_VERSION = 1
CHAIN_START = b"\0" * 16
HASH_BYTES = 16
"""Of the hash of an exchange, or of messages."""


EXPLORED = "explored"
"""The rule of each intent of a tape that `playhead explore` kept, and its agent and end: nothing was sent for it."""


class EventKind(StrEnum):
    """What sort of thing happened."""

    OPENED = "opened"
    INTENT = "intent"
    VERDICT = "verdict"
    OUTCOME = "outcome"
    ANNOTATED = "annotated"
    MARKED = "marked"
    DIVERGED = "diverged"
    HELD = "held"
    RULED = "ruled"
    INJECTED = "injected"
    CONTRACT = "contract"
    EGRESS = "egress"
    FOREIGN = "foreign"
    GAP = "gap"
    LOST = "lost"
    STOPPED = "stopped"
    LIMITED = "limited"
    JOURNAL = "journal"
    NOTED = "noted"
    SEALED = "sealed"
    RECOVERED = "recovered"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the log."""

    kind: EventKind
    at_ns: int
    data: Mapping[str, Any]
    number: int = 0
    """Place in its run, from 1; 0 before it is appended."""

    @property
    def seq(self) -> Seq:
        """The exchange it speaks of, or 0."""
        return Seq(self.data.get("seq", 0))


def encode_event(event: Event, before: bytes) -> tuple[bytes, bytes]:
    """Pack an event behind the chain hash `before`; give the value and the new hash."""
    body = pack_map({"v": EVENT_VERSION, "k": event.kind.value, "t": event.at_ns, "d": event.data})
    link = link_of(body, before)
    return link + body, link


def link_of(body: bytes, before: bytes) -> bytes:
    """Give the chain hash of an event, packed, that comes behind the chain hash `before`."""
    return blake2b(body, digest_size=16, key=before).digest()


def decode_event(data: bytes | memoryview, number: int) -> Event:
    """Unpack an event.

    Raises: BadRecord.
    """
    value = unpack(bytes(data[16:]))
    try:
        if value["v"] != EVENT_VERSION:
            raise BadRecord(f"event of format {value['v']!r}; this version reads {EVENT_VERSION}")
        kind, at_ns, told = EventKind(value["k"]), value["t"], value["d"]
    except (TypeError, KeyError, ValueError) as error:
        raise BadRecord(f"not an event: {str(error)[:200]}") from error
    if type(at_ns) is not int or type(told) is not dict or type(told.get("seq", 0)) is not int:
        raise BadRecord(
            f"not an event: a time, a map or a seq is of another type in {kind.value!r}"
        )
    return Event(kind, at_ns, told, number)


def content_hash(value: bytes) -> bytes:
    """Give the hash of an exchange as it is written."""
    return blake3(value).digest(HASH_BYTES)


def with_hashes(outcome: Event, written: bytes, said: bytes = b"") -> Event:
    """Give the event that closes an exchange with the hash of what was written of it.

    written: its `content_hash`.
    said: hash over the messages of a WebSocket.
    """
    told = {"hash": written}
    if said:
        told["said"] = said
    return Event(outcome.kind, outcome.at_ns, {**outcome.data, **told})


def check_link(data: bytes | memoryview, before: bytes) -> bytes | None:
    """Give the event's chain hash if it follows `before`, else None."""
    link = bytes(data[:16])
    return link if link_of(bytes(data[16:]), before) == link else None
