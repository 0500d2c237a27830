"""Words beside a run: added, never changed, and no reason to distrust the run."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from playhead.proxy.cli import cli
from playhead.store import Store, StoreError
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.timeline.checks.integrity import verify_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with a store whose run `night` has ended."""
    with Store.open(tmp_path) as store:

        async def record() -> None:
            info = await store.runs.create("night", mode="record", at_ns=1)
            store.events.append(info.number, make_intent(make_exchange()))
            await store.exchanges.save(info.number, lambda: make_record(make_exchange()))
            await store.runs.seal(info, reason="done", at_ns=2)

        asyncio.run(record())
    return tmp_path


def note(store: Path, *arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["note", *arguments, "--store", str(store)])


def test_notes_are_added_to_a_run_that_has_ended(store: Path) -> None:
    """In order, of the run and of an exchange; the run stays sound."""
    assert note(store, "night", "refunded twice").exit_code == 0
    assert note(store, "night", "this one \x1b[31m", "--seq", "1").exit_code == 0
    listed = json.loads(note(store, "night", "--json").output)
    assert [(one["seq"], one["text"]) for one in listed] == [
        (0, "refunded twice"),
        (1, "this one \x1b[31m"),
    ]
    assert all(one["by"] and one["at_ns"] for one in listed)
    shown = note(store, "night", "--seq", "1").output
    assert "this one" in shown
    assert "\x1b" not in shown
    assert "refunded" not in shown
    with Store.open(store, readonly=True) as opened:
        assert verify_run(opened, opened.runs.get("night")).problems == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("night", "x", "--seq", "9"), "holds no exchange 9"),
        (("night", " "), "a note of 1 characters"),
        (("night", "x" * 10_001), "10001 characters"),
        (("nigth", "x"), "unknown run"),
    ],
)
def test_what_cannot_be_noted_is_told(store: Path, arguments: tuple[str, ...], told: str) -> None:
    """Nothing is written then."""
    made = note(store, *arguments)
    assert isinstance(made.exception, StoreError)
    assert told in str(made.exception)
    assert note(store, "night").output == "no notes\n"
