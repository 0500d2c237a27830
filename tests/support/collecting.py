"""Collections under other circumstances: what they find is to be the same.

Of the workers of one run every second one collects a day later and with another folder for temporary files; all have
hashes of their own. pytest-xdist compares what they find, and runs nothing where it differs.

As a plugin of pytest, for one collection, it writes the ids of the tests and the packages that were imported for them:

    pytest -p playhead.tests.support.collecting --collect-only

PLAYHEAD_COLLECTED: the file that is written, as JSON.
PLAYHEAD_DAYS: how many days later the collection believes to be.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_DAY_S = 86_400


class Collected(NamedTuple):
    """What a process has collected."""

    ids: list[str]
    """Of the tests, in their order."""
    imported: list[str]
    """Top-level packages that had been imported then."""
    is_compared: bool
    """Whether another process of this run collected under other circumstances, and found the same."""


COLLECTED = pytest.StashKey[Collected]()
"""Of the configuration: what this process has collected itself."""


def look(session: pytest.Session) -> Collected:
    """Say what was collected, once it is."""
    return Collected(
        [item.nodeid for item in session.items],
        sorted({name.partition(".")[0] for name in sys.modules}),
        _workers(session.config) > 1 and os.environ.get("PYTHONHASHSEED", "random") == "random",
    )


@contextlib.contextmanager
def circumstances(config: pytest.Config) -> Iterator[None]:
    """Be elsewhere a day later meanwhile, in every second worker."""
    given = _given(config)
    if given is None or int(given["workerid"][2:]) % 2 == 0:
        yield
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        clock = _be_later(1)
        try:
            yield
        finally:
            clock.days = 0  # for whoever has taken the function


def _workers(config: pytest.Config) -> int:
    """Give how many workers there are; 0 in a process that is none."""
    given = _given(config)
    return given["workercount"] if given is not None else 0


def _given(config: pytest.Config) -> dict[str, Any] | None:
    """Give what pytest-xdist has given to this worker; None in a process that is none."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    return given


class _Clock:
    """How many days later it is."""

    def __init__(self, days: int) -> None:
        self.days = days


def _be_later(days: int) -> _Clock:
    """Move the clock; give what moves it on."""
    clock = _Clock(days)
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + clock.days * _DAY_S
    time.time_ns = lambda: now_ns() + clock.days * _DAY_S * 10**9
    return clock


def pytest_load_initial_conftests() -> None:
    """Move the clock before any test file is imported."""
    _be_later(int(os.environ["PLAYHEAD_DAYS"]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write what was collected, in its order."""
    found = look(session)._asdict()
    Path(os.environ["PLAYHEAD_COLLECTED"]).write_text(json.dumps(found))
