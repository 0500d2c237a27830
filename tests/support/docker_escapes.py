"""Every way out that `escapes` knows, tried in containers.

`python -m playhead.tests.support.docker_escapes IMAGE...` tries everything on a machine of its own, and on the same machine
by way of `playhead replay --sandbox docker` in each image; prints what was open as JSON. The engine is another machine's.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from playhead.store import Store

from . import escapes
from .process import COMMAND
from .recordings import ask, record_run


def _in_docker(image: str, store: Path, command: list[str]) -> dict[str, str]:
    given = ("replay", "tape", "--store", str(store), "--sandbox", "docker", "--image", image)
    here = Path(escapes.__file__).parent
    script = [
        word
        for name in ("escapes", "ways_out")
        for word in ("--volume", f"{here / name}.py:/{name}.py:ro")
    ]
    tried = ("python", "-I", "/escapes.py", command[-1])
    done = subprocess.run(
        [*COMMAND, *given, *script, "--", *tried],
        capture_output=True,
        text=True,
        env={**os.environ, "MARK": escapes.MARK},
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _main(images: list[str]) -> None:
    with escapes.populated(0) as (command, environ, folder):
        store = folder / "store"
        with Store.open(store) as opened:
            record_run(opened, "tape", [ask()])
        found = {"bare": escapes.try_bare(command, environ)}
        print(json.dumps(found | {image: _in_docker(image, store, command) for image in images}))


if __name__ == "__main__":
    _main(sys.argv[1:])
