"""`latest`, and the beginning of a name, stand for a run in every command that takes one."""

import asyncio
from pathlib import Path

import click
import pytest

from playhead.proxy.cli import main
from playhead.proxy.command_line.run_names import complete_name
from playhead.proxy.commands import COMMANDS
from playhead.proxy.commands.shared_options_and_output import RunName
from playhead.store import Store, StoreError, UnknownRun
from playhead.store.tables import runs
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.replays import write_replay

RUNS = ("mine", "mine", "mint", "other", "x@y")
"""Recordings, of which the second becomes `mine~2`."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names") / "store"
    with Store.open(folder) as opened:
        for name in RUNS:
            record_run(opened, name, [ask()])
    return folder


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mine", "mine"),  # its own name wins over longer ones
        ("mine~2", "mine~2"),
        ("mine~1", "mine~1"),  # which `replay` reads as the first
        ("mint", "mint"),
        ("o", "other"),
        ("oth", "other"),
        ("mine~", "mine~2"),
        ("latest", "x@y"),  # the newest recording
        ("x", "x@y"),
        ("nothing", "nothing"),  # the command says which names are near
        ("", ""),
    ],
)
def test_beginning_of_a_name_stands_for_the_run(store: Path, given: str, expected: str) -> None:
    """Where it is that of one."""
    with Store.open(store, readonly=True) as opened:
        assert complete_name(opened, given) == expected


def test_later_runs_of_a_name_do_not_make_it_ambiguous(store: Path) -> None:
    """`mine~2` was recorded as `mine`: the beginning of both is `mine`."""
    with Store.open(store, readonly=True) as opened:
        assert complete_name(opened, "mine"[:4]) == "mine"
        with pytest.raises(StoreError, match=r"'mi' begins the names of 2 runs: 'mine', 'mint'"):
            complete_name(opened, "mi")


def test_base_is_found_among_its_numbered_runs(tmp_path: Path) -> None:
    """No other name begins so."""
    with Store.open(tmp_path / "store") as opened:
        for name in ("task", "task", "task"):
            record_run(opened, name, [ask()])
        assert complete_name(opened, "ta") == "task"


def test_a_run_named_latest_is_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a store that has one from before: the name of a run wins."""
    monkeypatch.setattr(runs, "LATEST", "")
    with Store.open(tmp_path / "store") as opened:
        for name in ("latest", "newer"):
            record_run(opened, name, [ask()])
        assert complete_name(opened, "latest") == "latest"


