"""Keys of the store that agents must not read: `<store>/private`, 0700, files 0600."""

import contextlib
import os
import secrets
from pathlib import Path

from ..errors import EngineError
from .atomic_files import temporary_sibling, write_new

KEY_FILE = "redaction.key"
_KEY_BYTES = 32


def open_redaction_key(store: Path) -> bytes:
    """Open the key that placeholders are made with, made on first use; 32 bytes.

    Raises: EngineError, when it can be neither read nor made.
    """
    folder = store / "private"
    path = folder / KEY_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            temporary = temporary_sibling(path)
            write_new(temporary, secrets.token_bytes(_KEY_BYTES), 0o600)
            try:
                # A link instead of a rename: of several processes that start at once one wins.
                with contextlib.suppress(FileExistsError):
                    os.link(temporary, path)
            finally:
                temporary.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise EngineError(
            f"cannot read or make the redaction key {str(path)!r}: {error.strerror or error}",
            "Make the store's folder writable, or name another with --store.",
        ) from error
    if len(key) != _KEY_BYTES:
        raise EngineError(
            f"the redaction key {str(path)!r} holds {len(key)} bytes; expected {_KEY_BYTES}",
            "Move it away: a new one is made, and secrets get other placeholders from then on.",
        )
    return key
