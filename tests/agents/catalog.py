"""The agents that are run: one file each in descriptions/, with the way to install it, its command and its environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

BUILD = Path(__file__).parents[2] / "build" / "agents"
"""Where `just agents` installs them, a folder each, and Node."""
_FOLDER = Path(__file__).with_name("descriptions")
_TASK = "Read notes.txt, look up item 1, clone the tool and place the order."
_KEY = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
"""Stands in keys, which are nobody's."""


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent of the catalog."""

    name: str
    title: str
    command: list[str]
    """With `{task}`, `{work}` for the working folder, `{place}` for where it is installed, `{here}` for programs/."""
    version: list[str]
    npm: list[str] = []
    pypi: list[str] = []
    python: str = "3.13"
    env: dict[str, str] = {}
    """With `{key}` for a key, and `{home}` for the home folder."""
    home: dict[str, str] = {}
    """Files of the home folder, by path."""
    work: dict[str, str] = {}
    """Files of the working folder, by path, beside notes.txt."""
    record: list[str] = []
    """Flags of `playhead record`."""
    timeout_s: int = 120
    missing: str = ""
    """Why it is not run."""
    release: str = ""
    """Of its first package; empty: the newest."""

    @property
    def place(self) -> Path:
        """Where it is installed."""
        return BUILD / f"{self.name}@{self.release}" if self.release else BUILD / self.name

    def fill(self, text: str, work: Path, home: Path) -> str:
        """Put the values in the place of their names."""
        names: Mapping[str, object] = {
            "{task}": _TASK,
            "{key}": _KEY,
            "{work}": work,
            "{home}": home,
            "{here}": Path(__file__).with_name("programs"),
            "{examples}": Path(__file__).parents[2] / "examples",
            "{place}": self.place,
        }
        for name, value in names.items():
            text = text.replace(name, str(value))
        return text

    @property
    def is_installed(self) -> bool:
        """Whether `just agents` has installed it."""
        return (self.place / "installed").exists()


def load_agents() -> list[Agent]:
    """Load the catalog, in its order."""
    return [_load(path) for path in sorted(_FOLDER.glob("*.yaml"))]


def load_agent(words: str) -> Agent:
    """Load one agent by `NAME`, or `NAME@RELEASE`. Raises: FileNotFoundError."""
    name, _, release = words.partition("@")
    return msgspec.structs.replace(_load(_FOLDER / f"{name}.yaml"), release=release)


def _load(path: Path) -> Agent:
    value: dict[str, Any] = yaml.safe_load(path.read_text())
    return msgspec.convert({"name": path.stem, **value}, Agent)
