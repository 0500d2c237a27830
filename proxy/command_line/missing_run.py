"""Commands that run COMMAND again on a recording: without RUN they say that it is missing, and which there is."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ... import PlayheadError
from ...config import Config, load, override
from ...config.value_types import LATEST
from .command_words import TakesCommand, is_program

_DEFAULT_FILE = Path("playhead.yaml")
_COUNTS = {1: "no recording is named", 2: "two recordings are needed"}


class NeedsRun(TakesCommand):
    """A command of the form `NAME RUN -- COMMAND...`, or with two runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; where COMMAND is given and RUN is not, say so. Raises: UsageError."""
        if not ctx.resilient_parsing:
            self.require_words(ctx, args)
            at = args.index("--") if "--" in args else len(args)
            # Flags may take words, so their reader says which are left over.
            given, _, _ = self.make_parser(ctx).parse_args(list(args[:at]))
            if not given.get("like") and not given.get("help"):
                words, command = self._read_words(given), list(args[at + 1 :])
                known = self._count_runs(words, command, given)
                if known is not None:
                    flags = _leave_out(words, args[:at])
                    begun, typed = [*words[:known]], [*words[known:], *command]
                    raise click.UsageError(self._explain(given, begun, flags, typed), ctx)
        return super().parse_args(ctx, args)

    def _count_words_before(self, given: dict[str, Any]) -> int:
        """Count the runs; `--like` stands for one."""
        return 0 if given.get("like") else len(self._list_runs())

    def _is_command(self, word: str, given: dict[str, Any]) -> bool:
        """Say whether a word in the place of a run is a program; most names of runs are none, so few ask the store."""
        return is_program(word) and not _is_run(word, given)

    def _refuse(
        self, ctx: click.Context, before: Sequence[str], command: Sequence[str], option: str
    ) -> str:
        """Say that RUN is missing, or which option has no `--` before it."""
        given, _, _ = self.make_parser(ctx).parse_args(list(before))
        words = self._read_words(given)
        if len(words) < self._count_words_before(given):
            return self._explain(given, words, _leave_out(words, before), command)
        return super()._refuse(ctx, before, command, option)

    def _count_runs(
        self, words: list[str], command: list[str], given: dict[str, Any]
    ) -> int | None:
        """Count the runs before the first word of COMMAND, where some are missing; None where they are not."""
        wanted = len(self._list_runs())
        if command:
            return len(words) if len(words) < wanted else None
        for at, word in enumerate(words[:wanted]):
            if self._is_command(word, given):
                return at
        return None

    def _refuse_words(
        self, ctx: click.Context, args: Sequence[str], words: Sequence[str], *, is_split: bool
    ) -> str:
        """Say that the words belong to the name of a run, which has blanks; of others, that no word belongs there."""
        at = args.index("--") if is_split else len(args)
        given, _, _ = self.make_parser(ctx).parse_args(list(args[:at]))
        named = self._read_words(given)
        wanted = self._count_words_before(given)
        whole = find_name_of(named, given) if wanted else None
        if whole is None and not is_split:
            return ""
        flags = [] if not is_split else _leave_out(named, args[:at])
        command = args[at + 1 :]
        if whole is None:
            runs, told = (
                named[:wanted],
                f"{shlex.join(words)} stands before `--`, where no word belongs",
            )
            note = " (a name with blanks needs quotes)" if wanted else ""
        else:
            rest = named[len(whole.split(" ")) :]
            runs, told = [whole, *rest[: wanted - 1]], "the name of a run with blanks needs quotes"
            command = command or rest[wanted - 1 :]
            note = ""
        line = shlex.join(["playhead", str(self.name), *runs, *flags, "--", *command])
        return f"{told}; expected: {line}{note}"

    def _list_runs(self) -> list[str]:
        """List the arguments that are runs; the first of the words of `replay` is one."""
        arguments = [one for one in self.params if isinstance(one, click.Argument)]
        return [str(one.name) for one in arguments if one.name != "command"]

    def _read_words(self, given: dict[str, Any]) -> list[str]:
        """Give the words of a command line that are no flags, in their order."""
        words: list[str] = []
        for name in (*self._list_runs(), "command"):
            match given.get(name):
                case str(word):
                    words.append(word)
                case tuple(several):
                    words += map(str, several)
        return words

    def _explain(
        self,
        given: dict[str, Any],
        runs: Sequence[str],
        flags: Sequence[str],
        command: Sequence[str],
    ) -> str:
        names = self._list_runs()
        missing = ["RUN" if one == "words" else one.upper() for one in names][len(runs) :]
        words = [shlex.join(["playhead", str(self.name), *runs]), *missing, shlex.join(flags)]
        form = f"{' '.join(filter(None, words))} -- {shlex.join(command)}"
        text = f"{_COUNTS[len(names)]} before `--`; expected: {form}"
        try:
            newest = _find_newest(given.get("config_file"), given.get("store"))
        except PlayheadError:
            return f"{text}. `playhead runs` lists the recordings."
        if newest is None:
            return f"{text}. There is none yet: make one with `playhead record -- {shlex.join(command)}`."
        return (
            f"{text}. The newest recording is {newest!r} (`{LATEST}`); `playhead runs` lists all."
        )


def _leave_out(words: Sequence[str], args: Sequence[str]) -> list[str]:
    """Give the flags of a command line, with their values."""
    left, flags = list(words), list[str]()
    for one in reversed(args):
        if left and one == left[-1]:
            left.pop()
        else:
            flags.append(one)
    return flags[::-1]


def find_name_of(words: Sequence[str], given: Mapping[str, Any]) -> str | None:
    """Find the run whose name words on a command line are, which has blanks and was not quoted; None where there is none."""
    for count in range(len(words), 1, -1):
        if _is_run(name := " ".join(words[:count]), given, unreadable=False):
            return name
    return None


def _is_run(word: str, given: Mapping[str, Any], *, unreadable: bool = True) -> bool:
    """Say whether a word stands for a run; `unreadable` where the store cannot be read, of which the command complains."""
    from ...store.paths import LOG
    from ..operations.open_store import open_store
    from .run_names import complete_name

    try:
        config = _read_config(given.get("config_file"), given.get("store"))
        if not (config.store / LOG).exists():
            return False
        with open_store(config, readonly=True) as store:
            return store.runs.find(complete_name(store, word)) is not None
    except PlayheadError:
        return unreadable


def _read_config(config_file: str | Path | None, store: str | None) -> Config:
    """Read the configuration, as far as the store goes. Raises: ConfigError."""
    path = Path(config_file) if config_file else _DEFAULT_FILE
    config = load(path) if config_file or path.exists() else Config()
    return override(config, {"store": store} if store else {})


def _find_newest(config_file: str | None, store: str | None) -> str | None:
    """Give the name of the newest recording that has ended; None where there is none.

    Raises: ConfigError; StoreError, where the store cannot be read.
    """
    from ...store.paths import LOG
    from ..operations.open_store import open_store

    config = _read_config(config_file, store)
    if not (config.store / LOG).exists():
        return None
    with open_store(config, readonly=True) as opened:
        latest = opened.runs.find_latest()
    return None if latest is None else latest.id
