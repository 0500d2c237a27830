"""Another key for a store: all is encrypted again, a kill loses nothing, and nothing is left of what was."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from blake3 import blake3

from playhead.proxy.cli import cli, main
from playhead.store import (
    LogCorrupt,
    Store,
    StoreError,
    StoreKey,
    StoreTooNew,
    StoreUnwritable,
    make_key_file,
)
from playhead.store.encryption.plain_cipher import PlainCipher
from playhead.store.lmdb_keys import TABLES
from playhead.store.maintenance import rekey as module
from playhead.store.maintenance.compact import compact
from playhead.store.maintenance.rekey import rekey
from playhead.store.spill.body_files import BodyFiles
from playhead.store.spill.partial_file import Partial
from playhead.tests.store.encryption.test_aes_cipher import Rows
from playhead.tests.support import prepared
from playhead.tests.support.ciphers import find_raw, plant, read_all, telling
from playhead.tests.support.recordings import ask, record_run
from playhead.timeline.checks.integrity import verify_run

KILLS = 60 if os.environ.get("PLAYHEAD_FULL") else 4

ONE = StoreKey(bytes(range(32)), "one")
TWO = StoreKey(bytes(32), "two")
WAYS = pytest.mark.parametrize(
    ("before", "after"), [(None, ONE), (ONE, TWO), (ONE, None)], ids=["seal", "change", "open"]
)


def planted(folder: Path, key: StoreKey | None) -> tuple[object, ...]:
    with Store.open(folder, key=key) as store:
        plant(store)
        return read_all(store)


def held(folder: Path, key: StoreKey | None) -> tuple[object, ...]:
    """All that a store holds; it may be written to as before."""
    with Store.open(folder, key=key) as store:
        found = read_all(store)
        plant(store, f"later {len(store.runs.all())}")
        return found


def names(folder: Path) -> set[str]:
    """What is there, but for the folder of who has it open, which holds nothing of what was said."""
    return {path.name.partition("-")[0] for path in folder.iterdir()} - {"owners"}


@WAYS
def test_all_that_a_store_holds_is_there_under_the_other_key(
    store_dir: Path, before: StoreKey | None, after: StoreKey | None
) -> None:
    """And the old one opens it no more."""
    expected = planted(store_dir, before)
    told: list[tuple[int, int]] = []
    done = rekey(store_dir, before, after, lambda *at: told.append(at))
    assert held(store_dir, after) == expected
    with pytest.raises(StoreError, match="encrypted"):
        Store.open(store_dir, key=before)
    assert not done.already
    assert told[-1] == (done.rows + done.files,) * 2
    assert names(store_dir) == {"log.lmdb", "bodies", "lock"}


def test_a_table_without_rows_is_there_under_the_other_key(store_dir: Path) -> None:
    """A run without large bodies and messages has none in theirs; whoever opens it for reading looks there."""
    with Store.open(store_dir) as store:
        before = record_run(store, "small", [ask()])
    rekey(store_dir, None, ONE)
    with Store.open(store_dir, key=ONE, readonly=True) as store:
        assert store.runs.get("small").exchanges == before.exchanges
        assert set(store._database.tables) == set(TABLES)
        assert verify_run(store, before).problems == ()


def test_nothing_is_left_of_what_lay_open(store_dir: Path) -> None:
    """Neither in pages that were let go of nor in files or their names."""
    planted(store_dir, None)
    with Store.open(store_dir) as store:
        needles = telling(store)
    assert list(find_raw(store_dir, needles))
    rekey(store_dir, None, ONE)
    assert not list(find_raw(store_dir, needles))


def test_nothing_is_left_that_the_old_key_opens(store_dir: Path) -> None:
    """Its id stands in everything that was encrypted with it."""
    planted(store_dir, ONE)
    assert list(find_raw(store_dir, [ONE.id]))
    rekey(store_dir, ONE, TWO)
    assert not list(find_raw(store_dir, [ONE.id]))


def test_a_store_that_has_the_key_is_left_alone(store_dir: Path) -> None:
    """It may be said twice."""
    expected = planted(store_dir, ONE)
    before = (store_dir / "log.lmdb" / "data.mdb").stat().st_ino
    assert rekey(store_dir, None, ONE).already
    assert (store_dir / "log.lmdb" / "data.mdb").stat().st_ino == before
    assert held(store_dir, ONE) == expected


def test_a_store_that_somebody_has_open_is_not_touched(store_dir: Path) -> None:
    """Whoever it is, is named."""
    planted(store_dir, None)
    with (
        Store.open(store_dir, readonly=True),
        pytest.raises(StoreError, match="alone, and this process"),
    ):
        rekey(store_dir, None, ONE)
    assert names(store_dir) == {"log.lmdb", "bodies", "lock"}


@pytest.mark.parametrize(
    ("made", "before", "after", "told"),
    [
        (ONE, None, TWO, f"encrypted under key {ONE.id.hex()}, but two holds"),
        (ONE, TWO, None, f"encrypted under key {ONE.id.hex()}, but two holds"),
        (ONE, None, None, "but no key was given"),
        (None, ONE, TWO, "is not encrypted, but one holds"),
    ],
)
def test_the_key_it_has_must_be_known(
    store_dir: Path,
    made: StoreKey | None,
    before: StoreKey | None,
    after: StoreKey | None,
    told: str,
) -> None:
    """Else nothing is done."""
    expected = planted(store_dir, made)
    with pytest.raises(StoreError, match=told):
        rekey(store_dir, before, after)
    assert held(store_dir, made) == expected


@pytest.mark.parametrize("work", [lambda path: rekey(path, None, ONE), compact])
def test_a_table_of_a_newer_version_is_not_left_behind(
    store_dir: Path, work: Callable[[Path], object]
) -> None:
    """What makes the store anew refuses where it does not know all of it."""
    expected = planted(store_dir, None)
    with lmdb.open(str(store_dir / "log.lmdb"), max_dbs=20) as environment:
        environment.open_db(b"later")
    with pytest.raises(StoreTooNew, match="table 'later' that this version does not know"):
        work(store_dir)
    assert held(store_dir, None) == expected


def test_a_store_that_is_none_is_told_of(tmp_path: Path) -> None:
    """A mistyped one is not made."""
    with pytest.raises(StoreError, match="no store at"):
        rekey(tmp_path / "none", None, ONE)
    assert not (tmp_path / "none").exists()


def _with_another_end(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("what", ["row", "file"])
def test_what_cannot_be_opened_stops_it(store_dir: Path, what: str) -> None:
    """It is named, and the store is as it was."""
    planted(store_dir, ONE)
    if what == "row":
        with Rows(store_dir, "exchanges") as found:
            first = min(found)
            found[first] = _with_another_end(found[first])
    else:
        file = next(store_dir.glob("bodies-*/??/*"))
        file.write_bytes(_with_another_end(file.read_bytes()))
    with pytest.raises(LogCorrupt, match="it fails authentication") as caught:
        rekey(store_dir, ONE, TWO)
    assert ("exchanges, row 1 1" if what == "row" else file.name) in str(caught.value)
    with Store.open(store_dir, key=ONE) as store:
        assert len(store.runs.all()) == 1


def test_a_plain_body_that_does_not_fit_its_name_stops_it(store_dir: Path) -> None:
    """It would never be found again under another."""
    planted(store_dir, None)
    file = next(store_dir.glob("bodies/??/*"))
    file.write_bytes(b"?" + file.read_bytes()[1:])
    with pytest.raises(LogCorrupt, match="does not fit its hash"):
        rekey(store_dir, None, ONE)


def test_no_room_is_told_of_and_harms_nothing(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is as it was, and the same command goes on later."""
    expected = planted(store_dir, None)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(Partial, "keep", full)
        with pytest.raises(StoreUnwritable, match="No space left") as caught:
            rekey(store_dir, None, ONE)
        assert "nothing is lost" in caught.value.hint
    assert rekey(store_dir, None, ONE).rows
    assert held(store_dir, ONE) == expected


