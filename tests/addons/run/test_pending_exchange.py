"""How much of a pending exchange's bodies is in memory, and where the rest is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy import connection
from mitmproxy.test import tflow

import playhead.addons
from playhead.addons.run import pending_exchange as module
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.store.spill import body_memory
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.decide import Facts
from playhead.tape.redaction.redactor import Redactor

PIECE = bytes(40_000)


@pytest.fixture
def store(store_dir: Path) -> Iterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


def _begin(store: Store) -> PendingExchange:
    flow = tflow.tflow()
    flow.client_conn = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
    flow.client_conn.spools = set()  # type: ignore[attr-defined]  # as the handler does
    open_run = OpenRun(Mode.RECORD, Config(), Redactor(b"key"), store, None)
    facts = Facts("GET", "https", "api.test", 443, "/x", RequestClass.READ)
    return PendingExchange(open_run, flow, Seq(1), facts)


async def test_only_what_grows_while_much_is_held_is_set_aside(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that was held before stays where it is; a small one is never set aside."""
    monkeypatch.setattr(body_memory, "MOST_HELD_BYTES", 130_000)
    held, growing = _begin(store), _begin(store)
    for _ in range(3):
        held.take(PIECE)
    growing.take(PIECE)
    assert (held.answer.download, growing.answer.download) == (None, None)
    growing.take(PIECE)
    assert growing.answer.download is not None
    assert growing.answer.download.is_aside
    assert growing.answer.pieces == []
    assert store.bodies.memory.held == 3 * (len(PIECE) + module._PIECE_BYTES)
    async with growing.in_memory():
        assert growing.answer.pieces == [PIECE * 2]
        assert [chunk.size for chunk in growing.answer.chunks] == [len(PIECE)] * 2
    assert (growing.answer.pieces, growing.answer.chunks) == ([], [])
    for pending in (held, growing):
        pending.finish()
    assert (store.bodies.memory.held, store.bodies.memory.backlog) == (0, 0)


async def test_what_is_too_large_for_a_place_aside_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bytes or in pieces, as what was held until then."""
    monkeypatch.setattr(body_memory, "MOST_HELD_BYTES", -1)
    monkeypatch.setattr(module, "HELD_BYTES", 4 * len(PIECE))
    monkeypatch.setattr(module, "HELD_PIECES", 7)
    for size in (len(PIECE), len(PIECE) // 2 + 1):
        pending = _begin(store)
        while not (pending.answer.download is not None and not pending.answer.download.is_aside):
            pending.take(PIECE[:size])
        assert pending.answer.size > 4 * len(PIECE) or pending.answer.taken > 7
        await pending.keep_bodies()
        assert pending.answer.downloaded is not None
        assert pending.answer.downloaded.size == pending.answer.size
        pending.finish()


def test_what_comes_after_the_end_is_not_counted(store: Store) -> None:
    """Nor taken away from what others hold."""
    pending, other = _begin(store), _begin(store)
    other.take(PIECE)
    pending.take(PIECE)
    pending.finish()
    pending.take(PIECE)
    pending.hold(-100)
    pending.let_go()
    assert store.bodies.memory.held == len(PIECE) + module._PIECE_BYTES


async def test_a_full_disk_takes_nothing_aside(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be held goes on without it."""
    monkeypatch.setattr(body_memory, "MOST_HELD_BYTES", -1)
    pending = _begin(store)
    assert pending.is_to_be_set_aside(len(PIECE) * 2)
    store.writer._fail("the test says so")
    assert not pending.is_to_be_set_aside(len(PIECE) * 2)


def test_a_divergence_is_noted_in_one_place() -> None:
    """Who noted it elsewhere would let a resumed run send what follows."""
    notes = re.compile(r"\bnote\(\s*EventKind\.DIVERGED\b")
    root = Path(next(iter(playhead.addons.__path__)))
    found = [file.name for file in root.rglob("*.py") if notes.search(file.read_text("utf-8"))]
    assert found == ["pending_exchange.py"]
