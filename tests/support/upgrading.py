"""Formats that do not exist, two steps that lead to them, and a process that is killed while it takes them.

    python -m playhead.tests.support.upgrading

Each line on stdin is FOLDER LINE: the line of store/maintenance/upgrade.py and backup.py, counted as they are run, at which a
process of its own dies. It prints how that ended: 0, or the signal's number below 0; of one that came through, with
how many lines it ran.
"""

import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from playhead.store.encryption.cipher import StoreCipher
from playhead.store.lmdb import open as opening
from playhead.store.lmdb.open import open_environment
from playhead.store.lmdb_keys import FORMAT
from playhead.store.maintenance import backup, upgrade
from playhead.store.maintenance.upgrade import Batch, Rows, Step

NEW = FORMAT + 2
COUNT = 9
BEFORE = {b"%d" % n: b"%d" % n for n in range(COUNT)}
AFTER = {b"%d" % n: b"%d and one, and so on" % n for n in range(COUNT)}
_TABLE = "made-up"
_BATCH_ROWS = 2


def _step(more: bytes) -> Step:
    """A step that would show if a row were taken twice, or left out."""

    def take(rows: Rows, at: bytes) -> Batch:
        table = rows.table(_TABLE)
        with rows.transaction.cursor(table) as cursor:
            found: list[tuple[bytes, bytes]] = []
            ahead = cursor.set_range(at) if at else cursor.first()
            while ahead and len(found) < _BATCH_ROWS:
                found.append((bytes(cursor.key()), bytes(cursor.value())))
                ahead = cursor.next()
            following = bytes(cursor.key()) if ahead else None
        for place, data in found:
            value = rows.cipher.decrypt(_TABLE, place, data)
            _, sealed = rows.cipher.encrypt(_TABLE, place, value + more)
            rows.transaction.put(place, sealed, db=table)
        return Batch(following, len(found))

    return take


STEPS = {FORMAT: _step(b" and one"), FORMAT + 1: _step(b", and so on")}


def install(put: Any = setattr) -> None:
    """Make two formats ahead the current one."""
    put(upgrade, "FORMAT", NEW)
    put(upgrade, "STEPS", STEPS)
    put(opening, "FORMAT", NEW)


def plant(path: Path, cipher: StoreCipher) -> None:
    """Put the rows that the steps change into a store."""
    with open_environment(path / "log.lmdb", readonly=False) as environment:
        table = environment.open_db(_TABLE.encode())
        with environment.begin(write=True, db=table) as transaction:
            for key, value in BEFORE.items():
                transaction.put(*cipher.encrypt(_TABLE, key, value))


def planted(path: Path, cipher: StoreCipher) -> dict[bytes, bytes]:
    """Read them."""
    with open_environment(path / "log.lmdb", readonly=True) as environment:
        table = environment.open_db(_TABLE.encode(), create=False)
        with environment.begin(db=table) as transaction:
            return {
                bytes(key): cipher.decrypt(_TABLE, bytes(key), bytes(data))
                for key, data in transaction.cursor()
            }


def main() -> None:
    install()
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _upgrade(*line.split())
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _upgrade(folder: str, kill: str) -> None:
    """Do it in a process that was forked for it; does not return."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in (upgrade.__file__, backup.__file__):
            return None
        lines += event == "line"
        if event == "line" and lines == int(kill):
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    code = 1
    try:
        sys.settrace(trace)
        upgrade.upgrade(Path(folder), None)
        sys.settrace(None)
        print(lines, end=" ", flush=True)
        code = 0
    except Exception:
        traceback.print_exc()
    os._exit(code)


if __name__ == "__main__":
    main()
