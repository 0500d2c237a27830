"""Errors that keep the engine from starting.

    PlayheadError
      EngineError    the person, at start: port in use, CA unusable, self-test failed
      NotAnswered    the person, of a command that asks another process

What happens to a single request later is never an error of this kind: it is an event of its run.
"""

from .. import PlayheadError


class NotAnswered(PlayheadError):
    """The control API of another process did not do what was asked of it."""


class EngineError(PlayheadError):
    """The engine cannot start: `str(error)` is one sentence, `hint` says what to do about it."""
