"""The endpoints of a tape, read from its log without reading the requests."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...config import Classes
from ...store import RunInfo, Store
from ...tape.classify.by_method_and_url import classify
from ...tape.diff.nearest import Endpoints
from ...tape.exchange import RequestClass, Seq
from ...tape.matching.lane_order import TOGETHER_NS
from ...tape.records.events import EventKind
from ..reading.logged_place import split_place

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


class Logged(NamedTuple):
    """What the log has of a request: that it was asked, that it was refused, or that it has ended."""

    kind: EventKind
    seq: Seq
    at_ns: int
    method: str = ""
    url: str = ""
    fingerprint: bytes = b""
    was_telemetry: bool = False
    by_body: bool = False
    """Whether its body made it that."""
    bytes_out: int = 0


def read_requests(store: Store, tape: RunInfo) -> Iterator[Logged]:
    """Read what a tape's log has of its requests, page by page. Blocking.

    Raises: LogCorrupt.
    """
    for event in store.events.all(tape, _PAGE):
        data = event.data
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            yield Logged(
                event.kind,
                event.seq,
                event.at_ns,
                data["method"],
                data["url"],
                bytes(data["fingerprint"]) if event.kind is EventKind.INTENT else b"",
                data["request_class"] == RequestClass.TELEMETRY.value,
                data.get("by_body", False),
            )
        elif event.kind is EventKind.OUTCOME:
            yield Logged(event.kind, event.seq, event.at_ns, bytes_out=data.get("bytes_out", 0))


def find_places(
    requests: Iterable[Logged], classes: Classes, pause: Callable[[], None] = lambda: None
) -> Places:
    """Find where the requests of a tape went.

    pause: called now and then, by whom others should not have to wait for.
    """
    places = Places({}, Endpoints(), [])
    unfinished: dict[Seq, Unfinished] = {}
    begun: dict[Seq, tuple[str, str]] = {}
    for count, one in enumerate(requests, 1):
        if count % _PAGE == 0:
            pause()
        if one.kind is EventKind.OUTCOME:
            if one.seq in begun:
                places.near.add(one.seq, *begun.pop(one.seq), one.bytes_out)
                del unfinished[one.seq]
            continue
        key = (one.method, one.url.partition("?")[0])
        places.asked.setdefault(key, []).append(one.seq)
        if _is_telemetry(one, classes):
            pass
        elif one.kind is EventKind.INTENT:
            begun[one.seq] = key
            unfinished[one.seq] = Unfinished(one.seq, one.method, one.url, one.fingerprint)
        else:  # a gate or a limit refused it
            places.near.add(one.seq, *key, 0)
    places.unfinished.extend(unfinished.values())
    return places


def find_order(requests: Iterable[Logged], classes: Classes) -> dict[Seq, tuple[Seq, ...]]:
    """Give, by exchange of a tape, those that overlapped it and were answered before it; of many the last.

    Telemetry is not among them: it may be left out.
    """
    before: dict[Seq, tuple[Seq, ...]] = {}
    under_way: dict[Seq, int] = {}
    asked: dict[Seq, Logged] = {}
    for one in requests:
        if one.kind is EventKind.INTENT and one.method != "CONNECT":
            under_way[one.seq] = one.at_ns
            asked[one.seq] = one
        elif one.kind is EventKind.OUTCOME:
            _note_ended(one.seq, under_way, before)
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
        if began_ns <= other_ns + TOGETHER_NS:
            before[other] = (*before.get(other, ()), seq)[-_MOST_BEFORE:]


def _is_telemetry(asked: Logged, classes: Classes) -> bool:
    """Say whether a request of the log is telemetry by now; its body is not looked at again."""
    place = split_place(asked.url)
    if place is None:
        return asked.was_telemetry
    kind = classify(asked.method, *place, classes)
    if asked.was_telemetry and asked.by_body and not kind.named:
        return True
    return kind.of is RequestClass.TELEMETRY
