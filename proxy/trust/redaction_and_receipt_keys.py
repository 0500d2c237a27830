"""Keys of the store that agents must not read: `<store>/private`, 0700, files 0600."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from ...store import make_own_folder, require_own_contents
from ...store.paths import PRIVATE, RECEIPT_KEY, REDACTION_KEY
from ..errors import EngineError
from .atomic_files import temporary_sibling, write_new

KEY_BYTES = 32


def open_private(store: Path) -> Path:
    """Give the folder of what nobody else may see, made on first use.

    Raises: StoreError, where it is a link or another user's; OSError.
    """
    folder = store / PRIVATE
    require_own_contents(folder)
    make_own_folder(folder)
    return folder


def open_redaction_key(store: Path) -> bytes:
    """Open the key that placeholders are made with, made on first use; 32 bytes.

    Raises: EngineError, when it can be neither read nor made; StoreError, where its folder is not this user's own.
    """
    return _open_key(
        store,
        REDACTION_KEY,
        "the redaction key",
        "Move it away: a new one is made, and secrets get other placeholders from then on.",
    )


def open_receipt_key(store: Path) -> bytes:
    """Open the key that receipts are signed with, made on first use; 32 bytes.

    Raises: EngineError, when it can be neither read nor made; StoreError, where its folder is not this user's own.
    """
    return _open_key(
        store,
        RECEIPT_KEY,
        "the key of receipts",
        "Move it away: a new one is made, and receipts that were signed before cannot be checked any more.",
    )


def find_receipt_key(store: Path) -> bytes | None:
    """Give the key that receipts are signed with; None where the store has none, or this user may not read it.

    Raises: EngineError, where it is none; StoreError, where its folder is not this user's own.
    """
    return _find_key(store, RECEIPT_KEY, "the key of receipts")


def find_redaction_key(store: Path) -> bytes | None:
    """Give the key that placeholders are made with; None where the store has none, or this user may not read it.

    Raises: as `find_receipt_key`.
    """
    return _find_key(store, REDACTION_KEY, "the redaction key")


def _find_key(store: Path, name: str, what: str) -> bytes | None:
    require_own_contents(store / PRIVATE)
    try:
        key = _read_closed(store / PRIVATE / name)
    except OSError:
        return None
    if len(key) != KEY_BYTES:
        raise EngineError(
            f"{what} in {str(store / 'private')!r} holds {len(key)} bytes; expected {KEY_BYTES}",
            "Move it away: a new one is made with the next run.",
        )
    return key


def _read_closed(path: Path) -> bytes:
    """Read a key that nobody else may read or write.

    Raises: EngineError, where somebody else may; OSError.
    """
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise EngineError(
                f"the key {str(path)!r} is open to other users (mode {mode:04o}); expected 0600",
                "If nobody else can have read or changed it, close it (chmod 600); else move it away: a new one is made.",
            )
        return file.read()


def _open_key(store: Path, name: str, what: str, advice: str) -> bytes:
    path = store / PRIVATE / name
    try:
        open_private(store)
        if not path.exists():
            temporary = temporary_sibling(path)
            write_new(temporary, secrets.token_bytes(KEY_BYTES), 0o600)
            try:
                # A link instead of a rename: of several processes that start at once one wins.
                with contextlib.suppress(FileExistsError):
                    os.link(temporary, path)
            finally:
                temporary.unlink()
        key = _read_closed(path)
    except OSError as error:
        raise EngineError(
            f"cannot read or make {what} {str(path)!r}: {error.strerror or error}",
            "Make the store's folder writable, or name another with --store.",
        ) from error
    if len(key) != KEY_BYTES:
        raise EngineError(
            f"{what} {str(path)!r} holds {len(key)} bytes; expected {KEY_BYTES}", advice
        )
    return key
