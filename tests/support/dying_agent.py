"""An agent of its own process, which ends as it is told to.

    python -m playhead.tests.support.dying_agent PROXY RUN CA UPSTREAM END NAME...

PROXY: HOST:PORT.
RUN: by which it asks.
END: `kill`, or an exit code.
NAME: what it asks for, as `resume_world` has it; a status is printed for each, 0 where it was not answered in a moment.
"""

import os
import signal
import sys
from pathlib import Path

from playhead.tests.support.resume_world import Client

_PATIENCE_S = 1.0


def main() -> None:
    """Do as the arguments say."""
    address, run, ca, upstream, end, *names = sys.argv[1:]
    client = Client(address, run, Path(ca), upstream)
    for name in names:
        os.write(1, f"{client.ask(name, _PATIENCE_S).status} ".encode())
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(int(end))


if __name__ == "__main__":
    main()
