"""Commands that maintain the store."""

import re
from pathlib import Path

import click

from ...config import Config
from .shared_options_and_output import SeqParam, options, print_json, reading, run_argument


@click.command(short_help="Check that a store is undamaged.")
@options("config", "store", "json")
@click.option("--secrets", is_flag=True, help="Look for secrets instead.")
@click.option(
    "--receipt",
    "receipt_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Check the signature of FILE, a receipt or an HTML export, instead.",
)
@click.option("--key", metavar="HEX", help="With --receipt: the public key of the signer.")
@run_argument(required=False)
def verify(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    secrets: bool,
    receipt_file: Path | None,
    key: str | None,
    run: str | None,
) -> int:
    """Check that a store is undamaged. Exits with 1 if it is not."""
    if receipt_file is not None:
        if secrets or run is not None:
            raise click.UsageError("--receipt goes with neither --secrets nor RUN")
        config = reading(config_file, store)
        return _verify_receipt(config, receipt_file, key, as_json=as_json)
    if key is not None:
        raise click.UsageError("--key goes with --receipt")
    from ...timeline.checks.integrity import render_verified
    from ...timeline.checks.secrets import render_findings
    from ..operations.verify import verify_runs, verify_secrets

    if not secrets:
        checked = verify_runs(reading(config_file, store), run)
        if as_json:
            print_json([one.to_json() for one in checked])
        else:
            click.echo(render_verified(checked))
        return 1 if any(one.problems for one in checked) else 0
    found, runs = verify_secrets(reading(config_file, store), run)
    if as_json:
        print_json({"runs": runs, "found": [one.to_json() for one in found]})
    else:
        click.echo(render_findings(found, runs))
    return 1 if found else 0


def _verify_receipt(config: Config, file: Path, given: str | None, *, as_json: bool) -> int:
    from ...timeline.receipts.safe_terminal_text import plain
    from ..pages.export_html import check_file
    from ..trust.receipt_signature import BadReceipt, Signer, read_receipt_file, signer_of
    from ..trust.redaction_and_receipt_keys import find_receipt_key

    if given is not None:
        if re.fullmatch("[0-9a-fA-F]{64}", given) is None:
            raise click.UsageError(
                "--key: expected 64 hexadecimal digits, as export --html prints them"
            )
        signer = Signer(bytes.fromhex(given), "the one that was given")
    else:
        signer = signer_of(find_receipt_key(config.store))
    text = read_receipt_file(file)
    try:
        document = check_file(text, signer, file.name)
    except BadReceipt as error:
        if as_json:
            print_json({"file": str(file), "run": None, "signed": False, "problem": str(error)})
        else:
            click.echo(f"{plain(str(file))}: NOT to be trusted: {plain(str(error), 300)}")
        return 1
    # The key that a person knows; the signature has but a hash of it.
    run, key = document["run"], signer.key.hex() if signer.key is not None else ""
    if as_json:
        print_json({"file": str(file), "run": run, "signed": True, "problem": None})
    else:
        click.echo(
            f"{plain(str(file))}: the receipt of run {plain(run)}, as key {key}"
            f"{'' if given is not None else ' of this store'} signed it"
        )
    return 0


@click.command(short_help="Add a note to a run, or list its notes.")
@options("config", "store", "json")
@click.option("--seq", metavar="SEQ", type=SeqParam(), help="The exchange that the note concerns.")
@run_argument()
@click.argument("text", required=False)
def note(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    seq: int | None,
    run: str,
    text: str | None,
) -> int:
    """Add a note to a run, or list its notes."""
    from ...timeline.receipts.user_notes import render_notes
    from ..operations.notes import list_notes, write_note

    if seq == 0:
        raise click.UsageError(
            "--seq: a SEQ counts from 1; leave it out for a note on the whole run"
        )
    config = reading(config_file, store)
    if text is not None:
        notes = [write_note(config, run, text, seq or 0)]
    else:
        notes = [one for one in list_notes(config, run) if seq in (None, one.seq)]
    if as_json:
        print_json([one.to_json() for one in notes])
    else:
        click.echo(render_notes(notes))
    return 0


@click.command(short_help="Encrypt the store, change its key, or decrypt it.")
@options("config", "store")
@click.option(
    "--to-key-file",
    type=click.Path(path_type=Path),
    help="File with the new key.",
)
@click.option("--decrypt", is_flag=True, help="Remove the encryption.")
@click.option(
    "--new-key", type=click.Path(path_type=Path), help="Only make a key in this new file."
)
def rekey(
    config_file: Path | None,
    store: str | None,
    to_key_file: Path | None,
    decrypt: bool,
    new_key: Path | None,
) -> int:
    """Encrypt the store, change its key, or decrypt it."""
    if sum((to_key_file is not None, decrypt, new_key is not None)) > 1:
        raise click.UsageError("give one of --to-key-file, --decrypt and --new-key")
    if new_key is not None:
        from ...store import make_key_file

        click.echo(f"made key {make_key_file(new_key).id.hex()} in {new_key}: keep a copy of it")
        return 0
    from ..operations.rekey_and_upgrade import rekey_store

    click.echo(rekey_store(reading(config_file, store), to_key_file, decrypt=decrypt))
    return 0


@click.command(short_help="Bring a store or a file to the current version.")
@options("config", "store")
@click.option(
    "--no-backup",
    count=True,
    help="Make no backup; give it twice to confirm.",
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
def upgrade(
    config_file: Path | None, store: str | None, no_backup: int, files: tuple[Path, ...]
) -> int:
    """Upgrade the store, or the given tapes and archive files, to the current version."""
    if no_backup == 1:
        raise click.UsageError(
            "without a backup there is no way back to the version of Playhead that wrote the store;"
            " give --no-backup twice if that is meant"
        )
    from ..operations.rekey_and_upgrade import upgrade_one, upgrade_store

    if files:
        if no_backup or store is not None:
            raise click.UsageError("--store and --no-backup are about a store, and FILE is given")
        for file in files:
            click.echo(upgrade_one(file))
    else:
        click.echo(upgrade_store(reading(config_file, store), backup=not no_backup))
    return 0


@click.command(short_help="Apply the current redaction rules to stored runs.")
@options("config", "store", "json")
@click.option("--rewrite", is_flag=True, help="Replace what the current rules find. Required.")
@click.option("--all", "every", is_flag=True, help="All runs of the store.")
@click.option("--dry-run", is_flag=True, help="Report the changes without making them.")
@run_argument("runs", metavar="[RUN]...", nargs=-1)
def redact(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    rewrite: bool,
    every: bool,
    dry_run: bool,
    runs: tuple[str, ...],
) -> int:
    """Apply the current redaction rules to stored runs, also archived ones."""
    if not rewrite:
        raise click.UsageError("say --rewrite: stored runs are changed for good")
    if every == bool(runs):
        raise click.UsageError("expected the names of runs, or --all")
    from ...timeline.rewriting.rewrite_run import render_change
    from ..operations.redact_stored_runs import rewrite as rewrite_runs

    made = rewrite_runs(reading(config_file, store), runs, dry_run=dry_run)
    if as_json:
        print_json(made.to_json())
        return 0
    for change in made.changes:
        click.echo(render_change(change, written=made.written))
    if not made.changes:
        click.echo("no runs")
    return 0
