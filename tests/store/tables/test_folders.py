"""Manifests, savepoints and contents: what is saved comes back, equal contents are stored once, and go with the last run."""

from pathlib import Path

import pytest
from blake3 import blake3

from playhead.store import LogCorrupt, RunInfo, Store, StoreError, StoreKey
from playhead.store.tables.folders import Content
from playhead.tape.folders.manifest import Entry, GitState, Kind, Manifest, find_step


def content(data: bytes) -> Content:
    """Make a content with its hash."""
    return Content(blake3(data).digest(), data)


def entry(data: bytes) -> Entry:
    """Make the entry of a file."""
    return Entry(Kind.FILE, 0o644, len(data), 7, blake3(data).digest(), inode=3, changed_ns=9)


def manifest(files: dict[bytes, bytes], seq: int = 0) -> Manifest:
    """Make the manifest of a folder with these files."""
    entries = {path: entry(data) for path, data in files.items()}
    git = GitState("ab" * 20, "main", ("x.py",), 1)
    return Manifest(b"/work", entries, {b"build": "ignored"}, 1, 0, git, saved=True, seq=seq)


async def make_run(store: Store, name: str) -> RunInfo:
    """Make a run that has ended."""
    info = await store.runs.create(name, mode="record", at_ns=1)
    await store.runs.seal(info, reason="it ended", at_ns=2)
    return store.runs.reload(info)


@pytest.mark.parametrize("key", [None, StoreKey(bytes(range(32)), "the test")])
async def test_what_is_saved_comes_back(store_dir: Path, key: StoreKey | None) -> None:
    """Encrypted or not: the manifest, each savepoint, and every byte of a large file."""
    files = {b"a": b"one", b"\xff": b"", b"sub/large": bytes(range(256)) * 9000}
    start = manifest(files)
    then = manifest({**files, b"a": b"two", b"new": b"three"}, seq=4)
    with Store.open(store_dir, key=key) as store:
        info = await make_run(store, "r")
        store.folders.save(info.number, start, map(content, files.values()))
        store.folders.save_step(
            info.number, 1, find_step(start, then), [content(b"two"), content(b"three")]
        )
    with Store.open(store_dir, key=key, readonly=True) as store:
        assert store.folders.find(info) == start
        found = store.folders.find(info, 9)
        assert found is not None
        assert found.entries == then.entries
        assert found.seq == 4
        before = store.folders.find(info, 3)
        assert before is not None
        assert before.entries == start.entries
        for data in (*files.values(), b"two", b"three"):
            assert store.folders.read(blake3(data).digest()) == data
        with pytest.raises(StoreError, match="was not saved"):
            store.folders.read(blake3(b"other").digest())


async def test_a_content_goes_with_the_last_run_that_needs_it(store_dir: Path) -> None:
    """Two runs share it; a third has one of its own."""
    with Store.open(store_dir) as store:
        runs = [await make_run(store, name) for name in "ab"]
        for info in runs:
            store.folders.save(info.number, manifest({b"a": b"same"}), [content(b"same")] * 2)
        store.removal.delete([runs[0]])
        assert store.folders.read(blake3(b"same").digest()) == b"same"
        assert store.folders.find(runs[0]) is None
        store.removal.delete([runs[1]])
        assert not store.folders.holds(blake3(b"same").digest())


async def test_the_last_look_at_a_folder_is_found(store_dir: Path) -> None:
    """The next recording reads only what was touched since."""
    with Store.open(store_dir) as store:
        assert store.folders.find_last_look(b"/work") is None
        info = await make_run(store, "r")
        store.folders.save(info.number, manifest({b"a": b"1"}))
        assert store.folders.find_last_look(b"/work") == manifest({b"a": b"1"})
        assert store.folders.find_last_look(b"/other") is None
        store.removal.delete([info])
        assert store.folders.find_last_look(b"/work") is None


async def test_a_damaged_content_is_refused(store_dir: Path) -> None:
    """It would be put into somebody's folder."""
    with Store.open(store_dir) as store:
        info = await make_run(store, "r")
        wrong = Content(blake3(b"right").digest(), b"wrong")
        store.folders.save(info.number, manifest({b"a": b"right"}), [wrong])
        with pytest.raises(LogCorrupt, match="does not fit its hash"):
            store.folders.read(wrong.digest)
