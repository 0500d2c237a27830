"""The journal on its way through the store."""

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from struct import pack, unpack_from
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.determinism.clock_journal import Intake, cut, sort_reads, write_journals
from playhead.tape.records.codec import BadRecord

A, B = pack("<II1sQ", 1, 1, b"a", 5), pack("<II1sQ", 1, 1, b"b", 7)
"""Parts of a journal: one context with one clock read."""
CLOCK_READS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2**63)), max_size=20)


@given(CLOCK_READS)
def test_clock_reads_are_grouped_by_context_in_order(clock_reads: list[tuple[int, int]]) -> None:
    """What was never written is left out."""
    written = b"".join(pack("<IQ", *read_clock) for read_clock in clock_reads) + bytes(24)
    names = {1: "a|b", 2: "ü"}  # the third was never named
    order = dict.fromkeys(context for context, _ in clock_reads if context in names)
    expected = b""
    for context in order:
        values = [at for one, at in clock_reads if one == context]
        text = names[context].encode()
        expected += pack("<II", len(text), len(values)) + text + pack(f"<{len(values)}Q", *values)
    assert sort_reads(written, names) == expected


def test_what_was_cut_is_laid_out_again(tmp_path: Path) -> None:
    """A file for each process."""
    write_journals([*cut("0", A), *cut("0.1-ab+2", B), *cut("0", B), *cut("0", A)], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "0.journal": pack("<II1sQQ", 1, 2, b"a", 5, 5) + B,
        "0.1-ab+2.journal": B,
    }


def test_jobs_of_pools_are_laid_out_for_every_process(tmp_path: Path) -> None:
    """Whichever process they ran in."""
    job = pack("<II6sQ", 6, 1, b"pool a", 9)
    write_journals([*cut("0.1", A + job), *cut("0.2", job.replace(b"pool a", b"pool b"))], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "0.1.journal": A,
        "pools.journal": job + job.replace(b"pool a", b"pool b"),
    }


def test_an_intake_gives_each_record_once_and_none_half_written(tmp_path: Path) -> None:
    """While the command runs a record is given a call after it was seen first; in the end all are."""
    intake = Intake(tmp_path, lambda process: {1: "a"})
    file = tmp_path / "0.looks"

    def taken(rows: Iterable[dict[str, Any]]) -> list[int]:
        parts = [zlib.decompress(row["looks"]) for row in rows]
        return [at for part in parts for at in unpack_from(f"<{(len(part) - 9) // 8}Q", part, 9)]

    file.write_bytes(pack("<IQ", 1, 10) + bytes(12) + pack("<IQ", 1, 30) + bytes(24))
    assert taken(intake.take()) == []
    assert taken(intake.take()) == [10]
    file.write_bytes(pack("<IQIQIQIQ", 1, 10, 0, 0, 1, 30, 1, 40) + b"torn")
    assert taken(intake.take()) == []
    assert taken(intake.take_rest()) == [30, 40]
    assert taken(intake.take_rest()) == []


BAD: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "another folder": lambda: list(cut("../x", A)),
    "no name": lambda: [{"looks": b"abc"}],
    "text": lambda: [{"process": "0", "looks": "abc"}],
    "not packed": lambda: [{"process": "0", "looks": b"abc"}],
    "cut off": lambda: [{**row, "looks": row["looks"][:-3]} for row in cut("0", A)],
    "a part cut off": lambda: [
        *cut("0", A),
        *({**row, "looks": row["looks"][:-3]} for row in cut("0", A)),
    ],
    "a context cut off": lambda: list(cut("0", A[:-1])),
    "a context of nothing": lambda: list(cut("0", pack("<II", 0, 0) + A)),
    "a head cut off": lambda: list(cut("0", A + A[:5])),
    "more than there is": lambda: list(cut("0", pack("<II", 2**32 - 1, 2**32 - 1) + A)),
    "a bomb": lambda: list(cut("0", bytes(65 << 20))),
    "a bomb in parts": lambda: [*cut("0", A), *cut("0", bytes(64 << 20))],
}


@pytest.mark.parametrize("case", BAD)
def test_a_journal_that_is_none_is_refused(tmp_path: Path, case: str) -> None:
    """Tapes come from elsewhere too; nothing is written outside the folder."""
    with pytest.raises(BadRecord):
        write_journals(BAD[case](), tmp_path)
    assert list(tmp_path.iterdir()) == []
