"""`playhead resume`: what is refused before anything runs, and what is said first."""

import asyncio
import shutil
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.proxy.run_again.resume import announce, find_crash
from playhead.store import RunInfo, Store
from playhead.store.encryption.key import StoreKey
from playhead.store.tables.run_info import Owner
from playhead.tape.exchange import RequestClass, Seq, WebSocketSummary
from playhead.tape.policy.resume import UnknownEffect
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.resume_cases import WORDS, Words
from playhead.timeline.lookup.crashed_runs import read_crash

_DEAD = Owner(1 << 22, 1.0)
"""A process that there cannot be: Linux gives no such number."""


def plant_resumed(store: Store, parent: RunInfo, *, intent: bool = True) -> RunInfo:
    """Write a run that resumes another, and has ended."""

    async def write() -> RunInfo:
        run = await store.runs.create(
            parent.id,
            mode="playback",
            at_ns=time.time_ns(),
            parent=parent,
            rules=b"some",
            resumes=True,
        )
        if intent:
            data = {"seq": 1, "method": "POST", "url": "https://a.test/", "request_class": "effect"}
            row = {**data, "fingerprint": b"", "key": None}
            store.events.append(run.number, Event(EventKind.INTENT, 1, row))
        return await store.runs.seal(run, reason="the command ended with 0", at_ns=2)

    return asyncio.run(write())


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store with a run of each kind, one whose archive is gone, and one under a key."""
    folder = tmp_path_factory.mktemp("words")
    here, away, encrypted = (folder / name for name in ("here", "away", "encrypted"))
    Store.open(encrypted, key=StoreKey(bytes(range(32)), "one")).close()
    with Store.open(away) as store:
        record_run(store, "archived", [ask()])
    file = folder / "playhead.yaml"
    file.write_text(f"retention: {{archive: {folder / 'archive'}}}\nstore: {away}\n")
    done = playhead("archive", "-c", file, "archived")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder / "archive")
    with Store.open(here) as store:
        ended = record_run(store, "ended", [ask()])
        asyncio.run(_plant_playbacks(store, ended))
        own, store.runs.owner = store.runs.owner, _DEAD
        noted = {"child_exit": 0, "command": ["touch", "planted"]}
        record_run(store, "crashed", [ask(), ask(b"2")], seal=False, noted=noted)
        gap = record_run(store, "gap", [ask()], seal=False)
        store.events.append(gap.number, Event(EventKind.GAP, 1, {"exchanges": 1}))
        resumed = record_run(store, "resumed", [ask()], seal=False)
        store.runs.owner = own
        plant_resumed(store, resumed)
    with Store.open(here) as store:  # which recovers them
        store.runs.owner = replace(
            store.runs.owner, file=""
        )  # who lives longer than the store is open
        record_run(store, "open", [ask()], seal=False)
    return {"archived": away, "another key": encrypted, "": here}


async def _plant_playbacks(store: Store, tape: RunInfo) -> None:
    for _ in range(3):
        run = await store.runs.create(tape.id, mode="playback", at_ns=1, parent=tape)
        await store.runs.seal(run, reason="a test", at_ns=2)


@pytest.mark.parametrize("case", WORDS, ids=lambda case: case.name)
def test_misused_words_are_refused_before_anything_runs(
    case: Words,
    stores: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each with what is missing and how to supply it; nothing is run, and no run is made."""
    monkeypatch.chdir(tmp_path)
    store = next(path for name, path in stores.items() if not name or name in case.name)
    with pytest.raises(SystemExit) as ended:
        main(["resume", "--store", str(store), *case.words])
    said = " ".join(capfd.readouterr().err.split())
    assert ended.value.code == 2, said
    assert all(text in said for text in case.says), said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_what_is_executed_is_said_first(stores: dict[str, Path]) -> None:
    """How much comes from the tape, that effects are executed after it, and which may have happened."""
    with Store.open(stores[""], readonly=True) as store:
        crash = find_crash(store, "crashed")
    unknown = (
        UnknownEffect("crashed", Seq(crash.run.number), "POST", "https://a.test/", b"", None),
    )
    crash = crash._replace(known=type(crash.known)(unknown))
    told = "\n".join(announce("crashed", crash, ["python", "agent.py"]))
    for text in (
        "resumes 'crashed', whose process died",
        "from the tape: 2 exchanges; nothing of them is sent again",
        "effects ARE EXECUTED",
        "outcome unknown: POST https://a.test/",
        "with NO idempotency key); it waits at a gate, see: playhead gates",
        "command: python agent.py",
        "recorded with, and not run: touch planted",
    ):
        assert text in told, (text, told)


