"""The limit of open files: raised for the proxy, as it was for what it starts, and measured."""

import os
import resource
import subprocess
import sys
from pathlib import Path

from playhead.proxy.open_file_limit import FileGauge

_RAISES = """
import resource, subprocess, sys
from playhead.proxy.open_file_limit import raise_limit, usual_limit
print(raise_limit(), raise_limit(), flush=True)
with usual_limit():
    subprocess.run(["/bin/sh", "-c", "ulimit -Sn"])
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
"""


def test_the_gauge_names_the_lowest_number_that_is_free() -> None:
    """It rises and falls with the files that are open, and is the limit where there is none left."""
    gauge = FileGauge(1000)
    before = gauge.lowest_free
    opened = os.open(os.devnull, os.O_RDONLY)
    try:
        assert gauge.lowest_free > before == opened
    finally:
        os.close(opened)
    assert gauge.lowest_free == before
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))
    try:
        assert gauge.lowest_free == 1000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gauge.close()


def test_the_limit_is_raised_to_the_hard_one_and_lowered_for_a_command() -> None:
    """The second time it is what it was after the first."""
    words = ["/bin/sh", "-c", 'ulimit -Sn 300; ulimit -Hn 3000; exec "$@"', "sh"]
    done = subprocess.run(
        [*words, sys.executable, "-c", _RAISES], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3000", "3000", "300", "3000"]


def test_a_recorded_command_has_the_limit_that_it_would_have_alone(tmp_path: Path) -> None:
    """Programs that wait with `select` cannot have more than 1,024 files."""
    words = ["/bin/sh", "-c", 'ulimit -Sn 300; exec "$@"', "sh", sys.executable, "-m", "playhead.proxy.cli"]  # fmt: skip
    command = ["record", "--store", str(tmp_path), "--", "/bin/sh", "-c", "ulimit -Sn"]
    done = subprocess.run([*words, *command], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["300"], done
