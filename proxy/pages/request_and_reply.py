"""What is asked of the pages, and what is answered: values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from ..control.http.error_body import ControlError
from .sessions import Rights

JSON = "application/json"
HTML = "text/html; charset=utf-8"
_FIELDS = 40


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was let in."""

    method: str
    path: str
    """As it was sent, without its query."""
    parameters: Mapping[str, str]
    """Of the path."""
    query: Mapping[str, str]
    rights: Rights
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_data(self) -> bool:
        """Whether JSON is to be answered, also where something is wrong."""
        return self.path.startswith("/data/")


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    body: bytes
    status: int = 200
    kind: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)


def reply_json(value: Any, status: int = 200) -> Reply:
    """Answer with JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Reply(text.encode() + b"\n", status, JSON)


def read_query(text: str) -> dict[str, str]:
    """Read a query.

    Raises: ControlError.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError as error:
        raise ControlError(
            400, "the query cannot be read", expected="NAME=VALUE&…", found=str(error)[:100]
        ) from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise ControlError(
                400,
                f"{name[:40]} is there twice",
                expected=f"{name[:40]} once",
                found=repr(value)[:100],
            )
        found[name] = value
    return found


def read_number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Read a whole number of a query.

    Raises: ControlError, where it is none or out of its range.
    """
    text = query.get(name)
    if text is None:
        return default
    if (
        not (text.isascii() and text.isdigit() and len(text) <= 20)
        or not least <= int(text) <= most
    ):
        raise ControlError(
            400,
            f"{name} cannot be read",
            expected=f"{name}: a whole number from {least} to {most}",
            found=repr(text)[:100],
        )
    return int(text)


def read_word(query: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Read one of a few words of a query; without it the first one.

    Raises: ControlError.
    """
    text = query.get(name, words[0])
    if text not in words:
        raise ControlError(
            400,
            f"{name} cannot be read",
            expected=f"{name}: {', '.join(words)}",
            found=repr(text)[:100],
        )
    return text
