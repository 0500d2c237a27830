"""What only Linux has is not needed to look at runs: `--help`, `runs` and `show` work where it is missing."""

import os
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tests.support.process import playhead_anew
from playhead.tests.support.recordings import ask, record_run

WITHOUT_LINUX = """
import sys

class Missing:
    def find_spec(self, name, *_):
        if name in {"spwd", "ossaudiodev", "uvloop", "hyperscan"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import ctypes, fcntl, os, resource, select, signal, socket
sys.platform = "darwin"
for module, names in {
    os: "pidfd_open memfd_create eventfd eventfd_read eventfd_write setns unshare splice sched_getaffinity"
    " sched_setaffinity getxattr setxattr listxattr removexattr copy_file_range posix_fadvise fdatasync sendfile"
    " O_PATH O_TMPFILE O_DIRECT O_LARGEFILE O_NOATIME CLONE_NEWUSER CLONE_NEWNET CLONE_NEWNS CLONE_NEWPID MFD_CLOEXEC"
    " EFD_CLOEXEC SCHED_BATCH SCHED_IDLE P_PIDFD",
    select: "epoll EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP EPOLLET EPOLLRDHUP",
    signal: "pidfd_send_signal SIGRTMIN SIGRTMAX SIGPWR SIGSTKFLT SIGPOLL",
    socket: "AF_NETLINK AF_PACKET AF_VSOCK AF_ALG SO_BINDTODEVICE SO_PEERCRED SO_MARK SO_DOMAIN SO_PROTOCOL"
    " SOCK_CLOEXEC SOCK_NONBLOCK TCP_INFO TCP_QUICKACK TCP_USER_TIMEOUT IP_TRANSPARENT TCP_CORK MSG_CMSG_CLOEXEC"
    " MSG_NOSIGNAL",
    fcntl: "F_ADD_SEALS F_GET_SEALS F_SEAL_WRITE F_SEAL_SHRINK F_SEAL_GROW F_SEAL_SEAL F_OFD_SETLK F_OFD_SETLKW"
    " F_SETPIPE_SZ F_GETPIPE_SZ F_NOTIFY",
    resource: "prlimit RLIMIT_OFILE RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

def no_libc(name=None, *_, **__):
    if name is None or "libc" in str(name):
        raise AssertionError("a C library was loaded while modules are imported")
    return real(name)

real, ctypes.CDLL = ctypes.CDLL, no_libc
"""


@pytest.mark.parametrize(
    "words",
    [("--help",), ("runs",), ("runs", "--json"), ("show", "mine"), ("show", "mine", "1")],
    ids=" ".join,
)
def test_runs_can_be_looked_at_without_linux(words: tuple[str, ...], tmp_path: Path) -> None:
    """With the same output."""
    with Store.open(tmp_path / ".playhead") as opened:
        record_run(opened, "mine", [ask()])
    done = playhead_anew(*words, cwd=tmp_path, env=dict(os.environ), first=WITHOUT_LINUX)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == playhead_anew(*words, cwd=tmp_path, env=dict(os.environ)).stdout
