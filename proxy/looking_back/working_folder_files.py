"""What the working folder of a recording held at its steps: list, compare, and bring back."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...config import Config
from ...store import RunInfo, Store, StoreError
from ...tape.folders.changes import FileEffect, find_changes, only_sure
from ...tape.folders.hide_secret_names import Redact, find_names
from ...tape.folders.manifest import SECRET, Kind, Manifest, say_unlisted, show_path
from ...tape.shell_words import shell_word
from ...timeline.lookup.crashed_runs import find_first
from ...timeline.state.calls_before import Exchanges
from ..folder.file_contents import hash_file
from ..folder.git import find_tracked_ignored
from ..folder.left_out_paths import leave_out_ignored
from ..folder.list_folder import Limits, look
from ..folder.recording import explain_error
from ..folder.restore import (
    NotBegun,
    Plan,
    Restored,
    apply_plan,
    count_paths,
    make_plan,
    name_paths,
    require_harmless,
)
from ..folder.savepoints import END
from ..folder.unsaved_entries import find_paths, find_unknown, list_kept
from ..operations.find_tape import redactor_of
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..run.archive_changes import find_archives
from ..trust.redaction_and_receipt_keys import find_redaction_key
from .step_and_time_arguments import parse_seq

_START_WORD, _END_WORD = "start", "end"
_LIMITS = Limits(entries=500_000, time_s=60.0)


class FilesOptions(NamedTuple):
    """What is asked for."""

    at: str | None = None
    """A seq, `start` or `end`."""
    restore: Path | None = None
    diff: tuple[str, str] | None = None
    force: bool = False
    as_json: bool = False


def parse_savepoint(text: str) -> int | None:
    """Read what names a savepoint; None is the start. Raises: ValueError."""
    if text == _START_WORD:
        return None
    if text == _END_WORD:
        return END
    try:
        return parse_seq(text)
    except ValueError as error:
        raise ValueError(f"{error}; or 'start' or 'end'") from None


def show_files(config: Config, run: str, options: FilesOptions) -> int:
    """Do what is asked for with the folder of a run.

    Raises: ValueError, for what is no step; UnknownRun; StoreError, also for a step that the run does not have; LogCorrupt.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        info = store.runs.get(run)
        if options.diff is not None:
            then, now = (_find(store, info, parse_savepoint(one)) for one in options.diff)
            return _show_changes(then, now, options)
        manifest = _find(
            store, info, parse_savepoint(options.at if options.at is not None else _START_WORD)
        )
        if options.restore is not None:
            return _restore(config, store, info, manifest, options)
        if options.at is not None:
            start = _find(store, info, None)
            return _show_changes(start, manifest, options)
        return _show_savepoints(store, info, manifest, options)


def _find_sure(before: Manifest, after: Manifest) -> list[FileEffect]:
    return only_sure(before, after, find_changes(before.entries, after.entries))


def _find(store: Store, info: RunInfo, step: int | None) -> Manifest:
    if step is not None and step != END:
        Exchanges(store, info).get(step)
    manifest = store.folders.find(info, step)
    if manifest is None and info.parent is not None:
        did, first = "resumes" if info.has_resumed else "plays", find_first(store, info)
        raise StoreError(
            f"run {info.id!r} {did} {info.parent!r}, and has no manifest of its own: that is made of a recording alone",
            f"see that of the recording with: playhead files {shell_word(first.id)}",
        )
    if manifest is None:
        raise StoreError(
            f"run {info.id!r} has no manifest of its folder: it was recorded in a container, or by an earlier version",
            "record it again",
        )
    if step is not None and manifest.seq != step:
        known = ", ".join(_name(one.seq) for one in store.folders.list_savepoints(info)[:20])
        if not known:
            raise StoreError(
                f"run {info.id!r} has no savepoint: its folder is known as it was at the start alone",
                "record with --transaction to have one before each effect",
            )
        if step == END:
            last = _name(manifest.seq)
            raise StoreError(
                f"run {info.id!r} has no savepoint at its end: the last one is {last};"
                " the command has not ended yet, or its recording was killed",
                f"--at {last} gives the folder before exchange {last}",
            )
        where = _name(manifest.seq) if manifest.seq else _START_WORD
        click.echo(f"there is no savepoint at {step}; the one before it is {where}", err=True)
    return manifest


