"""Docker as a person uses it: its command line, on the engine that `.ci/docker` has started."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "playhead"
"""Of this repository; also what agents are run in."""
MISSING = "needs a Docker engine and the image, which .ci/docker makes: PLAYHEAD_DOCKER is not set"


def there() -> bool:
    """Whether there is an engine to be used."""
    return os.environ.get("PLAYHEAD_DOCKER") == "1"


def docker(
    *words: str | Path, env: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one command of Docker's to its end."""
    done = subprocess.run(
        ["docker", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def containers() -> set[str]:
    """Names of all that there are, running or not."""
    return set(docker("ps", "--all", "--format", "{{.Names}}").stdout.split())


class Compose:
    """compose.yaml of this repository as a project of its own."""

    def __init__(self, project: str, folder: Path) -> None:
        """Use a project's name and a folder for further files."""
        self._folder = folder
        self._project = project
        self.files = [ROOT / "compose.yaml"]
        self.env: dict[str, str] = {}

    def __call__(
        self, *words: str, check: bool = False, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of Compose's, under variables for the file."""
        files = [word for file in self.files for word in ("-f", str(file))]
        given = ("compose", "-p", self._project, "--project-directory", str(ROOT), *files)
        return docker(*given, *words, env={**self.env, **(env or {})}, check=check)

    def up(self, profile: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Bring an agent up until it ends; the exit code is that of Playhead's container."""
        words = ("up", "--no-color", "--exit-code-from", profile, profile, f"agent-{profile}")
        return self(*words, env=env)

    def add(self, text: str) -> None:
        """Add a file of more services."""
        file = self._folder / f"more-{len(self.files)}.yaml"
        file.write_text(text)
        self.files.append(file)

    def down(self) -> None:
        """Remove everything."""
        self("--profile", "*", "down", "--volumes", "--timeout", "1", check=True)


@contextlib.contextmanager
def composed(project: str, folder: Path) -> Iterator[Compose]:
    """Use compose.yaml; nothing of it is left in the end."""
    compose = Compose(project, folder)
    try:
        yield compose
    finally:
        compose.down()
