"""Playhead: a transparent record and replay proxy for AI agents.

An agent is pointed at Playhead with `HTTPS_PROXY` and changed in no other way. In record mode every
exchange with the outside world goes onto a tape; in playback mode the same agent runs again from
the tape, its side effects stubbed and listed, and nothing leaves the machine but declared live calls.

`PlayheadError` is the base of every error that a person is meant to read: one clear sentence and,
where there is something to do, a hint. The leaves stand in the part that raises them:

    PlayheadError
      ConfigError      config/errors.py   the person, in a file
      StoreError       store/errors.py    the person, on disk
        StoreTooNew, StoreUnwritable, UnknownRun, RunOpen, LogCorrupt
      EngineError      proxy/errors.py    the person, at start: port, CA, self-test
        CannotStart
      NotAnswered      proxy/errors.py    the person, of a command that asks another process
"""

__version__ = "0.1.0"


class PlayheadError(Exception):
    """A fault that a person can act on: `str(error)` is what happened, `hint` is what to do."""

    hint: str = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
