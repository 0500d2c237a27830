"""The JSON body of every error answer: error, expected, found, hint."""

from typing import Any


class ControlError(Exception):
    """A request to the control API cannot be answered as it was asked."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        expected: str = "",
        found: str = "",
        hint: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers
        self._document = {"error": error, "expected": expected, "found": found, "hint": hint}

    def to_json(self) -> dict[str, Any]:
        """Give the body of the answer."""
        return dict(self._document)
