"""Commands that run an agent again, or one call of it: branch, ask, resume."""

from decimal import Decimal
from functools import partial
from pathlib import Path

import click

from ...config.parse_values import parse_usd
from ...config.sections.faults import MOST
from ..command_line.missing_run import NeedsRun
from .record_replay import (
    begin_breaking,
    read_breaks,
    read_where,
    runs_again,
    runs_on,
)
from .shared_options_and_output import DEFAULT_FILE, SeqParam, options, run_argument, settings

_FILE = click.Path(path_type=Path)


class Usd(click.ParamType[Decimal]):
    """An amount of money above zero."""

    name = "USD"

    def convert(self, value: object, param: object, ctx: object) -> Decimal:
        """Read it."""
        try:
            return parse_usd(str(value))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None


@click.command(cls=NeedsRun, short_help="Run an agent again with one thing changed.")
@options(
    "config",
    "store",
    "ca_dir",
    "upstream_ca",
    "allow_model_drift",
    "determinism",
    "sleeps",
    "late",
    "json",
    "receipt",
    "quiet",
)
@click.option(
    "--at",
    type=SeqParam(),
    required=True,
    metavar="SEQ",
    help="The exchange of RUN at which the branch starts.",
)
@click.option("--answer", type=_FILE, metavar="FILE", help="Answer that exchange with this body.")
@click.option("--edit", is_flag=True, help="Edit the recorded answer in your editor.")
@click.option(
    "--system",
    type=_FILE,
    metavar="FILE",
    help="File with another system prompt from there on; needs --live inference.",
)
@click.option(
    "--request-change",
    type=_FILE,
    metavar="FILE",
    help="A JSON merge patch for that model call; needs --live inference.",
)
@click.option(
    "--live",
    metavar="CLASS[=HOST,...]",
    multiple=True,
    help="CLASS or CLASS=HOST,HOST: send requests of class inference or read that the tape lacks to these hosts, or those of the tape; repeatable.",
)
@click.option(
    "--route",
    "routes",
    metavar="MATCH=URL",
    multiple=True,
    help="MATCH=URL: send these requests, if the tape lacks them, to a sandbox; repeatable.",
)
@click.option("--reason", metavar="TEXT", help="Why they may leave.")
@click.option(
    "--answers",
    type=_FILE,
    metavar="FILE",
    help="YAML file of hypothetical answers to requests that the tape lacks.",
)
@click.option("--cap", type=Usd(), metavar="USD", help="Most dollars for models, over all runs.")
@click.option(
    "--max-calls",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Most requests that may leave, over all runs; default: twice as many as on the tape.",
)
@click.option(
    "--times", type=click.IntRange(1, 1000), default=1, metavar="K", help="Number of runs."
)
@click.option("--yes", is_flag=True, help="Do not ask before something leaves.")
@runs_again
@run_argument(plays=True)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def branch(
    config_file: Path | None,
    run: str,
    command: tuple[str, ...],
    at: int,
    answer: Path | None,
    edit: bool,
    system: Path | None,
    request_change: Path | None,
    live: tuple[str, ...],
    routes: tuple[str, ...],
    reason: str | None,
    answers: Path | None,
    cap: Decimal | None,
    max_calls: int | None,
    times: int,
    yes: bool,
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    breaks: tuple[str, ...],
    **flags: object,
) -> int:
    """Replay RUN up to an exchange, and continue differently."""
    from ..run_again.declare_branch import Asked

    asked = Asked(at, answer, edit, system, request_change, live, routes, answers, reason)
    try:
        asked.check()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    points = read_breaks(breaks)
    if points and times > 1:
        raise click.UsageError(
            "--break holds one run, in which somebody answers; leave out --times"
        )
    config, container_host = read_where(config_file, flags)
    from ..run.launcher import Output
    from ..run_again.branch import Caps, Repeat, require_command
    from ..run_again.branch import branch as run_branch

    require_command(config, run, command)
    return run_branch(
        config,
        run,
        command,
        Output(as_json, receipt_file, quiet),
        asked,
        Repeat(times, yes, Caps(cap, max_calls)),
        container_host,
        config_file=config_file or DEFAULT_FILE,
        begin_breaking=partial(begin_breaking, points),
    )


@click.command(short_help="Send one recorded model call again, without the agent.")
@options("config", "store", "ca_dir", "upstream_ca", "json")
@click.option("--model", metavar="NAME", help="Another model.")
@click.option("--system", type=_FILE, metavar="FILE", help="File with another system prompt.")
@click.option("--edit", is_flag=True, help="Edit the call in your editor.")
@click.option("--key-env", metavar="NAME", help="Variable with the key of the provider.")
@click.option(
    "--times", type=click.IntRange(1, 1000), default=1, metavar="K", help="Number of calls."
)
@click.option("--cap", type=Usd(), metavar="USD", help="Most dollars, over all calls.")
@click.option("--yes", is_flag=True, help="Do not ask before something is sent.")
@run_argument(plays=True)
@click.argument(
    "seq", type=SeqParam("`ask` sends a recorded model call again, and takes no question")
)
def ask(
    config_file: Path | None,
    run: str,
    seq: int,
    model: str | None,
    system: Path | None,
    edit: bool,
    key_env: str | None,
    times: int,
    cap: Decimal | None,
    yes: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Send a recorded model call again, without the agent, and show the spread of answers."""
    config, _ = settings(config_file, flags)
    from ..run_again.ask import Question
    from ..run_again.ask import ask as run_ask
    from ..run_again.branch import Caps, Repeat

    question = Question(seq, model, system, edit, key_env)
    return run_ask(config, run, question, Repeat(times, yes, Caps(cap)), as_json=as_json)


@click.command(cls=NeedsRun, short_help="Continue a crashed run; effects are executed.")
@options(
    "config",
    "store",
    "ca_dir",
    "upstream_ca",
    "allow_model_drift",
    "determinism",
    "json",
    "receipt",
    "quiet",
)
@click.option("--yes", is_flag=True, help="Do not ask before COMMAND runs.")
@runs_on
@run_argument(plays=None)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def resume(
    config_file: Path | None,
    run: str,
    command: tuple[str, ...],
    yes: bool,
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    **flags: object,
) -> int:
    """Replay RUN, which crashed or failed, and continue it live: effects are executed."""
    config, container_host = read_where(config_file, flags)
    from ..run.launcher import Output
    from ..run_again.resume import resume as run_resume

    return run_resume(
        config,
        run,
        command,
        Output(as_json, receipt_file, quiet),
        container_host,
        config_file=config_file or DEFAULT_FILE,
        yes=yes,
    )
