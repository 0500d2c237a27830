"""Tests here are skipped, by name, where there is no engine for them."""

import pytest

from playhead.tests.support import docker


@pytest.fixture(autouse=True, scope="session")
def _engine() -> None:
    if not docker.there():
        pytest.skip(docker.MISSING)