def test_a_websocket_that_was_open_comes_from_the_tape(tmp_path: Path) -> None:
    """It has no outcome, and is played as far as its messages go: it counts as what the receipt calls served."""
    opened = make_exchange(2, websocket=WebSocketSummary(1, 3, None))

    async def save(run: RunInfo) -> None:
        store.events.append_made(run.number, partial(make_intent, opened))
        await store.exchanges.save(run.number, partial(make_record, opened, final=False))

    with Store.open(tmp_path) as store:
        store.runs.owner = _DEAD
        asyncio.run(save(record_run(store, "r", [ask()], seal=False)))
    with Store.open(tmp_path) as store:
        assert find_crash(store, "r").answered == 2


def test_what_was_answered_is_no_unknown_effect(tmp_path: Path) -> None:
    """Only an intent without an outcome is one; telemetry never is."""
    with Store.open(tmp_path) as store:
        store.runs.owner = _DEAD
        run = record_run(store, "r", [ask()], kind=RequestClass.EFFECT, seal=False)
        for seq, kind in ((2, "effect"), (3, "telemetry"), (4, "inference")):
            data = {"seq": seq, "method": "POST", "url": "https://a.test/", "key": None}
            row = {**data, "request_class": kind, "fingerprint": b"f"}
            store.events.append(run.number, Event(EventKind.INTENT, 1, row))
    with Store.open(tmp_path) as store:
        crash = read_crash(store, store.runs.get("r"))
    assert [one.seq for one in crash.unknown] == [2]
    assert crash.parallel


@pytest.mark.parametrize(
    "moves",
    [
        ["archive resumed@1"],
        ["archive resumed@1", "show resumed@1"],
        ["reindex resumed@1", "archive resumed@1"],
        ["erase --yes resumed@1"],
        ["archive resumed@1", "erase --yes resumed@1"],
    ],
    ids=lambda moves: ", ".join(moves) if isinstance(moves, list) else None,
)
def test_what_a_resume_has_sent_is_not_sent_again(tmp_path: Path, moves: list[str]) -> None:
    """Wherever the run that resumed is by now."""
    file = tmp_path / "playhead.yaml"
    file.write_text(
        f"retention: {{archive: {tmp_path / 'archive'}}}\nstore: {tmp_path / 'store'}\n"
    )
    with Store.open(tmp_path / "store") as store:
        store.runs.owner = _DEAD
        resumed = record_run(store, "resumed", [ask()], seal=False)
    with Store.open(tmp_path / "store") as store:  # which recovers it
        plant_resumed(store, store.runs.reload(resumed))
    for move in moves:
        verb, *words = move.split()
        done = playhead(verb, "-c", file, *words)
        assert done.returncode == 0, done.stderr
    done = playhead("resume", "-c", file, "--yes", "resumed", "--", "true")
    assert done.returncode == 2, done.stderr
    assert "would be sent again" in done.stderr


@pytest.mark.parametrize("erased", [False, True], ids=["with what resumed it", "without it"])
def test_what_a_resume_has_sent_is_not_sent_again_from_another_store(
    tmp_path: Path, erased: bool
) -> None:
    """The tape file says that the run was gone on with."""
    here, there, file = tmp_path / "here", tmp_path / "there", tmp_path / "r.tape"
    with Store.open(here) as store:
        store.runs.owner = _DEAD
        resumed = record_run(store, "resumed", [ask()], seal=False)
    with Store.open(here) as store:  # which recovers it
        plant_resumed(store, store.runs.reload(resumed))
    if erased:
        assert playhead("erase", "--store", here, "--yes", "resumed@1").returncode == 0
    for words in (
        ("export", "--store", here, "resumed", "--tape", file),
        ("import", "--store", there, file),
    ):
        done = playhead(*words)
        assert done.returncode == 0, done.stderr
    done = playhead("resume", "--store", there, "--yes", "resumed", "--", "true")
    assert done.returncode == 2, done.stderr
    assert "would be sent again" in done.stderr
