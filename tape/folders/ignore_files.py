"""What ignore files leave out of a folder. Source: gitignore(5); the patterns are read by pathspec."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = b".gitignore"
USUAL = frozenset(
    (
        *(
            b"node_modules",
            b"__pycache__",
            b".venv",
            b".playhead",
            b".tox",
            b".nox",
            b".hg",
            b".svn",
        ),
        *(b".mypy_cache", b".pytest_cache", b".ruff_cache"),
    )
)
"""Folders that are left out wherever they are: made by tools, and large."""
IGNORED = "ignored"


class Ignored:
    """The rules of a folder and of those above it, the deepest first."""

    def __init__(self, rules: "tuple[tuple[bytes, GitIgnoreSpec], ...]" = ()) -> None:
        """Begin with the rules of files, each with the folder that it stands in; empty or ending with a slash."""
        self._rules = rules

    def __eq__(self, other: object) -> bool:
        """Compare by their lines: rules of the same lines are read once."""
        return (
            isinstance(other, Ignored)
            and len(self._rules) == len(other._rules)
            and all(
                folder == there and spec is its
                for (folder, spec), (there, its) in zip(self._rules, other._rules, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def within(self, folder: bytes, text: bytes) -> "Ignored":
        """Give the rules with those of an ignore file in a folder; the same where it holds none.

        folder: its path, which is empty or ends with a slash.
        """
        # As bytes, one a character: so git compares them.
        lines = [line.decode("latin-1") for line in text.splitlines() if line.strip()]
        if all(line.startswith("#") for line in lines):
            return self
        return Ignored(((folder, _read(tuple(lines))), *self._rules))

    def leaves_out(self, path: bytes, *, folder: bool) -> bool:
        """Say whether a path is left out; whoever asks has not gone into a folder that is."""
        for above, spec in self._rules:
            rest = path[len(above) :].decode("latin-1")
            found = spec.check_file(f"{rest}/" if folder else rest).include
            if found is not None:
                return bool(found)
        return False


@cache
def _read(lines: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(_sound(lines))


def _sound(lines: Iterable[str]) -> "list[str]":
    """Leave out patterns that are none: git ignores them."""
    from pathspec import GitIgnoreSpec

    sound = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        sound.append(line)
    return sound
