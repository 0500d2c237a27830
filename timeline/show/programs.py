"""The programs of a run with their versions, and where its repository stood, for the end of a page and as JSON types."""

from collections.abc import Iterable, Iterator
from typing import Any

from ...tape.exchange import Seq
from ...tape.folders.manifest import GitState
from ..steps.program_versions import Program, ProgramKind
from .fit import fit
from .listing import WIDTH

_TITLES = {
    ProgramKind.SDK: "SDKs",
    ProgramKind.TOOL: "tools",
    ProgramKind.MCP_SERVER: "MCP servers",
}
"""Clients are named with their lanes."""
_COMMIT = 12
"""Characters of a commit's hash that are shown."""


def list_programs(
    programs: Iterable[tuple[Program, Seq]], git: GitState | None = None
) -> Iterator[str]:
    """Give a line for each kind of program, and one for the repository."""
    named: dict[ProgramKind, list[str]] = {}
    for program, _ in programs:
        ran = f" ({program.tool})" if program.tool else ""
        named.setdefault(program.kind, []).append(f"{program.name}{ran}")
    for kind, title in _TITLES.items():
        if kind in named:
            yield fit(f"{title}: {', '.join(named[kind])}", WIDTH)
    if git is not None and git.head:
        branch = f" on {git.branch}" if git.branch else ""
        dirty = f", {git.dirty_count} files not committed" if git.dirty_count else ""
        yield fit(f"git: {git.head[:_COMMIT]}{branch}{dirty}", WIDTH)


def program_json(program: Program, first: Seq) -> dict[str, Any]:
    """Give a program with its version.

    first: the seq at which it was first seen.
    """
    return {
        "kind": program.kind.value,
        "name": program.name,
        "tool": program.tool or None,
        "first": first,
    }


def git_json(git: GitState | None) -> dict[str, Any] | None:
    """Give where a repository stood when the run began."""
    if git is None:
        return None
    return {"head": git.head or None, "branch": git.branch or None, "dirty": git.dirty_count}
