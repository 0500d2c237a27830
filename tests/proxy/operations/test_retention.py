"""Runs that go: by age, label and pin; with their bytes, for good."""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.config import Config
from playhead.proxy.cli import cli
from playhead.proxy.operations.open_store import open_store
from playhead.store import RunInfo, Store, StoreUnwritable, UnknownRun
from playhead.store.lmdb.lock import hold_shared
from playhead.store.maintenance.removal import BY_RUN, Removal
from playhead.tape.exchange import Chunk, RedactedText, RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.other_process import opened_elsewhere
from playhead.timeline.checks.integrity import verify_run

DAY = 86_400 * 10**9
OLD = 100 * DAY


def run(store: Path, *arguments: str, keep: str = "30d") -> Result:
    """Run a command, with a configuration that keeps runs for so long."""
    config = store.parent / "playhead.yaml"
    config.write_text(
        f"store: {store}\nretention: {{keep: {keep}, labels: {{incident: forever}}}}\n"
    )
    return CliRunner().invoke(cli, [*arguments, "-c", str(config)])


async def _record(
    store: Store, name: str, ended_ns: int, *, mark: str = "", parent: RunInfo | None = None
) -> RunInfo:
    mode = "record" if parent is None else "playback"
    info = await store.runs.create(
        name, mode=mode, at_ns=1, parent=parent, agent=RedactedText(f"agent {mark}")
    )
    body = f"said {mark} ".encode() * 50
    spool = store.bodies.spool()
    spool.write(body * 40, Chunk(1, len(body) * 40))
    spilled = await spool.keep()
    for number, response in enumerate(
        (make_response(body), replace(make_response(b""), spilled=spilled)), 1
    ):
        exchange = make_exchange(
            number,
            f"POST https://api.test/{mark}",
            kind=RequestClass.EFFECT,
            body=body,
            response=response,
        )
        store.events.append(info.number, make_intent(exchange))
        await store.exchanges.save(info.number, partial(make_record, exchange))
    return await store.runs.seal(info, reason="done", at_ns=ended_ns)


def _make(path: Path, **ended: int) -> None:
    """Make runs that ended so many days ago."""
    with Store.open(path) as store:
        for name, days in ended.items():
            asyncio.run(_record(store, name, time.time_ns() - days * DAY, mark=f"mark-{name}"))


def _age(path: Path) -> None:
    """Make body files as old as they would be."""
    for file in path.glob("bodies/??/*"):
        os.utime(file, (1, 1))


def _bytes(path: Path) -> bytes:
    return b"".join(data for _, data in kept_bytes(path))


def names(path: Path) -> list[str]:
    """List the runs of a store."""
    with Store.open(path, readonly=True) as store:
        return [one.id for one in store.runs.all()]


def test_old_runs_go_and_young_ones_stay(tmp_path: Path) -> None:
    """Said first, then done; what stays is sound, and the space comes back."""
    path = tmp_path / "s"
    _make(path, old=40, young=1)
    _age(path)
    said = run(path, "gc", "--dry-run")
    assert "would be deleted: old: ended 40d ago, retention.keep is 30d" in said.output
    assert names(path) == ["old", "young"]
    done = json.loads(run(path, "gc", "--json").output)
    assert [(one["run"], one["goes"]) for one in done["runs"]] == [("old", True), ("young", False)]
    assert done["file_bytes"] > 0
    assert done["waiting"] == ""
    assert names(path) == ["young"]
    kept = _bytes(path)
    assert b"mark-old" not in kept
    assert b"mark-young" in kept
    with Store.open(path, readonly=True) as store:
        found = verify_run(store, store.runs.get("young"))
        assert (found.exchanges, found.problems) == (2, ())


