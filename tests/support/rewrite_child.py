"""A process that rewrites runs and is killed on its way: LINE CONFIG RUN...

LINE counts the lines, as they are run, of the modules that do it; 0 prints how many there are.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.proxy.operations import redact_stored_runs, retention
from playhead.store.archive import batch_index
from playhead.store.maintenance import compact, ingest, removal
from playhead.store.tables import folders
from playhead.timeline.archiving import move_runs
from playhead.timeline.rewriting import rewrite_folder, rewrite_run

_TRACED = frozenset(
    module.__file__
    for module in (
        redact_stored_runs,
        retention,
        rewrite_run,
        rewrite_folder,
        folders,
        move_runs,
        ingest,
        removal,
        compact,
        batch_index,
    )
)


def main(line: int, config: str, names: list[str]) -> None:
    """Run the command, and die at a line."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in _TRACED:
            return None
        count += event == "line"
        if event == "line" and count == line:
            os._exit(9)
        return trace

    signal.alarm(50)
    # The writer's thread, too.
    threading.settrace(trace)
    sys.settrace(trace)
    made = CliRunner().invoke(cli, ["redact", "--rewrite", *names, "-c", config])
    sys.settrace(None)
    threading.settrace(None)
    assert made.exit_code == 0, made.output
    print(count)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
