"""What can keep the engine from starting.

    PlayheadError
      EngineError    the person, at start: port in use, CA unusable, self-test failed

What happens to a single request later is never an error of this kind: it is an event of its run.
"""

from .. import PlayheadError


class EngineError(PlayheadError):
    """The engine cannot start: `str(error)` is one sentence, `hint` says what to do about it."""
