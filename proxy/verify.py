"""`playhead verify --secrets`: whether a store holds what it must not."""

from ..config import Config
from ..timeline.secrets import Finding, find_secrets, open_detectors
from .progress import ProgressBar
from .stores import open_store
from .tapes import redactor_of


def verify_secrets(config: Config, run: str | None) -> tuple[list[Finding], int]:
    """Give what reads like a secret in a run, or in all; and how many runs were looked at.

    Raises: UnknownRun, LogCorrupt; PlayheadError, without detect-secrets.
    """
    detect = open_detectors()
    with open_store(config, readonly=True) as store, ProgressBar("reading") as progress:
        runs = [store.get_run(run)] if run is not None else store.runs()
        found = find_secrets(store, runs, lambda: redactor_of(config), detect, progress)
        return list(found), len(runs)
