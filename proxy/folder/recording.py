"""What a recording keeps of its folder: what it held at the start, with its contents if they are asked for, and what was written.

Listing is quick, hashing is not: where contents are not saved, files are hashed while the command runs already. A file that the
command touches before that has no hash, and nothing is said of its content.
"""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from blake3 import blake3

from ... import __version__
from ...config import Config
from ...store import Store
from ...tape.folders.changes import (
    Change,
    FileEffect,
    find_changes,
    find_renamed_folders,
    is_of_git,
    only_sure,
)
from ...tape.folders.hide_secret_names import hide_manifest, hide_step
from ...tape.folders.manifest import Entry, Kind, Manifest, Step, say_unlisted, show_path
from .command_folders import Area
from .file_contents import SaveLimits, Saver, hash_all, hash_file
from .git import find_git_state, find_tracked_ignored
from .left_out_paths import look_closer
from .list_folder import Limits, Listing, find_birth_ns, look

_LISTING_S = 0.5
_SAVING_S = 20.0
_HASHING_S = 0.5
"""Longest wait for hashes once the command has ended."""
_TICK_NS = 20_000_000
"""Times of folders are up to a tick of the kernel behind the clock."""
MOST_ROWS = 1000
_MOST_NAMED = 5


class FolderRecording:
    """The folder of one recording. `begin`, `finish` block: call them on a thread."""

    def __init__(
        self,
        store: Store,
        area: Area,
        config: Config,
        redact: Callable[[bytes], bytes],
        left_out: frozenset[str],
    ) -> None:
        """Prepare.

        redact: takes secrets out of a text.
        left_out: folders that are not the command's.
        """
        self.area = area
        self._within = area.find_within(os.getcwd())
        self.manifest = Manifest(os.fsencode(area.folder))
        self.saves = config.files.save or config.files.transaction
        self._store = store
        self._config = config
        self._redact = redact
        self._left_out = left_out
        self._tracked: frozenset[bytes] = frozenset()
        self._provisional: int | None = None
        self._thread: threading.Thread | None = None
        self._stop = False
        self._hashed: dict[bytes, Entry] = {}
        self._run: int | None = None
        self._begun_ns = 0
        self._objects: dict[bytes, dict[bytes, Entry]] = {}
        self._listings: dict[bytes, Listing] = {}

    def begin(self) -> list[str]:
        """Look at the folder, before the command runs; give sentences for a person. Raises: StoreError; OSError."""
        folder = self.area.folder
        self._begun_ns = time.time_ns()
        last = self._store.folders.find_last_look(self._redact(os.fsencode(folder)))
        rules = self._find_rules()
        self._tracked = find_tracked_ignored(folder)
        found = look(
            folder,
            left_out=self._left_out,
            tracked=self._tracked,
            known=last.entries if last is not None else None,
            limits=Limits(time_s=_SAVING_S if self.saves else _LISTING_S),
        )
        found = replace(found, git=find_git_state(folder), saved=self.saves, rules=rules)
        trusted = last is not None and last.saved and last.rules == rules
        self.manifest = self._save_contents(found, trusted=trusted) if self.saves else found
        if not self.saves:
            self._thread = threading.Thread(target=self._hash, name="playhead-folder", daemon=True)
            self._thread.start()
        return self._say()

    def _find_rules(self) -> bytes:
        told = repr((__version__, self._config.redact, self._config.redact_off))
        return blake3(told.encode("utf-8", "surrogatepass")).digest(16)

    def _save_contents(self, found: Manifest, *, trusted: bool) -> Manifest:
        saver = self.make_saver(trusted=trusted)
        self._provisional = self._store.folders.begin()
        self._store.folders.add_contents(self._provisional, saver.read(found.entries))
        return replace(found, entries=saver.entries)

    def hide(self, step: Step) -> Step:
        """Give a savepoint without the secrets in names."""
        return hide_step(step, self._redact)

    def make_saver(self, *, trusted: bool) -> Saver:
        """Make what reads the contents of this folder."""
        limits = self._config.files.max_file_mib << 20, self._config.files.max_mib << 20
        holds = self._store.folders.holds
        return Saver(
            os.fsencode(self.area.folder),
            holds,
            self._redact,
            SaveLimits(*limits),
            trusted=trusted,
        )

    def _hash(self) -> None:
        self._hashed = hash_all(
            self.manifest.folder, self.manifest.entries, until=lambda: self._stop
        )

    def _say(self) -> list[str]:
        """Say what was left out, where a person would want to know it before the command starts."""
        said = []
        found = self.manifest
        if found.omitted:
            said.append(
                f"the folder {self.area.folder} is listed in part: {say_unlisted(found)};"
                " what your command writes there is not known, and `--compare files` fails"
            )
        if self.saves:
            whys = Counter(entry.unsaved for entry in found.entries.values() if entry.unsaved)
            for why in (one for one in whys if one != "no file"):
                paths = [path for path, entry in found.entries.items() if entry.unsaved == why]
                named = ", ".join(map(show_path, paths[:_MOST_NAMED]))
                more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
                said.append(f"not saved ({why}): {named}{more}")
        return said

    def adopt(self, run: int) -> None:
        """Have the run own what was saved, once it has begun. Blocks; twice is once. Raises: StoreUnwritable."""
        if self._run is not None:
            return
        self._run = run
        if self._provisional is not None:
            self._store.folders.adopt(self._provisional, run)
        self._store.folders.save(run, hide_manifest(self.manifest, self._redact))

    def look_again(self, known: Manifest, fresh: dict[bytes, Entry] | None = None) -> Manifest:
        """Look at the folder as it is now; what nobody touched since `known` is taken from there.

        fresh: gets what was touched.
        Raises: OSError.
        """
        found = look(
            self.area.folder,
            left_out=self._left_out,
            tracked=self._tracked,
            known=known.entries,
            fresh=fresh,
            objects=self._objects,
            listings=self._listings,
            limits=Limits(time_s=_SAVING_S if self.saves else _LISTING_S * 2),
        )
        return replace(found, saved=known.saved, rules=known.rules)

    def explain(self, error: OSError) -> str:
        """Say why the folder could not be read, as the rest of a sentence that begins with "because"; without a path."""
        return explain_unread(self.area.folder, error)

    def describe_unknown(self, error: Exception) -> dict[str, Any]:
        """Give what is noted in the place of what `finish` gives, where nothing is known of what was written."""
        return {
            "folder": {
                **describe(self.manifest, self._redact),
                "within": show_path(self._redact(self._within)),
                "umask": find_umask(),
                "unknown": explain_unread(self.area.folder, error),
            },
            "file_effects": None,
        }

    def _was_there(self, path: bytes) -> bool | None:
        """Say whether what is at a path now was made before the command began; None where that is not known."""
        born_ns = find_birth_ns(self.manifest.folder + b"/" + path)
        if born_ns is None or abs(born_ns - self._begun_ns) < _TICK_NS:
            return None
        return born_ns < self._begun_ns

    def finish(self, run: int) -> dict[str, Any]:
        """Give what is noted of the folder in the log, once the command has ended. Raises: StoreUnwritable; OSError."""
        if self._thread is not None:
            self._thread.join(_HASHING_S)
            self._stop = True
            self._thread.join()
            self.manifest = replace(self.manifest, entries=self._hashed)
        self.adopt(run)
        # A file is not gone that the command has only had ignored.
        after = look_closer(
            self.look_again(self.manifest), self.manifest.entries, self.manifest.entries
        )
        renamed = find_renamed_folders(self.manifest, after, self._was_there)
        self.manifest = before = replace(self.manifest, renamed=renamed)
        # Once more: with hashes that were not there when the run began, and what was renamed.
        self._store.folders.save(run, hide_manifest(before, self._redact))
        folder = before.folder

        def differs(path: bytes, was: Entry, now: Entry) -> bool:
            return not was.digest or hash_file(folder + b"/" + path) != was.digest

        changes = find_changes(before.entries, after.entries, differs)
        sure = sorted(
            only_sure(before, after, changes, before.entries), key=lambda one: is_of_git(one.path)
        )
        hashed = [
            one._replace(entry=one.entry._replace(digest=hash_file(folder + b"/" + one.path)))
            if one.change is not Change.DELETED and one.entry.kind is Kind.FILE
            else one
            for one in sure[:MOST_ROWS]
        ]
        return {
            "folder": {
                **describe(before, self._redact),
                "renamed": renamed,
                "within": show_path(self._redact(self._within)),
                "umask": find_umask(),
                "cut": say_unlisted(before, after, redact=self._redact),
            },
            "file_effects": effect_rows(hashed, self._redact),
            "file_effects_omitted": len(sure) - len(hashed),
            "file_effects_counts": count_effects(sure),
        }


