"""Commands that change a store, killed at any line of what does it: nothing is lost, nothing is half there, and the same command again does the rest."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.store import Store, StoreError, StoreKey, read_key
from playhead.tape.exchange import Chunk, RequestClass
from playhead.tests.support import prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.stored import folder_of, record_all

pytestmark = pytest.mark.timeout(600)

POINTS = 40 if FULL else 2
MOMENTS = 10 if FULL else 0
"""Kills after a time: they may come in the middle of a line, as of one that has LMDB commit."""
ALL = frozenset({"night", "day", "night@1"})
KEPT = frozenset({"day"})
LINES = (
    '{"run": "%s", "seq": 1, "started_ns": 7, "request": {"method": "GET", "url": "https://api.test/v1/%s"}, "response": {"status": 200, "body": "one"}}\n'
    '{"run": "%s", "seq": 2, "started_ns": 8, "request": {"method": "POST", "url": "https://api.test/v1/%s"}, "response": {"status": 200, "body": "two"}}\n'
)


class Killer:
    """A process that runs commands, and kills them."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] = prepared.start(
            [sys.executable, "-m", "playhead.tests.support.killed_child"],
            imports=prepared.FOR_OURS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, command: list[str], **how: Any) -> tuple[int, Any]:
        """Run a command; give how it ended, and what the child says of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"command": command, **how}), file=self.process.stdin, flush=True)
        code, said = json.loads(self.process.stdout.readline())
        return code, said


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    """The process, for all commands."""
    made = Killer()
    yield made
    made.process.communicate(timeout=20)


class Home:
    """A folder with a store, its configurations, its archive, and files to be imported."""

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        self.folder = folder
        self.store = store or folder / "s"
        self.attic = folder / "attic"

    def words(self, words: str) -> list[str]:
        """Give the words of a command."""
        return [word.format(home=self.folder) for word in words.split()]

    def done(self, words: str, code: int = 0) -> str:
        """Run a command that ends so."""
        made = CliRunner().invoke(cli, self.words(words))
        assert made.exit_code == code, (words, made.output, made.exc_info)
        return made.stdout

    def keys(self) -> list[StoreKey | None]:
        """Give the keys that open the store."""
        files = [self.folder / name for name in ("one.key", "two.key")]
        tried = [None, *(read_key(file) for file in files if file.exists())]
        return [key for key in tried if _opens(self.store, key)]

    def names(self) -> set[str]:
        """Give the runs that are listed."""
        (key,) = self.keys()
        with Store.open(self.store, readonly=True, key=key) as store:
            return {run.id for run in store.runs.all()}

    def here(self) -> dict[str, object]:
        """Give all that the store holds of each run that is in it."""
        (key,) = self.keys()
        found: dict[str, object] = {}
        with Store.open(self.store, readonly=True, key=key) as store:
            for info in store.runs.all():
                if info.is_only_in_archive:
                    continue
                exchanges = list(store.exchanges.all(info))
                bodies = [
                    list(store.bodies.read(one.response.spilled))
                    for one in exchanges
                    if one.response is not None and one.response.spilled is not None
                ]
                messages = [list(store.messages.all(info, one.seq)) for one in exchanges]
                told = (info.id, info.status, info.exchanges, info.sealed_ns, info.rules)
                log = list(store.events.raw(info))
                found[info.id] = (
                    *told,
                    exchanges,
                    bodies,
                    messages,
                    log,
                    store.index.fingerprints(info),
                    folder_of(store, info),
                )
        return found

    def archived(self) -> list[tuple[str, int]]:
        """Give the steps that the archive lists; nothing else is in it than its files."""
        import pyarrow.parquet as pq

        files = [one for one in self.attic.rglob("*") if one.is_file()]
        assert not [one for one in files if one.suffix != ".parquet"]
        batches = {one.parent.name for one in files}
        assert not files or "steps" in batches
        rows = [
            pq.read_table(one, columns=["run", "seq"]).to_pylist()
            for one in files
            if one.parent.name == "steps"
        ]
        return sorted((row["run"], row["seq"]) for batch in rows for row in batch)


def _opens(folder: Path, key: StoreKey | None) -> bool:
    try:
        Store.open(folder, readonly=True, key=key).close()
    except StoreError:
        return False
    return True


async def _record(store: Store) -> None:
    """Record two runs that share a large body, and a playback of one."""
    night = await record_all(store, "night")
    await record_all(store, "day")
    again = await store.runs.create("night", mode="playback", at_ns=100, parent=night)
    spool = store.bodies.spool()
    spool.write(b"night's own" * 200_000, Chunk(1, 2_200_000))
    answer = replace(make_response(b""), spilled=await spool.keep())
    exchange = make_exchange(
        1, "POST https://api.test/night", kind=RequestClass.EFFECT, body=b"1", response=answer
    )
    store.events.append(again.number, make_intent(exchange))
    await store.exchanges.save(again.number, partial(make_record, exchange))
    await store.runs.seal(again, reason="done", at_ns=101)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A store with three runs; what is old is archived and deleted."""
    made = Home(tmp_path / "home")
    made.folder.mkdir()
    with Store.open(made.store) as store:
        asyncio.run(_record(store))
    base = f"store: {made.store}\nretention: {{hot: 0s, archive: '{made.attic}', keep: KEEP}}\n"
    masks = 'ignore: [{match: "POST https://api.test/*", json: ["$.amount"]}]\n'
    for name, text in {
        "plain": base.replace("KEEP", "forever"),
        "masked": base.replace("KEEP", "forever") + masks,
        "short": base.replace("KEEP", "30d"),
        "one": base.replace("KEEP", "forever") + f"encrypt: {{key_file: {made.folder}/one.key}}\n",
        "two": base.replace("KEEP", "forever") + f"encrypt: {{key_file: {made.folder}/two.key}}\n",
    }.items():
        made.folder.joinpath(f"{name}.yaml").write_text(text)
    for name in ("one", "two"):
        made.done(f"rekey --new-key {{home}}/{name}.key -c {{home}}/plain.yaml")
    made.folder.joinpath("lines.jsonl").write_text(
        "".join(LINES % ((name,) * 4) for name in ("first", "second"))
    )
    for file in made.store.glob("bodies/??/*"):  # as old as they would be
        os.utime(file, (1, 1))
    return made


