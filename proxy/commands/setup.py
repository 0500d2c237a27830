"""Commands that prepare an agent and its machine."""

import os
import socket
import sys
from pathlib import Path

import click

from ...config import Config, Mode, override
from ...tape.shell_words import shell_word
from ..standard_streams import print_status
from .shared_options_and_output import DEFAULT_FILE, options, print_json, reading

_LISTENS_S = 1.0
"""Longest wait for a connection to this machine: one that nobody takes is refused at once."""


@click.command(short_help="Write a first configuration, and keep the store out of git.")
@options("config", "store")
def init(config_file: Path | None, store: str | None) -> int:
    """Write a commented playhead.yaml, and a .gitignore inside the store; existing files stay."""
    from ..command_line.first_files import write_first_files

    for line in write_first_files(config_file or DEFAULT_FILE, store):
        click.echo(line)
    return 0


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell: commands, flags and names of runs."""
    from ..command_line.shell_completion import make_script

    click.echo(make_script(click.get_current_context().find_root().command, shell), nl=False)
    return 0


@click.command(short_help="Print the JSON Schema of a command's --json.")
@click.argument("command", required=False)
def schema(command: str | None) -> int:
    """Print the JSON Schema of a command's --json, or list the commands with schemas."""
    from ..command_line.json_output_schemas import SCHEMAS, make_schema

    if command is None:
        for name, (version, _) in SCHEMAS.items():
            click.echo(f"{name} {version}")
        return 0
    if command not in SCHEMAS:
        known = ", ".join(map(repr, SCHEMAS))
        raise click.UsageError(f"{command!r} has no schema; expected one of {known}")
    print_json(make_schema(command))
    return 0


@click.command(short_help="Show the CA that agents have to trust, replace it, or remove it.")
@options("config", "store", "ca_dir")
@click.argument("action", type=click.Choice(["show", "rotate", "remove"]), default="show")
def ca(config_file: Path | None, store: str | None, ca_dir: str | None, action: str) -> int:
    """Show the CA that agents have to trust, replace it, or remove it."""
    from ..trust.ca import open_ca
    from ..trust.rotate_and_remove_ca import remove_ca, rotate_ca

    config = override(reading(config_file, store), {"ca_dir": ca_dir} if ca_dir else {})
    if action == "remove":
        removed = remove_ca(config.store, config.public_ca_dir)
        for path in removed:
            click.echo(f"removed {path}")
        click.echo(
            "The next start makes another CA; restart running proxies and agents."
            if removed
            else f"there is no CA in {config.store}"
        )
        return 0
    make = open_ca if action == "show" else rotate_ca
    authority = make(config.store, config.public_ca_dir, upstream_ca=config.upstream_ca)
    click.echo(f"certificate  {authority.certificate_file}")
    click.echo(f"bundle       {authority.bundle_file}  (the roots in force, and ours)")
    click.echo(f"name         {authority.name}")
    click.echo(f"SHA-256      {authority.fingerprint}")
    click.echo(f"valid until  {authority.certificate.not_valid_after_utc:%Y-%m-%d}")
    if action == "rotate":
        click.echo("This is another CA: start `playhead serve` and its agents again.")
    return 0


