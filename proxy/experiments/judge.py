"""Say whether a run is good or bad: by the exit code of its command, by its label, or by a check of yours.

A check is a command that is run when a run has ended, outside of the sandbox, on this machine. It ends with 0 for a good run, with 125
for one that tells nothing, and with 1 to 124 for a bad one. It is run twice, as a check that says this once and that another time says
nothing. It is given in variables:

    PLAYHEAD_RUN      the run                        PLAYHEAD_STDOUT   a file with what its command wrote
    PLAYHEAD_STORE    the folder of the store        PLAYHEAD_RECEIPT  a file with its receipt, JSON
    PLAYHEAD_EXIT     the exit code of its command
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import click

from ...config import Config
from ...store import RunInfo, Store
from ...tape.records.events import EventKind
from ...tape.shell_words import shell_word
from ...tape.splicing.bisect_answers import Standing
from ...timeline.outcomes.outcome import Verdict, read_outcome
from ...timeline.receipts.command.command_end import find_child_exit
from ..errors import EngineError
from ..operations.open_store import open_store
from ..operations.retention import mark
from ..standard_streams import print_status
from .run_command_once import Ran
from .workers import SILENCE_S, Files, say_waiting

_UNTESTED, _LAST = 125, 124
_STANDINGS = {Verdict.OK: Standing.GOOD, Verdict.FAILED: Standing.BAD}
_SAYS = ("label", "agent")
"""What of an outcome somebody has said."""


class Judged(NamedTuple):
    """How a run stands, and why."""

    standing: Standing
    why: str


@dataclass(frozen=True, slots=True)
class Judge:
    """By what runs are judged."""

    by_label: bool = False
    check: tuple[str, ...] = ()
    """The words of a command; empty without one."""

    @property
    def text(self) -> str:
        """By what, in words."""
        if self.check:
            return f"the check {shlex.join(self.check)}"
        return "the label of a run" if self.by_label else "the exit code"

    def judge_recorded(self, store: Store, run: RunInfo) -> Judged:
        """Say how a recording stands; unknown where only a check can tell. Blocking. Raises: LogCorrupt."""
        if self.check:
            return Judged(Standing.UNKNOWN, "")
        if not self.by_label:
            code = find_child_exit(store.events.of_kind(run, EventKind.NOTED))
            if code is None:
                return Judged(Standing.UNKNOWN, "it is not known how its command ended")
            return _by_code(code)
        outcome = read_outcome(store, run)
        if outcome.by not in _SAYS:
            return Judged(
                Standing.UNKNOWN,
                f"it has no label: playhead label {shell_word(run.id)} good (or bad)",
            )
        standing = _STANDINGS.get(outcome.verdict, Standing.UNKNOWN)
        return Judged(standing, f"{outcome.by} {outcome.text!r}")

    def judge(self, config: Config, ran: Ran, files: Files, no_result: str) -> Judged:
        """Say how a run stands that has ended. Raises: EngineError, where the check cannot be run.

        no_result: why the run itself has no result; it is unknown then, and nothing is asked.
        """
        if no_result:
            return Judged(Standing.UNKNOWN, no_result)
        if self.check:
            return self._run_check(config, ran, files)
        if self.by_label:
            return _by_label(config, ran, files)
        if ran.child_exit is None:
            return Judged(Standing.UNKNOWN, "no command was run")
        return _by_code(ran.child_exit)

    def _run_check(self, config: Config, ran: Ran, files: Files) -> Judged:
        variables = {
            "PLAYHEAD_RUN": ran.run,
            "PLAYHEAD_STORE": str(config.store.absolute()),
            "PLAYHEAD_EXIT": "" if ran.child_exit is None else str(ran.child_exit),
            "PLAYHEAD_STDOUT": str(files.stdout),
            "PLAYHEAD_RECEIPT": str(files.receipt),
        }
        codes = {_run_check(self.check, variables) for _ in range(2)}
        if len(codes) > 1:
            return Judged(Standing.UNKNOWN, f"the check ended with {' and '.join(map(str, sorted(codes)))} on one run")  # fmt: skip
        (code,) = codes
        if code == _UNTESTED:
            return Judged(Standing.UNKNOWN, f"the check ended with {code}")
        if not 0 <= code <= _LAST:
            raise EngineError(
                f"the check {shlex.join(self.check)} ended with {code}",
                "it ends with 0 for a good run, 1 to 124 for a bad one, and 125 for an unknown one",
            )
        return Judged(Standing.BAD if code else Standing.GOOD, f"the check ended with {code}")


def make_judge(check: str | None, *, by_label: bool) -> Judge:
    """Give by what runs are judged. Raises: EngineError, saying what is wrong with the check."""
    if check is None:
        return Judge(by_label)
    if by_label:
        raise EngineError("--label and --check both judge; expected one of them", "nothing was run")
    try:
        words = tuple(shlex.split(check))
    except ValueError as error:
        raise EngineError(f"--check cannot be read: {error}", "nothing was run") from error
    if not words:
        raise EngineError("--check names no command", "nothing was run")
    if shutil.which(words[0]) is None:
        raise EngineError(
            f"the check {words[0]!r} cannot be started: there is no such program", "nothing was run"
        )
    return Judge(check=words)


def _run_check(words: tuple[str, ...], variables: Mapping[str, str]) -> int:
    since = time.monotonic()
    try:
        with subprocess.Popen(
            words, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=sys.stderr
        ) as process:
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(SILENCE_S)
                    print_status(say_waiting("the check", since))
            except BaseException:
                process.kill()
                raise
    except OSError as error:
        raise EngineError(f"the check {words[0]!r} cannot be started: {error}", "") from error


def _by_code(code: int) -> Judged:
    return Judged(Standing.BAD if code else Standing.GOOD, f"the command ended with {code}")


def _by_label(config: Config, ran: Ran, files: Files) -> Judged:
    """Take what the agent said of itself, or ask somebody, whose word becomes the label of the run."""
    with open_store(config, readonly=True) as store:
        outcome = read_outcome(store, store.runs.get(ran.run))
    if outcome.by in _SAYS and outcome.verdict in _STANDINGS:
        return Judged(_STANDINGS[outcome.verdict], f"{outcome.by} {outcome.text!r}")
    if sys.stdin is None or not sys.stdin.isatty():
        return Judged(Standing.UNKNOWN, "no --check and no terminal to ask at")  # fmt: skip
    click.echo(files.stdout.read_text("utf-8", "replace"), err=True)
    word = click.prompt(
        f"playhead: {ran.run!r} ended with {ran.child_exit}; how is it?",
        type=click.Choice(["good", "bad", "skip"]),
        err=True,
    )
    if word == "skip":
        return Judged(Standing.UNKNOWN, "skipped")
    mark(config, ran.run, add=(word,))
    return Judged(Standing.GOOD if word == "good" else Standing.BAD, f"label {word!r}")