def _name(seq: int) -> str:
    return _END_WORD if seq == END else str(seq)


def _show_savepoints(store: Store, info: RunInfo, start: Manifest, options: FilesOptions) -> int:
    rows: list[dict[str, Any]] = []
    before, listed = start, [start]
    for step in store.folders.list_savepoints(info):
        after = step.apply(before)
        counts = Counter(one.change.value for one in _find_sure(before, after))
        rows.append(
            {
                "at": _name(step.seq),
                **{word: counts[word] for word in ("created", "changed", "deleted")},
                "not_listed": say_unlisted(before, after),
            }
        )
        listed.append(after)
        before = after
    whys = Counter(entry.unsaved for entry in start.entries.values() if entry.unsaved)
    if options.as_json:
        told = {
            "folder": show_path(start.folder),
            "files": start.file_count,
            "bytes": start.size,
            "head": start.git.head if start.git else "",
            "saved": start.saved,
            "unsaved": dict(whys),
            "placeholders": _redacted(start),
            "left_out": {show_path(path): why for path, why in start.left_out.items()},
            "not_listed": say_unlisted(start),
            "savepoints": rows,
        }
        click.echo(json.dumps(told, indent=1))
        return 0
    saved = "contents saved" if start.saved else "contents not saved"
    click.echo(f"{show_path(start.folder)}: {start.file_count} files, {start.size} bytes, {saved}")
    if start.git is not None:
        dirty = "" if start.git.dirty is None else f", {start.git.dirty_count} files not committed"
        click.echo(
            f"commit {start.git.head or '(none)'}, branch {start.git.branch or '(none)'}{dirty}"
        )
    for why, count in whys.items():
        click.echo(f"not saved ({why}): {count}")
    if redacted := _redacted(start):
        click.echo(f"with placeholders for secrets: {len(redacted)}")
    for row in rows:
        told_row = ", ".join(f"{row[word]} {word}" for word in ("created", "changed", "deleted"))
        unknown = "; more is not known" if row["not_listed"] else ""
        click.echo(f"{row['at']:>6}  {told_row}{unknown}")
    if cut := say_unlisted(*listed):
        click.echo(f"more is not known: {cut}")
    return 0


def _show_changes(before: Manifest, after: Manifest, options: FilesOptions) -> int:
    changes, cut = _find_sure(before, after), say_unlisted(before, after)
    if options.as_json:
        rows = [
            {
                "path": one.text,
                "change": one.change.value,
                "kind": one.entry.kind.value,
                "size": one.entry.size,
            }
            for one in changes
        ]
        click.echo(json.dumps({"changes": rows, "not_listed": cut}, indent=1))
        return 0
    for one in changes:
        click.echo(f"{one.change.value} {one.text}")
    if cut:
        click.echo(f"more is not known: {cut}", err=True)
    return 0


def _restore(
    config: Config, store: Store, info: RunInfo, target: Manifest, options: FilesOptions
) -> int:
    folder = options.restore
    assert folder is not None
    if not target.saved:
        raise StoreError(
            "the contents of the folder were not saved with this run",
            "record with --save-files or --transaction",
        )
    done = restore_folder(config, store, info, target, folder, force=options.force)
    stays, cut = [*done.blocked, *done.unknown], say_unlisted(target)
    if options.as_json:
        told = {
            "written": done.written,
            "removed": done.removed,
            "skipped": [show_path(one) for one in done.skipped],
            "stays": [show_path(one) for one in stays],
            "not_listed": cut,
            "placeholders": _redacted(target),
        }
        click.echo(json.dumps(told, indent=1))
        return 0
    click.echo(f"{folder}: {done.written} written, {done.removed} removed")
    for path in done.skipped:
        click.echo(f"not saved, and left as it is: {show_path(path)}")
    for path in done.blocked:
        click.echo(
            f"left as it is, because something in it is in no manifest of the run: {show_path(path)}"
        )
    if cut:
        click.echo(f"not restored as a whole: {cut}")
    if done.unknown:
        click.echo(f"in no manifest of the run, and left as it is: {name_paths(done.unknown)}")
    for name in _redacted(target):
        click.echo(f"with placeholders for secrets: {name}")
    return 0


def _redacted(manifest: Manifest) -> list[str]:
    """Name the files in which placeholders stand."""
    return [show_path(path) for path, entry in manifest.entries.items() if entry.placeholders]


