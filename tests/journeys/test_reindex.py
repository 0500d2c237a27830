"""Tapes that are played under other rules than they were indexed under, or by another version."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import lmdb
import pytest

from playhead.config import Classes, Config, IgnoreRule, Mode, Playback, RedactRule, parse_match
from playhead.proxy.operations.reindex import reindex_run
from playhead.store import Store
from playhead.tape.canonical.canonical_request import CANONICAL_VERSION
from playhead.tape.exchange import Fingerprint, RequestClass, Seq
from playhead.tape.matching.index import Entry, Index
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.exchanges import make_request, make_response
from playhead.tests.support.recordings import record_run
from playhead.tests.support.story import Call, recorded
from playhead.timeline import Receipt, build
from playhead.timeline.receipts.exchange_rows import find_shown
from playhead.timeline.rules.reindex import plan

URL = "http://api.test/v1/runs"


def tape(folder: Path, *bodies: bytes) -> None:
    """Record `tape`; the answer to a request says its place."""
    asked = [
        (replace(make_request(f"POST {URL}", body), headers=()), make_response(b"answer %d" % seq))
        for seq, body in enumerate(bodies, start=1)
    ]
    with Store.open(folder) as store:
        record_run(store, "tape", asked, kind=RequestClass.EFFECT)


async def play(running: Running, *bodies: bytes) -> tuple[list[bytes], Receipt]:
    """Ask for the tape's answers in a playback."""
    said = []
    for body in bodies:
        connection = await Connection.open(str(running.address))
        said.append((await connection.ask(URL, body=body, credentials="tape:x")).body)
        connection.writer.close()
    playback = next(open_.info for open_ in running.registry.open if open_.info is not None)
    await running.end(playback.id)
    return said, build(running.store, running.store.runs.get(playback.id))


def config(folder: Path, **changes: object) -> Config:
    return replace(Config(mode=Mode.PLAYBACK, store=folder), **changes)  # type: ignore[arg-type]


def break_last(folder: Path) -> None:
    """Make the last exchange of a store unreadable."""
    with lmdb.open(str(folder / "log.lmdb"), max_dbs=20) as environment:
        table = environment.open_db(b"exchanges")
        with environment.begin(write=True) as transaction, transaction.cursor(table) as cursor:
            assert cursor.last()
            transaction.put(cursor.key(), cursor.value()[:-1], db=table)


REFUSE = Playback(effects="refuse")
"""What is not on the tape is told, not made up."""
MASK = (IgnoreRule(parse_match("*://api.test"), json=("$.id",)),)


def test_an_exchange_is_shown_under_the_fingerprint_that_finds_it(tmp_path: Path) -> None:
    """After `reindex` that of the index: equal requests show equal ones."""
    tape(tmp_path, b'{"id": 1, "t": "a"}', b'{"id": 2, "t": "a"}')
    reindex_run(config(tmp_path, ignore=MASK), "tape", write=True)
    with Store.open(tmp_path, readonly=True) as store:
        run = store.runs.get("tape")
        shown = [find_shown(store, run, seq) for seq in (1, 2)]
        index = store.index.fingerprints(run)
    found = {one[1].fingerprint for one in shown if one is not None}
    assert found == set(index.values())
    assert len(found) == 1


async def test_a_tape_that_was_indexed_anew_is_played_from_its_index(tmp_path: Path) -> None:
    """Nothing is computed at each opening any more, and its own bytes match exactly."""
    tape(tmp_path, b'{"id": 1, "t": "a"}', b'{"id": 2, "t": "b"}')
    settings = config(tmp_path, ignore=MASK)
    reindex_run(settings, "tape", write=True)
    async with running_engine(settings) as running:
        said, receipt = await play(running, b'{"id": 9, "t": "b"}', b'{"id": 1, "t": "a"}')
    assert said == [b"answer 2", b"answer 1"]
    assert receipt.divergences == []
    assert receipt.faithful_but_for == ["ignored content"]
    assert dict(receipt.matched) == {"canonical": 1, "exact": 1}
    assert receipt.warnings == []


