"""The commands that compose.yaml runs in its containers: the network holder and the sidecar."""

from pathlib import Path

import click

from ... import PlayheadError
from ...config import Config
from ...tape.exit_codes import ExitCode
from .shared_options_and_output import DEFAULT_FILE, complain, options, settings

_MOST_BYTES = 64 << 30

_link = click.option(
    "--link",
    type=click.Path(path_type=Path),
    default=Path("/link"),
    show_default=True,
    help="Folder that connects the proxy with the agent's network.",
)


@click.command(hidden=True)
@_link
def inlets(link: Path) -> int:
    """Hold the agent's network, and route its traffic to a proxy."""
    from ..docker.network_holder import serve

    try:
        return serve(link)
    except PlayheadError as error:
        complain(error)
        return ExitCode.UNTESTABLE


@click.command(hidden=True)
@options(
    "config",
    "store",
    "ca_dir",
    "upstream_ca",
    "allow_model_drift",
    "determinism",
    "json",
    "receipt",
    "quiet",
)
@_link
@click.option(
    "--agent",
    type=click.Path(path_type=Path),
    default=Path("/agent"),
    show_default=True,
    help="Folder that the agent's container sees.",
)
@click.option(
    "--tape",
    "tape_file",
    type=click.Path(path_type=Path),
    help="Import this file first, unless RUN is in the store.",
)
@click.argument("verb", metavar="record|replay", type=click.Choice(["record", "replay"]))
@click.argument("run")
def beside(
    config_file: Path | None,
    verb: str,
    run: str,
    link: Path,
    agent: Path,
    tape_file: Path | None,
    as_json: bool,
    receipt_file: Path | None,
    quiet: bool,
    **flags: object,
) -> int:
    """Record or replay an agent in another container, once (compose.yaml)."""
    from ..docker.compose_agent import Sidecar
    from ..run.launcher import Output, record, replay

    output = Output(as_json, receipt_file, quiet)
    try:
        config, _ = settings(config_file, flags)
        if tape_file is not None:
            _import_where_missing(config, run, tape_file)
        launch = record if verb == "record" else replay
        where = config_file or DEFAULT_FILE
        return launch(config, run, ["agent"], output, Sidecar(link, agent), config_file=where)
    except PlayheadError as error:
        complain(error)
        return ExitCode.UNTESTABLE


def _import_where_missing(config: Config, run: str, file: Path) -> None:
    """Have the run in the store, where the file holds it. Raises: StoreError."""
    from ..operations.open_store import open_store
    from ..operations.tape_files import import_file, may_hold

    if not may_hold(file, run):
        # A mistyped name, or `latest`: another run would be imported, and be the latest.
        return
    from ...store.paths import LOG

    if (config.store / LOG).exists():
        with open_store(config, readonly=True) as store:
            if store.runs.find(run) is not None:
                return
    import_file(config, file, _MOST_BYTES)
