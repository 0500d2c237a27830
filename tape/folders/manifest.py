"""A manifest: what a folder holds at one moment, path by path.

Paths are bytes, relative, with slashes between their parts: names need not be UTF-8. A manifest is complete but for what it
names in `left_out`. Source of the kinds: inode(7).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ..records.codec import BadRecord, pack_map, unpack

DIGEST_BYTES = 32
SECRET = "secret"
"""Why the content of a file is not saved in which a rule of redaction finds something."""
_VERSION = 1


class Kind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    PIPE = "pipe"
    SOCKET = "socket"
    DEVICE = "device"


class Entry(NamedTuple):
    """One path."""

    kind: Kind
    mode: int
    """Permission bits, with set-uid, set-gid and sticky."""
    size: int = 0
    """Bytes of a file; 0 of everything else."""
    modified_ns: int = 0
    digest: bytes = b""
    """BLAKE3 of a file's content; empty where it is not known."""
    target: bytes = b""
    """Of a link."""
    inode: int = 0
    changed_ns: int = 0
    """Time of the last change of anything: with `inode` it tells on one machine whether a file was touched at all."""
    unsaved: str = ""
    """Why the content is not in the store, in one word or two; empty where it is, or nobody asked for it."""
    placeholders: tuple[tuple[int, int], ...] = ()
    """Where placeholders stand in the content, by first byte and size: the run was rewritten under rules that came later."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.kind is Kind.FOLDER

    def untouched_since(self, other: "Entry") -> bool:
        """Say whether this is the very file of another look, and nobody has touched it in between."""
        return self.inode != 0 and (
            self.kind,
            self.mode,
            self.size,
            self.modified_ns,
            self.inode,
            self.changed_ns,
        ) == (other.kind, other.mode, other.size, other.modified_ns, other.inode, other.changed_ns)


@dataclass(frozen=True, slots=True)
class GitState:
    """Where a repository stood."""

    head: str = ""
    """Commit; empty before the first one."""
    branch: str = ""
    """Empty where none is checked out."""
    dirty: tuple[str, ...] | None = ()
    """Files that differ from the commit, or are in none, as git names them; at most `MOST_DIRTY`. None where git did not say in time."""
    dirty_count: int = 0


MOST_DIRTY = 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds."""

    folder: bytes
    """Its path on its machine."""
    entries: Mapping[bytes, Entry] = field(default_factory=dict)
    left_out: Mapping[bytes, str] = field(default_factory=dict)
    """What nobody looked at, and why; a folder stands for all that is in it. At most `MOST_LEFT_OUT`."""
    left_out_count: int = 0
    omitted: int = 0
    """Entries beyond the limit, as far as they were counted: with one the manifest is not complete."""
    git: GitState | None = None
    """None where the folder is in no work tree."""
    saved: bool = False
    """Whether contents were to be saved."""
    rules: bytes = b""
    """By which rules it was decided what is a secret."""
    renamed: int = 0
    """Of the start: how many folders the command renamed since, once it has ended."""
    seq: int = 0
    """The exchange before which it was taken; 0 of the start."""
    imported: bool = False
    """Whether it came out of a tape file: whoever made that chose what it says."""
    unlisted: frozenset[bytes] = frozenset()
    """The folders that were not entered because a limit was reached, without a slash; empty of the folder itself. Older manifests
    have their number alone, as `omitted`."""
    cut_by: str = ""
    """Which limit that was, as the rest of a sentence that begins with "because"."""

    def knows(self, path: bytes) -> bool:
        """Say whether it is known if there was something at a path: it is not in a folder that was not listed."""
        if not self.omitted or path in self.entries:
            return True
        if not self.unlisted or b"" in self.unlisted:
            return False
        while (end := path.rfind(b"/")) > 0:
            path = path[:end]
            if path in self.unlisted:
                return False
        return True

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries.values())

    @property
    def file_count(self) -> int:
        """How many files there are."""
        return sum(entry.kind is Kind.FILE for entry in self.entries.values())


MOST_LEFT_OUT = 200


def pack_manifest(manifest: Manifest) -> bytes:
    """Pack a manifest."""
    git = manifest.git
    return pack_map(
        {
            "v": _VERSION,
            "folder": manifest.folder,
            "entries": [
                [path, entry.kind.value, *entry[1:]] for path, entry in manifest.entries.items()
            ],
            "left_out": [[path, why] for path, why in manifest.left_out.items()],
            "left_out_count": manifest.left_out_count,
            "omitted": manifest.omitted,
            "git": None
            if git is None
            else [
                git.head,
                git.branch,
                None if git.dirty is None else list(git.dirty),
                git.dirty_count,
            ],
            "saved": manifest.saved,
            "rules": manifest.rules,
            "renamed": manifest.renamed,
            "seq": manifest.seq,
            "imported": manifest.imported,
            "unlisted": sorted(manifest.unlisted),
            "cut_by": manifest.cut_by,
        }
    )


