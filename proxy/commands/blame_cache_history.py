"""Find causes: where a value came from, why a prompt cache missed, how a resource changed."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared_options_and_output import StepParam, options, parse_since_option, reading, run_argument

if TYPE_CHECKING:
    from ..looking_back.step_and_time_arguments import StepName


@click.command(short_help="Show where a value of a request came from.")
@options("config", "store", "json")
@click.option("--value", metavar="TEXT", help="Only this part of the text at PATH.")
@run_argument()
@click.argument("seq", type=StepParam())
@click.argument("path")
def blame(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    value: str | None,
    run: str,
    seq: "StepName",
    path: str,
) -> int:
    """Show where a value of a request came from."""
    from ..looking_back.blame_and_cache import show_blame

    return show_blame(reading(config_file, store), run, seq, path, value, as_json=as_json)


@click.command(short_help="Show why the prompt cache of a run missed.")
@options("config", "store", "json")
@run_argument()
def cache(config_file: Path | None, store: str | None, as_json: bool, run: str) -> int:
    """Show why the prompt cache of a run missed, and the cost."""
    from ..looking_back.blame_and_cache import show_cache

    return show_cache(reading(config_file, store), run, as_json=as_json)


@click.command(short_help="Show how a resource changed over runs.")
@options("config", "store", "json")
@click.option("--since", metavar="TIME", help="Runs since then: 30d, 12h or a date.")
@click.option("--agent", metavar="TEXT", help="Runs of agents whose command has this.")
@click.argument("url")
@run_argument(required=False)
def history(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    since: str | None,
    agent: str | None,
    url: str,
    run: str | None,
) -> int:
    """Show how a resource changed over runs: writes, and stale reads."""
    from ..looking_back.resource_history import check_url, show_history

    if run is not None and since is not None:
        raise click.UsageError("--since chooses among all runs; leave out RUN")
    since_ns = parse_since_option(since)
    try:
        asked = check_url(url)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    config = reading(config_file, store)
    return show_history(config, asked, run, since_ns, agent, as_json=as_json)
