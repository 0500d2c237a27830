"""The journal of looks at the clock: as preloads write it, as the store keeps it, as preloads read it.

Written: a file of records for each process, in the order of its looks; what its lanes are called is among its notes.
Kept and read: for each process its looks lane by lane. `python/playhead_preload/clock.py` says how both are laid out.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any

from ...tape.codec import BadRecord

_RECORD = Struct("<IQ")
_HEAD = Struct("<II")
_VALUE = Struct("<Q")
_PROCESS = re.compile(r"[\w.+-]{1,200}", re.ASCII)
_PIECE_BYTES = 256 << 10
"""Of one event."""
_MOST_BYTES = 64 << 20
"""Of the journal of one process, unpacked."""


def sort_looks(records: bytes, lanes: Mapping[int, str]) -> bytes:
    """Give what a process wrote down, lane by lane. A lane without a name was never finished, and is left out."""
    looks: dict[int, list[int]] = {}
    whole = records[: len(records) - len(records) % _RECORD.size]
    for lane, at_ns in _RECORD.iter_unpack(whole):
        if lane:  # the rest of the file was never written
            looks.setdefault(lane, []).append(at_ns)
    made = bytearray()
    for lane, values in looks.items():
        if lane in lanes:
            text = lanes[lane].encode("utf-8", "surrogatepass")
            made += _HEAD.pack(len(text), len(values)) + text
            for value in values:
                made += _VALUE.pack(value)
    return bytes(made)


def cut(process: str, looks: bytes) -> Iterator[dict[str, Any]]:
    """Give the data of the events that keep the looks of a process."""
    packed = zlib.compress(looks, 6)
    for begin in range(0, len(packed), _PIECE_BYTES):
        yield {"process": process, "looks": packed[begin : begin + _PIECE_BYTES]}


def write_journals(rows: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Lay out the journals of a recording for the preloads of a replay, a file for each process.

    rows: what `cut` gave, in order.
    Raises: BadRecord; OSError.
    """
    packed: dict[str, bytearray] = {}
    for row in rows:
        process, looks = row.get("process"), row.get("looks")
        if (
            not isinstance(process, str)
            or not _PROCESS.fullmatch(process)
            or type(looks) is not bytes
        ):
            raise BadRecord("not a piece of a journal")
        packed.setdefault(process, bytearray()).extend(looks)
    for process, data in packed.items():
        unpacker = zlib.decompressobj()
        try:
            looks = unpacker.decompress(data, _MOST_BYTES)
        except zlib.error as error:
            raise BadRecord(f"the journal of process {process!r} cannot be unpacked") from error
        if not unpacker.eof:
            raise BadRecord(f"the journal of process {process!r} is cut off")
        (folder / f"{process}.journal").write_bytes(looks)
