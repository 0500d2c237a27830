"""One call: a fresh folder for an execution, as it is, or as it was at a step of a recording.

    with closing(prepare(store, tape, area, Wanted(...))) as execution:
        ...                             run a command with execution.mounts, and execution.hidden out of its reach
        execution.find_written()        what it has written
        execution.keep()                put that into the real folder; else it is discarded

An execution is one of three: an *overlay* (the folder is seen, what is written goes into a layer), a *copy* that is mounted in
the place of the folder, or *in place*. By itself an overlay is chosen, but a copy where that costs no more than an overlay does,
and where the recording renamed a folder, which an overlay of an ordinary user refuses (EXDEV).
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...store import RunInfo, Store
from ...tape.folders.changes import (
    Change,
    FileEffect,
    find_changes,
    only_sure,
    say_differences,
)
from ...tape.folders.hide_secret_names import Redact, find_branch, find_names
from ...tape.folders.ignore_files import IGNORED
from ...tape.folders.manifest import Entry, Kind, Manifest, say_unlisted, show_path
from ..errors import EngineError
from .command_folders import Area
from .copying import copy_folder
from .file_contents import hash_file
from .git import find_git_state, find_tracked_ignored
from .hard_links import find_linked, find_linked_then, join_names, say_linked
from .left_out_paths import leave_out_ignored, look_closer
from .list_folder import ELSEWHERE, Limits, entry_of, look
from .overlay_layers import Written, find, list_written, make_base
from .overlay_support import (
    Trial,
    Tried,
    bind_row,
    explain,
    find_overlay,
    find_places,
    is_in_memory,
    make_room,
    measure_free,
    overlay_rows,
    try_namespace,
)
from .restore import Plan, apply_plan, name_paths

AUTO, OVERLAY, COPY, IN_PLACE = "auto", "overlay", "copy", "in-place"
SMALL_ENTRIES, SMALL_BYTES = 200, 4 << 20
"""A folder with no more than that is copied as fast as an overlay is mounted."""
_MOST_COPIED = 500_000
_LISTING_S, _QUICK_S = 20.0, 0.5
"""Longest time for listing a folder whose contents were saved, and of another one."""
_COMPARE_S = 1.0
"""Longest time for hashing files that were touched since the recording."""
_LEAST_FREE = 4 << 20
_ALL = Limits(entries=4 * _MOST_COPIED, time_s=60.0)
"""Of a look at all that a command may have written, ignored files too."""
_FILES_A_S, _BYTES_A_S = 5000, 200 << 20
"""What copying is expected to manage."""


class Wanted(NamedTuple):
    """What is wanted of an execution."""

    mode: str = AUTO
    at: int | None = None
    """The folder as it was before this exchange of the recording; None for its start."""
    of_user: bool = True
    """Whether it is mounted in a user namespace, as in a sandbox."""
    left_out: frozenset[str] = frozenset()
    """Folders that are not the command's, as the store."""
    kept: tuple[str, ...] = ()
    """Folders that stay the real ones, for they are written to for us."""
    shown: tuple[str, ...] = ()
    """Folders in `left_out` that the command reads all the same, as the certificate's."""
    trial: Future[Trial] | None = None
    """Gives where the layers of an overlay can be; None where nobody has looked yet."""
    sandboxed: bool = True
    """Whether a sandbox mounts it, which says itself where it cannot be made."""
    stays: bool = False
    """Whether what is written is going to be kept: then nothing is put back first."""
    redact: Redact = bytes
    """Finds names again that were stored without their secrets."""


class Kept(NamedTuple):
    """What was put into the real folder."""

    paths: int
    """How many were written or removed."""
    left: list[bytes]
    """Paths that somebody else changed while the command ran: as they are, and not as the command has them."""


