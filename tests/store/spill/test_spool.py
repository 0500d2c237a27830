"""Bodies too large to be held: written while they pass, kept under their hash, read back whole or not at all."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from blake3 import blake3

from playhead.store import Store, StoreKey, StoreUnwritable
from playhead.store.encryption.choose import choose_cipher
from playhead.store.encryption.plain_cipher import PlainCipher
from playhead.store.errors import LogCorrupt
from playhead.store.lmdb.process_liveness import create_liveness_file
from playhead.store.spill.body_files import BodyFiles
from playhead.store.spill.partial_file import Partial
from playhead.tape.exchange import Chunk, Spilled
from playhead.tape.redaction.redact_large_body import Stream
from playhead.tape.redaction.redactor import Redactor

PIECES = [bytes([index % 251]) * (1 + index * 37 % 5000) for index in range(900)]


async def _spilled(store: Store, pieces: list[bytes], *, listed: bool = True) -> Spilled:
    spool = store.bodies.spool(pieces=listed)
    for index, piece in enumerate(pieces):
        spool.write(piece, Chunk(index * 10, len(piece), index, 3))
        await spool.settle(64 * 1024)
    return await spool.keep()


async def test_a_body_comes_back_in_its_pieces(store_dir: Path) -> None:
    """Bytes, times and causes are those that were written."""
    with Store.open(store_dir) as store:
        spilled = await _spilled(store, PIECES)
        found = list(store.bodies.read(spilled))
    assert [data for _, data in found] == PIECES
    assert [chunk for chunk, _ in found] == [
        Chunk(index * 10, len(piece), index, 3) for index, piece in enumerate(PIECES)
    ]
    assert spilled.digest == blake3(b"".join(PIECES)).digest()
    assert spilled.size == sum(map(len, PIECES))


async def test_equal_bodies_are_one_file(store_dir: Path) -> None:
    """What is already there is not kept twice, and nothing partial is left."""
    with Store.open(store_dir) as store:
        first = await _spilled(store, PIECES, listed=False)
        second = await _spilled(store, PIECES, listed=False)
        files = [path for path in (store_dir / "bodies").rglob("*") if path.is_file()]
    assert first == second
    assert files == [BodyFiles(store_dir, PlainCipher()).path(first.digest)]
    assert files[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", [None, StoreKey(bytes(32), "key")], ids=["plain", "encrypted"])
def test_a_body_is_young_when_it_is_kept(store_dir: Path, key: StoreKey | None) -> None:
    """It may have been written hours before: an upload whose answer took long. A `gc` goes by the age."""
    store_dir.mkdir()
    files = BodyFiles(store_dir, choose_cipher(key))
    partial = Partial(files)
    partial.write([b"said"])
    os.utime(partial._path, (1, 1))
    digest, _ = partial.keep()
    assert files.path(digest).stat().st_mtime > time.time() - 60
    assert files.remove_unneeded([], time.time() - 60) == 0


def test_a_body_that_is_finished_twice_ends_once(store_dir: Path) -> None:
    """Where the first time it could not be made durable."""
    store_dir.mkdir()
    files = BodyFiles(store_dir, choose_cipher(StoreKey(bytes(32), "key")))
    partial = Partial(files)
    partial.write([b"said " * 20_000])
    assert partial._file is not None
    partial._file.finish()
    assert partial.read(65_530, 10) == (b"said " * 20_000)[65_530:65_540]
    assert partial.read(99_998, 10) == b"d "
    digest, _ = partial.keep()
    assert b"".join(files.read_file(digest)) == b"said " * 20_000


def test_what_a_killed_gc_had_set_aside_is_there_again(store_dir: Path) -> None:
    """It was about to see whether somebody had put it there again."""
    with Store.open(store_dir) as store:
        spilled = asyncio.run(_spilled(store, PIECES, listed=False))
    file = BodyFiles(store_dir, PlainCipher()).path(spilled.digest)
    file.rename(store_dir / "bodies" / f"gone-{2**22 + 1}-{file.name}")
    with Store.open(store_dir) as store:
        assert b"".join(data for _, data in store.bodies.read(spilled)) == b"".join(PIECES)
    assert not list(store_dir.glob("bodies/gone-*"))


def test_what_is_no_body_is_left_alone(store_dir: Path, tmp_path: Path) -> None:
    """A file of somebody else's, and whatever a link leads to."""
    elsewhere = tmp_path / "elsewhere"
    name = "ab" + "0" * 62
    for file in (elsewhere / name, elsewhere / "notes.txt"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"kept")
    with Store.open(store_dir) as store:
        spilled = asyncio.run(_spilled(store, PIECES, listed=False))
        bodies = store_dir / "bodies"
        (bodies / "ab").symlink_to(elsewhere)
        other = BodyFiles(store_dir, PlainCipher()).path(spilled.digest).parent
        (other / "notes.txt").write_bytes(b"kept")
        (other / (other.name + "0" * 62)).symlink_to(elsewhere / "notes.txt")
        freed = store.removal.remove_unneeded_files(time.time() + 10)
    assert freed == spilled.size
    assert sorted(file.read_bytes() for file in elsewhere.iterdir()) == [b"kept"] * 2
    assert (other / "notes.txt").read_bytes() == b"kept"


@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
async def test_a_damaged_body_never_ends(store_dir: Path, harm: str) -> None:
    """The last piece is not given, and the error names what is wrong."""
    with Store.open(store_dir) as store:
        spilled = await _spilled(store, PIECES)
        path = BodyFiles(store_dir, PlainCipher()).path(spilled.digest)
        data = path.read_bytes()
        if harm == "flip":
            path.write_bytes(b"\xff" + data[1:])
        elif harm == "cut":
            path.write_bytes(data[:-1])
        else:
            path.unlink()
        found: list[bytes] = []
        with pytest.raises(LogCorrupt):
            found.extend(piece for _, piece in store.bodies.read(spilled))
    assert len(found) < len(PIECES)