@click.command(short_help="Print the variables that lead an agent to `serve`.")
@options("config", "store", "ca_dir")
@click.option(
    "--format",
    "form",
    metavar="WORD",
    default="sh",
    help="sh (the default), fish, dotenv, docker or github.",
)
@click.option(
    "--proxy",
    "address",
    metavar="HOST:PORT",
    help="Address of the proxy, as the agent sees it; default: that of the configuration.",
)
@click.option("--run", metavar="ID", help="Name of the run; in playback, of the tape.")
@click.option("--token", metavar="TEXT", help="Its token, if it is not in the configuration.")
@click.option(
    "--seen-at",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the CA's public files inside a container.",
)
def env(
    config_file: Path | None,
    store: str | None,
    ca_dir: str | None,
    form: str,
    address: str | None,
    run: str | None,
    token: str | None,
    seen_at: Path | None,
) -> int:
    """Print the variables that lead an agent to `serve` and make it trust the CA."""
    from ...config.parse_values import is_loopback
    from ..trust.ca import open_ca
    from ..trust.env_files import Form, render_env_file
    from ..trust.environment import removed, variables

    known = [known.value for known in Form]
    if form not in known:
        raise click.UsageError(f"--format {form!r} is none of {', '.join(known)}")
    if form == Form.DOCKER and seen_at is None:
        raise click.UsageError("--format docker needs --seen-at: where the CA's folder is mounted")
    if seen_at is not None and not seen_at.is_absolute():
        raise click.UsageError(f"--seen-at {str(seen_at)!r} is not absolute")
    config = override(reading(config_file, store), {"ca_dir": ca_dir} if ca_dir else {})
    if seen_at is not None and address is None and is_loopback(config.listen.host):
        print_status(
            f"playhead: {config.listen.host} is the container itself, not this machine: give the address that the container sees,"
            f" as --proxy host.docker.internal:{config.listen.port}; --proxy {config.listen} where it is meant (--network host, a pod)"
        )
    url = _proxy_url(config, address, run, token)
    if run is not None and config.mode is Mode.PLAYBACK:
        _warn_of_tape(config, run)
    open_ca(config.store, config.public_ca_dir, upstream_ca=config.upstream_ca)
    # What this machine's person has set is nothing to a container.
    base = os.environ if seen_at is None else {}
    made = variables(base, proxy_url=url, public_dir=config.public_ca_dir, seen_at=seen_at)
    text = render_env_file(made, removed(base), Form(form))
    # As the names of files are, which need not be UTF-8.
    sys.stdout.buffer.write(os.fsencode(text))
    sys.stdout.buffer.flush()
    # Elsewhere, or in a container, the same address is another one, of which nothing can be known here.
    if address is None and seen_at is None and is_loopback(config.listen.host):
        _note_nobody_listens(config, config_file, store)
    return 0


def _note_nobody_listens(config: Config, config_file: Path | None, store: str | None) -> None:
    """Say what has to be started before the agent, where it is not running yet: the agent sees but a refused connection."""
    place = config.listen
    try:
        socket.create_connection((place.host, place.port), _LISTENS_S).close()
    except ConnectionRefusedError:
        given = (("-c", config_file), ("--store", store))
        words = [word for flag, value in given if value for word in (flag, str(value))]
        print_status(
            f"playhead: nothing listens on {place} yet; before the agent, start:"
            f" {' '.join(map(shell_word, ('playhead', 'serve', *words)))}"
        )
    except OSError:
        pass


def _warn_of_tape(config: Config, run: str) -> None:
    """Say that what names this run is going to be refused, where there is nothing to play for it."""
    from ...store import StoreError
    from ..operations.find_tape import find_tape_problem
    from ..operations.open_store import open_store

    try:
        with open_store(config, readonly=True) as store:
            problem = find_tape_problem(store, run)
    except StoreError as error:
        problem = str(error)
    if problem:
        print_status(f"playhead: --run: {problem}; so its requests are refused")


def _proxy_url(config: Config, address: str | None, run: str | None, token: str | None) -> str:
    """Give the proxy's address with the credentials of a run. Raises: click.UsageError."""
    from fnmatch import fnmatchcase

    from ...config import parse_listen, parse_new_run_name, parse_run_name
    from ..trust.environment import proxy_url

    try:
        place = config.listen if address is None else parse_listen(address)
    except ValueError as error:
        raise click.UsageError(f"--proxy {error}") from None
    if not place.port:
        raise click.UsageError("port 0 is taken anew by each start; name the one with --proxy")
    tokens = config.runs.tokens
    if run is None:
        if token is not None:
            raise click.UsageError("--token is that of a run: name it with --run")
        if tokens:
            raise click.UsageError("runs.tokens asks for credentials: name the run with --run")
        return proxy_url(place.host, place.port)
    try:
        # In playback it is the name of a tape, which may have any that was ever given.
        parse_new_run_name(run) if config.mode is Mode.RECORD else parse_run_name(run)
    except ValueError as error:
        raise click.UsageError(f"--run {error}") from None
    fitting = (value for pattern, value in tokens.items() if fnmatchcase(run, pattern))
    # Any will do where none is asked for; without one some clients send no name either.
    token = token or next(fitting, None if tokens else "any")
    if token is None:
        raise click.UsageError(f"runs.tokens has none for run {run!r}; give --token")
    return proxy_url(place.host, place.port, run=run, token=token)


@click.command(short_help="Try each installed client through the proxy.")
@options("json")
@click.option(
    "--all", "all_clients", is_flag=True, help="Also try slow clients, without a time limit."
)
def doctor(as_json: bool, all_clients: bool) -> int:
    """Try each installed client through the proxy, and list the settings it needs."""
    from ..doctor.run import run_doctor

    return run_doctor(as_json, all_clients=all_clients)
