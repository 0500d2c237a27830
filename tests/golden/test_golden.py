"""What each version of each format wrote is read: the golden files, upgraded where a version is an earlier one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from playhead.config import loads
from playhead.store import Store, StoreKey
from playhead.store.deltas.record_codec import parse
from playhead.store.lmdb_keys import TABLES
from playhead.store.maintenance.upgrade import upgrade
from playhead.tests.golden.make import (
    FOLDER,
    KEY,
    VERSIONS,
    describe,
    describe_archive,
    describe_configuration,
    describe_tape,
    golden,
    unpack,
)
from playhead.timeline import build
from playhead.timeline.checks.integrity import verify_run
from playhead.timeline.formats.upgrade_file import upgrade_file

EVERY = [
    (form, version)
    for form, (first, current) in VERSIONS.items()
    for version in range(first, current + 1)
]
STORES, TAPES, ARCHIVES, CONFIGURATIONS = (
    [version for form, version in EVERY if form == wanted]
    for wanted in ("store", "tape", "archive", "configuration")
)


def told(form: str, version: int) -> Any:
    """What is in a golden file."""
    return json.loads((FOLDER / f"{form}-{version}.json").read_text("utf-8"))


OTHER_DEFAULTS = (("sandbox", "record"),)
"""Keys whose default became another on purpose."""


def agrees(expected: Any, found: Any) -> bool:
    """Say whether all that was expected is there; a key that came later is no fault."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(key in found and agrees(value, found[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(agrees, expected, found))
    return bool(expected == found)


@pytest.mark.parametrize(("form", "version"), EVERY)
def test_every_version_has_a_golden_file(form: str, version: int) -> None:
    """Whoever raises a version runs `python -m playhead.tests.golden.make`."""
    assert golden(form, version).is_file()


def test_the_documentation_lists_the_versions() -> None:
    """Each format, with its current version."""
    page = (FOLDER.parents[1] / "docs" / "store.md").read_text("utf-8")
    table = page.partition("## Versions")[2]
    rows = dict(re.findall(r"^\| (\w+) \| (\d+) \|", table, re.MULTILINE))
    assert rows == {form: str(current) for form, (_, current) in VERSIONS.items()}


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def key(request: pytest.FixtureRequest) -> StoreKey | None:
    """What a store is encrypted under."""
    found: StoreKey | None = request.param
    return found


@pytest.mark.parametrize("version", STORES)
def test_a_store_of_every_version_is_read(
    store_dir: Path, version: int, key: StoreKey | None
) -> None:
    """All that it holds, once it is upgraded; and it is sound."""
    unpack(f"store-{version}{'-encrypted' if key else ''}.tar.gz", store_dir)
    upgrade(store_dir, key)
    with Store.open(store_dir, key=key) as store:
        assert describe(store) == told("store", version)
        for run in store.runs.all():
            assert verify_run(store, run).problems == ()


def test_the_golden_store_has_rows_of_every_sort(store_dir: Path) -> None:
    """In all tables that a run that has ended leaves rows in, and records of every codec."""
    unpack(f"store-{VERSIONS['store'][1]}.tar.gz", store_dir)
    with Store.open(store_dir, readonly=True) as store:
        database = store._database
        with database.reading() as transaction:
            filled = {
                name
                for name, table in database.tables.items()
                if transaction.stat(table)["entries"]
            }
            values = store.exchanges._records
            codecs = {
                values._find_record(transaction, run.number, seq).codec  # type: ignore[union-attr]
                for run in store.runs.all()
                for seq in store.exchanges.seqs(run)
            }
    assert filled == set(TABLES) - {"open", "mail"}
    assert {b"\2", b"\3", b"\4"} == codecs
    assert parse(b"\0" + bytes(9)).codec == b"\0"


@pytest.mark.parametrize("version", TAPES)
def test_a_tape_of_every_version_is_read(tmp_path: Path, version: int) -> None:
    """All runs that are in it."""
    file = Path(shutil.copy(golden("tape", version), tmp_path))
    upgrade_file(file)
    assert describe_tape(file, tmp_path / "store") == told("tape", version)


@pytest.mark.parametrize("version", ARCHIVES)
def test_an_archive_of_every_version_is_read(tmp_path: Path, version: int) -> None:
    """The run that is in it; and it is what the store and the tape hold of it."""
    folder = unpack(golden("archive", version).name, tmp_path / "archive")
    for file in folder.rglob("*.parquet"):
        upgrade_file(file)
    found = describe_archive(folder, tmp_path / "store")
    assert found == told("archive", version)
    assert found["talk"] == told("store", VERSIONS["store"][1])["talk"]


def test_the_receipt_is_that_of_its_version(store_dir: Path) -> None:
    """Of the same run, whatever the store: all keys with what they held; a further key is no new version."""
    store_version, version = VERSIONS["store"][1], VERSIONS["receipt"][1]
    unpack(f"store-{store_version}.tar.gz", store_dir)
    with Store.open(store_dir, readonly=True) as store:
        found = json.loads(json.dumps(build(store, store.runs.get("talk@1")).to_json()))
    assert found["version"] == version
    assert agrees(told("receipt", version), found)


@pytest.mark.parametrize("version", CONFIGURATIONS)
def test_a_configuration_of_every_version_is_read(version: int) -> None:
    """It means what it meant."""
    text = (FOLDER / f"configuration-{version}.yaml").read_text("utf-8")
    assert loads(text).version == version
    then = told("configuration", version)
    for section, name in OTHER_DEFAULTS:
        assert f"{name}:" not in text, "a key that is given means what it meant"
        del then[section][name]
    assert agrees(then, describe_configuration(text))


def test_a_key_that_goes_is_seen() -> None:
    """The comparison can fail."""
    assert agrees({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}], "d": 4})
    assert not agrees({"a": 1, "b": 2}, {"a": 1})
    assert not agrees([1, 2], [1])
    assert not agrees({"a": [1]}, {"a": [2]})
