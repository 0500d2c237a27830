"""The digest of a body that is too large for memory, with and without its multipart boundary.

Fed piece by piece. What is compared of a multipart body must not hold its boundary, which is random; only
delimiter lines change, as in `canonical_request.without_boundary`. Pure: bytes in, digests out.
"""

from blake3 import blake3

from ..exchange import Headers
from .multipart_delimiters import BOUNDARY, Delimiters

_COUNTED = BOUNDARY + b" counts\n"
"""Begins what is compared of a body whose boundary counts: no other body that is compared begins so."""


class Digest:
    """BLAKE3 over what passed, and over what is compared of it."""

    def __init__(self, boundary: bytes = b"", *, apart: bool = False) -> None:
        """Begin; without a `boundary` both digests are one.

        apart: what is compared differs from what passed for another reason, too.
        """
        self._plain = blake3()
        self._match = blake3() if boundary or apart else None
        self._delimiters = Delimiters(boundary, BOUNDARY) if boundary else None
        self._counted = blake3(_COUNTED)
        """Over what is compared where the boundary counts."""
        if self._match is not None and boundary:
            # A delimiter at the very start has no line end before it.
            self._match.update(b"\n")
        self.size = 0

    def update(self, data: bytes, compared: bytes | None = None) -> None:
        """Take the next piece; `compared` is what is compared of it, if that is another."""
        self.size += len(data)
        self._plain.update(data)
        if self._match is not None:
            self._compare(data if compared is None else compared)

    def finish(self) -> tuple[bytes, bytes]:
        """Give the 32-byte digests: of what passed, and of what is compared."""
        plain = self._plain.digest()
        if self._match is None:
            return plain, plain
        if self._delimiters is not None:
            self._match.update(self._delimiters.feed(b"", last=True))
            if not self._delimiters.regular:
                return plain, self._counted.digest()
        return plain, self._match.digest()

    def _compare(self, data: bytes) -> None:
        assert self._match is not None
        if self._delimiters is None:
            self._match.update(data)
            return
        self._counted.update(data)
        self._match.update(self._delimiters.feed(data))


def find_boundary(headers: Headers) -> bytes:
    """Give the boundary that a multipart message announces, or b""."""
    # Here: the store needs digests alone, and all commands that read it need the store.
    from .canonical_request import BodyKind, parse_content_type

    types = [value for name, value in headers if name.lower() == b"content-type"]
    if len(types) != 1:
        return b""
    found = parse_content_type(types[0])
    return found.boundary if found.kind is BodyKind.MULTIPART else b""
