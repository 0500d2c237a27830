"""Runs as a tree: what plays a recording stands below it."""

from collections.abc import Mapping

from playhead.store import RunInfo
from playhead.tape.exchange import RunId
from playhead.timeline.show.run_tree import render_tree


def run(number: int, name: str, parent: int = 0) -> RunInfo:
    """A run, and what it plays."""
    mode = "playback" if parent else "record"
    return RunInfo(
        number=number,
        id=RunId(name),
        mode=mode,
        created_ns=number,
        parent=RunId("a") if parent else None,
        parent_number=parent,
        labels=("ok",) if number == 1 else (),
    )


def test_replays_and_branches_stand_below_their_tape() -> None:
    """In their order, each with what it is."""
    runs = [run(1, "a"), run(2, "b"), run(3, "a@1", 1), run(4, "a@2", 1), run(5, "x@1", 9)]
    roles: Mapping[int, str] = {3: "replay", 4: "branch at 7"}
    lines = [line.split("  ") for line in render_tree(runs, lambda one: roles[one.number])]
    names = [line[0] or line[1] for line in lines]
    assert [name.split()[0] for name in names] == ["a", "a@1", "a@2", "b", "x@1"]
    text = "\n".join(render_tree(runs, lambda one: roles[one.number]))
    assert [word in text for word in ("replay", "branch at 7", "of a, which is gone", "ok")] == [
        True
    ] * 4
    assert all(len(line) <= 80 for line in text.splitlines())


def test_runs_that_resume_each_other_stand_one_below_the_other() -> None:
    """Each below the one that it goes on with."""
    runs = [run(1, "a"), run(2, "a@1", 1), run(3, "a@2", 2)]
    lines = list(render_tree(runs, lambda _: "resumed"))
    assert [f"{line[: len(line) - len(line.lstrip())]}{line.split()[0]}" for line in lines] == [
        "a",
        "  a@1",
        "    a@2",
    ]


def test_no_runs_are_no_lines() -> None:
    """Nothing is said of nothing."""
    assert list(render_tree([], lambda _: "")) == []
