"""The command line: what to open, whom to ask, how to say what went wrong.

Heavy parts are imported inside the commands that need them, once it is clear that they are needed: so `runs`
and `show` are quick, and so is being told of a mistake.
"""

import difflib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import PlayheadError, __version__
from ..config import Config, ConfigError, Mode, Watcher, load, override
from .say import fill_standard_files, say

_F = TypeVar("_F", bound=Callable[..., Any])

USAGE = 2
UNTESTABLE = 125
DEFAULT_FILE = Path("playhead.yaml")


class _Group(click.Group):
    """Commands with a nearest match for a mistyped one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if near:
                raise click.UsageError(f"{error} Did you mean {near[0]!r}?", ctx) from error
            raise


def _options(*names: str) -> Callable[[_F], _F]:
    """Give a command the flags that override keys of the file."""
    known = {
        "config": click.option(
            "-c",
            "--config",
            "config_file",
            type=click.Path(path_type=Path),
            help="Configuration file.",
        ),
        "store": click.option("--store", metavar="DIR", help="Folder of the store."),
        "ca_dir": click.option("--ca-dir", metavar="DIR", help="Folder of the CA's public files."),
        "upstream_ca": click.option(
            "--upstream-ca", metavar="FILE", help="Extra roots to trust upstream (PEM)."
        ),
        "mode": click.option("--mode", metavar="MODE", help="record, playback or passthrough."),
        "listen": click.option("--listen", metavar="HOST:PORT", help="Where to listen."),
        "run": click.option(
            "--run", metavar="ID", help="Name of the run; in playback, of the tape."
        ),
        "allow_model_drift": click.option(
            "--allow-model-drift",
            metavar="RECORDED=NEW",
            multiple=True,
            help="Answer what is asked of model NEW with what RECORDED said; may be repeated.",
        ),
        "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    }

    def decorate(function: _F) -> _F:
        for name in reversed(names):
            function = known[name](function)
        return function

    return decorate


def _settings(config_file: Path | None, flags: dict[str, object]) -> tuple[Config, Watcher | None]:
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    path = config_file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    if path is None:
        return override(Config(), given), None
    watcher, config = Watcher.start(path, given)
    return config, watcher


def _reading(config_file: Path | None, store: str | None) -> Config:
    path = config_file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    config = load(path) if path is not None else Config()
    return override(config, {"store": store} if store else {})


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="playhead")
@click.option("-v", "--verbose", count=True, help="Say more on stderr; twice for everything.")
def cli(verbose: int) -> None:
    """Record what an agent does on the network, and play it again with the network gone."""
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(level=level, format="playhead: %(message)s", stream=sys.stderr)
    # A client that goes away or speaks nonsense is its own affair; -v shows it.
    for name in ("mitmproxy", "hpack", "h2", "asyncio"):
        logging.getLogger(name).setLevel(max(level, logging.INFO if verbose > 1 else logging.ERROR))


@cli.command()
@_options(
    *("config", "mode", "listen", "store", "run", "ca_dir", "upstream_ca", "allow_model_drift")
)
def serve(config_file: Path | None, **flags: object) -> int:
    """Run the long-running proxy; edit the file to switch its mode."""
    config, watcher = _settings(config_file, flags)
    if config.mode is Mode.PLAYBACK and flags.get("run") not in (None, "latest"):
        _require_run(config, str(flags["run"]))
    from .serve import serve as run_serve

    return run_serve(config, watcher)


@cli.command()
@_options("config", "store", "run", "ca_dir", "upstream_ca", "json")
@click.option(
    "--receipt",
    "receipt_file",
    type=click.Path(path_type=Path),
    help="Write the receipt's JSON here.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no receipt.")
@click.option(
    "--capture",
    is_flag=True,
    help="Run the command in a sandbox, and record what ignores the proxy too.",
)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    config_file: Path | None,
    command: tuple[str, ...],
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    capture: bool,
    **flags: object,
) -> int:
    """Run COMMAND through a proxy and record what it does."""
    config, _ = _settings(config_file, flags)
    if capture and config.sandbox.record == "none":
        config = override(config, {"capture": "contained"})
    from .launcher import Output
    from .launcher import record as run_record
    from .runtime import default_run_name

    named = config.runs.default
    run = named if named != "per-process" else default_run_name(command[0])
    return run_record(config, run, command, Output(as_json, receipt_file, quiet))


@cli.command()
@_options("config", "store", "ca_dir", "upstream_ca", "allow_model_drift", "json")
@click.option(
    "--receipt",
    "receipt_file",
    type=click.Path(path_type=Path),
    help="Write the receipt's JSON here.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no receipt.")
@click.option(
    "--sandbox",
    metavar="WORD",
    help="contained (the default), strict (no Unix sockets either) or none.",
)
@click.option(
    "--no-sandbox", is_flag=True, help="Run the command outside a sandbox; as --sandbox none."
)
@click.argument("run")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def replay(
    config_file: Path | None,
    run: str,
    command: tuple[str, ...],
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    no_sandbox: bool,
    **flags: object,
) -> int:
    """Run COMMAND again, everything answered from the tape of RUN (or `latest`)."""
    if no_sandbox:
        flags["sandbox"] = "none"
    try:
        config, _ = _settings(config_file, flags)
        if run != "latest":
            _require_run(config, run)  # before a mistyped store is made
        from .launcher import Output
        from .launcher import replay as run_replay

        return run_replay(config, run, command, Output(as_json, receipt_file, quiet))
    except PlayheadError as error:
        _complain(error)
        return UNTESTABLE


@cli.command()
@_options("config", "store", "json")
def runs(config_file: Path | None, store: str | None, as_json: bool) -> int:
    """List all runs, oldest first."""
    from ..store import Store, StoreError
    from ..timeline import render_runs

    config = _reading(config_file, store)
    try:
        with Store.open(config.store, readonly=True) as opened:
            listed = opened.runs()
    except StoreError as error:
        if str(error).startswith("no store"):
            listed = []
        else:
            raise
    if as_json:
        _print_json(
            [
                {
                    "id": run.id,
                    "mode": run.mode,
                    "status": run.status.value,
                    "parent": run.parent,
                    "exchanges": run.exchanges,
                    "created_ns": run.created_ns,
                    "sealed_ns": run.sealed_ns,
                    "agent": run.agent,
                    "end": run.end,
                }
                for run in listed
            ]
        )
    else:
        click.echo(render_runs(listed))
    return 0


@cli.command()
@_options("config", "store", "json")
@click.argument("run")
@click.argument("seq", type=int, required=False)
def show(
    config_file: Path | None, store: str | None, as_json: bool, run: str, seq: int | None
) -> int:
    """Show a run, or one exchange of it."""
    from ..store import Store, StoreError
    from ..timeline import render_exchange, render_run
    from ..timeline.export import exchange_json
    from ..timeline.listing import find_shown, rows

    config = _reading(config_file, store)
    with Store.open(config.store, readonly=True) as opened:
        info = opened.get_run(run)
        if seq is None:
            listed = rows(opened, info)
            _print_json(listed) if as_json else click.echo(render_run(info, listed))
            return 0
        found = find_shown(opened, info, seq)
        if found is None:
            raise StoreError(
                f"run {run!r} holds no exchange {seq}", f"`playhead show {run}` lists what it holds"
            )
        whose, exchange = found
        messages = opened.messages(whose, exchange.seq)
        if as_json:
            _print_json(exchange_json(exchange, messages))
        else:
            click.echo(render_exchange(exchange, messages))
    return 0


@cli.command()
@_options("config", "store", "json")
@click.option(
    "--all", "everything", is_flag=True, help="List every divergence, not the root alone."
)
@click.argument("run")
def receipt(
    config_file: Path | None, store: str | None, as_json: bool, everything: bool, run: str
) -> int:
    """Print the receipt of a run again."""
    from ..store import Store
    from ..timeline import build, render_divergences, render_receipt

    config = _reading(config_file, store)
    with Store.open(config.store, readonly=True) as opened:
        made = build(opened, opened.get_run(run))
    if as_json:
        _print_json(made.to_json())
        return 0
    click.echo(render_receipt(made))
    if everything and (listed := render_divergences(made)):
        click.echo(listed)
    return 0


@cli.command()
@_options("config", "store", "json")
@click.argument("run")
def effects(config_file: Path | None, store: str | None, as_json: bool, run: str) -> int:
    """List what a run did to the world, or would have done."""
    from ..store import Store
    from ..timeline.ledger import effects_of
    from ..timeline.render import render_effects

    config = _reading(config_file, store)
    with Store.open(config.store, readonly=True) as opened:
        info = opened.get_run(run)
        listed, omitted = effects_of(opened, info)
        if as_json:
            _print_list(effect.to_json() for effect in listed)
        else:
            for line in render_effects(info, listed, omitted):
                click.echo(line)
    return 0


@cli.command()
@_options("config", "store")
@click.argument("run")
def seal(config_file: Path | None, store: str | None, run: str) -> int:
    """End a run: nothing is added to it any more."""
    from .seal import seal_run

    click.echo(seal_run(_reading(config_file, store), run))
    return 0


@cli.command()
@_options("config", "store")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the log and for the agent.")
@click.argument("run")
def stop(config_file: Path | None, store: str | None, reason: str, run: str) -> int:
    """Have everything that a run asks refused from now on, and break off what is under way."""
    from .control.client import stop_run

    click.echo(stop_run(_reading(config_file, store), run, reason))
    return 0


@cli.command()
@_options("config", "store", "json")
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
    from .control import gate_commands

    config = _reading(config_file, store)
    if page:
        click.echo(gate_commands.find_pages(config))
        return 0
    if action == "list":
        held = gate_commands.find_held(config)
        _print_json(held) if as_json else click.echo(gate_commands.render(held))
        return 0
    if gate is None:
        raise click.UsageError(f"{action} needs the ID of a gate; `playhead gates` lists them")
    ruled = gate_commands.rule_on(config, action, gate, digest, reason)
    _print_json(ruled) if as_json else click.echo(gate_commands.render_ruled(ruled))
    return 0


@cli.command()
@_options("config", "store", "json")
@click.option("--secrets", is_flag=True, help="Look for what reads like a secret.")
@click.argument("run", required=False)
def verify(
    config_file: Path | None, store: str | None, as_json: bool, secrets: bool, run: str | None
) -> int:
    """Check what a store holds; 1 where something is found."""
    from ..timeline.secrets import render_findings
    from .verify import verify_secrets

    if not secrets:
        raise click.UsageError("say what to check: --secrets")
    found, runs = verify_secrets(_reading(config_file, store), run)
    if as_json:
        _print_json({"runs": runs, "found": [one.to_json() for one in found]})
    else:
        click.echo(render_findings(found, runs))
    return 1 if found else 0


@cli.command()
@_options("config", "store", "json")
@click.argument("first")
@click.argument("second")
def learn(
    config_file: Path | None, store: str | None, as_json: bool, first: str, second: str
) -> int:
    """Propose `ignore` rules from two recordings of the same task."""
    from ..timeline.render_learn import render_lesson
    from .learn import learn_from

    lesson = learn_from(_reading(config_file, store), first, second)
    _print_json(lesson.to_json()) if as_json else click.echo(render_lesson(lesson))
    return 0


@cli.command()
@_options("config", "store", "json")
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@click.argument("run")
def reindex(
    config_file: Path | None, store: str | None, as_json: bool, dry_run: bool, run: str
) -> int:
    """Apply the match rules of now to a tape, and say what that changes."""
    from ..timeline.reindex import render_plan
    from .reindex import reindex_run

    made = reindex_run(_reading(config_file, store), run, write=not dry_run)
    if as_json:
        _print_json(made.to_json(written=not dry_run))
    else:
        click.echo(render_plan(made, written=not dry_run))
    return 0


@cli.command()
@_options("config", "store", "json")
@click.option(
    "--with",
    "rules",
    type=click.Path(path_type=Path),
    required=True,
    help="Configuration file whose rules are tried.",
)
@click.argument("runs", nargs=-1)
def policy(
    config_file: Path | None, store: str | None, as_json: bool, rules: Path, runs: tuple[str, ...]
) -> int:
    """Judge runs again under the rules of another file, and list what would change."""
    from ..timeline.render_rejudge import render_rejudged
    from .policy import rejudge_runs

    made = rejudge_runs(_reading(config_file, store), runs, rules)
    if as_json:
        _print_json([one.to_json() for one in made])
    else:
        click.echo("\n".join(map(render_rejudged, made)))
    return 0


@cli.command()
@_options("config", "store", "ca_dir")
def ca(config_file: Path | None, store: str | None, ca_dir: str | None) -> int:
    """Show the CA that agents have to trust, made if there is none."""
    from .ca import open_ca

    config = override(_reading(config_file, store), {"ca_dir": ca_dir} if ca_dir else {})
    authority = open_ca(config.store, config.public_ca_dir)
    click.echo(f"certificate  {authority.certificate_file}")
    click.echo(f"bundle       {authority.bundle_file}  (the roots in force, and ours)")
    click.echo(f"name         {authority.name}")
    click.echo(f"SHA-256      {authority.fingerprint}")
    return 0


@cli.command()
@_options("json")
def doctor(as_json: bool) -> int:
    """Try each installed client through the proxy, and say what to set."""
    from .checkup import check_up

    return check_up(as_json)


@cli.command()
@click.option("--store", type=click.Path(path_type=Path), help="Keep the tapes in this store.")
@click.option("--keep", is_flag=True, help="Keep the temporary store.")
def demo(store: Path | None, keep: bool) -> int:
    """Record an agent that refunds twice, replay it with everything switched off, then its fix."""
    from .demo import run_demo

    return run_demo(store, keep=keep)


def _require_run(config: Config, name: str) -> None:
    from ..store import Store

    with Store.open(config.store, readonly=True) as opened:
        opened.get_run(name)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=True))


def _print_list(rows: Iterable[Any]) -> None:
    """Print a list of JSON, a row as soon as it is there."""
    empty = True
    for row in rows:
        click.echo("[" if empty else ",")
        click.echo(json.dumps(row, indent=1, ensure_ascii=True), nl=False)
        empty = False
    click.echo("[]" if empty else "\n]")


def _complain(error: PlayheadError) -> None:
    say(f"playhead: {error}")
    if error.hint:
        say(f"  hint: {error.hint}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    fill_standard_files()
    try:
        code = cli.main(args=arguments, prog_name="playhead", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (ConfigError, PlayheadError) as error:
        _complain(error)
        code = USAGE
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.UsageError as error:
        error.show()
        code = UNTESTABLE if error.ctx and error.ctx.info_name == "replay" else USAGE
    except click.ClickException as error:
        error.show()
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # Whoever read us has enough; a second write by the interpreter's exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