async def test_what_was_taken_can_be_read_before_it_is_kept(store_dir: Path) -> None:
    """A body is forwarded from its file."""
    whole = b"".join(PIECES)
    with Store.open(store_dir) as store:
        spool = store.bodies.spool()
        for piece in PIECES:
            spool.write(piece)
        assert await spool.read(1000, 5000) == whole[1000:6000]
        assert await spool.read(len(whole) - 5, 100) == whole[-5:]
        measured = await spool.measure()
        spool.drop()
        left = list((store_dir / "bodies").rglob("partial-*"))
    assert (measured.digest, measured.size, left) == (blake3(whole).digest(), len(whole), [])


async def test_a_folder_that_takes_nothing_is_told_of(store_dir: Path) -> None:
    """The error says where and what to do; the store goes on."""
    with Store.open(store_dir) as store:
        (store_dir / "bodies").write_text("in the way")
        with pytest.raises(StoreUnwritable, match="bodies"):
            store.bodies.spool()


async def test_what_a_dead_process_was_writing_goes(store_dir: Path) -> None:
    """Opening the store removes it; what living processes write stays."""
    with Store.open(store_dir) as store:
        spool = store.bodies.spool()
        spool.write(b"x")
    alive = create_liveness_file(store_dir)
    theirs = store_dir / "bodies" / f"partial-{alive.name}-1"
    theirs.write_bytes(b"half")
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    dead = ended.pid
    gone = store_dir / "bodies" / f"partial-{dead}-1"
    gone.write_bytes(b"half")
    with Store.open(store_dir):
        left = [path.name for path in (store_dir / "bodies").glob("partial-*")]
    spool.drop()
    await asyncio.sleep(0)
    assert gone.name not in left
    assert left == [theirs.name], "and what it had left itself, before it let go of the store"
    alive.close()
    with Store.open(store_dir):
        assert not theirs.exists()


# ---- bodies that are set aside ---------------------------------------------------------------------

KEYS = [None, StoreKey(bytes(32), "key")]
SECRET = b"sk-live-0123456789abcdefghijABCDEFGHIJ"


@pytest.mark.parametrize("key", KEYS, ids=["plain", "encrypted"])
async def test_what_was_set_aside_comes_back(store_dir: Path, key: StoreKey | None) -> None:
    """Byte for byte, with its pieces; nothing of it is in any file that has a name, and no file stays open."""
    with Store.open(store_dir, key=key) as store:
        before = len(os.listdir("/proc/self/fd"))
        spool = store.bodies.spool(aside=True)
        expected = [
            Chunk(index * 10, len(piece), index, 3) for index, piece in enumerate([*PIECES, b""])
        ]
        for piece, chunk in zip([*PIECES, b""], expected, strict=True):
            spool.write(piece, chunk)
        assert await spool.take_back() == (b"".join(PIECES), expected)
        named = [name for _, _, names in os.walk(store_dir / "bodies") for name in names]
        spool.drop()
        assert (named, len(os.listdir("/proc/self/fd"))) == ([], before)


@pytest.mark.parametrize("redacted", [False, True], ids=["as it came", "redacted"])
@pytest.mark.parametrize("at", [0, 450, 900])
@pytest.mark.parametrize("pieces", [True, False], ids=["pieces", "no pieces"])
async def test_what_outgrows_its_place_is_kept_as_ever(
    store_dir: Path, at: int, redacted: bool, pieces: bool
) -> None:
    """Whenever that is: hash, size, pieces, and the places of what was taken out are the same."""
    redactor = Redactor(b"a key")
    fields = ((b"content-type", b"text/plain"),)
    whole = [*PIECES[:500], SECRET, *PIECES[500:]]

    def redact() -> Stream | None:
        return redactor.stream(fields, answer=True) if redacted else None

    async def kept(store: Store, *, aside: bool) -> tuple[Spilled, object, bytes]:
        spool = store.bodies.spool(pieces=pieces, redact=redact, aside=aside)
        for number, piece in enumerate(whole):
            if aside and number == at:
                spool.outgrow()
            spool.write(piece, Chunk(number, len(piece)))
            await spool.settle(256 * 1024)
        raw = await spool.read(0, 5_000_000) if not pieces else b""
        found = await spool.keep()
        spool.drop()
        return found, spool.secrets, raw

    with Store.open(store_dir) as store:
        assert await kept(store, aside=True) == await kept(store, aside=False)
        assert store.bodies.memory.backlog == 0


async def test_what_is_dropped_while_it_is_written_is_closed_after(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a file that is closed may be another's when a thread comes to write to it."""
    begun, go_on = threading.Event(), threading.Event()
    put = Partial.put

    def slow(self: Partial, data: bytes) -> None:
        begun.set()
        assert go_on.wait(10)
        assert self._file is not None
        put(self, data)

    monkeypatch.setattr(Partial, "put", slow)
    with Store.open(store_dir) as store:
        before = len(os.listdir("/proc/self/fd"))
        spool = store.bodies.spool(aside=True)
        spool.write(bytes(1 << 20))
        await asyncio.to_thread(begun.wait, 10)
        spool.write(b"and more")
        spool.drop()
        go_on.set()
        async with asyncio.timeout(10):
            while store.bodies.memory.backlog:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.001)
        assert len(os.listdir("/proc/self/fd")) == before
