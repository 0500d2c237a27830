"""Read the files inside a compressed file that is a body: redaction does not look there, a check of it does.

Read are zip (and what is made of it: docx, whl, jar), gzip, bzip2, xz, tar in one of these, and packs of git, also in the lines
of its protocol; files inside files to a depth of three. A damaged or encrypted file gives what can be read of it.

Source: gitformat-pack and gitprotocol-common (git 2.50).
"""

import bz2
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

MOST_BYTES = 16 * 1024 * 1024
"""Bytes that are unpacked of one body; the rest is not looked at."""
_MOST_FILES = 10_000
_DEEPEST = 3
_STEP = 4096
_DELTAS = {6: 0, 7: 20}
"""Sorts of objects of git that are told as changes of others, and the bytes that name those."""


class PackedFile(NamedTuple):
    """A file inside another one."""

    name: str
    """Where it is, as `zip:deploy.txt`; it may hold a secret."""
    data: bytes


class _Budget:
    """How much is yet to be unpacked."""

    def __init__(self) -> None:
        self.size = MOST_BYTES
        self.files = _MOST_FILES

    def take(self, data: bytes) -> bytes:
        self.size -= len(data)
        self.files -= 1
        return data

    @property
    def is_left(self) -> bool:
        return self.size > 0 and self.files > 0


def list_packed(body: bytes) -> Iterator[PackedFile]:
    """Yield the files inside a body, those inside them included; none where it is no compressed file."""
    yield from _list(body, "", 0, _Budget())


def _list(data: bytes, place: str, depth: int, budget: _Budget) -> Iterator[PackedFile]:
    for name, inner in _open(data, budget):
        where, nested = f"{place}{name}", False
        if depth + 1 < _DEEPEST and budget.is_left:
            for one in _list(inner, f"{where} ", depth + 1, budget):
                nested = True
                yield one
        if not nested:
            yield PackedFile(where, inner)


def _open(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    if data.startswith(b"PK\3\4"):
        yield from _open_zip(data, budget)
    elif data.startswith(b"\x1f\x8b\x08"):
        yield "gzip", budget.take(_read(zlib.decompressobj(31), data, budget.size)[0])
    elif data.startswith(b"BZh"):
        yield "bzip2", budget.take(_read(bz2.BZ2Decompressor(), data, budget.size)[0])
    elif data.startswith(b"\xfd7zXZ\0"):
        yield "xz", budget.take(_read(lzma.LZMADecompressor(), data, budget.size)[0])
    elif data[257:262] == b"ustar":
        yield from _open_tar(data, budget)
    elif (pack := _find_pack(data)) is not None:
        yield from _open_pack(pack, budget)


def _read(decoder: Any, data: bytes, most: int, at: int = 0) -> tuple[bytes, int]:
    """Give what is packed from a place on, up to the damage where there is one; and where it ends."""
    parts: list[bytes] = []
    try:
        while at < len(data) and most > 0 and not decoder.eof:
            parts.append(decoder.decompress(data[at : at + _STEP], most))
            most -= len(parts[-1])
            at += _STEP
    except (zlib.error, OSError, EOFError, lzma.LZMAError, MemoryError):
        pass
    return b"".join(parts), min(at, len(data)) - len(decoder.unused_data)


def _open_zip(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    try:
        with ZipFile(BytesIO(data)) as archive:
            for info in archive.infolist():
                if not budget.is_left:
                    return
                try:
                    with archive.open(info) as file:
                        inner = file.read(budget.size)
                # A file that is encrypted, damaged or of another method.
                except (BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, zlib.error, lzma.LZMAError):  # fmt: skip
                    continue
                yield f"zip:{info.filename}", budget.take(inner)
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        return


def _open_tar(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    # Its files were searched with the whole, but for those that are packed themselves.
    try:
        with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
            for member in archive:
                if not budget.is_left:
                    return
                file = archive.extractfile(member) if member.isreg() else None
                if file is not None:
                    yield f"tar:{member.name}", budget.take(file.read(budget.size))
    except (tarfile.TarError, OSError, ValueError):
        return


def _find_pack(data: bytes) -> bytes | None:
    """Give a pack of git, taken out of the lines of its protocol where it is in them."""
    if data.startswith(b"PACK"):
        return data
    parts, at = bytearray(), 0
    while at + 4 <= len(data):
        try:
            size = int(data[at : at + 4], 16)
        except ValueError:
            break
        if size >= 4:
            line = data[at + 4 : at + size]
            if line[:1] == b"\1":  # the band of the pack
                parts += line[1:]
            elif line.startswith(b"PACK"):
                parts += line
        elif data.startswith(b"PACK", at + 4):
            return data[at + 4 :]
        at += max(size, 4)
        if data.startswith(b"PACK", at):  # without bands
            return data[at:]
    return bytes(parts) if parts.startswith(b"PACK") else None


def _open_pack(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    at = 12
    for number in range(int.from_bytes(data[8:12])):
        if at >= len(data) or not budget.is_left:
            return
        sort = data[at] >> 4 & 7
        at = _skip_number(data, at)
        if sort in _DELTAS:
            at = at + _DELTAS[sort] if _DELTAS[sort] else _skip_number(data, at)
        decoder = zlib.decompressobj()
        inner, at = _read(decoder, data, budget.size, at)
        yield f"pack:{number}", budget.take(inner)
        if not decoder.eof:
            return


def _skip_number(data: bytes, at: int) -> int:
    while at < len(data) and data[at] & 128:
        at += 1
    return at + 1
