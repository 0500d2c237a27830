r"""Body files that are encrypted in frames.

    b"PLAYHEAD BODY\1"  8 bytes of key id  16 bytes of salt
    frames: 64 KiB each but the last, encrypted, and 16 bytes of tag

Each file has a key of its own, derived from the store's key and the salt. A frame's nonce is its number and whether it is
the last frame. So a frame that is missing, or was moved within a file or to another file, is detected, and so is a file that
was cut short.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self, override

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ...tape.records.codec import BadRecord
from .cipher import ReadableFile, WritableFile
from .plain_files import write_all

FRAME_BYTES = 64 * 1024
_TAG_BYTES = 16
_MAGIC = b"PLAYHEAD BODY\1"
_SALT_BYTES = 16

FileCipher = Callable[[bytes], AESGCM]
"""Gives the cipher of a file for its salt."""


class EncryptedFile(WritableFile):
    """A file on its way into frames."""

    def __init__(self, descriptor: int, key_id: bytes, cipher: FileCipher) -> None:
        """Begin an empty one, which owns the descriptor from now on."""
        salt = os.urandom(_SALT_BYTES)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._cipher = cipher(salt)
        self._head = _MAGIC + key_id + salt
        self._frames = 0
        """How many are in the file."""
        self._rest = bytearray()
        """What is in none yet; never empty after a frame, since it may be the last one."""
        self._ended = False
        self._lock = threading.Lock()
        write_all(self._file, self._head)

    @override
    def put(self, data: bytes) -> None:
        with self._lock:
            self._rest += data
            while len(self._rest) > FRAME_BYTES:
                self._encrypt(bytes(self._rest[:FRAME_BYTES]), last=False)
                del self._rest[:FRAME_BYTES]

    @override
    def read(self, start: int, size: int) -> bytes:
        end = start + size
        found = []
        with self._lock:
            while start < end:
                frame, at = divmod(start, FRAME_BYTES)
                held = self._frame(frame)[at : at + end - start]
                if not held:
                    break
                found.append(held)
                start += len(held)
        return b"".join(found)

    @override
    def finish(self) -> None:
        with self._lock:
            if not self._ended:  # else making it durable had failed
                self._encrypt(bytes(self._rest), last=True)
                self._ended = True
            os.fsync(self._file.fileno())

    @override
    def close(self) -> None:
        self._file.close()

    def _encrypt(self, data: bytes, *, last: bool) -> None:
        write_all(self._file, self._cipher.encrypt(_nonce(self._frames, last), data, self._head))
        self._frames += 1

    def _frame(self, number: int) -> bytes:
        if number > self._frames - self._ended:
            return b""
        if number == self._frames - self._ended:
            return bytes(self._rest)
        size = FRAME_BYTES + _TAG_BYTES
        data = os.pread(self._file.fileno(), size, len(self._head) + number * size)
        try:
            return self._cipher.decrypt(_nonce(number, last=False), data, self._head)
        except InvalidTag as error:
            raise OSError(errno.EIO, "the written data cannot be read back") from error


class EncryptedReader(ReadableFile):
    """A file of frames that is read from its start."""

    def __init__(self, path: Path, key_id: bytes, cipher: FileCipher) -> None:
        """Open one.

        Raises: OSError; BadRecord.
        """
        self._file = open(path, "rb")  # noqa: SIM115  # closed by `__exit__`
        try:
            self._head = self._read_head(key_id)
            self._next = self._file.read(FRAME_BYTES + _TAG_BYTES)
        except BaseException:
            self._file.close()
            raise
        self._cipher = cipher(self._head[-_SALT_BYTES:])
        self._number = 0
        self._ended = False
        self._rest = b""

    @override
    def read(self, size: int, /) -> bytes:
        found = [self._rest]
        there = len(self._rest)
        while there < size and not self._ended:
            found.append(self._frame())
            there += len(found[-1])
        data = b"".join(found)
        self._rest = data[size:]
        return data[:size]

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _frame(self) -> bytes:
        encrypted, self._next = self._next, self._file.read(FRAME_BYTES + _TAG_BYTES)
        self._ended = not self._next
        try:
            data = self._decrypt(encrypted, last=self._ended)
        except InvalidTag:
            raise BadRecord(self._wrong(encrypted)) from None
        self._number += 1
        return data

    def _decrypt(self, encrypted: bytes, *, last: bool) -> bytes:
        return self._cipher.decrypt(_nonce(self._number, last), encrypted, self._head)

    def _wrong(self, encrypted: bytes) -> str:
        where = f"{self._file.name}, frame {self._number}"
        with contextlib.suppress(InvalidTag):
            self._decrypt(encrypted, last=False)
            return f"{where}: the file was cut short"
        return f"{where}: it fails authentication: it was changed or cut short"

    def _read_head(self, key_id: bytes) -> bytes:
        head = self._file.read(len(_MAGIC) + len(key_id) + _SALT_BYTES)
        found = head[len(_MAGIC) : -_SALT_BYTES]
        if not head.startswith(_MAGIC) or len(found) != len(key_id):
            raise BadRecord(f"{self._file.name} is not an encrypted file")
        if found != key_id:
            raise BadRecord(
                f"{self._file.name} is encrypted with key {found.hex()}, expected {key_id.hex()}"
            )
        return head


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")
