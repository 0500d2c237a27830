"""A process that puts stores under another key and is killed on the way, as often as it is told to.

Each line on stdin is FOLDER BEFORE AFTER KILL: keys in hex, `-` for none, and the line of store/maintenance/rekey.py, counted as they
are run, at which a process of its own dies. It prints how that ended: 0, or the signal's number below 0; of one
that came through, with how many lines it ran.
"""

import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from playhead.store import StoreKey
from playhead.store.maintenance import rekey as module


def main() -> None:
    module._BATCH_ROWS = 2
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _rekey(*line.split())
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _rekey(folder: str, before: str, after: str, kill: str) -> None:
    """Do it in a process that was forked for it; does not return."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != module.__file__:
            return None
        lines += event == "line"
        if event == "line" and lines == int(kill):
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    code = 1
    try:
        sys.settrace(trace)
        module.rekey(Path(folder), _key(before), _key(after))
        sys.settrace(None)
        print(lines, end=" ", flush=True)
        code = 0
    except Exception:
        traceback.print_exc()
    os._exit(code)


def _key(text: str) -> StoreKey | None:
    return None if text == "-" else StoreKey(bytes.fromhex(text), "a test")


if __name__ == "__main__":
    main()
