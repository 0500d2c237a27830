"""A profile: which parts of a client's requests are made anew each time, and why that is known.

    profile: claude-code            # as the file is called
    version: 1                      # higher with every change
    client: Claude Code
    recognise:
      user_agent: [claude-cli]      # products that its user-agent begins with
      header: [x-app-session]       # header fields that it sends beside, where others have its user-agent, too
      body: [You are the agent of an invented shop.]   # or: texts, of which its bodies have one near their beginning
      process: [my-agent]           # programs of the command, where nothing in a request tells it from others
    places:
      - match: POST *://*/*v1/messages
        json: $.system[*].text
        regex: '^x-anthropic-billing-header:.* cch=([0-9a-f]{5});'
        linked: false                 # true for an id, which is the same in several places or requests
        tool: run_shell               # of one tool alone: an object on the way to the place has this `name`
        reason: five hex digits that are new in each run
        client_version: 2.1.197
        recordings: [a of 2026-11-24, b of 2026-11-24]
    unconditional:                  # reads whose answer in full answers them whatever their condition is
      - match: GET https://api.anthropic.com/api/claude_code/settings
        reason: ...
        client_version: ...
        recordings: [..., ...]

Rules:

1. A place is a JSON path, or the name of a header field, with a pattern that has one group: what the group finds is left out,
   and nothing else. Where a place is linked, it counts which values of linked places are the same, in one request and in the run.
2. A pattern that also finds something in plain text hides content, and is a fault.
3. What decides what a request does is never left out: a member or field that names a host, method or path, that says who
   asks, or that makes two effects one. Live, gate and effect rules go by these.
4. Each entry says why, for which version of the client, and which two recordings need it.

Every fault is reported at once, with its place. Pure: text in, profile out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..document import Faults, Fields, Value, parse_document, parse_shipped
from ..match_pattern import Match, parse_match
from ..parse_values import check_json_path, parse_header_name, parse_json_path, parse_pattern
from ..parse_values import show as shown
from .overbroad_patterns import check_narrow, find_wide


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why an entry is there."""

    reason: str
    client_version: str
    recordings: tuple[str, ...]
    """Two recordings that differ there."""


_NO_EVIDENCE = Evidence("", "", ())


@dataclass(frozen=True, slots=True)
class ProfilePlace:
    """Part of a value that does not count."""

    match: Match
    json: str
    """JSON path; empty where it is a header field."""
    regex: str
    evidence: Evidence = _NO_EVIDENCE
    header: str = ""
    """Lower case."""
    linked: bool = False
    """Whether it counts which values of these places are the same, in one request and in the run."""
    tool: str = ""
    """Of which tool a place of JSON has to be; empty where it may be any."""

    @property
    def text(self) -> str:
        """What it is, for people."""
        return self.json or f"header {self.header}"


@dataclass(frozen=True, slots=True)
class Unconditional:
    """Reads whose answer in full answers them whatever `if-none-match` or `if-modified-since` says."""

    match: Match
    evidence: Evidence = _NO_EVIDENCE


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of one client."""

    name: str
    version: int
    client: str
    """As people call it."""
    products: tuple[str, ...]
    """That its `user-agent` begins with, in lower case, without a version."""
    places: tuple[ProfilePlace, ...] = ()
    unconditional: tuple[Unconditional, ...] = ()
    sends: tuple[str, ...] = ()
    """Header fields by which it is told from others with its `user-agent`, in lower case."""
    says: tuple[str, ...] = ()
    """Texts of which its bodies have one near their beginning; empty where they need none."""
    processes: tuple[str, ...] = ()
    """Programs of which the command has to run one, in lower case; empty where any may."""
    text: str = field(default="", compare=False, repr=False)
    """The file."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


