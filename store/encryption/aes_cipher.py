"""The cipher of an encrypted store: AES-256-GCM for values, keyed hashes for names.

An encrypted value is a marker byte and the output of AES-256-GCM, or of AES-256-GCM-SIV if the value is short (RFC 8452):

    0xE5  8 bytes of key id  12 random bytes  ciphertext and 16 bytes of tag
    0xE6  ciphertext and 16 bytes of tag

The table and the key of a row are authenticated with its value, so no value can be moved to another row. The nonce of a
short value is not stored: it is a keyed hash of table and key. So each row has a nonce of its own, and rewriting a row uses
that nonce again. GCM must not repeat a nonce; GCM-SIV is made for it, and reveals only whether the value is the same. A
counter or a time would not do as a nonce: a copy of a store can be written to as well as the store, with the same counts.
GCM-SIV takes ten times as long for large values, where 20 bytes do not matter. Keys of rows contain numbers, which stay
readable, and two kinds of content, which do not (`lmdb_keys.py`): a 16-byte hash of a request becomes one block of AES under a
key of its own; a name of a run, or an origin, becomes a keyed hash, and its text is stored in the encrypted value. May be
used from any thread.
"""

import os
import threading
from pathlib import Path
from typing import override

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV

from ...tape.records.codec import BadRecord
from ..lmdb_keys import BLOCK_AT, PLAIN_VALUES, TEXT_FROM
from .cipher import ReadableFile, StoreCipher, WritableFile, body_folder
from .encrypted_files import EncryptedFile, EncryptedReader
from .key import ID_BYTES, StoreKey

_MARKER = b"\xe5"
_SHORT_MARKER = b"\xe6"
_SHORT_BYTES = 2048
"""Up to here values are encrypted in their short form."""
_NONCE_BYTES = 12
_HEAD_BYTES = len(_MARKER) + ID_BYTES + _NONCE_BYTES
_BLOCK_BYTES = 16
_LENGTH_BYTES = 2


class AesCipher(StoreCipher):
    """The cipher of an encrypted store."""

    def __init__(self, key: StoreKey) -> None:
        self.check = key.check
        self.id = key.id
        self._values = AESGCM(key.derive("values"))
        self._short = AESGCMSIV(key.derive("short values"))
        self._nonces = key.derive("nonces")
        self._blocks = algorithms.AES(key.derive("hashes"))
        self._names = key.derive("names")
        self._files = key.derive("files")
        self._local = threading.local()

    @property
    @override
    def folder(self) -> str:
        return body_folder(self.check)

    @override
    def stored_key(self, table: str, key: bytes) -> bytes:
        at = BLOCK_AT.get(table)
        if at is not None:
            return key[:at] + self._hide(key[at : at + _BLOCK_BYTES]) + key[at + _BLOCK_BYTES :]
        at = TEXT_FROM.get(table)
        if at is not None:
            return key[:at] + blake3(table.encode() + b"\0" + key, key=self._names).digest()
        return key

    @override
    def plain_key(self, table: str, place: bytes) -> bytes:
        at = BLOCK_AT.get(table)
        if at is None:
            return place
        return place[:at] + self._show(place[at : at + _BLOCK_BYTES]) + place[at + _BLOCK_BYTES :]

    @override
    def encrypt(self, table: str, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        place = self.stored_key(table, key)
        if table in PLAIN_VALUES:
            return place, value
        if table in TEXT_FROM:
            value = len(key).to_bytes(_LENGTH_BYTES, "big") + key + value
        bound = _bound(table, place)
        if len(value) <= _SHORT_BYTES:
            return place, _SHORT_MARKER + self._short.encrypt(self._nonce(bound), value, bound)
        nonce = os.urandom(_NONCE_BYTES)
        return place, b"".join((_MARKER, self.id, nonce, self._values.encrypt(nonce, value, bound)))

    @override
    def decrypt(self, table: str, place: bytes, data: bytes) -> bytes:
        value = self._decrypt(table, place, data)
        return value if table not in TEXT_FROM else value[_text_end(value) :]

    @override
    def decrypt_row(self, table: str, place: bytes, data: bytes) -> tuple[bytes, bytes]:
        value = self._decrypt(table, place, data)
        if table not in TEXT_FROM:
            return self.plain_key(table, place), value
        end = _text_end(value)
        return value[_LENGTH_BYTES:end], value[end:]

    @override
    def body_name(self, digest: bytes) -> str:
        return blake3(digest, key=self._names).hexdigest()

    @override
    def begin_file(self, descriptor: int) -> WritableFile:
        return EncryptedFile(descriptor, self.id, self._file_cipher)

    @override
    def open_file(self, path: Path) -> ReadableFile:
        return EncryptedReader(path, self.id, self._file_cipher)

    def _file_cipher(self, salt: bytes) -> AESGCM:
        """Give the cipher of one file.

        salt: random, kept in the file.
        """
        return AESGCM(blake3(salt, key=self._files).digest())

    def _decrypt(self, table: str, place: bytes, data: bytes) -> bytes:
        if table in PLAIN_VALUES:
            return data
        bound = _bound(table, place)
        try:
            if data[:1] == _SHORT_MARKER:
                return self._short.decrypt(self._nonce(bound), data[1:], bound)
            if data[:1] != _MARKER or len(data) < _HEAD_BYTES:
                raise BadRecord("it is not encrypted, but the store is")
            key_id, nonce = data[1 : 1 + ID_BYTES], data[1 + ID_BYTES : _HEAD_BYTES]
            if key_id != self.id:
                raise BadRecord(
                    f"it is encrypted with key {key_id.hex()}, expected {self.id.hex()}"
                )
            return self._values.decrypt(nonce, data[_HEAD_BYTES:], bound)
        except InvalidTag as error:
            raise BadRecord(
                "it fails authentication: it was changed, or moved from another row"
            ) from error

    def _nonce(self, bound: bytes) -> bytes:
        """Give the nonce of a place, for what bears it twice."""
        return blake3(bound, key=self._nonces).digest(_NONCE_BYTES)

    def _hide(self, block: bytes) -> bytes:
        assert len(block) == _BLOCK_BYTES
        try:
            encryptor = self._local.encryptor
        except AttributeError:
            encryptor = self._local.encryptor = self._cipher().encryptor()
        return bytes(encryptor.update(block))

    def _show(self, block: bytes) -> bytes:
        return bytes(self._cipher().decryptor().update(block))

    def _cipher(self) -> "Cipher[modes.ECB]":
        # One block each, of what is a hash already: equal ones are to stay equal, so that they are found.
        return Cipher(self._blocks, modes.ECB())


def _text_end(value: bytes) -> int:
    return _LENGTH_BYTES + int.from_bytes(value[:_LENGTH_BYTES], "big")


def _bound(table: str, place: bytes) -> bytes:
    return b"%b\0%b" % (table.encode(), place)