def test_what_comes_after_a_run_was_deleted_is_refused(tmp_path: Path) -> None:
    """As the late answer to an effect: no row stands for a run that nobody lists."""
    path = tmp_path / "s"
    with Store.open(path) as store:
        info = asyncio.run(_record(store, "gone", 1))
        store.removal.delete([info])

        async def late() -> None:
            await store.exchanges.save(info.number, lambda: make_record(make_exchange(9)))

        with pytest.raises(StoreUnwritable, match="deleted or archived meanwhile"):
            asyncio.run(late())
        with pytest.raises(StoreUnwritable, match="deleted or archived meanwhile"):
            store.events.append_blocking(
                info, Event(EventKind.ANNOTATED, 1, {"text": "late", "seq": 0})
            )
        database = store._database
        with database.reading() as transaction:
            tables = [database.tables[name] for name in BY_RUN if name in database.tables]
            left = {transaction.stat(table)["entries"] for table in tables}
    assert left == {0}


def test_labels_and_pins_keep_a_run(tmp_path: Path) -> None:
    """They are given, listed, taken away; each is an event, and the run stays sound."""
    path = tmp_path / "s"
    _make(path, labelled=40, pinned=40, bare=40)
    assert run(path, "label", "labelled", "incident", "team/pay").output == "incident team/pay\n"
    assert run(path, "pin", "pinned").output == "pinned\n"
    listed = json.loads(run(path, "runs", "--json").output)
    assert [(one["labels"], one["pinned"]) for one in listed] == [
        (["incident", "team/pay"], False),
        ([], True),
        ([], False),
    ]
    assert "incident team/pay" in run(path, "runs").output
    run(path, "gc")
    assert names(path) == ["labelled", "pinned"]
    with Store.open(path, readonly=True) as store:
        assert verify_run(store, store.runs.get("labelled")).problems == ()
    assert run(path, "label", "labelled", "incident", "--remove").output == "team/pay\n"
    assert run(path, "pin", "pinned", "--off").output == "not pinned\n"
    run(path, "gc")
    assert names(path) == []


def test_a_secret_in_a_label_is_not_stored(tmp_path: Path) -> None:
    """Its placeholder is; the label is taken away by either."""
    path = tmp_path / "s"
    _make(path, one=1)
    secret = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    stored = run(path, "label", "one", f"l/{secret}", "incident").output.split()
    assert stored[0] == "incident"
    assert stored[1].startswith("l/ghp_")
    assert secret not in stored[1]
    for file in path.iterdir():
        assert file.is_dir() or secret.encode() not in file.read_bytes()
    assert run(path, "verify", "--secrets").output == "no secrets in 1 run\n"
    assert run(path, "label", "one", "--remove", f"l/{secret}").output == "incident\n"


def test_what_is_no_label_is_refused(tmp_path: Path) -> None:
    """It would have to be quoted everywhere."""
    _make(tmp_path / "s", one=1)
    made = run(tmp_path / "s", "label", "one", "two words")
    assert isinstance(made.exception, PlayheadError)
    assert "'two words' is no label" in str(made.exception)


def test_a_body_that_two_runs_share_goes_with_the_last(tmp_path: Path) -> None:
    """And one that was put there just now stays, whoever needs it."""
    path = tmp_path / "s"
    with Store.open(path) as store:
        for name, days in (("first", 40), ("second", 35), ("third", 1)):
            asyncio.run(_record(store, name, time.time_ns() - days * DAY, mark="same"))
    _age(path)
    run(path, "gc", keep="38d")
    assert len(list(path.glob("bodies/??/*"))) == 2
    run(path, "gc", keep="0s")
    assert names(path) == []
    assert list(path.glob("bodies/??/*")) == []
    _make(path, fresh=1)
    run(path, "gc", keep="0s")
    assert len(list(path.glob("bodies/??/*"))) == 2


