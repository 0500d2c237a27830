"""Read the notes that the preloads wrote about their processes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .read_untrusted_file import read_agent_file

_MOST_BYTES = 8 << 20
"""Of the notes of one process."""
_MOST_ROWS = 1000


@dataclass(slots=True)
class Report:
    """An account of the processes of a command."""

    processes: dict[str, str] = field(default_factory=dict)
    """Those that ran with a preload, by execution context: what they are."""
    others: dict[str, str] = field(default_factory=dict)
    """Those that ran with the library for C, and no preload of an interpreter, by execution context: the name of the program."""
    started: dict[str, str] = field(default_factory=dict)
    """Those that these started, by execution context: the name of the program."""
    exhausted: list[str] = field(default_factory=list)
    """Contexts that read the clock more often than was recorded."""
    kernel_randomness: set[str] = field(default_factory=set)
    """What asked for randomness and got the kernel's, as it may speak TLS: program, and library of it."""
    sources: set[str] = field(default_factory=set)
    """Sources of time and chance that were used, and cannot be repeated."""
    problems: list[str] = field(default_factory=list)

    @property
    def uncovered(self) -> list[str]:
        """The programs that were started, and ran without a preload, by name."""
        return sorted(
            program
            for context, program in self.started.items()
            if context not in self.processes and context not in self.others and program != "fork"
        )

    def to_json(self) -> dict[str, Any]:
        """Give it as receipts have it."""
        return {
            "processes": len(self.processes) + len(self.others) + len(self.uncovered),
            "preloaded": len(self.processes) + len(self.others),
            "runtimes": sorted({*self.processes.values(), *self.others.values()})[:_MOST_ROWS],
            "uncovered": self.uncovered[:_MOST_ROWS],
            "exhausted": self.exhausted[:_MOST_ROWS],
            "kernel_randomness": sorted(self.kernel_randomness)[:_MOST_ROWS],
            "sources": sorted(self.sources)[:_MOST_ROWS],
            "problems": self.problems[:_MOST_ROWS],
        }


def read_report(folder: Path, program: str) -> Report:
    """Read the notes in a folder.

    program: name of the command's program, which is the first process.
    """
    report = Report(started={"0": program})
    replaced, hosted = set(), set()
    for path in sorted(folder.glob("*.notes")):
        context = path.name.removesuffix(".notes")
        for word, *words in _lines(path):
            match word, words:
                case "process", ["libc", name]:
                    report.others[_program_context(context)] = name
                case "kernel", [name]:
                    program_name = report.others.get(_program_context(context), "")
                    report.kernel_randomness.add(
                        program_name if name == "exe" else f"{program_name}: {name}"
                    )
                case "became", [child, name]:
                    report.started[child] = name
                    replaced.add(_program_context(context))
                case "hosted", _:
                    hosted.add(_program_context(context))
                case "process", [runtime, version]:
                    report.processes[context] = f"{runtime} {version}"
                case "child", [child, name]:
                    report.started[child] = name
                case "exhausted", [text]:
                    report.exhausted.append(f"{context}|{text}")
                case "source", [name]:
                    runtime = report.processes.get(context, "").partition(" ")[0]
                    report.sources.add(f"{runtime}: {name}")
                case "problem", [text]:
                    report.problems.append(f"process {context}: {text}")
    for context in replaced | hosted:
        report.others.pop(context, None)
    for context in replaced - report.processes.keys():
        report.started.pop(context, None)
    return report


def _program_context(name: str) -> str:
    """Give the context of a process by the name of its files: the library for C has its own beside a preload's."""
    return name.replace(".c+", "+").removesuffix(".c")


def read_contexts(folder: Path, process: str) -> dict[int, str]:
    """Read the contexts of a process by their number, as far as it has told them."""
    contexts = {}
    for line in _lines(folder / f"{process}.notes"):
        match line:
            case ["lane", number, text] if number.isascii() and number.isdecimal():
                contexts[int(number)] = text
    return contexts


def _lines(path: Path) -> Iterator[list[str]]:
    for line in read_agent_file(path, _MOST_BYTES).splitlines():
        try:
            yield [word.decode("unicode_escape") for word in line.split(b"\t")]
        except UnicodeDecodeError:  # cut off by the end of its process
            continue
