"""Which paths, members and values of a body are those of telemetry, and of nothing else.

A list of what orders may be called would never end (`reboot`, `disarm`, `hire`): so what is no word of telemetry may be one. The same
is true of values: the name of a member says of which kind its value is, and each kind has values that order nothing.
"""

import re
from collections.abc import Iterator
from typing import Any

from ...tape.diff.field_name_meaning import name_words, names_deed
from ...tape.diff.made_anew import Window, is_time_of

_REPORTS = frozenset(
    (
        *("telemetry", "analytics", "metric", "metrics", "trace", "traces", "span", "spans"),
        *("otlp", "otel", "opentelemetry", "beacon", "rum", "logging", "crash", "crashes"),
    )
)
"""Words of a path, of which one has to be there."""
_BESIDE_REPORTS = frozenset(
    (
        *("api", "v", "public", "event", "events", "log", "logs", "batch", "report", "reports"),
        *("collect", "collector", "ingest", "ingestion", "intake", "record", "track", "exporter"),
    )
)
"""Words that may be beside; any other may say what is done."""
_TOLD = frozenset(
    (
        *("event", "log", "metric", "span", "trace", "batch", "telemetry", "record", "entry"),
        *("name", "type", "kind", "level", "severity", "category", "schema", "seq", "sequence"),
        *("time", "timestamp", "ts", "at", "sent", "created", "observed", "received", "recorded"),
        *("start", "end", "unix", "nano", "ms", "us", "ns", "nanos", "millis", "epoch", "utc"),
        *("duration", "elapsed", "latency", "uptime", "status", "code", "error", "exception"),
        *("id", "session", "anonymous", "distinct", "correlation", "parent", "request", "turn"),
        *("property", "properties", "attribute", "context", "metadata", "metadatum", "library"),
        *("sdk", "lib", "app", "version", "platform", "os", "arch", "runtime", "language", "pid"),
        *("thread", "process", "step", "tool", "model", "prompt", "token", "is", "ci", "debug"),
    )
)
"""Words of the members of reports; a bare `id` may be that of anything."""
_HOLDERS = frozenset(
    (
        *("event", "log", "metric", "span", "trace", "batch", "telemetry", "property"),
        *("properties", "attribute", "context", "metadata", "metadatum", "library", "sdk", "app"),
        *("os", "platform", "runtime", "error", "exception", "session", "request"),
    )
)
"""Words of members that have others in them."""
_IDENTIFIED = frozenset(
    (
        *("event", "log", "span", "trace", "batch", "session", "anonymous", "distinct", "request"),
        *("correlation", "parent", "turn", "prompt", "step", "thread"),
    )
)
_TIMES = frozenset(("time", "timestamp", "ts", "at", "unix", "epoch"))
_OF_TIME = _TIMES | {
    *("sent", "created", "observed", "received", "recorded", "start", "end", "nano", "ms", "us"),
    *("ns", "nanos", "millis", "utc", "event", "log", "span", "session"),
}
_SPENT = frozenset(("duration", "elapsed", "latency", "uptime"))
_UNITS_S = {"ms": 1e-3, "millis": 1e-3, "us": 1e-6, "ns": 1e-9, "nano": 1e-9, "nanos": 1e-9}
"""Of a duration, in seconds; one without a unit may be anything."""
_COUNTERS = frozenset(("seq", "sequence"))
_MOST_COUNTED = 10_000
_CALLED = frozenset(("event", "name", "type", "kind", "category", "log", "metric", "span", "error"))
_VERSIONED = frozenset(("sdk", "lib", "library", "app", "platform", "os", "runtime", "schema"))
_VERSION = re.compile(r"v?[0-9]{1,6}(?:\.[0-9]{1,6}){1,3}(?:-?(?:alpha|beta|rc|dev)\.?[0-9]{0,4})?")
_LEVELS = frozenset(
    ("trace", "debug", "info", "notice", "warn", "warning", "error", "fatal", "critical")
)
_OUTCOMES = frozenset(
    ("ok", "unset", "error", "success", "failure", "succeeded", "failed", "completed")
)
_SYSTEMS = frozenset(
    (
        *("linux", "darwin", "macos", "windows", "win32", "x64", "x86_64", "amd64", "arm64"),
        *("aarch64", "node", "nodejs", "python", "deno", "bun", "javascript", "typescript"),
        *("go", "rust", "java"),
    )
)
_RUN_ON = frozenset(("platform", "os", "arch", "runtime", "language"))
_FLAGS = frozenset(("is ci", "is debug", "is error", "ci", "error"))
_THINGS = frozenset(
    (
        *("startup", "heartbeat", "session", "metric", "usage", "error", "exception", "event"),
        *("telemetry", "tengu", "claude", "codex", "gemini", "qwen", "opencode", "cli", "api"),
        *("success", "failure", "latency", "duration"),
    )
)
"""Words of the names of events that nobody could carry out: none of them is a verb."""
_DOINGS = frozenset(("step", "turn", "request", "response", "tool", "model", "prompt", "process"))
"""Words that may be verbs: they count only before what happened."""
_HAPPENED = frozenset(("started", "ended", "completed", "finished", "failed", "succeeded"))
_UUID = re.compile("[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_LONG = re.compile("(?=.*[0-9])[0-9a-f]{16,64}|[0-9]{15,20}")
"""Hexadecimal digits, or a number of 64 bits."""
STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+ ?(?:Z|UTC|[+-][0-9:]+)?")
"""A time, which may have a space in it."""
_STATUS = range(100, 600)
"""Codes of HTTP."""


def is_told(name: str) -> bool:
    """Say whether a member is one of a report, and of nothing else."""
    words = name_words(name)
    known = all(word in _TOLD or word.removesuffix("s") in _TOLD for word in words)
    return bool(words) and known and words != ["id"] and not names_deed(words)


def takes_reports(path: str) -> bool:
    """Say whether a path is that of an endpoint for telemetry, and of nothing else."""
    words = [word for word in name_words(path) if not word.isdigit()]
    is_plain = all(sign.isalnum() or sign in "/_-." for sign in path)
    return is_plain and not _REPORTS.isdisjoint(words) and set(words) <= _REPORTS | _BESIDE_REPORTS


def find_made_ids(value: Any, name: str = "") -> Iterator[str]:
    """Give the identifiers in a body."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from find_made_ids(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from find_made_ids(inner, name)
    elif _is_id(_singular(name)) and value not in (None, ""):
        yield str(value)


def is_harmless(value: Any, window: Window, name: str = "events") -> bool:
    """Say whether all values in a body are of kinds that order nothing, as their names say.

    window: when the events can have happened. What is later is planned, and what lasts longer is, too.
    """
    words = _singular(name)
    if isinstance(value, dict):
        return _HOLDERS.issuperset(words) and all(
            is_harmless(inner, window, key) for key, inner in value.items()
        )
    if isinstance(value, list):
        return all(is_harmless(inner, window, name) for inner in value)
    if value is None or value == "":
        return _is_kind(words)
    if isinstance(value, bool):
        return " ".join(words) in _FLAGS
    if isinstance(value, str):
        return _is_harmless_text(value, words, window)
    return isinstance(value, int | float) and _is_harmless_number(value, words, window)


def _singular(name: str) -> list[str]:
    return [word if word in _TOLD | _TIMES else word.removesuffix("s") for word in name_words(name)]


def _is_id(words: list[str]) -> bool:
    return len(words) > 1 and words[-1] == "id" and _IDENTIFIED.issuperset(words[:-1])


def _is_time(words: list[str]) -> bool:
    return _OF_TIME.issuperset(words) and not _TIMES.isdisjoint(words)


def _is_kind(words: list[str]) -> bool:
    """Say whether a member is of a kind that is often empty."""
    return _is_id(words) or _is_time(words) or _is_of(words, _CALLED) or _HOLDERS.issuperset(words)


def _is_of(words: list[str], known: frozenset[str]) -> bool:
    return bool(words) and known.issuperset(words)


def _is_harmless_text(text: str, words: list[str], window: Window) -> bool:
    if _is_id(words):
        return bool(_UUID.fullmatch(text) or _LONG.fullmatch(text))
    if _is_time(words):
        return bool(STAMP.fullmatch(text)) and is_time_of(text, window)
    if words[-1:] == ["version"]:
        return _VERSIONED.issuperset(words[:-1]) and bool(_VERSION.fullmatch(text))
    if words in (["level"], ["severity"]):
        return text.lower() in _LEVELS
    if words[-1:] == ["status"]:
        return _is_of(words[:-1] or ["event"], _CALLED) and text.lower() in _OUTCOMES
    if _is_of(words, _RUN_ON):
        return text.lower() in _SYSTEMS
    return _is_of(words, _CALLED) and _says_what_happened(text)


def _says_what_happened(text: str) -> bool:
    """Say whether the name of an event could be no order."""
    words = name_words(text)
    if "".join(words) != "".join(sign for sign in text.lower() if sign not in "._-:/"):
        return False
    if words and words[-1] in _HAPPENED:
        return (_THINGS | _DOINGS).issuperset(words[:-1])
    return _is_of(words, _THINGS)


def _is_harmless_number(number: float, words: list[str], window: Window) -> bool:
    if _is_id(words):
        return bool(_LONG.fullmatch(str(number)))
    if not _SPENT.isdisjoint(words):
        unit_s = next((_UNITS_S[word] for word in words if word in _UNITS_S), None)
        most_s = window.asked_s - min(window)
        return unit_s is not None and 0 <= number * unit_s <= most_s
    if _is_time(words):
        return is_time_of(str(number), window)
    if words == ["status", "code"]:
        return number in _STATUS
    return (
        _is_of(words, _COUNTERS | {"event"})
        and words[-1] in _COUNTERS
        and (isinstance(number, int) and 0 <= number <= _MOST_COUNTED)
    )
