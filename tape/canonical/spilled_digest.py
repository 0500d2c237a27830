"""The digest of a body that is too large for memory, with and without its multipart boundary.

Fed piece by piece. What is compared of a multipart body must not hold its boundary, which is random; only
delimiter lines change, as in `form.without_boundary`. Pure: bytes in, digests out.
"""

from blake3 import blake3

from ..exchange import Headers
from .canonical_request import BOUNDARY, BodyKind, parse_content_type


class Digest:
    """BLAKE3 over what passed, and over what is compared of it."""

    def __init__(self, boundary: bytes = b"", *, apart: bool = False) -> None:
        """Begin; without a `boundary` both digests are one.

        apart: what is compared differs from what passed for another reason, too.
        """
        self._plain = blake3()
        self._match = blake3() if boundary or apart else None
        self._boundary = boundary
        self._line = b"\n--" + boundary
        # A delimiter at the very start has no line end before it.
        self._kept = b"\n"
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
        if self._boundary:
            self._match.update(self._kept)
        self._kept = b""
        return plain, self._match.digest()

    def _compare(self, data: bytes) -> None:
        assert self._match is not None
        if not self._boundary:
            self._match.update(data)
            return
        text = (self._kept + data).replace(self._line, b"\n--" + BOUNDARY)
        # What may be the beginning of a delimiter waits for the next piece.
        keep = min(len(self._line) - 1, len(text))
        self._match.update(text[: len(text) - keep])
        self._kept = text[len(text) - keep :]


def find_boundary(headers: Headers) -> bytes:
    """Give the boundary that a multipart message announces, or b""."""
    for name, value in headers:
        if name.lower() == b"content-type":
            found = parse_content_type(value)
            return found.boundary if found.kind is BodyKind.MULTIPART else b""
    return b""
