"""Remove files beside a store that are not part of it: unfinished work, and data under another key."""

import re
import shutil
from pathlib import Path

from ..encryption.cipher import body_folder
from ..paths import REKEYED

_BODIES = re.compile(r"bodies(-[0-9a-f]{16})?")
"""Names of the folders of body files, with a key and without."""


def remove_leftovers(path: Path, check: bytes) -> None:
    """Remove databases and body files that are not a store's, which nobody else has open.

    check: what the store says of its key.
    Raises: OSError.
    """
    shutil.rmtree(path / REKEYED, ignore_errors=True)
    for folder in path.iterdir():
        if _BODIES.fullmatch(folder.name) and folder.name != body_folder(check):
            shutil.rmtree(folder)
