"""How every client here says what it saw: one JSON object a line on stdout."""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any


def say(case: str, **seen: Any) -> None:
    """Print what a client saw of one exchange."""
    print(json.dumps({"case": case, **seen}, default=str), flush=True)


def fields(headers: Iterable[tuple[Any, Any]]) -> list[list[str]]:
    """Give header fields in their order and case."""
    return [[_text(name), _text(value)] for name, value in headers]


def digest(body: bytes) -> str:
    """Give length and hash of a body."""
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"


def without_addresses(text: str) -> str:
    """Leave out what an interpreter says about its own memory."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
