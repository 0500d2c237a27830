"""The journal of clock reads: the format that preloads write, the store keeps, and preloads read.

Written: a file of records for each process, in the order of its clock reads; what its contexts are called is among its notes.
Kept: for each process its clock reads context by context, in one or more parts that are compressed each for itself.
Read: the parts of a process, an execution context after the other. `python/playhead_preload/clock.py` says how it is laid out.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any

from ...tape.records.codec import BadRecord
from .read_untrusted_file import read_agent_file

_RECORD = Struct("<IQ")
_HEAD = Struct("<II")
_VALUE = Struct("<Q")
_PROCESS = re.compile(r"[\w.+-]{1,200}", re.ASCII)
_PIECE_BYTES = 256 << 10
"""Of one event."""
_PART_BYTES = _RECORD.size << 18
"""Of what is read of a process at once: it is sorted in memory."""
_MOST_BYTES = 64 << 20
"""Of the journal of one process, written or unpacked; preloads end before."""
_MOST_IN_ALL_BYTES = 512 << 20
"""Of the journals of a recording, unpacked."""


_POOLS = "pools"
"""In the place of a process: the jobs of pools, whichever process they ran in."""
_POOLED = b"pool "
"""What the names of their contexts begin with."""
_Contexts = dict[bytes, bytearray]
"""Values by name."""


class Intake:
    """Reads what the processes of a command write down, each record once."""

    def __init__(self, folder: Path, contexts: Callable[[str], Mapping[int, str]]) -> None:
        """Nothing is read yet.

        folder: where preloads write.
        contexts: gives the contexts of a process by their number, as far as they were told.
        """
        self._folder = folder
        self._contexts = contexts
        self._taken: dict[str, int] = {}
        self._ripe: dict[str, int] = {}

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield what was written since the last time, while the command may still run.

        A record is taken a call after it was seen first: it may have been half written then. Blocks.
        """
        for path, process in self._files():
            begin, ripe = self._taken.get(process, 0), self._ripe.get(process, 0)
            if not any(_read(path, begin, _RECORD.size)):
                continue  # nothing new: there may be many processes, and most have ended
            records = _read(path, begin)
            self._ripe[process] = begin + _written(records)
            if ripe > begin:
                yield from self._cut(process, records[: ripe - begin])

    def take_rest(self) -> Iterator[dict[str, Any]]:
        """Yield all that is left, once the command has ended. Blocks."""
        for path, process in self._files():
            while records := _read(path, self._taken.get(process, 0)):
                yield from self._cut(process, records)

    def _files(self) -> list[tuple[Path, str]]:
        return [
            (path, path.name.removesuffix(".looks"))
            for path in sorted(self._folder.glob("*.looks"))
        ]

    def _cut(self, process: str, records: bytes) -> Iterator[dict[str, Any]]:
        self._taken[process] = self._taken.get(process, 0) + len(records)
        yield from cut(process, sort_reads(records, self._contexts(process)))


def _read(path: Path, begin: int, most: int = _PART_BYTES) -> bytes:
    """Read whole records of a process."""
    found = read_agent_file(
        path, min(most, _MOST_BYTES - _MOST_BYTES % _RECORD.size - begin), begin
    )
    return found[: len(found) - len(found) % _RECORD.size]


def _written(records: bytes) -> int:
    """Give how many bytes stand before the first record that was not written yet."""
    for number, (context, _) in enumerate(_RECORD.iter_unpack(records)):
        if not context:
            return number * _RECORD.size
    return len(records)


def sort_reads(records: bytes, contexts: Mapping[int, str]) -> bytes:
    """Give what a process wrote down, context by context. An execution context without a name was never finished, and is left out."""
    clock_reads: dict[int, list[int]] = {}
    for context, at_ns in _RECORD.iter_unpack(records):
        if context:  # the rest of the file was never written
            clock_reads.setdefault(context, []).append(at_ns)
    return b"".join(
        _context(
            contexts[context].encode("utf-8", "surrogatepass"), b"".join(map(_VALUE.pack, values))
        )
        for context, values in clock_reads.items()
        if context in contexts
    )


def _context(name: bytes, values: bytes | bytearray) -> bytes:
    return _HEAD.pack(len(name), len(values) // _VALUE.size) + name + values


def cut(process: str, clock_reads: bytes) -> Iterator[dict[str, Any]]:
    """Give the data of the events that keep a part of the clock reads of a process; nothing of none."""
    packed = zlib.compress(clock_reads, 6) if clock_reads else b""
    for begin in range(0, len(packed), _PIECE_BYTES):
        yield {"process": process, "looks": packed[begin : begin + _PIECE_BYTES]}


def write_journals(rows: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Lay out the journals of a recording for the preloads of a replay, a file for each process.

    rows: what `cut` gave, in order.
    Raises: BadRecord, before anything is written; OSError.
    """
    packed: dict[str, bytearray] = {}
    for row in rows:
        process, clock_reads = row.get("process"), row.get("looks")
        if (
            not isinstance(process, str)
            or not _PROCESS.fullmatch(process)
            or type(clock_reads) is not bytes
        ):
            raise BadRecord("not a piece of a journal")
        packed.setdefault(process, bytearray()).extend(clock_reads)
    journals: dict[str, _Contexts] = {_POOLS: {}}
    left = _MOST_IN_ALL_BYTES
    for process, data in packed.items():
        try:
            contexts = _merge(data, min(left, _MOST_BYTES))
        except BadRecord as error:
            raise BadRecord(f"the journal of process {process!r} {error}") from error
        left -= sum(map(len, contexts.values()))
        for name in [name for name in contexts if name.startswith(_POOLED)]:
            journals[_POOLS].setdefault(name, bytearray()).extend(contexts.pop(name))
        journals[process] = contexts
    for process, contexts in journals.items():
        if contexts:
            journal = b"".join(_context(name, values) for name, values in contexts.items())
            (folder / f"{process}.journal").write_bytes(journal)


def _merge(packed: bytes | bytearray, most: int) -> _Contexts:
    """Give the contexts of all parts of a journal. Raises: BadRecord."""
    contexts: _Contexts = {}
    while packed:
        unpacker = zlib.decompressobj()
        try:
            part = unpacker.decompress(packed, most + 1)
        except zlib.error as error:
            raise BadRecord("cannot be unpacked") from error
        if len(part) > most:
            raise BadRecord(f"is longer than {most} bytes")
        if not unpacker.eof:
            raise BadRecord("is cut off")
        most -= len(part)
        packed = unpacker.unused_data
        for name, values in _contexts(part):
            contexts.setdefault(name, bytearray()).extend(values)
    return contexts


def _contexts(part: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while place < len(part):
        if len(part) - place < _HEAD.size:
            raise BadRecord("is no journal")
        length, number = _HEAD.unpack_from(part, place)
        begin = place + _HEAD.size + length
        end = begin + number * _VALUE.size
        if end > len(part) or not number:
            raise BadRecord("is no journal")
        yield part[begin - length : begin], part[begin:end]
        place = end
