"""Encryption at rest: nothing of what was said can be read without the key, and nothing can be changed unseen."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from playhead.store import LogCorrupt, Store, StoreError, StoreKey
from playhead.store.encryption.choose import choose_cipher
from playhead.store.encryption.plain_cipher import PlainCipher
from playhead.store.lmdb_keys import TABLES, pair_key
from playhead.tape.records.codec import BadRecord
from playhead.tests.support.ciphers import WORD, find_raw, plant, read_all, telling

KEY = StoreKey(bytes(range(32)), "one.key")
OTHER = StoreKey(bytes(32), "other.key")
SIZES = (20, 2048, 2049)
"""Around the longest short value."""


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted store with planted text. Not to be written to."""
    folder = tmp_path_factory.mktemp("sealed") / "store"
    with Store.open(folder, key=KEY) as store:
        plant(store)
    return folder


@pytest.fixture
def copy(encrypted: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(encrypted, tmp_path / "copy"))


class Rows:
    """The rows of a table as they lie on disk."""

    def __init__(self, folder: Path, table: str) -> None:
        self._environment = lmdb.open(str(folder / "log.lmdb"), max_dbs=len(TABLES))
        self._table = self._environment.open_db(table.encode(), create=False)

    def __enter__(self) -> dict[bytes, bytes]:
        with self._environment.begin(db=self._table) as transaction:
            self._rows = {bytes(key): bytes(value) for key, value in transaction.cursor()}
        return self._rows

    def __exit__(self, *_: object) -> None:
        with self._environment.begin(write=True, db=self._table) as transaction:
            transaction.drop(self._table, delete=False)
            for key, value in self._rows.items():
                transaction.put(key, value)
        self._environment.close()


# ---- what can be seen ------------------------------------------------------------------------------


def test_planted_text_is_nowhere_in_the_files(encrypted: Path, tmp_path: Path) -> None:
    """Exchanges, events, messages, bodies, names, hosts, and hashes by which they could be guessed."""
    with Store.open(encrypted, readonly=True, key=KEY) as store:
        needles = telling(store)
    assert not list(find_raw(encrypted, needles))
    with Store.open(tmp_path / "plain") as store:
        plant(store)
    found = {needle for _, needle in find_raw(tmp_path / "plain", needles)}
    assert found >= set(needles) - {WORD.hex().encode()} - {needles[2]}, "the look itself is blind"


def test_an_encrypted_store_reads_as_a_plain_one(encrypted: Path, tmp_path: Path) -> None:
    """Whatever is asked of it."""
    with (
        Store.open(tmp_path / "plain") as plain,
        Store.open(encrypted, readonly=True, key=KEY) as store,
    ):
        plant(plain)
        assert read_all(store) == read_all(plain)
        assert [run.id for run in store.runs.all()] == [run.id for run in plain.runs.all()]


def test_a_body_file_is_encrypted_from_its_first_byte(store_dir: Path) -> None:
    """Also what no name leads to, and it can be read back meanwhile."""

    async def write(store: Store) -> None:
        spool = store.bodies.spool(pieces=False)
        for _ in range(20):
            spool.write(WORD * 3000)
        await spool.settle()
        assert await spool.read(100_000, 70_000) == (WORD * 60_000)[100_000:170_000]
        assert await spool.read(len(WORD) * 60_000 - 5, 100) == WORD[-5:]
        assert (await spool.measure()).size == len(WORD) * 60_000
        assert len(list(find_raw(store_dir, [b"partial-"]))) == 1
        assert not list(find_raw(store_dir, [WORD]))
        spool.drop()

    with Store.open(store_dir, key=KEY) as store:
        asyncio.run(write(store))


@pytest.mark.parametrize("size", SIZES)
def test_the_same_value_is_encrypted_differently_for_every_key(size: int) -> None:
    """Nobody sees that two rows hold the same."""
    cipher = choose_cipher(KEY)
    places = [(table, pair_key(1, seq)) for table in ("exchanges", "events") for seq in (1, 2)]
    encrypted = [cipher.encrypt(*place, bytes(size))[1] for place in places]
    starts = {value[1:13] if size <= 2048 else value[9:21] for value in encrypted}
    assert len(starts) == len(set(encrypted)) == len(places)
    assert [
        cipher.decrypt(*place, data) for place, data in zip(places, encrypted, strict=True)
    ] == ([bytes(size)] * len(places))


def test_values_that_share_a_place_share_nothing_else() -> None:
    """A row that is written anew: what a nonce that comes again gives away where it must not."""
    cipher = choose_cipher(KEY)
    one, two = (
        cipher.encrypt("exchanges", pair_key(1, 1), bytes([n]) * 500)[1][1:] for n in (1, 2)
    )
    mixed = bytes(a ^ b for a, b in zip(one, two, strict=True))
    assert len(set(mixed)) > 100