def unpack_manifest(data: bytes) -> Manifest:
    """Unpack a manifest. Raises: BadRecord."""
    value = unpack(data)
    try:
        if value["v"] != _VERSION:
            raise BadRecord(f"manifest of format {value['v']!r}; this version reads {_VERSION}")
        git = value["git"]
        return Manifest(
            folder=value["folder"],
            entries={row[0]: _entry(row[1:]) for row in value["entries"]},
            left_out=dict(value["left_out"]),
            left_out_count=value["left_out_count"],
            omitted=value["omitted"],
            git=None
            if git is None
            else GitState(git[0], git[1], None if git[2] is None else tuple(git[2]), git[3]),
            saved=value["saved"],
            rules=value["rules"],
            renamed=value["renamed"],
            seq=value["seq"],
            imported=value.get("imported", False),
            unlisted=frozenset(value.get("unlisted", ())),
            cut_by=value.get("cut_by", ""),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadRecord(f"no manifest: {error!r}") from error


class Step(NamedTuple):
    """How a manifest differs from the one before it, for savepoints: little where little has changed."""

    seq: int
    written: Mapping[bytes, Entry]
    gone: tuple[bytes, ...]
    unlisted: frozenset[bytes] | None = None
    """As of a manifest; None in older savepoints, which do not say it: then as in the manifest before."""
    omitted: int = 0
    cut_by: str = ""

    def apply(self, manifest: Manifest) -> Manifest:
        """Give the manifest after this step. What was not listed by then is in it as it was before."""
        told = self.unlisted is not None
        gone = frozenset(self.gone)
        kept = {path: entry for path, entry in manifest.entries.items() if path not in gone}
        return Manifest(
            manifest.folder,
            kept | dict(self.written),
            manifest.left_out,
            manifest.left_out_count,
            self.omitted if told else manifest.omitted,
            None,
            manifest.saved,
            manifest.rules,
            0,
            self.seq,
            manifest.imported,
            manifest.unlisted if self.unlisted is None else self.unlisted,
            self.cut_by if told else manifest.cut_by,
        )


def find_step(before: Manifest, after: Manifest, touched: Iterable[bytes] | None = None) -> Step:
    """Find how two manifests differ, down to the times of files. What the second one does not know stays as it was.

    touched: the paths of `after` that may differ; all, where it is not given.
    """
    had, has = before.entries, after.entries
    written = {
        path: has[path]
        for path in (has if touched is None else touched)
        if had.get(path) != has[path]
    }
    gone = had.keys() - has.keys()
    known = tuple(path for path in gone if after.knows(path))
    return Step(after.seq, written, known, after.unlisted, after.omitted, after.cut_by)


def pack_step(step: Step) -> bytes:
    """Pack a step."""
    rows = [[path, entry.kind.value, *entry[1:]] for path, entry in step.written.items()]
    told = {"v": _VERSION, "seq": step.seq, "written": rows, "gone": list(step.gone)}
    if step.unlisted is not None:
        told |= {
            "unlisted": sorted(step.unlisted),
            "omitted": step.omitted,
            "cut_by": step.cut_by,
        }
    return pack_map(told)


def unpack_step(data: bytes) -> Step:
    """Unpack a step. Raises: BadRecord."""
    value = unpack(data)
    try:
        written = {row[0]: _entry(row[1:]) for row in value["written"]}
        unlisted = value.get("unlisted")
        return Step(
            value["seq"],
            written,
            tuple(value["gone"]),
            None if unlisted is None else frozenset(unlisted),
            value.get("omitted", 0),
            value.get("cut_by", ""),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BadRecord(f"no savepoint: {error!r}") from error


def _entry(row: list[Any]) -> Entry:
    return Entry(Kind(row[0]), *row[1:])


def find_saved(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """Find the files whose contents are in the store, where contents were to be saved."""
    return {
        path: entry
        for path, entry in entries.items()
        if entry.kind is Kind.FILE and entry.digest and not entry.unsaved
    }


def read_rows(rows: Iterable[bytes]) -> Iterator[tuple[bytes, dict[bytes, Entry]]]:
    """Yield a packed manifest and the packed savepoints behind it, each with the files whose contents it is the first to have.

    Raises: BadRecord.
    """
    saved = False
    for number, packed in enumerate(rows):
        if number == 0:
            manifest = unpack_manifest(packed)
            saved, entries = manifest.saved, manifest.entries
        else:
            entries = unpack_step(packed).written
        yield packed, find_saved(entries) if saved else {}


_LIKE_AN_ESCAPE = re.compile(r"\\(?=x[0-9a-f]{2})")


def show_path(path: bytes) -> str:
    """Write a path as text: bytes that are not UTF-8, or would break a line or a terminal, as escapes. No two paths have the same text."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    text = _LIKE_AN_ESCAPE.sub(r"\\x5c", text)
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


_MOST_NAMED = 3


def say_unlisted(*manifests: Manifest, redact: Callable[[bytes], bytes] = bytes) -> str:
    """Say which folders were not listed, and why, as a sentence without a stop; empty where all of them were.

    redact: takes secrets out of a path.
    """
    cut = [one for one in manifests if one.omitted]
    if not cut:
        return ""
    paths = sorted(frozenset[bytes]().union(*(one.unlisted for one in cut)))
    named = [f"{show_path(redact(path)) if path else '.'}/" for path in paths[:_MOST_NAMED]]
    more = max(len(paths), *(one.omitted for one in cut)) - len(named)
    what = ", ".join(named)
    if more > 0:
        what = f"{what} and {more} more folders" if named else f"{more} folders"
    why = next((f", because {one.cut_by}" for one in cut if one.cut_by), "")
    return f"{what} {'is' if len(named) == 1 and more <= 0 else 'are'} not listed{why}"
