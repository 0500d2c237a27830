"""Write a body in a content coding that has no end, or breaks off: as one that came so is kept once its secrets are replaced.

The bytes stand in the coding as they are, in blocks that are not compressed. So where something is in the body says where it is in
what is written, and as much is written for as many bytes.

Source: RFC 1951 section 3.2.4; RFC 1952; RFC 7932 sections 9.1 and 9.2; RFC 8878 section 3.1.1.
"""

from typing import NamedTuple

BLOCK = 0x8000
"""Bytes of a block."""
_END_OF_GZIP_HEAD = b"\0\0\0\0\0\0\xff"
_ZLIB = 8
_WINDOW = 0b1011
"""Four bits: 4 MiB."""


class Form(NamedTuple):
    """How a coding writes bytes that are not compressed."""

    head: bytes
    """Begins the body."""
    block: str
    """Which head each block has."""
    broken: bytes
    """No coding goes on so: its reader says that the body is damaged."""


_FORMS = {
    b"gzip": Form(b"\x1f\x8b\x08" + _END_OF_GZIP_HEAD, "deflate", b"\x07"),
    b"zlib": Form(b"\x78\x01", "deflate", b"\x07"),
    b"raw": Form(b"", "deflate", b"\x07"),
    b"br": Form(b"", "br", b"\x0e"),
    b"zstd": Form(b"\x28\xb5\x2f\xfd\x00\x38", "zstd", b"\x07\0\0"),
}


class Written(NamedTuple):
    """A body in a coding without an end."""

    data: bytes
    head: int
    """Bytes before the first block."""
    block_head: int
    """Bytes before what each block has."""

    def place(self, at: int, size: int) -> list[tuple[int, int]]:
        """Give where a part of the body is written, begin and size: several places where it goes over the end of a block."""
        found: list[tuple[int, int]] = []
        while size > 0:
            here = min(size, BLOCK - at % BLOCK)
            found.append((self.head + (at // BLOCK + 1) * self.block_head + at, here))
            at, size = at + here, size - here
        return found


def write_without_end(plain: bytes, coding: bytes, came: bytes, *, broken: bool) -> Written | None:
    """Write a body in the coding that a `content-encoding` names; None for several codings, and for one that is unknown.

    came: the coded body as it came. broken: whether it was damaged; else it only had no end.
    """
    name = coding.strip().lower().removeprefix(b"x-")
    if name == b"deflate":
        has_head = came[:1] and came[0] & 15 == _ZLIB and int.from_bytes(came[:2]) % 31 == 0
        name = b"zlib" if has_head else b"raw"
    form = _FORMS.get(name)
    if form is None:
        return None
    parts = [form.head]
    block_head = 0
    for at in range(0, len(plain), BLOCK):
        block = plain[at : at + BLOCK]
        head = _block_head(form.block, len(block), first=at == 0)
        block_head = len(head)
        parts += (head, block)
    if broken:
        parts.append(form.broken)
    return Written(b"".join(parts), len(form.head), block_head)


def _block_head(form: str, size: int, *, first: bool) -> bytes:
    if form == "deflate":
        return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    if form == "zstd":
        return (size << 3).to_bytes(3, "little")
    # Not the last one, four digits of a size, and not compressed; before the first one the size of the window.
    bits = (size - 1) << 3 | 1 << 19
    return (bits << 4 | _WINDOW if first else bits).to_bytes(3, "little")
