"""`.ci/bare` says why it cannot make a machine here, and passes. All its programs are stand-ins."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[1] / ".ci/bare"
_HERE = {"id": "echo 0", "unshare": ":", "apt-get": ":", "uv": "exit 1", "debootstrap": "exit 1"}
_DIR = 'd=$(dirname "$0"); case "$*" in *find*) echo "$d/python";; esac'


@pytest.mark.parametrize(
    ("program", "does", "reason"),
    [
        ("id", "echo 1000", "a machine of its own needs root"),
        ("unshare", "exit 1", "this place may not make namespaces"),
        ("python", "exit 1", "no Python"),
        ("apt-get", ":", "apt knows no mirror of Debian"),
        ("debootstrap", "echo no network; exit 1", "no system could be made: no network"),
    ],
)
def test_a_machine_that_cannot_be_made_is_skipped_with_the_reason(
    tmp_path: Path, program: str, does: str, reason: str
) -> None:
    """The last line names it; a Python that is missing is named before."""
    mirror = '[ "$1" = indextargets ] && echo "x http://deb.test/debian/"'
    stands_in = _HERE | {"uv": _DIR, "python": "echo /opt/python", "apt-get": mirror}
    for name, script in (stands_in | {program: does}).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYENV_ROOT": f"{tmp_path}", "PYTHONS": "3.99:root"}
    env["XDG_CACHE_HOME"] = f"{tmp_path}"
    done = subprocess.run([STAGE], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *before, last = done.stdout.splitlines()
    assert last == f"bare stage: skipped ({reason})"
    assert any("Python 3.99 skipped" in line for line in before) == (program == "python")
