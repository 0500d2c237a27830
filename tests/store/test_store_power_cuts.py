"""Power cuts while a store is written: it can always be opened, and what is lost is what the setting says."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.store import RunStatus, Store
from playhead.tape.records.events import EventKind
from playhead.tests.support.power import Entry, cuts, make_library, read_log
from playhead.tests.support.store_child import nth

CUTS = 150 if os.environ.get("PLAYHEAD_FULL") else 15
_LINES = 300


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_library(tmp_path_factory.mktemp("power"))


def _logged(library: Path, folder: Path, *more: str) -> list[Entry]:
    """Have a process write until it has said so much, kill it, and give all that it did."""
    log = folder / "power.log"
    module = "playhead.tests.support.store_child"
    child = subprocess.Popen(
        [sys.executable, "-m", module, "endless", str(folder / "store"), "r", *more],
        env={**os.environ, "LD_PRELOAD": str(library), "POWER_LOG": str(log)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
        for _ in range(_LINES):
            assert child.stdout.readline(), "the process ended"
    finally:
        child.kill()
        child.communicate(timeout=20)
    entries = read_log(log)
    kinds = {entry.kind for entry in entries}
    assert kinds >= {"A", "S", "W"}, "the library saw the writes"
    return entries


@pytest.mark.timeout(30 + CUTS)
@pytest.mark.parametrize("setting", ["process", "power"])
def test_a_power_cut_leaves_a_store_that_opens(library: Path, tmp_path: Path, setting: str) -> None:
    """Each page that was not flushed is lost or kept at random: at most the last commit is lost, in `power` none."""
    entries = _logged(library, tmp_path, *(["power"] if setting == "power" else []))
    lost = 0
    for cut in cuts(entries, CUTS, random.Random(11)):
        image = tmp_path / "cut"
        shutil.rmtree(image, ignore_errors=True)
        (image / "log.lmdb").mkdir(parents=True)
        (image / "log.lmdb" / "data.mdb").write_bytes(cut.image)
        with Store.open(image, readonly=True) as store:
            kept = int(store._database.environment.info()["last_txnid"])
        assert kept >= cut.commit - 1, "more than the last commit is lost"
        with Store.open(image) as store:
            if not store.runs.all():
                assert setting == "process"
                lost += 1
                continue
            info = store.runs.get("r")
            assert info.status is RunStatus.RECOVERED
            assert store.events.find_broken_link(info) is None
            outcomes = {
                event.seq for event in store.events.read(info) if event.kind is EventKind.OUTCOME
            }
            for exchange in store.exchanges.all(info):
                assert exchange == nth("r", exchange.seq)
        told = {int(line.split()[1]) for line in cut.said if line.startswith("outcome ")}
        missing = told - outcomes
        if setting == "power":
            assert not missing
        elif missing:
            assert kept == cut.commit - 1
            lost += 1
    if setting == "process" and CUTS >= 100:
        assert lost > 0, "the cuts are harsh enough to lose what may be lost"
