"""Find the programs that a command runs, as far as its words say: by these a profile may ask for a process.

A program is known by the last part of its path, without version, scope or extension: `codex` of `/opt/codex.js` and of
`npx @openai/codex@0.169`. Of a command that runs another one (`node`, `uv run`, `sh -c`) each word may be the program, since
which option takes a value only that command knows.

Pure: words in, names out.
"""

import shlex
from collections.abc import Iterator, Sequence

from .client_profile import Profile, parse_shipped_profile
from .client_profile_file import ProfileFile
from .shipped_profiles import shipped_profiles

_MOST_WORDS = 64
_RUNNERS = frozenset(
    (
        *("env", "nice", "nohup", "timeout", "time", "sudo", "exec", "xvfb-run", "stdbuf"),
        *("sh", "bash", "dash", "zsh", "ash"),
        *("node", "bun", "bunx", "deno", "npx", "npm", "pnpm", "pnpx", "yarn", "tsx"),
        *("python", "python3", "pypy3", "uv", "uvx", "pipx", "poetry", "hatch", "rye"),
        *("ruby", "perl", "java", "dotnet", "cargo", "go"),
    )
)
"""Programs that run the program meant."""
_SUBCOMMANDS = frozenset(("run", "exec", "x", "dlx", "tool", "start"))
"""Words of these that stand before it."""
_EXTENSIONS = (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".jar", ".exe")


def find_programs(command: Sequence[str]) -> frozenset[str]:
    """Give the names of the programs of a command, in lower case."""
    names = list(_names(command))
    if not names:
        return frozenset()
    if _is_runner(names[0]):
        return frozenset(name for name in names if not _is_runner(name))
    return frozenset(names[:1])


def find_program(command: Sequence[str]) -> str:
    """Give the name of the program that most likely is meant; empty where none is."""
    names = list(_names(command))
    own = [name for name in names if not _is_runner(name) and name not in _SUBCOMMANDS]
    return own[0] if own and _is_runner(names[0]) else "".join(names[:1])


def _names(command: Sequence[str]) -> Iterator[str]:
    for word in command[:_MOST_WORDS]:
        yield from map(_name, _split(word))


def _split(word: str) -> Iterator[str]:
    """Give the words of one, which may be a script for a shell."""
    if any(map(str.isspace, word)):
        try:
            words = shlex.split(word)
        except ValueError:
            words = word.split()
    else:
        words = [word]
    for one in words[:_MOST_WORDS]:
        if _name(one) and not one.startswith("-") and "=" not in one:
            yield one


def _name(word: str) -> str:
    last = word.rstrip("/").replace("\\", "/").rpartition("/")[2].lower()
    if not last.startswith("@"):
        last = last.partition("@")[0]
    for extension in _EXTENSIONS:
        last = last.removesuffix(extension)
    return last


def _is_runner(name: str) -> bool:
    return name in _RUNNERS or name.rstrip("0123456789.") in _RUNNERS


def find_fitting(
    command: Sequence[str], files: Sequence[ProfileFile]
) -> tuple[tuple[ProfileFile, ...], tuple[str, ...]]:
    """Give the profiles in files for this command, and the names of the shipped ones that are not for it.

    A profile that asks for a process is for a command that runs it.
    """
    programs = find_programs(command)

    def fits(profile: Profile) -> bool:
        return not profile.processes or bool(programs.intersection(profile.processes))

    own = tuple([one for one in files if fits(parse_shipped_profile(one.text, one.path))])
    return own, tuple([one.name for one in shipped_profiles() if not fits(one)])