@pytest.mark.parametrize("name", ["latest", "x@1", "--", "y~2"])
def test_a_run_under_a_name_that_is_reserved_now_can_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Stores have them from before."""
    folder = tmp_path / "store"
    monkeypatch.setattr(runs, "LATEST", "")
    with Store.open(folder) as opened:
        record_run(opened, name, [ask()])
    for words in (("show",), ("label",), ("erase", "--yes")):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--store", str(folder), "--", name])
        assert ended.value.code == 0, capfd.readouterr().err


def test_no_run_can_be_named_latest(tmp_path: Path) -> None:
    """As one of a tape file may be: it gets the next name."""
    with Store.open(tmp_path / "store") as opened:
        assert record_run(opened, "latest", [ask()]).id == "latest~2"
        assert complete_name(opened, "latest") == "latest~2"


PLAYED = "playing 'mine~2', the newest recording of 'mine' with an exchange; others: 'mine'"
MEANT = "this is the run 'mine' itself; the newest recording of that name, which `replay mine` plays, is 'mine~2'"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("show mine", MEANT),
        ("receipt mine", MEANT),
        ("export mine --tape out.tape", MEANT),
        ("diff mine other", MEANT),
        ("label mine", MEANT),
        ("branch mine --at 99 -- true", PLAYED),
        ("ask mine 99", PLAYED),
        # whoever names the other one, or this one alone, knows
        ("diff mine mine~2", ""),
        ("show mine~1", ""),
        ("show mine~2", ""),
        ("show other", ""),
        ("show latest", ""),
    ],
)
def test_it_is_said_which_recording_of_a_name_is_meant(
    line: str,
    said: str,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A command that plays takes the newest, as `replay`; one that looks takes the run of this name."""
    monkeypatch.chdir(tmp_path)
    command, *words = line.split()
    with pytest.raises(SystemExit):
        main([command, "--store", str(store), *words])
    shown = capfd.readouterr().err
    assert ("itself" in shown or "playing" in shown) == bool(said)
    assert said in shown
    assert "unknown run" not in shown


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mien", "nearest: mint, mine, mine~2; `playhead runs` lists all"),
        ("MINT", "nearest: mint, mine, mine~2; `playhead runs` lists all"),
        ("nosuch", "`playhead runs` lists all"),  # nothing that is unlike it
        ("mine@9", "nearest: mine, mine@1, mine~2; `playhead runs` lists all"),
    ],
)
def test_an_unknown_name_is_answered_with_those_that_are_like_it(
    name: str, hint: str, tmp_path: Path
) -> None:
    """Playbacks, which cannot be played, only where one was named."""
    with Store.open(tmp_path / "store") as opened:
        tape, *_ = (record_run(opened, one, [ask()]) for one in ("mine", "mine", "mint", "other"))
        asyncio.run(write_replay(opened, tape, []))
        with pytest.raises(UnknownRun) as caught:
            opened.runs.get(name)
    assert caught.value.hint == hint


def test_in_an_empty_store_no_name_is_near(tmp_path: Path) -> None:
    """It says that there are none."""
    with Store.open(tmp_path / "store") as opened, pytest.raises(UnknownRun) as caught:
        opened.runs.get("mine")
    assert caught.value.hint == "the store holds no runs yet"


_NAMES = {"run", "runs", "first", "second", "good"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_argument_that_is_a_run_is_read_so(command: click.Command) -> None:
    """But in containers, where nobody types it."""
    wanted = [
        one for one in command.params if isinstance(one, click.Argument) and one.name in _NAMES
    ]
    if not command.hidden:
        assert [one.name for one in wanted if not isinstance(one.type, RunName)] == []


@pytest.mark.parametrize(
    "words",
    [
        ("show", "oth"),
        ("show", "latest"),
        ("receipt", "oth"),
        ("effects", "oth"),
        ("diff", "oth", "mint"),
        ("cost", "oth", "min"),
        ("verify", "oth"),
        ("note", "oth"),
        ("label", "oth"),
        ("profiles", "test", "oth"),
        ("policy", "--with", "playhead.yaml", "oth", "latest"),
        ("export", "oth", "--tape", "out.tape"),
    ],
    ids=" ".join,
)
def test_commands_take_beginnings(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    """Of each module of commands one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playhead.yaml").write_text("{}")
    given = ["mint" if word == "min" else word for word in words]
    with pytest.raises(SystemExit):
        main([given[0], "--store", str(store), *given[1:]])
    said = capfd.readouterr()
    assert "unknown run" not in said.err
    assert "Usage" not in said.err


def test_erase_with_yes_takes_whole_names_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked whether the run is the one that is meant."""
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        record_run(opened, "other", [ask()])
    for name in ("oth", "latest"):
        with pytest.raises(SystemExit) as ended:
            main(["erase", "--store", str(folder), "--yes", name])
        assert ended.value.code == 2
        assert f"unknown run {name!r}" in capfd.readouterr().err
    with Store.open(folder, readonly=True) as opened:
        assert opened.runs.find("other") is not None


def test_ambiguous_beginning_is_an_error_that_lists_the_runs(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And says what to do."""
    with pytest.raises(SystemExit) as ended:
        main(["show", "--store", str(store), "m"])
    assert ended.value.code == 2
    said = capfd.readouterr().err
    assert "'mine', 'mint'" in said
    assert "hint: " in said
