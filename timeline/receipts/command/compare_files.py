"""Compare what a command did to its working folder with what it did while it was recorded (`--compare files`).

Two lists are compared. The *effects* are what was created, changed and deleted in the whole folder, with kinds, sizes and hashes;
what ignore files leave out is not in them. The *files* are hashes of what was written in the folder that the command was started in.
A path is the same if its effects are, or if both runs wrote the very file: whether the same bytes written again are an effect depends
on whether the bytes of before were known.

Modes are compared whole if both commands had the same umask and began on the same folder. Else a mode says more of the machine, or of
what was there before, than of the command: only the bits of programs are compared.
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
_ALL_BITS = 0o7777
_PROGRAM = 0o7111
"""Of a mode: who may run it, and as whom. Who may read it depends on the umask of each machine."""
_FOLDER = 0o1777
"""Of a folder's mode: a new one may take set-gid from the one above it, and not every user can give a copy that bit."""
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
        if self.effects.folder is None or self.effects.omitted or self.effects.unknown:
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
    if cut := _find_cut(then.effects, now.effects):
        shown = [
            UNKNOWN if one.effects.cut else f"{len(one.rows or ())} files" for one in (then, now)
        ]
        return Difference("files", *shown), f"files cannot be compared: {cut}"
    by_effects = was is not None and is_now is not None
    if not by_effects and None in (then.files, now.files):
        shown = [UNKNOWN if one.files is None else f"{len(one.files)} files" for one in (then, now)]
        text = "files cannot be compared: the working folder holds, or was changed in, too many"
        return Difference("files", *shown), text
    had, has = then.hashes, now.hashes
    start = _is_start_the_same(now.effects)
    umask = _is_umask_the_same(then.effects, now.effects)
    bits = _ALL_BITS if start and umask else _PROGRAM
    alike = {
        name
        for name in {*had, *has}
        if _with_bits(had.get(name, ""), bits) == _with_bits(has.get(name, ""), bits)
    }
    other = set[str]()
    if None not in (then.files, now.files):
        other |= {*had, *has} - alike
    if was is not None and is_now is not None:
        other |= {
            path
            for path in {*was, *is_now}
            if not (path in alike and path in had and path in has and has[path] != UNWRITTEN)
            and not _is_same(was.get(path), is_now.get(path), start=start, umask=umask)
        }
    if not other:
        return None
    first = min(other)
    told = (_say(first, was, had), _say(first, is_now, has))
    if told[0] == told[1]:
        told = (_say_mode(told[0], first, was), _say_mode(told[1], first, is_now))
    more = f" and {len(other) - 1} more" if len(other) > 1 else ""
    kind = _find_mode_alone(first, was, is_now)
    what = f"the mode of a {kind}" if kind else "a file"
    text = f"{what} that the command made differs from the recording: {one_line(first)}{more}"
    if _lost_rights(had.get(first), has.get(first)):
        text += (
            "; its set-uid or set-gid bit alone: in a sandbox, root has no capabilities, so that writing to a file clears the bit;"
            " have the command set the bit after it has written"
        )
    if has.get(first) == UNWRITTEN:
        text += "; it was there before and was not written" + (
            "" if start else ": replay in a folder as it was before the recording"
        )
    return Difference("files", *told), text


def _find_cut(then: FileEffects, now: FileEffects) -> str:
    """Say of which run not all effects are known, because folders were not listed; empty where all are."""
    if then.cut:
        return f"in the recording, {then.cut}"
    return f"in the replay, {now.cut}" if now.cut else ""


def _is_start_the_same(now: FileEffects) -> bool:
    """Say whether a replay began on the folder that the recording began on."""
    folder = now.folder or {}
    return not folder.get("differs") or bool(folder.get("restored"))


def _is_umask_the_same(then: FileEffects, now: FileEffects) -> bool:
    """Say whether both commands had one umask; of containers, and in older logs, it is not known."""
    told: list[str] = [(one.folder or {}).get("umask", "") for one in (then, now)]
    return told[0] == told[1] != ""


def _with_bits(text: str, bits: int) -> str:
    """Give a file's hash with these bits of the mode behind it. Older logs have those of programs alone."""
    found, _, mode = text.partition(":")
    kept = int(mode or "0", 8) & bits
    return f"{found}:{kept:o}" if kept else found


def _lost_rights(then: str | None, now: str | None) -> bool:
    """Say whether two hashes are of the same bytes, and of modes of which one has rights that the other has not."""
    (same, _, was), (content, _, mode) = (text.partition(":") for text in (then or "", now or ""))
    if not same or same != content or was == mode:
        return False
    return int(was or "0", 8) & ~_RIGHTS == int(mode or "0", 8) & ~_RIGHTS


def _is_same(
    then: Mapping[str, Any] | None, now: Mapping[str, Any] | None, *, start: bool, umask: bool
) -> bool:
    """Compare two effects on one path.

    start: whether the folder was the same before; else what was there before may be why only one run has an effect, or another one.
    umask: whether it was the same.
    """
    if then is None or now is None:
        return not start
    deleted = "deleted" in (then["change"], now["change"])
    if then["change"] != now["change"] and (start or deleted):
        return False
    if then["kind"] != now["kind"]:
        return False
    if deleted or then["kind"] == "link":
        return True
    is_file = then["kind"] == "file"
    both_made = then["change"] == now["change"] == "created"
    bits = (_ALL_BITS if is_file else _FOLDER) if umask and (start or both_made) else _PROGRAM
    if not is_file and bits == _PROGRAM:
        return True
    modes = {int(one["mode"], 8) & bits for one in (then, now)}
    known = then["hash"] and now["hash"]
    return (
        len(modes) == 1
        and then["size"] == now["size"]
        and (then["hash"] == now["hash"] or not known)
    )


def _find_mode_alone(
    path: str,
    then: Mapping[str, Mapping[str, Any]] | None,
    now: Mapping[str, Mapping[str, Any]] | None,
) -> str:
    """Give the kind of a path of which two effects are the same but for its mode; empty of any other."""
    was, is_now = (then or {}).get(path), (now or {}).get(path)
    if was is None or is_now is None:
        return ""
    alike = all(was[key] == is_now[key] for key in ("change", "kind", "size", "hash"))
    return str(was["kind"]) if alike else ""


def _say(path: str, rows: Mapping[str, Mapping[str, Any]] | None, hashes: Mapping[str, str]) -> str:
    found = (rows or {}).get(path)
    shown = one_line(path)
    if found is None:
        return f"{shown} {hashes.get(path, '') or ABSENT}"
    size = f", {found['size']} bytes" if found["kind"] == "file" else ""
    known = hashes.get(path) or found["hash"]
    return f"{shown} {found['change']}{size}{', ' if known else ''}{known}"


def _say_mode(said: str, path: str, rows: Mapping[str, Mapping[str, Any]] | None) -> str:
    found = (rows or {}).get(path)
    return said if found is None else f"{said}, mode {found['mode']}"
