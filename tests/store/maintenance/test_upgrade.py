"""An upgrade of a store: every row once, a backup first, and a kill at any instant loses nothing."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from playhead.proxy.cli import main
from playhead.store import LogCorrupt, Store, StoreError, StoreKey, StoreTooNew, StoreUnwritable
from playhead.store.encryption.choose import choose_cipher
from playhead.store.lmdb import open as opening
from playhead.store.lmdb_keys import FORMAT, OLDEST_FORMAT
from playhead.store.maintenance import backup as backups
from playhead.store.maintenance import upgrade as module
from playhead.store.maintenance.compact import compact
from playhead.store.maintenance.rekey import rekey
from playhead.store.maintenance.upgrade import Batch, Rows, upgrade
from playhead.tape.records.codec import BadRecord
from playhead.tests.support import prepared
from playhead.tests.support.ciphers import plant as plant_run
from playhead.tests.support.ciphers import read_all
from playhead.tests.support.upgrading import AFTER, BEFORE, NEW, STEPS, install, plant, planted

KILLS = 60 if os.environ.get("PLAYHEAD_FULL") else 6
KEY = StoreKey(bytes(range(32)), "a test")
BOTH = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
BACKUP = f"backup-{FORMAT}"


def make(path: Path, key: StoreKey | None = None) -> tuple[object, ...]:
    """A store of the format of today, with rows that the steps change; give what is in it."""
    with Store.open(path, key=key) as store:
        plant_run(store)
        expected = read_all(store)
    plant(path, choose_cipher(key))
    return expected


def content(path: Path, key: StoreKey | None = None) -> tuple[object, ...]:
    """All that a store holds."""
    with Store.open(path, key=key, readonly=True) as store:
        return read_all(store)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Playhead that is two formats ahead."""
    install(monkeypatch.setattr)
    return monkeypatch


@pytest.fixture
def old(store_dir: Path) -> Path:
    """A store of the format of today."""
    make(store_dir)
    return store_dir


def test_there_is_a_step_for_every_format_that_was_released() -> None:
    """Whoever raises the format adds the step that leads to it."""
    assert sorted(module.STEPS) == list(range(OLDEST_FORMAT, FORMAT))


@BOTH
def test_every_row_goes_through_every_step_once(
    store_dir: Path, ahead: pytest.MonkeyPatch, key: StoreKey | None
) -> None:
    """And all else is as it was; progress ends with all of it."""
    with ahead.context() as today:
        today.setattr(opening, "FORMAT", FORMAT)
        expected = make(store_dir, key)
    seen: list[tuple[int, int]] = []
    copied: list[tuple[int, int]] = []
    done = upgrade(
        store_dir,
        key,
        copying=lambda *how: copied.append(how),
        progress=lambda *how: seen.append(how),
    )
    assert done == (FORMAT, NEW, store_dir / BACKUP)
    assert planted(store_dir, choose_cipher(key)) == AFTER
    assert content(store_dir, key) == expected
    assert copied[-1][0] == copied[-1][1]
    assert [one for one, _ in seen] == sorted(one for one, _ in seen)
    assert all(one <= of for one, of in seen)
    assert upgrade(store_dir, key) == (NEW, NEW, None)


@BOTH
def test_the_backup_is_a_store_of_the_format_before(
    store_dir: Path, ahead: pytest.MonkeyPatch, key: StoreKey | None
) -> None:
    """The Playhead that wrote it opens it, and finds everything, body files too."""
    with ahead.context() as today:
        today.setattr(opening, "FORMAT", FORMAT)
        expected = make(store_dir, key)
    data = (store_dir / "log.lmdb" / "data.mdb").read_bytes()
    upgrade(store_dir, key)
    kept = store_dir / BACKUP
    assert (kept / "log.lmdb" / "data.mdb").read_bytes() == data
    ahead.setattr(opening, "FORMAT", FORMAT)
    assert content(kept, key) == expected
    assert planted(kept, choose_cipher(key)) == BEFORE
    assert kept.stat().st_mode & 0o077 == 0


