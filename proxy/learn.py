"""`playhead learn` and `playhead reindex`: what a person asks of tapes that have ended."""

from ..config import Config
from ..store import RunInfo, RunOpen, RunStatus, Store, StoreError
from ..tape.redact import Redactor
from ..timeline.learn import Lesson, learn
from .progress import ProgressBar


def learn_from(config: Config, first: str, second: str) -> Lesson:
    """Compare two recordings of the same task under the rules of a configuration.

    Raises: UnknownRun, RunOpen; StoreError, where one is a playback, or both are the same.
    """
    with Store.open(config.store, readonly=True) as store:
        runs = get_recording(store, first), get_recording(store, second)
        if runs[0].number == runs[1].number:
            raise StoreError(f"{first!r} was given twice", "name two recordings of the same task")
        with ProgressBar("reading") as progress:
            return learn(store, *runs, config.ignore, redactor_of(config), progress)


def get_recording(store: Store, name: str) -> RunInfo:
    """Get a recording that has ended.

    Raises: UnknownRun, RunOpen; StoreError for a playback.
    """
    info = store.get_run(name)
    if info.parent is not None:
        raise StoreError(
            f"{name!r} is a playback of {info.parent!r}, which holds no answers of its own",
            f"name a recording, as {info.parent!r}",
        )
    if info.status is RunStatus.OPEN:
        raise RunOpen(f"run {name!r} is still being recorded", f"end it with: playhead seal {name}")
    return info


def redactor_of(config: Config) -> Redactor:
    """Give what knows which places hold secrets; it is to make no placeholders, so any key does."""
    return Redactor(b"makes none", config.redact)
