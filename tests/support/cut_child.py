"""A process that looks at a store whose data file is cut at every page: STORE COMMAND...

A process of its own, since reading a page that is missing would end it. It prints a JSON list: for each number of pages,
from all of them down, what the command printed, or `refused: ` and why.
"""

import json
import sys
from pathlib import Path

from click.testing import CliRunner

from playhead import PlayheadError
from playhead.proxy.cli import cli

PAGE_BYTES = 4096


def look(store: str, *command: str) -> list[str]:
    """Run a command on a store that is ever shorter; give what came of it."""
    file = Path(store, "log.lmdb", "data.mdb")
    whole, found = file.read_bytes(), []
    for pages in range(len(whole) // PAGE_BYTES, 1, -1):
        file.write_bytes(whole[: pages * PAGE_BYTES])
        done = CliRunner().invoke(cli, [*command, "--store", store], standalone_mode=False)
        if isinstance(done.exception, PlayheadError):
            found.append(f"refused: {done.exception}")
        elif done.exception is not None:
            raise done.exception
        else:
            found.append(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(look(*sys.argv[1:])))