async def test_a_tape_that_is_indexed_as_it_is_played_matches_as_one_that_was_indexed_anew(
    tmp_path: Path,
) -> None:
    """Under other rules than it was recorded with, its own bytes match exactly all the same, each in its turn."""
    bodies = [b'{"id": %d, "t": "a"}' % number for number in (1, 2, 3)]
    tape(tmp_path, *bodies)
    async with running_engine(config(tmp_path, ignore=MASK)) as running:
        said, receipt = await play(running, bodies[0], b'{"id": 9, "t": "a"}', bodies[2])
    assert said == [b"answer 1", b"answer 2", b"answer 3"]
    assert receipt.divergences == []
    assert receipt.faithful_but_for == ["ignored content"]
    assert dict(receipt.matched) == {"canonical": 1, "exact": 2}


async def test_an_answer_to_other_bytes_is_no_exact_match(tmp_path: Path) -> None:
    """Both bodies are on the tape, but each is answered in the other's turn: only the rule makes them the same."""
    tape(tmp_path, b'{"id": 1}', b'{"id": 2}', b'{"id": 3}')
    settings = config(tmp_path, ignore=MASK)
    reindex_run(settings, "tape", write=True)
    async with running_engine(settings) as running:
        said, receipt = await play(running, b'{"id": 2}', b'{"id": 1}', b'{"id": 3}')
    assert said == [b"answer 1", b"answer 2", b"answer 3"]
    assert dict(receipt.matched) == {"canonical": 2, "exact": 1}


TRACKING = Classes(telemetry=(parse_match("POST *://*/track"),))


@pytest.mark.parametrize("anew", [False, True], ids=["as it is played", "indexed anew"])
async def test_what_is_declared_telemetry_after_it_was_recorded_is_telemetry(
    anew: bool, store_dir: Path
) -> None:
    """It matches by its path, may be asked for again, and may be left out."""
    recording = [Call("GET /x"), Call("POST /track", {"at": 1}, "noted")]
    other = Call("POST /track", {"at": 2})
    async with recorded(store_dir, recording, classes=TRACKING) as story:
        if anew:
            store, keep_none = story.running.store, Redactor(b"a test")
            made = await asyncio.to_thread(
                plan, store, store.runs.get("tape"), Config(classes=TRACKING), keep_none
            )
            assert (made.change.changed, made.change.collisions) == (1, ())
            await asyncio.to_thread(store.index.replace, made.run, made.index)
        said = await story.play([*recording, other])
        assert [one.status for one in said] == [200, 200, 200]
        receipt = await story.end()
        assert receipt.faithful, receipt.to_json()
        assert receipt.matched["repeated"] == 1
        await story.play(recording[:1])
        receipt = await story.end()
        assert receipt.faithful, receipt.to_json()


async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """The run's row is what it was."""
    tape(tmp_path, b'{"id": 1}')
    with Store.open(tmp_path, readonly=True) as store:
        before = store.runs.get("tape")
    assert reindex_run(config(tmp_path, ignore=MASK), "tape", write=False).change.changed == 1
    with Store.open(tmp_path, readonly=True) as store:
        assert store.runs.get("tape") == before


async def test_a_tape_of_a_newer_version_is_compared_from_its_bytes_and_says_so(
    tmp_path: Path,
) -> None:
    """Its own index is none that this version could read; after a reindex there is nothing to say."""
    tape(tmp_path, b'{"id": 1}')
    with Store.open(tmp_path) as store:
        foreign = Index((Entry(Seq(1), Fingerprint(b"?" * 16), b"!" * 16),), b"newer rules", 99)
        store.index.replace(store.runs.get("tape"), foreign)
    async with running_engine(config(tmp_path)) as running:
        said, receipt = await play(running, b'{"id": 1}')
    assert said == [b"answer 1"]
    assert receipt.faithful
    assert receipt.warnings == [
        f"run tape is indexed in canonical form 99, and this version of Playhead compares in form "
        f"{CANONICAL_VERSION}: its requests were compared from their raw bytes; "
        "`playhead reindex tape` makes that last"
    ]
    made = reindex_run(config(tmp_path), "tape", write=True)
    assert made.to_json(written=True)["canonical"] == {"before": 99, "now": CANONICAL_VERSION}
    async with running_engine(config(tmp_path)) as running:
        said, receipt = await play(running, b'{"id": 1}')
    assert (said, receipt.warnings) == ([b"answer 1"], [])


