"""The key that placeholders are made with: made once, private, and never half written."""

import concurrent.futures
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.control.address import Address, open_token, publish
from playhead.proxy.errors import EngineError
from playhead.proxy.trust import redaction_and_receipt_keys as private
from playhead.proxy.trust.atomic_files import write_new
from playhead.proxy.trust.ca import open_ca
from playhead.proxy.trust.redaction_and_receipt_keys import (
    find_receipt_key,
    open_receipt_key,
    open_redaction_key,
)
from playhead.store import StoreError
from playhead.store.paths import RECEIPT_KEY, REDACTION_KEY
from playhead.tests.support.unprivileged import own_folder, unprivileged


def key_file(store: Path) -> Path:
    return store / "private" / REDACTION_KEY


def test_the_key_is_made_once(tmp_path: Path) -> None:
    """The same secret gets the same placeholder for as long as the store lives."""
    key = open_redaction_key(tmp_path / "store")
    assert len(key) == 32
    assert open_redaction_key(tmp_path / "store") == key
    assert key_file(tmp_path / "store").read_bytes() == key


def test_every_store_has_its_own(tmp_path: Path) -> None:
    """Placeholders of one say nothing about those of another."""
    assert open_redaction_key(tmp_path / "a") != open_redaction_key(tmp_path / "b")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_nobody_else_may_read_it(tmp_path: Path, umask: int) -> None:
    """Whatever the umask says."""
    before = os.umask(umask)
    try:
        open_redaction_key(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE(key_file(tmp_path).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610], ids=oct)
def test_one_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Nobody knows who has it, or whose it is; the error says what to do, and then it is the key again."""
    key, receipts = open_redaction_key(tmp_path), open_receipt_key(tmp_path)
    for name, opened, expected in (
        (REDACTION_KEY, open_redaction_key, key),
        (RECEIPT_KEY, open_receipt_key, receipts),
        (RECEIPT_KEY, find_receipt_key, receipts),
    ):
        file = tmp_path / "private" / name
        file.chmod(mode)
        with pytest.raises(EngineError, match=f"{name}' is open to other users .mode {mode:04o}"):
            opened(tmp_path)
        file.chmod(0o600)
        assert opened(tmp_path) == expected


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    """No temporary file that holds a key."""
    open_redaction_key(tmp_path)
    assert [path.name for path in (tmp_path / "private").iterdir()] == [REDACTION_KEY]


def test_of_many_that_start_at_once_one_wins(tmp_path: Path) -> None:
    """And the others use its key."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(open_redaction_key, [tmp_path] * 64))
    assert len(keys) == 1
    assert [path.name for path in (tmp_path / "private").iterdir()] == [REDACTION_KEY]


def test_one_that_was_made_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking and linking: neither overwritten nor an error."""
    theirs = b"t" * 32

    def write_and_lose(path: Path, content: bytes, mode: int) -> None:
        write_new(key_file(tmp_path), theirs, 0o600)
        path.write_bytes(content)

    monkeypatch.setattr(private, "write_new", write_and_lose)
    assert open_redaction_key(tmp_path) == theirs
    assert [path.name for path in (tmp_path / "private").iterdir()] == [REDACTION_KEY]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31, b"x" * 33], ids=len)
def test_a_key_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    """And left as it is: what it made must not change unseen."""
    open_redaction_key(tmp_path)
    key_file(tmp_path).write_bytes(content)
    with pytest.raises(EngineError, match=f"holds {len(content)} bytes; expected 32") as caught:
        open_redaction_key(tmp_path)
    assert "Move it away" in caught.value.hint
    assert str(key_file(tmp_path)) in str(caught.value)
    assert key_file(tmp_path).read_bytes() == content
    assert "xxxx" not in str(caught.value)


def test_what_cannot_be_read_or_made_is_a_sentence() -> None:
    """A read-only folder, a key of somebody else, a file in place of the folder."""
    with own_folder() as folder, unprivileged():
        store = folder / "store"
        store.mkdir()
        store.chmod(0o500)
        check_refused(store)
        assert list(store.iterdir()) == []
        store.chmod(0o700)
        open_redaction_key(store)
        key_file(store).chmod(0o000)
        check_refused(store)
        (store / "private").chmod(0o000)
        check_refused(store)
        file = folder / "a file"
        file.touch()
        check_refused(file)


def check_refused(store: Path) -> None:
    with pytest.raises(EngineError, match="cannot read or make the redaction key") as caught:
        open_redaction_key(store)
    assert "--store" in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_read_only_store_with_a_key_is_read() -> None:
    """Nothing has to be written then."""
    with own_folder() as folder, unprivileged():
        key = open_redaction_key(folder)
        key_file(folder).chmod(0o400)
        (folder / "private").chmod(0o500)
        folder.chmod(0o500)
        assert open_redaction_key(folder) == key


def _link_file(private: Path, outside: Path) -> None:
    (private / "ca.pem").symlink_to(outside / "file")


def _link_folder(private: Path, outside: Path) -> None:
    (private / "control").symlink_to(outside)


def _link_key(private: Path, outside: Path) -> None:
    (private / REDACTION_KEY).unlink()
    (private / REDACTION_KEY).symlink_to(outside / "file")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_link_file, "ca.pem' is a link to"),
        (_link_folder, "control' is a link to"),
        (_link_key, "redaction.key' is a link to"),
    ],
)
def test_nothing_in_the_folder_is_a_link(
    tmp_path: Path, change: Callable[[Path, Path], None], said: str
) -> None:
    """Whatever of it is used: it is refused before anything is read, written or given another mode."""
    store, outside = tmp_path / "store", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"precious" * 4)
    (outside / "file").chmod(0o644)
    open_redaction_key(store)
    open_receipt_key(store)
    change(store / "private", outside)
    config = Config(store=store)
    uses: list[Callable[[], object]] = [
        lambda: open_redaction_key(store),
        lambda: open_receipt_key(store),
        lambda: find_receipt_key(store),
        lambda: open_ca(store, store / "ca"),
        lambda: open_token(config),
        lambda: publish(store, Address(1, 0.0, "http://127.0.0.1:1")),
    ]
    for use in uses:
        with pytest.raises(StoreError, match=re.escape(said)):
            use()
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").stat().st_mode & 0o777 == 0o644


def test_the_public_folder_of_a_store_is_no_link(tmp_path: Path) -> None:
    """One that is named with --ca-dir may be what it likes."""
    store, outside = tmp_path / "store", tmp_path / "outside"
    outside.mkdir()
    store.mkdir()
    (store / "ca").symlink_to(outside)
    with pytest.raises(StoreError, match="is a link to"):
        open_ca(store, store / "ca")
    assert list(outside.iterdir()) == []
