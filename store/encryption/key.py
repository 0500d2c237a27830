"""The key that a store is encrypted under: where it is read from, and the keys derived from it.

A key is 32 random bytes, written as base64 or hex. It is read from a file that nobody else may read, or from the environment,
which takes precedence. Each purpose uses a key of its own, derived from it (HKDF, SHA-256).
"""

import base64
import binascii
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...config.schema import KEY_VARIABLE
from ..errors import StoreError

VARIABLE = KEY_VARIABLE
KEY_BYTES = 32
ID_BYTES = 8
_FORM = f"{KEY_BYTES} bytes as base64 (44 characters) or hex (64 characters)"
_MAKE = "`playhead rekey --new-key FILE` makes a key"
_FILE_BYTES = 4096
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class NoKey(StoreError):
    """Where a key was said to be, there is none."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """A key, and where it was found."""

    secret: bytes = field(repr=False)
    where: str

    def derive(self, purpose: str) -> bytes:
        """Derive the 32 bytes that are used for a purpose."""
        # Read here: who has no key does not wait for it.
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        kdf = HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=b"playhead " + purpose.encode())
        return kdf.derive(self.secret)

    @property
    def check(self) -> bytes:
        """32 bytes that tell this key from another, and nothing about it."""
        return self.derive("check")

    @property
    def id(self) -> bytes:
        """What names this key in everything that was encrypted with it."""
        return self.check[:ID_BYTES]


def find_key(file: Path | None, environ: Mapping[str, str]) -> StoreKey | None:
    """Find the key: in the environment, or in the file that was configured.

    Raises: StoreError, where it cannot be read, is none, or others may read its file.
    """
    if text := environ.get(VARIABLE):
        return StoreKey(_parse(text, VARIABLE), VARIABLE)
    return read_key(file) if file is not None else None


def read_key(file: Path) -> StoreKey:
    """Read a key from its file.

    Raises: StoreError.
    """
    try:
        with open(file, "rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            data = opened.read(_FILE_BYTES)
    except OSError as error:
        raise NoKey(
            f"cannot read the encryption key {str(file)!r}: {error.strerror or error}", _MAKE
        ) from error
    if mode & 0o077:
        raise StoreError(
            f"the encryption key {str(file)!r} has mode {mode:04o}; expected 0600, or less",
            f"others may have read it: chmod 600 {file}, or make another key and `playhead rekey`",
        )
    return StoreKey(_parse(data.decode("latin-1"), repr(str(file))), str(file))


def make_key_file(file: Path) -> StoreKey:
    """Write a new random key into a file that must not exist.

    Raises: StoreError.
    """
    secret = secrets.token_bytes(KEY_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as opened:
            opened.write(base64.b64encode(secret) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise StoreError(
            f"cannot write a key into {str(file)!r}: {error.strerror or error}",
            "name a file that does not exist, in a folder that can be written",
        ) from error
    return StoreKey(secret, str(file))


def _parse(text: str, where: str) -> bytes:
    """Parse a key; what is no key is not shown."""
    text = text.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise NoKey(
            f"{where} holds no encryption key: expected {_FORM}, found {len(text)} characters",
            _MAKE,
        )
    return secret
