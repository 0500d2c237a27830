"""The page of a store; list pending approvals, approve or deny them."""

import shutil
from pathlib import Path

import click

from ..standard_streams import print_status
from .shared_options_and_output import options, print_json, reading, run_argument


@click.command(short_help="List the held requests; approve or deny one.")
@options("config", "store", "json")
@click.option("--page", is_flag=True, help="Print a link to the page on which you can rule.")
@click.option("--digest", metavar="HEX", help="Approve only the request with this digest.")
@click.option("--reason", metavar="TEXT", default="", help="Why; for the log and the agent.")
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
    """List the held requests; approve or deny one."""
    from ..control import gate_commands

    config = reading(config_file, store)
    if page:
        click.echo(gate_commands.find_pages(config))
        return 0
    if action == "list":
        found = gate_commands.find_held(config)
        for line in gate_commands.describe_silent(found.silent.values()):
            print_status(f"playhead: {line}")
        more = found.held - len(found.gates)
        print_json(found.gates) if as_json else click.echo(gate_commands.render(found.gates, more))
        return 0
    if gate is None:
        raise click.UsageError(f"{action} needs the ID of a gate; `playhead gates` lists them")
    decided = gate_commands.decide(config, action, gate, digest, reason)
    print_json(decided) if as_json else click.echo(gate_commands.render_decided(decided))
    return 0


_BEHIND = "playhead.behind"


class _TakesCommand(click.Command):
    """Takes what stands behind `--` apart from its own words: without a run, the command is no name of one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words before `--`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Give the words of the usage."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command(cls=_TakesCommand)
@options("config", "store")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port on loopback; 0, the default, takes a free one.",
)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option(
    "--allow-run",
    is_flag=True,
    help="Let the page rule on gates, stop runs, and run COMMAND again.",
)
@run_argument(required=False)
@click.pass_context
def ui(
    context: click.Context,
    config_file: Path | None,
    store: str | None,
    port: int,
    no_browser: bool,
    allow_run: bool,
    run: str | None,
) -> int:
    """Serve the runs of a store as a page, and print the link to it."""
    command: tuple[str, ...] = context.meta[_BEHIND]
    if command and not allow_run:
        raise click.UsageError("COMMAND needs --allow-run: without it the page only reads")
    if command and shutil.which(command[0]) is None:
        raise click.UsageError(f"there is no command {command[0]!r}, which is to be run again")
    words = [] if config_file is None else ["--config", str(config_file.absolute())]
    words += [] if store is None else ["--store", store]
    from ..pages.server import Shown, serve_pages
    from ..pages.sessions import Rights

    rights = Rights.READ
    if allow_run:
        rights |= Rights.RULE | Rights.RUN
    shown = Shown(run, port, not no_browser, rights, tuple(words), command)
    return serve_pages(reading(config_file, store), shown, click.echo)
