"""`playhead bisect`."""

from decimal import Decimal
from pathlib import Path

import click

from ...command_line.missing_run import NeedsRun
from ..record_replay import read_where, runs_often
from ..shared_options_and_output import DEFAULT_FILE, options, run_argument
from .flags import ANEW, CHECK, spends


@click.command(cls=NeedsRun, short_help="Name the answer that turns a run bad.")
@options(
    *("config", "store", "ca_dir", "upstream_ca", "allow_model_drift", "determinism", "sleeps"),
    *("late", "json"),
)
@click.option(
    "--label", "by_label", is_flag=True, help="Judge runs by their labels, not by the exit code."
)
@CHECK
@click.option(
    "--times",
    type=click.IntRange(1, 1000),
    metavar="K",
    help="Runs per mix; default 1, or as many as needed if something is live.",
)
@ANEW
@spends
@runs_often
@run_argument(plays=True)
@run_argument("good", plays=True)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def bisect(
    config_file: Path | None,
    run: str,
    good: str,
    command: tuple[str, ...],
    by_label: bool,
    check: str | None,
    times: int | None,
    live: tuple[str, ...],
    reason: str | None,
    cap: Decimal | None,
    max_calls: int | None,
    yes: bool,
    anew: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Name the answer that turns RUN bad, by mixing in answers of GOOD."""
    config, container_host = read_where(config_file, flags)
    from ...experiments.bisect import Wanted
    from ...experiments.bisect import bisect as run_bisect
    from ...experiments.judge import make_judge
    from ...run_again.branch import Caps, require_command

    require_command(config, run, command)
    judge = make_judge(check, by_label=by_label)
    wanted = Wanted(run, good, judge, live, reason, times, yes, Caps(cap, max_calls), anew)
    return run_bisect(
        config,
        wanted,
        command,
        container_host,
        config_file or DEFAULT_FILE,
        as_json=as_json,
    )