@pytest.mark.parametrize("size", SIZES)
def test_a_short_value_takes_seventeen_bytes_more(size: int) -> None:
    """A mark and a tag; the nonce follows from its place."""
    encrypted = choose_cipher(KEY).encrypt("exchanges", pair_key(1, 1), bytes(size))[1]
    assert len(encrypted) - size == (17 if size <= 2048 else 37)


# ---- the wrong key ---------------------------------------------------------------------------------


@pytest.mark.parametrize("readonly", [False, True], ids=["writer", "reader"])
@pytest.mark.parametrize(
    ("key", "told"),
    [(None, "but no key was given"), (OTHER, f"but other.key holds key {OTHER.id.hex()}")],
    ids=["no key", "another"],
)
def test_a_store_does_not_open_without_its_key(
    copy: Path, key: StoreKey | None, told: str, readonly: bool
) -> None:
    """The error names both keys and where one is given; nothing is changed."""
    before = (copy / "log.lmdb" / "data.mdb").read_bytes()
    with pytest.raises(
        StoreError, match=f"is encrypted under key {KEY.id.hex()}, {told}"
    ) as caught:
        Store.open(copy, key=key, readonly=readonly)
    assert "encrypt.key_file" in caught.value.hint
    assert "PLAYHEAD_ENCRYPTION_KEY" in caught.value.hint
    assert (copy / "log.lmdb" / "data.mdb").read_bytes() == before


@pytest.mark.parametrize("readonly", [False, True], ids=["writer", "reader"])
def test_a_plain_store_does_not_open_with_a_key(store_dir: Path, readonly: bool) -> None:
    """Its person believes that it is encrypted."""
    Store.open(store_dir).close()
    with pytest.raises(StoreError, match=r"is not encrypted, but one\.key holds key") as caught:
        Store.open(store_dir, key=KEY, readonly=readonly)
    assert "playhead rekey" in caught.value.hint


def test_a_store_made_with_a_key_has_it_from_the_start(store_dir: Path) -> None:
    """Even before anything is in it."""
    Store.open(store_dir, key=KEY).close()
    with pytest.raises(StoreError, match="is encrypted"):
        Store.open(store_dir)


# ---- what was changed ------------------------------------------------------------------------------


def refusal(folder: Path, seq: int = 1) -> str:
    with Store.open(folder, readonly=True, key=KEY) as store:
        run = store.runs.all()[0]
        with pytest.raises(LogCorrupt) as caught:
            store.exchanges.find(run, seq)
        assert WORD.decode() in run.id
        return str(caught.value)


def test_a_value_in_anothers_place_is_refused(copy: Path) -> None:
    """Each is encrypted for its row."""
    with Rows(copy, "exchanges") as found:
        one, two, _ = found
        found[one], found[two] = found[two], found[one]
    assert "exchange 1: it fails authentication" in refusal(copy)
    assert "exchange 2: it fails authentication" in refusal(copy, 2)


def test_a_value_out_of_another_table_is_refused(copy: Path) -> None:
    """Events and exchanges have the same keys."""
    with Rows(copy, "events") as events:
        event = events[pair_key(1, 1)]
    with Rows(copy, "exchanges") as found:
        found[pair_key(1, 1)] = event
    assert "it fails authentication" in refusal(copy)


@pytest.mark.parametrize("at", [0, 3, 12, 30, -1], ids=["mark", "key", "nonce", "text", "tag"])
def test_a_flipped_bit_of_a_large_value_is_found(at: int) -> None:
    """Wherever it is."""
    cipher = choose_cipher(KEY)
    place, data = cipher.encrypt("exchanges", pair_key(1, 1), bytes(5000))
    data = data[:at] + bytes([data[at] ^ 1]) + data[at:][1:]
    told = {0: "not encrypted", 3: "is encrypted with key"}.get(at, "it fails authentication")
    with pytest.raises(BadRecord, match=told):
        cipher.decrypt("exchanges", place, data)


@pytest.mark.parametrize("at", [0, 3, 30, -1], ids=["mark", "start", "text", "tag"])
def test_a_flipped_bit_is_found(copy: Path, at: int) -> None:
    """Wherever it is in a value; the other exchanges are read."""
    with Rows(copy, "exchanges") as found:
        value = bytearray(found[pair_key(1, 1)])
        value[at] ^= 1
        found[pair_key(1, 1)] = bytes(value)
    told = refusal(copy)
    assert "run zebra" not in told or "exchange 1" in told
    assert {0: "not encrypted"}.get(at, "it fails authentication") in told
    with Store.open(copy, readonly=True, key=KEY) as store:
        assert store.exchanges.find(store.runs.all()[0], 2) is not None


