"""What a sweep has done is noted, and read again by the next call."""

import json
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.experiments.journal.progress_journal import Journal

ENDED = {"key": "k", "run": "r", "standing": "good"}
BEGUN = {"key": "k", "begun": 1, "process": 2, "next_run": 3, "variant": "v"}


def write(file: Path, *lines: str) -> Journal:
    """Write what is noted."""
    file.write_text("".join(lines))
    return Journal(file, "busy", "wait")


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    """Its run was stopped; what is noted next has a line of its own."""
    journal = write(tmp_path / "done", json.dumps(BEGUN), "\n", json.dumps(ENDED)[:20])
    with journal:
        assert (journal.rows, len(journal.stopped)) == ([], 1)
        journal.add({**ENDED, "begun": 1})
    with Journal(journal.path, "busy", "wait") as journal:
        assert (len(journal.rows), journal.stopped) == (1, [])


def test_a_whole_line_that_is_no_run_is_named(tmp_path: Path) -> None:
    """Nobody cut it."""
    journal = write(tmp_path / "done", json.dumps(ENDED), "\n", "{}\n")
    with pytest.raises(EngineError, match="line 2: no run of a sweep"), journal:
        pass
