"""Somebody without rights who may speak to Docker: `python -m playhead.tests.support.docker_somebody IMAGE`.

Records and replays an agent in the image; prints what it said and the receipts, as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from . import machine, namespaces
from .process import COMMAND

SOCKET = Path("/srv/docker.sock")
_MS_BIND = 0x1000
_AGENT = "import time, uuid; print(time.time(), uuid.uuid4())"


def _playhead(image: str, *words: str) -> dict[str, object]:
    given = [
        *words,
        "--sandbox",
        "docker",
        "--image",
        image,
        "--json",
        "--",
        "python",
        "-c",
        _AGENT,
    ]
    done = subprocess.run(
        [*COMMAND, *given], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.startswith("{"), done.stderr
    return {"said": done.stdout, "receipt": json.loads(done.stderr)}


def _lay_out(engine: Path) -> None:
    """Have the engine's socket where everybody may speak to it, in this process's mounts alone."""
    machine._fill(str(SOCKET.parent))
    SOCKET.touch()
    namespaces._mount(os.fsencode(engine), os.fsencode(SOCKET), _MS_BIND)
    SOCKET.chmod(0o666)


def _main(image: str) -> None:
    engine = Path(urlsplit(os.environ["DOCKER_HOST"]).path)
    machine.enter_or_exit(machine.SOMEBODY, prepare=lambda: _lay_out(engine))
    with tempfile.TemporaryDirectory() as made:
        os.environ |= {"DOCKER_HOST": f"unix://{SOCKET}", "DOCKER_CONFIG": made, "HOME": made}
        store = ("--store", f"{made}/store")
        recorded = _playhead(image, "record", "--run", "clock", "--determinism", "full", *store)
        print(json.dumps([recorded, _playhead(image, "replay", "clock", *store)]))


if __name__ == "__main__":
    _main(sys.argv[1])
