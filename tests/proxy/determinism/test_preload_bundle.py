"""What the log of a recording has of its clock and randomness, and what a replay makes of that."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.proxy.determinism import PreloadBundle, events, keeping
from playhead.proxy.determinism import journal_keeper as keeper
from playhead.store import RunStatus, Store
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.preload_bundles import new_kit, run

PROGRAM = "import sys, time, uuid; print([time.time_ns() for _ in range(3)], uuid.uuid4(), flush=True); sys.stdin.read()"


async def test_the_journal_is_in_the_log_while_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a replay of what was never ended tells the same, and the receipt says what it stands on."""
    monkeypatch.setattr(keeper, "PERIOD_S", 0.01)
    with Store.open(tmp_path / "store") as store:
        tape = await store.runs.create("tape", mode="record", at_ns=1)
        kept = asyncio.Event()

        async def append(run: int, event: Event) -> None:
            await store.events.append_durably(run, event)
            if event.kind is EventKind.JOURNAL:
                kept.set()

        preload_bundle = new_kit()
        command = [sys.executable, "-c", PROGRAM]
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            *command, env=preload_bundle.variables({}), stdin=pipe, stdout=pipe
        )
        async with keeping(preload_bundle, lambda: tape.number, append), asyncio.timeout(20):
            await kept.wait()
        program.kill()
        said, _ = await program.communicate()
        preload_bundle.close()

        again = PreloadBundle.for_replay("full", store, replace(tape, status=RunStatus.RECOVERED))
        assert again is not None
        assert "did not come to its end" in again.missing
        assert run(again, *command).out.encode() == said


async def test_a_replay_that_is_to_repeat_more_than_was_recorded_says_so(tmp_path: Path) -> None:
    """It repeats what there is."""
    with Store.open(tmp_path / "store") as store:
        tape = await store.runs.create("tape", mode="record", at_ns=1)
        preload_bundle = PreloadBundle.for_recording("seed", {})
        assert preload_bundle is not None
        for event in events(preload_bundle, ["agent"]):
            await store.events.append_durably(tape.number, event)
        preload_bundle.close()
        for asked, missing in {
            None: "",
            "seed": "",
            "full": "full was asked for, but the tape was recorded with seed",
        }.items():
            replayed = PreloadBundle.for_replay(asked, store, tape)
            assert replayed is not None
            assert (replayed.basis.level, replayed.missing) == ("seed", missing)
            replayed.close()


async def test_a_replay_that_covers_less_than_the_recording_says_so(tmp_path: Path) -> None:
    """As where the C compiler is gone, or the library is switched off now."""
    preload_bundle = new_kit(libc=True)
    preload_bundle.basis = replace(preload_bundle.basis, libc=True)
    with Store.open(tmp_path / "store") as store:
        tape = await store.runs.create("tape", mode="record", at_ns=1)
        for event in events(preload_bundle, ["agent"]):
            await store.events.append_durably(tape.number, event)
        preload_bundle.close()
        replayed = PreloadBundle.for_replay(None, store, tape, library=False)
        assert replayed is not None
        replayed.close()
        assert "LD_PRELOAD" not in replayed.variables({})
        assert replayed.missing.endswith(
            "are not now: it is switched off; libc_preload: auto loads it"
        )