def test_a_plain_value_in_an_encrypted_store_is_refused(copy: Path) -> None:
    """Nobody can write into it what he has no key for."""
    with Rows(copy, "exchanges") as found:
        found[pair_key(1, 1)] = b"\0" * 60
    assert "it is not encrypted, but the store is" in refusal(copy)


def test_a_changed_event_is_where_the_chain_breaks(copy: Path) -> None:
    """`find_broken_link` names it; the log does, too."""
    with Rows(copy, "events") as found:
        row = found[pair_key(1, 3)]
        found[pair_key(1, 3)] = row[:-1] + bytes([row[-1] ^ 1])
    with Store.open(copy, readonly=True, key=KEY) as store:
        run = store.runs.all()[0]
        assert store.events.find_broken_link(run) == 3
        with pytest.raises(LogCorrupt, match="event 3: it fails authentication"):
            store.events.read(run)


def test_an_open_run_whose_log_ends_in_damage_keeps_nobody_out(tmp_path: Path) -> None:
    """Nothing can be put behind it: it is shown as ended, and the store opens for the others."""
    folder = tmp_path / "store"
    with Store.open(folder, key=KEY) as store:
        plant(store, "bad", seal=False)
    with Rows(folder, "events") as found:
        key = max(found)
        found[key] = found[key][:-1] + bytes((found[key][-1] ^ 1,))
    for _ in range(2):
        with Store.open(folder, key=KEY) as store:
            plant(store, "good")
    with Store.open(folder, readonly=True, key=KEY) as store:
        assert [one.status for one in store.runs.all()] == ["recovered", "sealed", "sealed"]


@pytest.mark.parametrize("table", ["runs", "names", "raws", "origins", "messages"])
def test_any_other_row_that_was_changed_is_named(copy: Path, table: str) -> None:
    """By its table, and never as a traceback."""
    with Rows(copy, table) as found:
        for key, value in found.items():
            found[key] = value[:-1] + bytes((value[-1] ^ 1,))
    with Store.open(copy, readonly=True, key=KEY) as store, pytest.raises(LogCorrupt):
        read_all(store)


# ---- files of bodies -------------------------------------------------------------------------------


def harmed(folder: Path) -> Iterator[tuple[str, Path, bytes]]:
    """Ways to harm the largest file."""
    path = max(
        (folder / choose_cipher(KEY).folder).glob("??/*"), key=lambda one: one.stat().st_size
    )
    data = path.read_bytes()
    frame = 64 * 1024 + 16
    head = len(data) - (len(data) - 38) // frame * frame - (len(data) - 38) % frame
    assert head == 38
    first, second = data[head : head + frame], data[head + frame : head + 2 * frame]
    yield "the file was cut short", path, data[: head + 2 * frame]
    yield "it fails authentication", path, data[:-1]
    yield "it fails authentication", path, data[: head + 100] + b"x" + data[head + 101 :]
    yield "it fails authentication", path, data[:head] + second + first + data[head + 2 * frame :]
    yield "it fails authentication", path, data + first
    yield "it fails authentication", path, data[: head - 1] + b"x" + data[head:]
    yield "is encrypted with key", path, data[:16] + b"xxxx" + data[20:]
    yield "is not an encrypted file", path, b"plain" * 1000
    yield "is not an encrypted file", path, b""


@pytest.mark.parametrize("number", range(9))
def test_a_body_file_that_was_changed_is_named(copy: Path, number: int) -> None:
    """Cut at a frame or inside, flipped, frames swapped, appended to: the last piece is never given."""
    told, path, data = list(harmed(copy))[number]
    path.write_bytes(data)
    with Store.open(copy, readonly=True, key=KEY) as store:
        exchange = store.exchanges.find(store.runs.all()[0], 3)
        assert exchange is not None
        assert exchange.response is not None
        assert exchange.response.spilled is not None
        pieces: list[object] = []
        with pytest.raises(LogCorrupt, match=told):
            pieces.extend(store.bodies.read(exchange.response.spilled))
    assert len(pieces) < 6


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 131072, 200_000])
def test_a_body_of_any_length_comes_back(store_dir: Path, size: int) -> None:
    """Around the edges of frames, too."""

    async def write(store: Store) -> list[bytes]:
        spool = store.bodies.spool(pieces=False)
        spool.write(bytes(size))
        spilled = await spool.keep()
        return [data for _, data in store.bodies.read(spilled)]

    with Store.open(store_dir, key=KEY) as store:
        assert b"".join(asyncio.run(write(store))) == bytes(size)


def test_without_a_key_nothing_is_changed() -> None:
    """The cipher that does nothing gives back the very same bytes."""
    cipher = choose_cipher(None)
    value = b"x" * 100
    assert type(cipher) is PlainCipher
    assert cipher.encrypt("exchanges", b"k", value)[1] is value
    assert cipher.decrypt("exchanges", b"k", value) is value
