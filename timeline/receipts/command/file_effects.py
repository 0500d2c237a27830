"""What a command did to its working folder, as a receipt has it: which folder it saw, and what it wrote."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_KEYS = ("path", "change", "kind", "size", "hash", "mode")
_MOST_ROWS = 1000
_MOST_SHOWN = 8
_HOW = {"overlay": "an overlay", "copy": "a copy"}


@dataclass(slots=True)
class FileEffects:
    """The working folder of one run, and what its command did to it."""

    folder: dict[str, Any] | None = None
    """Of a recording: what it held at the start. Of a replay: on what the command worked. None where nobody looked."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    omitted: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Of all that was written, the rows that are left out as well; those of git's own as `git`. Empty in an older log."""

    def take(self, data: Mapping[str, Any]) -> None:
        """Take what a launcher noted at the end."""
        if "folder" not in data:
            return
        self.folder = dict(data["folder"])
        rows = data.get("file_effects") or ()
        self.rows = [dict(zip(_KEYS, row, strict=False)) for row in rows[:_MOST_ROWS]]
        self.omitted = data.get("file_effects_omitted", 0) + max(0, len(rows) - _MOST_ROWS)
        self.counts = dict(data.get("file_effects_counts", {}))

    @property
    def unknown(self) -> str:
        """Why nothing is known of what was written, as a sentence without a stop; empty where something is."""
        why = (self.folder or {}).get("unknown", "")
        return f"what the command wrote is not known, because {why}" if why else ""

    @property
    def cut(self) -> str:
        """Which folders were not listed before or after, so that not all effects are known; empty where all were."""
        folder = self.folder or {}
        if self.unknown:
            return self.unknown
        if told := folder.get("cut", ""):
            return str(told)
        # An older log has their number.
        omitted = folder.get("omitted", 0)
        return f"{omitted} folders are not listed" if omitted else ""

    def to_json(self) -> dict[str, Any]:
        """Give it as receipts have it."""
        return {
            "folder": self.folder,
            "file_effects": None if self.unknown else self.rows,
            "file_effects_omitted": None if self.unknown else self.omitted,
        }

    def lines(self) -> list[str]:
        """Give it as text, in lines that may hold anything that is in a path."""
        if self.folder is None:
            return []
        mode = self.folder.get("mode")
        lines = []
        if differs := self.folder.get("differs"):
            seen = "the command saw it as it is"
            if self.folder.get("restored"):
                seen = "the command saw it as it was then"
            if self.folder.get("restored") and (places := self.folder.get("elsewhere")):
                seen = f"the command saw its files as they were then, and git's repository at {places[0]} as it is now"
            if self.folder.get("restored") and (unlisted := self.folder.get("unlisted")):
                seen += f", but for {unlisted}"
            what = "; ".join([*differs, *self.folder.get("uncompared", ())])
            lines.append(f"folder, not as recorded: {what}; {seen}")
        elif mode != "in-place" and (places := self.folder.get("elsewhere")):
            lines.append(f"folder: git's repository at {places[0]} is as it is now")
        if mode == "in-place":
            lines.append(
                "folder: the command worked on your folder itself, and its writes are there"
            )
        lines += [
            f"folder: {text}" for text in self.folder.get("said", ()) if "differs" not in text
        ]
        return lines + self._written(mode)

    def _written(self, mode: str | None) -> list[str]:
        if self.unknown:
            return [f"files: {self.unknown}"]
        shown = [row for row in self.rows if not _is_of_git(row["path"])]
        if not self.rows and not self.cut:
            return []
        known = Counter("git" if _is_of_git(row["path"]) else row["change"] for row in self.rows)
        counts = self.counts or known
        told = [
            f"{counts[name]} {name}"
            for name in ("created", "changed", "deleted")
            if counts.get(name)
        ]
        if counts.get("git"):
            told.append(f"{counts['git']} of git's own")
        if self.omitted and not self.counts:
            told.append(f"{self.omitted} more")
        became = ""
        if mode in ("overlay", "copy"):
            kept = self.folder is not None and self.folder.get("kept")
            became = ", kept in the folder" if kept else f", on {_HOW[mode]}, discarded"
        known_part = f"; more is not known: {self.cut}" if self.cut else ""
        lines = [f"files: {', '.join(told) or 'none'}{became if told else ''}{known_part}"]
        lines += [f"  {row['change']} {row['path']}{_size(row)}" for row in shown[:_MOST_SHOWN]]
        beyond = sum(counts.values()) - counts.get("git", 0) - min(len(shown), _MOST_SHOWN)
        if beyond > 0:
            lines.append(f"  and {beyond} more")
        return lines


def _size(row: Mapping[str, Any]) -> str:
    if row["kind"] != "file" or row["change"] == "deleted":
        return ""
    return f" ({row['size']} bytes)"


def _is_of_git(path: str) -> bool:
    return ".git" in path.split("/")