async def test_a_tape_that_cannot_be_indexed_under_the_rules_of_now_says_why(
    tmp_path: Path,
) -> None:
    """One run, whose refusals and whose receipt name the exchange; not another one for each connection."""
    tape(tmp_path, b'{"id": 1}', b'{"id": 2}')
    break_last(tmp_path)
    async with running_engine(config(tmp_path, ignore=MASK)) as running:
        said, receipt = await play(running, b'{"id": 1}', b'{"id": 1}')
        assert [run.id for run in running.store.runs.all()] == ["tape", "tape@1"]
    why = "the tape cannot be indexed under the rules of now: run tape, exchange 2: "
    assert [json.loads(body)["playhead"]["reason"].startswith(why) for body in said] == [True] * 2
    assert [text.startswith(why) for text in receipt.warnings] == [True]
    assert (receipt.faithful, receipt.counts["refused"]) == (False, 2)


async def test_an_index_replaced_while_its_tape_is_played_changes_nothing_for_the_playback(
    tmp_path: Path,
) -> None:
    """Under other rules the two requests are one; this playback goes on under its own."""
    tape(tmp_path, b'{"id": 1}', b'{"id": 2}')
    async with running_engine(config(tmp_path)) as running:
        connection = await Connection.open(str(running.address))
        first = await connection.ask(URL, body=b'{"id": 2}', credentials="tape:x")
        entries = tuple(
            Entry(Seq(seq), Fingerprint(b"one key for all!"), b"%016d" % seq) for seq in (1, 2)
        )
        store = running.store
        await asyncio.to_thread(
            store.index.replace, store.runs.get("tape"), Index(entries, b"other rules")
        )
        connection.writer.close()
        said, receipt = await play(running, b'{"id": 1}')
    assert (first.body, said) == (b"answer 2", [b"answer 1"])
    assert receipt.faithful


@pytest.mark.parametrize("anew", [False, True])
async def test_a_query_key_that_is_redacted_now_counts_by_its_kind(
    tmp_path: Path, anew: bool
) -> None:
    """Also on a tape that was indexed before it was."""
    asked = replace(make_request("GET http://api.test/v1?session_key=abc"), headers=())
    with Store.open(tmp_path) as store:
        record_run(store, "tape", [(asked, make_response(b"yes"))], kind=RequestClass.READ)
    settings = config(tmp_path, redact=(RedactRule(query="session_key"),))
    if anew:
        reindex_run(settings, "tape", write=True)
    async with running_engine(settings) as running:
        connection = await Connection.open(str(running.address))
        answer = await connection.ask("http://api.test/v1?session_key=xyz", credentials="tape:x")
        connection.writer.close()
    assert answer.body == b"yes"


async def test_an_exchange_that_cannot_be_read_is_named_each_time_it_is_asked_for(
    tmp_path: Path,
) -> None:
    """With what to do, and it stays unserved; the rest of the tape plays."""
    tape(tmp_path, b'{"id": 1}', b'{"id": 2}')
    break_last(tmp_path)
    async with running_engine(config(tmp_path, playback=REFUSE)) as running:
        said, receipt = await play(running, b'{"id": 2}', b'{"id": 2}', b'{"id": 1}', b'{"id": 3}')
    first, again, other = (json.loads(said[at])["playhead"] for at in (0, 1, 3))
    assert first["reason"].startswith("on the tape as seq 2, which cannot be read (run tape, exch")
    assert first["reason"].endswith("; record it again, or restore the store from a copy")
    assert first["divergence"]["nearest_seq"] == 2
    assert first["divergence"]["method"] == "POST"
    assert again["reason"] == first["reason"]
    assert said[2] == b"answer 1"
    # What is near is looked for among what can be read.
    assert other["divergence"]["nearest_seq"] == 1
    assert [row["seq"] for row in receipt.unused] == [2]
    assert receipt.counts["refused"] == 3


async def test_what_is_telemetry_by_now_is_not_named_as_what_was_meant(tmp_path: Path) -> None:
    """Nobody wrote it, whatever it was taken for when it was recorded."""
    tape(tmp_path, b'{"id": 1}')
    other = {"url": "http://api.test/v1/other"}
    for classes, near in (
        (Classes(), 1),
        (Classes(telemetry=(parse_match("*://api.test/v1/runs"),)), None),
    ):
        async with running_engine(config(tmp_path, classes=classes)) as running:
            connection = await Connection.open(str(running.address))
            answer = await connection.ask(other["url"], body=b'{"id": 1}', credentials="tape:x")
            connection.writer.close()
        assert json.loads(answer.body)["playhead"]["divergence"]["nearest_seq"] == near


