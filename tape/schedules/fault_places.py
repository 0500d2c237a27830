"""Where on a tape a fault can be laid."""

from collections.abc import Iterable, Mapping

from ..canonical.canonical_request import Rules, canonical, fingerprint
from ..exchange import Exchange, Fingerprint, RequestClass, Seq
from ..policy.refusal import is_grpc
from .scheduled_fault import SHARES, FaultWord, ScheduledFault

_LEAST = 2
"""Bytes of a body that can be cut."""


def find_places(
    exchanges: Iterable[Exchange], before: Mapping[Seq, tuple[Seq, ...]], rules: Rules
) -> list[ScheduledFault]:
    """Find every fault that a tape has a place for, in the order of the tape; of `cut` the first part alone.

    before: by exchange, those that overlapped it and were answered before it.
    """
    found: list[ScheduledFault] = []
    read: dict[Fingerprint, Seq] = {}
    after = {one: seq for seq, others in before.items() for one in others}
    for exchange in exchanges:
        seq, response = exchange.seq, exchange.response
        if response is None or not _counts(exchange):
            continue
        found += [ScheduledFault(seq, FaultWord.LATE), ScheduledFault(seq, FaultWord.SLOW)]
        if response.body_bytes >= _LEAST and response.spilled is None:
            found.append(ScheduledFault(seq, FaultWord.CUT, share=1))
        found.append(ScheduledFault(seq, FaultWord.THROTTLE))
        if exchange.request_class is RequestClass.READ:
            key = fingerprint(canonical(exchange.request, exchange.request_class, rules))
            if key in read:
                found.append(ScheduledFault(seq, FaultWord.DUPLICATE, read[key]))
            read[key] = seq
        if seq in after:
            found.append(ScheduledFault(seq, FaultWord.REORDER, after[seq]))
    return found


def _counts(exchange: Exchange) -> bool:
    """Say whether an answer is one that its client was given, over plain HTTP."""
    odd = exchange.request.method == "CONNECT" or exchange.websocket is not None
    failed = exchange.fault is not None or exchange.saw_nothing
    telemetry = exchange.request_class is RequestClass.TELEMETRY
    return not (odd or failed or telemetry or is_grpc(exchange.request))


def check_fault(fault: ScheduledFault, places: Iterable[ScheduledFault]) -> None:
    """Check that a tape has a place for a fault. Raises: ValueError, saying what it has."""
    same = [one for one in places if one.seq == fault.seq]
    if not same:
        raise ValueError(f"has no exchange {fault.seq} whose answer can meet a fault")
    words = [one.word for one in same]
    if fault.word not in words:
        raise ValueError(
            f"has no place for {fault.word} at exchange {fault.seq}; expected one of {', '.join(words)}"
        )
    if fault.word is FaultWord.CUT and not 0 < fault.share < SHARES:
        raise ValueError(f"share is {fault.share}; expected 1 to {SHARES - 1}")
