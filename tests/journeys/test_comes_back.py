"""Runs that the proxy recorded come back, whatever was done to the store that holds them, byte for byte.

Every kind of run there is is recorded once, through the proxy and by a real client, and beside each a neighbour that
asked the same. Then stores that hold them are archived, exported, put under another key and so on. What is held
afterwards is compared with what was held before: every record, the log with its chain, messages and bodies, what `show`
and `verify` say, and what the client sees when it is replayed without its origins.
"""

import base64
import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import pytest
from click.testing import CliRunner

from playhead.config import Config, Encrypt, Mode, OnFull
from playhead.proxy.cli import cli
from playhead.store import RunInfo, Store, find_key, make_key_file
from playhead.store.lmdb import writer
from playhead.store.lmdb.free_space import FreeSpace
from playhead.tape.exchange import Chunk, Exchange, Message, RequestClass, Response
from playhead.tape.records.events import EventKind, decode_event
from playhead.tests.support import kinds
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.kinds import CLIENTS, Asking, Origins, Seen
from playhead.tests.support.process import wait_until
from playhead.timeline import exit_code

PLAIN = tuple(kind for kind in CLIENTS if kind != "encrypted")


NEIGHBOUR, IMPORTED_NEIGHBOUR = "neighbour", "imported neighbour"
"""Runs of each store that asked the same as all others in it."""


@dataclass(frozen=True)
class Place:
    """A folder with a configuration, its store, and an archive."""

    folder: Path
    kinds: tuple[str, ...]
    key: str = ""
    """Name of the file with the store's key."""

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def config(self) -> Config:
        encrypt = Encrypt(self.folder / self.key) if self.key else Encrypt()
        return Config(mode=Mode.RECORD, store=self.store, encrypt=encrypt, on_full=OnFull.PASS)

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

    @contextlib.contextmanager
    def opened(self) -> Iterator[Store]:
        """Open the store for reading."""
        key = find_key(self.config.encrypt.key_file, {})
        with Store.open(self.store, readonly=True, key=key) as store:
            yield store

    def copy(self, folder: Path) -> "Place":
        """Give the same somewhere else."""
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)


# ---- what a run is -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """All that a store holds of a run."""

    info: RunInfo
    """Without what is the store's own affair: numbers, labels, and where it was archived."""
    exchanges: list[Exchange]
    log: list[bytes]
    messages: list[list[Message]]
    bodies: list[list[tuple[Chunk, str]]]
    """Of those that are files: the pieces, each with a hash of its bytes."""

    @classmethod
    def read(cls, store: Store, run: str) -> "Stored":
        """Read all of a run."""
        info = store.runs.get(run)
        exchanges = list(store.exchanges.all(info))
        return cls(
            replace(info, number=0, parent_number=0, owner=None, labels=(), archived=None),
            exchanges,
            list(store.events.raw(info)),
            [list(store.messages.all(info, one.seq)) for one in exchanges],
            [
                [
                    (piece, hashlib.sha256(data).hexdigest())
                    for piece, data in store.bodies.read(body)
                ]
                for one in exchanges
                for body in one.spilled
            ],
        )

    @property
    def kinds(self) -> set[EventKind]:
        """The kinds of its events."""
        return {decode_event(value, 0).kind for value in self.log}


@dataclass(frozen=True)
class PendingApproval:
    """All that a store holds of a run, and all that is made of it."""

    stored: Stored
    shown: list[str]
    """By `show RUN` and `show RUN SEQ`."""
    verified: dict[str, Any]
    """By `verify --json`."""
    seen: Seen
    """By its client, when it is replayed."""
    receipt: tuple[Any, ...]
    """Of the replay."""


def hold(place: Place, origins: Origins) -> dict[str, PendingApproval]:
    """Show, check, read and replay all kinds of a place."""
    shown = {kind: _show(place, kind) for kind in place.kinds}
    verified = {one["run"]: one for one in json.loads(place.do("verify", "--json"))}
    with place.opened() as store:
        stored = {kind: Stored.read(store, kind) for kind in place.kinds}
    with Deck(replace(place.config, mode=Mode.PLAYBACK)) as deck:
        return {
            kind: PendingApproval(
                stored[kind], shown[kind], verified[kind], *_play(deck, origins, kind)
            )
            for kind in place.kinds
        }