PROFILE_NAME = "a name of lower-case letters, digits and hyphens, as claude-code"
_MOST_VERSION = 999_999
_NO_MATCH = parse_match("GET http://none.invalid/")
_DECIDING = ("_method", "idempotency", "clienttoken", "clientrequesttoken", "creatorrequestid")
"""Beginnings of names of members that decide what a request does, in lower case without signs."""
_DECIDING_FIELDS = (
    *("method", "url", "uri", "path", "host", "target", "route", "scheme", "proto", "port", "dest"),
    *(
        "origin",
        "query",
        "override",
        "rewrite",
        "forward",
        "backend",
        "upstream",
        "server",
        "dry-run",
    ),
    *(
        "key",
        "token",
        "auth",
        "cookie",
        "secret",
        "idempot",
        "tenant",
        "account",
        "org",
        "user",
        "role",
    ),
    *("amz", "goog", "-ms-", "version", "copy", "range", "lease", "mailbox", "opaque", "database"),
    *("namespace", "scope", "contract", "if-", "api", "region", "project", "locale", "language"),
)
"""Words in names of header fields that may name a host, method, path, person or resource."""
_SIGNS = str.maketrans("", "", "-_")


def parse_profile(text: str, name: str) -> Profile:
    """Read a profile.

    name: of its file, for the places of faults.
    Raises: ConfigError with every fault.
    """
    faults = Faults(name)
    return _read(parse_document(text, faults), text, faults, check_narrow)


def parse_shipped_profile(text: str, name: str) -> Profile:
    """Read a profile that is shipped, whose patterns were looked at before: compiling them is not for a start.

    Raises: ConfigError with every other fault.
    """
    faults = Faults(name)
    return _read(parse_shipped(text, faults), text, faults, str)


_ParseRegex = Callable[[str], str]


def _read(value: Value | None, text: str, faults: Faults, parse_regex: _ParseRegex) -> Profile:
    if value is None:
        faults.add(0, 0, "", "is empty; expected a profile")
    made = Profile("", 0, "", ()) if value is None else _profile(value, text, parse_regex)
    faults.raise_any()
    return made


def _profile(value: Value, text: str, parse_regex: _ParseRegex) -> Profile:
    fields = value.fields("profile", "version", "client", "recognise", "places", "unconditional")
    missing = "missing; expected {}".format
    known = fields.section("recognise", _recognised, _Recognised())
    profile = Profile(
        name=fields.required("profile", parse_name, missing(PROFILE_NAME), ""),
        version=fields.required("version", _parse_number, missing("a number, as 1"), 0),
        client=fields.required("client", _parse_line, missing("what people call it"), ""),
        products=known.products,
        places=fields.each("places", lambda given: _place(given, parse_regex)),
        unconditional=fields.each("unconditional", _unconditional),
        sends=known.sends,
        says=known.says,
        processes=known.processes,
        text=text,
    )
    if not profile.products and (
        "recognise" not in fields.given or fields.given["recognise"].blank
    ):
        value.missing("recognise", "missing; expected {user_agent: [claude-cli]}")
    if value.is_mapping and not profile.places and not profile.unconditional:
        value.fault("says nothing; expected places or unconditional")
    return profile


class _Recognised(NamedTuple):
    """By what a client is known."""

    products: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()


def _recognised(value: Value) -> _Recognised:
    fields = value.fields("user_agent", "header", "body", "process")
    found = fields.texts("user_agent", _parse_product, "")
    if not found:
        value.missing("user_agent", "missing; expected products, as [claude-cli]")
    return _Recognised(
        found,
        fields.texts("header", lambda text: parse_header_name(text).lower(), ""),
        fields.texts("body", _parse_said, ""),
        fields.texts("process", _parse_program, ""),
    )


def _place(value: Value, parse_regex: _ParseRegex) -> ProfilePlace:
    fields = value.fields("match", "json", "header", "regex", "linked", "tool", *_EVIDENCE)
    place = ProfilePlace(
        match=_match(fields),
        json=fields.parsed("json", parse_path, ""),
        regex=fields.required("regex", parse_regex, _NO_REGEX, ""),
        evidence=_evidence(fields),
        header=fields.parsed("header", parse_field, ""),
        linked=fields.parsed("linked", _parse_flag, False),
        tool=fields.parsed("tool", _parse_line, ""),
    )
    wide = (
        find_wide(place.regex) if place.json and place.regex and parse_regex is check_narrow else ""
    )
    if wide:
        fields.given["regex"].fault(wide)
    if value.is_mapping and ("json" in fields.given) is ("header" in fields.given):
        value.fault("expected exactly one of json, header")
    if place.tool and "header" in fields.given:
        fields.given["tool"].fault("is of no header field; expected it beside json")
    return place


