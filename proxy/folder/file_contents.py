"""Hash and read files that nobody has touched since they were listed; keep out of the store what it must not hold.

A file counts as read only if it is before and after reading what was listed. Its hash is remembered for the next look, unless
the file was changed so short a time ago that a further change would not show in its times.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from blake3 import blake3

from ...store.tables.folders import Content
from ...tape.folders.git_objects import inflate_object, is_in_objects
from ...tape.folders.manifest import SECRET, Entry, Kind
from ..determinism.read_untrusted_file import open_agent_file
from .list_folder import entry_of

_PIECE_BYTES = 1 << 20
_SECRET_NAME = re.compile(
    rb"(?i)/(?:run/secrets/[^/]+|[._]?(?:vault[._-]?pass(?:word)?|pgpass|netrc|git-credentials|htpasswd)(?:\.(?:txt|conf))?|"
    rb"\.[\w-]*(?:token|password|passwd|passphrase|secret)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|"
    rb"[^/]*\.(?:key|p12|pfx|jks|keystore|kdbx|ppk)|[^/]*key\.der|(?:[^/]*[._-])?(?:credentials|accesskeys)\.csv)\Z"
)
"""Files that tools keep a secret in: passwords of Ansible's vault, keys of Rails, of SSH and TLS, secrets of Docker, keys that AWS gives out."""
_TICK_NS = 20_000_000
"""Times of files are up to a tick of the kernel behind the clock."""
_MOST_HASHED = 256 << 20
UNREADABLE, TOO_LARGE, TOO_MANY = "unreadable", "too large", "beyond the limit"
PACK, CHANGED = "a pack of git", "changed meanwhile"


class SaveLimits(NamedTuple):
    """How much content is saved."""

    file_bytes: int = 16 << 20
    all_bytes: int = 512 << 20


def hash_file(path: bytes) -> bytes:
    """Give the hash of a file, 32 bytes; empty where it cannot be read. No link is followed."""
    try:
        with open_agent_file(path) as held:
            found = blake3()
            while piece := os.read(held, _PIECE_BYTES):
                found.update(piece)
            return found.digest()
    except OSError:
        return b""


def read_listed(path: bytes, entry: Entry) -> bytes | None:
    """Read a file that was listed; None where it is not what was listed any more. Raises: OSError."""
    with open_agent_file(path) as held:
        if not _is_same(held, entry):
            return None
        parts = []
        while piece := os.read(held, max(_PIECE_BYTES, entry.size + 1)):
            parts.append(piece)
        data = b"".join(parts)
        return data if len(data) == entry.size and _is_same(held, entry) else None


def _is_same(held: int, entry: Entry) -> bool:
    now = entry_of(os.fstat(held))
    return (now.inode, now.changed_ns, now.size) == (entry.inode, entry.changed_ns, entry.size)


def hash_all(
    folder: bytes,
    entries: Mapping[bytes, Entry],
    *,
    most_bytes: int = 256 << 20,
    until: Callable[[], bool] = lambda: False,
) -> dict[bytes, Entry]:
    """Give entries with the hashes of files that had none, as far as the limits go. Blocks.

    until: asked between files whether to stop.
    """
    found = dict(entries)
    size = 0
    for path, entry in entries.items():
        if entry.kind is not Kind.FILE or entry.digest:
            continue
        size += entry.size
        if size > most_bytes or until():
            break
        found[path] = _hash_listed(folder + b"/" + path, entry)
    return found


def _hash_listed(path: bytes, entry: Entry) -> Entry:
    try:
        data = read_listed(path, entry) if entry.size <= _PIECE_BYTES else None
        digest = blake3(data).digest() if data is not None else b""
        if entry.size > _PIECE_BYTES:
            digest = hash_file(path)
            now = entry_of(os.lstat(path))
            if (now.inode, now.changed_ns) != (entry.inode, entry.changed_ns):
                digest = b""
    except OSError:
        return entry
    return remembered(entry._replace(digest=digest)) if digest else entry


def remembered(entry: Entry) -> Entry:
    """Give an entry that is not taken for untouched later where a change could have gone unseen."""
    if entry.changed_ns > time.time_ns() - _TICK_NS:
        return entry._replace(inode=0)
    return entry


class Saver:
    """Reads the files of a folder whose contents the store lacks, and says of each other one why it is not saved."""

    def __init__(
        self,
        folder: bytes,
        holds: Callable[[bytes], bool],
        redact: Callable[[bytes], bytes],
        limits: SaveLimits,
        *,
        trusted: bool = False,
    ) -> None:
        """Prepare.

        holds: whether the store has a content, by its hash.
        redact: takes secrets out of a text; what it changes is not saved.
        trusted: whether what is known of entries was decided by the rules of now.
        """
        self._folder = folder
        self._holds = holds
        self._redact = redact
        self._limits = limits
        self._trusted = trusted
        self._size = 0
        self.entries: dict[bytes, Entry] = {}
        """Those that were gone through, with hash, and with why not."""

    def read(self, entries: Mapping[bytes, Entry]) -> Iterator[Content]:
        """Yield the contents that are to be in the store, and note every entry. Blocks."""
        for path, entry in entries.items():
            if entry.kind is not Kind.FILE:
                why = "" if entry.kind in (Kind.FOLDER, Kind.LINK) else "no file"
                self.entries[path] = entry._replace(unsaved=why)
                continue
            known = self._trusted and bool(entry.digest)
            if known and not entry.unsaved and self._holds(entry.digest):
                self.entries[path] = entry
                yield Content(entry.digest, b"")
                continue
            made, data = self._read(path, entry)
            self.entries[path] = made
            if data is not None:
                yield Content(made.digest, data)

    def _read(self, path: bytes, entry: Entry) -> tuple[Entry, bytes | None]:
        if self._trusted and entry.unsaved == SECRET and entry.digest:
            return entry, None
        if why := self._find_limit(path, entry):
            if (
                not entry.digest and entry.size <= _MOST_HASHED
            ):  # so that it is known when it is seen again
                entry = _hash_listed(self._folder + b"/" + path, entry)
            return entry._replace(unsaved=why), None
        try:
            data = read_listed(self._folder + b"/" + path, entry)
        except OSError:
            return entry._replace(unsaved=UNREADABLE), None
        if data is None:
            return entry._replace(unsaved=CHANGED, digest=b"", inode=0), None
        entry = remembered(entry._replace(digest=blake3(data).digest(), unsaved=""))
        if self._is_secret(path, data):
            return entry._replace(unsaved=SECRET), None
        self._size += len(data)
        return entry, data

    def _find_limit(self, path: bytes, entry: Entry) -> str:
        if entry.size > self._limits.file_bytes:
            return TOO_LARGE
        if self._size + entry.size > self._limits.all_bytes:
            return TOO_MANY
        # Of what is in a pack only git can say what it holds.
        return PACK if is_in_objects(path) and path.endswith(b".pack") else ""

    def _is_secret(self, path: bytes, data: bytes) -> bool:
        if data and is_named_as_secret(path):
            return True
        if is_in_objects(path):
            inflated = inflate_object(data)
            if inflated is None:
                return True
            data = inflated
        return bool(data) and self._redact(data) != data


def is_named_as_secret(path: bytes) -> bool:
    """Say whether a file holds nothing but a secret by its name, whatever the secret looks like. A `.pem` is told by its content: most are certificates."""
    return _SECRET_NAME.search(b"/" + path) is not None
