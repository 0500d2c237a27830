"""`verify` on a store that holds every kind of event and verdict there is: each of its runs is sound.

The lists are the enums: a new kind fails here until a run holds it. The same is asked of the store under another key, of
a copy that was made while a proxy had it open, and of one whose proxy was killed.
"""

import contextlib
import json
import shutil
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from playhead.addons.run.run_state import OpenRun
from playhead.addons.stop import stop_run
from playhead.config import (
    Answer,
    Config,
    ContractRule,
    EffectRule,
    FaultRule,
    Gate,
    Inject,
    Limits,
    LiveRule,
    Mode,
    OnFull,
    Sink,
    parse_match,
)
from playhead.proxy.cli import cli
from playhead.store import RunStatus, Store, find_key, make_key_file
from playhead.store.lmdb import writer
from playhead.store.lmdb.free_space import FreeSpace
from playhead.tape.exchange import VerdictKind
from playhead.tape.records.check_event_fields import check_event
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.deck import Deck
from playhead.tests.support.process import Serve, playhead, wait_until
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline.checks.integrity import State, verify_run

TAPE, STOPPED, KILLED, LATER = "tape", "stopped", "killed", "later"
PLAYED = f"{TAPE}@1"


async def _answer(conversation: Conversation) -> None:
    if conversation.path == "/never":
        await conversation.left()
    else:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
        await conversation.say(head + b'{"status":1}')


@dataclass(frozen=True)
class Place:
    """A store, with its key."""

    folder: Path
    key: Path | None = None

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def do(self, *words: str, code: int = 0) -> str:
        """Run a command; give what it prints."""
        file = self.folder / "playhead.yaml"
        key = f"encrypt: {{key_file: {self.key}}}\n" if self.key else ""
        file.write_text(f"store: store\nretention: {{hot: 0s, archive: archive}}\n{key}")
        done = CliRunner().invoke(
            cli, [*words, "-c", str(file)], standalone_mode=False, catch_exceptions=False
        )
        assert (done.return_value or 0) == code, done.output
        return done.stdout

    def verify(self) -> dict[str, str]:
        """Give the state of each run; none has a problem."""
        found = json.loads(self.do("verify", "--json"))
        assert [problem for one in found for problem in one["problems"]] == []
        return {one["run"]: one["state"] for one in found}

    def copy(self, folder: Path) -> "Place":
        shutil.copytree(self.store, folder / "store")
        return replace(self, folder=folder)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Store]:
        """Open the store for reading."""
        with Store.open(self.store, readonly=True, key=find_key(self.key, {})) as store:
            yield store


def _config(place: Place, url: str) -> Config:
    """Settings under which something of every kind comes to pass."""
    return Config(
        mode=Mode.RECORD,
        store=place.store,
        on_full=OnFull.PASS,
        effects=(
            EffectRule(parse_match(f"POST {url}/gated"), gate=Gate(deadline_s=0.01)),
            EffectRule(parse_match(f"POST {url}/stub"), answer=Answer(200, (), b"made up")),
        ),
        faults=(FaultRule(parse_match(f"GET {url}/faulty"), Inject.STATUS, status=503),),
        contracts=(ContractRule(parse_match(f"POST {url}/agreed"), response='{"type": "string"}'),),
        live=(LiveRule(parse_match(f"GET {url}/live"), "a test's"),),
        limits=Limits(calls=5),
        # Nobody listens there.
        sink=Sink(url="http://127.0.0.1:1/", patience_s=0.01),
    )


def _ask(proxy: str, url: str, body: bytes | None = None) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
    try:
        with opener.open(url, body, timeout=20) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _record(deck: Deck, url: str) -> None:
    """Record a run that meets with all that a recording may meet with."""
    proxy = deck.running.url_for(TAPE)
    assert _ask(proxy, f"{url}/plain") == 200
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_CHECK_EVERY_S", 0.0)
        patched.setattr(writer, "_RETRY_EVERY_S", 0.02)
        with pytest.MonkeyPatch.context() as full:
            full.setattr(FreeSpace, "find_shortage", lambda _, *, again=False: 4096)
            assert _ask(proxy, f"{url}/gap", b"{}") == 200
        wait_until(lambda: deck.running.store.writer.failed is None)
        deck.do(deck.running.registry.tick)
    assert _ask(proxy, f"{url}/gated", b"{}") == 424
    assert _ask(proxy, f"{url}/faulty") == 503
    assert _ask(proxy, f"{url}/agreed", b"{}") == 200
    assert [_ask(proxy, f"{url}/{number}") for number in range(4)][-1] == 424
    deck.do(_note, deck.running.open_run(TAPE))
    deck.end(TAPE)


