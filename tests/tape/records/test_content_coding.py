"""Content codings of request bodies."""

import gzip
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.records import zstd
from playhead.tape.records.content_coding import is_broken, undo_coding, undo_what_came
from playhead.tape.records.unterminated_content_coding import write_without_end

brotli: Any = import_module("brotli")  # It has no types.

PLAIN = b'{"a": 1}' * 50
_raw = zlib.compressobj(wbits=-15)
RAW_DEFLATE = _raw.compress(PLAIN) + _raw.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"identity", PLAIN),
        (b"", PLAIN),
        (b"gzip", gzip.compress(PLAIN, mtime=0)),
        (b"X-GZip", gzip.compress(PLAIN, mtime=0)),
        (b"gzip", gzip.compress(PLAIN[:100], mtime=0) + gzip.compress(PLAIN[100:], mtime=0)),
        (b"deflate", zlib.compress(PLAIN)),
        (b"deflate", RAW_DEFLATE),
        (b"br", brotli.compress(PLAIN)),
        (b"zstd", zstd.compress(PLAIN)),
        (b"zstd", zstd.compress(PLAIN[:100]) + zstd.compress(PLAIN[100:])),
        (b"gzip, br", brotli.compress(gzip.compress(PLAIN, mtime=0))),
    ],
)
def test_a_coding_is_undone(coding: bytes, body: bytes) -> None:
    """Every coding a client may use for its request gives the plain body."""
    assert undo_coding(body, coding) == PLAIN


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        # Unknown, too many
        (b"compress", PLAIN),
        (b"aes128gcm", PLAIN),
        (b"gzip, gzip, gzip, gzip", PLAIN),
        # Broken, cut, going on after the end
        *[(name, b"no such thing") for name in (b"gzip", b"deflate", b"br", b"zstd")],
        (b"gzip", gzip.compress(PLAIN, mtime=0)[:-3]),
        (b"gzip", gzip.compress(PLAIN, mtime=0) + b"more"),
        (b"deflate", zlib.compress(PLAIN) + b"more"),
        (b"br", brotli.compress(PLAIN)[:-1]),
        (b"br", brotli.compress(PLAIN) + b"more"),
        (b"zstd", zstd.compress(PLAIN)[:-1]),
        (b"zstd", zstd.compress(PLAIN) + b"more"),
        (b"zstd", zstd.compress(PLAIN) + b"more" * 200),
        # Many members
        (b"gzip", gzip.compress(b"", mtime=0) * 1000),
        (b"zstd", zstd.compress(b"") * 1000),
    ],
)
def test_what_cannot_be_undone_stays_coded(coding: bytes, body: bytes) -> None:
    """A body that is not wholly understood is compared as it came."""
    assert undo_coding(body, coding) is None


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_growth_is_bounded(coding: bytes) -> None:
    """A bomb ends at the limit; a body of exactly the limit passes."""
    size = 1 << 20
    encoders: dict[bytes, Callable[[bytes], bytes]] = {
        b"gzip": gzip.compress,
        b"deflate": zlib.compress,
        b"br": lambda body: brotli.compress(body, quality=3),
        b"zstd": zstd.compress,
    }
    compress = encoders[coding]
    assert undo_coding(compress(bytes(size)), coding, limit=size) == bytes(size)
    assert undo_coding(compress(bytes(size + 1)), coding, limit=size) is None


@given(st.binary(max_size=200), st.sampled_from([b"gzip", b"deflate", b"br", b"zstd", b"x"]))
def test_no_body_makes_it_raise(body: bytes, coding: bytes) -> None:
    """Hostile bytes give None or bytes."""
    assert undo_coding(body, coding, limit=10_000) is None or body is not None


def _pieces(coding: bytes) -> list[bytes]:
    """Code a body piece by piece, each flushed, as servers do with streams."""
    if coding == b"br":
        packer = brotli.Compressor()
        coded = [packer.process(PLAIN[at : at + 90]) + packer.flush() for at in range(0, 450, 90)]
        return [*coded, packer.finish()]
    wbits = 31 if coding == b"gzip" else 15
    flate = zlib.compressobj(wbits=wbits)
    make: Any = flate
    flush = zlib.Z_SYNC_FLUSH
    if coding == b"zstd":
        make = zstd.ZstdCompressor()
        flush = make.FLUSH_BLOCK
    coded = [make.compress(PLAIN[at : at + 90]) + make.flush(flush) for at in range(0, 450, 90)]
    return [*coded, make.flush()]


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_came_of_a_cut_body_is_undone(coding: bytes) -> None:
    """The more came, the more there is; after each piece that was flushed all that was in it."""
    pieces = _pieces(coding)
    body, seen = b"".join(pieces), 0
    for size in range(len(body) + 1):
        plain = undo_what_came(body[:size], coding)
        assert plain is not None
        assert PLAIN.startswith(plain)
        assert len(plain) >= seen
        seen = len(plain)
    for count in range(len(pieces)):
        plain = undo_what_came(b"".join(pieces[:count]), coding)
        assert plain == PLAIN[: 90 * count]
    assert undo_what_came(body, coding) == PLAIN
    assert undo_what_came(body, coding, limit=len(PLAIN) - 1) is None
    assert undo_what_came(b"no such thing", coding) is None


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br"])
def test_all_that_came_of_a_large_body_is_read(coding: bytes) -> None:
    """A decoder may ask for more before it has given all that it has."""
    body = b"".join(b"%d " % (at * at * 7919 % 1000003) for at in range(20_000))
    encoders: dict[bytes, Callable[[bytes], bytes]] = {
        b"gzip": gzip.compress,
        b"deflate": zlib.compress,
        b"br": brotli.compress,
    }
    read = undo_what_came(encoders[coding](body)[:-20], coding)
    assert read is not None
    assert body.startswith(read)
    assert len(read) > len(body) - 2000


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_is_before_damage_is_read(coding: bytes) -> None:
    """To the byte."""
    written = write_without_end(PLAIN, coding, b"\x78\x01", broken=True)
    assert written is not None
    assert undo_what_came(written.data + b"\x07" * 200, coding) == PLAIN
    assert is_broken(written.data, coding)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_has_no_end_or_something_behind_it_is_not_damaged(coding: bytes) -> None:
    """Its reader does not fail."""
    encoders: dict[bytes, Callable[[bytes], bytes]] = {
        b"gzip": gzip.compress,
        b"deflate": zlib.compress,
        b"br": brotli.compress,
        b"zstd": zstd.compress,
    }
    body = encoders[coding](PLAIN)
    assert not is_broken(body, coding)
    assert not is_broken(body[:-3], coding)
    # Readers of brotli fail there.
    assert is_broken(body + b"more" * 40, coding) is (coding == b"br")
