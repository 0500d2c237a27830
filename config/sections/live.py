"""What may leave in playback, and how requests are told apart."""

from dataclasses import dataclass, field

from ..document import Value
from ..key_declarations import read_section, required, required_texts, texts
from ..match_pattern import Match
from ..parse_values import (
    parse_field_name,
    parse_host,
    parse_live_match,
    parse_pattern,
    parse_reason,
)

NO_MATCH = Match("", frozenset(), "", "", None, "")
"""Stands in for a pattern at fault."""
MISSING_MATCH = "missing; expected a match pattern, as 'POST https://api.example.com/v1/*'"
PATTERN = required(parse_pattern, MISSING_MATCH, NO_MATCH, "A [match pattern](match-patterns.md).")
_REASON = required(
    parse_reason,
    "missing; expected why this may go live, as 'metrics emit'",
    "",
    "Why they may leave.",
)
_HARMLESS = "Header fields that read as another host or path, but do not affect the destination."


@dataclass(frozen=True, slots=True)
class LiveRule:
    """An allowlist entry: what may leave in playback, and why."""

    match: Match = field(
        metadata=required(
            parse_live_match,
            MISSING_MATCH,
            NO_MATCH,
            "Requests, or a local service: `tcp://127.0.0.1:PORT`, `unix:///PATH`.",
        )
    )
    reason: str = field(metadata=_REASON)
    allow_fields: tuple[str, ...] = texts(parse_field_name, _HARMLESS)
    """Header fields, in lower case, whose values are no addresses for the server, however they read."""

    @property
    def service(self) -> tuple[str, int] | None:
        """Host and port of a service that is let into a sandbox; None where it speaks of requests."""
        if self.match.scheme != "tcp" or self.match.port is None:
            return None
        return self.match.host, self.match.port

    @property
    def socket(self) -> str | None:
        """Path of a socket that is let into a sandbox; None where it speaks of anything else."""
        return self.match.path if self.match.scheme == "unix" else None

    @property
    def is_local(self) -> bool:
        """Whether it speaks of a service of this machine, and of no request."""
        return self.service is not None or self.socket is not None


@dataclass(frozen=True, slots=True)
class ClassLive:
    """A whole class of requests goes live in playback, to these hosts and no others."""

    hosts: tuple[str, ...] = field(
        metadata=required_texts(
            parse_host,
            "missing; expected the hosts that may be reached, as [api.example.com]",
            "Whole names or addresses, without scheme, port, path or `*`.",
        )
    )
    reason: str = field(metadata=_REASON)
    allow_fields: tuple[str, ...] = texts(parse_field_name, _HARMLESS)
    """As of a live rule."""


def read_class_live(value: Value) -> ClassLive | None:
    """Read `tape`, which is None, or `{live: {hosts: [...], reason: ...}}`."""
    if value.is_mapping:
        live = value.fields("live").given.get("live")
        if live is not None and live.is_mapping:
            return read_section(ClassLive, live)
    elif value.node.value == "tape":
        return None
    value.fault("expected tape or {live: {hosts: [api.example.com], reason: why}}")
    return None


@dataclass(frozen=True, slots=True)
class Classes:
    """Patterns that extend the shipped table of request classes."""

    inference: tuple[Match, ...] = texts(
        parse_pattern, "Model calls.", example="- POST https://llm.example.com/v1/chat/*"
    )
    read: tuple[Match, ...] = texts(
        parse_pattern,
        "Requests that change nothing.",
        example="- POST https://search.example.com/query",
    )
    effect: tuple[Match, ...] = texts(
        parse_pattern,
        "Requests that may change the world.",
        example="- GET https://legacy.example.com/unsubscribe*",
    )
    telemetry: tuple[Match, ...] = texts(
        parse_pattern,
        "Requests that SDKs send on their own.",
        example="- https://*.telemetry.example.com",
    )