def restore_folder(
    config: Config,
    store: Store,
    info: RunInfo,
    target: Manifest,
    folder: Path,
    *,
    force: bool,
) -> Restored:
    """Make a folder what a manifest of a run says; writes what differs alone, and removes what that run knew alone. Blocks.

    force: overwrite what no savepoint has, and leave as it is what was not saved.
    Raises: StoreError, where that is refused, or where somebody changed files meanwhile, which stay as they are; LogCorrupt.
    """
    place = os.path.realpath(folder)
    if os.path.lexists(place) and not os.path.isdir(place):
        raise StoreError(
            f"{str(folder)!r} is no folder", "name a folder, or one that is not there yet"
        )
    own = (config.store, config.public_ca_dir, *find_archives(config))
    left_out = frozenset(os.path.realpath(path) for path in own)
    try:
        os.makedirs(place, exist_ok=True)
        tracked = find_tracked_ignored(place)
        present = look(
            place, left_out=left_out, tracked=tracked, known=target.entries, limits=_LIMITS
        )
        read, has = _sources(store, target)
        present = leave_out_ignored(
            present, target, lambda digest: read(digest) if has(digest) else b"", tracked
        )
        target = find_names(target, present.entries, _redact_with(config))
        plan = make_plan(
            target,
            present,
            find_paths(store, info) | target.entries.keys(),
            store.folders.holds,
            has,
            lambda found: find_unknown(list_kept(store), found),
        )
        _require_outside(plan, place, left_out)
        if not force:
            require_harmless(plan)
        return _require_whole(apply_plan(plan, read), folder)
    except NotBegun as error:
        raise StoreError(
            f"{str(folder)!r} cannot be restored, and nothing was changed: {error.strerror}",
            "free some space, or is it yours to write to?",
        ) from error
    except OSError as error:
        raise StoreError(
            f"{str(folder)!r} cannot be restored: {explain_error(error)}",
            "is it yours to write to?",
        ) from error


def _redact_with(config: Config) -> Redact:
    """Give what takes secrets out of names as it was done when they were stored."""
    key = find_redaction_key(config.store)
    return bytes if key is None else redactor_of(config, key).text


def _require_whole(done: Restored, folder: Path) -> Restored:
    """Say which files somebody saved while the folder was restored. Raises: StoreError."""
    if done.left:
        was, stay = ("were", "stay") if len(done.left) > 1 else ("was", "stays")
        raise StoreError(
            f"{count_paths(done.left)} in {str(folder)!r} changed or {was} removed while it was restored, and {stay} so:"
            f" {name_paths(done.left)}; the rest was restored ({done.written} written, {done.removed} removed)",
            "keep them elsewhere if you need them, and restore once more while nothing else writes to the folder",
        )
    return done


def _require_outside(plan: Plan, place: str, own: frozenset[str]) -> None:
    """Refuse to write into Playhead's own folders, whatever is forced. Raises: StoreError."""
    for one in plan.changes:
        path = os.path.join(place, os.fsdecode(one.path))
        if any(f"{path}/".startswith(f"{folder}/") for folder in own):
            raise StoreError(
                f"{show_path(one.path)} would be written over, and Playhead's own files are there",
                "restore into another folder",
            )


def _sources(
    store: Store, target: Manifest
) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bool]]:
    """Give what reads a content by its hash, and says whether it can be had: from the store, else from the recorded folder."""
    unsaved: dict[bytes, bytes] = {
        entry.digest: target.folder + b"/" + path
        for path, entry in target.entries.items()
        # A manifest out of a file names folders of another machine.
        if entry.kind is Kind.FILE and entry.digest and entry.unsaved and not target.imported
    }

    # Another run may have a content that must not be in this one.
    secret = {
        entry.digest
        for entry in target.entries.values()
        if entry.unsaved == SECRET and entry.digest
    }

    def holds(digest: bytes) -> bool:
        return digest not in secret and store.folders.holds(digest)

    def has(digest: bytes) -> bool:
        if holds(digest):
            return True
        return digest in unsaved and hash_file(unsaved[digest]) == digest

    def read(digest: bytes) -> bytes:
        if digest in unsaved and not holds(digest):
            return Path(os.fsdecode(unsaved[digest])).read_bytes()
        return store.folders.read(digest)

    return read, has
