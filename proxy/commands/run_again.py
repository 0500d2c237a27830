"""Commands that run an agent again, or one call of it: branch, ask, resume."""

from decimal import Decimal
from functools import partial
from pathlib import Path

import click

from ...config.sections.faults import MOST
from ...config.values import parse_usd
from ..command_line.missing_run import NeedsRun
from .common import DEFAULT_FILE, options, run_argument, settings
from .record_replay import (
    begin_breaking,
    read_breaks,
    read_where,
    runs_again,
    runs_on,
)

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
    type=int,
    required=True,
    metavar="SEQ",
    help="The point: the exchange of RUN from which on it is another run.",
)
@click.option("--answer", type=_FILE, metavar="FILE", help="Answer that exchange with this body.")
@click.option("--edit", is_flag=True, help="The same, with the recorded answer in your editor.")
@click.option(
    "--system",
    type=_FILE,
    metavar="FILE",
    help="Another system prompt, there and from there on; needs --live inference.",
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
    help="From there on, what the tape does not hold of inference or read goes live, at these hosts or those of the tape.",
)
@click.option(
    "--route",
    "routes",
    metavar="MATCH=URL",
    multiple=True,
    help="Send what the tape does not hold of these requests to a sandbox; may be repeated.",
)
@click.option("--reason", metavar="TEXT", help="Why that may leave.")
@click.option(
    "--answers",
    type=_FILE,
    metavar="FILE",
    help="YAML of hypothetical answers to what the tape does not hold.",
)
@click.option("--cap", type=Usd(), metavar="USD", help="Most dollars for models, over all runs.")
@click.option(
    "--max-calls",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Most requests that leave, over all runs; by default twice what the tape has.",
)
@click.option(
    "--times", type=click.IntRange(1, 1000), default=1, metavar="K", help="Run it so often."
)
@click.option("--yes", is_flag=True, help="Do not ask before something leaves.")
@runs_again
@run_argument()
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
    """Run COMMAND against the tape of RUN up to an exchange, and from there on otherwise."""
    from ..run_again.declare import Asked

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
@click.option("--model", metavar="NAME", help="Ask this model instead of the recorded one.")
@click.option("--system", type=_FILE, metavar="FILE", help="Ask with this system prompt.")
@click.option("--edit", is_flag=True, help="Ask what you make of the call in your editor.")
@click.option("--key-env", metavar="NAME", help="Variable with the key of the provider.")
@click.option("--times", type=click.IntRange(1, 1000), default=1, metavar="K", help="Ask so often.")
@click.option("--cap", type=Usd(), metavar="USD", help="Most dollars, over all times.")
@click.option("--yes", is_flag=True, help="Do not ask you before something is sent.")
@run_argument()
@click.argument("seq", type=int)
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
    """Send a recorded model call again, without its agent, and show how the answers spread."""
    config, _ = settings(config_file, flags)
    from ..run_again.ask import Question
    from ..run_again.ask import ask as run_ask
    from ..run_again.branch import Caps, Repeat

    question = Question(seq, model, system, edit, key_env)
    return run_ask(config, run, question, Repeat(times, yes, Caps(cap)), as_json=as_json)


@click.command(cls=NeedsRun, short_help="Go on with a run that crashed; effects are executed.")
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
@run_argument()
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
    """Run COMMAND on the tape of RUN, which crashed, and on from there live: effects are executed."""
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
