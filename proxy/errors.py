"""Errors that keep the engine from starting.

    PlayheadError
      EngineError    the person, at start: port in use, CA unusable, self-test failed
        CannotStart  the person, of the command: not there, not executable
      NotAnswered    the person, of a command that asks another process

What happens to a single request later is never an error of this kind: it is an event of its run.
"""

from collections.abc import Sequence

from .. import PlayheadError


class NotAnswered(PlayheadError):
    """The control API of another process did not do what was asked of it."""

    def __init__(
        self, message: str, hint: str = "", *, error: str = "", expected: str = "", found: str = ""
    ) -> None:
        """Say so.

        error, expected, found: what the process said, where it answered.
        """
        super().__init__(message, hint)
        self.error = error or message
        self.expected, self.found = expected, found


class EngineError(PlayheadError):
    """The engine cannot start: `str(error)` is one sentence, `hint` says what to do about it."""


class CannotStart(EngineError):
    """A command that cannot be executed; see `processes/unstartable_command.py`."""

    def __init__(self, program: str, command: Sequence[str], why: str, hint: str) -> None:
        super().__init__(f"cannot start {program!r}: {why}", hint)
        self.command = tuple(command)
