"""Runs that are noted as they begin and as they end, so that a later call does what is left, and counts what they have used.

A sweep has a file of its own for that. What has none, a bisection or an exploration, notes in the store the runs of which something
may leave, under a name made of the words that decide what they do: the same call goes on there, and another one does not find them. Of
runs that depended on something else than the present ones (`inputs.py`), as an agent that was edited since, only what they have used
counts. Such notes hold numbers and hashes alone, and are gone once the call has come to its end.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ....config import Config
from ....store import RunInfo
from ....store.paths import EXPERIMENTS
from ....tape.counted import counted
from ....tape.splicing.bisect_answers import Standing
from ...errors import EngineError
from ...operations.open_store import open_store
from ...run_again.branch import Caps, Spent, confirm
from ...standard_streams import print_status
from ..run_command_once import Ran, read_done
from ..workers import Done, Files, Work
from .inputs import Inputs, hash_parts
from .progress_journal import SUFFIX, Journal
from .usage_of_stopped_runs import describe_start, find_used

_GOES_ON = "the same command goes on from here, and with --anew it begins again"
_BEGINS = "nothing was to leave, so that no run was noted: the same command begins again"
UNFINISHED = "unfinished"
"""What is noted of a run that a cap or somebody has ended: what it used counts, and it is run again."""


def read_row(row: Mapping[str, Any]) -> Ran:
    """Read a run that was noted."""
    nowhere = Files(Path(), Path(), Path())
    return read_done(Done(0, {**row, "refused": (), "stubbed": 0, "limited": False}, nowhere))


def describe_run(ran: Ran) -> dict[str, Any]:
    """Give what `read_row` reads."""
    return {
        "run": ran.run,
        "code": ran.code,
        "child_exit": ran.child_exit,
        "calls": ran.calls,
        "usd": f"{ran.usd:f}",
        "unpriced": ran.unpriced,
        "at_least": ran.at_least,
        "billed": ran.billed,
        "estimated": f"{ran.estimated:f}",
    }


def note_and_run(
    work: Work, config: Config, journal: Journal, told: dict[str, Any], part: Caps, files: Files
) -> dict[str, Any]:
    """Note in the journal that a run begins, and make it; in the process of the run. Raises: PlayheadError."""
    with open_store(config, readonly=True) as store:
        start = describe_start(store, os.getpid(), part)
    journal.begin({**told, **start})
    return work(files)


def settle(
    config: Config,
    journal: Journal,
    name: Callable[[RunInfo], str | int] = lambda run: run.id,
) -> None:
    """Note what the runs have used that an earlier call began, and that have no result.

    name: gives what the journal calls a run.
    """
    if not journal.stopped:
        return
    with open_store(config, readonly=True) as store:
        runs = {run.id: name(run) for run in store.runs.all()}
        for begun in journal.stopped:
            noted = {row["run"] for row in journal.rows}
            used = find_used(store, begun, {run for run, told in runs.items() if told in noted})
            spent = Spent()
            read_row({"code": 0, "child_exit": None, **used}).add_to(spent)
            print_status(f"playhead: a run of {begun['variant']!r}, {used['run'] or 'not in the store'}: {used['why']}; {spent.show(used['usd'])}")  # fmt: skip
            told = {key: begun[key] for key in ("begun", "variant", "key")}
            ended = {"standing": UNFINISHED, "code": 0, "child_exit": None}
            journal.add({**told, **ended, **used, "run": runs.get(used["run"])})


class Noted(NamedTuple):
    """A run of an earlier call."""

    ran: Ran
    standing: Standing


class NotedRuns:
    """The runs of one bisection or exploration, with those of earlier calls that did not come to their end. Use as a context manager."""

    def __init__(
        self, config: Config, verb: str, parts: Iterable[object], inputs: Inputs, *, anew: bool
    ) -> None:
        """Go on with what was done for the same parts, with the same inputs.

        parts: the words that decide what the runs do.
        anew: leave out what was done.
        """
        self._config = config
        self._path = config.store / EXPERIMENTS / f"{verb}-{hash_parts(*parts)}{SUFFIX}"
        self._verb, self._anew, self._inputs = verb, anew, inputs
        self._journal = Journal(self._path, f"another {verb} of the same runs goes on", "wait for it")  # fmt: skip
        self._earlier: list[tuple[str, Noted]] = []
        self._left: list[Mapping[str, Any]] = []
        """Runs that depended on something else."""
        self._begun: dict[int, int] = {}
        self._is_done = False

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EngineError(
                f"{self._path.parent} cannot be made: {error.strerror}", "runs are noted there"
            ) from error
        self._journal.__enter__()
        if self._anew:
            self._journal.clear()
        settle(self._config, self._journal, lambda run: run.number)
        self._journal.depend(self._inputs)
        if self._journal.rows:
            self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_done:
            self._journal.clear()
        self._journal.__exit__(kind, error, trace)

    def _read(self) -> None:
        with open_store(self._config, readonly=True) as store:
            names = {run.number: run.id for run in store.runs.all()}
        for row in self._journal.rows:
            name = names.get(row["run"])
            # One that is gone is made again: nobody could look at it any more.
            if name is None or row["standing"] == UNFINISHED:
                continue
            if not self._journal.counts(row):
                self._left.append(row)
            else:
                noted = Noted(read_row({**row, "run": name}), Standing(row["standing"]))
                self._earlier.append((row["key"], noted))

    @property
    def spent(self) -> Spent:
        """What earlier calls have used."""
        spent = Spent()
        for row in self._journal.rows:
            read_row(row).add_to(spent)
        return spent

    def announce(self) -> Iterator[str]:
        """Say that it goes on, and from where."""
        if not self._journal.rows:
            return
        spent, count = self.spent, len(self._earlier)
        runs = f"{counted(count, 'run')} of it {'are' if count != 1 else 'is'} not made again"
        used = f"it has used {spent.show()}"
        yield f"  goes on with an earlier call that did not come to its end: {runs}, and {used}; --anew begins again"
        yield from self._journal.say_left(self._left)

    def find(self, key: str) -> list[Noted]:
        """List those of a key."""
        hashed = hash_parts(key)
        return [noted for known, noted in self._earlier if known == hashed]

    def note(self, name: int, key: str, part: Caps, work: Work) -> Work:
        """Have a run be noted as it begins.

        part: what it reserves of the caps.
        """
        begun = self._begun[name] = self._journal.number()
        told = {"begun": begun, "variant": self._verb, "key": hash_parts(key)}
        return partial(note_and_run, work, self._config, self._journal, told, part)

    def end(self, name: int, key: str, ran: Ran, standing: Standing) -> None:
        """Note that one has ended; one that a cap has ended is to be made again."""
        with open_store(self._config, readonly=True) as store:
            number = store.runs.get(ran.run).number
        told = {"begun": self._begun.pop(name), "variant": self._verb, "key": hash_parts(key)}
        said = {"standing": UNFINISHED if ran.limited else standing.value}
        self._journal.add({**told, **said, **describe_run(ran), "run": number})

    def finish(self) -> None:
        """Forget all of it: the call has come to its end."""
        self._is_done = True


@contextlib.contextmanager
def begin_noted(
    notes: NotedRuns | None, lines: Iterable[str], *, yes: bool
) -> Iterator[NotedRuns | None]:
    """Go on with what is noted, say what is going to happen, and ask.

    notes: None where nothing leaves; then nothing is asked.
    lines: what is said.
    yes: do not ask.
    """
    with contextlib.ExitStack() as stack:
        noted = stack.enter_context(notes) if notes is not None else None
        for line in lines:
            print_status(line)
        for line in noted.announce() if noted is not None else ():
            print_status(line)
        if noted is not None and not yes:
            confirm()
        try:
            yield noted
        except KeyboardInterrupt:
            print_status(f"playhead: interrupted; {_BEGINS if noted is None else _GOES_ON}")
            raise
