"""Real clients in an environment of their own, where `just sdks` installs them: beside the proxy they would be older."""

import sys
import sysconfig
from pathlib import Path

import pytest

SDKS = Path(__file__).parents[2] / "build" / "sdks"


def site_packages() -> Path:
    """Give the folder of the Python packages there; one that is not there before anything is installed."""
    return next(SDKS.glob("lib/python*/site-packages"), SDKS / "lib")


def find_python(package: str, *, ours: bool = False) -> str:
    """Give an interpreter that has a package, as `google/genai`; skip the test where there is none.

    ours: one of the development environment is enough.
    """
    python = SDKS / "bin" / "python"
    if python.exists() and (site_packages() / package).exists():
        return str(python)
    if ours and (Path(sysconfig.get_path("purelib")) / package).exists():
        return sys.executable
    pytest.skip(f"{package} is not installed: run `just sdks`")
