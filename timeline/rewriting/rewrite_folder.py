"""Rewrite what is stored of a working folder: manifests, savepoints and the contents of files.

A placeholder stands where a secret stood, in a content as in a name, and the manifest has where: so a savepoint can still be
restored, and whoever does is told. An object of git, and an index, would no longer be what they are named or checked by: they go.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from blake3 import blake3

from ...store.tables.folders import Content
from ...tape.folders.git_objects import inflate_object, is_in_objects
from ...tape.folders.hide_secret_names import rename_head, rename_step
from ...tape.folders.manifest import (
    SECRET,
    Entry,
    Manifest,
    find_saved,
    pack_manifest,
    pack_step,
    show_path,
    unpack_manifest,
    unpack_step,
)

_INDEX = b".git/index"
_NAME = "folder"
_PLACE = "file"


_Place = tuple[str, str]


class Redacts(Protocol):
    """Applies the rules of now; a `Rewriter`."""

    def text(self, data: bytes) -> bytes:
        """Give any text without its secrets."""

    def stored_text(self, text: str, place: str) -> tuple[str, Sequence[_Place]]:
        """Give a text that is stored, and what changes."""

    def file(
        self, data: bytes, placeholders: Iterable[tuple[int, int]], place: str
    ) -> tuple[bytes, tuple[tuple[int, int], ...], Sequence[_Place]]:
        """Give the content of a file, where placeholders stand in it, and what changes."""


class Row(NamedTuple):
    """A manifest or savepoint under the rules of now."""

    packed: bytes
    contents: list[Content]
    """That it needs; with their bytes where the store does not have them."""


class _Made(NamedTuple):
    """A content under the rules of now."""

    digest: bytes
    """Empty where it cannot stay."""
    placeholders: tuple[tuple[int, int], ...]
    data: bytes
    """Empty where it is as it was."""
    rules: tuple[str, ...]


class FolderRewriter:
    """Rewrites the rows of one run, in order."""

    def __init__(
        self,
        read: Callable[[bytes], bytes],
        holds: Callable[[bytes], bool],
        rewriter: Redacts,
    ) -> None:
        """Begin.

        read, holds: of contents, by their hashes.
        """
        self._read = read
        self._holds = holds
        self._rewriter = rewriter
        self._made: dict[tuple[bytes, bool], _Made] = {}
        self._saved = False
        self.places: dict[_Place, None] = {}
        """Of what changes: where, and by which rule."""
        self.changed = 0
        """How many paths or files."""

    def row(self, number: int, packed: bytes) -> Row:
        """Give a row under the rules of now; the very bytes where nothing changes. Raises: BadRecord; StoreError."""
        before = self.changed
        if number == 0:
            manifest = unpack_manifest(packed)
            self._saved = manifest.saved
            manifest = self._manifest(manifest)
            entries, contents = self._entries(manifest.entries)
            made = pack_manifest(replace(manifest, entries=entries))
        else:
            step = unpack_step(packed)
            names = self._names([*step.gone, *(step.unlisted or ())])
            entries, contents = self._entries(step.written)
            made = pack_step(rename_step(step, names)._replace(written=entries))
        return Row(made if self.changed > before else packed, contents)

    def _manifest(self, manifest: Manifest) -> Manifest:
        names = self._names([manifest.folder, *manifest.left_out, *manifest.unlisted])
        return rename_head(manifest, names, self._text)

    def _entries(self, entries: Mapping[bytes, Entry]) -> tuple[dict[bytes, Entry], list[Content]]:
        links = {entry.target for entry in entries.values() if entry.target}
        names = self._names([*entries, *links])
        saved = find_saved(entries) if self._saved else {}
        made: dict[bytes, Entry] = {}
        contents: dict[bytes, Content] = {}
        for path, entry in entries.items():
            now = entry
            if path in saved and self._holds(entry.digest):
                now, content = self._content(path, entry)
                if content is not None:
                    contents.setdefault(content.digest, content)
            if now.target in names:
                now = now._replace(target=names[now.target], inode=0)
            if path in names:
                now = now._replace(inode=0)
            made[names.get(path, path)] = now
        return made, list(contents.values())

    def _content(self, path: bytes, entry: Entry) -> tuple[Entry, Content | None]:
        whole = is_in_objects(path) or path.endswith(_INDEX)
        made = self._made.get((entry.digest, whole))
        if made is None:
            made = self._make(path, entry, whole=whole)
            self._made[entry.digest, whole] = made
        if made.digest == entry.digest:
            return entry, Content(entry.digest)
        self.changed += 1
        for rule in made.rules:
            self.places[f"{_PLACE} {show_path(path)}", rule] = None
        if not made.digest:
            return entry._replace(unsaved=SECRET), None
        # With another inode than any it is never taken for the file that was there.
        now = entry._replace(digest=made.digest, placeholders=made.placeholders, inode=0)
        return now, Content(made.digest, made.data)

    def _make(self, path: bytes, entry: Entry, *, whole: bool) -> _Made:
        data = self._read(entry.digest)
        if is_in_objects(path):
            inflated = inflate_object(data)
            if inflated is None:
                return _Made(entry.digest, (), b"", ())
            data = inflated
        data, spans, places = self._rewriter.file(data, entry.placeholders, _PLACE)
        if not places:
            return _Made(entry.digest, entry.placeholders, b"", ())
        rules = tuple(dict.fromkeys(rule for _, rule in places))
        if whole:
            return _Made(b"", (), b"", rules)
        return _Made(blake3(data).digest(), spans, data, rules)

    def _names(self, paths: Iterable[bytes]) -> dict[bytes, bytes]:
        """Give those of some paths that change, with what they become."""
        paths = list(paths)
        found = {}
        joined = b"\n".join(paths)
        if joined and self._rewriter.text(joined) == joined:
            return {}
        for path in paths:
            text = os.fsdecode(path)
            now = self._text(text)
            if now != text:
                found[path] = os.fsencode(now)
        return found

    def _text(self, text: str) -> str:
        now, places = self._rewriter.stored_text(text, _NAME)
        for one in places:
            self.places[one] = None
        if not places:
            return text
        self.changed += 1
        return now
