"""A body in a coding that has no end: its readers give all that is in it."""

import zlib

import pytest

from playhead.tape.records.content_coding import is_broken, undo_coding, undo_what_came
from playhead.tape.records.unterminated_content_coding import BLOCK, write_without_end

_SIZES = [1, 2, 255, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7]
_RAW = zlib.compressobj(wbits=-15)
CAME = {
    b"gzip": b"\x1f\x8b\x08",
    b"x-gzip": b"\x1f\x8b\x08",
    b"deflate": zlib.compress(b"a"),
    b"Deflate": _RAW.compress(b"a" * 9) + _RAW.flush(),
    b"br": b"",
    b"zstd": b"",
}


def _make(size: int) -> bytes:
    return bytes(at * 7 % 251 for at in range(size))


@pytest.mark.parametrize("coding", CAME)
@pytest.mark.parametrize("size", _SIZES)
def test_all_of_it_is_read_and_no_end(coding: bytes, size: int) -> None:
    """However many blocks it has."""
    written = write_without_end(_make(size), coding, CAME[coding], broken=False)
    assert written is not None
    assert undo_what_came(written.data, coding) == _make(size)
    assert undo_coding(written.data, coding) is None
    assert not is_broken(written.data, coding)


@pytest.mark.parametrize("coding", CAME)
@pytest.mark.parametrize("size", _SIZES)
def test_what_was_damaged_is_damaged_behind_it(coding: bytes, size: int) -> None:
    """Its reader gives what is before that, and fails."""
    written = write_without_end(_make(size), coding, CAME[coding], broken=True)
    assert written is not None
    assert undo_what_came(written.data, coding) == _make(size)
    assert undo_coding(written.data, coding) is None
    assert is_broken(written.data, coding)


@pytest.mark.parametrize("coding", CAME)
@pytest.mark.parametrize(("at", "size"), [(0, 5), (BLOCK - 3, 9), (BLOCK, 4), (10, 2 * BLOCK + 20)])
def test_each_part_is_where_it_says(coding: bytes, at: int, size: int) -> None:
    """Also over the ends of blocks."""
    plain = _make(3 * BLOCK + 7)
    written = write_without_end(plain, coding, CAME[coding], broken=False)
    assert written is not None
    parts = [written.data[start : start + some] for start, some in written.place(at, size)]
    assert b"".join(parts) == plain[at : at + size]


@pytest.mark.parametrize("coding", [b"gzip, br", b"compress", b""])
def test_several_codings_and_unknown_ones_are_not_written(coding: bytes) -> None:
    """Nobody says where one of them ended."""
    assert write_without_end(b"a", coding, b"", broken=False) is None
