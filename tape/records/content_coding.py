"""Undo the content codings of bodies (gzip, br, zstd, deflate) for comparison and reading, with a bound on their size.

Brotli is undone where its library is there. A body that is broken, goes on after its
end, or grows beyond the bound stays as it is: then its coded bytes are compared.

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
            return b"".join(out) if out and not whole else None
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
            if decoder.can_accept_more_data():
                return None if whole else b"".join(out)
            given = b""
    except (_brotli_library.error, TypeError):
        # TypeError: a brotli before 1.2, which cannot bound its output.
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
        return b"".join(out) if out and not whole else None
    return b"".join(out) if not rest and (frames or not whole) else None


_DECODERS: dict[bytes, Callable[[bytes, int, bool], bytes | None]] = {
    b"gzip": _gzip,
    b"x-gzip": _gzip,
    b"deflate": _deflate,
    b"br": _brotli,
    b"zstd": _zstd,
}
