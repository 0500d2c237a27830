"""The ways in which a secret may be written, and looking for them."""

import base64
from collections.abc import Iterable, Mapping
from urllib.parse import quote


def dotnet(text: str) -> str:
    """As JSON with every character but letters and digits escaped."""
    return "".join(c if c.isalnum() else f"\\u{ord(c):04X}" for c in text)


def slashed(text: str) -> str:
    """As JSON with slashes escaped."""
    return text.replace("/", "\\/")


def written(text: str) -> set[bytes]:
    """Every way in which a secret may stand in a file."""
    raw = text.encode()
    found = {raw, quote(text, safe="").encode(), quote(text).encode(), dotnet(text).encode()}
    found |= {slashed(text).encode(), raw.hex().encode()}
    for offset in range(3):
        inner = base64.b64encode(b"\0" * offset + raw)
        part = inner[-(-8 * offset // 6) : 8 * (offset + len(raw)) // 6]
        found |= {part, part.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def find_written(secrets: Iterable[str], told: Mapping[str, bytes]) -> list[tuple[str, str, bytes]]:
    """Find secrets, however they are written: as (secret, where, the way); told is searched byte by byte."""
    ways = [(secret, way) for secret in secrets for way in sorted(written(secret))]
    return [
        (secret, where, way) for where, data in told.items() for secret, way in ways if way in data
    ]
