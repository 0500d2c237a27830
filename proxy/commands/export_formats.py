"""The formats that `playhead export` writes: each is an option of its own. `docs/extending.md` says how to add one.

What writes a format is imported when it is asked for: every command reads this list.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..operations.tape_files import Export


class ExportFormat(NamedTuple):
    """One format."""

    help: str
    """Of its option, which names the file."""
    load: "Callable[[], Export]"
    """Imports what writes it."""


def _load_tape() -> "Export":
    from ...timeline.formats.tape_file import export_tape

    return export_tape


FORMATS = {
    "tape": ExportFormat("The file to write; it must not be there yet.", _load_tape),
}
