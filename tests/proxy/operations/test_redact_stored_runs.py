"""`playhead redact --rewrite`: a rule that was learned later, applied to what is stored."""

import asyncio
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.config import Config, Encrypt, RedactRule
from playhead.proxy.cli import cli
from playhead.proxy.operations.redact_stored_runs import rewrite
from playhead.proxy.operations.verify import verify_runs
from playhead.proxy.trust.redaction_and_receipt_keys import open_redaction_key
from playhead.store import (
    Ingest,
    Record,
    RunInfo,
    RunStatus,
    Store,
    StoreError,
    make_key_file,
)
from playhead.tape.canonical.canonical_request import raw_key
from playhead.tape.exchange import (
    Chunk,
    Close,
    Exchange,
    Fault,
    FaultKind,
    Interim,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    RequestClass,
    Response,
    Seq,
    WebSocketSummary,
)
from playhead.tape.folders.manifest import Manifest
from playhead.tape.records.codec import encode_exchange
from playhead.tape.records.events import Event, EventKind, content_hash
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support import prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_outcome,
    make_request,
    make_response,
)
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.other_process import opened_elsewhere, recording_elsewhere
from playhead.tests.support.stored import content, file_entry
from playhead.timeline.rewriting.rewrite_run import rewrite_run

SECRET = "-".join(("tango", "4417", "velvet", "9031"))
"""No format knows it: a rule has to name its place."""
HIDDEN = SECRET.encode()
FORMAT = "_".join(("hf", "Qw7Zk3vTn9LxB2mWdR8sYp4HcJ6gFa1eUo"))
"""The shipped table knows it; it stands for one that was recorded before the table did."""
HEADER = "{header: x-foo}"
PATTERN = "{pattern: 'tango-[0-9]+-velvet-[0-9]+'}"
NAMED = {"{header: x-foo}": "redact[0] header x-foo", PATTERN: "redact[0] pattern"}
POINTS = 25 if FULL else 2
"""At which a rewrite is killed."""
LARGE = 600_000
"""Bytes of a body that is spilled."""


def run(store: Path, *arguments: str, redact: str = PATTERN) -> Result:
    """Run a command, with a configuration that redacts, and archives beside the store."""
    config = store.parent / f"{store.name}.yaml"
    config.write_text(
        f"store: {store}\nredact: [{redact}]\nretention: {{hot: 0s, archive: ../attic}}\n"
    )
    return CliRunner().invoke(cli, [*arguments, "-c", str(config)], standalone_mode=False)


def done(store: Path, *arguments: str, code: int = 0, **options: str) -> str:
    """Run a command that works; give what it says."""
    made = run(store, *arguments, **options)
    assert (made.exception, made.return_value or 0) == (None, code), made.output
    return made.stdout


def refused(store: Path, *arguments: str, **options: str) -> str:
    """Run a command that fails; give what a person is told."""
    made = run(store, *arguments, **options)
    assert isinstance(made.exception, PlayheadError), made.output
    return f"{made.exception}; {made.exception.hint}"


class Story(NamedTuple):
    """An exchange that is to be written, with its messages and other events."""

    exchange: Exchange
    messages: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()


async def write(
    store: Store,
    name: str,
    stories: list[Story],
    *,
    agent: str = "agent.py",
    parent: RunInfo | None = None,
    reason: str = "done",
) -> RunInfo:
    """Write a run that has ended, as a recorder does."""
    mode = "record" if parent is None else "playback"
    info = await store.runs.create(
        name, mode=mode, at_ns=7, agent=RedactedText(agent), parent=parent
    )
    for exchange, messages, events in stories:
        store.events.append(info.number, make_intent(exchange))
        for number, message in enumerate(messages):
            store.messages.append(info.number, exchange.seq, number, message)
        for event in events:
            store.events.append(info.number, event)
        await store.exchanges.save(info.number, partial(_record, exchange))
    return await store.runs.seal(info, reason=reason, at_ns=99)


def _record(exchange: Exchange) -> Record:
    raw = raw_key(exchange.request, exchange.request_class)
    return Record(exchange, raw, make_outcome(exchange))


