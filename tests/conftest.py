"""Fixtures that every test may use."""

import os
from pathlib import Path
from typing import Any

import pytest

from playhead.tape.divergence import Divergence
from playhead.tests.support.certificates import Certificates, make_certificates
from playhead.tests.support.divergences import DIVERGENCES

# The many processes that tests start would each compile all they import: half of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A root and a leaf for loopback, the same for the whole session."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _divergences_keep_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold every divergence that a test makes against the schema that is shipped."""
    render = Divergence.to_json

    def checked(self: Divergence) -> dict[str, Any]:
        made = render(self)
        DIVERGENCES.validate(made)
        return made

    monkeypatch.setattr(Divergence, "to_json", checked)


@pytest.fixture
def store_dir(tmp_path: Path) -> Path:
    """Folder for a store."""
    return tmp_path / "store"
