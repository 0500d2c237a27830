"""`secrets: encrypted` needs a key that does not lie in the store."""

from pathlib import Path

import pytest

from playhead.config import Config, ConfigError, Secrets, load, override
from playhead.config.schema import KEY_VARIABLE

_WITHIN = "lies in the store's folder"
_WITHOUT = "encrypted needs a key from outside the store; give encrypt.key_file"


def _load(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "playhead.yaml"
    file.write_text(text)
    return load(file)


@pytest.fixture(autouse=True)
def _without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store: s\n\nsecrets: encrypted\n", _WITHOUT),
        ("store: s\nencrypt: {}\nsecrets: encrypted\n", _WITHOUT),
        ("store: s\nencrypt: {key_file: s/a.key}\nsecrets: encrypted\n", _WITHIN),
        ("store: s\nencrypt: {key_file: x/../s/private/a.key}\nsecrets: encrypted\n", _WITHIN),
        ("store: s\nencrypt: {key_file: link/a.key}\nsecrets: encrypted\n", _WITHIN),
    ],
)
def test_it_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """File, line and column of the key, and what to do."""
    (tmp_path / "s").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    (fault,) = caught.value.faults
    assert (fault.where, fault.path) == (f"{tmp_path / 'playhead.yaml'}:3:10", "secrets")
    assert said in fault.text
    assert "secrets: replaced" in fault.text


def test_a_key_elsewhere_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file beside the store, or in the environment, which wins over a file."""
    beside = "store: s\nencrypt: {key_file: a.key}\nsecrets: encrypted\n"
    assert _load(tmp_path, beside).secrets is Secrets.ENCRYPTED
    monkeypatch.setenv(KEY_VARIABLE, "k" * 44)
    for text in ("secrets: encrypted", "encrypt: {key_file: .playhead/k}\nsecrets: encrypted"):
        assert _load(tmp_path, text).secrets is Secrets.ENCRYPTED


def test_a_store_that_a_flag_names_counts(tmp_path: Path) -> None:
    """The key may lie outside of the configured store, and in the one that is used."""
    text = "store: s\nencrypt: {key_file: other/a.key}\nsecrets: encrypted\n"
    config = _load(tmp_path, text)
    with pytest.raises(ConfigError, match="secrets: encrypted needs a key from outside"):
        override(config, {"store": str(tmp_path / "other")})


def test_only_known_words_are_read(tmp_path: Path) -> None:
    """The two are named."""
    with pytest.raises(ConfigError, match=r"replaced.*encrypted"):
        _load(tmp_path, "secrets: plain")