def test_a_store_of_an_earlier_format_asks_for_the_command(
    old: Path, ahead: pytest.MonkeyPatch
) -> None:
    """Readers, writers, and the work that copies rows as they are."""
    del ahead
    for work in (
        lambda: Store.open(old),
        lambda: Store.open(old, readonly=True),
        lambda: rekey(old, None, KEY),
        lambda: compact(old),
    ):
        with pytest.raises(StoreError, match=f"has format {FORMAT}; this version reads") as caught:
            work()
        assert "playhead upgrade" in caught.value.hint


def test_a_backup_that_is_there_is_not_made_again(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """If it is of exactly this store; one of another state stays beside the new one."""
    stop = ahead.context()
    with stop as broken:
        broken.setattr(module, "_run", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            upgrade(old, None)
    before = (old / BACKUP).stat().st_ino
    with ahead.context() as broken:
        broken.setattr(module, "_run", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            upgrade(old, None)
    assert (old / BACKUP).stat().st_ino == before
    (old / BACKUP / "log.lmdb" / "data.mdb").write_bytes(b"of another state")
    assert upgrade(old, None).backup == old / f"{BACKUP}-2"
    assert (old / BACKUP / "log.lmdb" / "data.mdb").read_bytes() == b"of another state"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_system_without_links_gets_copies(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """Of body files, and they count for the room that is needed."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    ahead.setattr(os, "link", refuse)
    upgrade(old, None)
    names = sorted(path.name for path in (old / "bodies").glob("??/*"))
    copied = sorted((old / BACKUP / "bodies").glob("??/*"))
    assert [path.name for path in copied] == names
    assert all(path.stat().st_nlink == 1 for path in copied)


def test_no_room_for_the_backup_changes_nothing(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """It is looked at before; how much is needed, and what to do."""
    data = (old / "log.lmdb" / "data.mdb").read_bytes()
    full = SimpleNamespace(f_frsize=4096, f_bavail=10)
    with ahead.context() as small:
        small.setattr(os, "statvfs", lambda _: full)
        with pytest.raises(StoreUnwritable, match=r"needs \d+ bytes, and 40960 are free") as caught:
            upgrade(old, None)
    assert "nothing was changed" in caught.value.hint
    assert (old / "log.lmdb" / "data.mdb").read_bytes() == data
    assert not list(old.glob("backup*"))
    upgrade(old, None)


def test_a_disk_that_fills_meanwhile_changes_nothing(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """The half of a backup goes."""

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with ahead.context() as small:
        small.setattr(os, "fsync", fail)
        with pytest.raises(StoreUnwritable, match="No space left") as caught:
            upgrade(old, None)
    assert "free space" in caught.value.hint
    assert not list(old.glob("backup*"))
    assert planted(old, choose_cipher(None)) == BEFORE


def test_a_copy_that_differs_is_no_backup(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """What was written is read again."""
    ahead.setattr(backups, "_digest", lambda _: b"another")
    with pytest.raises(StoreError, match="differs from the original"):
        upgrade(old, None)
    assert not list(old.glob("backup*"))
    assert planted(old, choose_cipher(None)) == BEFORE


def test_a_store_that_another_process_has_open_is_left_alone(
    old: Path, ahead: pytest.MonkeyPatch
) -> None:
    """Its name is given."""
    told = (
        "import sys; from pathlib import Path; from playhead.store import Store\n"
        "with Store.open(Path(sys.argv[1])): print('open', flush=True); input()"
    )
    del ahead
    with subprocess.Popen(
        [sys.executable, "-c", told, str(old)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match=rf"alone, and process {process.pid} \(.+\) has it"):
            upgrade(old, None)
        process.communicate(b"\n", timeout=20)
    assert not list(old.glob("backup*"))


def test_a_store_under_another_key_is_left_alone(
    store_dir: Path, ahead: pytest.MonkeyPatch
) -> None:
    """Before a backup is made."""
    with ahead.context() as today:
        today.setattr(opening, "FORMAT", FORMAT)
        make(store_dir, KEY)
    with pytest.raises(StoreError, match="but no key was given"):
        upgrade(store_dir, None)
    assert not list(store_dir.glob("backup*"))


@pytest.mark.parametrize("found", [1, FORMAT - 1])
def test_a_format_that_no_step_leads_from_is_refused(
    old: Path, ahead: pytest.MonkeyPatch, found: int
) -> None:
    """Before a backup is made; no command is named that would not help."""
    del ahead
    _put(old, b"format", b"%d" % found)
    with pytest.raises(StoreError, match=f"has format {found}; this version reads") as caught:
        upgrade(old, None)
    assert "no released version wrote that" in caught.value.hint
    assert not list(old.glob("backup*"))


def test_a_newer_store_is_refused(old: Path) -> None:
    """By this command, too."""
    _put(old, b"format", b"%d" % (FORMAT + 1))
    with pytest.raises(StoreTooNew, match=f"reads up to {FORMAT}"):
        upgrade(old, None)


def test_a_row_that_no_step_can_read_is_told_of(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """With the backup that is there; the store stays shut."""

    def fail(rows: Rows, at: bytes) -> Batch:
        raise BadRecord("a row of the table made-up: damaged")

    ahead.setattr(module, "STEPS", {**STEPS, FORMAT + 1: fail})
    with pytest.raises(LogCorrupt, match="cannot be upgraded: a row of the table") as caught:
        upgrade(old, None)
    assert str(old / BACKUP) in caught.value.hint
    with pytest.raises(StoreError, match="was interrupted"):
        Store.open(old)


def _put(path: Path, key: bytes, value: bytes) -> None:
    with opening.open_environment(path / "log.lmdb", readonly=False) as environment:
        meta = environment.open_db(b"meta", create=False)
        with environment.begin(write=True, db=meta) as transaction:
            transaction.put(key, value)


# ---- killed ----------------------------------------------------------------------------------------


class Killer:
    """A process that upgrades, and is killed when it has run so many lines."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] = prepared.start(
            [sys.executable, "-m", "playhead.tests.support.upgrading"],
            imports=prepared.FOR_OURS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, folder: Path, line: int) -> list[str]:
        """Give what it said."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(folder, line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().split()


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    made = Killer()
    yield made
    made.process.communicate(timeout=20)


KILLED = [str(-signal.SIGKILL)]


def test_a_kill_at_any_point_loses_nothing(store_dir: Path, killer: Killer) -> None:
    """The store is the old one, or shut until the same command has finished; no row is taken twice."""
    expected = make(store_dir)
    copy = Path(shutil.copytree(store_dir, store_dir.parent / "counted"))
    lines = int(killer(copy, 0)[0])
    source = random.Random(7)
    states = set()
    for number in range(KILLS):
        copy = Path(shutil.copytree(store_dir, store_dir.parent / str(number)))
        # Early in the backup, among the batches, before the last of them; then anywhere.
        line = [30, lines - 40, lines - 2, lines // 2, *[0] * KILLS][number]
        line = line or source.randrange(1, lines)
        assert killer(copy, line) == KILLED, line
        states.add(_check(copy, expected))
        if source.random() < 0.5:  # twice
            killer(copy, source.randrange(1, 60))
            states.add(_check(copy, expected))
        ended = killer(copy, 0)
        assert ended[-1] == "0", line
        assert planted(copy, choose_cipher(None)) == AFTER, line
        assert len(list(copy.glob("backup*"))) == 1, line
        with pytest.MonkeyPatch.context() as ahead:
            install(ahead.setattr)
            assert content(copy) == expected, line
        kept = next(copy.glob("backup*"))
        assert planted(kept, choose_cipher(None)) == BEFORE, line
    assert {"old", "half"} <= states


def _check(path: Path, expected: tuple[object, ...]) -> str:
    """Look at a store whose upgrade was killed, as both Playheads see it."""
    try:
        found = content(path)
    except StoreTooNew:
        assert len(list(path.glob(BACKUP))) == 1
    else:
        assert found == expected
        assert planted(path, choose_cipher(None)) == BEFORE
        return "old"
    refused: StoreError | None = None
    with pytest.MonkeyPatch.context() as ahead:
        install(ahead.setattr)
        try:
            assert content(path) == expected
        except StoreError as error:
            refused = error
    if refused is not None:
        assert "was interrupted" in str(refused)
        assert "playhead upgrade" in refused.hint
        return "half"
    assert planted(path, choose_cipher(None)) == AFTER
    return "new"


def test_work_that_needs_the_store_alone_is_refused_in_between(
    old: Path, ahead: pytest.MonkeyPatch
) -> None:
    """Else rows of both formats would be copied."""
    del ahead
    _put(old, b"format", b"%d" % NEW)
    _put(old, b"upgrade", b"\x80")
    for work in (
        lambda: Store.open(old),
        lambda: Store.open(old, readonly=True),
        lambda: rekey(old, None, KEY),
        lambda: compact(old),
    ):
        with pytest.raises(StoreError, match="was interrupted"):
            work()
    with pytest.raises(LogCorrupt, match="progress of the upgrade cannot be read"):
        upgrade(old, None)


# ---- what must not stay ------------------------------------------------------------------------------


def test_a_backup_goes_with_the_old_key(old: Path, ahead: pytest.MonkeyPatch) -> None:
    """It holds everything as it was under that."""
    del ahead
    upgrade(old, None, backup=True)
    # Rekeying copies tables that it knows, and no others.
    with opening.open_environment(old / "log.lmdb", readonly=False) as environment:
        made_up = environment.open_db(b"made-up")
        with environment.begin(write=True) as transaction:
            transaction.drop(made_up)
    rekey(old, None, KEY)
    assert not list(old.glob("backup*"))


def test_a_backup_goes_with_a_run_that_is_erased(
    store_dir: Path, ahead: pytest.MonkeyPatch
) -> None:
    """And stays where the database is only made smaller."""
    with ahead.context() as today:
        today.setattr(opening, "FORMAT", FORMAT)
        today.setattr(module, "FORMAT", FORMAT)
        with Store.open(store_dir) as store:
            plant_run(store)
    ahead.setattr(module, "STEPS", dict.fromkeys(STEPS, lambda rows, at: Batch(None, 0)))
    upgrade(store_dir, None)
    compact(store_dir)
    assert (store_dir / BACKUP).is_dir()
    with Store.open(store_dir) as store:
        store.removal.erase(store.runs.all())
    compact(store_dir)
    assert not list(store_dir.glob("backup*"))


# ---- the command -------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Give how `playhead upgrade` ended, and what it said."""
    with pytest.raises(SystemExit) as ended:
        main(["upgrade", *map(str, words)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out + err


def test_the_command_says_what_was_done(
    old: Path, ahead: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where the backup is; a store that is current is no fault."""
    del ahead
    code, told = command(capsys, "--store", old)
    assert code == 0
    assert f"is upgraded from format {FORMAT} to {NEW}" in told
    assert str(old / BACKUP) in told
    code, told = command(capsys, "--store", old)
    assert code == 0
    assert told == f"the store at {old} has format {NEW}, the current one; nothing to do\n"


def test_a_backup_is_left_out_if_that_is_said_twice(
    old: Path, ahead: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once is asked about."""
    del ahead
    code, told = command(capsys, "--store", old, "--no-backup")
    assert code == 2
    assert "give --no-backup twice" in told
    assert planted(old, choose_cipher(None)) == BEFORE
    code, told = command(capsys, "--store", old, "--no-backup", "--no-backup")
    assert code == 0
    assert "What it was" not in told
    assert planted(old, choose_cipher(None)) == AFTER
    assert not list(old.glob("backup*"))


def test_no_store_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing is made."""
    code, told = command(capsys, "--store", tmp_path / "none")
    assert code == 2
    assert "no store at" in told
    assert not (tmp_path / "none").exists()
