"""The cipher of a store without a key, which leaves rows and body files as they are."""

from pathlib import Path
from typing import override

from .cipher import ReadableFile, StoreCipher, WritableFile, body_folder
from .plain_files import PlainFile


class PlainCipher(StoreCipher):
    """The cipher of a store without a key: nothing changes, at no cost."""

    check = b""

    @property
    @override
    def folder(self) -> str:
        return body_folder(self.check)

    @override
    def stored_key(self, table: str, key: bytes) -> bytes:
        return key

    @override
    def plain_key(self, table: str, place: bytes) -> bytes:
        return place

    @override
    def encrypt(self, table: str, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        return key, value

    @override
    def decrypt(self, table: str, place: bytes, data: bytes) -> bytes:
        return data

    @override
    def decrypt_row(self, table: str, place: bytes, data: bytes) -> tuple[bytes, bytes]:
        return place, data

    @override
    def body_name(self, digest: bytes) -> str:
        return digest.hex()

    @override
    def begin_file(self, descriptor: int) -> WritableFile:
        return PlainFile(descriptor)

    @override
    def open_file(self, path: Path) -> ReadableFile:
        return open(path, "rb")
