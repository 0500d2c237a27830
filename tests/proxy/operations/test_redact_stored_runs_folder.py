"""`playhead redact --rewrite` of a working folder: the secret is gone from names and contents, and a savepoint can still be restored.

The rows are those of `folder_cases.REWRITTEN`.
"""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tape.folders.manifest import SECRET, Entry, GitState, Kind, Manifest, find_step
from playhead.tests.support.folder_cases import REWRITTEN
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.stored import content, file_entry, folder_of, record_all

VALUE = "-".join(("tango", "4417", "velvet", "9031"))
HIDDEN = VALUE.encode()
OBJECT = zlib.compress(b"blob 25\0it was " + HIDDEN)
FILES = {
    b"notes": b"it was %s, and %s" % (HIDDEN, HIDDEN),
    b"plain": b"nothing",
    b".git/objects/ab/cd": OBJECT,
    b"of-" + HIDDEN: b"",
}
LATER = b"later it was " + HIDDEN
RULES = (
    "{pattern: 'tango-[0-9]+-velvet-[0-9]+'}",
    "{pattern: 'nothing'}",
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two runs that share a content with the value."""
    import asyncio

    folders = (b".git", b".git/objects", b".git/objects/ab")
    start = Manifest(
        b"/work",
        {
            **{path: Entry(Kind.FOLDER, 0o755) for path in folders},
            **{path: file_entry(data) for path, data in FILES.items()},
            b"link": Entry(Kind.LINK, 0o777, target=b"/srv/" + HIDDEN),
        },
        git=GitState("ab" * 20, f"fix-{VALUE}", (f"of-{VALUE}",), 1),
        saved=True,
    )
    changed = {**start.entries, b"notes": file_entry(LATER)}
    then = Manifest(b"/work", changed, saved=True, seq=3)
    with Store.open(tmp_path / "s") as opened:
        for name in ("night", "day"):
            info = asyncio.run(record_all(opened, name))
            opened.folders.save(info.number, start, map(content, FILES.values()))
            opened.folders.save_step(info.number, 1, find_step(start, then), [content(LATER)])
            back = find_step(then, replace(start, seq=4))
            opened.folders.save_step(info.number, 2, back, [])
    return tmp_path / "s"


def done(store: Path, *words: str, rules: str = RULES[0]) -> str:
    """Run a command that works; give what it says."""
    config = store.parent / "c.yaml"
    config.write_text(
        f"store: {store}\nredact: [{rules}]\nretention: {{hot: 0s, archive: attic}}\n"
    )
    made = CliRunner().invoke(cli, [*words, "-c", str(config)])
    assert made.exit_code == 0, (made.output, made.exception)
    return made.stdout


def held(store: Path, name: str) -> tuple[Any, ...]:
    """Give what is stored of the folder of a run."""
    with Store.open(store, readonly=True) as opened:
        return folder_of(opened, opened.runs.get(name))


def test_every_place_of_a_folder(store: Path) -> None:
    """The value is nowhere, the rest is as it was, and once more there is nothing to do."""
    other = held(store, "day")
    said = done(store, "redact", "--rewrite", "night")
    assert said == "night: rewritten by rule redact[0] pattern: 8 files\n"
    assert held(store, "day") == other
    start, (later, back, *_), read = held(store, "night")
    notes = start.entries[b"notes"]
    written = read[notes.digest]
    fake = written[7 : 7 + len(HIDDEN)]
    assert written == FILES[b"notes"].replace(HIDDEN, fake)
    assert notes.placeholders == ((7, len(HIDDEN)), (13 + len(HIDDEN), len(HIDDEN)))
    assert read[later.written[b"notes"].digest] == LATER.replace(HIDDEN, fake)
    assert back.written[b"notes"] == notes
    assert start.entries[b".git/objects/ab/cd"].unsaved == SECRET
    assert start.entries[b"link"].target == b"/srv/" + fake
    assert b"of-" + fake in start.entries
    assert (start.git.branch, start.git.dirty) == (f"fix-{fake.decode()}", (f"of-{fake.decode()}",))
    assert start.entries[b"plain"] == file_entry(FILES[b"plain"])
    assert done(store, "redact", "--rewrite", "night") == "night: nothing to change\n"
    done(store, "redact", "--rewrite", "day")
    kept = dict(kept_bytes(store))
    assert [name for name, data in kept.items() if HIDDEN in data or OBJECT in data] == []
    assert len(REWRITTEN) == 8


def test_a_rewritten_savepoint_is_restored_with_its_placeholders(store: Path) -> None:
    """They are named."""
    done(store, "redact", "--rewrite", "night")
    into = store.parent / "into"
    words = ("files", "night", "--at", "3", "--restore", str(into), "--force")
    told = json.loads(done(store, *words, "--json"))
    assert told["placeholders"] == ["notes"]
    assert told["skipped"] == [".git/objects/ab/cd"]
    assert len((into / "notes").read_bytes()) == len(LATER)
    assert HIDDEN not in (into / "notes").read_bytes()
    assert "with placeholders for secrets: notes" in done(store, *words)


def test_a_rule_that_finds_more_keeps_the_placeholders_of_before(store: Path) -> None:
    """What stands there already is no secret."""
    done(store, "redact", "--rewrite", "night")
    start, *_ = held(store, "night")
    said = done(store, "redact", "--rewrite", "night", rules=", ".join(RULES))
    assert said == "night: rewritten by rule redact[1] pattern: 1 file\n"
    now, *_ = held(store, "night")
    assert now.entries[b"notes"] == start.entries[b"notes"]
    assert now.entries[b"plain"].placeholders == ((0, 7),)


def test_an_archived_run_is_rewritten_with_its_folder(store: Path) -> None:
    """It comes back with the placeholders, and nothing of before is left in the archive."""
    import pyarrow.parquet as pq

    done(store, "archive")
    done(store, "redact", "--rewrite", "--all")
    files = list((store.parent / "attic").rglob("*.parquet"))
    assert {"folders", "contents"} <= {one.parent.name for one in files}
    for name in ("folders", "contents"):
        rows = [pq.read_table(one).to_pylist() for one in files if one.parent.name == name]
        assert VALUE not in repr(rows)
    done(store, "show", "night")
    start, _, read = held(store, "night")
    assert start.entries[b"notes"].placeholders
    assert all(blake3(data).digest() == digest for digest, data in read.items())
