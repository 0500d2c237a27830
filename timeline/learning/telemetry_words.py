"""Which paths and members of a body are those of telemetry, and of nothing else.

A list of what orders may be called would never end (`reboot`, `disarm`, `hire`): so what is no word of telemetry may be one.
"""

from ...tape.diff.place_names import name_words, names_deed

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
