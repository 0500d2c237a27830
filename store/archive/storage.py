"""The location of an archive: a folder, or a part of an S3-compatible bucket.

Rules:

1. A file is there whole or not at all. In a folder it is written under a name that ends in `.part`, flushed, and
   renamed; in a bucket an object appears when all of it was sent.
2. No file is written twice: each has a name of its own.
3. Credentials are the environment's, as pyarrow finds them; they are in no error.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from ...config.archive_url import ArchivePlace
from ..errors import StoreError, StoreUnwritable
from ..spill.partial_file import make_folder, sync_folder
from .schema import STEPS

_SUFFIX = ".parquet"
_CONNECT_S, _REQUEST_S = 10.0, 60.0


class Place:
    """An open archive."""

    def __init__(self, place: ArchivePlace) -> None:
        """Prepare; nothing is asked of the place yet."""
        self.name = str(place)
        self._folder = place.folder
        self._root = (
            str(place.folder)
            if place.folder
            else "/".join(filter(None, (place.bucket, place.prefix)))
        )
        self._system: Any = fs.LocalFileSystem() if place.folder else _bucket(place)

    def prepare(self) -> None:
        """Make it, so that one whose disk is not there can be told from an empty one.

        Raises: StoreUnwritable.
        """
        if self._folder is not None:
            with self._told(STEPS, StoreUnwritable, "written"):
                make_folder(self._folder / STEPS)

    @contextlib.contextmanager
    def writing(self, folder: str, batch: str) -> Iterator[Any]:
        """Write a file of a batch: gives something to write into; nothing is there unless all went well.

        Raises: StoreUnwritable.
        """
        with self._told(f"{folder}/{batch}", StoreUnwritable, "written"):
            if self._folder is not None:
                with _written(self._folder / folder / (batch + _SUFFIX)) as file:
                    yield file
            else:
                with self._sent(self._path(folder, batch)) as stream:
                    yield stream

    @contextlib.contextmanager
    def _sent(self, key: str) -> Iterator[Any]:
        stream = self._system.open_output_stream(key)
        try:
            yield stream
            stream.close()
        except BaseException:
            # A stream can only be closed, which makes an object of what was sent so far.
            with contextlib.suppress(OSError, pa.ArrowException):
                stream.close()
            with contextlib.suppress(OSError, pa.ArrowException):
                self._system.delete_file(key)
            raise

    def open(self, folder: str, batch: str) -> Any:
        """Open a file for reading at any place in it.

        Raises: StoreError, where it is not there or cannot be read.
        """
        with self._told(f"{folder}/{batch}", StoreError, "read"):
            return self._system.open_input_file(self._path(folder, batch))

    def sizes(self, batch: str, folders: tuple[str, ...]) -> dict[str, int]:
        """Give the length of each file of a batch that is there.

        Raises: StoreError.
        """
        with self._told(batch, StoreError, "looked for"):
            found = self._system.get_file_info([self._path(folder, batch) for folder in folders])
        return {
            folder: info.size
            for folder, info in zip(folders, found, strict=True)
            if info.type is fs.FileType.File
        }

    def remove(self, folder: str, batch: str) -> None:
        """Remove a file, and what was begun of it; one that is not there is gone.

        Raises: StoreUnwritable, also where the archive itself is not there.
        """
        with self._told(f"{folder}/{batch}", StoreUnwritable, "removed"):
            if self._folder is not None:
                (self._folder / STEPS).stat()
                path = self._folder / folder / (batch + _SUFFIX)
                for one in (path, _part(path)):
                    one.unlink(missing_ok=True)
                if path.parent.is_dir():
                    sync_folder(path.parent)
                return
            key = self._path(folder, batch)
            if self._system.get_file_info(key).type is not fs.FileType.NotFound:
                self._system.delete_file(key)

    def batches(self, folder: str) -> list[str]:
        """List the batches that have a file in a folder, in order.

        Raises: StoreError.
        """
        with self._told(folder, StoreError, "listed"):
            chosen = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
            found = self._system.get_file_info(chosen)
        names = (info.base_name for info in found if info.type is fs.FileType.File)
        return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))

    def _path(self, folder: str, batch: str) -> str:
        return f"{self._root}/{folder}/{batch}{_SUFFIX}"

    @contextlib.contextmanager
    def _told(self, what: str, kind: type[StoreError], verb: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise kind(
                f"{what} of the archive {self.name} cannot be {verb}: {_line(error)}",
                "is it there, and are the credentials in the environment those for it?"
                if self._folder is None
                else "does the folder exist, is it yours, and is there free space?",
            ) from error


def _bucket(place: ArchivePlace) -> Any:
    try:
        return fs.S3FileSystem(
            region=place.region or None,
            endpoint_override=place.endpoint or None,
            scheme=place.scheme,
            # A server of one's own answers by path, seldom by a host name for each bucket.
            force_virtual_addressing=False,
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
        )
    except (OSError, pa.ArrowException, ValueError) as error:
        raise StoreError(f"the archive {place} cannot be opened: {_line(error)}") from error


def _line(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split())[:300]


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


@contextlib.contextmanager
def _written(path: Path) -> Iterator[Any]:
    make_folder(path.parent)
    part = _part(path)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)
