"""Find the tape that a command works on: by name, ended, and not a playback."""

from typing import TYPE_CHECKING

from ...config import Config
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError
from ...tape.exchange import RunId
from ...tape.shell_words import shell_word

if TYPE_CHECKING:
    from ...tape.redaction.redactor import Redactor


def get_recording(store: Store, name: str) -> RunInfo:
    """Get a recording that has ended.

    Raises: UnknownRun, RunOpen; StoreError for a playback.
    """
    info = store.runs.get(name)
    if info.parent is not None and not info.has_resumed:
        raise StoreError(
            f"{name!r} is a playback of {info.parent!r}, which holds no answers of its own",
            f"name a recording, as {info.parent!r}",
        )
    if info.status is RunStatus.OPEN:
        raise RunOpen(
            f"run {name!r} is still being recorded",
            f"end it with: playhead seal {shell_word(name)}",
        )
    return info


def choose_recording(store: Store, name: str) -> tuple[str, tuple[RunId, ...]]:
    """Choose the run that is replayed under a name: the newest recording of that name with an exchange; give the others, too.

    `NAME~1` is the run NAME itself.
    """
    named = store.runs.find_recordings(name)
    if named:
        return named[0].id, tuple(one.id for one in named[1:])
    base, _, number = name.rpartition("~")
    if number == "1" and base and store.runs.find(name) is None:
        return base, ()
    return name, ()


def redactor_of(config: Config, key: bytes = b"makes none") -> "Redactor":
    """Give what knows which places hold secrets.

    key: of the store; where it is to make no placeholders, any does.
    """
    from ...tape.redaction.redactor import Redactor  # here: what finds a tape needs none

    return Redactor(key, config.redact, config.redact_off)
