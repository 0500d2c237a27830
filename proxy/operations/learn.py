"""`playhead learn`: compare two recordings of the same task; `playhead profiles test`: try the profiles of clients on one or two."""

from ...config import Config
from ...config.profiles.shipped import find_profiles
from ...store import StoreError
from ...tape.canonical.canonical_request import find_field_rules
from ...timeline.learning.learn import Lesson, learn
from ...timeline.learning.try_profiles import Trial, try_on_one, try_on_two
from ..progress import ProgressBar
from .find_tape import get_recording, redactor_of
from .open_store import open_store
from .restore_archived import restore_runs


def learn_from(config: Config, first: str, second: str) -> Lesson:
    """Compare two recordings of the same task under the rules of a configuration.

    Raises: UnknownRun, RunOpen; StoreError, where one is a playback, or both are the same.
    """
    restore_runs(config, first, second)
    with open_store(config, readonly=True) as store:
        runs = get_recording(store, first), get_recording(store, second)
        if runs[0].number == runs[1].number:
            raise StoreError(f"{first!r} was given twice", "name two recordings of the same task")
        with ProgressBar("reading") as progress:
            return learn(
                store,
                *runs,
                config.ignore,
                redactor_of(config),
                progress,
                config.classes,
                find_field_rules(config),
                find_profiles(config.profiles_off),
            )


def try_profiles(config: Config, first: str, second: str | None) -> list[Trial]:
    """Try the profiles of clients on a recording, or on two of the same task.

    Raises: UnknownRun, RunOpen; StoreError, where one is a playback, or both are the same.
    """
    names = (first,) if second is None else (first, second)
    restore_runs(config, *names)
    with open_store(config, readonly=True) as store:
        runs = [get_recording(store, name) for name in names]
        if second is None:
            return try_on_one(store, runs[0], config)
        if runs[0].number == runs[1].number:
            raise StoreError(f"{first!r} was given twice", "name two recordings of the same task")
        with ProgressBar("reading") as progress:
            return try_on_two(store, runs[0], runs[1], config, redactor_of(config), progress)
