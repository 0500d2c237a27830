"""`playhead explore`."""

from decimal import Decimal
from pathlib import Path

import click

from ....config.parse_values import parse_duration
from ...command_line.missing_run import NeedsRun
from ..record_replay import read_where, runs_often
from ..shared_options_and_output import DEFAULT_FILE, options, run_argument
from .flags import ANEW, CHECK, spends

_KINDS = ("late", "slow", "cut", "throttle", "duplicate", "reorder")
_MOST = 1_000_000


@click.command(cls=NeedsRun, short_help="Run an agent with faults drawn from seeds.")
@options(
    *("config", "store", "ca_dir", "upstream_ca", "allow_model_drift", "determinism", "sleeps"),
    "json",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, _MOST),
    default=200,
    metavar="N",
    help="Try the seeds 1 to N; default 200.",
)
@click.option(
    "--fault",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Draw only late, slow, cut, throttle, duplicate or reorder; repeatable.",
)
@click.option("--late-by", default="10s", metavar="TIME", help="Delay of a late answer, as 10s.")
@click.option(
    "--schedule",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run the faults of this file instead.",
)
@click.option(
    "--parallel", type=click.IntRange(1, 64), metavar="N", help="Number of runs at the same time."
)
@CHECK
@ANEW
@spends
@runs_often
@run_argument(plays=True)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def explore(
    config_file: Path | None,
    run: str,
    command: tuple[str, ...],
    seeds: int,
    kinds: tuple[str, ...],
    late_by: str,
    schedule: Path | None,
    parallel: int | None,
    check: str | None,
    live: tuple[str, ...],
    reason: str | None,
    cap: Decimal | None,
    max_calls: int | None,
    yes: bool,
    anew: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Replay RUN with faults drawn from seeds, until COMMAND breaks a rule."""
    for kind in kinds:
        if kind not in _KINDS:
            raise click.UsageError(
                f"--fault: {kind[:40]!r} is none; expected one of {', '.join(_KINDS)}"
            )
    try:
        late_s = parse_duration(late_by)
    except ValueError as error:
        raise click.UsageError(f"--late-by: {error}") from None
    config, container_host = read_where(config_file, flags)
    from ....tape.schedules.scheduled_fault import FaultWord
    from ...experiments.explore import Wanted
    from ...experiments.explore import explore as run_explore
    from ...experiments.judge import make_judge
    from ...run_again.branch import Caps, require_command

    require_command(config, run, command)
    wanted = Wanted(
        run,
        seeds,
        make_judge(check, by_label=False),
        late_s,
        tuple(map(FaultWord, kinds)),
        schedule,
        live,
        reason,
        parallel,
        yes,
        caps=Caps(cap, max_calls),
        anew=anew,
    )
    return run_explore(
        config, wanted, command, container_host, config_file or DEFAULT_FILE, as_json=as_json
    )
