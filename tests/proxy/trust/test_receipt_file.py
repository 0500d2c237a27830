"""Where a receipt may be written."""

from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.trust.receipt_file import ReceiptFile


@pytest.fixture
def kept(tmp_path: Path) -> list[Path]:
    """A store with a log and a key, a configuration, and links that lead there."""
    store, config = tmp_path / "store", tmp_path / "playhead.yaml"
    (store / "private").mkdir(parents=True)
    (store / "log").write_text("log")
    config.write_text("mode: record")
    (tmp_path / "linked").symlink_to(store)
    return [store, config]


@pytest.mark.parametrize(
    "name",
    [
        *("store/log", "store/new.json", "store/private/receipt.key", "linked/log"),
        *("playhead.yaml", "store/../playhead.yaml", "linked/private/new"),
    ],
)
def test_what_is_playheads_own_is_not_replaced(name: str, kept: list[Path], tmp_path: Path) -> None:
    """Whatever path leads there, and whether it is there or not."""
    with pytest.raises(EngineError, match="own, and is not replaced"):
        ReceiptFile(tmp_path / name, kept)
    assert (kept[0] / "log").read_text() == "log"


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}/receipt.json", "missing/receipt.json"])
def test_what_cannot_be_a_file_is_said(name: str, kept: list[Path], tmp_path: Path) -> None:
    """In one sentence."""
    with pytest.raises(EngineError, match="cannot write the receipt"):
        ReceiptFile(tmp_path / name, kept)


@pytest.mark.parametrize("name", ["/sys/receipt.json", "/proc/self/receipt.json"])
def test_a_folder_that_takes_no_file_is_refused_before_a_command_runs(name: str) -> None:
    """For root too, as on a disk that is read only."""
    with pytest.raises(EngineError, match=f"cannot write the receipt to '{name}': ") as caught:
        ReceiptFile(Path(name))
    assert "you may write to" in caught.value.hint
    assert "Errno" not in str(caught.value)


def test_the_place_is_left_as_it_was(tmp_path: Path) -> None:
    """That a file can be made is tried; what was there stays until a receipt is written."""
    place = tmp_path / "receipt.json"
    place.write_text("old")
    ReceiptFile(place).close()
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]
    assert place.read_text() == "old"


def test_a_file_beside_the_store_is_written(kept: list[Path], tmp_path: Path) -> None:
    """With mode 0600; a name that only begins like the store's is another."""
    file = ReceiptFile(tmp_path / "store.json", kept)
    file.write(b"{}")
    file.close()
    assert (tmp_path / "store.json").stat().st_mode & 0o777 == 0o600
