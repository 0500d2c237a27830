"""`playhead resume`: say what is going to be sent and executed, ask, and run the command of a run that crashed, or whose command failed, again."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from ...config import Config
from ...store import RunInfo, Store
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import RequestClass, Seq
from ...tape.policy.resume import Resume, UnknownEffect
from ...tape.records.events import EventKind
from ...tape.shell_words import shell_word
from ...timeline.lookup.crashed_runs import find_crashed, find_failure, find_first, read_crash
from ...timeline.receipts.command.command_end import find_command
from ..folder.execution_folder import AUTO, IN_PLACE
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..run.launcher import ContainerHost, Output
from ..run.launcher import resume as run_resume
from ..standard_streams import print_status
from .announcements import WIDTH, announce_command
from .branch import confirm

_SHOWN = 20
"""Effects without an outcome that are listed before the command runs."""


class Crash(NamedTuple):
    """A crashed run, as it is shown before it is resumed."""

    run: RunInfo
    failure: str
    """As in `whose process died`."""
    known: Resume
    answered: int
    """Exchanges with an outcome, and WebSockets that were open, telemetry aside."""
    effects: int
    """Those of them that are effects."""
    replaced: int
    """Answers with placeholders in the place of secrets."""
    command: tuple[str, ...]
    """The one that was recorded."""


def resume(
    config: Config,
    name: str,
    command: Sequence[str],
    output: Output,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
    yes: bool = False,
) -> int:
    """Resume a run; give the exit code.

    yes: do not ask.
    Raises: PlayheadError, before the command is started; UsageError without a command.
    """
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        last = find_crashed(store, name).id
    restore_runs(config, last)
    with open_store(config, readonly=True) as store:
        crash = find_crash(store, name)
    if not command:
        recorded = one_line(shlex.join(crash.command))
        shown = f" (it was recorded with: {recorded})" if recorded else ""
        raise click.UsageError(
            "Missing argument '-- COMMAND...': a resumed run executes the command that you give, and never one of a tape;"
            f" as in: playhead resume {shell_word(name)} -- python agent.py{shown}"
        )
    for line in announce(name, crash, command):
        print_status(line)
    if not yes:
        confirm()
    # What the agent has done to its folder is there, and what it does now is to stay.
    files = config.files
    if files.replay == AUTO:
        config = replace(config, files=replace(files, replay=IN_PLACE))
    return run_resume(
        config, crash.run.id, command, output, container_host, config_file=config_file
    )


def find_crash(store: Store, name: str) -> Crash:
    """Find the run to resume, and what is known of it. Blocking. Raises: StoreError; LogCorrupt."""
    run = find_crashed(store, name)
    known = read_crash(store, run)
    kinds: dict[int, str] = {}
    answered: set[int] = set()
    replaced: set[int] = set()
    for event in store.events.all(run):
        if event.kind in (EventKind.INTENT, EventKind.VERDICT):
            kinds[event.seq] = event.data["request_class"]
        elif event.kind is EventKind.OUTCOME:
            answered.add(event.seq)
        if event.data.get("replaced"):
            replaced.add(event.seq)
    answered -= known.unanswered
    for seq in kinds.keys() - answered - known.unanswered:
        kept = store.exchanges.find(run, Seq(seq))
        if kept is not None and kept.websocket is not None:  # as far as its messages go
            answered.add(seq)
    told = [kinds.get(seq) for seq in answered]
    return Crash(
        run,
        find_failure(store, run),
        known,
        sum(kind not in (None, RequestClass.TELEMETRY.value) for kind in told),
        told.count(RequestClass.EFFECT.value),
        len(replaced & answered),
        tuple(find_command(store.events.all(find_first(store, run)))),
    )


def announce(name: str, crash: Crash, command: Sequence[str]) -> Iterator[str]:
    """Say what is going to happen, before it does."""
    run = crash.run
    asked = "" if run.id == name else f", which is the last run that resumed {name!r}"
    yield f"playhead: resumes {run.id!r}{asked}, whose {crash.failure}"
    effects = f", {crash.effects} of them effects" if crash.effects else ""
    yield f"  from the tape: {crash.answered} exchanges{effects}; nothing of them is sent again"
    yield ("  after that LIVE: requests are sent and recorded, and effects ARE EXECUTED")
    for one in crash.known.unknown[:_SHOWN]:
        yield f"  outcome unknown: {_show_unknown(one)}; it waits at a gate, see: playhead gates"
    if (more := len(crash.known.unknown) - _SHOWN) > 0:
        yield f"  … and {more} more effects without an outcome"
    if crash.replaced:
        yield (
            f"  placeholders: {crash.replaced} answers on the tape have some in the place of secrets; reads and effects that"
            " carry one are refused (docs/secrets.md#answers-as-they-came)"
        )
    yield from announce_command(command, crash.command)


def _show_unknown(one: UnknownEffect) -> str:
    key = "an idempotency key" if one.key is not None else "NO idempotency key"
    before = "".join(f"; before that, seq {other.seq} of {other.run}" for other in one.earlier)
    return f"{one_line(f'{one.method} {one.url}', WIDTH)} (seq {one.seq} of {one.run}, with {key}{before})"
