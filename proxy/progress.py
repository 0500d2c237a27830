"""A progress bar: one line on stderr at a terminal, nothing elsewhere."""

import sys
import time

from .standard_streams import is_terminal

_AFTER_S = 0.5
"""Work that is done by then shows nothing."""
_EVERY_S = 0.1
_WIDTH = 30


class ProgressBar:
    """A bar for work whose size is known. Use as a context manager; call it with how much is done."""

    def __init__(self, label: str) -> None:
        """Prepare a bar; `label` says what is being done."""
        self._label = label
        self._shown = is_terminal(sys.stderr)
        self._next = time.monotonic() + _AFTER_S
        self._drawn = False

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    def __call__(self, done: int, of: int) -> None:
        """Show that so much is done of so much."""
        if not self._shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_S
        self._drawn = True
        share = min(1.0, done / of) if of else 1.0
        filled = round(share * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._write(f"\r{self._label} [{bar}] {done}/{of}")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._shown = False
