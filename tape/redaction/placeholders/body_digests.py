"""Make the digests of a body that header fields state fit another body, as one in which secrets were replaced.

Clients check them: boto3 the `x-amz-checksum-crc32` of S3 and the `x-amz-crc32` of DynamoDB, others `content-md5` or `x-goog-hash`.

Rules:

1. A digest that fitted the body that came is computed anew, and is written as it was (base64, hexadecimal or decimal).
2. One that cannot be computed here is left out, and so is each where the body is not at hand, or too large for `_SLOW`.
3. One that did not fit (of parts, or of a whole of which a range was asked for) stays: a client fails, or does not look, as before.
4. `etag` and `docker-content-digest` stay: they are names, which come back in requests.

Source: RFC 1864, 3230, 9530; "Checking object integrity" (Amazon S3), "XML API headers" (Google Cloud Storage), "Get Blob" (Azure).
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ...exchange import Headers

_CHECKSUM = b"x-amz-checksum-"
_LISTS = frozenset((b"digest", b"content-digest", b"repr-digest", b"x-goog-hash"))
"""Fields that name the algorithm of each digest: `sha-256=:...:, md5=...`."""
_FIELDS = {
    b"content-md5": b"md5",
    b"x-ms-blob-content-md5": b"md5",
    b"x-ms-content-crc64": b"crc64nvme",
    b"x-amz-content-sha256": b"sha256",
    b"x-amz-sha256-tree-hash": b"tree",
    b"x-amz-crc32": b"crc32",
    b"x-oss-hash-crc64ecma": b"crc64ecma",
    b"x-cos-hash-crc64ecma": b"crc64ecma",
    b"x-bz-content-sha1": b"sha1",
    b"x-checksum-md5": b"md5",
    b"x-checksum-sha1": b"sha1",
    b"x-checksum-sha256": b"sha256",
}
"""Fields with one digest, and its algorithm."""
_NOT_DIGESTS = frozenset((b"x-amz-checksum-type", b"x-amz-checksum-algorithm", b"x-amz-checksum-mode"))  # fmt: skip
_ITEM = re.compile(rb"\s*([A-Za-z0-9-]+)=(:?)([A-Za-z0-9+/=_-]*)(:?)\s*")
_SLOW = 256 * 1024
"""Most bytes of a body whose CRC is computed in Python, at some 1 to 5 MB a second (2026-11)."""

_Digest = Callable[[bytes], bytes]


class FittedHeaders(NamedTuple):
    """Header fields whose digests fit the body."""

    headers: Headers
    names: tuple[str, ...]
    """Lower-case names of those that were computed anew or left out."""


def fit_digests(headers: Headers, came: Sequence[bytes], body: bytes) -> FittedHeaders:
    """Give header fields with the digests of a body that takes the place of another one.

    came: the body that came, as it came and with its coding undone.
    """
    return _fit(headers, lambda algorithm, value: _renew(algorithm, value, came, body))


def leave_out_digests(headers: Headers) -> FittedHeaders:
    """Give header fields without digests of the body: it is another one, and is not at hand."""
    return _fit(headers, lambda _algorithm, _value: None)


def _fit(headers: Headers, renew: Callable[[bytes, bytes], bytes | None]) -> FittedHeaders:
    kept: list[tuple[bytes, bytes]] = []
    names: dict[str, None] = {}
    for name, value in headers:
        lower = name.lower()
        new: bytes | None = value
        if lower in _LISTS:
            new = _fit_list(value, renew)
        elif algorithm := _find_algorithm(lower):
            new = renew(algorithm, value.strip())
            new = value if new == value.strip() else new
        if new != value:
            names[lower.decode("latin-1")] = None
        if new is not None:
            kept.append((name, new))
    return FittedHeaders(tuple(kept) if names else headers, tuple(names))


def _find_algorithm(lower: bytes) -> bytes:
    if lower.startswith(_CHECKSUM) and lower not in _NOT_DIGESTS:
        return lower.removeprefix(_CHECKSUM)
    return _FIELDS.get(lower, b"")


def _fit_list(value: bytes, renew: Callable[[bytes, bytes], bytes | None]) -> bytes | None:
    """Give a list of digests that name their algorithms; None for an empty one. What is none stays."""
    kept: list[bytes] = []
    same = True
    for item in value.split(b","):
        found = _ITEM.fullmatch(item.partition(b";")[0])
        new: bytes | None = item
        if found is not None and found[3]:
            name = found[1].lower().removeprefix(b"id-").replace(b"-", b"")
            digest = renew(name, found[3])
            new = None if digest is None else item.replace(found[3], digest, 1)
        if new is not None:
            kept.append(new)
        same = same and new == item
    if same:
        return value
    return b",".join(kept).strip() or None


def _renew(algorithm: bytes, value: bytes, came: Iterable[bytes], body: bytes) -> bytes | None:
    """Give the digest of a body in the form of another one's; None for one that cannot be computed."""
    compute = _ALGORITHMS.get(algorithm)
    if compute is None:
        return None
    slow = algorithm in _IN_PYTHON
    for data in came:
        if slow and max(len(data), len(body)) > _SLOW:
            return None
        digest = compute(data)
        for write in _FORMS:
            if write(digest) == value:
                return write(compute(body))
    return value


_FORMS: tuple[_Digest, ...] = (
    base64.b64encode,
    lambda digest: digest.hex().encode(),
    lambda digest: digest.hex().upper().encode(),
    lambda digest: b"%d" % int.from_bytes(digest),
    lambda digest: base64.b64encode(digest[::-1]),  # Azure
    base64.urlsafe_b64encode,
)


def _hash(name: str) -> _Digest:
    return lambda data: hashlib.new(name, data, usedforsecurity=False).digest()


def _crc(polynomial: int, bits: int) -> _Digest:
    """Give a CRC whose bits are reflected, with all bits set before and flipped after it."""

    @cache
    def table() -> list[int]:
        made = []
        for number in range(256):
            for _ in range(8):
                number = number >> 1 ^ (polynomial if number & 1 else 0)
            made.append(number)
        return made

    def compute(data: bytes) -> bytes:
        ones = (1 << bits) - 1
        rows, crc = table(), ones
        for byte in data:
            crc = crc >> 8 ^ rows[(crc ^ byte) & 255]
        return (crc ^ ones).to_bytes(bits // 8)

    return compute


_IN_PYTHON: dict[bytes, _Digest] = {
    b"crc32c": _crc(0x82F63B78, 32),
    b"crc64nvme": _crc(0x9A6C9329AC4BC9B5, 64),
    b"crc64ecma": _crc(0xC96C5795D7870F42, 64),
}
_ALGORITHMS: dict[bytes, _Digest] = {
    b"md5": _hash("md5"),
    b"sha": _hash("sha1"),
    b"sha1": _hash("sha1"),
    b"sha256": _hash("sha256"),
    b"sha384": _hash("sha384"),
    b"sha512": _hash("sha512"),
    b"crc32": lambda data: zlib.crc32(data).to_bytes(4),
    b"adler32": lambda data: zlib.adler32(data).to_bytes(4),
    b"adler": lambda data: zlib.adler32(data).to_bytes(4),
    **_IN_PYTHON,
}
