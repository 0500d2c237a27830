"""Installs an agent in a folder of its own under build/agents, from npm or PyPI, in its newest release."""

import os
import subprocess
import sys
from pathlib import Path

from playhead.tests.agents.catalog import BUILD, Agent, load_agent

_NODE = Agent(name="node", title="Node", command=[], version=["node", "--version"], npm=["node"])
"""Some need a newer one than the machine has."""


class NotInstalled(Exception):
    """An agent could not be had. Says the command that failed, and its last words."""


def install(agent: Agent, *, newest: bool = False) -> None:
    """Install an agent, unless it is there.

    newest: also where an older release is there.
    Raises: NotInstalled.
    """
    if agent.is_installed and not newest:
        return
    place = agent.place
    place.mkdir(parents=True, exist_ok=True)
    if agent.npm:
        if agent.name != _NODE.name:
            install(_NODE)
        _run(_npm(agent), place)
    if agent.pypi:
        _make_environment(agent, place)
    (place / "installed").touch()


def _npm(agent: Agent) -> list[str]:
    first, *others = agent.npm
    packages = [f"{first}@{agent.release or 'latest'}", *others]
    return ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", *packages]


def _make_environment(agent: Agent, place: Path) -> None:
    first, *others = agent.pypi
    packages = [f"{first}=={agent.release}" if agent.release else first, *others]
    wanted = [*_pythons(agent.python), agent.python]
    for number, python in enumerate(wanted, 1):
        try:
            _run(["uv", "venv", "--quiet", "--allow-existing", "--python", python, "."], place)
            break
        except NotInstalled:
            if number == len(wanted):
                raise
    # A sandbox works on a copy of an environment, so what is not compiled here is compiled in every replay.
    words = ["--quiet", "--upgrade", "--compile-bytecode", "--python", "bin/python"]
    _run(["uv", "pip", "install", *words, *packages], place)


def _pythons(version: str) -> list[str]:
    """List interpreters of a version that a version manager has."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return [str(path) for path in sorted(root.glob(f"versions/{version}*/bin/python"))]


def _run(command: list[str], place: Path) -> None:
    path = f"{BUILD / 'node' / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "UV_PYTHON_DOWNLOADS": "never"}
    try:
        done = subprocess.run(
            command, cwd=place, env=env, capture_output=True, text=True, timeout=900, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"`{' '.join(command)}`: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotInstalled(f"`{' '.join(command)}` ended with {done.returncode}: {''.join(last)}")


def find_version(agent: Agent, env: dict[str, str]) -> str:
    """Ask an agent for its version."""
    command = [agent.fill(word, Path(), Path()) for word in agent.version]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    words = done.stdout.split()
    return next(
        (word.strip("(),.") for word in words if word[:1].isdigit() or word[1:2].isdigit()), "?"
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            install(load_agent(name))
        except NotInstalled as error:
            print(f"{name} could not be installed: {error}")