async def _note(run: OpenRun) -> None:
    """Note what the launcher sees of a process, as it does."""
    run.note(EventKind.EGRESS, target="198.51.100.7:53", by="kernel", reason="no network")
    run.note(EventKind.FOREIGN, sockets=({"pid": 7, "remote": "198.51.100.7:443"},))
    run.note(EventKind.JOURNAL, process="1.1", looks=b"compressed")


async def _stop(deck: Deck) -> None:
    run = deck.running.open_run(STOPPED)
    await stop_run(deck.running.registry, run, by="ann", pid=1, reason="enough")


def _play(deck: Deck, url: str) -> None:
    """Replay it, with a request that is answered in each way there is."""
    deck.play()
    proxy = deck.running.url_for(TAPE)
    assert _ask(proxy, f"{url}/plain") == 200
    assert _ask(proxy, f"{url}/stub", b"{}") == 200
    assert _ask(proxy, f"{url}/live") == 200
    assert _ask(proxy, f"{url}/unknown") == 424
    assert _ask(proxy, f"{url}/otlp/v1/traces", b'{"resourceSpans":[]}') == 200
    deck.end(PLAYED)
    deck.record()


def _kill(place: Place, url: str) -> None:
    """Record a run whose proxy is killed while it holds one request and waits for the answer to another."""
    file = place.folder / "serve.yaml"
    file.write_text(
        f"store: store\nlisten: 127.0.0.1:0\neffects: [{{match: 'POST {url}/gated', gate: true}}]\n"
    )
    with Serve("--mode", "record", "-c", file) as proxy, ThreadPoolExecutor(2) as pool:
        asked = proxy.url_for(KILLED)
        assert _ask(asked, f"{url}/plain") == 200
        cut = [pool.submit(_ask, asked, f"{url}/{path}", b"{}") for path in ("gated", "never")]
        wait_until(lambda: {EventKind.HELD, EventKind.INTENT} <= _last_kinds(place))
        proxy.process.send_signal(signal.SIGKILL)
        for one in cut:
            assert isinstance(one.exception(20), OSError)


