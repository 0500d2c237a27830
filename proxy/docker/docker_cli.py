"""Run Docker's command line, one command at a time, and translate its errors."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import EngineError

_PATIENCE_S = 60.0
"""Longest wait for an answer."""
_HELPER_ENDS_S = 30.0
_SWEEP = (
    'folder=$1; shift; word=; read -r word; docker rm --force --volumes "$@";'
    # Whoever was killed may have been asking for one more.
    ' test "$word" = done || { sleep 3; docker rm --force --volumes "$@"; }; rm -rf "$folder"'
)


class Docker:
    """The engine that this user's `docker` speaks to."""

    def __init__(self) -> None:
        """Find the program. Raises: EngineError."""
        found = shutil.which("docker")
        if found is None:
            raise EngineError(
                "there is no `docker` in PATH, which --sandbox docker needs",
                "install Docker, or run the command on this machine: leave out --sandbox docker and --image",
            )
        self.program = found

    def run(self, *words: str) -> str:
        """Run one command; give what it printed.

        Raises: EngineError, with Docker's own last line.
        """
        try:
            done = subprocess.run(
                [self.program, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
                check=False,
                # A Ctrl-C is for us to act on.
                process_group=0,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(
                f"`docker {words[0]}` gave no answer in {_PATIENCE_S:.0f} s",
                "see whether `docker version` answers; restart the engine",
            ) from error
        if done.returncode:
            raise explain(words[0], done.stderr)
        return done.stdout.strip()

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin one command of which nobody wants to know what came of it."""
        return subprocess.Popen(
            [self.program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def find_image(self, name: str, hint: str) -> dict[str, Any]:
        """Give what the engine knows of an image.

        hint: what to do where there is none of this name.
        Raises: EngineError.
        """
        try:
            return dict(json.loads(self.run("image", "inspect", name))[0])
        except EngineError as error:
            if "no such image" not in str(error).lower():
                raise
            raise EngineError(f"there is no image {name!r} here", hint) from error

    def has_file(self, container: str, path: str) -> bool:
        """Say whether a container, which need not run, has a file or a link there."""
        with subprocess.Popen(
            [self.program, "cp", f"{container}:{path}", "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        ) as copy:
            assert copy.stdout is not None
            # The first block of an archive; the file itself may be large.
            found = bool(copy.stdout.read(512))
            copy.kill()
        return found


class Sweep:
    """Removes containers, and a folder after them, when it is told to, or when we are gone."""

    def __init__(self, folder: Path, containers: list[str]) -> None:
        """Wait, in a session of its own: a signal for us is none for it."""
        self._process = subprocess.Popen(
            ["sh", "-c", _SWEEP, "sh", str(folder), *containers],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def finish(self) -> None:
        """Remove them now. Twice is once."""
        # Where it takes longer it goes on without us.
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            self._process.communicate(b"done\n", timeout=_HELPER_ENDS_S)


def explain(what: str, said: str) -> EngineError:
    """Make an error of what Docker printed on stderr."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = lines[-1] if lines else "it printed nothing"
    lowered = said.lower()
    if "permission denied" in lowered and "socket" in lowered:
        return EngineError(
            "this user may not speak to the Docker engine",
            "become a member of the group `docker`, or use a rootless engine",
        )
    if (
        "cannot connect" in lowered
        or "error during connect" in lowered
        or "is the docker daemon running" in lowered
    ):
        return EngineError(
            f"no Docker engine answers: {text}",
            "start it, or point DOCKER_HOST at one of this machine",
        )
    return EngineError(f"`docker {what}` failed: {text}", "see whether the same works by hand")


def variables_of(image: Mapping[str, Any]) -> dict[str, str]:
    """Give the variables that an image sets."""
    rows = (image.get("Config") or {}).get("Env") or []
    return dict(row.partition("=")[::2] for row in rows)
