"""What a command has told is read as what it is: words of somebody who may want to be read something else."""

import os
from pathlib import Path

import pytest

from playhead.proxy.determinism.report import read_report
from playhead.tests.support.kits import new_kit


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_of_its_own_is_not_read(tmp_path: Path, kind: str) -> None:
    """A link may lead to what a sandbox hides, a pipe never ends: neither gets into the log."""
    (tmp_path / "secret").write_bytes(b"process\tPython\t3.13\n" + bytes(range(1, 13)))
    kit = new_kit()
    try:
        for suffix in ("notes", "looks"):
            path = kit._notes / f"0.{suffix}"
            if kind == "link":
                path.symlink_to(tmp_path / "secret")
            elif kind == "pipe":
                os.mkfifo(path)
            else:
                path.mkdir()
        report = read_report(kit._notes, "agent")
        report.lanes["0"] = {int.from_bytes(bytes((1, 2, 3, 4)), "little"): "main"}
        assert report.processes == {}
        assert all(
            row["process"] != "0" or b"\x05" not in row["looks"] for row in kit.looks(report)
        )
        assert sum(len(row["looks"]) for row in kit.looks(report)) < 20  # nothing, packed
    finally:
        kit.close()
