"""Real clients in an environment of their own, where `just sdks` installs them: beside the proxy they would be older."""

import sys
import sysconfig
from pathlib import Path

import pytest

_BUILD = Path(__file__).parents[2] / "build"
SDKS = _BUILD / "sdks"
FRAMEWORKS = _BUILD / "frameworks"


def site_packages(place: Path = SDKS) -> Path:
    """Give the folder of an environment's Python packages; one that is not there before anything is installed."""
    return next(place.glob("lib/python*/site-packages"), place / "lib")


def find_python(package: str, *, place: Path = SDKS, ours: bool = False) -> str:
    """Give an interpreter that has a package, as `google/genai`; skip the test where there is none.

    ours: one of the development environment is enough.
    """
    python = place / "bin" / "python"
    if python.exists() and (site_packages(place) / package).exists():
        return str(python)
    if ours and (Path(sysconfig.get_path("purelib")) / package).exists():
        return sys.executable
    pytest.skip(f"{package} is not installed: run `just sdks`")