def make(path: Path, *names: str, stories: Callable[[Store], list[Story]] | None = None) -> Path:
    """Make a store with runs that hold a secret."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store.open(path) as store:
        for name in names:
            told = stories(store) if stories is not None else plain(SECRET)
            info = asyncio.run(write(store, name, told))
            if stories is None:
                said = content(f"it was {SECRET}".encode())
                files = {b"notes": file_entry(said.data)}
                store.folders.save(info.number, Manifest(b"/work", files, saved=True), [said])
    return path


def plain(secret: str, *, named: bool = True) -> list[Story]:
    """Three exchanges; the second has a secret, the third says it again."""
    asked = make_request("POST https://api.test/v1/items", b'{"item": 1, "of": "a long list"}')
    if named:
        asked = replace(asked, headers=(*asked.headers, (b"X-Foo", secret.encode())))
    told = [
        make_exchange(1),
        make_exchange(2, kind=RequestClass.EFFECT, request=asked),
        make_exchange(3, response=make_response(b"you said %s just now" % secret.encode())),
    ]
    return [Story(one) for one in told]


def raw_bytes(folder: Path) -> bytes:
    """All files below a folder, or one, as they lie there."""
    found = [folder, *sorted(folder.rglob("*"))]
    return b"".join(one.read_bytes() for one in found if one.is_file())


def all_bytes(store: Path) -> bytes:
    """All that a store and its archive hold: the files, and what is packed in them."""
    parts = [data for _, data in kept_bytes(store)]
    attic = store.parent.parent / "attic"
    for file in sorted(attic.glob("*/*.parquet")):
        import pyarrow.parquet as pq

        parts += [file.read_bytes(), *_columns(pq.read_table(file))]
    with Store.open(store, readonly=True) as opened:
        for one in opened.runs.all():
            if one.is_only_in_archive:
                continue
            parts.append(repr(one).encode())
            parts += [repr(event.data).encode() for event in opened.events.all(one)]
            for exchange in opened.exchanges.all(one):
                parts += [message.data for message in opened.messages.all(one, exchange.seq)]
                for spilled in exchange.spilled:
                    parts += [data for _, data in opened.bodies.read(spilled)]
    return b"".join(parts)


def _columns(table: Any) -> list[bytes]:
    """What columns hold, but times."""
    return [
        repr(table[name].to_pylist()).encode()
        for name in table.column_names
        if name not in ("at", "started", "ended")
    ]


def exchanges(store: Path, name: str) -> list[Exchange]:
    """The exchanges of a run."""
    with Store.open(store, readonly=True) as opened:
        return list(opened.exchanges.all(opened.runs.get(name)))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two runs that hold the secret."""
    return make(tmp_path / "home" / "here" / "s", "night", "day")


# ---- what it does ------------------------------------------------------------------------------


def test_a_secret_goes_from_a_stored_run(store: Path) -> None:
    """What the rule names is replaced wherever the run says it; the rest keeps its bytes; the other run is left alone."""
    before = exchanges(store, "night")
    other = exchanges(store, "day")
    said = done(store, "redact", "--rewrite", "night", redact=HEADER)
    assert said == "night: rewritten by rule redact[0] header x-foo: 2 exchanges, 1 file\n"
    after = exchanges(store, "night")
    assert after[0] == before[0]
    field = dict(after[1].request.headers)[b"X-Foo"]
    assert len(field) == len(HIDDEN)
    assert field != HIDDEN
    assert after[2].response is not None
    assert after[2].response.body == b"you said %s just now" % field
    assert after[1].redactions == (("request.header.x-foo", "configured"),)
    assert exchanges(store, "day") == other
    done(store, "redact", "--rewrite", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)


def test_verify_shows_the_rewrite(store: Path) -> None:
    """By which rule and when, and the hash of each record that is no more."""
    before = exchanges(store, "night")
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    lines = done(store, "verify", redact=HEADER).splitlines()
    assert lines[0] == "night: sound, 3 exchanges"
    assert re.fullmatch(
        r"  rewritten by rule redact\[0\] header x-foo at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: 2 exchanges, 1 file",
        lines[1],
    )
    assert lines[2] == "day: sound, 3 exchanges"
    (told,) = json.loads(done(store, "verify", "night", "--json"))[0]["rewritten"]
    assert told["rules"] == ["redact[0] header x-foo"]
    after = exchanges(store, "night")
    assert [
        (one["seq"], bytes.fromhex(one["before"]), bytes.fromhex(one["now"]))
        for one in told["exchanges"]
    ] == [
        (
            seq,
            content_hash(encode_exchange(before[seq - 1])),
            content_hash(encode_exchange(after[seq - 1])),
        )
        for seq in (2, 3)
    ]


def test_the_log_keeps_what_it_said(store: Path) -> None:
    """No event of before is changed where none held the secret: the old hashes stay in the chain."""
    with Store.open(store, readonly=True) as opened:
        before = list(opened.events.raw(opened.runs.get("night")))
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    with Store.open(store, readonly=True) as opened:
        after = list(opened.events.raw(opened.runs.get("night")))
        last = opened.events.read(opened.runs.get("night"))[-1]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1
    assert last.kind.value == "rewritten"


def test_a_second_time_there_is_nothing_to_change(store: Path) -> None:
    """Placeholders look like secrets, and are none."""
    for redact in (HEADER, f"{HEADER}, {{json: ref}}"):
        done(store, "redact", "--rewrite", "--all", redact=redact)
        said = done(store, "redact", "--rewrite", "--all", redact=redact)
        assert said == "night: nothing to change\nday: nothing to change\n"


