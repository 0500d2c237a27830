"""Compiled searches that outlive a process: the same finds, and nothing that was changed is loaded."""

from pathlib import Path

import pytest

from playhead.proxy.trust.compiled_search_cache import PREFIX, KeptSearches
from playhead.store.paths import PRIVATE
from playhead.tape.redaction.finding.pattern_prefilter import (
    Head,
    HyperscanHeads,
    compile_heads,
    hyperscan,
)

_HEADS = [Head("sk-[a-z]{4}"), Head("token", caseless=True), Head("%2f", once=True)]
_TEXT = b"a sk-abcd, a TOKEN, %2f, and sk-wxyz"
_KEY = b"k" * 32

pytestmark = pytest.mark.skipif(
    hyperscan is None, reason="needs hyperscan, which has no wheel here"
)


@pytest.fixture
def kept(tmp_path: Path) -> KeptSearches:
    """Those of a store."""
    (tmp_path / PRIVATE).mkdir()
    return KeptSearches(tmp_path, _KEY)


def _files(store: Path) -> list[Path]:
    return sorted((store / PRIVATE).glob(f"{PREFIX}*"))


def test_a_search_is_compiled_once(
    kept: KeptSearches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded finds what was compiled to find; its file is the owner's alone."""
    compiled = compile_heads(_HEADS, kept)
    [file] = _files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(kept, "keep", None)  # which is called where it was compiled
    loaded = compile_heads(_HEADS, kept)
    assert (
        loaded.find(_TEXT) == compiled.find(_TEXT) == HyperscanHeads(_HEADS, kept=kept).find(_TEXT)
    )


def test_other_heads_take_the_place(kept: KeptSearches, tmp_path: Path) -> None:
    """A newer Playhead leaves nothing of an older one behind."""
    compile_heads(_HEADS, kept)
    [before] = _files(tmp_path)
    compile_heads(_HEADS[:2], KeptSearches(tmp_path, _KEY))
    [after] = _files(tmp_path)
    assert before != after


def test_two_searches_of_a_process_are_both_kept(
    kept: KeptSearches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither takes the place of the other, in the next process either."""
    for heads in (_HEADS, _HEADS[:2]):
        compile_heads(heads, kept)
    assert len(_files(tmp_path)) == 2
    later = KeptSearches(tmp_path, _KEY)
    monkeypatch.setattr(later, "keep", None)
    for heads in (_HEADS, _HEADS[:2]):
        compile_heads(heads, later)


@pytest.mark.parametrize("spoil", ["a bit", "the end", "another key", "nothing in it", "a folder"])
def test_what_was_changed_is_compiled_anew(
    spoil: str, kept: KeptSearches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never given to hyperscan, which would run it."""
    compile_heads(_HEADS, kept)
    [file] = _files(tmp_path)
    data = file.read_bytes()
    if spoil == "a bit":
        file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    elif spoil == "the end":
        file.write_bytes(data[:-1])
    elif spoil == "nothing in it":
        file.write_bytes(b"")
    elif spoil == "a folder":
        file.unlink()
        file.mkdir()
    else:
        kept = KeptSearches(tmp_path, b"o" * 32)
    loads: list[bytes] = []
    monkeypatch.setattr(hyperscan, "loadb", lambda data, _: loads.append(data))
    assert compile_heads(_HEADS, kept).find(_TEXT) == compile_heads(_HEADS).find(_TEXT)
    assert loads == []


def test_a_store_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """And finds all the same."""
    (tmp_path / PRIVATE).write_text("no folder")
    assert compile_heads(_HEADS, KeptSearches(tmp_path, _KEY)).find(_TEXT) is not None
