"""What is said where an experiment is interrupted."""

from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.experiments.journal.inputs import Inputs
from playhead.proxy.experiments.journal.journaled_runs import NotedRuns, begin_noted


@pytest.mark.parametrize(
    ("leaves", "said"),
    [(True, "the same command goes on from here"), (False, "the same command begins again")],
)
def test_an_interrupted_call_says_what_the_same_one_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, leaves: bool, said: str
) -> None:
    """Only runs of which something may leave are noted."""
    notes = None
    if leaves:
        notes = NotedRuns(Config(store=tmp_path), "bisect", ("a",), Inputs("", {}, {}), anew=False)
    with pytest.raises(KeyboardInterrupt), begin_noted(notes, ["what is done"], yes=True):
        raise KeyboardInterrupt
    told = capsys.readouterr().err
    assert (told.startswith("what is done"), said in told) == (True, True), told
