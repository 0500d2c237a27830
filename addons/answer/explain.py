"""Explain a divergence: the nearest recorded request, the differences, the origin of values, the rule that would ignore them.

Blocking, for a thread, and bounded: at most `_CANDIDATES` exchanges are read for the nearest one, and for
`_LIMIT_S` others are looked through for where a value came from.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ...tape.canonical.regex_masks import slow
from ...tape.diff.divergence_types import (
    UNKNOWN_OUTCOME,
    Cause,
    Dependence,
    Difference,
    Divergence,
    DivergenceKind,
)
from ...tape.diff.nearest import nearest
from ...tape.diff.request_differences import differences
from ...tape.diff.suggest_rule import has_clock, is_volatile, note_on, propose_rule
from ...tape.exchange import SENT_OUT, Request, Seq
from ...tape.matching.cursor import Exhausted, Hit
from ...tape.matching.origin_of_difference import (
    Answer,
    find_digested,
    find_origin,
    find_replaced,
    find_texts,
    sought,
)
from ...tape.policy.decide import Drifted
from ...tape.policy.revise import Disagreement, TooEarly, Unreadable, Unsearched
from ...timeline.learning.seen_before_sent import is_told
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun

_CANDIDATES = 32
"""Recorded exchanges read for the nearest one."""
_SHOWN = 8
"""Differences that are told."""
_COMPARED = 40
"""Differences that are looked at for a rule."""
_TRACED = 3
"""Differences whose values are looked for in answers."""
_LIMIT_S = 0.5
_REDACTION = (
    "redaction replaced a value there{}: `redact` and `redact_off` decide which values are secrets"
)
_DETERMINISM = "a clock or something drawn at random differs: recorded and replayed with `--determinism full`, a command has the same again, as far as `sources` in its receipt says"
_WORKERS = "a clock or something drawn at random differs, although both are repeated (`--determinism full`): another worker may have taken the job, as where several take jobs from one queue; draw for a job before it is queued"


def explain(playback: PlaybackState, pending: PendingExchange, request: Request) -> Divergence:
    """Say how a request diverged. Blocking.

    request: redacted.
    """
    found, wrong = pending.lookup.found, pending.lookup.wrong
    made = partial(Divergence, seq=pending.seq, method=request.method, url=request.url)
    if isinstance(found, Hit | Drifted):
        match wrong:
            case TooEarly(_, needs):
                text = _too_early(needs)
                return made(DivergenceKind.REORDERED, nearest_seq=found.seq, text=text, needs=needs)
            case Disagreement(_, places):
                text = "; ".join(one.what for one in places)
                differs = tuple(one.difference for one in places)
                changed = DivergenceKind.CHANGED
                return made(changed, nearest_seq=found.seq, differences=differs, text=text)
            case Unreadable() | Unsearched():
                return made(DivergenceKind.UNEXPECTED, nearest_seq=found.seq, text=wrong.text)
    if isinstance(found, Exhausted):
        text = f"the tape answers this request {found.times} times, and it was asked once more"
        return made(DivergenceKind.EXHAUSTED, nearest_seq=found.last, text=text)
    if isinstance(found, Drifted):
        text = f"{found.text}; {found.advice}"
        differs = found.differences
        return made(DivergenceKind.DRIFTED, nearest_seq=found.seq, differences=differs, text=text)
    known = pending.fingerprint
    unfinished = playback.find_unfinished(known, request) if known is not None else None
    if unfinished is not None:
        text = UNKNOWN_OUTCOME.format(unfinished)
        return made(DivergenceKind.UNEXPECTED, nearest_seq=unfinished, text=text)
    pattern = _find_pattern(playback, pending)
    near = pattern
    if pattern is None or playback.cursor.served(pattern[0]):
        near = find_nearest(playback, request, pending.seq)
        if pattern is not None and (near is None or _endpoint(near[1]) != _endpoint(pattern[1])):
            near = pattern
    if near is not None and near[1].method == request.method:
        return _changed(playback, pending, request, *near)
    # Another method is another deed, however much alike they look; told is one at the same place.
    text = "the tape holds nothing like this request"
    if near is None or near[1].path != request.path:
        return made(DivergenceKind.UNEXPECTED, text=text)
    text += f"; {near[1].method} of the same place is seq {near[0]}"
    return made(DivergenceKind.UNEXPECTED, nearest_seq=near[0], text=text)


def _find_pattern(playback: PlaybackState, pending: PendingExchange) -> tuple[Seq, Request] | None:
    """Find the recorded request after whose answer a stub was made: what was meant, unless it was served."""
    if pending.lookup.made is None:
        return None
    seq = pending.lookup.made.after[0]
    exchange = playback.read_recorded(seq)
    return (seq, exchange.request) if exchange is not None else None


def _endpoint(request: Request) -> tuple[str, str]:
    return request.method, request.url.partition("?")[0]


def find_nearest(
    playback: PlaybackState, request: Request, place: Seq
) -> tuple[Seq, Request] | None:
    """Find the recorded request that was meant; of those that were not served, where there are any.

    place: seq of the request; of equals, the nearest to it.
    """
    cursor = playback.cursor
    near = playback.find_near()
    seqs = near.candidates(request, cursor.served, _CANDIDATES)
    loaded = _load(playback, seqs)
    if seqs and not loaded:
        # What was not served cannot be read.
        seqs = near.candidates(request, {*seqs, *cursor.served_seqs}.__contains__, _CANDIDATES)
        loaded = _load(playback, seqs)
    return nearest(request, [one for one in loaded if not cursor.served(one[0])] or loaded, place)


def _load(playback: PlaybackState, seqs: Iterable[Seq]) -> list[tuple[Seq, Request]]:
    """Read exchanges; one that cannot be read explains nothing."""
    rows = ((seq, playback.read_recorded(seq)) for seq in sorted(seqs))
    return [(seq, found.request) for seq, found in rows if found is not None]


def _too_early(needs: Dependence) -> str:
    return (
        f"sent before the answer that it depends on: its {needs.place} has a value from the answer to seq"
        f" {needs.tape_seq} ({needs.source}), which has not been asked for yet"
    )


def _changed(
    playback: PlaybackState, pending: PendingExchange, request: Request, seq: Seq, recorded: Request
) -> Divergence:
    open_run = pending.open_run
    kind = pending.request_class
    secret = open_run.redactor.redacted_query(recorded) | open_run.redactor.redacted_query(request)
    found = differences(recorded, request, open_run.identifier.rules, kind, secret, _COMPARED)
    cause = _find_cause(playback, pending, seq, recorded, request, found)
    exchange = playback.read_recorded(seq)
    then_s = (exchange.started_ns if exchange is not None else pending.arrival.started_ns) / 1e9
    now_s = pending.arrival.started_ns / 1e9
    rule = ""
    replaced = find_replaced(found, recorded, request)[:_SHOWN]
    # Nothing is proposed for content, nor for a value that an answer has brought: `learn` would not either; nor for what
    # redaction has caused: a rule would hide what differs there.
    if (
        cause is None
        and not replaced
        and len(found) < _COMPARED
        and is_volatile(found, then_s, now_s)
        and not _was_told(playback, seq, found)
    ):
        rule = propose_rule(recorded, request, found, open_run.identifier.rules, kind, secret)
    text = [
        f"nearest on the tape is seq {seq}",
        *slow(open_run.identifier.rules.of(request).masks.regex),
    ]
    if replaced:
        text.append(f"{replaced[0]}: {_REDACTION.format(' in one of the two alone')}")
    elif cause is not None and any(
        one is not None and one.replaced for one in (cause.recorded, cause.asked)
    ):
        replaced = (cause.place,)
        text.append(f"{cause.place}: {_REDACTION.format(' in the answer that it was made from')}")
    if cause is None and not replaced and has_clock(found, then_s, now_s):
        text.append(_WORKERS if open_run.config.determinism == "full" else _DETERMINISM)
    return Divergence(
        DivergenceKind.CHANGED,
        pending.seq,
        request.method,
        request.url,
        seq,
        found[:_SHOWN],
        "; ".join(text),
        cause=cause,
        replaced=replaced,
        rule=rule,
        note=note_on(kind) if rule else "",
    )


def _was_told(playback: PlaybackState, seq: Seq, found: Sequence[Difference]) -> bool:
    """Say whether values of a recorded request may have been there before the client sent it."""
    before = (playback.read_recorded(Seq(one)) for one in range(1, seq))
    return is_told(
        (text for one in found for text in (one.recorded, one.asked)),
        playback.find_command(),
        (one for one in before if one is not None),
        time.monotonic() + _LIMIT_S,
    )


def _find_cause(
    playback: PlaybackState,
    pending: PendingExchange,
    seq: Seq,
    recorded: Request,
    asked: Request,
    found: Iterable[Difference],
) -> Cause | None:
    """Find where the values of the first difference that can be traced came from."""
    deadline = time.monotonic() + _LIMIT_S
    untraced = frozenset(one.place for one in pending.redactions)
    for _, one in zip(range(_TRACED), found, strict=False):
        old, new = find_texts(one.place, recorded, asked, untraced)
        cause = Cause(
            one.place,
            find_origin(sought(one.place, old, new), _on_tape(playback, seq, deadline)),
            find_origin(sought(one.place, new, old), _given(pending.open_run, playback, deadline))
            or find_digested(new, _given(pending.open_run, playback, deadline)),
        )
        if cause.recorded is not None or cause.asked is not None:
            return cause
    return None


def _on_tape(playback: PlaybackState, before: Seq, deadline: float) -> Iterator[Answer]:
    """Give the recorded answers before an exchange, in their order."""
    for seq in range(1, before):
        exchange = playback.read_recorded(Seq(seq))
        if exchange is not None:
            given = playback.completion.given.get(Seq(seq))
            yield Answer(given, Seq(seq), exchange.response, exchange.redactions)
        if time.monotonic() > deadline:
            return


def _given(open_run: OpenRun, playback: PlaybackState, deadline: float) -> Iterator[Answer]:
    """Give what this playback was answered, in the order in which it asked."""
    rows: list[tuple[Seq, Seq | None]] = [
        (seq, one) for one, seq in playback.completion.given.copy().items()
    ]
    made = playback.stubbed.copy()
    if open_run.info is not None and open_run.policy.sends:
        for exchange in open_run.store.exchanges.all(open_run.info):
            if exchange.verdict in SENT_OUT and exchange.response is not None:
                made[exchange.seq] = exchange.response
            if time.monotonic() > deadline:
                break
    rows += [(seq, None) for seq in made]
    for seq, tape_seq in sorted(rows, key=lambda row: row[0]):
        if tape_seq is None:
            yield Answer(seq, None, made[seq])
        else:
            found = playback.read_recorded(tape_seq)
            if found is not None:
                yield Answer(seq, tape_seq, found.response, found.redactions)
        if time.monotonic() > deadline:
            return
