"""The timeline: receipts, listings and checks, computed from the log of a run.

Everything here is computed from events and exchanges, so it can be computed again; nothing here writes.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .receipts.receipt import Receipt, build, exit_code
    from .receipts.render_text import (
        render_divergences,
        render_exchange,
        render_receipt,
        render_run,
        render_runs,
    )

__all__ = [
    "Receipt",
    "build",
    "exit_code",
    "render_divergences",
    "render_exchange",
    "render_receipt",
    "render_run",
    "render_runs",
]


def __getattr__(name: str) -> object:
    """Import what is asked for: receipts take a tenth of a second, and most commands that look back need none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "render_text" if name.startswith("render_") else "receipt"
    return getattr(import_module(f"{__name__}.receipts.{module}"), name)
