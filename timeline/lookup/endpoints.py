"""The endpoints of a tape, read from its log without reading the requests."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...config import Classes
from ...store import RunInfo, Store, StoreError
from ...tape.classify.by_method_and_url import classify
from ...tape.diff.nearest import Endpoints
from ...tape.exchange import RequestClass, Seq
from ...tape.records.events import EventKind
from ..receipts.unmatched_rules import split_place

_TOGETHER_NS = 250_000_000
"""Exchanges that began so soon after another one are parallel to it; later ones may be polls during a long answer."""
_MOST_BEFORE = 64
_PAGE = 500
"""Events read at a time."""


class Unfinished(NamedTuple):
    """A request of a tape that was under way when the recording ended: its outcome is unknown."""

    seq: Seq
    method: str
    url: str
    fingerprint: bytes


class Places(NamedTuple):
    """The endpoints of a tape."""

    asked: dict[tuple[str, str], list[Seq]]
    """Seqs by method, and URL without its query."""
    near: Endpoints
    """What may be near a request: what has ended, telemetry aside, which nobody wrote."""
    unfinished: list[Unfinished]


def read_places(
    store: Store, tape: RunInfo, classes: Classes, pause: Callable[[], None] = lambda: None
) -> Places:
    """Read where a tape's requests went. Blocking.

    pause: called between pages, by whom others should not have to wait for.
    Raises: LogCorrupt.
    """
    places = Places({}, Endpoints(), [])
    unfinished: dict[Seq, Unfinished] = {}
    begun: dict[Seq, tuple[str, str]] = {}
    for count, event in enumerate(store.events.all(tape, _PAGE), 1):
        data = event.data
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            key = (data["method"], data["url"].partition("?")[0])
            places.asked.setdefault(key, []).append(event.seq)
            if _is_telemetry(data, classes):
                pass
            elif event.kind is EventKind.INTENT:
                begun[event.seq] = key
                told = data["method"], data["url"], bytes(data["fingerprint"])
                unfinished[event.seq] = Unfinished(event.seq, *told)
            else:  # a gate or a limit refused it
                places.near.add(event.seq, *key, 0)
        elif event.kind is EventKind.OUTCOME and event.seq in begun:
            places.near.add(event.seq, *begun.pop(event.seq), data.get("bytes_out", 0))
            del unfinished[event.seq]
        if count % _PAGE == 0:
            pause()
    places.unfinished.extend(unfinished.values())
    return places


def read_order(store: Store, tape: RunInfo, classes: Classes) -> dict[Seq, tuple[Seq, ...]]:
    """Give, by exchange of a tape, those that overlapped it and were answered before it; of many the last. Blocking.

    Telemetry is not among them: it may be left out. A log that cannot be read has no order.
    """
    before: dict[Seq, tuple[Seq, ...]] = {}
    under_way: dict[Seq, int] = {}
    asked: dict[Seq, Mapping[str, Any]] = {}
    with contextlib.suppress(StoreError):  # whoever plays it finds that, too, and says it
        for event in store.events.all(tape, _PAGE):
            if event.kind is EventKind.INTENT and event.data["method"] != "CONNECT":
                under_way[event.seq] = event.at_ns
                asked[event.seq] = event.data
            elif event.kind is EventKind.OUTCOME:
                _note_ended(event.seq, under_way, before)
    # To classify takes longer than to read: few overlapped.
    left_out = {
        seq
        for seq in {*before, *(one for others in before.values() for one in others)}
        if _is_telemetry(asked[seq], classes)
    }
    kept = (
        (seq, tuple(one for one in others if one not in left_out))
        for seq, others in before.items()
        if seq not in left_out
    )
    return {seq: others for seq, others in kept if others}


def _note_ended(seq: Seq, under_way: dict[Seq, int], before: dict[Seq, tuple[Seq, ...]]) -> None:
    """Note that an exchange was answered before those that are under way and had begun by about the same time."""
    began_ns = under_way.pop(seq, None)
    if began_ns is None:
        return
    for other, other_ns in under_way.items():
        if began_ns <= other_ns + _TOGETHER_NS:
            before[other] = (*before.get(other, ()), seq)[-_MOST_BEFORE:]


def _is_telemetry(told: Mapping[str, Any], classes: Classes) -> bool:
    """Say whether a request of the log is telemetry by now; its body is not looked at again."""
    place = split_place(told["url"])
    was: bool = told["request_class"] == RequestClass.TELEMETRY.value
    if place is None:
        return was
    kind = classify(told["method"], *place, classes)
    if was and told.get("by_body", False) and not kind.named:
        return True
    return kind.of is RequestClass.TELEMETRY
