"""Look back at a run: its steps, the state of its agents, and what came before an effect."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared_options_and_output import StepParam, options, reading, run_argument

if TYPE_CHECKING:
    from ..looking_back.step_and_time_arguments import StepName


@click.command(short_help="Show the steps of a run, or one exchange of it.")
@options("config", "store", "json")
@click.option("--raw", is_flag=True, help="A row for each request; with SEQ, every byte.")
@click.option(
    "--all", "everything", is_flag=True, help="Every step, with thoughts and tool results."
)
@click.option("--grep", metavar="REGEX", help="Steps with a match, also in bodies, in any case.")
@click.option("--follow", is_flag=True, help="Continue until the run ends.")
@click.option("--cost", is_flag=True, help="Include the price of model calls.")
@click.option("--graph", type=click.Choice(["mermaid", "dot"]), help="Draw the run as a graph.")
@run_argument()
@click.argument("seq", type=StepParam(), required=False)
def show(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    raw: bool,
    everything: bool,
    grep: str | None,
    follow: bool,
    cost: bool,
    graph: str | None,
    run: str,
    seq: "StepName | None",
) -> int:
    """Show the steps of a run, or one exchange of it."""
    from ..looking_back.show import ShowOptions, parse_pattern, show_exchange, show_run

    words = {"--grep": grep is not None, "--follow": follow, "--graph": graph is not None}
    words |= {"--all": everything, "--cost": cost}
    given = [word for word, is_given in words.items() if is_given]
    if given and (raw or seq is not None):
        other = "--raw" if raw else "SEQ"
        raise click.UsageError(f"{given[0]} is about the steps of a run; leave out {other}")
    if graph is not None and (as_json or follow or everything):
        raise click.UsageError("--graph draws the whole run; leave out --json, --all and --follow")
    config = reading(config_file, store)
    if raw or (seq is not None and as_json):
        from ..looking_back.show_raw import show_raw

        return show_raw(config, run, seq, as_json=as_json)
    if seq is not None:
        return show_exchange(config, run, seq)
    try:
        pattern = parse_pattern(grep)
    except ValueError as error:
        raise click.UsageError(f"--grep: {error}") from None
    chosen = ShowOptions(
        as_json=as_json,
        everything=everything,
        pattern=pattern,
        follow=follow,
        graph=graph,
        cost=cost,
    )
    return show_run(config, run, chosen)


@click.command(short_help="Show the working folder at a step, or restore it.")
@options("config", "store", "json")
@click.option("--at", metavar="STEP", help="A seq, start or end: the folder before that exchange.")
@click.option(
    "--restore",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Make this folder as it was at that step.",
)
@click.option("--diff", metavar="A B", nargs=2, help="Show the changes between two steps.")
@click.option("--force", is_flag=True, help="Overwrite work that no savepoint has.")
@run_argument()
def files(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    at: str | None,
    restore: Path | None,
    diff: tuple[str, str] | None,
    force: bool,
    run: str,
) -> int:
    """Show the working folder at the steps of a run, or restore it."""
    from ..looking_back.working_folder_files import FilesOptions, show_files

    if diff and (at is not None or restore is not None):
        raise click.UsageError("--diff compares two steps; leave out --at and --restore")
    if force and restore is None:
        raise click.UsageError("--force goes with --restore")
    asked = FilesOptions(at, restore, diff or None, force, as_json)
    try:
        return show_files(reading(config_file, store), run, asked)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@click.command(short_help="Show the context of an agent at a step.")
@options("config", "store", "json")
@click.option("--at", metavar="TIME", help="A time: +12s since the run began, 03:12:05, or a date.")
@click.option("--full", is_flag=True, help="Shorten nothing.")
@run_argument()
@click.argument("seq", type=StepParam(), required=False)
def state(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    at: str | None,
    full: bool,
    run: str,
    seq: "StepName | None",
) -> int:
    """Show the context of an agent at a step."""
    from ..looking_back.state import show_state

    if seq is not None and at is not None:
        raise click.UsageError("expected a SEQ or --at TIME, one of the two")
    try:
        return show_state(reading(config_file, store), run, seq, at, as_json=as_json, full=full)
    except ValueError as error:
        raise click.UsageError(f"--at: {error}") from None


@click.command(short_help="Show the parts of a context that compaction dropped.")
@options("config", "store", "json")
@click.option("--lost", is_flag=True, help="Parts that the previous request of the lane had.")
@click.option("--orphans", is_flag=True, help="Parts that no recorded answer or message explains.")
@click.option("--full", is_flag=True, help="Shorten nothing.")
@run_argument()
@click.argument("seq", type=StepParam(), required=False)
def context(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    lost: bool,
    orphans: bool,
    full: bool,
    run: str,
    seq: "StepName | None",
) -> int:
    """Show parts of a context that compaction dropped, or that nothing explains."""
    from ..looking_back.state import show_context

    if lost == orphans:
        raise click.UsageError("expected --lost or --orphans, one of the two")
    config = reading(config_file, store)
    return show_context(config, run, seq, lost=lost, as_json=as_json, full=full)


@click.command(short_help="List the steps to go back to.")
@options("config", "store", "json")
@click.option("--before-effect", is_flag=True, help="The last step before each effect.")
@run_argument()
def rewind(
    config_file: Path | None, store: str | None, as_json: bool, before_effect: bool, run: str
) -> int:
    """List the steps of a run to go back to."""
    from ..looking_back.rewind import rewind_run

    if not before_effect:
        raise click.UsageError("expected --before-effect: the last step before each effect")
    return rewind_run(reading(config_file, store), run, as_json=as_json)


@click.command(short_help="Compare two runs: where they first differ, and why.")
@options("config", "store", "json")
@click.option(
    "--all", "everything", is_flag=True, help="Also show equal steps, line by line, and every root."
)
@run_argument("first")
@run_argument("second")
def diff(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    everything: bool,
    first: str,
    second: str,
) -> int:
    """Compare two runs: where they first differ, and why. Exits with 1 if they differ."""
    from ..looking_back.diff import diff_runs

    config = reading(config_file, store)
    return diff_runs(config, first, second, as_json=as_json, everything=everything)
