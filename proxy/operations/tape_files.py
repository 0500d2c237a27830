"""`playhead export` and `playhead import`: runs as files."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ...config import Config
from ...store import RunInfo, Store, StoreError
from ...tape.records.codec import BadRecord
from ...tape.records.tape_file import Kind, read_records
from ...tape.shell_words import shell_word
from ...timeline.formats.tape_file import Progress, export_tape, import_tape, read_row
from ..progress import ProgressBar
from ..trust.atomic_files import advise_on_target, temporary_sibling
from ..trust.redaction_and_receipt_keys import open_redaction_key
from .find_tape import redactor_of
from .import_jsonl import Imported, LineImport, import_lines
from .open_store import open_store
from .restore_archived import restore_runs

Export = Callable[[Store, RunInfo, Callable[[bytes], object], Progress], list[RunInfo]]
"""Writes a run in some format; gives the runs that were written."""
_READ_BYTES = 1 << 20
_PEEKED_BYTES = 64


def export_run(
    config: Config, name: str, target: Path, export: Export = export_tape
) -> list[RunInfo]:
    """Write a run, as a tape with the one that it plays, into a file; nothing stands under its name before all of it is there.

    Raises: UnknownRun, RunOpen, LogCorrupt; StoreError, where the file is there already or cannot be written.
    """
    restore_runs(config, name)
    with open_store(config, readonly=True, as_recorded=True) as store:
        info = store.runs.get(name)
        if target.exists():
            raise StoreError(f"{str(target)!r} is there already", "name another file, or remove it")
        temporary = temporary_sibling(target)
        try:
            with (
                ProgressBar("exporting") as progress,
                open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
            ):
                runs = export(store, info, file.write, progress)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, target)
        except OSError as error:
            raise StoreError(
                f"cannot write {str(target)!r}: {error.strerror or error}", advise_on_target(target)
            ) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        return runs


def import_file(config: Config, source: Path, limit_bytes: int) -> list[RunInfo]:
    """Take the runs of a tape file into the store.

    Raises: StoreError, naming what is wrong with the file; nothing was imported then.
    """
    with _opened(source) as file:  # before a store is made for nothing
        begin = file.peek(_PEEKED_BYTES).lstrip() if isinstance(file, io.BufferedReader) else b""
        if begin[:1] == b"<":
            raise StoreError(
                f"{str(source)!r} is no tape; it looks like a page, as `playhead export --html` makes one to be read",
                "nothing was imported; ask for a tape, from: playhead export RUN --tape FILE",
            )
        if begin[:1] == b"{" and b'"log"' in begin[:200]:
            raise StoreError(
                f"{str(source)!r} is no tape; it looks like a HAR file, which is not imported",
                "write its entries as JSON lines (docs/import.md) for: playhead import --jsonl FILE; or record the agent",
            )
        if begin[:1] == b"{":
            raise StoreError(
                f"{str(source)!r} is no tape; it looks like exchanges as JSON lines",
                f"nothing was imported; import them with: playhead import --jsonl {shell_word(str(source))}",
            )
    with open_store(config) as store, ProgressBar("importing") as progress:
        return import_tape(store, lambda: _pieces(source), limit_bytes, progress)


def may_hold(source: Path, run: str) -> bool:
    """Look whether a tape file begins with this run; also true of one that cannot be read, which importing it tells.

    Raises: StoreError, where there is no such file.
    """
    try:
        first = next(read_records(_pieces(source)), None)
        return first is None or first.kind is not Kind.RUN or read_row(first.data).id == run
    except BadRecord:
        return True


def import_jsonl(config: Config, source: Path, run: str | None) -> list[Imported]:
    """Take exchanges from JSON lines into the store, as one run or many; `-` reads stdin.

    Raises: StoreError, naming the line that cannot be read; nothing was imported then.
    """
    standard = str(source) == "-"
    default = run or ("import" if standard else source.name.partition(".")[0] or "import")
    with _opened(source) as file, ProgressBar("importing") as progress:
        total = 0 if standard else source.stat().st_size
        key = open_redaction_key(config.store)

        with open_store(config) as store, store.ingest() as ingest:
            into = LineImport(store, ingest, config, lambda: redactor_of(config, key), default)
            return import_lines(file, into, lambda done: progress(done, total))


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    if str(source) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = source.open("rb")
    except OSError as error:  # a folder, too, is refused as it is opened
        raise StoreError(f"cannot read {str(source)!r}: {error.strerror or error}") from error
    with file:
        yield file


def _pieces(source: Path) -> Iterator[bytes]:
    with _opened(source) as file:
        while piece := file.read(_READ_BYTES):
            yield piece
