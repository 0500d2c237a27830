"""A key that is none says which key the store is encrypted under: another opens nothing."""

from pathlib import Path

import pytest

from playhead.config import Config, Encrypt
from playhead.proxy.operations.open_store import open_store
from playhead.store import Store, StoreError, make_key_file
from playhead.store.encryption.key import VARIABLE


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have none in the environment."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("given", ["no file", "no key in the file", "no key in the variable"])
@pytest.mark.parametrize("kind", ["encrypted", "plain", "none"])
def test_a_key_that_is_none_is_answered_with_what_opens_the_store(
    given: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new key is advised only where it is of use."""
    folder, file = tmp_path / "store", tmp_path / "other.key"
    key = make_key_file(tmp_path / "its.key")
    if kind != "none":
        Store.open(folder, key=key if kind == "encrypted" else None).close()
    if given == "no key in the file":
        file.write_text("hello")
        file.chmod(0o600)
    elif given == "no key in the variable":
        monkeypatch.setenv(VARIABLE, "hello")
    with pytest.raises(StoreError, match=r"cannot read the encryption|no encryption") as caught:
        open_store(Config(store=folder, encrypt=Encrypt(file)), readonly=True)
    hint = caught.value.hint
    if kind == "encrypted":
        assert f"is encrypted under key {key.id.hex()}: give the file that holds that key" in hint
        assert "--new-key" not in hint
        config = Config(store=folder, encrypt=Encrypt(tmp_path / "its.key"))
        monkeypatch.delenv(VARIABLE, raising=False)
        open_store(config, readonly=True).close()
    else:
        assert hint == "`playhead rekey --new-key FILE` makes a key"
