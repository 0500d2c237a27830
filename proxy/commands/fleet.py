"""Questions about many runs of one store."""

from pathlib import Path

import click

from .shared_options_and_output import options, parse_since_option, reading, run_argument


@click.command(short_help="Show the cost of runs, and the savings of replays.")
@options("config", "store", "json")
@click.option("--since", metavar="TIME", help="Runs since then: 30d, 12h or a date.")
@click.option(
    "--by",
    type=click.Choice(["model", "lane", "step", "day", "run"]),
    default="model",
    help="A row for each model, lane, step, day or run.",
)
@click.option("--all", "everything", is_flag=True, help="Every row.")
@run_argument("runs", nargs=-1)
def cost(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    since: str | None,
    by: str,
    everything: bool,
    runs: tuple[str, ...],
) -> int:
    """Show the cost of runs, and the savings of replays."""
    from ..looking_back.cost import show_cost

    if bool(runs) == (since is not None):
        raise click.UsageError("expected runs, or --since TIME for all since then: one of the two")
    config = reading(config_file, store)
    return show_cost(
        config, runs, parse_since_option(since), by, as_json=as_json, everything=everything
    )


@click.command(short_help="List the recordings most similar to a run.")
@options("config", "store", "json")
@click.option("--ok", is_flag=True, help="Only recordings that ended well.")
@click.option(
    "--most",
    type=click.IntRange(1, 10_000),
    default=10,
    metavar="N",
    help="How many; default 10.",
)
@run_argument()
def similar(
    config_file: Path | None, store: str | None, as_json: bool, ok: bool, most: int, run: str
) -> int:
    """List the recordings most similar to a run, by their model calls."""
    from ..looking_back.similar_runs import list_similar

    return list_similar(reading(config_file, store), run, ok=ok, most=most, as_json=as_json)


@click.command(short_help="List the hosts that agents send to.")
@options("config", "store", "json")
@click.option("--since", metavar="TIME", help="Since then: 30d, 12h or a date; by default always.")
@run_argument("runs", nargs=-1)
def destinations(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    since: str | None,
    runs: tuple[str, ...],
) -> int:
    """List the hosts that agents send to, how much, and kinds of personal data."""
    from ..looking_back.destinations import list_destinations

    config, since_ns = reading(config_file, store), parse_since_option(since)
    return list_destinations(config, runs, since_ns, as_json=as_json)