class Case(NamedTuple):
    """A command, and what has to be so after a kill and in the end."""

    command: str
    ends_with: Callable[[Home, dict[str, object], dict[str, Any]], None]
    """Checks it once the command has come through; given what was there before, and what a command left that nobody killed."""
    listed: tuple[frozenset[str], ...] = (ALL,)
    """Runs that may be listed after a kill."""
    prepare: tuple[str, ...] = ()
    again: str = ""
    """The command that does the rest, where the first is through with the list of runs; else it is the first."""


def _is_as_it_was(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    assert home.here() == before


def _is_archived(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    steps = [(name, seq) for name in ("day", "night") for seq in (1, 3, 4)]
    assert home.archived() == sorted([*steps, ("night@1", 1)])
    assert not home.here()
    for name in ALL:
        home.done(f"show {name} -c {{home}}/plain.yaml")
    assert home.here() == before


def _is_restored(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    home.done("show night@1 -c {home}/plain.yaml")
    home.done("show day -c {home}/plain.yaml")
    assert home.here() == before


def _is_erased(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    assert home.names() == KEPT
    kept = list(kept_bytes(home.store))
    assert not [name for name, data in kept if b"night" in data]
    if home.attic.exists():
        assert home.archived() == [("day", 1), ("day", 3), ("day", 4)]
        assert b"night" not in b"".join(one.read_bytes() for one in home.attic.rglob("*.parquet"))
        home.done("show day -c {home}/plain.yaml")
    assert home.here() == {"day": before["day"]}


def _is_imported(home: Home, before: dict[str, object], unkilled: dict[str, object]) -> None:
    assert home.here() == unkilled
    assert all(unkilled[name] == one for name, one in before.items())


def _has_lines(home: Home, before: dict[str, object], unkilled: dict[str, Any]) -> None:
    now: dict[str, Any] = home.here()
    assert now.keys() == unkilled.keys()
    for name, (*_, exchanges, _, _, _, index, _) in now.items():  # but for the time of the import
        assert (exchanges, index) == (unkilled[name][5], unkilled[name][9]), name
    assert all(now[name] == one for name, one in before.items())


def _is_collected(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    assert home.here() == {"day": before["day"]}
    assert not [one for one in home.store.glob("bodies/??/*") if b"night" in one.read_bytes()]


def _is_as_unkilled(home: Home, _: dict[str, object], unkilled: dict[str, object]) -> None:
    assert home.here() == unkilled


def _is_under_the_key(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    (key,) = home.keys()
    assert key is not None
    assert key.where == str(home.folder / "two.key")
    assert home.here() == before
    assert len(list(home.store.glob("bodies*"))) == 1


def _is_decrypted(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    assert home.keys() == [None]
    assert home.here() == before


def _is_exported(home: Home, before: dict[str, object], _: dict[str, object]) -> None:
    home.done("import {home}/out.tape --store {home}/other")
    assert Home(home.folder, home.folder / "other").here() == {
        name: before[name] for name in ("night", "night@1")
    }


CASES = {
    "archive": Case("archive -c {home}/plain.yaml", _is_archived),
    "restore": Case(
        "show night -c {home}/plain.yaml", _is_restored, prepare=("archive -c {home}/plain.yaml",)
    ),
    "erase": Case(
        "erase night --yes -c {home}/plain.yaml",
        _is_erased,
        (ALL, KEPT),
        again="gc -c {home}/plain.yaml",
    ),
    "erase archived": Case(
        "erase night --yes -c {home}/plain.yaml",
        _is_erased,
        (ALL, KEPT),
        prepare=("archive -c {home}/plain.yaml",),
        again="gc -c {home}/plain.yaml",
    ),
    "gc": Case(
        "gc -c {home}/short.yaml",
        _is_collected,
        (ALL, KEPT),
        prepare=("pin day -c {home}/plain.yaml",),
    ),
    "import": Case(
        "import {home}/night.tape -c {home}/plain.yaml",
        _is_imported,
        (KEPT, ALL),
        prepare=(
            "export night@1 --tape {home}/night.tape -c {home}/plain.yaml",
            "erase night --yes -c {home}/plain.yaml",
        ),
        again="runs -c {home}/plain.yaml",
    ),
    "import lines": Case(
        "import --jsonl {home}/lines.jsonl -c {home}/plain.yaml",
        _has_lines,
        (ALL, ALL | {"first", "second"}),
        again="runs -c {home}/plain.yaml",
    ),
    "rekey": Case(
        "rekey --to-key-file {home}/two.key -c {home}/one.yaml",
        _is_under_the_key,
        prepare=("rekey --to-key-file {home}/one.key -c {home}/plain.yaml",),
    ),
    "decrypt": Case(
        "rekey --decrypt -c {home}/one.yaml",
        _is_decrypted,
        prepare=("rekey --to-key-file {home}/one.key -c {home}/plain.yaml",),
    ),
    "export": Case("export night@1 --tape {home}/out.tape -c {home}/plain.yaml", _is_exported),
    "reindex": Case("reindex night -c {home}/masked.yaml", _is_as_unkilled),
}
"""`upgrade` and `redact --rewrite` have tests of their own, with kills."""


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_point_loses_nothing(home: Home, killer: Killer, name: str) -> None:
    """All runs are sound, none is half there, and the same command again ends as if nobody had killed the first."""
    case = CASES[name]
    before = home.here()
    for prepared_by in case.prepare:
        home.done(prepared_by)
    if name in ("import", "gc"):
        before = home.here()
    kept = home.folder.parent / "kept"
    shutil.copytree(home.folder, kept)
    words = home.words(case.command)
    code, lines = killer(words, count=True)
    assert code == 0
    unkilled = home.here() if home.keys() else {}
    killed = 0
    for how in _kills(killer, home, kept, words, lines):
        code, _ = killer(words, **how)
        if code == 0:
            continue  # it was done sooner, or by another order of its threads
        killed += 1
        _check_killed(home, case, how)
        try:
            _go_on(home, case, before)
            case.ends_with(home, before, unkilled)
        except AssertionError as error:
            raise AssertionError(f"killed at {how}") from error
    assert killed >= POINTS * 3 // 4


def _kills(
    killer: Killer, home: Home, kept: Path, words: list[str], lines: list[list[Any]]
) -> Iterator[dict[str, Any]]:
    """Give where to kill, each with the folder as it was before."""
    chance = random.Random(16)
    places = [(file, line, time) for file, line, times in lines for time in {1, times}]
    chosen = places if len(places) <= POINTS else chance.sample(places, POINTS)
    found: list[dict[str, Any]] = [{"at": place} for place in chosen]
    if MOMENTS:
        _put_back(home, kept)
        took_s = killer(words)[1]
        found += [{"after_s": took_s * chance.random()} for _ in range(MOMENTS)]
    for how in found:
        _put_back(home, kept)
        yield how


def _put_back(home: Home, kept: Path) -> None:
    shutil.rmtree(home.folder)
    shutil.copytree(kept, home.folder)


def _check_killed(home: Home, case: Case, how: dict[str, Any]) -> None:
    """Every run that may be listed is, and is sound, wherever it is."""
    (key,) = home.keys()
    config = "plain" if key is None else Path(key.where).stem
    assert home.names() in case.listed, how
    said = home.done(f"verify -c {{home}}/{config}.yaml")
    assert said.count(": sound, ") == len(home.names()), (how, said)
    if case.command.startswith("export") and home.folder.joinpath("out.tape").exists():
        home.done("import {home}/out.tape --store {home}/early")


def _go_on(home: Home, case: Case, before: dict[str, object]) -> None:
    """Run the command again, or what does the rest of it."""
    through = len(case.listed) > 1 and home.names() == case.listed[1]
    command = case.again if case.again and through else case.command
    if case.command.startswith("export") and home.folder.joinpath("out.tape").exists():
        return
    home.done(command)
