"""What holds secrets, and what is kept of them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..document import Fields, Value
from ..key_declarations import key, keys_of, optional_path, read_section, texts
from ..parse_values import (
    PERSONAL_KINDS,
    check_secret_regex,
    parse_field_name,
    parse_parameter,
    parse_personal_kind,
    parse_secret_format,
    show,
)

KEY_VARIABLE = "PLAYHEAD_ENCRYPTION_KEY"
"""Variable of the environment that may hold the store's encryption key."""


class Secrets(StrEnum):
    """What is kept of a secret that redaction replaces."""

    REPLACED = "replaced"
    """Nothing."""
    ENCRYPTED = "encrypted"
    """What it replaced in answers, in an encrypted store, for replays on this machine."""


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Whether the store is encrypted."""

    key_file: Path | None = optional_path(
        "File with the [store's key](encryption.md#the-key). `null`: not encrypted, unless "
        "`PLAYHEAD_ENCRYPTION_KEY` has a key, which wins."
    )


def _check_one(rule: type, given: Fields) -> None:
    if given.value.is_mapping and len(given.given) != 1:
        given.value.fault(f"expected exactly one of {', '.join(keys_of(rule))}")


_TOP = re.compile(r"\$\.[\w-]+")
"""A path that leads to a field at once."""


def _parse_field(text: str) -> str:
    """Parse the name of a field of JSON, or `$.NAME`. Raises: ValueError, also for a longer path, which would be looked for as a name."""
    if text.startswith(("$.", "$[")) and _TOP.fullmatch(text) is None:
        name = re.split(r"[.\[\]'\"]+", text.rstrip("]'\""))[-1]
        raise ValueError(
            f"{show(text)} is a path; expected the name of a field, which is found at any depth, as {show(name)}"
        )
    return parse_parameter(text)


def field_of(rule: "RedactRule | KeepRule") -> str:
    """Give the name of the field of JSON, or of a form, that a rule is about; empty where it is about none."""
    return rule.form or (rule.json[2:] if _TOP.fullmatch(rule.json) else rule.json)


@dataclass(frozen=True, slots=True)
class RedactRule:
    """A further place that holds a secret: exactly one of these is set."""

    header: str = key("", parse_field_name, "A header field of requests and answers.", start="")
    query: str = key("", parse_parameter, "A query key.", start="")
    json: str = key(
        "",
        _parse_field,
        "A field of JSON with this name, at any depth, if its value is text.",
        start="",
    )
    form: str = key(
        "", parse_parameter, "A field of a form, or a part of a multipart body.", start=""
    )
    pattern: str = key(
        "",
        check_secret_regex,
        "A regular expression over bodies, messages, URLs and header fields; its match, or first group, is a secret.",
        start="",
    )
    path: str = key("", check_secret_regex, "The same over paths.", start="")
    pii: tuple[str, ...] = texts(
        parse_personal_kind,
        "[Kinds of personal data](secrets.md#personal-data): `email`, `phone`, `iban`, `card`, `ssn`. Short for a "
        "list of this one entry: `redact: {pii: [...]}`.",
    )

    def check(self, given: Fields) -> None:
        """Note a rule that names several places, or none."""
        _check_one(RedactRule, given)
        if "pii" in given.given and not self.pii:
            given.given["pii"].fault(
                f"names nothing; expected a list of {', '.join(PERSONAL_KINDS)}"
            )


def read_redact_rules(value: Value) -> tuple[RedactRule, ...]:
    """Read rules; `redact: {pii: [email]}` is short for a list of that one entry."""
    given = [value] if value.is_mapping else value.items()
    return tuple(read_section(RedactRule, one) for one in given)


@dataclass(frozen=True, slots=True)
class KeepRule:
    """A shipped place or format that is not redacted: exactly one of these is set."""

    header: str = key("", parse_field_name, "A header field.", start="")
    query: str = key("", parse_parameter, "A query key.", start="")
    json: str = key("", _parse_field, "A field of JSON.", start="")
    form: str = key("", parse_parameter, "A field of a form.", start="")
    format: str = key(
        "",
        parse_secret_format,
        "A name in [the table of formats](secret-formats.md#formats).",
        start="",
    )

    def check(self, given: Fields) -> None:
        """Note a rule that names several places, or none."""
        _check_one(KeepRule, given)
