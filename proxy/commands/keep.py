"""Look after the store."""

from pathlib import Path

import click

from .common import options, print_json, reading


@click.command()
@options("config", "store", "json")
@click.option("--secrets", is_flag=True, help="Look for what reads like a secret.")
@click.argument("run", required=False)
def verify(
    config_file: Path | None, store: str | None, as_json: bool, secrets: bool, run: str | None
) -> int:
    """Check what a store holds; 1 where something is found."""
    from ...timeline.secrets import render_findings
    from ..verify import verify_secrets

    if not secrets:
        raise click.UsageError("say what to check: --secrets")
    found, runs = verify_secrets(reading(config_file, store), run)
    if as_json:
        print_json({"runs": runs, "found": [one.to_json() for one in found]})
    else:
        click.echo(render_findings(found, runs))
    return 1 if found else 0
