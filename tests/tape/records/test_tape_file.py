"""The file that carries a run: a round trip, bounded, and nothing that was changed gets through."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.records.codec import BadRecord
from playhead.tape.records.tape_file import (
    MAGIC,
    MAX_RECORD_BYTES,
    VERSION,
    Kind,
    Record,
    TapeTooNewRecord,
    TapeWriter,
    read_records,
)
from playhead.tape.records.zstd import CompressionParameter, ZstdCompressor
from playhead.tests.support.counts import tries

_RECORDS = st.lists(
    st.builds(
        Record, st.sampled_from([k for k in Kind if k is not Kind.END]), st.binary(max_size=300)
    ),
    max_size=8,
)


def packed(*records: Record) -> bytes:
    """Give a file of these."""
    parts: list[bytes] = []
    writer = TapeWriter(parts.append)
    for record in records:
        writer.put(*record)
    writer.close()
    return b"".join(parts)


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Give bytes in pieces."""
    for at in range(0, len(data), size):
        yield data[at : at + size]


def framed(stream: bytes, version: int = VERSION) -> bytes:
    """Give a file of an unpacked stream that nobody checked."""
    return (
        MAGIC
        + version.to_bytes(2, "big")
        + ZstdCompressor().compress(stream, ZstdCompressor.FLUSH_FRAME)
    )


@given(_RECORDS, st.integers(1, 400))
def test_records_come_back_as_they_were(records: list[Record], size: int) -> None:
    """In order, in whatever pieces the file is read."""
    assert list(read_records(in_pieces(packed(*records), size))) == records


@tries(30)
@given(_RECORDS.filter(bool), st.data())
def test_a_file_that_was_changed_or_cut_is_refused(
    records: list[Record], data: st.DataObject
) -> None:
    """One bit, any number of bytes missing, or anything after it; a bit that means nothing changes nothing."""
    sound = packed(*records)
    damaged = bytearray(sound)
    what = data.draw(st.sampled_from(["flip", "cut", "more"]))
    if what == "flip":
        damaged[data.draw(st.integers(0, len(sound) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif what == "cut":
        del damaged[data.draw(st.integers(0, len(sound) - 1)) :]
    else:
        damaged += data.draw(st.binary(min_size=1, max_size=40))
    try:
        found = list(read_records([bytes(damaged)]))
    except BadRecord:
        return
    assert what == "flip"  # as the bit of a frame's head that zstd does not use
    assert found == records


ROW = b"\x02\x00\x00\x00\x01x"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "does not begin as a tape"),
        (b"PK\x03\x04 a zip of some kind", "does not begin as a tape"),
        (MAGIC, "ends before its version"),
        (MAGIC + b"\0\0more", "format 0"),
        (MAGIC + b"\0\1no zstd", "broken"),
        (framed(b"\xc8\x00\x00\x00\x00"), "kind 200"),
        (framed(b"\x02\xff\xff\xff\xff"), f"at most {MAX_RECORD_BYTES}"),
        (framed(ROW), "cut short"),
        (framed(b"\x07\x00\x00\x00\x00"), "do not fit their hash"),
    ],
    ids=["empty", "zip", "head", "zero", "stream", "kind", "length", "no end", "hash"],
)
def test_what_is_no_tape_is_named(data: bytes, told: str) -> None:
    """Each says what was found."""
    with pytest.raises(BadRecord, match=told):
        list(read_records([data]))


def test_a_newer_format_is_told_from_a_damaged_one() -> None:
    """A newer version reads it."""
    with pytest.raises(TapeTooNewRecord, match="format 2; this version reads up to 1"):
        list(read_records([framed(b"", 2)]))


def test_a_small_file_does_not_unpack_to_more_than_was_allowed() -> None:
    """A bomb is given up as soon as it is seen to be one."""
    bomb = packed(*[Record(Kind.PIECE, bytes(1 << 20))] * 64)
    assert len(bomb) < 100_000
    found = read_records([bomb], limit_bytes=5 << 20)
    given_back = [next(found) for _ in range(4)]
    assert len(given_back) == 4
    with pytest.raises(BadRecord, match="unpacks to more than"):
        next(found)


def test_a_window_that_would_take_much_memory_is_refused() -> None:
    """The file names the window; ours is 32 MiB."""
    wide = ZstdCompressor(options={CompressionParameter.window_log: 27})
    stream = wide.compress(ROW * 30_000_000, ZstdCompressor.CONTINUE) + wide.flush()
    with pytest.raises(BadRecord, match="broken"):
        list(read_records([MAGIC + VERSION.to_bytes(2, "big") + stream]))


def test_a_record_that_could_not_be_read_is_not_written() -> None:
    """Better no file than one that nobody can open."""
    with pytest.raises(BadRecord, match="at most"):
        packed(Record(Kind.EXCHANGE, bytes(MAX_RECORD_BYTES + 1)))
