"""Shared by the commands: flags that override the file, the resulting settings, and printing of results."""

import functools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ... import PlayheadError
from ...config import Config, Watcher, load, override
from ...tape.shell_words import shell_word
from ..errors import CannotStart
from ..standard_streams import print_status

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..looking_back.step_and_time_arguments import StepName

_F = TypeVar("_F", bound=Callable[..., Any])

DEFAULT_FILE = Path("playhead.yaml")
_MISNAMED_FILES = tuple(
    Path(name)
    for name in ("playhead.yml", "Playhead.yaml", "Playhead.yml", ".playhead.yaml", ".playhead.yml")
)


def options(*names: str) -> Callable[[_F], _F]:
    """Give a command the flags that override keys of the file."""
    known = {
        "config": click.option(
            "-c",
            "--config",
            "config_file",
            type=click.Path(path_type=Path),
            help="Configuration file.",
        ),
        "store": click.option("--store", metavar="DIR", help="Folder of the store."),
        "ca_dir": click.option("--ca-dir", metavar="DIR", help="Folder of the CA's public files."),
        "upstream_ca": click.option(
            "--upstream-ca", metavar="FILE", help="Extra roots to trust upstream (PEM)."
        ),
        "mode": click.option("--mode", metavar="MODE", help="record, playback or passthrough."),
        "listen": click.option("--listen", metavar="HOST:PORT", help="Where to listen."),
        "run": click.option(
            "--run", metavar="ID", help="Name of the run; in playback, of the tape."
        ),
        "allow_model_drift": click.option(
            "--allow-model-drift",
            metavar="RECORDED=NEW",
            multiple=True,
            help="RECORDED=NEW: answer requests for model NEW with the answers of RECORDED; repeatable.",
        ),
        "determinism": click.option(
            "--determinism",
            metavar="LEVEL",
            help="Clock and randomness: off, seed or full.",
        ),
        "sleeps": click.option(
            "--sleeps",
            metavar="WORD",
            help="real, or short: on the recorded clock, a thousandth of the time.",
        ),
        "compare": click.option(
            "--compare",
            metavar="WORDS",
            help="stdout, files, or stdout,files: compared in addition to the exit code.",
        ),
        "late": click.option(
            "--late",
            metavar="WORD",
            help="held or served: answers for which the recorded client did not wait.",
        ),
        "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        "receipt": click.option(
            "--receipt",
            "receipt_file",
            type=click.Path(path_type=Path),
            help="Write the receipt's JSON here.",
        ),
        "quiet": click.option("-q", "--quiet", is_flag=True, help="Print no receipt."),
    }

    def decorate(function: _F) -> _F:
        for name in reversed(names):
            function = known[name](function)
        return function

    return decorate


