"""Which recording a command is started against before it has said what its task is."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.run.same_task import guess_tape, list_good, saved_line
from playhead.store import RunInfo, Store
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, chat, chat_answer, said
from playhead.tests.support.exchanges import make_record
from playhead.tests.support.replays import write_replay

COMMAND = ["agent", "--task", "7"]


def asked() -> Tape:
    """A read, and a call of a model."""
    tape = Tape("asked")
    tape.get("https://shop.test/orders/7")
    tape.model(chat([said("user", "Refund order 7.")]), chat_answer("Done."))
    return tape


async def write(store: Store, name: str, **ended: Any) -> RunInfo:
    """Write a recording whose command ended so."""
    run = await store.runs.create(name, mode="record", at_ns=1)
    for exchange in asked().exchanges:
        await store.exchanges.save(run.number, partial(make_record, exchange))
    store.events.append(run.number, Event(EventKind.NOTED, 2, ended))
    return await store.runs.seal(run, reason="ended", at_ns=3)


async def test_the_newest_good_one_of_the_same_command_is_tried_first(tmp_path: Path) -> None:
    """What failed is passed over; of another command the newest good one is tried."""
    with Store.open(tmp_path / "store") as store:
        with pytest.raises(EngineError, match="no recording that ended well"):
            guess_tape(store, COMMAND)
        await write(store, "old", child_exit=0, command=COMMAND)
        await write(store, "same", child_exit=0, command=COMMAND)
        await write(store, "other", child_exit=0, command=["another"])
        await write(store, "failed", child_exit=1, command=COMMAND)
        assert [run.id for run in list_good(store)] == ["other", "same", "old"]
        assert guess_tape(store, COMMAND) == "same"
        assert guess_tape(store, ["unseen"]) == "other"


async def test_the_last_line_says_what_was_saved(tmp_path: Path) -> None:
    """All of it where everything came from the tape, nothing where nothing was asked."""
    with Store.open(tmp_path / "store") as store:
        tape = await write(store, "tape", child_exit=0)
        whole = await write_replay(store, tape, asked().exchanges)
        assert saved_line(store, whole) == "saved 100 % | $0.00 | 0 tokens"
        nothing = await write_replay(store, tape, [])
        assert saved_line(store, nothing) == "saved 0 % | $0.00 | 0 tokens"
