"""`playhead record --replace`: the recording of that name goes, with what plays it, and nothing else does."""

import time
from pathlib import Path

import pytest

from playhead.proxy.run.replace_recording import find_replaced, remove_replaced
from playhead.store import RunInfo, RunOpen, Store, StoreError
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        for name in ("mine", "mine", "other"):
            record_run(opened, name, [ask()])
    return folder


async def _play(
    store: Store, tape: RunInfo, *, seal: bool = True, resumes: bool = False
) -> RunInfo:
    info = await store.runs.create(
        tape.id, mode="playback", at_ns=time.time_ns(), parent=tape, resumes=resumes
    )
    return await store.runs.seal(info, reason="test", at_ns=time.time_ns()) if seal else info


async def test_run_and_what_plays_it_are_removed(store: Path) -> None:
    """`mine~2` is another recording."""
    with Store.open(store) as opened:
        await _play(opened, opened.runs.get("mine"))
        found = find_replaced(opened, "mine")
        assert [run.id for run in found] == ["mine", "mine@1"]
        remove_replaced(opened, found)
        assert [run.id for run in opened.runs.all()] == ["mine~2", "other"]


def test_name_that_is_free_replaces_nothing(store: Path) -> None:
    """Nor does one that is the beginning of another."""
    with Store.open(store) as opened:
        assert find_replaced(opened, "oth") == []
        remove_replaced(opened, [])
        assert len(opened.runs.all()) == 3


async def test_open_run_is_not_replaced(store: Path) -> None:
    """Nor one that is being played."""
    with Store.open(store) as opened:
        await _play(opened, opened.runs.get("mine"), seal=False)
        with pytest.raises(RunOpen, match="'mine@1' has not ended"):
            find_replaced(opened, "mine")


async def test_run_that_was_resumed_is_not_replaced(store: Path) -> None:
    """What went on with it has sent effects, which are recorded nowhere else."""
    with Store.open(store) as opened:
        await _play(opened, opened.runs.get("mine"), resumes=True)
        with pytest.raises(StoreError, match="'mine@1' has sent requests of its own"):
            find_replaced(opened, "mine")


def test_pinned_run_is_not_replaced(store: Path) -> None:
    """Somebody said that it is to be kept."""
    with Store.open(store) as opened:
        opened.runs.mark(
            opened.runs.get("mine"),
            lambda _: Event(EventKind.MARKED, 1, {"labels": (), "pinned": True, "by": "x"}),
        )
        with pytest.raises(StoreError, match="'mine' is pinned") as refused:
            find_replaced(opened, "mine")
        assert "playhead pin --off mine" in refused.value.hint


def test_recording_takes_the_place_of_the_old_one(store: Path) -> None:
    """Without the flag it gets another name, which is said on stderr."""
    given = ("record", "--run", "mine", "--store", store, "-q")
    done = playhead(*given, "--", "true")
    assert "recorded as 'mine~3'" in done.stderr
    done = playhead(*given, "--replace", "--", "true")
    assert done.returncode == 0
    assert "replaced the recording 'mine'" in done.stderr
    assert "recorded as" not in done.stderr
    with Store.open(store, readonly=True) as opened:
        assert {run.id for run in opened.runs.all()} == {"mine", "mine~2", "mine~3", "other"}
        assert opened.runs.get("mine").exchanges == 0


def test_command_that_is_not_there_replaces_nothing(store: Path) -> None:
    """The old recording is the only one then."""
    done = playhead(
        *("record", "--run", "mine", "--store", store, "--replace"), "--", "no-such-command"
    )
    assert done.returncode == 2
    assert "cannot start 'no-such-command'" in done.stderr
    with Store.open(store, readonly=True) as opened:
        assert opened.runs.get("mine").exchanges == 1


def test_replace_needs_a_name(store: Path) -> None:
    """By default a run is named by its time, so that there is nothing to replace."""
    done = playhead("record", "--store", store, "--replace", "--", "true")
    assert done.returncode == 2
    assert "--replace needs --run" in done.stderr


@pytest.mark.parametrize("flag", [("--run", "mine"), ("--run=mine",)])
def test_a_name_behind_the_command_is_the_commands(tmp_path: Path, flag: tuple[str, ...]) -> None:
    """It may be its own; who meant the run is told what that is called."""
    done = playhead("record", "--store", tmp_path / "store", "--", "true", *flag)
    assert "`--run` behind `--` went to the command, and this run is called 'true-" in done.stderr
    named = playhead("record", "--run", "mine", "--store", tmp_path / "store", "--", "true", *flag)
    assert "went to the command" not in named.stderr