def test_what_is_written_after_a_broken_attempt_is_not_left_out(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the attempt had made is of no use any more."""
    planted(store_dir, None)
    with monkeypatch.context() as patch:
        patch.setattr(module, "swap_in", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            rekey(store_dir, None, ONE)
    with Store.open(store_dir) as store:
        plant(store, "more")
        expected = read_all(store, "more")
    rekey(store_dir, None, ONE)
    with Store.open(store_dir, key=ONE) as store:
        assert read_all(store, "more") == expected


def test_a_file_that_goes_between_two_attempts_takes_no_other_with_it(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `gc` removes files without a commit: what is left to do is known by name, not by number."""
    planted(store_dir, None)
    files = BodyFiles(store_dir, PlainCipher())
    files.keep_file(blake3(b"nobody's").digest(), [b"nobody's"])
    unneeded = files.path(blake3(b"nobody's").digest())
    with Store.open(store_dir) as store:
        expected = read_all(store)
    with monkeypatch.context() as patch:

        def stop(copy: module._Copy, path: Path) -> None:
            if path > unneeded:
                raise KeyboardInterrupt
            made(copy, path)

        made = module._Copy._copy_file
        patch.setattr(module._Copy, "_copy_file", stop)
        with pytest.raises(KeyboardInterrupt):
            rekey(store_dir, None, ONE)
    assert files.kept()[-1] != unneeded, "all was done"
    with Store.open(store_dir) as store:
        assert store.removal.remove_unneeded_files(time.time() + 1)
    rekey(store_dir, None, ONE)
    assert held(store_dir, ONE) == expected


def test_a_file_that_a_killed_gc_had_set_aside_is_taken_along(store_dir: Path) -> None:
    """Nothing says yet that nobody needs it."""
    expected = planted(store_dir, None)
    file = next(store_dir.glob("bodies/??/*"))
    file.rename(store_dir / "bodies" / f"gone-{2**22 + 1}-{file.name}")
    rekey(store_dir, None, ONE)
    assert held(store_dir, ONE) == expected


def _interrupt(*_: Path) -> None:
    raise KeyboardInterrupt


# ---- killed ----------------------------------------------------------------------------------------


class Killer:
    """A process that rekeys, and is killed when it has run so many lines."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] = prepared.start(
            [sys.executable, "-m", "playhead.tests.support.rekey_child"],
            imports=prepared.FOR_OURS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(
        self, folder: Path, before: StoreKey | None, after: StoreKey | None, line: int
    ) -> list[str]:
        """Give what it said."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        keys = [key.secret.hex() if key else "-" for key in (before, after)]
        print(folder, *keys, line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().split()

    def lines(self, folder: Path, before: StoreKey | None, after: StoreKey | None) -> int:
        """Count the lines that a rekey of a store runs."""
        copy = shutil.copytree(folder, folder.parent / "counted")
        lines, code = self(copy, before, after, 0)
        assert code == "0"
        shutil.rmtree(copy)
        return int(lines)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    made = Killer()
    yield made
    made.process.communicate(timeout=20)


KILLED = [str(-signal.SIGKILL)]


@WAYS
def test_a_kill_at_any_point_loses_nothing(
    store_dir: Path, killer: Killer, before: StoreKey | None, after: StoreKey | None
) -> None:
    """The store opens under one key or the other, and the same command again makes it whole."""
    expected = planted(store_dir, before)
    lines = killer.lines(store_dir, before, after)
    source = random.Random(7)
    for number in range(KILLS):
        copy = Path(shutil.copytree(store_dir, store_dir.parent / str(number)))
        line = source.randrange(1, lines) if number else lines - 12
        assert killer(copy, before, after, line) == KILLED
        if source.random() < 0.5:  # twice
            killer(copy, before, after, source.randrange(1, lines))
        opened = [key for key in (before, after) if _opens(copy, key)]
        assert len(opened) == 1, line
        assert _read(copy, opened[0]) == expected, line
        rekey(copy, before, after)
        assert held(copy, after) == expected, line
        assert names(copy) == {"log.lmdb", "bodies", "lock"}, line
        assert len(list(copy.glob("bodies*"))) == 1, line


def _opens(folder: Path, key: StoreKey | None) -> bool:
    with contextlib.suppress(StoreError):
        Store.open(folder, readonly=True, key=key).close()
        return True
    return False


def _read(folder: Path, key: StoreKey | None) -> tuple[object, ...]:
    with Store.open(folder, readonly=True, key=key) as store:
        return read_all(store)


def test_an_attempt_that_nobody_finishes_leaves_nothing_open(
    store_dir: Path, killer: Killer
) -> None:
    """Begun to decrypt, then to change the key: the half that lay open is gone."""
    planted(store_dir, ONE)
    with Store.open(store_dir, readonly=True, key=ONE) as store:
        needles = telling(store)
    assert killer(store_dir, ONE, None, killer.lines(store_dir, ONE, None) - 45) == KILLED
    assert list(find_raw(store_dir, needles)), "it was killed too early to show anything"
    rekey(store_dir, ONE, TWO)
    assert not list(find_raw(store_dir, needles))


def test_a_half_that_was_left_is_told_of(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed between the swap and the end: what lay open is still there, and whoever writes is told."""
    planted(store_dir, None)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_clean", lambda *_: None)
        rekey(store_dir, None, ONE)
    assert (store_dir / "bodies").exists()
    Store.open(store_dir, key=ONE).close()
    assert "run `playhead rekey` again" in caplog.text
    assert rekey(store_dir, None, ONE).already
    assert not (store_dir / "bodies").exists()
    caplog.clear()
    Store.open(store_dir, key=ONE).close()
    assert not caplog.text


def test_compaction_leaves_no_half_either(store_dir: Path, killer: Killer) -> None:
    """What was erased is to be nowhere."""
    expected = planted(store_dir, ONE)
    assert killer(store_dir, ONE, None, killer.lines(store_dir, ONE, None) - 45) == KILLED
    assert names(store_dir) >= {"rekey.lmdb"}
    compact(store_dir)
    assert names(store_dir) == {"log.lmdb", "bodies", "lock"}
    assert not (store_dir / "bodies").exists()
    assert held(store_dir, ONE) == expected


# ---- the command -----------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert isinstance(caught.value.code, int)
    return caught.value.code, told.out + told.err


def test_the_command_encrypts_changes_the_key_and_decrypts(
    store_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the files of keys that it made itself."""
    expected = planted(store_dir, None)
    folder = store_dir.parent
    one, two, file = folder / "one.key", folder / "two.key", folder / "playhead.yaml"
    for key in (one, two):
        code, told = command(capsys, "rekey", "--new-key", key)
        assert (code, f"in {key}" in told) == (0, True)
    file.write_text(f"store: {store_dir}\nencrypt: {{key_file: {one}}}\n")
    code, told = command(capsys, "rekey", "-c", file)
    assert (code, "is now encrypted under key" in told) == (0, True), told
    assert command(capsys, "show", "-c", file, "run zebra-confidential-4711")[0] == 0
    assert command(capsys, "rekey", "-c", file)[1].endswith("nothing was left to do\n")
    code, told = command(capsys, "rekey", "-c", file, "--to-key-file", two)
    assert (code, f"its key is needed: {two}" in told) == (0, True), told
    code, told = command(capsys, "runs", "-c", file)
    assert (code, f"but {one} holds key" in told) == (2, True), told
    file.write_text(f"store: {store_dir}\nencrypt: {{key_file: {two}}}\n")
    code, told = command(capsys, "rekey", "-c", file, "--decrypt")
    assert (code, "is now not encrypted" in told) == (0, True), told
    assert held(store_dir, None) == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no key to encrypt the store under"),
        (("--to-key-file", "none"), "cannot read the encryption key"),
        (("--decrypt", "--new-key", "x"), "give one of"),
    ],
)
def test_bad_input_of_the_command_is_a_sentence(
    store_dir: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    """Exit code 2."""
    Store.open(store_dir).close()
    assert command(capsys, "rekey", "--store", store_dir, *arguments)[0] == 2
    assert told in command(capsys, "rekey", "--store", store_dir, *arguments)[1]


COMMANDS = [
    (("runs",), 2),
    (("show", "r", "1"), 2),
    (("rewind", "r", "--before-effect"), 2),
    (("state", "r", "1"), 2),
    (("context", "r", "--lost"), 2),
    (("blame", "r", "1", "$.a"), 2),
    (("cache", "r"), 2),
    (("history", "https://shop.test/orders/7"), 2),
    (("diff", "r", "s"), 2),
    (("similar", "r"), 2),
    (("cost", "r"), 2),
    (("destinations",), 2),
    (("files", "r"), 2),
    (("receipt", "r"), 2),
    (("effects", "r"), 2),
    (("seal", "r"), 2),
    (("stop", "r"), 2),
    (("gates",), 2),
    (("ui", "--no-browser"), 2),
    (("verify", "--secrets"), 2),
    (("learn", "a", "b"), 2),
    (("profiles", "test", "r"), 2),
    (("reindex", "r"), 2),
    (("policy", "--with", "FILE", "r"), 2),
    (("rekey", "--decrypt"), 2),
    (("upgrade",), 2),
    (("note", "r", "x"), 2),
    (("export", "r", "--tape", "FILE"), 2),
    (("import", "--jsonl", "FILE"), 2),
    (("contracts", "r"), 2),
    (("archive",), 2),
    (("gc",), 2),
    (("erase", "--yes", "r"), 2),
    (("redact", "--rewrite", "r"), 2),
    (("label", "r"), 2),
    (("pin", "r"), 2),
    (("serve", "--listen", "127.0.0.1:0"), 2),
    (("record", "--", "true"), 2),
    (("replay", "--no-sandbox", "r", "--", "true"), 125),
    (("ask", "--yes", "r", "1"), 2),
    (("branch", "--no-sandbox", "--at", "1", "r", "--", "true"), 2),
    (("explore", "--no-sandbox", "r", "--", "true"), 2),
    (("sweep", "--no-sandbox", "SWEEP", "--", "true"), 2),
    (("bisect", "--no-sandbox", "r", "s", "--", "true"), 2),
    (("resume", "--no-sandbox", "--yes", "r", "--", "true"), 2),
]


@pytest.mark.parametrize(("words", "code"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")  # fmt: skip
def test_every_command_says_which_key_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int
) -> None:
    """Never a traceback; a replay says 125."""
    file = tmp_path / "playhead.yaml"
    file.write_text(f"store: {tmp_path / 'store'}\n")
    Store.open(tmp_path / "store", key=ONE).close()
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("{run: r, at: 1, variants: [{name: a}]}")
    files = {"FILE": str(file), "SWEEP": str(sweep)}
    given = [files.get(word, word) for word in words]
    done, told = command(capsys, given[0], "-c", file, *given[1:])
    assert done == code
    assert f"is encrypted under key {ONE.id.hex()}, but no key was given" in told
    assert "encrypt.key_file" in told


def test_no_command_is_left_out() -> None:
    """Each opens the store with its key, or opens none but its own."""
    asked = {words[0] for words, _ in COMMANDS}
    without = {
        "ca",
        "completion",
        "doctor",
        "demo",
        "env",
        "init",
        "inlets",
        "beside",
        "schema",
        "stdio",
    }
    assert asked | without == set(cli.commands)


def test_the_commands_use_the_key_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file."""
    key = make_key_file(tmp_path / "a.key")
    with Store.open(tmp_path / "store", key=key) as store:
        plant(store, "mine")
    monkeypatch.setenv("PLAYHEAD_ENCRYPTION_KEY", (tmp_path / "a.key").read_text())
    code, told = command(capsys, "runs", "--store", tmp_path / "store")
    assert (code, "mine" in told) == (0, True)