def _last_kinds(place: Place) -> set[EventKind]:
    """Give the kinds of what was logged of the killed run since its first answer."""
    with place.opened() as store:
        return {event.kind for event in store.events.read(store.runs.get(KILLED)) if event.seq > 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A store with runs of every kind; the proxy of the last was killed."""
    place = Place(tmp_path_factory.mktemp("verify"))
    with RawOrigin(_answer) as origin:
        with Deck(_config(place, origin.url)) as deck:
            _record(deck, origin.url)
            _ask(deck.running.url_for(STOPPED), f"{origin.url}/plain")
            deck.do(_stop, deck)
            assert _ask(deck.running.url_for(STOPPED), f"{origin.url}/plain") == 424
            deck.end(STOPPED)
            _play(deck, origin.url)
        place.do("label", TAPE, "kept")
        place.do("note", TAPE, "to be looked at")
        _kill(place, origin.url)
    return place


@pytest.fixture
def recovered(place: Place, tmp_path: Path) -> Place:
    """The same, opened for writing since; a note says a secret that was found, and was taken out."""
    copy = place.copy(tmp_path)
    secret = "_".join(("hf", "Qw7Zk3vTn9LxB2mWdR8sYp4HcJ6gFa1eUo"))
    copy.do("note", TAPE, f"looked at {secret}")
    said = copy.do("redact", "--rewrite", TAPE)
    assert said == f"{TAPE}: rewritten by rule huggingface: 1 event\n{PLAYED}: nothing to change\n"
    return copy


SOUND = dict.fromkeys((TAPE, STOPPED, PLAYED, KILLED), State.SOUND.value)


def test_every_kind_of_event_and_verdict_is_there(recovered: Place) -> None:
    """Else what follows would say nothing of it; and each event has the shape of its kind."""
    kinds: set[EventKind] = set()
    verdicts: set[str] = set()
    with recovered.opened() as store:
        for run in store.runs.all():
            verdicts |= {exchange.verdict.value for exchange in store.exchanges.all(run)}
            for event in store.events.all(run):
                check_event(event)
                kinds.add(event.kind)
                verdicts |= _verdicts(event)
    assert kinds == set(EventKind)
    of_branches = {VerdictKind.SANDBOXED.value, VerdictKind.HYPOTHETICAL.value}
    assert verdicts == {one.value for one in VerdictKind} - of_branches


def _verdicts(event: Event) -> set[str]:
    if event.kind is EventKind.HELD:
        return {VerdictKind.HELD.value}
    return {event.data["verdict"]} if "verdict" in event.data else set()


def test_a_store_of_every_kind_is_sound(recovered: Place) -> None:
    """With no exchange of a run that ended that no hash vouches for."""
    assert recovered.verify() == SOUND
    found = {one["run"]: one for one in json.loads(recovered.do("verify", "--json"))}
    assert [one["unproven"] for one in found.values()] == [0] * 4
    assert "sound" in recovered.do("verify")


def test_a_run_whose_proxy_was_killed_is_not_recovered_yet(place: Place, tmp_path: Path) -> None:
    """Which is no damage; once a command that writes has opened the store it is sound."""
    copy = place.copy(tmp_path)
    assert copy.verify() == {**SOUND, KILLED: State.UNRECOVERED.value}
    said = copy.do("verify", KILLED)
    assert f"{KILLED}: not recovered yet, 1 exchange\n" in said
    with copy.opened() as store:
        assert not any(
            event.kind is EventKind.RECOVERED for event in store.events.all(store.runs.get(KILLED))
        )
    copy.do("gc")
    assert copy.verify() == SOUND
    with copy.opened() as store:
        (closing,) = (
            one for one in store.events.all(store.runs.get(KILLED)) if "unknown" in one.data
        )
        assert len(closing.data["unknown"]) == 1


def test_a_run_without_its_closing_event_is_damaged(recovered: Place) -> None:
    """It was closed, as the list of runs says: what its log lacks was taken away."""
    with Store.open(recovered.store) as store:
        run = store.runs.get(KILLED)
        table, last = store._database.tables["events"], len(store.events.read(run))
        key = run.number.to_bytes(8, "big") + last.to_bytes(8, "big")
        store.writer.call(lambda txn: txn.delete(key, db=table))
    (found,) = json.loads(recovered.do("verify", KILLED, "--json", code=1))
    assert found["state"] == State.DAMAGED.value


def test_a_store_of_every_kind_is_sound_under_another_key(recovered: Place) -> None:
    """And under none again."""
    key = recovered.folder / "a.key"
    make_key_file(key)
    recovered.do("rekey", "--to-key-file", str(key))
    sealed = replace(recovered, key=key)
    assert sealed.verify() == SOUND
    sealed.do("rekey", "--decrypt")
    assert recovered.verify() == SOUND


def test_a_store_of_every_kind_goes_to_the_archive_and_comes_back(recovered: Place) -> None:
    """No run is refused; each is checked as it went, and again as it came back."""
    assert "4 archived, 0 stay" in recovered.do("archive")
    for name in SOUND:
        recovered.do("verify", name)
    assert recovered.verify() == SOUND


def test_a_copy_of_an_open_store_is_sound(recovered: Place, tmp_path: Path) -> None:
    """Its proxy goes on; in the copy, whose run has no process, that run is not recovered yet."""
    with RawOrigin(_answer) as origin, Deck(_config(recovered, origin.url)) as deck:
        assert _ask(deck.running.url_for(LATER), f"{origin.url}/plain") == 200
        copy = recovered.copy(tmp_path / "copy")
        told = playhead("verify", "--store", recovered.store, "--json")
        assert {one["run"]: one["state"] for one in json.loads(told.stdout)} == {
            **SOUND,
            LATER: State.SOUND.value,
        }
        deck.end(LATER)
    assert copy.verify() == {**SOUND, LATER: State.UNRECOVERED.value}
    copy.do("note", TAPE, "looked at")
    assert copy.verify() == {**SOUND, LATER: State.SOUND.value}


@pytest.mark.parametrize("between", ["exchanges.seqs", "events.checked", "index.rows"])
def test_what_is_recorded_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    """Whichever part of the run is read next: what comes between two of them is in one and not in the other."""
    place = Place(tmp_path)
    with RawOrigin(_answer) as origin, Deck(_config(place, origin.url)) as deck:
        store = deck.running.store
        assert _ask(deck.running.url_for(LATER), f"{origin.url}/plain") == 200
        part, _, name = between.partition(".")
        changed = getattr(store, part)
        run, read = store.runs.get(LATER), getattr(changed, name)

        def record_first(*given: Any) -> Any:
            assert _ask(deck.running.url_for(LATER), f"{origin.url}/{time.monotonic_ns()}") in (
                200,
                424,
            )
            return read(*given)

        monkeypatch.setattr(changed, name, record_first)
        assert run.status is RunStatus.OPEN
        assert verify_run(store, run).problems == ()
        deck.end(LATER)
