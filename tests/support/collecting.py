"""A plugin of pytest for one collection: it writes the ids of the tests and the packages that were imported for them.

    pytest -p playhead.tests.support.collecting --collect-only

PLAYHEAD_COLLECTED: the file that is written, as JSON.
PLAYHEAD_DAYS: how many days later the collection believes to be.
"""

import json
import os
import sys
import time
from pathlib import Path

import pytest

_DAY_S = 86_400
COLLECTED = pytest.StashKey[list[str]]()
"""Of the configuration: the ids that this process has collected itself."""


def pytest_load_initial_conftests() -> None:
    """Move the clock before any test file is imported."""
    later_s = int(os.environ["PLAYHEAD_DAYS"]) * _DAY_S
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + later_s
    time.time_ns = lambda: now_ns() + later_s * 10**9


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write what was collected, in its order."""
    found = {
        "ids": [item.nodeid for item in session.items],
        "imported": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    Path(os.environ["PLAYHEAD_COLLECTED"]).write_text(json.dumps(found))
