"""Compare what a command did to its working folder with what it did while it was recorded (`--compare files`).

Two lists are compared. The *effects* are what was created, changed and deleted in the whole folder, with kinds, sizes and hashes;
what ignore files leave out is not in them. The *files* are hashes of what was written in the folder that the command was started in.
A path is the same if its effects are, or if both runs wrote the very file: whether the same bytes written again are an effect depends
on whether the bytes of before were known.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....tape.diff.divergence_types import ABSENT, Difference, one_line
from ....tape.folders.manifest import show_path
from .file_effects import FileEffects

UNWRITTEN = "unwritten"
"""In the place of a file's hash: it was there before, and the command did not touch it."""
UNKNOWN = "(unknown)"
"""Shown for what a command left behind and nobody knows."""
LEFT_OUT = frozenset((".git", ".hg", "node_modules", "__pycache__", ".venv", ".playhead"))
"""Folders that hold no output of a command, or more than anybody compares."""
_PROGRAM = 0o7111
"""Of a mode: who may run it, and as whom. Who may read it depends on the umask of each machine."""

_RIGHTS = 0o6000
"""Of a mode: set-uid and set-gid."""


class LeftBehind(NamedTuple):
    """What a command left in its folder."""

    files: Mapping[str, str] | None
    """Hashes by path; None where they were too many."""
    effects: FileEffects

    @property
    def rows(self) -> dict[str, Mapping[str, Any]] | None:
        """The effects by path; None where not all are known."""
        if self.effects.folder is None or self.effects.omitted:
            return None
        return {
            row["path"]: row
            for row in self.effects.rows
            if not LEFT_OUT.intersection(row["path"].rstrip("/").split("/"))
        }

    @property
    def hashes(self) -> dict[str, str]:
        """The files as the effects name them."""
        within = (self.effects.folder or {}).get("within", "")
        above = f"{within}/" if within else ""
        files = self.files or {}
        named = {name: name.encode("utf-8", "surrogateescape") for name in files}
        return {above + show_path(named[name]): found for name, found in files.items()}


def compare_files(then: LeftBehind, now: LeftBehind) -> tuple[Difference, str] | None:
    """Say how what a command left behind differs from the recording; None where it does not."""
    was, is_now = then.rows, now.rows
    by_effects = was is not None and is_now is not None
    if not by_effects and None in (then.files, now.files):
        shown = [UNKNOWN if one.files is None else f"{len(one.files)} files" for one in (then, now)]
        text = "files cannot be compared: the working folder holds, or was changed in, too many"
        return Difference("files", *shown), text
    had, has = then.hashes, now.hashes
    other = set[str]()
    if None not in (then.files, now.files):
        other |= {name for name in {*had, *has} if had.get(name, "") != has.get(name, "")}
    if was is not None and is_now is not None:
        start = _is_start_the_same(now.effects)
        other |= {
            path
            for path in {*was, *is_now}
            if not _is_written_alike(had.get(path), has.get(path))
            and not _is_same(was.get(path), is_now.get(path), start=start)
        }
    if not other:
        return None
    first = min(other)
    told = (_say(first, was, had), _say(first, is_now, has))
    more = f" and {len(other) - 1} more" if len(other) > 1 else ""
    text = f"a file that the command made differs from the recording: {one_line(first)}{more}"
    if _lost_rights(had.get(first), has.get(first)):
        text += (
            "; its set-uid or set-gid bit alone: in a sandbox, root has no capabilities, so that writing to a file clears the bit;"
            " have the command set the bit after it has written"
        )
    if has.get(first) == UNWRITTEN:
        text += "; it was there before and was not written: replay in a folder as it was before the recording"
    return Difference("files", *told), text


def _is_start_the_same(now: FileEffects) -> bool:
    """Say whether a replay began on the folder that the recording began on."""
    folder = now.folder or {}
    return not folder.get("differs") or bool(folder.get("restored"))


def _is_written_alike(then: str | None, now: str | None) -> bool:
    return then is not None and then == now != UNWRITTEN


def _lost_rights(then: str | None, now: str | None) -> bool:
    """Say whether two hashes are of the same bytes, and of modes of which one has rights that the other has not."""
    (same, _, was), (content, _, mode) = (text.partition(":") for text in (then or "", now or ""))
    if not same or same != content or was == mode:
        return False
    return int(was or "0", 8) & ~_RIGHTS == int(mode or "0", 8) & ~_RIGHTS


def _is_same(then: Mapping[str, Any] | None, now: Mapping[str, Any] | None, *, start: bool) -> bool:
    """Compare two effects on one path.

    start: whether the folder was the same before; else what was there before may be why only one run has an effect, or another one.
    """
    if then is None or now is None:
        return not start
    deleted = "deleted" in (then["change"], now["change"])
    if then["change"] != now["change"] and (start or deleted):
        return False
    if then["kind"] != now["kind"]:
        return False
    if deleted or then["kind"] != "file":
        return True
    modes = {int(one["mode"], 8) & _PROGRAM for one in (then, now)}
    known = then["hash"] and now["hash"]
    return (
        len(modes) == 1
        and then["size"] == now["size"]
        and (then["hash"] == now["hash"] or not known)
    )


def _say(path: str, rows: Mapping[str, Mapping[str, Any]] | None, hashes: Mapping[str, str]) -> str:
    found = (rows or {}).get(path)
    shown = one_line(path)
    if found is None:
        return f"{shown} {hashes.get(path, '') or ABSENT}"
    size = f", {found['size']} bytes" if found["kind"] == "file" else ""
    known = hashes.get(path) or found["hash"]
    return f"{shown} {found['change']}{size}{', ' if known else ''}{known}"