def test_a_run_is_erased_for_good(tmp_path: Path) -> None:
    """With what plays it; not a byte of it is left in any file, and the others are sound."""
    path = tmp_path / "s"
    _make(path, secret=1, other=1)
    with Store.open(path) as store:
        tape = store.runs.get("secret")
        asyncio.run(_record(store, "secret", time.time_ns(), mark="mark-secret", parent=tape))
    assert b"mark-secret" in _bytes(path)
    asked = CliRunner().invoke(cli, ["erase", "secret", "--store", str(path)], input="n\n")
    assert "erase secret, secret@1?" in asked.output
    assert names(path) == ["secret", "other", "secret@1"]
    assert run(path, "erase", "secret", "--yes").output == "erased: secret, secret@1\n"
    kept = _bytes(path)
    assert b"mark-secret" not in kept
    assert b"secret" not in kept
    with Store.open(path, readonly=True) as store:
        assert verify_run(store, store.runs.get("other")).problems == ()
    with Store.open(path) as store:
        again = asyncio.run(_record(store, "secret", time.time_ns(), mark="anew"))
        assert again.id == "secret"


def test_nothing_is_erased_while_another_has_the_store_open(tmp_path: Path) -> None:
    """Its bytes could not be taken out of the file; whoever has it open is named."""
    path = tmp_path / "s"
    _make(path, one=1)
    with opened_elsewhere(path) as pid:
        made = run(path, "erase", "one", "--yes")
    assert isinstance(made.exception, PlayheadError)
    assert f"process {pid} " in str(made.exception)
    assert names(path) == ["one"]


def test_gc_beside_a_process_deletes_and_leaves_the_file_as_large(tmp_path: Path) -> None:
    """The pages are used again; the file shrinks another time."""
    path = tmp_path / "s"
    _make(path, old=40, young=1)
    with opened_elsewhere(path) as pid:
        done = json.loads(run(path, "gc", "--json").output)
    assert f"process {pid} " in done["waiting"]
    assert done["after_bytes"] == done["before_bytes"]
    assert names(path) == ["young"]


@pytest.mark.parametrize("copy", [True, False])
def test_a_compaction_that_was_killed_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: bool
) -> None:
    """The next `gc` deletes nothing: it shrinks the file and removes the copy, if the kill left one."""
    path = tmp_path / "s"
    _make(path, old=40, young=1)
    if copy:
        with monkeypatch.context() as patch:
            patch.setattr("playhead.store.maintenance.compact.swap_in", _killed)
            patch.setattr("shutil.rmtree", lambda *_, **__: None)
            run(path, "gc")
    else:
        monkeypatch.setattr(
            "playhead.store.maintenance.removal._LEAST_UNUSED_BYTES", 1, raising=False
        )
        with monkeypatch.context() as patch:
            patch.setattr("playhead.proxy.operations.retention.compact", _killed)
            run(path, "gc")
    assert names(path) == ["young"]
    assert (path / "compact.lmdb").exists() == copy
    done = json.loads(run(path, "gc", "--json").output)
    assert [one["goes"] for one in done["runs"]] == [False]
    assert done["after_bytes"] < done["before_bytes"]
    assert not (path / "compact.lmdb").exists()
    again = json.loads(run(path, "gc", "--json").output)
    assert again["after_bytes"] == again["before_bytes"]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("change", ["pinned", "played"])
def test_what_is_pinned_or_played_while_gc_looks_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Another process may do that between the sentence and the deletion; it is told that the run stays."""
    path = tmp_path / "s"
    _make(path, old=40)
    delete = Removal.delete

    def slow(removal: Removal, runs: Sequence[RunInfo]) -> int:
        store = Store(removal._database)
        tape = store.runs.get("old")
        if change == "pinned":
            event = Event(EventKind.MARKED, 1, {"labels": (), "pinned": True})
            store.runs.mark(tape, lambda _: event)
        else:
            asyncio.run(_playing(store, tape))
        return delete(removal, runs)

    monkeypatch.setattr(Removal, "delete", slow)
    said = run(path, "gc")
    assert "old: it was marked or archived, or is played" in said.output
    assert names(path)[0] == "old"


async def _playing(store: Store, tape: RunInfo) -> None:
    await store.runs.create(tape.id, mode="playback", at_ns=1, parent=tape)


def test_marks_of_two_processes_do_not_undo_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was pinned while it got a label is still pinned: else the next `gc` takes it."""
    path = tmp_path / "s"
    _make(path, one=1)
    count = 0

    def slow(config: Config, *, readonly: bool = False) -> Store:
        nonlocal count
        count += 1
        if count == 2:  # it has read the run, and is about to write
            assert run(path, "pin", "one").exit_code == 0
        return open_store(config, readonly=readonly)

    monkeypatch.setattr("playhead.proxy.operations.retention.open_store", slow)
    run(path, "label", "one", "incident")
    with Store.open(path, readonly=True) as store:
        assert (store.runs.get("one").labels, store.runs.get("one").pinned) == (("incident",), True)


