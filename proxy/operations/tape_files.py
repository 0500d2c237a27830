"""`playhead export` and `playhead import`: runs as files."""

import contextlib
import io
import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ...config import Config
from ...store import RunInfo, Store, StoreError
from ...store.paths import LOG
from ...tape.records.codec import BadRecord
from ...tape.records.tape_file import MAGIC, Kind, read_records
from ...tape.shell_words import shell_word
from ...timeline.formats.tape_file import Progress, export_tape, import_tape, read_row
from ..progress import ProgressBar
from ..standard_streams import print_status
from ..trust.atomic_files import advise_on_target, temporary_sibling
from ..trust.redaction_and_receipt_keys import open_redaction_key
from .find_tape import redactor_of, say_what_was_there
from .import_jsonl import Imported, LineImport, import_lines
from .open_store import open_store
from .restore_archived import restore_runs

Export = Callable[[Store, RunInfo, Callable[[bytes], object], Progress], list[RunInfo]]
"""Writes a run in some format; gives the runs that were written."""
_READ_BYTES = 1 << 20
_PEEKED_BYTES = 64
_OWN_TITLE = b" - Playhead</title>"
"""Of each page of `playhead export --html`, among its first bytes."""
_HTML = re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_HAR = re.compile(rb'\{\s*"log"\s*:')
_HAR_HINT = "write its entries as JSON lines (docs/import.md) for: playhead import --jsonl FILE; or record the agent"
_EXPECTED = "expected a file of `playhead export RUN --tape FILE`, or with --jsonl one of exchanges"


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
        if str(source) == "-":
            raise StoreError(
                "a tape is read twice, and standard input can be read once",
                f"give a file: {_EXPECTED}",
            )
        begin = _peek(file)
        _refuse_page(source, begin)
        if _is_har(begin):
            raise StoreError(
                f"{str(source)!r} is no tape; it looks like a HAR file, which is not imported",
                _HAR_HINT,
            )
        if begin[:1] == b"{":
            raise StoreError(
                f"{str(source)!r} is no tape; it looks like exchanges as JSON lines",
                f"nothing was imported; import them with: playhead import --jsonl {shell_word(str(source))}",
            )
        if not MAGIC.startswith(begin[: len(MAGIC)]) or not begin:
            what = "it is empty" if not begin else "it does not begin as one"
            raise StoreError(
                f"{str(source)!r} is no tape: {what}; {_EXPECTED}", "nothing was imported"
            )
    with open_store(config) as store:
        with ProgressBar("importing") as progress:
            made = import_tape(store, lambda: _pieces(source), limit_bytes, progress)
        wanted = _read_first_name(source)
        _say_what_was_there(store, [(wanted, one) for one in made[:1]])
        return made


def _say_what_was_there(store: Store, made: Iterable[tuple[str, RunInfo]]) -> None:
    for wanted, info in made:
        if text := say_what_was_there(store, wanted, info):
            print_status(text)


def _read_first_name(source: Path) -> str:
    """Read the name of the first run of a tape file."""
    first = next(read_records(_pieces(source)))
    return str(read_row(first.data).id)


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
        _refuse_other_than_lines(source, _peek(file))
        total = 0 if standard else source.stat().st_size
        key = open_redaction_key(config.store)

        with open_store(config) as store, store.ingest() as ingest:
            into = LineImport(store, ingest, config, lambda: redactor_of(config, key), default)
            made = import_lines(file, into, lambda done: progress(done, total))
            _say_what_was_there(store, [(one.name, one.run) for one in made])
            return made


def _peek(file: BinaryIO) -> bytes:
    """Give what a file begins with, from its first character on; the file can be read from its begin."""
    if not isinstance(file, io.BufferedReader):
        return b""
    return file.peek(_PEEKED_BYTES).removeprefix(BOM_UTF8).lstrip()


def _is_har(begin: bytes) -> bool:
    return _HAR.match(begin) is not None


def _refuse_page(source: Path, begin: bytes) -> None:
    """Refuse a page, be it an export or, as a download that failed often is, any other. Raises: StoreError."""
    if begin[:1] != b"<":
        return
    name = repr(str(source))
    if _OWN_TITLE in begin:
        raise StoreError(
            f"{name} looks like a page, as `playhead export --html` makes one to be read",
            "nothing was imported; ask for a tape, from: playhead export RUN --tape FILE",
        )
    what = "an HTML page" if _HTML.match(begin) else "XML or HTML"
    if source.suffix.lower() == ".har":
        raise StoreError(
            f"{name} looks like {what}, and no HAR file, which would not be imported either",
            _HAR_HINT,
        )
    raise StoreError(
        f"{name} looks like {what}, as a download gives one in the place of a file",
        f"nothing was imported; open it to see what it says, and get the file again: {_EXPECTED}",
    )


def _refuse_other_than_lines(source: Path, begin: bytes) -> None:
    """Refuse what has no lines of JSON, by what it is; the words for its first line would not say. Raises: StoreError."""
    _refuse_page(source, begin)
    if _is_har(begin):
        raise StoreError(f"{str(source)!r} looks like a HAR file, which is not imported", _HAR_HINT)
    if begin.startswith(MAGIC):
        raise StoreError(
            f"{str(source)!r} looks like a tape, which has no lines of JSON",
            f"import it without --jsonl: playhead import {shell_word(str(source))}",
        )


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    if str(source) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = source.open("rb")
    except IsADirectoryError:
        if (source / LOG).exists():
            raise StoreError(
                f"{str(source)!r} is a store, and no file",
                f"look at it with --store {shell_word(str(source))}, or export a run of it: playhead export RUN --tape FILE",
            ) from None
        raise StoreError(f"{str(source)!r} is a folder", _EXPECTED) from None
    except OSError as error:
        raise StoreError(
            f"cannot read {str(source)!r}: {error.strerror or error}", _EXPECTED
        ) from error
    with file:
        yield file


def _pieces(source: Path) -> Iterator[bytes]:
    with _opened(source) as file:
        while piece := file.read(_READ_BYTES):
            yield piece
