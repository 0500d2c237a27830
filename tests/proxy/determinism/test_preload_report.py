"""What a command has told is read as what it is: words of somebody who may want to be read something else."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from playhead.proxy.determinism.preload_report import read_report
from playhead.tests.support.preload_bundles import new_kit

TOLD = {"notes": b"process\tPython\t3.13\nlane\t1\tmain\n", "looks": struct.pack("<IQ", 1, 5)}


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "folder"])
@pytest.mark.parametrize("suffix", TOLD)
def test_what_is_no_file_of_its_own_is_not_read(tmp_path: Path, suffix: str, kind: str) -> None:
    """A link may lead to what a sandbox hides, a pipe never ends: neither gets into the log, as a file does."""
    for name, data in TOLD.items():
        (tmp_path / name).write_bytes(data)
    preload_bundle = new_kit()
    try:
        for name in TOLD:
            _make(
                tmp_path / name,
                preload_bundle._notes / f"0.{name}",
                kind if name == suffix else "file",
            )
        read = (
            list(preload_bundle.clock_reads()),
            read_report(preload_bundle._notes, "agent").processes,
        )
    finally:
        preload_bundle.close()
    clock_reads, processes = read
    assert (clock_reads != []) == (kind == "file")
    assert processes == ({} if kind != "file" and suffix == "notes" else {"0": "Python 3.13"})


def _make(source: Path, path: Path, kind: str) -> None:
    match kind:
        case "file":
            shutil.copy(source, path)
        case "link":
            path.symlink_to(source)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
