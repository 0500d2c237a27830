"""Commands that export runs to files and import them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ...config import parse_new_run_name
from ...tape.shell_words import shell_word
from .export_formats import FORMATS
from .shared_options_and_output import options, print_json, reading, run_argument


def _formats(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command an option for each format."""
    for name, one in FORMATS.items():
        kind = click.Path(path_type=Path)
        command = click.option(f"--{name}", name, type=kind, help=one.help)(command)
    return command


@click.command(short_help="Write a run into one file for another store.")
@options("config", "store", "json")
@_formats
@run_argument()
def export(
    config_file: Path | None, store: str | None, as_json: bool, run: str, **targets: Path | None
) -> int:
    """Write a run into one file: a tape that another store can import, or a page to share."""
    from ..operations.tape_files import export_run

    given = [(FORMATS[name], target) for name, target in targets.items() if target is not None]
    if len(given) != 1:
        names = " or ".join(f"'--{name}'" for name in FORMATS)
        raise click.UsageError(f"{'More than one' if given else 'Missing'} option {names}.")
    ((to, target),) = given
    config = reading(config_file, store)
    runs = export_run(config, run, target, to.load(config))
    summary: dict[str, Any] = {
        "file": str(target),
        "bytes": target.stat().st_size,
        "runs": [one.id for one in runs],
    }
    if to is FORMATS["html"]:
        from ..pages.export_html import find_public_key

        summary["key"] = find_public_key(config)
    if as_json:
        print_json(summary)
        return 0
    click.echo(f"{', '.join(one.id for one in runs)}: {summary['bytes']} bytes in {target}")
    if "key" in summary:
        click.echo(f"signed with key {summary['key']}: give it to the receiver in another way, for")
        click.echo(
            f"  playhead verify --receipt {shell_word(target.name)} --key {shell_word(summary['key'])}"
        )
    return 0


@click.command("import", short_help="Import runs: a tape file, or exchanges as JSON lines.")
@options("config", "store", "json")
@click.option("--jsonl", is_flag=True, help="FILE contains exchanges as JSON lines; `-` is stdin.")
@click.option("--run", metavar="ID", help="Run of lines that name none.")
@click.option(
    "--max-gib",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    help="Largest unpacked size of a tape.",
)
@click.argument("file", type=click.Path(path_type=Path))
def import_(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    jsonl: bool,
    run: str | None,
    max_gib: int,
    file: Path,
) -> int:
    """Import runs: a tape file, or exchanges as JSON lines."""
    from ..operations.tape_files import import_file, import_jsonl

    config = reading(config_file, store)
    if jsonl:
        if run is not None:
            try:
                parse_new_run_name(run)
            except ValueError as error:
                raise click.UsageError(f"--run: {error}") from None
        rows = [(one.run, one.redacted) for one in import_jsonl(config, file, run)]
    elif run is not None:
        raise click.UsageError("--run goes with --jsonl: a tape keeps the names of its runs")
    else:
        rows = [(one, 0) for one in import_file(config, file, max_gib << 30)]
    if as_json:
        print_json(
            [
                {"id": one.id, "exchanges": one.exchanges, "redacted": redacted}
                for one, redacted in rows
            ]
        )
        return 0
    for one, redacted in rows:
        secrets = f", secrets replaced in {redacted}" if redacted else ""
        click.echo(f"{one.id}: {one.exchanges} exchanges{secrets}")
    return 0
