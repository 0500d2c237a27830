"""Commands about retention: labels, pins and deletion of runs."""

import sys
from pathlib import Path

import click

from ... import PlayheadError
from ...tape.shell_words import shell_word
from ..standard_streams import print_status
from .shared_options_and_output import options, print_json, reading, run_argument


@click.command(short_help="Delete the runs past their retention.")
@options("config", "store", "json")
@click.option("--dry-run", is_flag=True, help="Report the deletions without making them.")
def gc(config_file: Path | None, store: str | None, as_json: bool, dry_run: bool) -> int:
    """Delete the runs past their retention, and free their space."""
    from ...timeline.receipts.render_text import render_collected
    from ..operations.retention import collect

    made = collect(reading(config_file, store), dry_run=dry_run)
    if as_json:
        print_json(made.to_json())
        return 0
    click.echo(render_collected(made.sentences, deleted=made.deleted))
    if made.deleted:
        click.echo(f"{made.file_bytes} bytes of body files removed")
        if made.waiting:
            click.echo(
                f"the space in the database is used again; its file shrinks later: {made.waiting}"
            )
        else:
            click.echo(f"database: {made.before_bytes} bytes before, {made.after_bytes} now")
    return 0


@click.command(short_help="Delete a run and its playbacks for good.")
@options("config", "store", "json")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@run_argument(unless="yes")
def erase(config_file: Path | None, store: str | None, as_json: bool, yes: bool, run: str) -> int:
    """Delete a run and its playbacks for good: no byte is left in the store."""
    from ...timeline.receipts.safe_terminal_text import plain
    from ..operations.retention import erase as erase_run
    from ..operations.retention import find_erased

    config = reading(config_file, store)
    names = ", ".join(plain(one.id, 60) for one in find_erased(config, run))
    if not yes:
        _confirm(f"erase {names}?", run)
    gone = erase_run(config, run)
    if as_json:
        print_json([one.id for one in gone])
    else:
        click.echo(f"erased: {names}")
    return 0


def _confirm(question: str, run: str) -> None:
    """Ask whether a run is to be erased. Raises: PlayheadError, where nobody answers; Abort, where the answer is no."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():  # else there was nothing to read
            raise
        print_status("")
        raise PlayheadError(
            "nothing was erased: `playhead erase` asks first, and standard input is no terminal",
            f"to have it not ask: playhead erase --yes {shell_word(run)}",
        ) from None
    if not agreed:
        raise click.Abort


@click.command(short_help="Add labels to a run, or list them.")
@options("config", "store", "json")
@click.option("--remove", is_flag=True, help="Remove these labels.")
@run_argument()
@click.argument("labels", nargs=-1)
def label(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    remove: bool,
    run: str,
    labels: tuple[str, ...],
) -> int:
    """Add labels to a run, or list them."""
    from ...timeline.receipts.safe_terminal_text import plain
    from ..operations.retention import mark, unlabel

    config = reading(config_file, store)
    if remove:
        made, absent = unlabel(config, run, labels)
        for one in absent:
            print_status(f"playhead: run {str(made.id)!r} had no label {plain(one, 80)!r}")
    else:
        made = mark(config, run, add=labels)
    if as_json:
        print_json(list(made.labels))
    else:
        click.echo(" ".join(made.labels) or "no labels")
    return 0


@click.command(short_help="Keep a run whatever its age.")
@options("config", "store")
@click.option("--off", is_flag=True, help="Unpin it.")
@run_argument()
def pin(config_file: Path | None, store: str | None, off: bool, run: str) -> int:
    """Keep a run whatever its age."""
    from ..operations.retention import mark

    made = mark(reading(config_file, store), run, pin=not off)
    click.echo("pinned" if made.pinned else "not pinned")
    return 0


@click.command(short_help="Move runs to the archive.")
@options("config", "store", "json")
@click.option("--dry-run", is_flag=True, help="Report the moves without making them.")
@click.option(
    "--unencrypted", is_flag=True, help="Archive runs of an encrypted store, unencrypted."
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Take over the archive of the store of which this one is a copy, once that one is no longer used.",
)
@run_argument("runs", metavar="[RUN]...", nargs=-1)
def archive(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    dry_run: bool,
    unencrypted: bool,
    adopt: bool,
    runs: tuple[str, ...],
) -> int:
    """Move runs to the archive: the named ones, or all that ended long enough ago. Exits with 1 if one cannot be moved."""
    from ...timeline.receipts.render_text import render_archived
    from ..operations.archive import archive as archive_runs

    config = reading(config_file, store)
    made = archive_runs(config, runs, dry_run=dry_run, unencrypted=unencrypted, adopt=adopt)
    if as_json:
        print_json(made.to_json())
    else:
        click.echo(render_archived(made.sentences, made.refused, archived=made.archived))
    return 1 if made.refused else 0
