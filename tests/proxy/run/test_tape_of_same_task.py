"""Which recording a command is started against before it has said what its task is."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.proxy.errors import EngineError
from playhead.proxy.run.good_recordings import list_good
from playhead.proxy.run.tape_of_same_task import guess_tape, saved_line
from playhead.store import RunInfo, Store
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, chat, chat_answer, said
from playhead.tests.support.exchanges import make_intent, make_record
from playhead.tests.support.provider_tapes import Kept
from playhead.tests.support.replays import write_replay

COMMAND = ["agent", "--task", "7"]


def asked(task: str = "Refund order 7.") -> Tape:
    """A read, and a call of a model."""
    tape = Tape("asked")
    tape.get("https://shop.test/orders/7")
    tape.model(chat([said("user", task)]), chat_answer("Done."))
    return tape


async def write(store: Store, name: str, task: str = "Refund order 7.", **ended: Any) -> RunInfo:
    """Write a recording whose command ended so."""
    run = await store.runs.create(name, mode="record", at_ns=1)
    for exchange in asked(task).exchanges:
        store.events.append(run.number, make_intent(exchange))
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
        assert [one.info.id for one in list_good(store)] == ["other", "same", "old"]
        assert guess_tape(store, COMMAND) == "same"
        assert guess_tape(store, ["unseen"]) == "other"


async def test_a_task_in_the_words_of_a_command_is_tried_first(tmp_path: Path) -> None:
    """The longest that is there; a short one may be there by chance."""
    with Store.open(tmp_path / "store") as store:
        for name, task in (
            ("short", "Refund"),
            ("long", "Refund order 7 of Ana.\nToday."),
            ("middle", "Refund order 7"),
            ("newest", "Write a poem."),
        ):
            await write(store, name, task, child_exit=0, command=["another"])
        assert guess_tape(store, ["agent", "--task", "Refund order 7 of Ana."]) == "long"
        assert guess_tape(store, ["agent", "-p", "Please: Refund order 7"]) == "middle"
        assert guess_tape(store, ["agent", "Refund order 9"]) == "newest"


def test_archived_recordings_are_chosen_from_too(tmp_path: Path) -> None:
    """They are read where they are; those that are here go before."""
    pytest.importorskip("pyarrow")
    folder, config = tmp_path / "store", tmp_path / "playhead.yaml"
    config.write_text(
        f"store: {folder}\nretention: {{hot: 0s, archive: {tmp_path}/attic, keep: 30d}}\n"
    )

    async def write_all() -> None:
        with Store.open(folder) as store:
            await write(store, "failed", child_exit=1, command=COMMAND)
            await write(store, "old", child_exit=0, command=COMMAND)
            await write(store, "poem", "Write a poem.", child_exit=0, command=["poet"])

    asyncio.run(write_all())
    words = ["archive", "failed", "old", "-c", str(config)]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, done.exception
    with Store.open(folder, readonly=True) as store:
        good = list(list_good(store))
        assert [one.info.id for one in good] == ["poem", "old"]
        assert guess_tape(store, COMMAND) == "old"
        assert guess_tape(store, ["agent", "Refund order 7."]) == "old"
        assert guess_tape(store, ["unseen"]) == "poem"


async def test_the_last_line_says_what_was_saved(tmp_path: Path) -> None:
    """All of it where everything came from the tape, nothing where nothing was asked."""
    with Store.open(tmp_path / "store") as store:
        tape = await write(store, "tape", child_exit=0)
        whole = await write_replay(store, tape, asked().exchanges)
        assert saved_line(store, whole) == "saved 100 % | $0.0002 | 60 tokens"
        nothing = await write_replay(store, tape, [])
        assert saved_line(store, nothing) == "saved 0 % | $0.00 | 0 tokens"


def test_the_task_of_a_websocket_is_in_its_messages(tmp_path: Path) -> None:
    """It is read where the recording is, in the store or in an archive."""
    pytest.importorskip("pyarrow")
    folder, config = tmp_path / "store", tmp_path / "playhead.yaml"
    config.write_text(
        f"store: {folder}\nretention: {{hot: 0s, archive: {tmp_path}/attic, keep: 30d}}\n"
    )
    kept = Kept()
    kept.ask_on_websocket({"input": "Refund order 7."}, {"input": "And more?"})

    async def write_all() -> None:
        with Store.open(folder) as store:
            run = await store.runs.create("old", mode="record", at_ns=1)
            for exchange in kept.tape.exchanges:
                store.events.append(run.number, make_intent(exchange))
                for number, message in enumerate(kept.messages[exchange.seq]):
                    store.messages.append(run.number, exchange.seq, number, message)
                await store.exchanges.save(run.number, partial(make_record, exchange))
            store.events.append(run.number, Event(EventKind.NOTED, 2, {"child_exit": 0}))
            await store.runs.seal(run, reason="ended", at_ns=3)
            await write(store, "poem", "Write a poem.", child_exit=0, command=["poet"])

    asyncio.run(write_all())
    for archived in (False, True):
        if archived:
            words = ["archive", "old", "-c", str(config)]
            done = CliRunner().invoke(cli, words, standalone_mode=False)
            assert done.exception is None, done.exception
        with Store.open(folder, readonly=True) as store:
            assert guess_tape(store, ["agent", "Refund order 7."]) == "old"
