"""Whether a data file that is shorter than it should be still has every page that is in use.

LMDB maps its file: reading a page that is not in it ends the process (SIGBUS). A sound file may lack some pages at its
end, since those that were allocated and freed in one transaction are never written; LMDB lists them as free. So a
short file is whole if and only if each page that it lacks is on that list. The list is read here from the file, not
through the map.

Source: LMDB 0.9, `mdb.c`: `MDB_meta`, `MDB_page`, `MDB_node`, `mdb_freelist_save`; 64 bits, the machine's byte order.
"""

import os
from array import array
from collections.abc import Iterator
from struct import Struct, error
from typing import NamedTuple

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_META = Struct("=16xII16xI36xQ48xQQ")
"""Magic, version, bytes of a page, root of the list of free pages, last page, transaction."""
_PAGE = Struct("=QHHHH")
"""Number, padding, flags, end of the pointers to nodes, start of the nodes."""
_POINTER = Struct("=H")
_NODE = Struct("=HHHH")
"""Data size, low and high half; flags; key size. In a branch the first three are a page number."""
_NUMBER = Struct("=Q")
_BRANCH, _BIG = 0x01, 0x01
"""Flags: of a page that leads to others; of a node whose data are in pages of their own."""
_NO_PAGE = (1 << 64) - 1


class UnreadablePages(Exception):
    """The list of free pages cannot be read: the file is damaged, or of another version of LMDB."""


def find_lost_page(file: int, transaction: int) -> int | None:
    """Find the first page that a file lacks and that is not free, as of a transaction; None where there is none.

    file: descriptor of the data file; the transaction is being read, so that its pages are not used again meanwhile.
    Raises: UnreadablePages; OSError.
    """
    try:
        reader = _Reader(file, transaction)
        missing = set(range(reader.pages, reader.last_page + 1))
        if missing:
            for found in reader.free_pages(reader.pages):
                missing.discard(found)
    except (error, ValueError, MemoryError) as problem:
        raise UnreadablePages(str(problem)) from problem
    return min(missing, default=None)


class _Meta(NamedTuple):
    """What one of the two first pages says of a transaction."""

    page_bytes: int
    root: int
    """Page with which the list of free pages begins."""
    last_page: int
    transaction: int


class _Reader:
    """Reads the list of free pages of one transaction."""

    def __init__(self, file: int, transaction: int) -> None:
        self._file = file
        self._bytes = os.fstat(file).st_size
        first = self._read_meta(0)
        self._page_bytes = first.page_bytes
        metas = (first, self._read_meta(self._page_bytes))
        meta = next((one for one in metas if one.transaction == transaction), None)
        if meta is None:
            raise UnreadablePages(f"no page describes transaction {transaction}")
        self._root, self.last_page = meta.root, meta.last_page
        self.pages = self._bytes // self._page_bytes
        """How many pages are there whole."""

    def _read_meta(self, at: int) -> "_Meta":
        magic, version, *more = _META.unpack(self._read(at, _META.size))
        meta = _Meta(*more)
        if (magic, version) != (_MAGIC, _VERSION) or meta.page_bytes < _META.size:
            raise UnreadablePages(f"no page at byte {at} describes the file")
        return meta

    def free_pages(self, least: int) -> Iterator[int]:
        """Give the numbers of the free pages from `least` on."""
        waiting = [self._root] if self._root != _NO_PAGE else []
        visited = 0
        while waiting:
            visited += 1
            if visited > self.pages:
                raise UnreadablePages("the list of free pages leads in a circle")
            page = self._read(waiting.pop() * self._page_bytes, self._page_bytes)
            _, _, flags, end, _ = _PAGE.unpack_from(page)
            for at in range(_PAGE.size, end, _POINTER.size):
                (node,) = _POINTER.unpack_from(page, at)
                if flags & _BRANCH:
                    low, high, top, _ = _NODE.unpack_from(page, node)
                    waiting.append(low | high << 16 | top << 32)
                else:
                    yield from _from(self._data(page, node), least)

    def _data(self, page: bytes, node: int) -> bytes:
        low, high, flags, key_bytes = _NODE.unpack_from(page, node)
        size, start = low | high << 16, node + _NODE.size + key_bytes
        if not flags & _BIG:
            return page[start : start + size]
        (number,) = _NUMBER.unpack_from(page, start)
        return self._read(number * self._page_bytes + _PAGE.size, size)

    def _read(self, at: int, size: int) -> bytes:
        if at + size > self._bytes:
            raise UnreadablePages(f"the list of free pages needs byte {at + size}")
        return os.pread(self._file, size, at)


def _from(data: bytes, least: int) -> Iterator[int]:
    """Give those of a list of pages from `least` on: its length comes first, then the numbers, highest first."""
    numbers = array("Q", data)
    for number in numbers[1 : numbers[0] + 1]:
        if number < least:
            return
        yield number