def test_a_dry_run_says_what_would_change(store: Path) -> None:
    """Places and rules, no values; nothing is written."""
    before = raw_bytes(store / "log.lmdb" / "data.mdb")
    said = done(store, "redact", "--rewrite", "night", "--dry-run", redact=HEADER)
    assert said.splitlines() == [
        "night: would be rewritten by rule redact[0] header x-foo: 2 exchanges, 1 file",
        "  seq 2 request.header.x-foo: redact[0] header x-foo",
        "  seq 3 response.body: redact[0] header x-foo",
        "  run file notes: redact[0] header x-foo",
    ]
    assert raw_bytes(store / "log.lmdb" / "data.mdb") == before


def test_what_was_done_as_json(store: Path) -> None:
    """As the text has it."""
    (told,) = json.loads(
        done(store, "redact", "--rewrite", "night", "--dry-run", "--json", redact=HEADER)
    )
    rule = "redact[0] header x-foo"
    assert told == {
        "run": "night",
        "rules": [rule],
        "exchanges": [2, 3],
        "events": [],
        "places": [
            {"seq": 2, "event": 0, "place": "request.header.x-foo", "rule": rule},
            {"seq": 3, "event": 0, "place": "response.body", "rule": rule},
            {"seq": 0, "event": 0, "place": "file notes", "rule": rule},
        ],
        "in_folder": 1,
        "written": False,
    }


def test_a_secret_goes_from_labels(store: Path) -> None:
    """Also the archive's: the other labels stay, and the run is found by the new one."""
    done(store, "label", "night", "ci", SECRET, redact=HEADER)
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    with Store.open(store, readonly=True) as opened:
        info = opened.runs.get("night")
        (marked,) = opened.events.of_kind(info, EventKind.MARKED)
    assert len(info.labels) == 2
    assert "ci" in info.labels
    assert list(info.labels) == sorted(info.labels)
    assert marked.data["labels"] == info.labels
    done(store, "redact", "--rewrite", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)
    done(store, "archive", "night", redact=HEADER)
    assert HIDDEN not in all_bytes(store)


def test_a_secret_goes_from_the_words_with_which_a_run_ended(tmp_path: Path) -> None:
    """The run list has them, too."""
    path = tmp_path / "here" / "s"
    path.parent.mkdir(parents=True)
    with Store.open(path) as store:
        info = asyncio.run(write(store, "old", plain(SECRET), reason=f"of {SECRET}"))
    done(path, "redact", "--rewrite", "old", redact=HEADER)
    with Store.open(path, readonly=True) as store:
        assert store.runs.get("old").end.startswith("of ")
        assert len(store.runs.get("old").end) == len(info.end)
    assert HIDDEN not in all_bytes(path)


@pytest.mark.parametrize("name", ["id", "match", "labels", "method", "parent", "verdict"])
def test_a_secret_goes_from_members_inside_of_events(tmp_path: Path, name: str) -> None:
    """Whatever they are called: names of the format are those of the event itself."""
    event = Event(EventKind.DIVERGED, 5, {"seq": 3, "divergence": {name: SECRET, "n": (SECRET,)}})
    told = plain(SECRET)
    told[2] = told[2]._replace(events=(event,))
    path = make(tmp_path / "here" / "s", "old", stories=lambda _: told)
    done(path, "redact", "--rewrite", "old", redact=HEADER)
    assert HIDDEN not in all_bytes(path)


def test_a_format_that_was_learned_later(tmp_path: Path) -> None:
    """The rule's name is the format's."""
    path = make(tmp_path / "here" / "s", "old", stories=lambda _: plain(FORMAT, named=False))
    said = done(path, "redact", "--rewrite", "old", redact="{header: x-other}")
    assert said == "old: rewritten by rule huggingface: 1 exchange\n"
    assert FORMAT.encode() not in all_bytes(path)


def test_what_plays_a_run_is_rewritten_with_it(store: Path) -> None:
    """It asked for the same, so it holds the same."""
    with Store.open(store) as opened:
        tape = opened.runs.get("night")
        asyncio.run(write(opened, "night", plain(SECRET), parent=tape))
    said = done(store, "redact", "--rewrite", "night", redact=HEADER)
    rule = "rewritten by rule redact[0] header x-foo: 2 exchanges"
    assert said == f"night: {rule}, 1 file\nnight@1: {rule}\n"


# ---- places --------------------------------------------------------------------------------------


def _of_response(change: Callable[[Response], Response]) -> Callable[[Exchange], Exchange]:
    def changed(exchange: Exchange) -> Exchange:
        assert exchange.response is not None
        return replace(exchange, response=change(exchange.response))

    return changed


