"""Memory for bodies on their way, over all exchanges of a process: how much they take, and whether that is much.

A body may be held in memory up to a limit of its own. If many are held at once, those limits add up to more than a process
should take, so bodies are set aside in files while the sum is above a limit. Belongs to the event loop.
"""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

MOST_HELD_BYTES = 16 * 1024 * 1024
"""Bytes of all bodies that are held before further ones are set aside."""
MOST_BACKLOG_BYTES = 16 * 1024 * 1024
"""Bytes that wait for the disk, over all bodies, before the sources of each have to wait sooner."""


class BodyMemory:
    """What the bodies on their way take of memory."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.held = 0
        """Bytes in memory of exchanges that have not ended."""
        self.backlog = 0
        """Bytes that are not in their file yet."""

    @cached_property
    def turn(self) -> "asyncio.Lock":
        """Held by the one exchange whose body is in memory again after it was set aside."""
        import asyncio  # late: who only reads has no loop

        return asyncio.Lock()

    @property
    def is_short(self) -> bool:
        """Whether a body that grows should be set aside."""
        return self.held > MOST_HELD_BYTES

    @property
    def is_behind(self) -> bool:
        """Whether the disk takes less than comes."""
        return self.backlog > MOST_BACKLOG_BYTES
