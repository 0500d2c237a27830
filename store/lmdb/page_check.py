"""Check the pages of a store's file without LMDB's engine.

The engine trusts what it maps: a page whose head was damaged can end the process that reads it.
"""

from pathlib import Path

from lmdb.verify import VerifyError
from lmdb.verify import verify as walk

from ..errors import StoreError, StoreUnwritable
from ..paths import DATA, LOG
from .lock import hold_alone

_LISTED = 3


def check_pages(path: Path) -> str | None:
    """Read every page of the store in a folder; give why that could not be done, if so.

    It needs the store alone while it reads: what others commit meanwhile would look like damage. Blocks.
    Raises: StoreError, naming what is damaged.
    """
    if not (path / LOG / DATA).exists():
        return None
    try:
        lock = hold_alone(path, "reading its pages")
    except StoreUnwritable:
        return None
    except StoreError as error:
        return str(error)
    try:
        problems: list[str] = walk(str(path / LOG))  # type: ignore[no-untyped-call]  # lmdb's own
    except VerifyError as error:
        problems = [str(error)]
    finally:
        lock.close()
    if not problems:
        return None
    more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
    raise StoreError(
        f"the file of the store at {path} is damaged: {'; '.join(problems[:_LISTED])}{more}",
        "put back a copy of it",
    )
