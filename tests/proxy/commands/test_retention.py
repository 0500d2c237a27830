"""What `erase` and `label` say where they did not do what was typed."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead import PlayheadError
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """With one run."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "mine", [ask()])
    return tmp_path / "store"


def _is_there(store: Path) -> bool:
    with Store.open(store, readonly=True) as opened:
        return opened.runs.find("mine") is not None


def test_erase_says_how_to_go_on_without_a_terminal(store: Path) -> None:
    """Nobody can answer; what it advises works."""
    words = ["erase", "mine", "--store", str(store)]
    done = CliRunner().invoke(cli, words, input="")
    assert isinstance(done.exception, PlayheadError)
    assert "asks first, and standard input is no terminal" in str(done.exception)
    assert "playhead erase --yes mine" in str(done.exception.hint)
    assert _is_there(store)
    assert CliRunner().invoke(cli, [*words, "--yes"]).exit_code == 0
    assert not _is_there(store)


@pytest.mark.parametrize(("answer", "left"), [("y\n", False), ("n\n", True)])
def test_an_answer_may_come_from_a_pipe(store: Path, answer: str, left: bool) -> None:
    """As before."""
    CliRunner().invoke(cli, ["erase", "mine", "--store", str(store)], input=answer)
    assert _is_there(store) is left


def test_a_label_that_was_not_there_is_told_of(store: Path) -> None:
    """Those that were are removed."""
    where = ["--store", str(store)]
    CliRunner().invoke(cli, ["label", "mine", "kept", "gone", *where])
    done = CliRunner().invoke(cli, ["label", "mine", "--remove", "gone", "nolabel", *where])
    assert done.exit_code == 0
    assert done.stderr == "playhead: run 'mine' had no label 'nolabel'\n"
    assert done.stdout == "kept\n"
