"""Lines that say what is going to happen before a command runs again: what leaves, and which command it is."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from ...config import LiveRule
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import RequestClass
from ...tape.policy.branch import SandboxRoute

WIDTH = 200
"""Characters of what is recorded or given that are shown."""
NOTHING_LEAVES = "  nothing leaves: requests that the tape lacks are refused, effects are stubbed"


def announce_live(live: Iterable[tuple[LiveRule, RequestClass]]) -> Iterator[str]:
    """Say which classes are asked of their services."""
    for rule, kind in live:
        yield f"  live: {kind.value} at {rule.match.host} ({rule.reason})"


def announce_routes(routes: Iterable[SandboxRoute]) -> Iterator[str]:
    """Say what is sent to a copy of its service."""
    for route in routes:
        yield f"  sandboxed: {one_line(route.match.text)} at {route.place} ({route.reason})"


def announce_command(command: Sequence[str], recorded: Sequence[str] = ()) -> Iterator[str]:
    """Say which command runs, and with which other one the tape was recorded, which does not."""
    yield f"  command: {one_line(shlex.join(command), WIDTH)}"
    if recorded and tuple(recorded) != tuple(command):
        yield f"  recorded with, and not run: {one_line(shlex.join(recorded), WIDTH)}"