class Seen(NamedTuple):
    """A folder beside what it was in a recording."""

    then: Manifest | None
    now: Manifest
    changes: list[FileEffect]
    """From now to then: what puts it back."""
    differs: list[str]
    """Sentences; empty where it is as it was, as far as that is known."""
    uncompared: list[str]
    """What of it could not be compared, in sentences: that is no difference, nor is it none."""
    unlisted: tuple[bytes, ...] = ()
    """What the manifest leaves out, and the command sees as it is now."""


@dataclass(slots=True)
class Execution:
    """A folder for one execution. Close it: what is in it is gone then."""

    area: Area
    mode: str
    said: list[str] = field(default_factory=list)
    """Sentences for a person, before the command starts."""
    differs: list[str] = field(default_factory=list)
    """How the folder differs from what it was when the recording began."""
    uncompared: list[str] = field(default_factory=list)
    """What of it could not be compared, in sentences."""
    restored: bool = False
    """Whether it is seen as it was then all the same."""
    unlisted: str = ""
    """What is seen as it is now even so, in words: it is ignored, and no manifest has it."""
    mounts: list[dict[str, Any]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    """Folders that the command must not reach."""
    room: str = ""
    before: Manifest | None = None
    """Of a copy, and in place: what was there."""
    own: frozenset[str] = frozenset()
    """Folders that are not the command's, as the store: nothing that is written there is an effect."""
    start: Mapping[bytes, Entry] = field(default_factory=dict)
    """What was in the real folder before the command began; everything, if what it writes is going to be kept."""
    stays: bool = False
    """Whether what it writes is going to be kept."""
    also: "list[Execution]" = field(default_factory=list)
    """Of each folder elsewhere that git writes to, where what the command writes is going to be kept."""
    begun_ns: int = 0
    """When all was prepared."""
    _base: dict[bytes, Entry] = field(default_factory=dict)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _written: Written | None = None

    @property
    def place(self) -> str:
        """Where the folder is that the command sees, from outside; empty for an overlay."""
        if self.mode == OVERLAY:
            return ""
        return f"{self.room}/copy" if self.mode == COPY else self.area.folder

    def find_written(self) -> Written:
        """Give what the command has written, once it has ended. Blocks. The second time it is remembered.

        Files that are ignored are there, too; Playhead's own are not.
        """
        if self._written is None:
            found = self._find_written()
            effects = [one for one in found.effects if not self._is_own(one.path)]
            touched = {
                path: place for path, place in found.touched.items() if not self._is_own(path)
            }
            self._written = found._replace(effects=effects, touched=touched)
        return self._written

    def _is_own(self, path: bytes) -> bool:
        place = f"{os.path.join(self.area.folder, os.fsdecode(path))}/"
        return any(place.startswith(f"{one}/") for one in self.own)

    def _find_written(self) -> Written:
        if self.mode == OVERLAY:
            first = next(row for row in self.mounts if row["target"] == self.area.folder)
            written = list_written(first["upper"], first["layers"])
            own = (self._without_others(one) for one in written.effects)
            return written._replace(effects=[one for one in own if one is not None])
        if self.before is None:
            return Written([], {}, 0)
        place = os.fsencode(self.place)
        after = look(
            self.place,
            left_out=self.own if self.mode == IN_PLACE else frozenset(),
            known=self.before.entries,
            everything=self.mode == COPY,
            limits=_ALL,
        )
        # A file is not gone that the command has only had ignored, or that is in a folder that was closed.
        after = look_closer(after, self.before.entries, self.before.entries)

        def differs(path: bytes, was: Entry, now: Entry) -> bool:
            digest = was.digest
            if not digest and self.mode == COPY:
                base = self._base.get(path)
                digest = base.digest if base is not None else self._hash_original(path, was)
            return not digest or digest != hash_file(place + b"/" + path)

        changes = find_changes(self.before.entries, after.entries, differs)
        sure = only_sure(self.before, after, changes, self.before.entries)
        effects = [self._hashed(place, one) for one in sure]
        touched = {
            path: place + b"/" + path
            for path, entry in after.entries.items()
            if entry.kind is Kind.FILE and entry != self.before.entries.get(path)
        }
        omitted = after.omitted + self.before.omitted
        return Written(effects, touched, omitted, say_unlisted(self.before, after))

    def _without_others(self, one: FileEffect) -> FileEffect | None:
        """Give what the command did at a path of an overlay, where others may have written below it since; None for nothing."""
        was = self._base.get(one.path) or self.start.get(one.path)
        if one.change is Change.DELETED:
            there = was is not None or self._was_there(one.entry.changed_ns)
            return one if there else None
        below = None
        with contextlib.suppress(OSError):
            below = entry_of(os.lstat(os.fsencode(self.area.folder) + b"/" + one.path))
        if one.path in self._base or (below is not None and below.changed_ns <= self.begun_ns):
            return one
        if was is None:
            there = below is not None and self._was_there(below.changed_ns)
            return one if there else one._replace(change=Change.CREATED)
        if _looks_the_same(was, one.entry):
            return None  # it was opened, and not written to
        return one._replace(change=Change.CHANGED) if was.is_folder == one.entry.is_folder else one

    def _was_there(self, changed_ns: int) -> bool:
        """Say whether what was not listed before the command began was there all the same, by its last change."""
        return not self.stays and changed_ns <= self.begun_ns

    def _hash_original(self, path: bytes, was: Entry) -> bytes:
        original = os.fsencode(self.area.folder) + b"/" + path
        with contextlib.suppress(OSError):
            told = os.lstat(original)
            if (told.st_size, told.st_mtime_ns) == (was.size, was.modified_ns):
                return hash_file(original)
        return b""

    @staticmethod
    def _hashed(place: bytes, one: FileEffect) -> FileEffect:
        if one.change is Change.DELETED or one.entry.kind is not Kind.FILE:
            return one
        digest = one.entry.digest or hash_file(place + b"/" + one.path)
        return one._replace(entry=one.entry._replace(digest=digest))

    def find_full(self) -> str:
        """Say that there is no room for further writes, where that is so; the command got ENOSPC then."""
        if not self.room:
            return ""
        told = os.statvfs(self.room)
        if told.f_bavail * told.f_frsize > _LEAST_FREE and (told.f_favail or not told.f_files):
            return ""
        return (
            f"there is no room for the command's writes ({os.path.dirname(self.room)}): it got ENOSPC;"
            " your folder is untouched"
        )

    def keep(self) -> Kept:
        """Put what the command has written into the real folders, but where somebody else wrote meanwhile. Blocks.

        What git has elsewhere comes first: without it, files are there whose commits are not.
        Raises: EngineError; OSError.
        """
        if self.mode == IN_PLACE:
            return Kept(0, [])
        paths, left = 0, list[bytes]()
        for one in self.also:
            kept = one.keep()
            paths += kept.paths
            left += [os.fsencode(one.area.folder) + b"/" + path for path in kept.left]
        kept = self._keep_own()
        return Kept(paths + kept.paths, left + kept.left)

    def _keep_own(self) -> Kept:
        written = self.find_written()
        if written.omitted:
            raise EngineError(
                f"{written.omitted} files that the command wrote are too many or too large to be kept",
                "replay with --in-place to have them written to the folder itself",
            )
        effects, places, unread = [], {}, []
        for one in written.effects:
            if one.change is not Change.DELETED and one.entry.kind is Kind.FILE:
                place = written.touched.get(one.path) or self._find_place(one.path)
                one = _with_content(one, place)
                if not one.entry.digest:
                    unread.append(one.path)
                places[one.entry.digest] = place
            effects.append(one)

        def read(digest: bytes) -> bytes:
            return Path(os.fsdecode(places[digest])).read_bytes()

        entries = {one.path: one.entry for one in effects if one.change is not Change.DELETED}
        target = Manifest(os.fsencode(self.area.folder), entries)
        plan = Plan(target.folder, target, effects, [], [], unread, self.start)
        done = apply_plan(plan, read)
        names = entries
        if self.mode == COPY:
            names = dict(look(self.place, everything=True, limits=_ALL).entries)
        join_names(target.folder, find_linked(names), entries.keys() - set(done.left))
        return Kept(
            done.written + done.removed,
            sorted({*done.left, *self._find_occupied(effects, done.left)}),
        )

    def _find_occupied(self, effects: Sequence[FileEffect], left: Sequence[bytes]) -> list[bytes]:
        """Find the folders that the command removed, and that stay because somebody else put something into them."""
        occupied = []
        for one in effects:
            above = one.path + b"/"
            if (
                one.change is not Change.DELETED
                or not one.entry.is_folder
                or any(path.startswith(above) for path in left)
            ):
                continue
            with contextlib.suppress(OSError):  # it is gone, or something else by now
                inside = (above + name for name in os.listdir(self._real(one.path)))
                if any(path not in self.start and not self._is_own(path) for path in inside):
                    occupied.append(one.path)
        return occupied

    def _real(self, path: bytes) -> bytes:
        return os.fsencode(self.area.folder) + b"/" + path

    def _find_place(self, path: bytes) -> bytes:
        if self.mode == COPY:
            return os.fsencode(self.place) + b"/" + path
        first = next(row for row in self.mounts if row["target"] == self.area.folder)
        for layer in (first["upper"], *first["layers"]):
            place = os.fsencode(layer) + b"/" + path
            if os.path.lexists(place):
                return place
        return os.fsencode(first["upper"]) + b"/" + path

    def find_file(self, path: bytes) -> bytes | None:
        """Find where a file is that the command sees at a path of an overlay, from outside; None where it sees none."""
        first = next(row for row in self.mounts if row["target"] == self.area.folder)
        layers = tuple(os.fsencode(one) for one in (first["upper"], *first["layers"]))
        node = None
        for name in path.split(b"/"):
            node = find(layers, name)
            if node is None:
                return None
            layers = node.layers
        return node.place if node is not None and not node.is_folder else None

    def close(self) -> None:
        """Discard it."""
        self._stack.close()


def _looks_the_same(was: Entry, now: Entry) -> bool:
    if (was.kind, was.mode, was.target, was.size) != (now.kind, now.mode, now.target, now.size):
        return False
    return was.kind is not Kind.FILE or was.modified_ns == now.modified_ns


def _with_content(one: FileEffect, place: bytes) -> FileEffect:
    """Give the hash of a file that its own mode closes to us: the layer is ours, and is thrown away."""
    if one.entry.digest:
        return one
    with contextlib.suppress(OSError):
        if not os.path.islink(place):
            os.chmod(place, 0o600)
    return one._replace(entry=one.entry._replace(digest=hash_file(place)))


def compare(
    store: Store,
    tape: RunInfo,
    area: Area,
    at: int | None,
    left_out: frozenset[str],
    redact: Redact = bytes,
) -> Seen:
    """Compare a folder with what it was in a recording. Blocks, a second or two at most.

    redact: takes secrets out of a name.
    Raises: StoreError; OSError.
    """
    then = store.folders.find(tape, at)
    known = then.entries if then is not None else None
    tracked = find_tracked_ignored(area.folder)
    limits = Limits(time_s=_LISTING_S if then is not None and then.saved else _QUICK_S)
    now = look(area.folder, left_out=left_out, tracked=tracked, known=known, limits=limits)
    if then is None:
        return Seen(None, now, [], [], [])
    then = find_names(then, now.entries, redact)
    until = time.monotonic() + _COMPARE_S
    unknown = 0

    def differs(path: bytes, was: Entry, _: Entry) -> bool:
        """Hash what was touched; what there is no time for is taken for the same, and counted."""
        nonlocal unknown
        if not was.digest:
            return True
        if time.monotonic() > until:
            unknown += 1
            return False
        return hash_file(now.folder + b"/" + path) != was.digest

    holds, read = store.folders.holds, store.folders.read
    looked: Mapping[bytes, Entry] = {}
    if now.omitted and then.saved:  # What is to be put back has to be known.
        now = look_closer(now, (path for path in then.entries if not now.knows(path)))
        looked = then.entries
    listed = leave_out_ignored(now, then, lambda one: read(one) if holds(one) else b"", tracked)
    changes = only_sure(then, listed, find_changes(then.entries, listed.entries, differs), looked)
    git = find_git_state(area.folder, asked=False)
    named = find_branch(then, git, redact)
    said = list(say_differences(named, Manifest(now.folder, git=git), changes))
    if said and then.folder != now.folder and then.folder != redact(now.folder):
        said.insert(0, f"another folder than {os.fsdecode(then.folder)}")
    uncompared = [f"{unknown} files were touched and not compared"] if unknown else []
    if then.omitted:
        uncompared.append(f"in the recording, {say_unlisted(then)}")
    if now.omitted:
        uncompared.append(f"now, {say_unlisted(now)}")
    # By digests that are known now, what has to be done to have it as it was.
    back = [_reversed(one, then) for one in changes]
    return Seen(then, now, _in_order(back), said, uncompared, _find_unlisted(now, listed))


def _find_unlisted(now: Manifest, listed: Manifest) -> tuple[bytes, ...]:
    """Give what is in a folder and ignored, then or now: nobody knows whether it was there, or what was in it."""
    ignored = {path for path, why in now.left_out.items() if why == IGNORED}
    gone = now.entries.keys() - listed.entries.keys()
    return tuple(sorted(ignored | {path for path in gone if path.rpartition(b"/")[0] not in gone}))


def _reversed(one: FileEffect, then: Manifest) -> FileEffect:
    if one.change is Change.CREATED:
        return one._replace(change=Change.DELETED)
    change = Change.CREATED if one.change is Change.DELETED else Change.CHANGED
    return one._replace(change=change, entry=then.entries[one.path])


def _in_order(changes: list[FileEffect]) -> list[FileEffect]:
    """At one path, what is removed is removed before something else is made there."""
    return sorted(changes, key=lambda one: (one.path, one.change is not Change.DELETED))


def prepare(
    store: Store,
    tape: RunInfo,
    area: Area,
    wanted: Wanted,
    progress: Callable[[int], None] = lambda _: None,
) -> Execution:
    """Prepare a fresh folder for an execution, as it was at a step of a recording as far as that was saved. Blocks.

    Raises: EngineError, where it cannot be as it was asked for; StoreError; OSError.
    """
    seen = compare(store, tape, area, wanted.at, wanted.left_out, wanted.redact)
    changes = seen.changes if _can_put_back(seen.then) else []
    if wanted.stays and changes and seen.differs:
        raise EngineError(
            f"--keep-writes expects the folder as it was recorded, and it differs: {'; '.join(seen.differs[:3])}",
            "`playhead files RUN --restore DIR` restores it; or leave the flag out",
        )
    if area.folder == "/" and wanted.mode in (AUTO, IN_PLACE):
        execution = Execution(
            area, IN_PLACE, ["the root folder cannot be a copy: the command works in it itself"]
        )
    else:
        execution = _open(store, area, wanted, seen, bool(changes))
    try:
        execution.differs = list(seen.differs)
        execution.uncompared = list(seen.uncompared)
        if seen.unlisted:
            names = name_paths(map(wanted.redact, seen.unlisted))
            execution.unlisted = f"what its manifest leaves out: {names}"
        if changes and execution.mode != IN_PLACE:
            assert seen.then is not None
            _put_back(store, execution, seen.then, changes)
        _finish(execution, wanted, seen, progress, changes, store)
    except BaseException:
        execution.close()
        raise
    _say(execution, seen)
    return execution


def _can_put_back(then: Manifest | None) -> bool:
    """Say whether a folder is made what it was then. By a file that somebody sent it is not: the command would run its programs."""
    return then is not None and then.saved and not then.imported


def _say(execution: Execution, seen: Seen) -> None:
    if not seen.differs:
        if seen.uncompared:
            what = "; ".join(seen.uncompared)
            execution.said.insert(0, f"the folder was not compared as a whole: {what}")
        return
    what = "; ".join([*seen.differs, *seen.uncompared])
    if execution.restored:
        how = "it is played on the folder as it was then"
        if execution.area.also:
            how = (
                "it is played on its files as they were then, and on the commits and the index as they are now:"
                f" git keeps the repository at {execution.area.also[0]}, which is not saved"
            )
    elif seen.then is not None and seen.then.saved and seen.then.imported:
        how = (
            "it is played on the folder as it is, for the tape came out of a file;"
            " `playhead files RUN --restore DIR` makes the folder that it was recorded in"
        )
    elif seen.then is not None and seen.then.saved and execution.mode != IN_PLACE:
        how = "its files are as they were then, and are played on"
        if execution.area.also:
            how += f"; git keeps the repository at {execution.area.also[0]}, which is as it is now"
    elif seen.then is not None and seen.then.saved:
        how = "it is played on the folder as it is (--in-place)"
    else:
        how = (
            "it is played on the folder as it is; record with --save-files to play on it as it was"
        )
    if execution.restored and execution.unlisted:
        how += f", but for {execution.unlisted}"
    execution.said.insert(
        0, f"the folder differs from its state when the recording began: {what}; {how}"
    )


def _open(store: Store, area: Area, wanted: Wanted, seen: Seen, puts_back: bool) -> Execution:
    """Choose how, and make room for it."""
    if wanted.mode == IN_PLACE:
        return Execution(area, IN_PLACE)
    if not wanted.sandboxed and (why := _find_why_not(wanted)):
        if wanted.mode != AUTO:
            raise EngineError(
                f"the folder {area.folder} cannot be an overlay or a copy: {why}",
                "--in-place runs the command on the folder itself",
            )
        said = f"no namespaces here ({why}): the command works on your folder itself"
        return Execution(area, IN_PLACE, [said])
    small = (
        not seen.now.omitted
        and len(seen.now.entries) <= SMALL_ENTRIES
        and seen.now.size <= SMALL_BYTES
        and not any(why == "ignored" for why in seen.now.left_out.values())
        and not area.also
    )
    renames = seen.then is not None and seen.then.renamed > 0
    if wanted.mode == COPY or (wanted.mode == AUTO and (small or renames)):
        reason = []
        if wanted.mode == AUTO and not small:
            reason = ["the recording renamed a folder, which an overlay refuses"]
        return _open_copy(store, area, wanted, seen, reason)
    linked = _find_linked(seen, puts_back=puts_back)
    if linked and wanted.mode == AUTO:
        # Where there can be no copy, an overlay is better than nothing, and says what it does.
        with contextlib.suppress(EngineError):
            why = f"{say_linked(linked)}, which an overlay does not keep together"
            return _open_copy(store, area, wanted, seen, [why])
    trial = wanted.trial
    place, tried = (
        trial.result()
        if trial is not None
        else find_overlay(store.path, area.folder, area.folders, of_user=wanted.of_user)
    )
    if place is not None:
        execution = _open_overlay(area, wanted, place, tried)
        if linked:
            execution.said.append(
                f"{say_linked(linked)}: on an overlay, writes to one name are not seen at the other;"
                " --files copy keeps them together"
            )
        return execution
    why = explain(tried)
    if wanted.mode == OVERLAY:
        raise EngineError(
            f"there can be no overlay over {area.folder} ({why})",
            "--files copy runs the command on a copy, --in-place on the folder itself",
        )
    return _open_copy(store, area, wanted, seen, [f"no overlay here ({why})"])


def _find_linked(seen: Seen, *, puts_back: bool) -> list[list[bytes]]:
    """Group the names of one file in the folder as the command is to see it."""
    if puts_back and seen.then is not None:
        return find_linked_then(seen.then, seen.now)
    return find_linked(seen.now.entries)


def _find_why_not(wanted: Wanted) -> str:
    """Say why nothing can be mounted outside of a sandbox; empty where it can."""
    if wanted.trial is not None and wanted.trial.result().place is not None:
        return ""
    failure = try_namespace(of_user=wanted.of_user)
    return "" if failure is None else explain([failure])


def _open_overlay(area: Area, wanted: Wanted, place: str, tried: list[Tried]) -> Execution:
    execution = Execution(area, OVERLAY)
    execution.room = execution._stack.enter_context(make_room(place))
    if tried and is_in_memory(place):
        execution.said.append(
            f"writes of the command are kept in memory: no overlay elsewhere ({explain(tried)})"
        )
    return execution


def _open_copy(
    store: Store, area: Area, wanted: Wanted, seen: Seen, reason: list[str]
) -> Execution:
    entries, size = len(seen.now.entries), seen.now.size
    cost = max(1, round(entries / _FILES_A_S + size / _BYTES_A_S))
    known = "more than " if seen.now.omitted or seen.now.left_out else ""
    what = f"{known}{seen.now.file_count} files, {size >> 20} MB, about {cost} s"
    if seen.now.omitted or entries > _MOST_COPIED:
        raise EngineError(
            f"the folder {area.folder} is too large to be copied for each execution ({what})"
            + (f"; {reason[0]}" if reason else ""),
            "--in-place runs the command on the folder itself; or run it in a smaller folder",
        )
    for place in find_places(store.path, area.folders):
        if measure_free(place) > size + _LEAST_FREE:
            break
    else:
        raise EngineError(
            f"there is no room for a copy of {area.folder} ({what})"
            + (f"; {reason[0]}" if reason else ""),
            "free some space; --in-place would have the command write to the folder itself",
        )
    execution = Execution(area, COPY)
    execution.room = execution._stack.enter_context(make_room(place))
    if reason:
        execution.said.append(f"{reason[0]}: the command works on a copy, {what}")
    return execution


def _put_back(
    store: Store, execution: Execution, then: Manifest, changes: Sequence[FileEffect]
) -> None:
    """Have the folder be seen as it was."""
    execution.restored = True
    execution._base = {one.path: one.entry for one in changes if one.change is not Change.DELETED}
    if execution.mode == OVERLAY:
        base = f"{execution.room}/base"
        os.mkdir(base, 0o700)
        missing = make_base(base, then, changes, store.folders.read).missing
        told = os.stat(execution.area.folder)
        os.chmod(base, told.st_mode & 0o7777)
    else:
        missing = [
            one.path
            for one in changes
            if one.change is not Change.DELETED
            and one.entry.kind is Kind.FILE
            and one.entry.unsaved
        ]
    execution.said += _name_some("not saved, and so as they are now", missing)
    redacted = [one.path for one in changes if one.entry.placeholders and one.path not in missing]
    execution.said += _name_some("with placeholders for secrets", redacted)


def _name_some(what: str, paths: list[bytes]) -> list[str]:
    shown = ", ".join(map(show_path, paths[:3]))
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return [f"{what}: {shown}{more}"] if paths else []


def _finish(
    execution: Execution,
    wanted: Wanted,
    seen: Seen,
    progress: Callable[[int], None],
    changes: Sequence[FileEffect],
    store: Store,
) -> None:
    """Make the mounts."""
    area = execution.area
    execution.own = wanted.left_out
    if execution.mode == IN_PLACE:
        execution.before = seen.now
        return
    execution.stays = wanted.stays
    execution.start = (
        _list_everything(area.folder, wanted.left_out) if wanted.stays else seen.now.entries
    )
    room = execution.room
    execution.hidden = [room]
    if execution.mode == OVERLAY:
        bases = [f"{room}/base"] if execution.restored else []
        execution.mounts = overlay_rows(area.folder, room, bases, kept=wanted.kept)
    else:
        copy = f"{room}/copy"
        os.mkdir(copy, 0o700)
        copied = copy_folder(area.folder, copy, left_out=wanted.left_out, progress=progress)
        for shown in wanted.shown:
            within = os.path.relpath(shown, area.folder)
            if not within.startswith("..") and os.path.isdir(shown):
                os.makedirs(f"{copy}/{within}", exist_ok=True)
                if not os.listdir(f"{copy}/{within}"):
                    copy_folder(shown, f"{copy}/{within}")
        if copied.unread:
            execution.said.append(
                f"{len(copied.unread)} files cannot be read, and are not in the copy"
            )
        if execution.restored:
            assert seen.then is not None
            missing = [one.path for one in changes if one.entry.unsaved]
            plan = Plan(os.fsencode(copy), seen.then, list(changes), [], [], missing)
            apply_plan(plan, store.folders.read)
        if execution.restored and seen.then is not None:
            join_names(os.fsencode(copy), find_linked_then(seen.then, seen.now))
        execution.before = look(copy, everything=True, limits=_ALL)
        execution.mounts = [bind_row(area.folder, copy, kept=wanted.kept)]
    for number, folder in enumerate(area.also, 1):
        if wanted.stays:
            other = _follow_also(folder, f"{room}/also-{number}", wanted, execution.mode)
            execution.also.append(other)
            execution.mounts += other.mounts
        else:
            execution.mounts += _cover_also(folder, room, number, wanted, execution.mode)
    execution.begun_ns = time.time_ns()
    for other in execution.also:
        other.begun_ns = execution.begun_ns


def _list_everything(folder: str, left_out: frozenset[str]) -> dict[bytes, Entry]:
    """List a folder with all that is ignored, and with what is mounted in it. Raises: EngineError, where that is too much."""
    found = look(folder, left_out=left_out, everything=True, limits=_ALL)
    if found.omitted:
        raise EngineError(
            f"--keep-writes expects a folder of up to {_ALL.entries} files, and {folder} has more than can be listed",
            "replay with --in-place to have writes go to the folder itself",
        )
    entries = dict(found.entries)
    for path, why in found.left_out.items():
        if why == ELSEWHERE:
            place = os.path.join(folder, os.fsdecode(path))
            entries[path] = entry_of(os.lstat(place))
            inner = _list_everything(place, left_out)
            entries.update((path + b"/" + name, entry) for name, entry in inner.items())
    return entries


def _follow_also(folder: str, room: str, wanted: Wanted, mode: str) -> Execution:
    """Cover a folder elsewhere that git writes to, so that what is written there can be kept. Raises: EngineError; OSError."""
    other = Execution(Area(folder), mode, room=room, stays=True)
    other.start = _list_everything(folder, wanted.left_out)
    os.mkdir(room, 0o700)
    if mode == OVERLAY:
        other.mounts = overlay_rows(folder, room, kept=wanted.kept)
        return other
    os.mkdir(other.place, 0o700)
    copy_folder(folder, other.place)
    other.before = look(other.place, everything=True, limits=_ALL)
    other.mounts = [bind_row(folder, other.place)]
    return other


def _cover_also(
    folder: str, room: str, number: int, wanted: Wanted, mode: str
) -> list[dict[str, Any]]:
    """Cover a folder elsewhere that git writes to."""
    if mode == OVERLAY:
        return overlay_rows(folder, room, number=number, kept=wanted.kept)
    copy = f"{room}/also-{number}"
    os.mkdir(copy, 0o700)
    copy_folder(folder, copy)
    return [bind_row(folder, copy)]
