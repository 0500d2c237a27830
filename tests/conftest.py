"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

from playhead.tests.support.certificates import Certificates, make_certificates

# The many processes that tests start would each compile all they import: half of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A root and a leaf for loopback, the same for the whole session."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def store_dir(tmp_path: Path) -> Path:
    """Folder for a store."""
    return tmp_path / "store"
