"""What was changed behind the store's back is found, and the first exchange that is bad is named."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.store import RunInfo, Store
from playhead.store.lmdb_keys import fingerprint_key, message_key, number_key, pair_key
from playhead.tape.canonical.canonical_request import raw_key
from playhead.tape.exchange import (
    Chunk,
    Exchange,
    Message,
    MessageKind,
    RequestClass,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_record,
    make_response,
)
from playhead.timeline.checks.integrity import Verified, render_verified, verify_run

URL = "https://api.test/v1/things"
Change = Callable[[Store, RunInfo, "lmdb.Transaction", dict[str, Any]], None]


async def _make(store: Store, name: str, *, seal: bool = True) -> RunInfo:
    """Four exchanges: plain, plain, with a large answer, a WebSocket of two messages."""
    info = await store.runs.create(name, mode="record", at_ns=1)
    spool = store.bodies.spool()
    spool.write(b"x" * 1000, Chunk(1, 1000))
    spilled = await spool.keep()
    told = [
        make_exchange(1, body=b"one"),
        make_exchange(2, body=b"two", kind=RequestClass.EFFECT),
        make_exchange(3, response=replace(make_response(b""), spilled=spilled)),
        make_exchange(4, response=make_response(b"", 101), websocket=WebSocketSummary(2, 2, None)),
    ]
    for exchange in told:
        store.events.append(info.number, make_intent(exchange))
        if exchange.websocket is not None:
            for number in range(2):
                said = Message(number, True, MessageKind.TEXT, b"%d" % number)
                store.messages.append(info.number, exchange.seq, number, said)
        await store.exchanges.save(info.number, partial(make_record, exchange))
    return await store.runs.seal(info, reason="done", at_ns=9) if seal else info


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with a store that holds the runs `a` and `b`."""
    with Store.open(tmp_path / "s") as store:
        for name in "ab":
            asyncio.run(_make(store, name))
    return tmp_path / "s"


def verified(path: Path, name: str = "a") -> Verified:
    """Check a run."""
    with Store.open(path, readonly=True) as store:
        return verify_run(store, store.runs.get(name))


def test_a_run_as_it_was_recorded_is_sound(store: Path) -> None:
    """Every exchange has its hash in the log."""
    found = verified(store)
    assert (found.exchanges, found.unproven, found.problems) == (4, 0, ())
    assert render_verified([found]) == "a: sound, 4 exchanges"


def _swap(table: str, one: bytes, other: bytes) -> Change:
    def change(_s: Store, _r: RunInfo, txn: "lmdb.Transaction", tables: dict[str, Any]) -> None:
        first, second = txn.get(one, db=tables[table]), txn.get(other, db=tables[table])
        assert first is not None
        assert second is not None
        txn.put(one, bytes(second), db=tables[table])
        txn.put(other, bytes(first), db=tables[table])

    return change


def _drop(table: str, key: bytes) -> Change:
    def change(_s: Store, _r: RunInfo, txn: "lmdb.Transaction", tables: dict[str, Any]) -> None:
        assert txn.delete(key, db=tables[table])

    return change


def _flip(table: str, key: bytes) -> Change:
    def change(_s: Store, _r: RunInfo, txn: "lmdb.Transaction", tables: dict[str, Any]) -> None:
        value = bytearray(txn.get(key, db=tables[table]) or b"")
        value[-1] ^= 1
        txn.put(key, bytes(value), db=tables[table])

    return change


def _put(table: str, key: bytes, value: bytes = b"") -> Change:
    def change(_s: Store, _r: RunInfo, txn: "lmdb.Transaction", tables: dict[str, Any]) -> None:
        txn.put(key, value, db=tables[table])

    return change


A, LAST = 1, 10
TWO = make_exchange(2, body=b"two", kind=RequestClass.EFFECT)
RAW = raw_key(TWO.request, TWO.request_class)
OTHER = make_exchange(1, body=b"another").fingerprint