def _show(place: Place, kind: str) -> list[str]:
    seqs = [line.split()[0] for line in place.do("show", kind, "--raw").splitlines()]
    return [
        place.do("show", kind, *seq, "--raw")
        for seq in ([], *([seq] for seq in seqs if seq.isdigit()))
    ]


def _play(deck: Deck, origins: Origins, kind: str) -> tuple[Seen, tuple[Any, ...]]:
    seen = CLIENTS[kind](Asking(origins, deck.proxy, deck.running.ca, kind))
    deck.end(f"{kind}@1")
    receipt = deck.receipt(f"{kind}@1")
    return seen, (exit_code(receipt), receipt.requests, receipt.counts, receipt.divergences)


# ---- how they are recorded ---------------------------------------------------------------------------


def _record(deck: Deck, origins: Origins, kind: str, run: str) -> Seen:
    def left() -> None:
        wait_until(
            lambda: all(
                one.progress.gone for one in deck.running.open_run(run).on_the_way.pending_exchanges
            )
        )
        origins.left.set()

    asking = Asking(origins, deck.proxy, deck.running.ca, run, left)
    return _ask_on_a_full_disk(deck, asking) if kind == "gaps" else CLIENTS[kind](asking)


def _ask_on_a_full_disk(deck: Deck, asking: Asking) -> Seen:
    """Ask thrice; what is asked the second time is not recorded."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_CHECK_EVERY_S", 0.0)
        patched.setattr(writer, "_RETRY_EVERY_S", 0.02)
        seen = [kinds.ask_nth(asking, 1)]
        with pytest.MonkeyPatch.context() as full:
            full.setattr(FreeSpace, "find_shortage", lambda _, *, again=False: 4096)
            seen.append(kinds.ask_nth(asking, 2))
        wait_until(lambda: deck.running.store.writer.failed is None)
        deck.do(deck.running.registry.tick)
    return [*seen, kinds.ask_nth(asking, 3)]


@dataclass
class Recorded:
    """Where all kinds are recorded, and what their clients saw."""

    places: tuple[Place, Place]
    """One without a key, one with."""
    origins: Origins
    seen: dict[str, Seen]


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Recorded]:
    """Record every kind of run, and a neighbour of each."""
    folder = tmp_path_factory.mktemp("recorded")
    plain, sealed = (
        Place(folder / "plain", PLAIN),
        Place(folder / "sealed", ("encrypted",), "a.key"),
    )
    seen: dict[str, Seen] = {}
    with Origins(certificates) as origins:
        for place in (plain, sealed):
            place.folder.mkdir()
            if place.key:
                make_key_file(place.folder / place.key)
            config = replace(place.config, upstream_ca=certificates.root)
            with Deck(config) as deck:
                for kind in place.kinds:
                    if kind != "imported":
                        seen[kind] = _record(deck, origins, kind, kind)
                        deck.end(kind)
                        _record(deck, origins, kind, NEIGHBOUR)
                deck.end(NEIGHBOUR)
        origins.stop()
        (plain.folder / "lines").write_bytes(kinds.lines())
        for run in ("imported", IMPORTED_NEIGHBOUR):
            plain.do("import", "--jsonl", str(plain.folder / "lines"), "--run", run)
        yield Recorded((plain, sealed), origins, seen)


@pytest.fixture(scope="module")
def before(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, PendingApproval]:
    """What there was of each kind before anything was done."""
    return _after(recorded, tmp_path_factory.mktemp("before"), lambda place: place)


def _after(
    recorded: Recorded, folder: Path, act: Callable[[Place], Place]
) -> dict[str, PendingApproval]:
    """Do something with a copy of each place; give what there is of each kind then."""
    found: dict[str, PendingApproval] = {}
    for place in recorded.places:
        found |= hold(act(place.copy(folder / place.folder.name)), recorded.origins)
    return found


# ---- what is done to a store -------------------------------------------------------------------------


def archive(place: Place) -> Place:
    """Move all runs to the archive, restore them, drop the copies, and restore them again."""
    allowed = ["--unencrypted"] if place.key else []
    assert "0 stay" in place.do("archive", *allowed)
    for _ in range(2):
        with place.opened() as store:
            assert all(run.is_only_in_archive for run in store.runs.all())
        place.do("verify", place.kinds[0])
        place.do("gc")
    for kind in place.kinds:
        place.do("verify", kind)
    return place


def archive_and_erase(place: Place) -> Place:
    """Archive all runs, erase the neighbours there, and restore the others."""
    allowed = ["--unencrypted"] if place.key else []
    place.do("archive", *allowed)
    erase(place)
    for kind in place.kinds:
        place.do("verify", kind)
    return place


def erase(place: Place) -> Place:
    """Erase the neighbours, which share what they said and were answered with the others."""
    with place.opened() as store:
        names = {run.id for run in store.runs.all()} - set(place.kinds)
    assert NEIGHBOUR in names
    for name in names:
        place.do("erase", "--yes", name)
    return place


def export(place: Place) -> Place:
    """Export each run, and import it into another store."""
    other = _elsewhere(place)
    for kind in place.kinds:
        place.do("export", kind, "--tape", str(place.folder / f"{kind}.tape"))
        other.do("import", str(place.folder / f"{kind}.tape"))
    return other


def _elsewhere(place: Place) -> Place:
    """Give a place without a store, with the same key."""
    other = replace(place, folder=place.folder.with_name(f"{place.folder.name}-other"))
    other.folder.mkdir()
    if place.key:
        shutil.copy(place.folder / place.key, other.folder)
    return other


def rekey(place: Place) -> Place:
    """Put the store under another key."""
    make_key_file(place.folder / "b.key")
    place.do("rekey", "--to-key-file", str(place.folder / "b.key"))
    return replace(place, key="b.key")


ACTS = {act.__name__: act for act in (archive, archive_and_erase, erase, export, rekey)}


@pytest.fixture(scope="module")
def after(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, PendingApproval]]:
    """Give what there is of each kind after something was done; done once."""

    @cache
    def after(act: str) -> dict[str, PendingApproval]:
        return _after(recorded, tmp_path_factory.mktemp(act), ACTS[act])

    return after


# ---- and what is to be the same ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_a_client_saw_is_what_it_is_replayed(
    recorded: Recorded, before: dict[str, PendingApproval], kind: str
) -> None:
    """Before anything is done; but for what redaction declares, and what a gap left out."""
    held = before[kind]
    assert held.verified == {
        "run": kind,
        "state": "sound",
        "exchanges": len(held.stored.exchanges),
        "unproven": 0,
        "rewritten": [],
        "problems": [],
    }
    if kind in ("redacted", "encrypted"):
        assert any(one.redactions for one in held.stored.exchanges)
    elif kind == "gaps":
        assert [held.seen[at] for at in (0, 2)] == [recorded.seen[kind][at] for at in (0, 2)]
    elif kind != "imported":
        assert held.seen == recorded.seen[kind]
    assert (held.receipt[0] == 0) is (kind != "gaps")


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("act", ACTS)
def test_all_of_a_run_is_there_afterwards(
    before: dict[str, PendingApproval],
    after: Callable[[str], dict[str, PendingApproval]],
    act: str,
    kind: str,
) -> None:
    """Byte for byte."""
    assert after(act)[kind] == before[kind]


def _lines(place: Place, kind: str) -> Iterator[dict[str, Any]]:
    """Give the exchanges of a run as `show --json` prints them, with bodies that are files in the store."""
    with place.opened() as store:
        exchanges = list(store.exchanges.all(store.runs.get(kind)))
        bodies = {
            spilled.digest: [*zip(*store.bodies.read(spilled), strict=True)]
            for exchange in exchanges
            for spilled in exchange.spilled
        }
    for exchange in exchanges:
        line = json.loads(place.do("show", kind, str(exchange.seq), "--json"))
        for name, part in (("request", exchange.request), ("response", exchange.response)):
            if part is not None and part.spilled is not None:
                pieces, data = bodies[part.spilled.digest]
                told = line[name]
                del told["body_file"], told["body_bytes"]
                told["body_base64"] = base64.b64encode(b"".join(data)).decode()
                if name == "response":
                    told["chunks"] = [list(piece) for piece in pieces]
        yield line


@pytest.fixture(scope="module")
def by_lines(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[Any], list[Any], PendingApproval]]:
    """What there is of each kind as JSON lines, the same once they were imported, and all that is held then."""
    folder = tmp_path_factory.mktemp("lines")
    found: dict[str, tuple[list[Any], list[Any], PendingApproval]] = {}
    for place in recorded.places:
        source = place.copy(folder / place.folder.name)
        other = _elsewhere(source)
        lines = {kind: list(_lines(source, kind)) for kind in source.kinds}
        for kind in other.kinds:
            file = other.folder / f"{kind}.jsonl"
            file.write_text("\n".join(map(json.dumps, lines[kind])))
            other.do("import", "--jsonl", str(file), "--run", kind)
        again = {kind: list(_lines(other, kind)) for kind in other.kinds}
        held = hold(other, recorded.origins)
        found |= {kind: (lines[kind], again[kind], held[kind]) for kind in other.kinds}
    return found


def _said(line: dict[str, Any]) -> dict[str, Any]:
    """Give what a line holds but for why it was kept and through which tunnel it came, which lines do not carry."""
    return {name: value for name, value in line.items() if name not in ("reason", "tunnel")}


def _masked(value: Any) -> str:
    """Give a value with one letter for all, and one digit: a placeholder is that of its store, and of one form in all."""
    return repr(value).translate(_MASKS)


_MASKS = str.maketrans(dict.fromkeys(ascii_letters + digits, "0"))


@pytest.mark.parametrize("kind", CLIENTS)
def test_all_of_a_run_is_there_after_it_was_json_lines(
    before: dict[str, PendingApproval],
    by_lines: dict[str, tuple[list[Any], list[Any], PendingApproval]],
    kind: str,
) -> None:
    """Bodies, pieces, fields, faults and messages; its client is replayed the same."""
    lines, again, held = by_lines[kind]
    same = _masked if kind in ("redacted", "encrypted") else lambda value: value
    assert list(map(same, map(_said, again))) == list(map(same, map(_said, lines)))
    assert held.verified == before[kind].verified
    assert held.receipt == before[kind].receipt
    assert same(held.seen) == same(before[kind].seen)


def _answers(held: Stored) -> list[Response]:
    return [one.response for one in held.exchanges if one.response is not None]


@pytest.mark.parametrize(
    ("kind", "find"),
    [
        ("stream", lambda held: all(one.chunks[1:] and one.trailers for one in _answers(held))),
        ("sse", lambda held: held.exchanges[0].request_class is RequestClass.INFERENCE),
        ("websocket", lambda held: any(one.frames for one in held.messages[0])),
        ("grpc", lambda held: dict(_answers(held)[2].trailers)[b"grpc-status"] != b"0"),
        ("h2", lambda held: held.exchanges[1].fault and held.exchanges[1].alpn.chosen == b"h2"),
        (
            "large",
            lambda held: all(one.spilled for one in held.exchanges) and len(held.bodies) == 2,
        ),
        ("redacted", lambda held: kinds.SECRET.encode() not in _answers(held)[0].body),
        ("encrypted", lambda held: {len(one.spilled) for one in held.exchanges} == {0, 1}),
        ("cut", lambda held: all(one.fault for one in held.exchanges)),
        ("gone", lambda held: all(one.gone for one in held.exchanges)),
        ("gaps", lambda held: EventKind.GAP in held.kinds),
        ("imported", lambda held: held.info.end == "imported"),
    ],
)
def test_what_the_kinds_are_here_for(
    before: dict[str, PendingApproval], kind: str, find: Callable[[Stored], Any]
) -> None:
    """Each run holds what makes its kind: pieces, frames, files, faults and so on."""
    assert find(before[kind].stored)
