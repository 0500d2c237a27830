"""What a table says of a run."""

import asyncio
from dataclasses import replace
from pathlib import Path

from playhead.store import Record, RunStatus, Store
from playhead.store.tables.run_info import Owner
from playhead.tests.support.exchanges import make_exchange, make_intent, make_outcome, raw_of
from playhead.web.views.run_facts import run_row


def test_a_run_whose_process_died_lasted_until_its_last_sign_of_life(tmp_path: Path) -> None:
    """That it was found dead hours later is no part of it."""
    last = replace(make_exchange(1), end_us=2_000_000)
    began_ns = last.started_ns - 1_000_000_000

    async def write(store: Store) -> None:
        store.runs.owner = Owner(1 << 22, 1.0)  # which is no process
        run = await store.runs.create("r", mode="record", at_ns=began_ns)
        store.events.append(run.number, make_intent(last))
        record = Record(last, raw_of(last), make_outcome(last))
        await store.exchanges.save(run.number, lambda: record)

    with Store.open(tmp_path) as store:
        asyncio.run(write(store))
    with Store.open(tmp_path) as store:
        info = store.runs.get("r")
        assert info.status is RunStatus.RECOVERED
        row = run_row(store, info, None, info.sealed_ns)
    assert row["duration"] == "≥ 3.0 s"