def _of_request(**changes: Any) -> Callable[[Exchange], Exchange]:
    return lambda one: replace(one, request=replace(one.request, **changes))


_CODED = gzip.compress(b'{"said": "%s"}' % HIDDEN)
PLACES: dict[str, Callable[[Exchange], Exchange]] = {
    "path": _of_request(target=f"/v1/{SECRET}/items"),
    "query": _of_request(target=f"/v1/items?q={SECRET}&n=1"),
    "request header": _of_request(headers=((b"host", b"api.test"), (b"x-bar", HIDDEN))),
    "trailer": _of_request(trailers=((b"x-bar", HIDDEN),)),
    "request body": _of_request(body=b'{"a": "b", "c": "%s"}' % HIDDEN),
    "answer header": _of_response(lambda one: replace(one, headers=((b"x-bar", HIDDEN),))),
    "answer trailer": _of_response(lambda one: replace(one, trailers=((b"x-bar", HIDDEN),))),
    "answer body": _of_response(lambda one: replace(one, body=b"it is %s, yes" % HIDDEN)),
    "chunks": _of_response(
        lambda one: replace(
            one, body=b"ab" + HIDDEN, chunks=(Chunk(1, 9), Chunk(2, len(HIDDEN) - 7))
        )
    ),
    "coded": _of_response(
        lambda one: replace(one, body=_CODED, headers=((b"content-encoding", b"gzip"),))
    ),
    "interim": lambda one: replace(one, interim=(Interim(1, 103, b"", ((b"link", HIDDEN),)),)),
    "reason phrase": _of_response(lambda one: replace(one, reason=b"No " + HIDDEN)),
    "fault": lambda one: replace(
        one,
        response=None,
        fault=Fault(FaultKind.RESET, Phase.HEAD, RedactedText(f"it said {SECRET}"), 9),
    ),
    "reason": lambda one: replace(one, reason=f"a rule said {SECRET}"),
    "warning": lambda one: replace(one, warnings=(f"cut {SECRET}",)),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_of_an_exchange(tmp_path: Path, place: str) -> None:
    """In whatever place it stands: it is gone, the run is sound, and the receipt of it can be read."""

    def stories(_: Store) -> list[Story]:
        changed = PLACES[place](make_exchange(2, "POST https://api.test/v1/items"))
        return [Story(make_exchange(1)), Story(changed), Story(make_exchange(3))]

    _rewritten(make(tmp_path / "here" / "s", "night", stories=stories))


def _rewritten(path: Path, *, hidden: bytes = HIDDEN, redact: str = PATTERN) -> None:
    """Rewrite the run `night`, and check all that has to be true then."""
    assert hidden in all_bytes(path) or _CODED in all_bytes(path)
    said = done(path, "redact", "--rewrite", "night", redact=redact)
    assert said.startswith("night: rewritten by rule "), said
    found = all_bytes(path)
    assert hidden not in found
    assert _CODED not in found
    assert "rewritten by rule" in done(path, "verify", "night", redact=redact)
    assert "nothing to change" in done(path, "redact", "--rewrite", "night", redact=redact)
    done(path, "receipt", "night")
    done(path, "export", "night", "--tape", str(path.parent / "night.tape"))
    fresh = path.parent / "fresh"
    done(fresh, "import", str(path.parent / "night.tape"))
    assert "rewritten by rule" in done(fresh, "verify", "night")


def _spill(store: Store, data: bytes, *, pieces: bool) -> Any:
    async def keep() -> Any:
        spool = store.bodies.spool(pieces=pieces)
        for at in range(0, len(data), 100_000):
            part = data[at : at + 100_000]
            spool.write(part, Chunk(at, len(part)))
        return await spool.keep()

    return asyncio.run(keep())


@pytest.mark.parametrize("side", ["request", "response"])
def test_spilled_bodies(tmp_path: Path, side: str) -> None:
    """The file is made anew with its pieces; the old one is gone."""
    filler = b"what somebody said at length; " * (LARGE // 60)
    # One stands across two pieces.
    body = filler[:99_990] + HIDDEN + filler + HIDDEN

    def stories(store: Store) -> list[Story]:
        one = make_exchange(1, "POST https://api.test/v1/items", response=make_response(b""))
        spilled = _spill(store, body, pieces=side == "response")
        if side == "request":
            one = replace(one, request=replace(one.request, spilled=spilled))
        else:
            assert one.response is not None
            one = replace(one, response=replace(one.response, spilled=spilled))
        return [Story(one)]

    path = make(tmp_path / "here" / "s", "night", stories=stories)
    files = {one.name for one in path.glob("bodies/??/*")}
    _rewritten(path)
    with Store.open(path, readonly=True) as opened:
        (one,) = opened.exchanges.all(opened.runs.get("night"))
        (spilled,) = one.spilled
        read = b"".join(data for _, data in opened.bodies.read(spilled))
        sizes = [chunk.size for chunk, _ in opened.bodies.read(spilled)]
    assert read.replace(read[99_990 : 99_990 + len(HIDDEN)], HIDDEN) == body
    if side == "response":
        assert sizes[:2] == [100_000, 100_000]
    assert len(files & {one.name for one in path.glob("bodies/??/*")}) == (side == "response")


def test_messages_of_a_websocket(tmp_path: Path) -> None:
    """In text and binary, and in the reason for which it was closed."""
    messages = (
        Message(1, True, MessageKind.TEXT, b'{"say": "hello"}'),
        Message(2, False, MessageKind.TEXT, b'{"said": "%s"}' % HIDDEN),
        Message(3, False, MessageKind.BINARY, b"\0\1" + HIDDEN, frames=(7, len(HIDDEN) - 5)),
    )
    summary = WebSocketSummary(
        3, 60, Close(4, True, 1000, RedactedText(f"bye {SECRET}"), (1000, RedactedText(SECRET)))
    )

    def stories(_: Store) -> list[Story]:
        one = make_exchange(1, response=make_response(b"", 101), websocket=summary)
        return [Story(one, messages)]

    path = make(tmp_path / "here" / "s", "night", stories=stories)
    _rewritten(path)
    with Store.open(path, readonly=True) as opened:
        read = list(opened.messages.all(opened.runs.get("night"), 1))
    assert read[0] == messages[0]
    assert [len(one.data) for one in read] == [len(one.data) for one in messages]


def test_texts_of_events(tmp_path: Path) -> None:
    """The log is linked anew from the first event that said it, and says which link stood there."""
    noted = Event(EventKind.NOTED, 9, {"text": f"somebody typed {SECRET}"})
    named = Event(EventKind.ANNOTATED, 9, {"seq": 1, "text": SECRET, "by": "somebody"})

    def stories(_: Store) -> list[Story]:
        return [Story(make_exchange(1), (), (noted, named)), Story(make_exchange(2))]

    path = make(tmp_path / "here" / "s", "night", stories=stories)
    with Store.open(path, readonly=True) as opened:
        before = list(opened.events.raw(opened.runs.get("night")))
    _rewritten(path)
    (told,) = json.loads(done(path, "verify", "night", "--json"))[0]["rewritten"]
    changed = [number for number, row in enumerate(before, 1) if HIDDEN in row]
    assert [(one["number"], one["before"]) for one in told["events"]] == [
        (number, before[number - 1][:16].hex()) for number in changed
    ]
    assert told["chain"] == before[-1][:16].hex()


def test_the_agents_command(tmp_path: Path) -> None:
    """It stands in the list of runs, too."""
    path = tmp_path / "here" / "s"
    path.parent.mkdir()
    with Store.open(path) as store:
        told = [Story(make_exchange(1))]
        asyncio.run(write(store, "night", told, agent=f"agent.py --word {SECRET}"))
    _rewritten(path)


@pytest.mark.parametrize(
    "words",
    [
        ("env", f"A_TOKEN={FORMAT}", "true"),
        ("agent", "--password=9u0vkUXhTaAophYM4w47", "x"),
        ("agent", "https://bob:skyCJqlaFVA8FFhB8oh7@h.example/"),
        ("curl", "-u", "bob:skyCJqlaFVA8FFhB8oh7", "https://h.example/"),
        # Too short to be known as placeholders: the recording says which words have one.
        ("agent", "--password=9u0vkUXh2Ta", "https://bob:x9Kq2vTz@h.example/"),
    ],
    ids=lambda words: words[1].partition(":")[0],
)
def test_a_command_that_was_redacted_stays_as_it_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A placeholder is no secret to be found, or replaced by another; who is beside it is not renamed."""
    path = tmp_path / "here" / "s"
    path.parent.mkdir()
    with Store.open(path) as store:
        redactor = Redactor(open_redaction_key(path))
        said = redactor.redact_command(words)
        replaced = [at for at, word in enumerate(said) if word != words[at]]
        assert replaced
        noted = {"child_exit": 0, "command": said, "command_replaced": replaced}
        told = [Story(make_exchange(1), (), (Event(EventKind.NOTED, 9, noted),))]
        asyncio.run(write(store, "night", told, agent=redactor.redact_text(" ".join(words))))
    assert done(path, "verify", "--secrets", "night").startswith("no secrets in 1 run")
    assert "nothing to change" in done(path, "redact", "--rewrite", "night")


# ---- what hangs together ---------------------------------------------------------------------------


def _conversation(secret: str, steps: int) -> list[Story]:
    """A conversation that grows; all of it shares its beginning, which has a secret."""
    text = f"You are a careful agent. Your word is {secret}. " + "Think before you answer. " * 200
    bodies = [
        json.dumps({"m": [text, *(f"step {n} " * 30 for n in range(step))]}).encode()
        for step in range(1, steps + 1)
    ]
    return [
        Story(make_exchange(seq, "POST https://api.test/v1/chat", body=body))
        for seq, body in enumerate(bodies, 1)
    ]


def test_runs_that_share_a_prefix_read_the_same(tmp_path: Path) -> None:
    """The one that others are packed against is rewritten; they are packed anew, and say what they said."""
    path = make(tmp_path / "here" / "s", "night", stories=lambda _: _conversation(SECRET, 40))
    with Store.open(path) as store:
        asyncio.run(write(store, "day", _conversation("nothing", 3)))
    before = exchanges(path, "day")
    _rewritten(path)
    assert exchanges(path, "day") == before
    assert "day: sound" in done(path, "verify")
    assert HIDDEN not in all_bytes(path)


def test_a_prefix_whose_author_is_gone(tmp_path: Path) -> None:
    """`gc` leaves a shared prefix to those that use it: it goes with the rewrite of the last."""
    path = make(
        tmp_path / "here" / "s", "first", "night", stories=lambda _: _conversation(SECRET, 2)
    )
    with Store.open(path) as store:
        store.removal.delete([store.runs.get("first")])
    _rewritten(path)
    assert HIDDEN not in all_bytes(path)


def test_an_encrypted_store(tmp_path: Path) -> None:
    """Rows and files are encrypted under the places that they have then."""
    key = make_key_file(tmp_path / "key")
    config = Config(
        store=tmp_path / "s",
        encrypt=Encrypt(tmp_path / "key"),
        redact=(RedactRule(header="x-foo"),),
    )
    message = Message(1, True, MessageKind.TEXT, HIDDEN)
    summary = WebSocketSummary(1, len(HIDDEN), Close(4, True, 1000, RedactedText("")))
    with Store.open(config.store, key=key) as store:
        spilled = _spill(store, b"x" * 70_000 + HIDDEN, pieces=True)
        large = make_exchange(4, response=replace(make_response(b""), spilled=spilled))
        socket = make_exchange(5, response=make_response(b"", 101), websocket=summary)
        told = [*plain(SECRET), Story(large), Story(socket, (message,))]
        told += [
            Story(replace(one.exchange, seq=Seq(one.exchange.seq + 5)))
            for one in _conversation(SECRET, 9)
        ]
        for name in ("night", "day"):
            asyncio.run(write(store, name, told))
    made = rewrite(config, ["night", "day"], dry_run=False)
    assert [len(one.exchanges) for one in made.changes] == [13, 13]
    assert [one.problems for one in verify_runs(config, None)] == [(), ()]
    with Store.open(config.store, readonly=True, key=key) as store:
        for run in store.runs.all():
            every = list(store.exchanges.all(run))
            assert not [one for one in every if HIDDEN in encode_exchange(one)]
            (body,) = every[3].spilled
            assert HIDDEN not in b"".join(data for _, data in store.bodies.read(body))
            assert HIDDEN not in next(store.messages.all(run, 5)).data


def test_blobs(tmp_path: Path) -> None:
    """Base64 that is stored once for a run is that of the run as it is now."""
    import random

    blob = random.Random(1).randbytes(30_000)
    import base64

    picture = base64.b64encode(blob).decode()

    def stories(_: Store) -> list[Story]:
        bodies = [
            json.dumps({"text": SECRET, "n": n, "picture": picture}).encode() for n in range(3)
        ]
        return [
            Story(make_exchange(n, "POST https://api.test/v1/chat", body=body))
            for n, body in enumerate(bodies, 1)
        ]

    path = make(tmp_path / "here" / "s", "night", stories=stories)
    _rewritten(path)
    assert all(picture.encode() in one.request.body for one in exchanges(path, "night"))


def test_the_index_is_made_anew(store: Path) -> None:
    """Under the rules of now: a replay needs no other, and `reindex` has nothing to change."""
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    told = json.loads(done(store, "reindex", "night", "--dry-run", "--json", redact=HEADER))
    assert told["changed"] == 0


def test_labels_and_pins_stay(store: Path) -> None:
    """What is known of a run beside its exchanges is not touched."""
    done(store, "label", "night", "incident")
    done(store, "pin", "night")
    with Store.open(store, readonly=True) as opened:
        before = opened.runs.get("night")
        latest = opened.runs.find_latest()
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    with Store.open(store, readonly=True) as opened:
        after = opened.runs.get("night")
        assert opened.runs.find_latest() == latest
    assert replace(after, rules=b"", canonical=0, index=0, stale=()) == replace(
        before, rules=b"", canonical=0, index=0, stale=()
    )


# ---- archived ------------------------------------------------------------------------------------


def test_an_archived_run_is_rewritten_where_it_lies(store: Path) -> None:
    """It stays archived, in a new batch; the other runs of the old one are as they were; no file has the secret."""
    done(store, "archive")
    attic = store.parent.parent / "attic"
    before = {one.name for one in (attic / "steps").iterdir()}
    said = done(store, "redact", "--rewrite", "night", redact=HEADER)
    assert said.startswith("night: rewritten by rule redact[0] header x-foo: 2 exchanges")
    with Store.open(store, readonly=True) as opened:
        assert [one.is_only_in_archive for one in opened.runs.all()] == [True, True]
    assert not before & {one.name for one in (attic / "steps").iterdir()}
    verified = done(store, "verify")
    assert "night: sound" in verified
    assert "  rewritten by rule redact[0] header x-foo at " in verified
    assert "day: sound" in verified
    done(store, "redact", "--rewrite", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)
    assert done(store, "redact", "--rewrite", "--all", redact=HEADER) == (
        "night: nothing to change\nday: nothing to change\n"
    )
    done(store, "show", "night")


def test_a_copy_of_an_archived_run(store: Path) -> None:
    """Store and archive hold it both: neither holds the secret then."""
    done(store, "archive")
    done(store, "show", "night")
    done(store, "show", "day")
    done(store, "redact", "--rewrite", "night", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)
    assert done(store, "verify").count("rewritten by rule") == 2


def _add_playback(store: Path) -> None:
    """A run that plays `night`, and says its secret where no rule looks."""
    with Store.open(store) as opened:
        tape = opened.runs.get("night")
        stories = [Story(make_exchange(1, f"GET https://api.test/hooks/{SECRET}"))]
        asyncio.run(write(opened, "night", stories, parent=tape))


def test_an_archived_run_and_what_plays_it(store: Path) -> None:
    """Both are in one batch, which is made anew for each of them."""
    _add_playback(store)
    done(store, "archive")
    said = done(store, "redact", "--rewrite", "night", redact=HEADER)
    assert said.count("rewritten by rule") == 2
    done(store, "redact", "--rewrite", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)
    assert done(store, "verify").count("sound") == 3


@pytest.mark.parametrize("which", [1, 2])
def test_a_rewrite_that_ended_between_two_runs_is_done_again(
    store: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """What only the recording tells of is known as long as a run is left that says it."""
    _add_playback(store)
    ran = list[str]()

    def end(*arguments: Any) -> Any:
        ran.append("yes")
        if len(ran) == which:
            raise StoreError("killed", "")
        return rewrite_run(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("playhead.proxy.operations.redact_stored_runs.rewrite_run", end)
        assert "killed" in refused(store, "redact", "--rewrite", "night", redact=HEADER)
    done(store, "redact", "--rewrite", "night", redact=HEADER)
    done(store, "redact", "--rewrite", "day", redact=HEADER)
    assert HIDDEN not in all_bytes(store)


def test_a_copied_store_takes_nothing_from_the_archive_of_another(store: Path) -> None:
    """Whose files they may be; nothing is rewritten then."""
    done(store, "archive", "night")
    copy = store.parent.parent / "there" / "s"
    shutil.copytree(store, copy)
    before = raw_bytes(store.parent.parent / "attic")
    assert "is a copy of" in refused(copy, "redact", "--rewrite", "night", redact=HEADER)
    assert raw_bytes(store.parent.parent / "attic") == before
    done(store, "redact", "--rewrite", "night", redact=HEADER)


def test_an_archive_that_is_away(store: Path) -> None:
    """It is said, and nothing is rewritten."""
    done(store, "archive", "night")
    attic = store.parent.parent / "attic"
    attic.rename(store.parent.parent / "elsewhere")
    refused(store, "redact", "--rewrite", "night", redact=HEADER)
    (store.parent.parent / "elsewhere").rename(attic)
    assert "night: sound" in done(store, "verify")


# ---- what is refused -------------------------------------------------------------------------------


def test_a_run_that_is_being_recorded(tmp_path: Path) -> None:
    """It would write on."""
    path = tmp_path / "here" / "s"
    path.parent.mkdir()
    with recording_elsewhere(path, "night"):
        assert "has not ended" in refused(path, "redact", "--rewrite", "night")


def test_a_store_that_another_process_has_open(store: Path) -> None:
    """The bytes could not be taken out of its file; whoever has it open is named."""
    before = exchanges(store, "night")
    with opened_elsewhere(store) as pid:
        said = refused(store, "redact", "--rewrite", "night", redact=HEADER)
    assert f"process {pid} " in said
    assert exchanges(store, "night") == before


def test_a_run_that_is_not_there(store: Path) -> None:
    """The nearest names are given; of several runs none is rewritten."""
    before = exchanges(store, "day")
    assert "nearest: night" in refused(store, "redact", "--rewrite", "day", "nihgt", redact=HEADER)
    assert exchanges(store, "day") == before


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    """Nothing is made of a mistyped name."""
    path = tmp_path / "here" / "s"
    path.parent.mkdir()
    refused(path, "redact", "--rewrite", "night")
    assert not path.exists()


@pytest.mark.parametrize("arguments", [["night"], ["--rewrite"], ["--rewrite", "--all", "night"]])
def test_usage(store: Path, arguments: list[str]) -> None:
    """What is to be done has to be said, and to what."""
    made = run(store, "redact", *arguments)
    assert type(made.exception).__name__ == "UsageError"


def test_a_damaged_run_is_not_rewritten(store: Path) -> None:
    """New hashes would make what is damaged look sound."""
    with Store.open(store) as opened:
        info = opened.runs.get("night")
        event = Event(EventKind.OUTCOME, 1, {"seq": 2, "hash": bytes(16)})
        opened.events.append_blocking(info, event)
    before = exchanges(store, "night")
    said = refused(store, "redact", "--rewrite", "night", redact=HEADER)
    assert "seq 2" in said
    assert exchanges(store, "night") == before


def test_a_damaged_run_keeps_no_other_from_its_end(store: Path) -> None:
    """What was rewritten before it is gone from the files."""
    with Store.open(store) as opened:
        event = Event(EventKind.OUTCOME, 1, {"seq": 2, "hash": bytes(16)})
        opened.events.append_blocking(opened.runs.get("day"), event)
    refused(store, "redact", "--rewrite", "night", "day", redact=HEADER)
    with Store.open(store, readonly=True) as opened:
        assert not opened.removal.erasing
    assert "rewritten by rule" in done(store, "verify", "night")


# ---- killed ----------------------------------------------------------------------------------------


def _kill(store: Path, line: int, *names: str) -> int:
    """Rewrite in a process that dies after so many lines of what does it; 0 counts them."""
    done(store, "runs", redact=HEADER)
    made = prepared.run(
        [
            *(sys.executable, "-m", "playhead.tests.support.rewrite_child"),
            *(str(line), str(store.parent / f"{store.name}.yaml"), *names),
        ],
        imports=prepared.FOR_OURS,
        timeout=60,
        stdout=subprocess.PIPE,
    )
    assert made.returncode == (0 if not line else 9), made.stderr
    return int(made.stdout or 0)


@pytest.mark.parametrize("archived", [False, True])
def test_a_kill_leaves_the_old_run_or_the_new_one(store: Path, archived: bool) -> None:
    """Never half of it; the command can be repeated, and does what is left."""
    if archived:
        done(store, "archive")
    home = store.parent.parent
    shutil.copytree(home, home.parent / "kept")
    lines = _kill(store, 0, "night", "day")
    for part in range(1, POINTS + 1):
        shutil.rmtree(home)
        shutil.copytree(home.parent / "kept", home)
        _kill(store, max(1, lines * part // (POINTS + 1)), "night", "day")
        verified = done(store, "verify")
        assert verified.count(": sound, 3 exchanges") == 2, verified
        done(store, "redact", "--rewrite", "night", "day", redact=HEADER)
        assert done(store, "verify").count("rewritten by rule") == 2
        assert HIDDEN not in all_bytes(store)
        if not archived:
            done(store, "redact", "--rewrite", "--all", redact=HEADER)


def test_a_rewrite_that_was_killed_is_told_of(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The run is new, the old bytes are not out of the files: whoever opens the store is told, and `gc` does it."""
    with monkeypatch.context() as patch:

        def kill(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("playhead.proxy.operations.redact_stored_runs.take_bytes_out", kill)
        run(store, "redact", "--rewrite", "--all", redact=HEADER)
    with Store.open(store, readonly=True) as opened:
        assert opened.removal.erasing
        assert all(one.status is RunStatus.SEALED for one in opened.runs.all())
    assert "may still be in the files" in caplog.text
    done(store, "gc")
    assert HIDDEN not in all_bytes(store)


def test_nothing_is_left_of_an_attempt_that_failed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made of the new run is dropped, and the old one is as it was."""
    before = exchanges(store, "night")

    def fail(*_: object) -> None:
        raise StoreError("a record could not be written")

    with monkeypatch.context() as patch:
        patch.setattr(Ingest, "_check", fail)
        refused(store, "redact", "--rewrite", "night", redact=HEADER)
    assert exchanges(store, "night") == before
    assert "night: sound, 3 exchanges" in done(store, "verify")
    done(store, "redact", "--rewrite", "night", redact=HEADER)
