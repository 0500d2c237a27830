"""How runs are told apart, and what is asked for upstream."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..document import Value
from ..key_declarations import SCALAR, custom, key
from ..parse_values import Choice, choice, parse_duration, parse_run_name, parse_token, parse_yes


def _read_tokens(value: Value) -> Mapping[str, str]:
    tokens = {}
    for name, at, token in value.entries():
        at.parsed(parse_run_name, "")
        tokens[name] = token.parsed(parse_token, "")
    return tokens


@dataclass(frozen=True, slots=True)
class Runs:
    """How runs are told apart and when they end."""

    default: str = key(
        "per-process",
        parse_run_name,
        "`per-process`, or the run of requests without credentials.",
    )
    grace_s: float = key(
        "10s",
        parse_duration,
        "After a change of mode, or the end of a name's processes: from the last request to the seal.",
        name="grace",
    )
    tokens: Mapping[str, str] = custom(
        _read_tokens,
        {},
        "Token by run name, for `HTTPS_PROXY=http://RUN:TOKEN@HOST:PORT`; `*` matches any characters.",
        shown="{}",
        shape={"type": "object", "additionalProperties": SCALAR},
        example='"support-*": a-long-random-text',
    )
    resume: str = key(
        "off",
        choice("off", "auto"),
        "`auto`: a process with the name of a crashed run [continues it](resume.md#in-playhead-serve); `off`:"
        " begins a new run.",
    )
    strict: bool = key(
        "false",
        parse_yes,
        "Whether `record` exits with 2 if its receipt says [`NOT RECORDED`](receipt-attempts.md#gaps-of-a-recording).",
    )


_parse_identity = Choice({"identity": True, "as-asked": False})


@dataclass(frozen=True, slots=True)
class UpstreamEncoding:
    """By class, whether a content coding is asked for upstream: True asks for identity."""

    inference: bool = key(
        "identity", _parse_identity, "`identity` (none) or `as-asked` (the agent's choice)."
    )
    reads: bool = key("as-asked", _parse_identity, "The same.")
    effects: bool = key("as-asked", _parse_identity, "The same.")
