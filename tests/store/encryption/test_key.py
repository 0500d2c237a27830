"""The key of a store: read from its file or the environment, and nothing taken for one that is none."""

import base64
from pathlib import Path

import pytest

from playhead.store import StoreError, StoreKey, find_key, make_key_file, read_key
from playhead.store.encryption.key import VARIABLE

SECRET = bytes(range(32))
BASE64 = base64.b64encode(SECRET).decode()


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "store.key"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    "text", [BASE64, BASE64 + "\n", SECRET.hex(), f"  {SECRET.hex().upper()}\r\n"]
)
def test_a_key_is_base64_or_hex(tmp_path: Path, text: str) -> None:
    """With or without an end of line."""
    assert read_key(key_file(tmp_path, text)).secret == SECRET
    found = find_key(None, {VARIABLE: text})
    assert found is not None
    assert (found.secret, found.where) == (SECRET, VARIABLE)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """And without either there is no key."""
    file = key_file(tmp_path, "00" * 32)
    found = find_key(file, {VARIABLE: BASE64})
    assert found is not None
    assert found.secret == SECRET
    assert find_key(file, {VARIABLE: ""}) == StoreKey(bytes(32), str(file))
    assert find_key(None, {}) is None


@pytest.mark.parametrize(
    "text", ["", "x", BASE64[:-4], SECRET.hex()[:-1], BASE64 + BASE64, "ü" * 44, "a" * 5000]
)
def test_what_is_no_key_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    """The error says what a key looks like, and where this one stands."""
    with pytest.raises(StoreError, match="expected 32 bytes as base64") as caught:
        read_key(key_file(tmp_path, text))
    assert str(tmp_path) in str(caught.value)
    assert "--new-key" in caught.value.hint
    assert len(text) < 8 or text[:8] not in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Who could read it has the key."""
    with pytest.raises(StoreError, match=f"mode 0{mode:o}; expected 0600") as caught:
        read_key(key_file(tmp_path, BASE64, mode))
    assert "chmod 600" in caught.value.hint


def test_a_file_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    """With how one is made."""
    with pytest.raises(StoreError, match="No such file") as caught:
        read_key(tmp_path / "none")
    assert "--new-key" in caught.value.hint


def test_a_new_key_is_read_back_and_never_written_over(tmp_path: Path) -> None:
    """Its file is 0600 from the start."""
    file = tmp_path / "new.key"
    made = make_key_file(file)
    assert read_key(file) == made
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreError, match="File exists"):
        make_key_file(file)
    assert read_key(file) == made


def test_a_key_does_not_show_itself() -> None:
    """Neither in a log nor in what is derived from it for others to see."""
    key = StoreKey(SECRET, "a test")
    assert repr(SECRET) not in repr(key)
    assert len({key.derive(one) for one in ("check", "values", "hashes", "names", "files")}) == 5
    assert key.id == key.check[:8]
    assert SECRET not in key.check
