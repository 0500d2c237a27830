"""Say why a command cannot be started, and what to type instead.

The kernel gives one error number for several causes: `ENOENT` of a script is a script that is not there, or its interpreter. So the
file is looked at, once nothing can be started any more.
"""

import errno
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..errors import CannotStart

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_INTERPRETERS = {
    ".py": "python",
    ".sh": "sh",
    ".bash": "bash",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "npx tsx",
    ".rb": "ruby",
    ".pl": "perl",
    ".jar": "java -jar",
}
"""What runs a file of this kind by its name."""
_LONGEST_FIRST_LINE = 256
_ALIKE = 0.75
_SHOWN = 60


def explain_start(
    command: Sequence[str],
    number: int,
    text: str,
    environ: Mapping[str, str] | None = None,
    *,
    is_sandboxed: bool = False,
) -> "CannotStart":
    """Give the error that says why a command could not be started. Blocks.

    number, text: what `exec` said.
    environ: the variables of the command; by default our own.
    is_sandboxed: whether it was started where not all files of this machine are.
    """
    # Late: whoever mounts copies of folders explains it without the rest of Playhead.
    from ..errors import CannotStart

    why, hint = find_cause(command, number, text, environ, is_sandboxed=is_sandboxed)
    return CannotStart(name_program(command), command, why, hint)


def name_program(command: Sequence[str]) -> str:
    """Give the program of a command as it is shown."""
    return _name(command[0])


def find_cause(
    command: Sequence[str],
    number: int,
    text: str,
    environ: Mapping[str, str] | None = None,
    *,
    is_sandboxed: bool = False,
) -> tuple[str, str]:
    """Give the cause and the remedy, which may be empty; see `explain_start`. Blocks."""
    why, hint = _find_cause(list(command), number, text, environ or os.environ)
    if number == errno.ENOENT and not why:
        why = "the program that loads it is not there: it was built for another system"
        hint = "use one that was built for this system"
        if is_sandboxed:
            why = "it is on this machine, and the sandbox does not show it"
            hint = "leave out --sandbox-files, or use a program in a system folder"
    return why or text, hint


def _name(program: str) -> str:
    """Give the program as it is shown: what is assigned to a variable may be a secret."""
    found = _ASSIGNMENT.match(program)
    return f"{found[0]}..." if found else program


def _find_cause(
    command: list[str], number: int, text: str, environ: Mapping[str, str]
) -> tuple[str, str]:
    """Give the cause and the remedy; both are empty where the error number says all."""
    program = command[0]
    if not program:
        return "the name of the program is empty", "is a variable of your shell not set?"
    path = _find_file(program, environ)
    if path is None:
        return _explain_missing(command, number, text, environ)
    if os.path.isdir(path):
        return "it is a folder", "name a program or a script in it"
    if number in (errno.EACCES, errno.ENOEXEC, errno.ENOENT):
        return _explain_file(command, path, number)
    if number == errno.E2BIG:
        return text, "hand a long text to the command in a file or on standard input"
    return text, ""


def _find_file(program: str, environ: Mapping[str, str]) -> str | None:
    """Give the path of what has the program's name, whether it can be executed or not; what can be is preferred."""
    if "/" in program:
        return program if os.path.exists(program) else None
    places = [os.path.join(folder, program) for folder in _folders(environ)]
    found = [path for path in places if os.path.isfile(path)]
    return next((path for path in found if os.access(path, os.X_OK)), next(iter(found), None))


def _folders(environ: Mapping[str, str]) -> list[str]:
    return [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]


def _explain_missing(
    command: list[str], number: int, text: str, environ: Mapping[str, str]
) -> tuple[str, str]:
    program, rest = command[0], command[1:]
    if _ASSIGNMENT.match(program):
        return (
            "it sets a variable and is no program",
            f"put it before playhead ({_name(program)} playhead ...), or start the command with env:"
            f" -- env {_name(program)} {_quote(map(_name, rest))}",
        )
    if number not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
        return text, ""
    words = _split(program)
    if len(words) > 1:
        return (
            "the command is one word with blanks in it",
            f"leave out the quotes around it: {_example([*words, *rest])}",
        )
    if "/" in program:
        return (
            "no such file",
            f"the path is looked up from {os.getcwd()}: is it spelled right, and is it there?",
        )
    if os.path.isfile(program):
        return "no such program in PATH", f"for the file in this folder: {_by_path(command)}"
    import difflib  # here: hardly ever needed

    if alike := difflib.get_close_matches(program, _programs(environ), 1, _ALIKE):
        return (
            "no such program in PATH",
            f"did you mean {alike[0]!r}? Else: is it installed, and its environment (venv) active?",
        )
    return (
        "no such program in PATH",
        "is it spelled right and installed, and its environment (venv) active?",
    )


def _split(program: str) -> list[str]:
    try:
        return shlex.split(program)
    except ValueError:
        return program.split()


def _programs(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of all programs in PATH."""
    for folder in _folders(environ):
        try:
            yield from os.listdir(folder)
        except OSError:
            continue


def _explain_file(command: list[str], path: str, number: int) -> tuple[str, str]:
    """Say what is wrong with a file that is there."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
        with open(path, "rb") as file:
            first = file.readline(_LONGEST_FIRST_LINE) if is_file else b""
    except OSError:
        first = b""
    by = _interpreter(path)
    run = (
        f"run it with its interpreter: {_example([*by.split(), path, *command[1:]])}" if by else ""
    )
    if number == errno.EACCES:
        remedies = [f"chmod +x {shlex.quote(path)}"] if not os.access(path, os.X_OK) else []
        remedies += [run] if run else []
        return "it may not be executed (Permission denied)", ", or ".join(remedies)
    if number == errno.ENOEXEC:
        if first.startswith(b"\x7fELF"):
            return "it is a program for another kind of machine", "use one for this machine"
        return (
            "it has no first line that names its interpreter (#!)",
            run or "add that line, as #!/usr/bin/env python3",
        )
    if first.startswith(b"#!"):
        named = first[2:].decode("utf-8", "backslashreplace").strip()
        if "\r" in first.decode("latin-1"):
            return (
                "its first line ends as on Windows (CR LF), so its interpreter is not found",
                f"sed -i 's/\\r$//' {shlex.quote(path)}",
            )
        if not os.path.exists(named.split(" ")[0]):
            return (
                f"its first line names an interpreter that is not there: {named[:_SHOWN]}",
                run or "correct that line, or install the interpreter",
            )
    return "", ""


def _interpreter(path: str) -> str:
    return _INTERPRETERS.get(os.path.splitext(path)[1].lower(), "")


def _by_path(command: list[str]) -> str:
    """Write the command with a program of the working folder."""
    program = command[0]
    by = _interpreter(program)
    if by and not os.access(program, os.X_OK):
        return _example([*by.split(), *command])
    return _example([f"./{program}", *command[1:]])


def _example(words: Sequence[str]) -> str:
    return f"-- {_quote(words)}"


def _quote(words: Iterable[str], most: int = 6) -> str:
    """Write words as they are typed; of many, and of long ones, the beginning."""
    given = list(words)
    told = " ".join(shlex.quote(word) if len(word) <= _SHOWN else "..." for word in given[:most])
    return f"{told} ..." if len(given) > most else told
