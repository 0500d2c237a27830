"""Check the fields of events that come from elsewhere; events written by this store are correct by construction.

Whoever shows a run takes its events as `events` describes them. A key that is not known here may hold anything.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..exchange import Phase, RepeatKind, RequestClass, VerdictKind
from .codec import BadRecord
from .events import Event, EventKind
from .failed_attempt import AttemptKind

_Is = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return type(value) is str


def _bytes(value: Any) -> bool:
    return type(value) is bytes


def _int(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _flag(value: Any) -> bool:
    return type(value) is bool


def _number(value: Any) -> bool:
    return _int(value) or (type(value) is float and abs(value) < 1e18)


def _map(value: Any) -> bool:
    return type(value) is dict and all(map(_text, value))


def _or_none(check: _Is) -> _Is:
    return lambda value: value is None or check(value)


def _each(check: _Is) -> _Is:
    return lambda value: type(value) is tuple and all(map(check, value))


def _row(*checks: _Is) -> _Is:
    def check(value: Any) -> bool:
        return (
            type(value) is tuple
            and len(value) == len(checks)
            and all(one(part) for one, part in zip(checks, value, strict=True))
        )

    return check


def _map_of(check: _Is) -> _Is:
    return lambda value: _map(value) and all(map(check, value.values()))


def _one_of(names: type[VerdictKind | RequestClass | RepeatKind | Phase]) -> _Is:
    values = frozenset(one.value for one in names)
    return lambda value: _text(value) and value in values


_ATTEMPT: dict[str, _Is] = {
    "kind": lambda value: _text(value) and value in frozenset(AttemptKind),
    **dict.fromkeys(("host", "process", "detail", "egress"), _text),
    **dict.fromkeys(("port", "after"), _int),
    **dict.fromkeys(("beside", "distrusted", "spared"), _flag),
}


def _attempt(value: Any) -> bool:
    return (
        _map(value)
        and value.keys() == _ATTEMPT.keys()
        and all(check(value[name]) for name, check in _ATTEMPT.items())
    )


def _any(value: Any) -> bool:
    return True


_PATTERNS = _each(_row(_text, _or_none(_text)))
_ASKED: dict[str, _Is] = {
    "seq": _int,
    "method": _text,
    "url": _text,
    "request_class": _one_of(RequestClass),
    "fingerprint": _bytes,
}
_USE = _each(_or_none(_int))
NEEDED: dict[EventKind, dict[str, _Is]] = {
    EventKind.INTENT: _ASKED,
    EventKind.VERDICT: {**_ASKED, "verdict": _one_of(VerdictKind), "reason": _text},
    EventKind.OUTCOME: {"seq": _int},
    EventKind.MARKED: {"labels": _each(_text), "pinned": _flag},
    EventKind.DIVERGED: {"seq": _int, "divergence": _map},
    EventKind.HELD: {
        **dict.fromkeys(("method", "url", "digest", "rule", "reason"), _text),
        "seq": _int,
    },
    EventKind.RULED: {
        **dict.fromkeys(("digest", "ruling", "by", "via", "reason"), _text),
        "seq": _int,
    },
    EventKind.INJECTED: {"seq": _int, "rule": _text, "inject": _text, "nth": _int, "seed": _any},
    EventKind.CONTRACT: {
        "seq": _int,
        "of": _text,
        "rule": _text,
        "refused": _flag,
        "count": _int,
        "violations": _each(_each(_any)),
        "unchecked": _each(_text),
    },
    EventKind.EGRESS: {"target": _text, "by": _text, "reason": _text},
    EventKind.FOREIGN: {"sockets": _each(_map)},
    EventKind.GAP: {"since_ns": _int, "until_ns": _int, "reason": _text},
    EventKind.LOST: {"lost": _map_of(_int)},
    EventKind.STOPPED: {"by": _text, "pid": _int, "reason": _text},
    EventKind.LIMITED: {"seq": _int, "limit": _text, "reason": _text},
    EventKind.SEALED: {"reason": _text, "exchanges": _int},
    EventKind.RECOVERED: {"reason": _text},
    EventKind.REWRITTEN: {
        "rules": _each(_text),
        "exchanges": _each(_row(_int, _bytes, _bytes, _bytes, _bytes)),
        "events": _each(_row(_int, _bytes)),
        "chain": _bytes,
        "texts": _each(_bytes),
    },
}
_TOGETHER: tuple[tuple[EventKind, str, dict[str, _Is]], ...] = (
    (
        EventKind.OUTCOME,
        "status",
        {
            "verdict": _one_of(VerdictKind),
            "status": _int,
            "complete": _flag,
            **dict.fromkeys(("bytes_in", "bytes_out", "end_us"), _int),
        },
    ),
    (EventKind.VERDICT, "after", {"answered_by": _text}),
    (EventKind.VERDICT, "tape_seq", {"tape_seq": _int, "match": _text}),
    (EventKind.GAP, "records", dict.fromkeys(("exchanges", "effects", "records"), _int)),
)
"""Kind, a key, and what is there where that is."""
MAY: dict[str, _Is] = {
    "seq": _int,
    "text": _text,
    "by": _text,
    "key": _or_none(_bytes),
    "rule": _text,
    "repeat": _row(_int, _one_of(RepeatKind), _flag),
    "by_body": _flag,
    "claims": _each(_row(_text, _text)),
    "tape_seq": _int,
    "match": _text,
    "waits": _flag,
    "again": _flag,
    "allowed": _each(_text),
    "attempt": _attempt,
    "cut": _row(_text, _text),
    "answered_by": _text,
    "in_place_of": _int,
    "asked_otherwise": _flag,
    "sandbox_place": _text,
    "branch": _map,
    "branched": _row(_int, _int),
    "resume": _map,
    "resumed": _flag,
    "crash_point": _int,
    "ended_well": _int,
    "joined": _flag,
    "given": _int,
    "unknown_effect": _row(_text, _int),
    "after": _each(_int),
    "drifted": _text,
    "fault": _row(_text, _one_of(Phase), _text),
    "gone_us": _int,
    "aborted": _flag,
    "uncounted": _flag,
    "taken": _row(_int, _int),
    "late": _flag,
    "ignored_content": _flag,
    "profile": _row(_text, _int, _each(_text)),
    "unprofiled": _text,
    "capture": _map,
    "own_program": _text,
    "stdout": _row(_text, _int),
    "files": _map_of(_text),
    "compare": _each(_text),
    "usage": _USE,
    "estimated": _int,
    "conversation": _row(_int, _int, _int, _flag),
    "hash": _bytes,
    "said": _bytes,
    "warnings": _each(_text),
    "deadline_s": _number,
    "recorded": _flag,
    "protocol": _text,
    "protocols": _row(_text, _text),
    "process": _text,
    "child_exit": _or_none(_int),
    "command_replaced": _each(_int),
    "left_running": _each(_row(_int, _text)),
    "contained": _or_none(_flag),
    "sandbox": _or_none(_map),
    "determinism": _or_none(_map),
    "basis": _or_none(_map),
    "live": _PATTERNS,
    "telemetry": _each(_text),
    "classes": _map_of(_each(_text)),
    "allow_model_drift": _row(_text, _text),
    "limits": _map,
    "rules": _map_of(_PATTERNS),
    "redacted": _each(_row(_text, _text)),
    "ignored": _each(_row(_text, _map_of(_each(_text)))),
    "snapshot": _text,
    "unfinished": _each(_int),
    "unknown": _each(_int),
    "in_folder": _int,
}
"""What a key holds, where it is there, in whatever kind that does not say otherwise."""
_OWN = {
    EventKind.EGRESS: ("process",),
    EventKind.JOURNAL: ("process",),
    EventKind.REWRITTEN: ("rules",),
}
"""Keys that hold something else in these kinds."""


def check_event(event: Event) -> None:
    """Raise BadRecord where an event does not hold what one of its kind does."""
    data, kind = event.data, event.kind
    needed = NEEDED.get(kind, {})
    _check(event, data, needed, needed.keys())
    for which, name, group in _TOGETHER:
        if kind is which and name in data:
            _check(event, data, group, group.keys())
    if kind is EventKind.VERDICT and data["verdict"] == VerdictKind.SERVED.value:
        _check(event, data, MAY, ("tape_seq", "match"))
    own = _OWN.get(kind, ())
    _check(event, data, MAY, [name for name in MAY if name in data and name not in own])


def _check(event: Event, data: Mapping[str, Any], rules: Mapping[str, _Is], names: Any) -> None:
    for name in names:
        if name not in data or not rules[name](data[name]):
            found = repr(data[name]) if name in data else "missing"
            raise BadRecord(
                f"event {event.number} ({event.kind.value}) whose {name!r} is {found:.60}"
            )