@pytest.mark.parametrize(
    ("change", "seq", "told"),
    [
        # the log
        (_drop("events", pair_key(A, 3)), 2, "event 4 .* does not follow"),
        (_drop("events", pair_key(A, LAST)), 0, "events are missing"),
        (_swap("events", pair_key(A, 4), pair_key(A, 6)), 3, "event 4 .* does not follow"),
        (_flip("events", pair_key(A, 5)), 2, "does not follow|event 5"),
        # exchanges
        (_drop("exchanges", pair_key(A, 2)), 2, "missing, although the log has its outcome"),
        (
            _swap("exchanges", pair_key(A, 1), pair_key(A, 2)),
            1,
            "in its place is exchange 2|its delta base",
        ),
        (_swap("exchanges", pair_key(A, 2), pair_key(2, 2)), 0, ""),
        (_flip("exchanges", pair_key(A, 3)), 3, "exchange 3"),
        # what belongs to them
        (
            _drop("fingerprints", fingerprint_key(A, TWO.fingerprint, 2)),
            2,
            "does not lead to it",
        ),
        (_put("fingerprints", fingerprint_key(A, OTHER, 2)), 2, "the key of another request"),
        (_put("fingerprints", fingerprint_key(A, OTHER, 9)), 9, "the index leads to it, and it is"),
        (_put("raws", number_key(A) + RAW, OTHER), 2, "elsewhere from its bytes"),
        (_drop("files", pair_key(A, 3)), 3, "not among those that `gc` leaves"),
        (_swap("messages", message_key(A, 4, 0), message_key(A, 4, 1)), 4, "messages do not fit"),
        (_drop("messages", message_key(A, 4, 1)), 4, "messages do not fit"),
        # the list of runs
        (_drop("names", b"a"), 0, "."),
    ],
)
def test_a_change_is_found_and_placed(change: Change, seq: int, told: str, store: Path) -> None:
    """One at a time; the run beside it stays sound."""
    with Store.open(store) as opened:
        run = opened.runs.get("a")
        tables = opened._database.tables
        opened.writer.call(lambda txn: change(opened, run, txn, tables))
    with Store.open(store, readonly=True) as opened:
        found = verify_run(opened, run)
        assert verify_run(opened, opened.runs.get("b")).problems == ()
    if not told:  # the same bytes in both runs
        assert found.problems == ()
        return
    assert found.problems
    assert found.problems[0].seq == seq
    assert any(re.search(told, problem.text) for problem in found.problems), found.problems


def test_an_answer_that_was_forged_does_not_fit_the_log(store: Path) -> None:
    """It can be read, its place is right, and it is not what was recorded."""
    with Store.open(store) as opened:
        run = opened.runs.get("a")
        forged = make_exchange(1, body=b"one", response=make_response(b"no"))
        opened.writer.call(
            lambda txn: opened.exchanges._prepare(run.number, _unproven(forged))(txn)
        )
    (problem,) = verified(store).problems
    assert (problem.seq, problem.text) == (1, "it does not fit the hash that the log has of it")


def _unproven(exchange: Exchange) -> Any:
    return replace(make_record(exchange), outcome=None)


def _refused(store: Store) -> RunInfo:
    """Write a run whose only request was refused, as the proxy does."""
    exchange = make_exchange(1, verdict=VerdictKind.REFUSED)
    asked = {**make_intent(exchange).data, "verdict": "refused", "reason": "denied"}

    async def write() -> RunInfo:
        info = await store.runs.create("r", mode="record", at_ns=1)
        store.events.append(info.number, Event(EventKind.VERDICT, 2, asked))
        outcome = Event(EventKind.OUTCOME, 3, {"seq": 1})
        await store.exchanges.save(
            info.number, lambda: replace(make_record(exchange), outcome=outcome)
        )
        return await store.runs.seal(info, reason="done", at_ns=9)

    return asyncio.run(write())


def test_the_log_speaks_for_a_refusal_by_its_verdict(tmp_path: Path) -> None:
    """There is no intent: nothing was sent. What was answered has its hash all the same."""
    with Store.open(tmp_path) as store:
        run = _refused(store)
        found = verify_run(store, run)
        assert (found.unproven, found.problems) == (0, ())
        forged = make_exchange(1, verdict=VerdictKind.REFUSED, response=make_response(b"no"))
        store.writer.call(lambda txn: store.exchanges._prepare(run.number, _unproven(forged))(txn))
    (problem,) = verified(tmp_path, "r").problems
    assert (problem.seq, problem.text) == (1, "it does not fit the hash that the log has of it")