def _unconditional(value: Value) -> Unconditional:
    fields = value.fields("match", *_EVIDENCE)
    entry = Unconditional(_match(fields), _evidence(fields))
    if entry.match is not _NO_MATCH and entry.match.methods != {"GET"}:
        fields.given["match"].fault("is no read; expected GET and nothing else")
    return entry


_EVIDENCE = ("reason", "client_version", "recordings")
_NO_REGEX = "missing; expected a pattern with a group around the part that is new each time: the rest of the value counts"


def _evidence(fields: Fields) -> Evidence:
    recordings = fields.texts("recordings", _parse_line, "")
    if len(set(recordings)) < 2:
        where = fields.given.get("recordings", fields.value)
        where.fault("expected two recordings that differ here, as [ID, ID]")
    return Evidence(
        fields.required("reason", _parse_line, "missing; expected why it is new each time", ""),
        fields.required(
            "client_version", _parse_line, "missing; expected the version that was run", ""
        ),
        recordings,
    )


def _match(fields: Fields) -> Match:
    missing = "missing; expected a match pattern, as 'POST *://*/*v1/messages'"
    match = fields.required("match", parse_pattern, missing, _NO_MATCH)
    if match is not _NO_MATCH and match.path.strip("*/") == "":
        fields.given["match"].fault("names no endpoint; expected a path, as /v1/messages")
    return match


def parse_name(text: str) -> str:
    """Parse the name of a profile.

    Raises: ValueError, whose text says what would be right.
    """
    if text and text.strip("-") == text and set(text) <= set(_LETTERS):
        return text
    raise ValueError(f"{shown(text)} is no name; expected {PROFILE_NAME}")


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"


def _parse_number(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST_VERSION:
        return int(text)
    raise ValueError(f"{shown(text)} is no version; expected a number from 1, as 3")


def _parse_line(text: str) -> str:
    line = " ".join(text.split())
    if line and line.isprintable():
        return line
    raise ValueError("is empty or not printable; expected text")


def _parse_flag(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise ValueError(f"{shown(text)} is neither true nor false")


def _parse_product(text: str) -> str:
    if text and text.isascii() and text.isprintable() and not set(text) & set(" /"):
        return text.lower()
    raise ValueError(
        f"{shown(text)} is no product; expected a word without its version, as claude-cli"
    )


_LEAST_SAID = 40
_AS_WRITTEN = frozenset(" ,.;:!?()-_")
"""Signs that no writer of JSON escapes."""


def _parse_said(text: str) -> str:
    if len(text) >= _LEAST_SAID and all(
        sign in _AS_WRITTEN or (sign.isascii() and sign.isalnum()) for sign in text
    ):
        return text
    raise ValueError(
        f"{shown(text)} tells no client from others; expected {_LEAST_SAID} characters or more of its system prompt:"
        " letters, digits, spaces and , . ; : ! ? ( ) - _"
    )


def _parse_program(text: str) -> str:
    if text and text.isprintable() and not set(text) & set(" /\\"):
        return text.lower()
    raise ValueError(
        f"{shown(text)} is no name of a program; expected it without its folder and extension, as my-agent"
    )


def parse_path(text: str) -> str:
    """Parse the JSON path of a place.

    Raises: ValueError, whose text says what would be right.
    """
    for step in parse_json_path(text):
        name = step.lower() if isinstance(step, str) else ""
        if name.startswith("_method") or name.translate(_SIGNS).startswith(_DECIDING):
            raise ValueError(
                f"{shown(text)} hides {shown(str(step))}, which live, gate and effect rules go by; remove it"
            )
    return check_json_path(text)


def parse_field(text: str) -> str:
    """Parse the name of a header field; gives it in lower case.

    Raises: ValueError, whose text says what would be right.
    """
    name = parse_header_name(text).lower()
    if not name.startswith("x-") or any(word in name for word in _DECIDING_FIELDS):
        raise ValueError(
            f"{shown(text)} may decide what a request does, which live, gate and effect rules go by; remove it"
        )
    return name
