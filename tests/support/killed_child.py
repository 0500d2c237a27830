"""A process that runs commands in processes of their own, and kills each at a line of the store's work, or after a time.

Each line on stdin is a JSON object: `command`, the arguments of `playhead`; and one of `count: true`, which prints the lines
that are run, as `[FILE, LINE, TIMES]` in the order in which each is first run; `at: [FILE, LINE, TIME]`, which dies there;
`after_s`, which dies after so long. Each answer is a line of JSON: how it ended, 0 or the signal's number below 0, and
the seconds of one that came through, or its lines.
"""

import inspect
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

from click.testing import CliRunner

import playhead
from playhead.proxy.cli import cli

# So that what is forked finds them imported.
from playhead.proxy.operations import (
    archive,
    reindex,
    rekey_and_upgrade,
    restore_archived,
    retention,
    tape_files,
    verify,
)

_IMPORTED = (
    *(archive, reindex, rekey_and_upgrade, restore_archived, retention, tape_files, verify),
)
_ROOT = Path(playhead.__file__).parent
_WATCHED = tuple(
    f"{_ROOT / part}/"
    for part in (
        "store",
        "proxy/operations",
        "proxy/trust",
        "timeline/archiving",
        "timeline/formats",
    )
)
_TOOL = sys.monitoring.PROFILER_ID
_MOST_TIMES = 1000
"""A line that is run more often is left alone from then on, since each time costs."""


def main() -> None:
    """Do what is asked for, line by line."""
    for line in sys.stdin:
        asked = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reading)
            _run(asked, writing)
        os.close(writing)
        with open(reading, "rb") as told:
            said = json.loads(told.read() or b"null")
        _, status = os.waitpid(pid, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), said]), flush=True)


def _run(asked: dict[str, Any], told: int) -> None:
    """Run a command in a process that was forked for it; does not return."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # dies of it, whatever it is at
        times: dict[tuple[str, int], int] = {}
        _watch(times, tuple(asked.get("at", ())))
        signal.setitimer(signal.ITIMER_REAL, asked.get("after_s", 60))
        began = time.monotonic()
        made = CliRunner().invoke(cli, asked["command"])
        took_s = time.monotonic() - began
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.monitoring.free_tool_id(_TOOL)
        lines = [[*place, count] for place, count in times.items()]
        os.write(told, json.dumps(lines if "count" in asked else took_s).encode())
        code = made.exit_code
        if code:
            print(made.output, made.exc_info, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def _watch(times: dict[tuple[str, int], int], killed: tuple[Any, ...]) -> None:
    """Count the lines that are run, in all threads, and die at one."""
    watched = sys.monitoring

    def run(code: CodeType, line: int) -> Any:
        if not code.co_filename.startswith(_WATCHED) or not code.co_flags & inspect.CO_OPTIMIZED:
            return watched.DISABLE  # elsewhere, or a module that is imported
        place = code.co_filename, line
        times[place] = count = times.get(place, 0) + 1
        if (*place, count) == killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return watched.DISABLE if count == _MOST_TIMES else None

    watched.use_tool_id(_TOOL, "killed")
    watched.register_callback(_TOOL, watched.events.LINE, run)
    watched.set_events(_TOOL, watched.events.LINE)


if __name__ == "__main__":
    main()
