"""What passes while nothing can be written is counted, and told once it can be."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import Config, Mode, OnFull
from playhead.store import Store
from playhead.store.lmdb import writer
from playhead.store.lmdb.free_space import FreeSpace
from playhead.tape.records.events import EventKind
from playhead.tests.support.deck import Deck
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import wait_until
from playhead.timeline import Receipt


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="ok")


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin({"/x": _answer}) as made:
        yield made


class Disk:
    """A disk that is full when the test says so."""

    full = False

    def find_shortage(self, *, again: bool = False) -> int | None:
        """As `FreeSpace.find_shortage`."""
        return 4096 if self.full else None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(
        FreeSpace, "find_shortage", lambda _, *, again=False: made.find_shortage(again=again)
    )
    monkeypatch.setattr(writer, "_CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(writer, "_RETRY_EVERY_S", 0.02)
    return made


@pytest.fixture
def deck(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Deck]:
    passes = OnFull(getattr(request, "param", "pass"))
    with Deck(Config(mode=Mode.RECORD, store=tmp_path / "store", on_full=passes)) as made:
        yield made


def _ask(deck: Deck, run: str, url: str, body: bytes | None = None) -> int:
    handler = urllib.request.ProxyHandler({"http": deck.running.url_for(run)})
    try:
        with urllib.request.build_opener(handler).open(url, body, timeout=10) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _ended(deck: Deck, run: str) -> tuple[Receipt, list[EventKind]]:
    deck.end(run)
    store: Store = deck.running.store
    info = store.runs.get(run)
    assert store.events.find_broken_link(info) is None
    return deck.receipt(run), [event.kind for event in store.events.read(info)]


def test_a_run_that_could_not_be_begun_is_begun_later(
    deck: Deck, disk: Disk, origin: Origin
) -> None:
    """It passes unrecorded until there is room; then it is there, and tells what it lacks."""
    url = f"{origin.url}/x"
    disk.full = True
    assert [_ask(deck, "late", url), _ask(deck, "late", url, b"a=1")] == [200, 200]
    assert deck.running.store.runs.all() == []
    disk.full = False
    wait_until(lambda: deck.running.store.writer.failed is None)
    deck.do(deck.running.registry.tick)
    assert _ask(deck, "late", url) == 200
    receipt, _ = _ended(deck, "late")
    assert receipt.requests == 1
    (gap,) = receipt.gaps
    assert (gap.exchanges, gap.effects) == (2, 1)
    assert gap.until_ns is not None


def test_a_gap_is_told_when_it_begins_and_when_it_is_over(
    deck: Deck, disk: Disk, origin: Origin
) -> None:
    """So that it stands in the log also if the process dies before there is room."""
    url = f"{origin.url}/x"
    assert _ask(deck, "r", url) == 200
    disk.full = True
    assert _ask(deck, "r", url, b"a=1") == 200
    deck.do(deck.running.registry.tick)
    (open_gap,) = deck.receipt("r").gaps
    assert (open_gap.until_ns, open_gap.exchanges) == (None, None)
    assert "full but for" in open_gap.reason
    disk.full = False
    wait_until(lambda: deck.running.store.writer.failed is None)
    assert _ask(deck, "r", url, b"a=2") == 200
    deck.do(deck.running.registry.tick)
    receipt, kinds = _ended(deck, "r")
    assert kinds.count(EventKind.GAP) == 2
    (gap,) = receipt.gaps
    assert (gap.exchanges, gap.effects) == (1, 1)
    assert [effect.seq for effect in receipt.effects] == [3], (
        "the one that was not logged is in the gap alone"
    )


def test_a_large_request_passes_without_the_disk(
    deck: Deck, disk: Disk, tmp_path: Path, origin: Origin
) -> None:
    """It is sent on as it comes; nothing of it is kept, and the gap counts it."""
    url, large = f"{origin.url}/x", bytes(HELD_BYTES + 1)
    assert _ask(deck, "r", url) == 200
    disk.full = True
    assert _ask(deck, "r", url, b"a=1") == 200
    assert deck.running.store.writer.failed is not None
    bodies = tmp_path / "store" / "bodies"
    bodies.write_bytes(b"no folder: there is no room for one")
    assert _ask(deck, "r", url, large) == 200
    bodies.unlink()
    disk.full = False
    wait_until(lambda: deck.running.store.writer.failed is None)
    assert _ask(deck, "r", url, large) == 200
    deck.do(deck.running.registry.tick)
    receipt, _ = _ended(deck, "r")
    (gap,) = receipt.gaps
    assert (gap.exchanges, gap.effects) == (2, 2)
    assert deck.running.store.exchanges.seqs(deck.running.store.runs.get("r")) == [1, 4]


@pytest.mark.parametrize("deck", ["stop"], indirect=True)
def test_an_effect_whose_outcome_was_not_written_is_unknown(
    deck: Deck, disk: Disk, monkeypatch: pytest.MonkeyPatch, origin: Origin
) -> None:
    """The disk fills while it is on its way: its intent stands in the log, its client is not told that it is done."""

    async def fill(request: web.Request) -> web.Response:
        await request.read()
        disk.full = True
        return web.Response(text="done")

    with Origin({"/x": fill}) as filling:
        with pytest.raises(ConnectionResetError):  # its end is withheld
            _ask(deck, "r", f"{filling.url}/x", b"a=1")
        assert _ask(deck, "r", f"{filling.url}/x", b"a=2") == 424
        assert len(filling.requests) == 1
    disk.full = False
    wait_until(lambda: deck.running.store.writer.failed is None)
    receipt, _ = _ended(deck, "r")
    (effect,) = receipt.effects
    assert effect.outcome.startswith("unknown")
    (gap,) = receipt.gaps
    assert (gap.exchanges, gap.effects) == (1, 0)


def test_a_tape_with_a_gap_is_not_played_faithfully(deck: Deck, disk: Disk, origin: Origin) -> None:
    """Everything that is asked is served, and yet nobody knows what was not on the tape."""
    url = f"{origin.url}/x"
    assert _ask(deck, "r", url) == 200
    disk.full = True
    assert _ask(deck, "r", url) == 200
    disk.full = False
    wait_until(lambda: deck.running.store.writer.failed is None)
    deck.end("r")
    deck.play()
    assert _ask(deck, "r", url) == 200
    receipt, _ = _ended(deck, "r@1")
    assert receipt.tape_gap
    assert receipt.faithful is False
    assert receipt.to_json()["exit_code"] == 125
