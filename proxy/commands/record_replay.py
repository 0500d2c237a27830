"""Commands that start or end a run: serve, record, replay, demo, seal."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ... import PlayheadError
from ...config import Config, Mode, Sandbox, override, parse_new_run_name
from ...tape.exit_codes import ExitCode
from ..capture import KINDS
from ..command_line.command_words import TakesCommand
from ..command_line.missing_run import NeedsRun
from ..standard_streams import print_status
from .shared_options_and_output import (
    DEFAULT_FILE,
    RunName,
    complain,
    options,
    reading,
    run_argument,
    settings,
)

if TYPE_CHECKING:
    from ...tape.policy.breakpoints import Breakpoint
    from ..capture.prefork import Prefork
    from ..docker.sandbox import DockerPlace
    from ..run.early import Early
    from ..run.launcher import Breaking

_OUTSIDE = ("auto", "notify", "none")
"""Words of `sandbox.record` for which there is no sandbox."""
_SANDBOX_FILES = click.option(
    "--sandbox-files",
    flag_value="true",
    default=None,
    help="In the sandbox, show only the working folder and the system (bubblewrap).",
)


def read_breaks(texts: tuple[str, ...]) -> "tuple[Breakpoint, ...]":
    """Read breakpoints. Raises: UsageError."""
    from ...tape.policy.breakpoints import parse_breakpoint

    try:
        return tuple(map(parse_breakpoint, texts))
    except ValueError as error:
        raise click.UsageError(f"--break: {error}") from None


_SAVE_FILES = click.option(
    "--save-files",
    flag_value="true",
    default=None,
    help="Save the contents of the working folder for replays.",
)
_TRANSACTION = click.option(
    "--transaction",
    flag_value="true",
    default=None,
    help="Make a savepoint of the working folder before each effect (playhead files).",
)


@click.command(short_help="Run the long-running proxy; the file switches its mode.")
@options(
    *("config", "mode", "listen", "store", "run", "ca_dir", "upstream_ca", "allow_model_drift"),
    "late",
)
def serve(config_file: Path | None, **flags: object) -> int:
    """Run the long-running proxy; edit the file to switch its mode."""
    config, watcher = settings(config_file, flags)
    if config.mode is Mode.PLAYBACK and flags.get("run") is not None:
        _restore_tape(config, str(flags["run"]))
    from ..run.serve import serve as run_serve

    return run_serve(config, watcher)


def _in_docker[F: Callable[..., Any]](function: F) -> F:
    """Give a command the flags of --sandbox docker."""
    for option in (
        click.option(
            "--volume",
            "volumes",
            metavar="HOST:THERE[:ro]",
            multiple=True,
            help="A folder for the container, as for docker run; repeatable.",
        ),
        click.option(
            "--env",
            "variables",
            metavar="NAME[=VALUE]",
            multiple=True,
            help="A variable for the container; repeatable.",
        ),
        click.option(
            "--image",
            metavar="IMAGE",
            help="With --sandbox docker: the image in which COMMAND runs.",
        ),
    ):
        function = option(function)
    return function


def runs_again[F: Callable[..., Any]](function: F) -> F:
    """Give a command the flags of where COMMAND runs again, on what, and where it is held."""
    held = click.option(
        "--break",
        "breaks",
        metavar="POINT",
        multiple=True,
        help="Hold COMMAND at a seq of the tape, effect, divergence or a match pattern; repeatable.",
    )
    return runs_on(held(function))


def runs_on[F: Callable[..., Any]](function: F) -> F:
    """Give a command the flags of where COMMAND runs again, on what, and what becomes of that."""
    keeps = click.option(
        "--keep-writes",
        flag_value="true",
        default=None,
        help="When COMMAND ends, put its writes into the working folder.",
    )
    return runs_often(keeps(function))


def runs_often[F: Callable[..., Any]](function: F) -> F:
    """Give a command the flags of where COMMAND runs again, and on what."""
    for option in (
        click.option("--in-place", is_flag=True, help="Same as --files in-place."),
        click.option(
            "--files",
            metavar="WORD",
            help="Folder in which COMMAND works: auto (the default), overlay, copy or in-place.",
        ),
        _in_docker,
        click.option(
            "--no-sandbox",
            is_flag=True,
            help="Same as --sandbox none.",
        ),
        _SANDBOX_FILES,
        click.option(
            "--sandbox",
            metavar="WORD",
            help="contained (the default), strict (no Unix sockets either), none, or docker.",
        ),
    ):
        function = option(function)
    return function


def read_where(
    config_file: Path | None, flags: dict[str, Any]
) -> "tuple[Config, DockerPlace | None]":
    """Read the configuration, and what is wanted of Docker; None where COMMAND is run on this machine.

    flags: those of a command, of which what `runs_often` gave goes; the others stand for keys of the configuration.
    """
    no_sandbox, in_place = flags.pop("no_sandbox"), flags.pop("in_place")
    image, variables, volumes = (flags.pop(name) for name in ("image", "variables", "volumes"))
    flags["sandbox"] = "none" if no_sandbox else flags["sandbox"]
    if in_place:
        flags["files"] = "in-place"
    config, _ = settings(config_file, flags)
    where = config.sandbox.replay
    return config, find_container_host(config.sandbox, where, image, variables, volumes)


def find_container_host(
    sandbox: Sandbox,
    where: str,
    image: str | None,
    variables: tuple[str, ...],
    volumes: tuple[str, ...],
) -> "DockerPlace | None":
    """Read what is wanted of Docker; None where COMMAND is run on this machine."""
    if where != "docker":
        if image or variables or volumes:
            raise click.UsageError("--image, --env and --volume go with --sandbox docker")
        return None
    image = image or sandbox.image
    if image is None:
        raise click.UsageError(
            "--sandbox docker needs --image, the image of the agent (or `sandbox.image` in the configuration)"
        )
    from ..docker.sandbox import DockerPlace, Wanted

    return DockerPlace(Wanted(image, variables, volumes))


@click.command(
    cls=TakesCommand, short_help="Run a command through a proxy, and record its traffic."
)
@options(
    "config", "store", "run", "ca_dir", "upstream_ca", "determinism", "json", "receipt", "quiet"
)
@click.option(
    "--capture",
    is_flag=True,
    help="Run the command in a sandbox, and record clients that ignore the proxy, too.",
)
@click.option(
    "--sandbox",
    metavar="WORD",
    help="none (the default), auto, notify, contained, strict or docker.",
)
@click.option(
    "--replace", "replaces", is_flag=True, help="Delete the recording of that name first."
)
@click.option(
    "--strict",
    flag_value="true",
    default=None,
    help="Exit with 2 if the receipt says NOT RECORDED.",
)
@_in_docker
@_SANDBOX_FILES
@_SAVE_FILES
@_TRANSACTION
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    config_file: Path | None,
    command: tuple[str, ...],
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    capture: bool,
    replaces: bool,
    sandbox: str | None,
    image: str | None,
    variables: tuple[str, ...],
    volumes: tuple[str, ...],
    **flags: object,
) -> int:
    """Run COMMAND through a proxy, and record its traffic."""
    config, _ = settings(config_file, {**flags, "capture": sandbox})
    named = config.runs.default
    try:
        parse_new_run_name(named)
    except ValueError as error:  # where the configuration is of another mode
        raise click.UsageError(f"--run: {error}") from None
    if replaces and named == "per-process":
        raise click.UsageError("--replace needs --run: the name of the recording to replace")
    if capture and config.sandbox.record in _OUTSIDE:
        config = override(config, {"capture": "contained"})
    container_host = find_container_host(
        config.sandbox, config.sandbox.record, image, variables, volumes
    )
    with (
        _preforked(config.sandbox.record) as prefork,
        _begun(config.sandbox.record, config, command) as early,
    ):
        from ..run.launcher import Output
        from ..run.launcher import record as run_record
        from ..run.runtime import default_run_name

        run = named if named != "per-process" else default_run_name(command[0])
        if named == "per-process" and any(word.partition("=")[0] == "--run" for word in command):
            print_status(
                f"playhead: `--run` behind `--` went to the command, and this run is called {run!r};"
                " to name it: playhead record --run NAME -- COMMAND"
            )
        output = Output(as_json, receipt_file, quiet)
        where = config_file or DEFAULT_FILE
        return run_record(
            config,
            run,
            command,
            output,
            container_host,
            config_file=where,
            early=early,
            prefork=prefork,
            replaces=replaces,
        )


@click.command(cls=NeedsRun, short_help="Run it again, with every answer from the recording.")
@options(
    "config",
    "store",
    "ca_dir",
    "upstream_ca",
    "allow_model_drift",
    "determinism",
    "sleeps",
    "late",
    "compare",
    "json",
    "receipt",
    "quiet",
)
@runs_again
@click.option(
    "--like",
    is_flag=True,
    help="Instead of RUN: the newest recording of the same task that ended well.",
)
@click.argument("words", metavar="RUN -- COMMAND...", nargs=-1, type=RunName())
def replay(
    config_file: Path | None,
    words: tuple[str, ...],
    like: bool,
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    breaks: tuple[str, ...],
    **flags: object,
) -> int:
    """Run COMMAND again, answered from the tape of RUN (or `latest`)."""
    named, command = words[: 0 if like else 1], words[0 if like else 1 :]
    if not like and not named:
        raise click.UsageError("Missing argument 'RUN': name a recording, or give --like")
    if not command:
        raise click.UsageError("Missing argument '-- COMMAND...'.")
    points = read_breaks(breaks)
    if points and like:
        raise click.UsageError("--break holds the replay of a RUN that is named; leave out --like")
    try:
        config, container_host = read_where(config_file, flags)
        if named:
            from ..command_line.run_names import complete_configured_name

            named = (complete_configured_name(config, named[0]),)
            _restore_tape(config, named[0])  # before a mistyped store is made
        breaking = begin_breaking(points)
        with _begun(config.sandbox.replay if named else "none", config, command) as early:
            from ..run.launcher import Output, replay_like
            from ..run.launcher import replay as run_replay

            output = Output(as_json, receipt_file, quiet)
            file = config_file or DEFAULT_FILE
            if named:
                return run_replay(
                    config,
                    named[0],
                    command,
                    output,
                    container_host,
                    config_file=file,
                    early=early,
                    breaking=breaking,
                )
        return replay_like(config, command, output, container_host, config_file=file)
    except PlayheadError as error:
        complain(error)
        return ExitCode.UNTESTABLE


def begin_breaking(points: "tuple[Breakpoint, ...]") -> "Breaking | None":
    """Take standard input for the prompt at breakpoints, before anything is started; None without any."""
    if not points:
        return None
    from ..run.break_prompt import take_stdin
    from ..run.launcher import Breaking

    return Breaking(points, take_stdin())


@contextlib.contextmanager
def _preforked(kind: str) -> "Iterator[Prefork | None]":
    """Have made, before the rest is imported, the processes that the capture of a recording needs."""
    if kind not in KINDS:
        yield None
        return
    from ..capture.prefork import prefork

    with contextlib.ExitStack() as stack:
        made = prefork(kind)
        if made is not None:
            stack.callback(made.close)
        yield made


@contextlib.contextmanager
def _begun(kind: str, config: Config, command: tuple[str, ...]) -> "Iterator[Early | None]":
    """Have begun, before the rest is imported, what a sandbox of this kind needs."""
    if kind not in ("contained", "strict"):
        yield None
        return
    from ..run.early import Early

    with contextlib.ExitStack() as stack:
        try:
            early = Early(config, command)
        except (PlayheadError, OSError):  # it is begun later, and says what is wrong then
            early = None
        if early is not None:
            stack.callback(early.close)
        yield early


def _restore_tape(config: Config, run: str) -> None:
    """Have the tape in the store that is to be played; raises UnknownRun, with the nearest names."""
    from ...store.paths import LOG
    from ..operations.restore_archived import restore_tape

    if run != "latest" or (config.store / LOG).exists():
        restore_tape(config, run)


@click.command(cls=TakesCommand, short_help="Record or play an MCP server that talks over pipes.")
@click.option("--name", metavar="TEXT", help="Name of the server; by default made of its command.")
@click.argument("server", metavar="-- SERVER...", nargs=-1, required=True, type=click.UNPROCESSED)
def stdio(name: str | None, server: tuple[str, ...]) -> int:
    """Record or play an MCP server on standard input and output."""
    from ..stdio.run import run_stdio

    return run_stdio(server, name)


@click.command(short_help="End a run.")
@options("config", "store")
@run_argument(plays=None)
def seal(config_file: Path | None, store: str | None, run: str) -> int:
    """End a run."""
    from ..operations.end_run import seal_run

    click.echo(seal_run(reading(config_file, store), run))
    return 0


@click.command(short_help="Refuse all further requests of a run.")
@options("config", "store")
@click.option("--reason", metavar="TEXT", default="", help="Why; for the log and the agent.")
@run_argument(plays=None)
def stop(config_file: Path | None, store: str | None, reason: str, run: str) -> int:
    """Refuse all further requests of a run, and abort those in flight."""
    from ..control.client import stop_run

    click.echo(stop_run(reading(config_file, store), run, reason))
    return 0


@click.command(short_help="Watch an agent refund twice, be replayed and be fixed.")
@click.option("--store", type=click.Path(path_type=Path), help="Keep the tapes in this store.")
@click.option("--keep", is_flag=True, help="Keep the temporary store.")
def demo(store: Path | None, keep: bool) -> int:
    """Record an agent that refunds twice, replay it offline, then replay its fix."""
    from .demo import run_demo

    return run_demo(store, keep=keep)