def test_a_refusal_that_is_gone_is_missed(tmp_path: Path) -> None:
    """One of an earlier version, which has no hash, is not."""
    with Store.open(tmp_path) as store:
        run = _refused(store)
        table = store._database.tables["exchanges"]
        store.writer.call(lambda txn: txn.delete(pair_key(run.number, 1), db=table))
    (problem, *_) = verified(tmp_path, "r").problems
    assert (problem.seq, problem.text) == (1, "it is missing, although the log has its outcome")


def test_a_large_body_is_read_and_held_against_its_hash(store: Path) -> None:
    """It lies in a file of its own."""
    (body,) = [
        path
        for path in (store / "bodies").rglob("*")
        if path.is_file() and path.stat().st_size == 1000
    ]
    body.write_bytes(b"y" + b"x" * 999)
    (problem,) = verified(store).problems
    assert problem.seq == 3
    assert "hash" in problem.text
    body.unlink()
    (problem,) = verified(store).problems
    assert (problem.seq, "cannot be read" in problem.text) == (3, True)


def test_what_no_hash_vouches_for_is_counted(tmp_path: Path) -> None:
    """As what was under way when its process died; it is no fault."""
    with Store.open(tmp_path) as store:

        async def record() -> RunInfo:
            info = await store.runs.create("r", mode="record", at_ns=1)
            store.events.append(info.number, make_intent(make_exchange()))
            await store.exchanges.save(
                info.number, lambda: make_record(make_exchange(), final=False)
            )
            return await store.runs.seal(info, reason="x", at_ns=2)

        asyncio.run(record())
    found = verified(tmp_path, "r")
    assert (found.unproven, found.problems) == (1, ())
    assert "1 without a hash" in render_verified([found])


def test_the_command_says_where_and_ends_with_1(store: Path) -> None:
    """All runs, or one; for people and as JSON."""

    def ask(*arguments: str) -> tuple[int, str]:
        made = CliRunner().invoke(
            cli, ["verify", *arguments, "--store", str(store)], standalone_mode=False
        )
        return made.return_value, made.output

    assert ask() == (0, "a: sound, 4 exchanges\nb: sound, 4 exchanges\n")
    with Store.open(store) as opened:
        opened.writer.call(
            lambda txn: txn.delete(pair_key(1, 2), db=opened._database.tables["exchanges"])
        )
    code, said = ask()
    assert code == 1
    assert "a: first bad seq 2, 3 exchanges" in said
    assert (
        "  hint: what it shows or replays proves nothing: restore the store from a backup, " in said
    )
    assert said.count("hint:") == 1
    assert ask("b")[0] == 0
    assert '"seq": 2' in ask("a", "--json")[1]


def test_an_index_that_was_made_anew_is_made_once_more_and_compared(store: Path) -> None:
    """Under the rules of now, where it was made under these; else only held against what there is."""
    config = store.parent / "playhead.yaml"
    config.write_text(f"store: {store}\nignore: [{{match: 'https://api.test/*', query: [n]}}]\n")
    told = ["-c", str(config)]
    runner = CliRunner()
    assert runner.invoke(cli, ["reindex", "a", *told], standalone_mode=False).exception is None
    assert runner.invoke(cli, ["verify", *told], standalone_mode=False).return_value == 0
    with Store.open(store) as opened:
        run = opened.runs.get("a")
        assert run.index
        row = fingerprint_key(run.index, OTHER, 2)
        opened.writer.call(
            lambda txn: _put("fingerprints", row)(opened, run, txn, opened._database.tables)
        )
    made = runner.invoke(cli, ["verify", *told], standalone_mode=False)
    assert made.return_value == 1
    assert "a: first bad seq 2" in made.output
    assert "hint: its exchanges are sound, a replay may miss them: " in made.output
    assert "playhead reindex a\n" in made.output
    plain = runner.invoke(cli, ["verify", "--store", str(store)], standalone_mode=False)
    assert plain.return_value == 0