def explain_error(error: OSError) -> str:
    """Say what an error of the system is, and at which path, as text: names may be bytes."""
    where = f": {show_path(os.fsencode(error.filename))}" if error.filename else ""
    return f"{error.strerror or error}{where}"


def explain_unread(folder: str, error: Exception) -> str:
    """Say why what is in a folder is not known, as the rest of a sentence that begins with "because"; without a path."""
    if isinstance(error, OSError):
        if not os.path.isdir(folder):
            return "the folder was gone"
        return f"it could not be read ({error.strerror})"
    return "the store could not be written to"


def describe(manifest: Manifest, redact: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Give what the log has of a manifest."""
    git = manifest.git
    return {
        "path": show_path(redact(manifest.folder)),
        "files": manifest.file_count,
        "bytes": manifest.size,
        "left_out": manifest.left_out_count,
        "omitted": manifest.omitted,
        "saved": manifest.saved,
        "unsaved": dict(
            Counter(entry.unsaved for entry in manifest.entries.values() if entry.unsaved)
        ),
        "head": git.head if git is not None else "",
        "branch": show_path(redact(git.branch.encode("utf-8", "replace"))) if git else "",
        "dirty": None if git is None or git.dirty is None else git.dirty_count,
    }


def find_umask() -> str:
    """Give the umask of this process, which the command inherits, as octal digits; empty where it cannot be read.

    Source: proc_pid_status(5). To ask for it by umask(2) changes it for a moment, also for other threads.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("Umask:"):
                return f"{int(line.split()[1], 8):o}"
    return ""


def count_effects(effects: list[FileEffect]) -> dict[str, int]:
    """Count effects by what became of the path; a repository's own files are counted apart, as `git`."""
    return dict(Counter("git" if is_of_git(one.path) else one.change.value for one in effects))


def effect_rows(effects: list[FileEffect], redact: Callable[[bytes], bytes]) -> list[list[object]]:
    """Give effects as the log has them: path, change, kind, size, hash and mode; a repository's own files come last."""
    ordered = sorted(effects, key=lambda one: is_of_git(one.path))
    return [
        [
            FileEffect(redact(one.path), *one[1:]).text,
            one.change.value,
            one.entry.kind.value,
            one.entry.size,
            one.entry.digest.hex(),
            f"{one.entry.mode:o}",
        ]
        for one in ordered[:MOST_ROWS]
    ]
