"""What the result of a run depends on and can be seen before it: a run that was made with something else is not gone on with.

That is the configuration, the files that the command and the check name (their programs, scripts and other files among their words), and the
working folder without what is ignored. What they read elsewhere, the environment, and what answers cannot be seen.

Noted are hashes alone, also of names: a name is said by whoever finds it again.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from .... import __version__
from ....config import Config
from ....tape.diff.divergence_types import one_line
from ...folder.command_folders import find_area
from ...folder.file_contents import hash_all, hash_file
from ...folder.git import find_tracked_ignored
from ...folder.list_folder import look

_WITHOUT = (
    *("version", "mode", "listen", "store", "durability", "on_full", "ballast_mib", "ca_dir"),
    *("runs", "live_max", "limits", "retention", "encrypt", "control", "sink"),
)
"""Keys of the configuration that change nothing in what a run does, or that limit it."""
_MOST_BYTES = 256 << 20
"""A larger file is told by its size and time."""
_MOST_PATHS = 5000
"""Of a larger folder no single path is noted."""
_MOST_NAMED = 3
_FOLDER, _GONE = "the working folder", "a file that is gone"
_NOTES = b".done"
"""How the names of the files end that sweeps note their runs in."""
_BETWEEN_WORDS = re.compile(r"[\s;&|()<>]+")


def hash_parts(*parts: object, size: int = 12) -> str:
    """Give a hash of so many bytes, in hexadecimal, that tells these parts from others."""
    key = blake2b(digest_size=size)
    for part in parts:
        key.update(repr(part).encode("utf-8", "surrogateescape") + b"\0")
    return key.hexdigest()


class Inputs(NamedTuple):
    """What runs depend on."""

    digest: str
    """Tells all of it from another."""
    parts: Mapping[str, str]
    """By the hash of a name, the hash of what has it."""
    names: Mapping[str, str]
    """By the hash of a name, the name."""
    aside: frozenset[str] = frozenset()
    """Hashes of names that count in another way."""

    def find_changed(self, before: Mapping[str, str]) -> list[str]:
        """Find what is not as it was, by the hashes of names.

        Files that are new in the folder do not count: most are what somebody has written down meanwhile.
        before: the parts of then.
        """
        return [one for one, was in before.items() if one not in self.aside and self.parts.get(one) != was]  # fmt: skip

    def say_changed(self, before: Mapping[str, str] | None) -> str:
        """Name what is not as it was, as `agent.py and chk.sh changed`.

        before: the parts of then; None where they are unknown.
        """
        if before is None:
            return "it is not known with which files they were made"
        named = sorted({self.names.get(one, _GONE) for one in self.find_changed(before)})
        more = len(named) - _MOST_NAMED
        shown = [*named[:_MOST_NAMED], f"{more} more"] if more > 0 else named
        return f"{' and '.join(filter(None, [', '.join(shown[:-1]), *shown[-1:]]))} changed"


def read_inputs(
    config: Config,
    command: Sequence[str],
    check: Sequence[str] = (),
    known: Iterable[Path] = (),
) -> Inputs:
    """Read what runs of a command depend on, and those who judge them. Blocks.

    known: files whose content counts in another way.
    """
    left_out = {os.path.realpath(path) for path in known}
    found = {"Playhead itself": __version__, **dict(_list_config(config))}
    if config.files.replay != "in-place" and not config.files.keep_writes:
        # Otherwise each run changes the folder for the next.
        found |= _list_folder(config, left_out)
    for words in (command, check):
        for path in _find_files(words):
            if os.path.realpath(path) not in left_out:
                found[_show(path)] = _hash(path)
    names = {hash_parts(name, size=6): name for name in found}
    parts = {key: hash_parts(found[name], size=8) for key, name in names.items()}
    aside = frozenset(hash_parts(_show(path), size=6) for path in left_out)
    return Inputs(hash_parts(sorted(parts.items()), size=8), parts, names, aside)


def _list_config(config: Config) -> Iterator[tuple[str, str]]:
    for one in fields(config):
        if one.name not in _WITHOUT:
            yield f"{one.name} of the configuration", repr(_tell(getattr(config, one.name)))


def _tell(value: Any) -> Any:
    """Give a value that reads alike in each process."""
    if is_dataclass(value):
        return [(one.name, _tell(getattr(value, one.name))) for one in fields(value)]
    if isinstance(value, Mapping):
        return sorted((repr(key), _tell(one)) for key, one in value.items())
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    return [_tell(one) for one in value] if isinstance(value, list | tuple) else value


def _find_files(words: Sequence[str]) -> Iterator[str]:
    """Give the files that are named by words, also by those of a script among them, as `sh -c 'python check.py'`."""
    program = shutil.which(words[0]) if words else None
    if program is not None:
        yield program
    for word in words:
        inner = [word, word.partition("=")[2]]
        if _BETWEEN_WORDS.search(word):
            inner += _split(word)
        for one in filter(None, inner):
            with suppress(OSError, ValueError):
                if stat.S_ISREG(os.stat(one).st_mode):
                    yield one


def _split(word: str) -> list[str]:
    with suppress(ValueError):
        return [part for one in shlex.split(word) for part in _BETWEEN_WORDS.split(one)]
    return _BETWEEN_WORDS.split(word)


def _show(path: str) -> str:
    """Name a file from the folder that we are in, if it is in there."""
    path = os.path.abspath(path)
    with suppress(OSError, ValueError):
        inside = os.path.relpath(path)
        path = path if inside.startswith("..") else inside
    return one_line(path, 100)


def _hash(path: str) -> str:
    path = os.path.realpath(path)
    try:
        found = os.stat(path)
    except OSError:
        return ""
    digest = hash_file(os.fsencode(path)) if found.st_size <= _MOST_BYTES else b""
    return digest.hex() or f"{found.st_size} {found.st_mtime_ns}"


def _list_folder(config: Config, left_out: set[str]) -> dict[str, str]:
    """List the working folder; nothing where it is too large to be looked at in short time."""
    try:
        area = find_area(os.getcwd(), os.path.expanduser("~"))
        own = frozenset(map(os.path.realpath, (config.store, config.public_ca_dir)))
        found = look(area.folder, left_out=own, tracked=find_tracked_ignored(area.folder))
    except OSError:
        return {}
    if found.cut_by:
        return {}
    # What we say may go to a file in there.
    outputs = set(_find_outputs())
    entries = {
        path: entry
        for path, entry in found.entries.items()
        if b".git" not in path.split(b"/")
        and not entry.is_folder
        and entry.inode not in outputs
        and not path.endswith(_NOTES)
        and os.fsdecode(found.folder + b"/" + path) not in left_out
    }
    told: dict[str, str] = {}
    for path, entry in hash_all(found.folder, entries, most_bytes=_MOST_BYTES).items():
        content = entry.digest.hex() or f"{entry.size} {entry.modified_ns}"
        name = _show(os.fsdecode(found.folder + b"/" + path))
        told[name] = repr((entry.kind, entry.mode & 0o111, content, entry.target))
    return told if len(told) <= _MOST_PATHS else {_FOLDER: hash_parts(sorted(told.items()))}


def _find_outputs() -> Iterator[int]:
    """Give the inodes of the files that standard output and error go to."""
    for number in (1, 2):
        with suppress(OSError):
            found = os.fstat(number)
            if stat.S_ISREG(found.st_mode):
                yield found.st_ino
