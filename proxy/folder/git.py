"""Ask git where a repository stands: its commit, its branch, and the files that differ from it.

A repository can name programs that git runs (`core.fsmonitor`, filters). A command in a sandbox may have written those, so
git is asked only where the repository's own settings name none, and without the user's. Nothing is written: not even the index
is refreshed. Source: git-status(1), git-config(1), gitattributes(5).
"""

import contextlib
import os
import re
import shutil
import subprocess

from ...tape.folders.manifest import MOST_DIRTY, GitState

_PATIENCE_S = 2.0
_RISKY = re.compile(rb"^\s*\[\s*(filter|include|includeif)\b|fsmonitor|hookspath", re.I | re.M)
"""What settings name programs, or other files with settings."""
_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_MOST_BYTES = 1 << 20


def find_git_state(folder: str, *, asked: bool = True) -> GitState | None:
    """Give the state of the work tree whose top a folder is; None where it is none. Blocks, at most a few seconds.

    asked: whether git is asked for changed files; else they are not known.
    """
    git = os.path.join(folder, ".git")
    if not os.path.lexists(git):
        return None
    head, branch = _read_head(git)
    if not asked:
        return GitState(head, branch, None)
    told = _ask(folder, ["status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules"])
    if told is None:
        return GitState(head, branch, None)
    dirty = [_name(row) for row in told.split(b"\0") if row[:1] in (b"1", b"2", b"u", b"?")]
    return GitState(head, branch, tuple(dirty[:MOST_DIRTY]), len(dirty))


def find_tracked_ignored(folder: str) -> frozenset[bytes]:
    """Give the paths that git keeps although they are ignored, with the folders above them. Blocks."""
    if not os.path.lexists(os.path.join(folder, ".git")):
        return frozenset()
    told = _ask(folder, ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"])
    found: set[bytes] = set()
    for path in filter(None, (told or b"").split(b"\0")):
        while path and path not in found:
            found.add(path)
            path = path.rpartition(b"/")[0]
    return frozenset(found)


def _name(row: bytes) -> str:
    fields = {b"1": 8, b"2": 9, b"u": 10, b"?": 1}[row[:1]]
    parts = row.split(b" ", fields)
    return parts[-1].decode("utf-8", "backslashreplace")


def _ask(folder: str, words: list[str]) -> bytes | None:
    """Run git; None where it is not to be run, or says nothing in time."""
    program = shutil.which("git")
    if program is None or not os.path.isabs(program) or _is_risky(folder):
        return None
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = ["-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"]
    settings += ["-c", f"safe.directory={folder}"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, *settings, *words],
            cwd=folder,
            env=kept | _VARIABLES,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
    return None


def _is_risky(folder: str) -> bool:
    """Say whether a repository's settings name programs, or cannot be read here."""
    git = os.path.join(folder, ".git")
    if not os.path.isdir(git) or os.path.islink(git):
        return True  # of a work tree the settings are elsewhere
    for name in ("config", "config.worktree"):
        try:
            with open(os.path.join(git, name), "rb") as file:
                if _RISKY.search(file.read(_MOST_BYTES)):
                    return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _read_head(git: str) -> tuple[str, str]:
    """Give commit and branch, as files say."""
    folder = common = git
    with contextlib.suppress(OSError):
        if os.path.isfile(git):
            line = _read(git).removeprefix("gitdir:").strip()
            folder = common = os.path.join(os.path.dirname(git), line)
        common = os.path.join(folder, _read(os.path.join(folder, "commondir")))
    with contextlib.suppress(OSError):
        head = _read(os.path.join(folder, "HEAD"))
        if not head.startswith("ref:"):
            return head, ""
        name = head.removeprefix("ref:").strip()
        return _find_commit(common, name), name.removeprefix("refs/heads/")
    return "", ""


def _find_commit(common: str, name: str) -> str:
    if ".." in name.split("/") or name.startswith("/"):
        return ""
    with contextlib.suppress(OSError):
        return _read(os.path.join(common, name))
    with contextlib.suppress(OSError), open(os.path.join(common, "packed-refs")) as file:
        for line in file:
            commit, _, packed = line.rstrip("\n").partition(" ")
            if packed == name:
                return commit
    return ""


def _read(file: str) -> str:
    with open(file, errors="backslashreplace") as opened:
        return opened.read(4096).strip()
