"""Runs in an archive: moved there and back byte for byte, by many at once, and never half."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars
import pytest
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.proxy.cli import cli
from playhead.store import RunOpen, Store
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.stored import all_of, record_all

FULL = bool(os.environ.get("PLAYHEAD_FULL"))


def run(store: Path, *arguments: str, archive: str = "../attic", hot: str = "0s") -> Result:
    """Run a command, with a configuration that archives."""
    config = store.parent / f"{store.name}.yaml"
    config.write_text(
        f"store: {store}\nretention: {{hot: {hot}, archive: '{archive}', keep: 30d}}\n"
    )
    return CliRunner().invoke(cli, [*arguments, "-c", str(config)])


def done(store: Path, *arguments: str, code: int = 0, **options: str) -> str:
    """Run a command that works; give what it says."""
    made = run(store, *arguments, **options)
    assert made.exit_code == code, (made.output, made.exception)
    return made.stdout


def refused(store: Path, *arguments: str, **options: str) -> str:
    """Run a command that fails; give what a person is told."""
    made = run(store, *arguments, **options)
    assert isinstance(made.exception, PlayheadError), made.output
    return str(made.exception)


def make(path: Path, *names: str) -> Path:
    """Make a store with runs of every sort of row."""
    path.parent.mkdir(exist_ok=True)
    with Store.open(path) as store:
        for name in names:
            asyncio.run(record_all(store, name))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two runs."""
    return make(tmp_path / "here" / "s", "night", "day")


def attic(store: Path) -> Path:
    """The folder of its archive."""
    return store.parent.parent / "attic"


def files(store: Path) -> list[str]:
    """All that the archive holds."""
    return sorted(
        str(one.relative_to(attic(store))) for one in attic(store).rglob("*") if one.is_file()
    )


def everything(store: Path, name: str) -> tuple[object, ...]:
    """All that the store holds of a run, but where it lies."""
    with Store.open(store, readonly=True) as opened:
        info, *rest = all_of(opened, name)
        return (info.id, info.status, info.exchanges, info.sealed_ns, info.rules, *rest)


def test_a_run_comes_back_as_it_was(store: Path) -> None:
    """Bytes, events, messages, large bodies, the index; what is asked of it does not need to know."""
    before = {name: everything(store, name) for name in ("night", "day")}
    shown = done(store, "show", "night", "4")
    told = done(store, "archive")
    assert "archived: night: ended" in told
    assert "2 archived, 0 stay" in told
    with Store.open(store, readonly=True) as opened:
        assert [one.is_away for one in opened.runs()] == [True, True]
        assert opened.seqs(opened.get_run("night")) == []
    assert "archived" in done(store, "runs")
    assert done(store, "show", "night", "4") == shown
    for command in (("receipt", "night"), ("effects", "night"), ("verify", "night")):
        done(store, *command)
    assert json.loads(done(store, "verify", "day", "--json"))[0]["problems"] == []
    assert {name: everything(store, name) for name in ("night", "day")} == before
    assert (
        done(store, "archive")
        == "0 archived, 2 stay\n  night: it is archived\n  day: it is archived\n"
    )


def test_what_is_archived_is_chosen(tmp_path: Path) -> None:
    """By age; not what is pinned, unless it is named."""
    path = make(tmp_path / "here" / "s", "one", "two", "three")
    done(path, "pin", "two")
    assert "0 archived, 3 stay" in done(path, "archive", hot="36500d")
    told = json.loads(done(path, "archive", "--dry-run", "--json"))
    assert [(one["run"], one["goes"]) for one in told["runs"]] == [
        ("one", True),
        ("two", False),
        ("three", True),
    ]
    assert told["archived"] is False
    assert files(path) == []
    assert "1 archived" in done(path, "archive", "two", hot="36500d")
    with Store.open(path, readonly=True) as opened:
        assert [one.id for one in opened.runs() if one.is_away] == ["two"]


def test_a_run_that_is_open_is_not_archived(store: Path) -> None:
    """Not by age, and not by name."""
    with opened_run(store):
        assert "open: it has not ended" in done(store, "archive", "--dry-run")
        made = run(store, "archive", "open")
    assert isinstance(made.exception, RunOpen)


@contextmanager
def opened_run(store: Path) -> Iterator[None]:
    """Have another process hold a run open."""
    told = (
        "import asyncio, sys; from pathlib import Path; from playhead.store import Store\n"
        "store = Store.open(Path(sys.argv[1]))\n"
        "async def begin(): await store.create_run('open', mode='record', at_ns=1)\n"
        "asyncio.run(begin()); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", told, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield
        process.communicate(b"\n", timeout=20)


def test_a_run_is_erased_from_the_archive(store: Path) -> None:
    """With its bytes, in a file of its own or in one that it shares; the others are what they were."""
    with Store.open(store) as opened:
        asyncio.run(_record_marked(opened))
    before = everything(store, "night")
    done(store, "archive")
    assert b"said-only-here" in _unpacked(store)
    assert done(store, "erase", "marked", "--yes") == "erased: marked\n"
    assert b"said-only-here" not in _unpacked(store)
    assert len({Path(one).name for one in files(store)}) == 1
    assert {row["run"] for row in _rows(store, "steps")} == {"day", "night"}
    done(store, "show", "night")
    assert everything(store, "night") == before
    for name in ("night", "day"):
        done(store, "erase", name, "--yes")
    assert files(store) == []


async def _record_marked(store: Store) -> None:
    info = await store.create_run("marked", mode="record", at_ns=1)
    exchange = make_exchange(1, body=b"said-only-here")
    store.append(info.number, make_intent(exchange))
    await store.save(info.number, lambda: make_record(exchange))
    await store.seal(info, reason="done", at_ns=2)


def _rows(store: Path, folder: str) -> list[dict[str, object]]:
    rows = polars.read_parquet(attic(store) / folder / "*.parquet").to_dicts()
    return list(rows)


def _unpacked(store: Path) -> bytes:
    rows = _rows(store, "exchanges")
    return b"".join(row["request_body"] + row["record"] for row in rows)  # type: ignore[operator]


def test_gc_deletes_archived_runs_and_drops_copies(store: Path) -> None:
    """By `keep` from the archive, too; a copy that was written to is more than the archive holds, and stays."""
    done(store, "archive")
    for name in ("night", "day"):
        done(store, "show", name)
    done(store, "note", "day", "looked at it")
    config = store.parent / "gc.yaml"
    told = f"store: {store}\nretention: {{hot: 0s, archive: ../attic, keep: forever}}\n"
    config.write_text(told)
    assert CliRunner().invoke(cli, ["gc", "-c", str(config)]).exit_code == 0
    with Store.open(store, readonly=True) as opened:
        assert {one.id: one.is_away for one in opened.runs()} == {"night": True, "day": False}
    assert "sound" in done(store, "verify", "day")
    assert "2 deleted" in done(store, "gc")
    assert files(store) == []
    with Store.open(store, readonly=True) as opened:
        assert opened.runs() == []


def test_without_an_archive_nothing_is_moved(store: Path) -> None:
    """It is said what to set."""
    config = store.parent / "none.yaml"
    config.write_text(f"store: {store}\n")
    made = CliRunner().invoke(cli, ["archive", "-c", str(config)])
    assert "there is no archive" in str(made.exception)
