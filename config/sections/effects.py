"""What is done about effects and reads that match a rule."""

from dataclasses import dataclass, field

from ..document import Fields, Value
from ..key_declarations import SCALAR, custom, declare, key, read_section, ref, required
from ..match_pattern import Match
from ..parse_values import (
    Integer,
    choice,
    parse_base64,
    parse_duration,
    parse_field_name,
    parse_header_value,
    show,
)
from .live import PATTERN

_COMPUTED = ("content-length", "transfer-encoding")
"""Header fields of an answer that follow from its body."""
_OF_CONNECTION = ("connection", "keep-alive", "proxy-connection", "upgrade")
"""Those that speak of the connection: RFC 9110 section 7.6.1, and forbidden by RFC 9113 section 8.2.2."""
_NO_CONTENT = (204, 205, 304)
STUB_KINDS = {
    "template": "the answer that is given here",
}
"""What may make a configured answer, and what that is: those of `tape/stubs/kinds.py` with `make`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A configured answer for an effect that is not on the tape."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    kind: str = "template"
    """What makes of it what is answered: see `tape/stubs/kinds.py`."""


def _read_headers(value: Value) -> tuple[tuple[str, str], ...]:
    headers: dict[str, tuple[str, str]] = {}
    for name, at, text in value.entries():
        lower = at.parsed(parse_field_name, "")
        if lower in _COMPUTED:
            at.fault("this header is computed; remove it")
        elif lower in _OF_CONNECTION:
            at.fault("this header is the connection's; remove it")
        elif lower in headers:
            at.fault("the same header in another case; keep one of them")
        headers[lower] = (name, text.parsed(parse_header_value, ""))
    return tuple(headers.values())


def _read_json(given: Fields, at: str) -> bytes | None:
    return given.given[at].json().encode() if at in given.given else None


_NO_HEADERS: tuple[tuple[str, str], ...] = ()
_NO_BODY: bytes | None = None


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """An answer as it is written; at most one of its bodies is given."""

    status: int = key("200", Integer(200, 599), "200 to 599.")
    headers: tuple[tuple[str, str], ...] = custom(
        _read_headers,
        _NO_HEADERS,
        "Header fields by name, printable ASCII.",
        shown="{}",
        shape={"type": "object", "additionalProperties": SCALAR},
    )
    json: bytes | None = declare(
        _read_json,
        None,
        "Body as a YAML value, written as JSON, with `content-type: application/json` unless `headers` has one.",
        shape={},
    )
    text: bytes | None = key("", str.encode, "Body as text, in UTF-8.", start=_NO_BODY)
    base64: bytes | None = key("", parse_base64, "Body as bytes.", start=_NO_BODY)
    kind: str = key(
        "template",
        choice(*STUB_KINDS),
        "; ".join(f"`{kind}`: {what}" for kind, what in STUB_KINDS.items()) + ".",
    )

    def check(self, given: Fields) -> None:
        """Note what is wrong between body, status and header fields."""
        bodies = [name for name in ("json", "text", "base64") if name in given.given]
        if len(bodies) > 1:
            given.value.fault(f"more than one body: {', '.join(bodies)}; expected one of them")
        if bodies and self.status in _NO_CONTENT:
            # RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5; section 8.6 forbids content-length with 204.
            given.given[bodies[0]].fault(
                f"an answer with status {self.status} has no body; remove it"
            )
        if bodies and bodies[0] != "base64" and "content-encoding" in self._names():
            given.given["headers"].fault(
                f"content-encoding, but {bodies[0]} is written as it is; remove it, or give the coded body as base64"
            )

    def _names(self) -> set[str]:
        return {name.lower() for name, _ in self.headers}

    def answer(self) -> Answer:
        """Make the answer, whole."""
        headers = self.headers
        if self.json is not None and "content-type" not in self._names():
            headers = (*headers, ("content-type", "application/json"))
        body = self.json or self.text or self.base64 or b""
        if self.status not in (204, 304):
            headers = (*headers, ("content-length", str(len(body))))
        return Answer(self.status, headers, body, self.kind)


def _read_answer(value: Value) -> Answer | None:
    return read_section(AnswerKeys, value).answer()


@dataclass(frozen=True, slots=True)
class Gate:
    """Requests that match wait until a person lets them go."""

    when: str = key("always", choice("always", "duplicates"), "`always` or `duplicates`.")
    """`always`; `duplicates`, only an effect that may repeat an earlier one of its run; or `never`, an exception to a
    wider rule."""
    deadline_s: float = key(
        "10m", parse_duration, "A request that nobody lets go by then is refused.", name="deadline"
    )


def _read_gate(value: Value) -> Gate | None:
    """Read `true`, `false`, `duplicates`, or a mapping with `when` and `deadline`."""
    return read_section(Gate, value) if value.is_mapping else value.parsed(_parse_gate, None)


def _parse_gate(text: str) -> Gate:
    found = {"true": Gate(), "false": Gate("never"), "duplicates": Gate("duplicates")}
    if text not in found:
        raise ValueError(
            f"{show(text)} is no gate; expected true, false, duplicates, or"
            " {when: always or duplicates, deadline: 10m}"
        )
    return found[text]


@dataclass(frozen=True, slots=True)
class EffectRule:
    """What to do with effects that match."""

    match: Match = field(metadata=PATTERN)
    answer: Answer | None = custom(
        _read_answer,
        None,
        "Answer in playback if the tape lacks the request.",
        shown="",
        shape=ref(AnswerKeys),
        section=AnswerKeys,
    )
    gate: Gate | None = custom(
        _read_gate,
        None,
        "`true` holds matching requests for approval, `duplicates` only effects that may repeat an earlier "
        "one, `false` none; or `when` and `deadline` ([gates](gates.md)).",
        shown="false",
        shape={"anyOf": [{"enum": [True, False, "true", "false", "duplicates"]}, ref(Gate)]},
        section=Gate,
    )
    """Before it is sent, in record and where it goes live."""
    on_miss: str = key(
        "",
        choice("stub", "refuse"),
        "In playback, if the tape lacks the request: `stub` or `refuse`.",
        start="",
    )

    def check(self, given: Fields) -> None:
        """Note a rule that says nothing, or two things that exclude each other."""
        if self.answer is not None and self.on_miss == "refuse":
            given.given["on_miss"].fault(
                "refuse, but the rule has an answer; remove one of the two"
            )
        if given.given.keys() == {"match"}:
            given.value.fault("has no effect; expected answer, gate or on_miss")


@dataclass(frozen=True, slots=True)
class ReadRule:
    """What to do with reads that match, once every recorded answer to them has been served."""

    match: Match = field(metadata=PATTERN)
    repeat: str = field(
        metadata=required(
            choice("last"),
            "missing; expected last: the last recorded answer is served again",
            "last",
            "`last`: the last recorded answer is served again.",
        )
    )
