"""`.ci/docker` tells what it cannot have here from what is wrong with what it tests. All its programs are stand-ins."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[1] / ".ci/docker"
_NOTHING = ("unshare", "dockerd", "iptables")
_PROGRAMS = {
    "id": "echo 0",
    "apt-get": '[ "$1" = indextargets ] && echo "x http://deb.test/debian/"',
    "debootstrap": 'mkdir -p "$5/usr/local/bin"',
    "python": 'case "$*" in *iniconfig*) exit "$INDEX";; -) ;; *) exit 1;; esac',
}


@pytest.mark.parametrize(("index", "code"), [(0, 1), (1, 0)])
def test_a_wrong_requirement_is_no_reason_to_skip(tmp_path: Path, index: int, code: int) -> None:
    """Where another package can be had it is ours; where none can there is no index."""
    for name, does in (dict.fromkeys(_NOTHING, ":") | _PROGRAMS).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "INDEX": str(index)}
    done = subprocess.run([STAGE], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    said = done.stdout.splitlines()[-1]
    assert said.startswith(
        f"docker stage: {'skipped (wheels' if index else 'failed: what pyproject'}"
    )