async def test_a_pattern_that_ran_out_of_time_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the refusal, and as a warning of the receipt: what it would have masked counted."""
    tape(tmp_path, b'{"id": "%b1"}' % (b"a" * 100_000), b'{"id": "x"}')
    monkeypatch.setattr("playhead.tape.canonical.regex_masks.LIMIT_S", 0.001)
    slow = (IgnoreRule(parse_match("*://api.test"), regex=("(?s)a.*b|[a1]",)),)
    async with running_engine(config(tmp_path, ignore=slow, playback=REFUSE)) as running:
        said, receipt = await play(running, b'{"id": "%b2"}' % (b"a" * 100_000), b'{"id": "x"}')
    why = "the ignore pattern '(?s)a.*b|[a1]' took longer than"
    assert why in json.loads(said[0])["playhead"]["divergence"]["text"]
    assert said[1] == b"answer 2"
    assert [why in text for text in receipt.warnings] == [True]


_AS_JSON = {"Content-Type": "application/json"}
_AS_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_AS_TEXT = {"Content-Type": "text/plain"}
LATER_RULES = {
    "json": (RedactRule(json="customer"), "POST /pay", b'{"customer": "%b"}', _AS_JSON),
    "form": (RedactRule(form="customer"), "POST /pay", b"customer=%b&n=1", _AS_FORM),
    "header": (RedactRule(header="x-customer"), "POST /pay", b"{}", {"X-Customer": "%b"}),
    "query": (RedactRule(query="customer"), "GET /pay?customer=%b", b"", {}),
    "path": (RedactRule(path="^/customers/([^/]+)"), "DELETE /customers/%b", b"", {}),
    "pattern": (RedactRule(pattern=r"[a-z]{4,8}\.[a-z]+"), "POST /pay", b"pay %b 1", _AS_TEXT),
    "pii": (RedactRule(pii=("email",)), "POST /pay", b'{"to": "%b@example.com"}', _AS_JSON),
    "short": (RedactRule(json="customer"), "POST /pay", b'{"customer": "%b"}', _AS_JSON),
}


def _of_customer(kind: str, customer: bytes) -> Call:
    _, what, body, headers = LATER_RULES[kind]
    text = customer.decode()
    said = {name: value.replace("%b", text) for name, value in headers.items()}
    return Call(what.replace("%b", text), body.replace(b"%b", customer), headers=said)


@pytest.mark.parametrize("anew", [False, True], ids=["as it is played", "indexed anew"])
async def test_a_value_that_a_later_rule_replaces_counts_as_if_it_had_been_there(
    anew: bool, store_dir: Path
) -> None:
    """Wherever it is, the unchanged agent is served, and another customer is refused."""
    long, other = b"alice.smith", b"mallory.jones"
    pairs = {kind: (b"7", b"8") if kind == "short" else (long, other) for kind in LATER_RULES}
    rules = tuple(dict.fromkeys(rule for rule, *_ in LATER_RULES.values()))
    # A value that was learned later is not looked for in what was asked before.
    first = Call("POST /note", b"about alice.s and alice.smith-9", headers=_AS_JSON)
    calls = [first, *(_of_customer(kind, pair[0]) for kind, pair in pairs.items())]
    others = [_of_customer(kind, pair[1]) for kind, pair in pairs.items()]
    async with recorded(store_dir, calls, redact=rules, playback=REFUSE) as story:
        if anew:
            settings = config(store_dir, redact=rules, playback=REFUSE)
            store = story.running.store
            made = await asyncio.to_thread(
                plan, store, store.runs.get("tape"), settings, Redactor(b"a test", rules)
            )
            await asyncio.to_thread(store.index.replace, made.run, made.index)
        assert [one.status for one in await story.play(calls)] == [200] * len(calls)
        receipt = await story.end()
        assert receipt.faithful, receipt.to_json()
        assert [one.status for one in await story.play(others)] == [424] * len(others)
