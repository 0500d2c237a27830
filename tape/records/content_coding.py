"""Undo the content codings of bodies (gzip, br, zstd, deflate) for comparison and reading, with a bound on their size.

Brotli is undone where its library is there. A body that is broken, goes on after its
end, or grows beyond the bound stays as it is: then its coded bytes are compared. It can be read up to there (`undo_what_came`).

Source: RFC 9110 section 8.4; RFC 1950 to 1952, 7932, 8878.
"""

import re
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..exchange import Headers
from .zstd import ZstdDecompressor, ZstdError


def _find_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


# It comes with mitmproxy; without it such bodies are compared as coded.
_brotli_library = _find_library("brotli")

MAX_DECODED = 64 * 1024 * 1024
"""Bytes a body may have once its codings are undone."""
_MAX_CODINGS = 3
_MAX_MEMBERS = 64
_CHARSET = re.compile(rb"charset=[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_WORDS = re.compile(rb"[\t\r\n\x20-\x7e]{8,}")
"""As short as the shortest value that is looked for elsewhere."""


def read_codings(headers: Headers) -> bytes:
    """Give the value of `content-encoding`, of several fields joined; empty where there is none."""
    return b",".join([value for name, value in headers if name.lower() == b"content-encoding"])


def undo_coding(body: bytes, coding: bytes, limit: int = MAX_DECODED) -> bytes | None:
    """Undo the codings that a `content-encoding` value names.

    limit: most bytes that may come out.
    Gives None for a coding that is unknown, and for a body that is broken or grows beyond the limit.
    """
    return _undo(body, coding, limit, whole=True)


def undo_what_came(body: bytes, coding: bytes, limit: int = MAX_DECODED) -> bytes | None:
    """Undo the codings of a body that may have been cut, or have something behind it: give what can be read of it.

    Takes and gives what `undo_coding` does.
    """
    return _undo(body, coding, limit, whole=False)


def read_charset(content_type: bytes) -> str | None:
    """Read the charset that a `content-type` names, as it is written there; None where it names none."""
    found = _CHARSET.search(content_type)
    return found[1].decode() if found is not None else None


def find_beside(body: bytes, coding: bytes, limit: int = MAX_DECODED) -> bytes:
    """Give the words of a coded body that may be no content: in the head of gzip its file name and comment, in zstd a frame that is skipped.

    They are told by their characters, in each layer of codings: a coding of content has hardly any words.
    """
    names = [name.strip() for name in coding.split(b",") if name.strip()]
    found = _WORDS.findall(body)
    for at in range(len(names) - 1, 0, -1):
        layer = undo_coding(body, b",".join(names[at:]), limit)
        if layer is None:
            break
        found += _WORDS.findall(layer)
    return b"\n".join(found)


def is_broken(body: bytes, coding: bytes) -> bool:
    """Say whether a body is damaged, so that its reader fails there; one that only lacks its end is not.

    Takes what `undo_coding` does; of several codings the outermost is looked at.
    """
    name = coding.rpartition(b",")[2].strip().lower()
    makers = _MAKERS.get(name, ())
    return bool(makers) and all(_count_sound(make, body) < len(body) for make in makers)


def _undo(body: bytes, coding: bytes, limit: int, *, whole: bool) -> bytes | None:
    names = [name.strip().lower() for name in coding.split(b",") if name.strip()]
    if len(names) > _MAX_CODINGS:
        return None
    for name in reversed(names):
        if name == b"identity":
            continue
        decode = _DECODERS.get(name)
        plain = decode(body, limit, whole) if decode else None
        if plain is None:
            return None
        body = plain
    return body


_GZIP, _ZLIB, _RAW = 31, 15, -15
"""What zlib calls `wbits`."""


def _inflate(body: bytes, limit: int, wbits: int, whole: bool) -> bytes | None:
    out, size, rest = [], 0, body
    # A gzip body may have several members (RFC 1952 section 2.2).
    for _ in range(_MAX_MEMBERS if wbits == _GZIP else 1):
        decoder = zlib.decompressobj(wbits)
        try:
            out.append(decoder.decompress(rest, limit - size + 1))
        except zlib.error:
            if whole:
                return None
            more = _read_sound(lambda: zlib.decompressobj(wbits).decompress, rest)
            return _join_read(out, more, limit)
        size += len(out[-1])
        if size > limit or (whole and not decoder.eof):
            return None
        rest = decoder.unused_data
        if not rest:
            return b"".join(out)
    return None


def _gzip(body: bytes, limit: int, whole: bool) -> bytes | None:
    return _inflate(body, limit, _GZIP, whole)


def _deflate(body: bytes, limit: int, whole: bool) -> bytes | None:
    # RFC 9110 section 8.4.1.2: some senders leave the zlib wrapper out.
    plain = _inflate(body, limit, _ZLIB, whole)
    return _inflate(body, limit, _RAW, whole) if plain is None else plain


def _brotli(body: bytes, limit: int, whole: bool) -> bytes | None:
    if _brotli_library is None:
        return None
    decoder: Any = _brotli_library.Decompressor()
    out, size, given = [], 0, body
    try:
        while True:
            piece = decoder.process(given, output_buffer_limit=limit - size + 1)
            out.append(piece)
            size += len(piece)
            if size > limit:
                return None
            if decoder.is_finished():
                return b"".join(out)
            # It may ask for more input before it has given all.
            if decoder.can_accept_more_data() and (whole or not piece):
                return None if whole else b"".join(out)
            given = b""
    except _brotli_library.error:
        return None if whole else _join_read([], _read_sound(_make_brotli, body), limit)
    except TypeError:  # a brotli before 1.2, which cannot bound its output
        return None


def _zstd(body: bytes, limit: int, whole: bool) -> bytes | None:
    out: list[bytes] = []
    size, frames, rest = 0, 0, body
    # A body may have several frames (RFC 8878 section 3.1).
    try:
        while rest and frames < _MAX_MEMBERS:
            decoder = ZstdDecompressor()
            out.append(decoder.decompress(rest, limit - size + 1))
            size += len(out[-1])
            if size > limit:
                return None
            if not decoder.eof:
                return None if whole else b"".join(out)
            rest = decoder.unused_data
            frames += 1
    except (ZstdError, MemoryError):
        return None if whole else _join_read(out, _read_sound(_make_zstd, rest), limit)
    return b"".join(out) if not rest and (frames or not whole) else None


# ---- what is damaged -----------------------------------------------------------------------------

_Decode = Callable[[bytes], bytes]
_Make = Callable[[], _Decode]
_STEP = 64
"""Bytes that a body is read by where it is damaged, which is seen by its decoder alone."""
_ERRORS: tuple[type[Exception], ...] = (
    *(zlib.error, ZstdError, MemoryError, EOFError),
    *(() if _brotli_library is None else (_brotli_library.error,)),
)


def _make_brotli() -> _Decode:
    decoder: Any = _brotli_library.Decompressor()

    def decode(data: bytes) -> bytes:
        out: list[bytes] = []
        while not decoder.is_finished():
            out.append(decoder.process(data))
            if not out[-1]:
                break
            data = b""
        return b"".join(out)

    return decode


def _make_zstd() -> _Decode:
    decoder = ZstdDecompressor()
    return lambda data: b"" if decoder.eof else decoder.decompress(data)


def _join_read(out: list[bytes], more: bytes, limit: int) -> bytes | None:
    """Join what was read before and up to the damage; None for nothing, and for what is too large."""
    plain = b"".join([*out, more])
    return plain if plain and len(plain) <= limit else None


def _count_sound(make: _Make, body: bytes) -> int:
    """Count the bytes of a body before the damage, in steps; none where it is too large to be read."""
    decode, size = make(), 0
    for at in range(0, len(body), _STEP):
        try:
            size += len(decode(body[at : at + _STEP]))
        except _ERRORS:
            return at
        if size > MAX_DECODED:
            return 0
    return len(body)


def _read_sound(make: _Make, body: bytes) -> bytes:
    """Read a body up to the damage; the beginning of one that is too large."""
    sound, decode = _count_sound(make, body), make()
    out = [decode(body[:sound])] if sound else []
    for at in range(sound, min(sound + _STEP, len(body))):
        try:
            out.append(decode(body[at : at + 1]))
        except _ERRORS:
            break
    return b"".join(out)


_DECODERS: dict[bytes, Callable[[bytes, int, bool], bytes | None]] = {
    b"gzip": _gzip,
    b"x-gzip": _gzip,
    b"deflate": _deflate,
    b"br": _brotli,
    b"zstd": _zstd,
}
_MAKERS: dict[bytes, tuple[_Make, ...]] = {
    b"gzip": (lambda: zlib.decompressobj(_GZIP).decompress,),
    b"x-gzip": (lambda: zlib.decompressobj(_GZIP).decompress,),
    b"deflate": (
        lambda: zlib.decompressobj(_ZLIB).decompress,
        lambda: zlib.decompressobj(_RAW).decompress,
    ),
    b"br": () if _brotli_library is None else (_make_brotli,),
    b"zstd": (_make_zstd,),
}
