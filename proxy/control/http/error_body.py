"""The body of every error answer, of the control API and of the pages: error, expected, found, hint."""

from collections.abc import Sequence
from typing import Any


class ControlError(Exception):
    """A request to the control API, or for a page, cannot be answered as it was asked."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        expected: str = "",
        found: str = "",
        hint: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        near: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Say what is wrong.

        near: what may have been meant, for a page: text and address of links.
        """
        super().__init__(error)
        self.status = status
        self.error = error
        self.expected, self.found, self.hint = expected, found, hint
        self.headers = headers
        self.near = near

    def to_json(self) -> dict[str, Any]:
        """Give the body of the answer."""
        return {
            "error": self.error,
            "expected": self.expected,
            "found": self.found,
            "hint": self.hint,
        }
