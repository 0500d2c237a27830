"""Make the checksums inside a body fit its placeholders: a client that opens a file with a wrong one fails, or takes it for damaged.

Mended are files of zip that are stored (or in stored blocks), members of gzip, chunks of PNG and frames of Amazon's event stream. A
file that is stored in a zip may itself be one of them, and a zip may have a program before it. A checksum that did not fit before
stays, and so does each of another format.

Source: APPNOTE.TXT 6.3.10 (PKWARE); RFC 1952; PNG third edition, section 5.3; "Event stream encoding" (Amazon Transcribe).
"""

import zlib
from collections.abc import Callable, Iterator

_PNG = b"\x89PNG\r\n\x1a\n"
_GZIP = b"\x1f\x8b\x08"
_ENTRY, _DESCRIPTOR, _END = b"PK\1\2", b"PK\7\x08", b"PK\5\6"
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _CRC_BEHIND = 1, 8
"""Flags of a file in a zip."""
_MOST = 64 * 1024 * 1024
"""Bytes that are inflated of one body."""


_DEEPEST = 8
"""Files inside of files in which checksums are mended."""
_LONGEST_END = 22 + 0xFFFF
_PIECE = 64 * 1024
"""Bytes of gzip that are inflated at once: a file may have many members."""


def mend_checksums(before: bytes, after: bytes) -> bytes:
    """Give a body with placeholders in which the checksums fit that fitted before."""
    return _mend(before, after, _DEEPEST)


def _mend(before: bytes, after: bytes, deepest: int) -> bytes:
    if len(before) != len(after) or before == after or not deepest:
        return after
    mend = _find(before)
    if mend is None:
        return after
    mended = bytearray(after)
    for at, written in mend(before, after, deepest - 1):
        mended[at : at + len(written)] = written
    return bytes(mended)


_Mend = Callable[[bytes, bytes, int], Iterator[tuple[int, bytes]]]
"""Yields where bytes are to be written, and those: a checksum, or a file inside with its own checksums; takes how much deeper it may go."""


def _find(body: bytes) -> _Mend | None:
    if body.startswith(_GZIP):
        return _gzip
    if body.startswith(_PNG):
        return _png
    if len(body) >= 16 and zlib.crc32(body[:8]).to_bytes(4) == body[8:12]:
        return _event_stream
    if body.rfind(_END, max(0, len(body) - _LONGEST_END)) >= 0:
        return _zip
    return None


def _zip(before: bytes, after: bytes, deepest: int) -> Iterator[tuple[int, bytes]]:
    end = before.rfind(_END)
    at = end - _little(before, end + 12)
    ahead = at - _little(before, end + 16)  # bytes before the archive
    if end < 0 or at < 0 or ahead < 0:
        return
    left = _MOST
    while before.startswith(_ENTRY, at):
        flags, method = _little(before, at + 8, 2), _little(before, at + 10, 2)
        size, local = _little(before, at + 20), ahead + _little(before, at + 42)
        start = local + 30 + _little(before, local + 26, 2) + _little(before, local + 28, 2)
        stop = start + size
        told = before[at + 16 : at + 20]
        if before[start:stop] != after[start:stop] and not flags & _ENCRYPTED:
            inside = after[start:stop]
            if method == _STORED:
                inside = _mend(before[start:stop], inside, deepest)
                yield start, inside
            was, now = (_content(one, method, left) for one in (before[start:stop], inside))
            left -= len(was or b"")
            if was is not None and now is not None and _crc(was) == told:
                yield at + 16, _crc(now)
                if not flags & _CRC_BEHIND:
                    yield local + 14, _crc(now)
                elif before.startswith(_DESCRIPTOR + told, stop):
                    yield stop + 4, _crc(now)
                elif before.startswith(told, stop):
                    yield stop, _crc(now)
        lengths = (_little(before, at + place, 2) for place in (28, 30, 32))
        at += 46 + sum(lengths)


def _content(data: bytes, method: int, most: int) -> bytes | None:
    return data if method == _STORED else _inflate(data, most) if method == _DEFLATED else None


def _gzip(before: bytes, after: bytes, _deepest: int) -> Iterator[tuple[int, bytes]]:
    at, left = 0, _MOST
    while left > 0 and before.startswith(_GZIP, at):
        start = _find_content(before, at)
        end, was = _inflate_member(before, start, left) if start > at else (0, b"")
        if not end:
            return
        left -= max(1, len(was))
        if before[start:end] != after[start:end] and before[end : end + 4] == _crc(was):
            now = _inflate(after[start:end], _MOST)
            if now is not None:
                yield end, _crc(now)
        at = end + 8


def _find_content(data: bytes, at: int) -> int:
    """Find where the content of a member of gzip begins; 0 where its head does not end."""
    start, flags = at + 10, data[at + 3] if at + 3 < len(data) else 0
    if flags & 4:
        start += 2 + _little(data, start, 2)
    for flag in (8, 16):  # a name, a comment
        if flags & flag:
            start = data.find(b"\0", start) + 1
            if not start:
                return 0
    return start + (flags & 2)


def _inflate_member(data: bytes, start: int, most: int) -> tuple[int, bytes]:
    """Give where the content of a member ends, and what it means; 0 where it does not end, is damaged or too long."""
    reader, parts, at = zlib.decompressobj(-15), list[bytes](), start
    while not reader.eof and at < len(data) and most > 0:
        piece = data[at : at + _PIECE]
        try:
            parts.append(reader.decompress(piece, most))
        except zlib.error:
            return 0, b""
        at, most = at + len(piece), most - len(parts[-1])
    return (at - len(reader.unused_data), b"".join(parts)) if reader.eof else (0, b"")


def _png(before: bytes, after: bytes, _deepest: int) -> Iterator[tuple[int, bytes]]:
    at = len(_PNG)
    while at + 12 <= len(before):
        end = at + 8 + int.from_bytes(before[at : at + 4])
        yield from _fit(before, after, at + 4, end)
        at = end + 4


def _event_stream(before: bytes, after: bytes, _deepest: int) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 16 <= len(before):
        end = at + int.from_bytes(before[at : at + 4])
        if end < at + 16 or end > len(before):
            return
        yield from _fit(before, after, at, end - 4)
        at = end


def _fit(before: bytes, after: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Mend the checksum that follows a part, where that has changed."""
    was, now = before[start:end], after[start:end]
    if was != now and zlib.crc32(was).to_bytes(4) == before[end : end + 4]:
        yield end, zlib.crc32(now).to_bytes(4)


def _inflate(data: bytes, most: int) -> bytes | None:
    end, plain = _inflate_member(data, 0, max(1, most))
    return plain if end else None


def _crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def _little(data: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(data[at : at + size], "little")
