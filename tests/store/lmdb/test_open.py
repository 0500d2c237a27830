"""What is said of a store that cannot be opened fits the cause."""

from pathlib import Path

import lmdb
import pytest

from playhead.store import Store, StoreUnwritable


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (lmdb.Error("x: Permission denied"), "run as the user whose store it is (`ls -ld`"),
        (PermissionError(13, "Permission denied"), "run as the user whose store it is (`ls -ld`"),
        (lmdb.Error("x: No space left on device"), "is the folder writable and not full?"),
    ],
)
def test_a_store_of_another_user_is_not_taken_for_a_full_one(
    error: Exception, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader wants to write nothing."""

    def fail(*_: object, **__: object) -> None:
        raise error

    Store.open(tmp_path).close()
    monkeypatch.setattr(lmdb, "open", fail)
    with pytest.raises(StoreUnwritable, match="cannot open the store at") as caught:
        Store.open(tmp_path, readonly=True)
    assert str(caught.value.hint).startswith(hint)
