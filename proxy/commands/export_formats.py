"""The formats that `playhead export` writes: each is an option of its own. `docs/extending.md` says how to add one.

What writes a format is imported when it is asked for: every command reads this list.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...config import Config
    from ..operations.tape_files import Export


class ExportFormat(NamedTuple):
    """One format."""

    help: str
    """Of its option, which names the file."""
    load: "Callable[[Config], Export]"
    """Imports what writes it, and gives it a configuration."""


def _load_tape(_: "Config") -> "Export":
    from ...timeline.formats.tape_file import export_tape

    return export_tape


def _load_html(config: "Config") -> "Export":
    from ..pages.export_html import export_html

    return export_html(config)


FORMATS = {
    "tape": ExportFormat("New file for the tape.", _load_tape),
    "html": ExportFormat(
        "New file for a page: the run in one file, redacted and signed.", _load_html
    ),
}