def test_nobody_comes_in_while_a_run_is_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording that began between two of its steps could lose a body, and keep the bytes from going."""
    path = tmp_path / "s"
    _make(path, one=1)
    tried: list[str] = []

    def try_it() -> None:
        with pytest.raises(PlayheadError, match="this process"):
            hold_shared(path, readonly=False, patience_s=0)
        tried.append("yes")

    erase, remove = Removal.erase, Removal.remove_unneeded_files

    def erasing(removal: Removal, runs: Sequence[RunInfo]) -> int:
        try_it()
        return erase(removal, runs)

    def removing(removal: Removal, before_s: float) -> int:
        try_it()
        return remove(removal, before_s)

    monkeypatch.setattr(Removal, "erase", erasing)
    monkeypatch.setattr(Removal, "remove_unneeded_files", removing)
    assert run(path, "erase", "one", "--yes").output == "erased: one\n"
    assert len(tried) == 2
    hold_shared(path, readonly=False, patience_s=0).close()


def test_an_erasure_that_was_killed_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The run is off the list, its bytes are not out of the files: whoever opens the store is told, and `gc` does it."""
    path = tmp_path / "s"
    _make(path, secret=1, other=1)
    with monkeypatch.context() as patch:

        def kill(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("playhead.proxy.operations.retention.take_bytes_out", kill)
        run(path, "erase", "secret", "--yes")
    assert names(path) == ["other"]
    assert b"mark-secret" in _bytes(path)
    assert "its old bytes may still be in the files" in caplog.text
    assert run(path, "gc").exit_code == 0
    assert b"mark-secret" not in _bytes(path)
    caplog.clear()
    with Store.open(path, readonly=True) as store:
        assert verify_run(store, store.runs.get("other")).problems == ()
    assert not caplog.text


def test_an_erasure_says_nothing_of_bytes_that_it_takes_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is opened again in between; the warning is for whoever finds it so later."""
    path = tmp_path / "s"
    _make(path, secret=1, other=1)
    assert run(path, "erase", "secret", "--yes").exit_code == 0
    assert not caplog.text


def test_a_run_that_is_open_is_not_erased(tmp_path: Path) -> None:
    """Nor is one that is not there."""
    path = tmp_path / "s"
    with Store.open(path) as store:

        async def begin() -> None:
            await store.runs.create("open", mode="record", at_ns=1)

        asyncio.run(begin())
        with Store.open(tmp_path / "two"):
            pass
        made = CliRunner().invoke(
            cli, ["erase", "nobody", "--yes", "--store", str(tmp_path / "two")]
        )
        assert isinstance(made.exception, UnknownRun)
        info = store.runs.get("open")
        with pytest.raises(PlayheadError, match="has not ended"):
            store.removal.delete([info])


def test_the_space_of_runs_that_went_is_used_again(tmp_path: Path) -> None:
    """Without compaction, too: rounds of recording and deleting do not grow the file for ever."""
    path = tmp_path / "s"
    sizes = []
    with Store.open(path) as store:
        for _ in range(12):
            made = [asyncio.run(_record(store, f"r{n}", OLD, mark=f"m{n}")) for n in range(5)]
            store.removal.delete(made)
            sizes.append((path / "log.lmdb" / "data.mdb").stat().st_size)
    assert sizes[-1] == sizes[4]