class StepParam(click.ParamType["StepName"]):
    """A step of a run: SEQ, or SEQ.PART of a WebSocket."""

    name = "seq"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "StepName":
        """Read it; a run need not have it."""
        from ..looking_back.step_and_time_arguments import parse_step

        try:
            return parse_step(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(_explain_step(str(value), error, ctx), param, ctx)


class SeqParam(click.ParamType[int]):
    """A step of a run of which all is meant: SEQ."""

    name = "seq"

    def __init__(self, purpose: str = "") -> None:
        """Take a SEQ.

        purpose: said of a text of several words: what the command does with a SEQ.
        """
        self._purpose = purpose

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it; a run need not have it."""
        from ..looking_back.step_and_time_arguments import parse_seq

        try:
            return parse_seq(value) if isinstance(value, str) else int(value)
        except ValueError as error:
            told = _explain_step(str(value), error, ctx)
            purpose = self._purpose if " " in str(value) else ""
            self.fail(f"{told}{purpose and f'. {purpose}'}", param, ctx)


def _explain_step(text: str, error: ValueError, ctx: click.Context | None) -> str:
    """Say what is wrong with a step, and what lists those of the run; or that the text belongs to the name of the run."""
    from ..command_line.missing_run import find_name_of

    given = ctx.params if ctx is not None else {}
    run = given.get("run")
    if run and (whole := find_name_of((run, text), given)):
        return f"{text!r} belongs to the name of the run, which needs quotes: {shell_word(whole)}"
    shown = "RUN" if not run or text[:1] == "-" else shell_word(run)
    return f"{error}; `playhead show {shown}` lists them"


class RunName(click.ParamType[str]):
    """A name of a run, its beginning, or `latest`; shells complete it from the store."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """List the names that begin so; none where there is no store to read."""
        from click.shell_completion import CompletionItem

        from ..command_line.run_names import list_names

        try:
            config = reading(ctx.params.get("config_file"), ctx.params.get("store"))
            return [CompletionItem(one) for one in list_names(config, incomplete)]
        except PlayheadError:
            return []


def run_argument(
    name: str = "run",
    *,
    unless: str | None = None,
    plays: bool | None = False,
    **attributes: Any,
) -> Callable[[_F], _F]:
    """Give a command an argument that is the name of a run; it is called with the whole name.

    Where several were recorded under the name, it is said on stderr which of them is meant.
    unless: a flag with which the name has to be whole.
    plays: whether the newest recording of the name is played, rather than the run itself looked at; None for a command that has to do
        with runs that have not ended well, of which nothing is said.
    attributes: of `click.argument`.
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            if unless is None or not given[unless]:
                given[name] = _complete(given[name], given, plays)
            return function(**given)

        return click.argument(name, type=RunName(), **attributes)(called)  # type: ignore[return-value]  # as `click.argument` does

    return decorate


def _complete(given: Any, flags: dict[str, Any], plays: bool | None) -> Any:
    """Give the whole names of one run or of several; of what is given. Raises: StoreError, where one is ambiguous."""
    if not given:
        return given
    names = (given,) if isinstance(given, str) else given
    if plays is None:
        names = complete_names(names, flags["config_file"], flags.get("store"))
    else:
        names = _find_meant(names, flags, plays=plays)
    return names[0] if isinstance(given, str) else names


def _find_meant(names: Iterable[str], flags: dict[str, Any], *, plays: bool) -> tuple[str, ...]:
    """Give the whole names of runs, and say which are meant where a name has several recordings."""
    from ..command_line.run_names import find_meant

    config = reading(flags["config_file"], flags.get("store"))
    beside = {
        word
        for given in flags.values()
        for word in (given if isinstance(given, tuple) else (given,))
        if isinstance(word, str)
    }
    found = [find_meant(config, name, plays=plays, beside=beside) for name in names]
    for told in dict.fromkeys(text for _, text in found if text):
        print_status(told)
    return tuple(name for name, _ in found)


def complete_names(
    names: Iterable[str], config_file: Path | None, store: str | None
) -> tuple[str, ...]:
    """Give the whole names of runs. Raises: StoreError, where one is the beginning of several; ConfigError."""
    from ..command_line.run_names import complete_configured_name

    config = reading(config_file, store)
    return tuple(complete_configured_name(config, name) for name in names)


def settings(config_file: Path | None, flags: dict[str, object]) -> tuple[Config, Watcher | None]:
    """Give the settings under which something is started, and what watches their file, where there is one.

    Raises: ConfigError; PlayheadError where the working folder is gone.
    """
    _require_own_folder("nothing can be started there")
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    path = config_file or _find_file()
    if path is None:
        return _with_store(override(Config(), given)), None
    watcher, config = Watcher.start(path, given)
    return _with_store(config), watcher


def reading(config_file: Path | None, store: str | None) -> Config:
    """Give the settings of a command that only reads a store. Raises: ConfigError; PlayheadError, where no store can be there."""
    path = config_file or _find_file()
    config = load(path) if path is not None else Config()
    config = override(config, {"store": store} if store else {})
    if not config.store.is_absolute():
        _require_own_folder(f"no store is at {config.store}")
    return _with_store(config)


def _find_file() -> Path | None:
    """Find the configuration of the working folder. Raises: PlayheadError, where one has a name that is not read."""
    if DEFAULT_FILE.exists():
        return DEFAULT_FILE
    misnamed = next((one for one in _MISNAMED_FILES if one.exists()), None)
    if misnamed is not None:
        raise PlayheadError(
            f"{misnamed} is not read: the configuration is called {DEFAULT_FILE}",
            f"rename it, or name it: -c {misnamed}",
        )
    return None


def _require_own_folder(otherwise: str) -> None:
    """Raise PlayheadError where the working folder is gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise PlayheadError(
            f"the folder that you are in was removed, so {otherwise}",
            "change to a folder that exists",
        ) from None


def _with_store(config: Config) -> Config:
    """Give a configuration whose store is a folder, or is about to be one. Raises: PlayheadError."""
    there = next((one for one in (config.store, *config.store.parents) if one.exists()), None)
    if there is not None and not there.is_dir():
        raise PlayheadError(
            f"the store cannot be at {str(config.store)!r}: {str(there)!r} is a file; expected a folder",
            "name a folder with --store, or as `store` in the configuration",
        )
    return config


def parse_since_option(text: str | None) -> int:
    """Read `--since` as nanoseconds since the epoch; 0 where it is not given.

    Raises: UsageError, saying what would be right.
    """
    from ..looking_back.step_and_time_arguments import read_since

    try:
        return read_since(text)
    except ValueError as error:
        raise click.UsageError(f"--since: {error}") from None


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True))


def print_list(rows: Iterable[Any]) -> None:
    """Print a list of JSON, a row as soon as it is there."""
    empty = True
    for row in rows:
        click.echo("[" if empty else ",")
        click.echo(json.dumps(row, indent=1, ensure_ascii=True), nl=False)
        empty = False
    click.echo("[]" if empty else "\n]")


def complain(error: PlayheadError) -> None:
    """Say on stderr what went wrong, and what to do."""
    print_status(f"playhead: {error}")
    if error.hint:
        print_status(f"  hint: {error.hint}")
    if isinstance(error, CannotStart) and not _is_separated(error.command, sys.argv[1:]):
        word = next((word for word in sys.argv[1:] if not word.startswith("-")), "record")
        print_status(
            f"  hint: the command is what comes after --, as in: playhead {word} ... -- python agent.py"
        )


def _is_separated(command: Sequence[str], words: Sequence[str]) -> bool:
    """Say whether a command was given behind `--`, whole; without that a mistyped option, or a name, is the program."""
    return "--" in words and tuple(words[words.index("--") + 1 :]) == tuple(command)
