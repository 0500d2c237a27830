"""The timeline: receipts, listings and checks, computed from the log of a run.

Everything here is computed from events and exchanges, so it can be computed again; nothing here writes.
"""

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
