"""`playhead sweep`."""

from pathlib import Path

import click

from ...command_line.command_words import TakesCommand
from ..record_replay import read_where, runs_often
from ..shared_options_and_output import DEFAULT_FILE, options


@click.command(cls=TakesCommand, short_help="Run variants of one exchange, and count how they end.")
@options(
    *("config", "store", "ca_dir", "upstream_ca", "allow_model_drift", "determinism", "sleeps"),
    *("late", "json"),
)
@click.option(
    "--parallel", type=click.IntRange(1, 64), metavar="N", help="Number of runs at the same time."
)
@click.option("--yes", is_flag=True, help="Do not ask before something leaves.")
@runs_often
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def sweep(
    config_file: Path | None,
    file: Path,
    command: tuple[str, ...],
    parallel: int | None,
    yes: bool,
    as_json: bool,
    **flags: object,
) -> int:
    """Run the variants of FILE several times each, and count how they end; repeat it to continue."""
    config, container_host = read_where(config_file, flags)
    from ...experiments.sweep import sweep as run_sweep

    return run_sweep(
        config,
        file,
        command,
        container_host,
        config_file or DEFAULT_FILE,
        parallel=parallel,
        yes=yes,
        as_json=as_json,
    )
