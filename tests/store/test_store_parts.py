"""The parts of a store: one object for each, and no method of one by a second name."""

import re
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.store import Store
from playhead.store.encryption.aes_cipher import AesCipher
from playhead.store.encryption.cipher import StoreCipher
from playhead.store.encryption.plain_cipher import PlainCipher

PAGE = Path(playhead.__file__).with_name("docs") / "architecture.md"


@pytest.fixture
def parts(store_dir: Path) -> dict[str, Any]:
    """Give what a store hands out, but for the path of its folder."""
    with Store.open(store_dir) as store:
        found = {name: value for name, value in vars(store).items() if not name.startswith("_")}
    del found["path"]
    return found


def test_no_part_is_a_method(parts: dict[str, Any]) -> None:
    """Each method is found, with its signature, in the class that defines it."""
    assert [name for name, value in parts.items() if callable(value)] == []


def test_each_part_is_documented(parts: dict[str, Any]) -> None:
    """By its name, the module and the class."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+/\w+)\.py` `(\w+)` \|", PAGE.read_text("utf-8"), re.M)
    found = {name: (type(value).__module__, type(value).__name__) for name, value in parts.items()}
    assert found == {
        name: (f"playhead.store.{file.replace('/', '.')}", kind) for name, file, kind in rows
    }


@pytest.mark.parametrize("kind", [PlainCipher, AesCipher])
def test_a_cipher_has_what_the_protocol_has(kind: type[StoreCipher]) -> None:
    """Each of the two defines every method itself, has no further one, and does not build on the other."""
    methods = {name for name in vars(kind) if not name.startswith("_")} - {"check"}
    assert methods == {name for name in vars(StoreCipher) if not name.startswith("_")}
    assert {PlainCipher, AesCipher}.intersection(kind.__mro__) == {kind}
