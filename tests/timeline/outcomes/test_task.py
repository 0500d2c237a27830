"""Which recording is of the same task."""

from dataclasses import replace

import pytest

from playhead.store import RunInfo
from playhead.tape.exchange import RunId
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    claude_code,
    text,
    user,
)
from playhead.timeline.outcomes.task import Known, Task, choose_tape, find_task


def task_of(
    said: str = "Refund order 7.",
    system: str = "You are an agent.",
    tools: tuple[str, ...] = ("Bash", "Read"),
) -> Task:
    """Give the task of a run with one call."""
    tape = Tape("one")
    tape.get("https://shop.test/health")
    tape.model(anthropic([user(said)], system=system, tools=tools), anthropic_stream(text("Yes.")))
    found = find_task(tape.exchanges)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (task_of(), True),
        (task_of(system="You are an  agent.\n"), True),
        (task_of(tools=("Read", "Bash")), True),
        (task_of("<system-reminder>Today is Monday.</system-reminder>\nRefund order 7."), True),
        (task_of("Refund the customer."), False),
        (task_of(system="You are a clerk."), False),
        (task_of(tools=("Bash",)), False),
    ],
)
def test_a_task_is_prompt_first_message_and_tools(other: Task, same: bool) -> None:
    """White space, days and reminders are left out; each of the three counts."""
    assert (task_of().fingerprint == other.fingerprint) is same


def test_a_day_in_the_prompt_makes_no_other_task() -> None:
    """The same agent on another day."""
    days = [
        task_of(system=f"You are an agent. Today is {day}.")
        for day in ("Monday 2026-11-23", "Friday 2026-11-27")
    ]
    assert days[0].fingerprint == days[1].fingerprint


def test_what_is_asked_beside_the_conversation_is_no_task() -> None:
    """A quota probe and a title come first, and are passed over."""
    found = find_task(claude_code().exchanges)
    assert found is not None
    assert found.text == "Refund order 7."
    assert find_task(claude_code().exchanges[:2]) is None


def test_the_newest_of_the_same_task_is_chosen() -> None:
    """The same prompt goes before a newer recording with another one; another task is never chosen."""
    run = RunInfo(1, RunId("old"), "record", 1)
    same, other = task_of(), task_of(system="You are a clerk.")
    known = [
        Known(replace(run, id=RunId("none")), None),
        Known(replace(run, id=RunId("strange")), task_of("Write a poem.")),
        Known(replace(run, id=RunId("alike")), other),
        Known(replace(run, id=RunId("newer")), same),
        Known(run, same),
    ]
    chosen = [choose_tape(known, task) for task in (same, other, task_of(system="You are new."))]
    assert [(one[0].run.id, one[1]) for one in chosen if one] == [
        ("newer", True),
        ("alike", True),
        ("alike", False),
    ]
    assert choose_tape(known, task_of("Sing.")) is None
