"""List pending approvals; approve or deny them."""

from pathlib import Path

import click

from .common import options, print_json, reading


@click.command(short_help="List the requests that are held; approve or deny one.")
@options("config", "store", "json")
@click.option("--page", is_flag=True, help="Print the address of the page on which to rule.")
@click.option("--digest", metavar="HEX", help="Digest of the request that was looked at.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the log and for the agent.")
@click.argument("action", type=click.Choice(["list", "approve", "deny"]), default="list")
@click.argument("gate", metavar="[ID]", required=False)
def gates(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    page: bool,
    digest: str | None,
    reason: str,
    action: str,
    gate: str | None,
) -> int:
    """List the requests that are held; approve or deny one."""
    from ..control import gate_commands

    config = reading(config_file, store)
    if page:
        click.echo(gate_commands.find_pages(config))
        return 0
    if action == "list":
        held, more = gate_commands.find_held(config)
        print_json(held) if as_json else click.echo(gate_commands.render(held, more))
        return 0
    if gate is None:
        raise click.UsageError(f"{action} needs the ID of a gate; `playhead gates` lists them")
    decided = gate_commands.decide(config, action, gate, digest, reason)
    print_json(decided) if as_json else click.echo(gate_commands.render_decided(decided))
    return 0
