"""The journal on its way through the store."""

from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.determinism.journal import cut, sort_looks, write_journals
from playhead.tape.codec import BadRecord

LOOKS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2**63)), max_size=20)


@given(LOOKS, st.binary(max_size=11))
def test_looks_are_sorted_by_lane_in_their_order(looks: list[tuple[int, int]], torn: bytes) -> None:
    """A record that was cut off by the end of its process is left out, as is what was never written."""
    written = b"".join(pack("<IQ", *look) for look in looks) + bytes(24) + torn
    names = {1: "a|b", 2: "ü"}  # the third was never named
    order = dict.fromkeys(lane for lane, _ in looks if lane in names)
    expected = b""
    for lane in order:
        values = [at for one, at in looks if one == lane]
        text = names[lane].encode()
        expected += pack("<II", len(text), len(values)) + text + pack(f"<{len(values)}Q", *values)
    assert sort_looks(written, names) == expected


def test_what_was_cut_is_laid_out_again(tmp_path: Path) -> None:
    """A file for each process."""
    write_journals([*cut("0", b"abc"), *cut("0.1-ab+2", b"")], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "0.journal": b"abc",
        "0.1-ab+2.journal": b"",
    }


BAD: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "another folder": lambda: list(cut("../x", b"abc")),
    "no name": lambda: [{"looks": b"abc"}],
    "text": lambda: [{"process": "0", "looks": "abc"}],
    "not packed": lambda: [{"process": "0", "looks": b"abc"}],
    "cut off": lambda: [{**row, "looks": row["looks"][:-3]} for row in cut("0", b"abc")],
    "a bomb": lambda: list(cut("0", bytes(65 << 20))),
}


@pytest.mark.parametrize("case", BAD)
def test_a_journal_that_is_none_is_refused(tmp_path: Path, case: str) -> None:
    """Tapes come from elsewhere too; nothing is written outside the folder."""
    with pytest.raises(BadRecord):
        write_journals(BAD[case](), tmp_path)
    assert list(tmp_path.iterdir()) == []
