"""Programs that are tried: bounded, with all they start, and told of by a file where that is needed."""

import json
import os
from pathlib import Path

from playhead.proxy.doctor.run_probe import (
    Outcome,
    ProbeRun,
    count_ended,
    load_outcomes,
    main,
    run_probes,
    save_probe_runs,
)

HERE = dict(os.environ)


def shell(script: str, **more: object) -> ProbeRun:
    return ProbeRun(("/bin/sh", "-c", script), HERE, **more)  # type: ignore[arg-type]  # fields of it


async def test_program_says_what_it_says_and_leaves_what_it_leaves() -> None:
    """Both of its outputs, and the files that were asked for."""
    given = shell(
        "cat given; echo err >&2; mkdir logs; echo x > logs/1; exit 3", files={"given": "g\n"}
    )
    outcomes = await run_probes(
        [given, ProbeRun(given.command, HERE, given.files, "logs/*")], parallel=2
    )
    assert outcomes[0] == Outcome(3, "g\nerr\n")
    assert outcomes[1] == Outcome(3, "g\nerr\n", "logs/1\nx\n")


async def test_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """A pipe that ends shows that nobody is left to write to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    hang = shell(f"exec 3> {pipe}; echo here >&3; sleep 99 & wait", timeout_s=0.5)
    (outcome,) = await run_probes([hang], parallel=1)
    assert outcome.exit_code is None
    os.set_blocking(reader, True)
    said = b"".join(iter(lambda: os.read(reader, 100), b""))
    os.close(reader)
    assert said == b"here\n"


async def test_time_for_all_ends_what_runs_and_begins_nothing_more() -> None:
    """Both are told from what did not end in its own time."""
    hang = shell("sleep 99")
    outcomes = await run_probes([hang, hang], parallel=1, within_s=0.3)
    assert [one.out_of_time for one in outcomes] == [True, True]
    (own,) = await run_probes([shell("sleep 99", timeout_s=0.1)], parallel=1, within_s=60)
    assert (own.exit_code, own.out_of_time) == (None, False)


async def test_program_that_cannot_be_started_stops_nothing_else() -> None:
    """It ends as a shell would have it."""
    ended: list[int] = []
    outcomes = await run_probes(
        [ProbeRun(("/nowhere/client",), HERE), shell("exit 0")],
        parallel=1,
        done=lambda: ended.append(1),
    )
    assert [outcome.exit_code for outcome in outcomes] == [127, 0]
    assert len(ended) == 2


async def test_no_more_run_at_once_than_may(tmp_path: Path) -> None:
    """Each finds the place of the one before it left."""
    script = f"mkdir {tmp_path}/here && rmdir {tmp_path}/here"
    outcomes = await run_probes([shell(script)] * 4, parallel=1)
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0, 0]


def test_files_tell_what_to_try_and_how_it_went(tmp_path: Path) -> None:
    """As it is done in a sandbox."""
    source, target = tmp_path / "tries", tmp_path / "outcomes"
    save_probe_runs([shell("echo hello"), shell("exit 2")], source)
    assert json.loads(source.read_text())[0]["command"][0] == "/bin/sh"
    assert count_ended(target) == 0
    assert main([str(source), str(target), "2", "inf"]) == 0
    assert count_ended(target) == 2
    assert load_outcomes(target) == [Outcome(0, "hello\n"), Outcome(2, "")]
