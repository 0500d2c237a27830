"""How the command of a run ended: its exit code, its stdout, its files; then, now, and where they differ."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....store import RunInfo, Store
from ....tape.counted import counted
from ....tape.diff.divergence_types import COMMAND, Difference, Divergence, DivergenceKind
from ....tape.exchange import Seq
from ....tape.records.events import Event, EventKind
from ..safe_terminal_text import plain
from .compare_files import UNKNOWN, LeftBehind, compare_files
from .file_effects import FileEffects

_EXIT = "exit code"
LEFT_RUNNING = "processes that outlived the command"
_NAMED = 5
"""Processes that are named in a warning."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended, and what it left behind."""

    child_exit: int | None = None
    """Exit code; None where no command was started."""
    command: tuple[str, ...] = ()
    """Secrets are replaced; empty where no command was started."""
    stdout: tuple[str, int] | None = None
    """Hash and bytes of what it wrote; None where stdout was a terminal, or that cannot be known."""
    files: Mapping[str, str] | None = None
    """Hashes of the files that it changed in its working folder, by path; empty for one that is gone. None where they were too
    many."""
    effects: FileEffects = field(default_factory=FileEffects)
    left: tuple[tuple[int, str], ...] = ()
    """Processes that outlived it, by number and name; the number is 0 where they ended with its sandbox."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "CommandEnd":
        """Read it from the log."""
        stdout = data.get("stdout")
        command = tuple(data.get("command", ()))
        effects = FileEffects()
        effects.take(data)
        left = tuple((pid, name) for pid, name in data.get("left_running", ()))
        return cls(
            data["child_exit"], command, stdout and tuple(stdout), data.get("files"), effects, left
        )

    def warnings(self, *, playing: bool) -> Iterator[str]:
        """Say which processes outlived it: what they ask for is missed."""
        if not self.left:
            return
        names = ", ".join(f"{pid} {name}".removeprefix("0 ") for pid, name in self.left[:_NAMED])
        more = f" and {len(self.left) - _NAMED} more" if len(self.left) > _NAMED else ""
        count, is_one = counted(len(self.left), "process", "es"), len(self.left) == 1
        missed = "not compared" if playing else "neither recorded nor compared"
        who = f"{count} of the command"
        if self.left[0][0]:
            told = "still runs" if is_one else "still run"
            does = "it does" if is_one else "they do"
            yield f"{who} {told} ({plain(names + more)}): what {does} from now on is {missed}"
        else:
            told = "was ended" if is_one else "were ended"
            does = "it" if is_one else "they"
            yield f"{who} {told} with the sandbox ({plain(names + more)}): what {does} would have done is {missed}"

    @property
    def left_behind(self) -> LeftBehind:
        """What it left in its folder."""
        return LeftBehind(self.files, self.effects)

    def to_json(self) -> dict[str, Any]:
        """Give it as receipts have it."""
        stdout = None if self.stdout is None else {"hash": self.stdout[0], "bytes": self.stdout[1]}
        return {
            "child_exit": self.child_exit,
            "command": list(self.command),
            "stdout": stdout,
            "files": None if self.files is None else dict(self.files),
            "left_running": [{"pid": pid or None, "name": name} for pid, name in self.left],
        }

    def __str__(self) -> str:
        how = "" if self.child_exit is None else f", ended with {self.child_exit}"
        return f"{plain(shlex.join(self.command), 100)}{how}" if self.command else "none"

    @property
    def wrote(self) -> str:
        """What it wrote to stdout, in words; empty where that is not known, or nothing."""
        if self.stdout is None or not self.stdout[1]:
            return ""
        return f"{self.stdout[1]} bytes, hash {self.stdout[0]}"


@dataclass(slots=True)
class CommandAccount:
    """How a command ended now, and how while its tape was recorded."""

    ended: CommandEnd = CommandEnd()
    recorded: CommandEnd = CommandEnd()
    compared: tuple[str, ...] = ()
    """What of that is compared, beside exit codes: `stdout`, `files`."""
    files: FileEffects = field(default_factory=FileEffects)
    """The working folder, and what the command did to it."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is EventKind.NOTED:
            self.files.take(event.data)
            if "child_exit" in event.data:
                self.ended = CommandEnd.of(event.data)
                self.compared = tuple(event.data.get("compare", ()))

    def take_recorded(self, event: Event) -> None:
        """Take in an event of the tape's log."""
        if event.kind is EventKind.NOTED and "child_exit" in event.data:
            self.recorded = CommandEnd.of(event.data)

    def differences(self, requests: int) -> Iterator[Mapping[str, Any]]:
        """Yield a divergence for each way in which the command ended otherwise than its tape says.

        requests: of the run; the end comes after the last.
        """
        now, then = self.ended.child_exit, self.recorded.child_exit
        if now is not None and then is not None and now != then:
            differs = Difference(_EXIT, str(then), str(now))
            text = f"the command ended with {now}, and with {then} while it was recorded"
            yield self._divergence(requests, differs, text)
        for word in self.compared:
            if word == "stdout":
                found = _compare_stdout(self.recorded, self.ended)
            else:
                found = compare_files(self.recorded.left_behind, self.ended.left_behind)
            if found is not None:
                yield self._divergence(requests, *found)

    def _divergence(self, requests: int, differs: Difference, text: str) -> Mapping[str, Any]:
        name = next(iter(self.ended.command), "")
        kind, seq = DivergenceKind.CHANGED, Seq(requests + 1)
        return Divergence(kind, seq, COMMAND, name, None, (differs,), text).to_json()

    def lines(self) -> list[str]:
        """Say what was run and how it ended, then and now."""
        if not (self.ended.command or self.recorded.command):
            return []
        now, then = str(self.ended), str(self.recorded)
        lines = [f"command: {now}"]
        if now != then and self.recorded.command:
            lines.append(f"recorded: {then}")
        wrote, had = self.ended.wrote, self.recorded.wrote
        if wrote:
            differs = f"; recorded: {had}" if had and had != wrote else ""
            lines.append(f"stdout: {wrote}{differs}")
        return lines


def _compare_stdout(then: CommandEnd, now: CommandEnd) -> tuple[Difference, str] | None:
    if then.stdout == now.stdout and now.stdout is not None:
        return None
    shown = [
        UNKNOWN if one is None else f"{one[0]}, {one[1]} bytes" for one in (then.stdout, now.stdout)
    ]
    text = "the command's stdout differs from the recording"
    if None in (then.stdout, now.stdout):
        text = "stdout cannot be compared: a terminal is not kept, nor is a device; write it to a file or a pipe, then and now"
    return Difference("stdout", *shown), text


def find_files(store: Store, tape: RunInfo) -> tuple[str, ...]:
    """Give the paths of the files that the command of a recording changed. Blocking."""
    for event in store.events.all(tape):
        if event.kind is EventKind.NOTED and event.data.get("files"):
            return tuple(event.data["files"])
    return ()


def find_command(events: Iterable[Event]) -> tuple[str, ...]:
    """Give the command that the run of a log was made with, as stored; empty where no launcher made it."""
    for event in events:
        if event.kind is EventKind.NOTED and event.data.get("command"):
            return tuple(event.data["command"])
    return ()


def find_child_exit(events: Iterable[Event]) -> int | None:
    """Give the exit code of a run's command; None where no launcher started one, or it did not see its end."""
    code = None
    for event in events:
        if event.kind is EventKind.NOTED and isinstance(found := event.data.get("child_exit"), int):
            code = found
    return code
