"""`playhead verify`: whether a store still holds what it held, and whether it holds what it must not."""

from ..config import Config
from ..timeline.integrity import Verified, verify_run
from ..timeline.secrets import Finding, find_secrets, open_detectors
from .progress import ProgressBar
from .stores import open_store
from .tapes import redactor_of


def verify_runs(config: Config, run: str | None) -> list[Verified]:
    """Check the log, the exchanges and the bodies of a run, or of all.

    Raises: UnknownRun, LogCorrupt for the list of runs itself.
    """
    with open_store(config, readonly=True) as store, ProgressBar("verifying") as progress:
        runs = [store.get_run(run)] if run is not None else store.runs()
        return [verify_run(store, one, progress) for one in runs]


def verify_secrets(config: Config, run: str | None) -> tuple[list[Finding], int]:
    """Give what reads like a secret in a run, or in all; and how many runs were looked at.

    Raises: UnknownRun, LogCorrupt; PlayheadError, without detect-secrets.
    """
    detect = open_detectors()
    with open_store(config, readonly=True) as store, ProgressBar("reading") as progress:
        runs = [store.get_run(run)] if run is not None else store.runs()
        found = find_secrets(store, runs, lambda: redactor_of(config), detect, progress)
        return list(found), len(runs)
