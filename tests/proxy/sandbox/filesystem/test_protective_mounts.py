"""Mounts that protect files of the machine, where some of the machine is closed to us."""

import subprocess
import sys

import pytest

from playhead.tests.support.machine import NONE, SOMEBODY
from playhead.tests.support.needs import need

LOCK = """
import ctypes, os, sys
from pathlib import Path
from playhead.proxy.sandbox.filesystem.protective_mounts import lock_all, pin
from playhead.tests.support import machine
from playhead.proxy.sandbox.kernel.syscalls import mount

def furnish():
    mount("tmpfs", "/srv", "tmpfs")
    for name, mode in (("closed", 0o700), ("open", 0o755)):
        folder = Path("/srv", name, "mounted")
        folder.mkdir(parents=True)
        folder.parent.chmod(mode)
        mount("tmpfs", str(folder), "tmpfs")
        folder.chmod(0o777)
        (folder / "file").write_text("theirs")

    # Something that is mounted over a mount: its path leads elsewhere.
    Path("/srv/over/hidden").mkdir(parents=True)
    mount("tmpfs", "/srv/over/hidden", "tmpfs")
    mount("tmpfs", "/srv/over", "tmpfs")
    Path("/srv/over/hidden").mkdir()

machine.enter_or_exit(int(sys.argv[1]), prepare=furnish)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: the maps are ours to write
ours, group = os.geteuid(), os.getegid()
os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
for name, text in (("setgroups", "deny"), ("uid_map", f"{ours} {ours} 1"), ("gid_map", f"{group} {group} 1")):
    Path("/proc/self", name).write_text(text)
pin(["/srv"])
lock_all("/srv")
for name in ("open", "closed"):
    try:
        Path("/srv", name, "mounted", "ours").write_text("")
        print(name, "written")
    except OSError as error:
        print(name, error.strerror)
"""


@pytest.mark.parametrize(
    ("uid", "closed"), [(0, "Read-only file system"), (SOMEBODY, "Permission denied")]
)
def test_a_mount_in_a_closed_folder_keeps_nobody_from_locking_the_others(
    uid: int, closed: str
) -> None:
    """A command that runs as the same user cannot reach it either."""
    if uid:
        need("root")  # to become somebody who has not made the folder
    done = subprocess.run(
        [sys.executable, "-c", LOCK, str(uid)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == NONE:
        pytest.skip(done.stderr)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["open Read-only file system", f"closed {closed}"]
