"""Permissions that hold: tests may run as root, for whom no file is read-only."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_NOBODY = 65534


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder that belongs to whom `unprivileged` makes us, outside of what only root may enter."""
    folder = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        yield folder
    finally:
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o700)
        shutil.rmtree(folder)


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Be nobody meanwhile, if we are root."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(_NOBODY)
    except OSError as error:
        pytest.skip(f"cannot become nobody: {error}")
    try:
        yield
    finally:
        os.seteuid(0)
