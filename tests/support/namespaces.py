"""A process with a network of its own: loopback and nothing else, and a resolver file that it chooses."""

import ctypes
import fcntl
import os
import socket
import struct
import tempfile
from pathlib import Path

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_ANSWER_S = 30
"""How long a name may be looked up, the most that resolv.conf(5) takes: its server is a thread of a busy test."""
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


def enter(resolver: str = "127.0.0.1") -> None:
    """Leave the network: loopback is up, names are asked of `resolver` alone.

    Call it before the process has a second thread.
    Raises: OSError, where the kernel or the machine does not allow it.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET | os.CLONE_NEWNS)
        _map("setgroups", "deny")
        _map("uid_map", f"0 {uid} 1")
        _map("gid_map", f"0 {gid} 1")
    except PermissionError:
        os.unshare(os.CLONE_NEWNET | os.CLONE_NEWNS)
    _loopback_up()
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
    # No cache, no resolver service and no hosts file stands between a look-up and the server.
    _replace("/etc/resolv.conf", f"nameserver {resolver}\noptions timeout:{_ANSWER_S} attempts:1\n")
    _replace("/etc/nsswitch.conf", "hosts: dns\n")


def _map(name: str, text: str) -> None:
    Path("/proc/self", name).write_text(text)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _replace(path: str, text: str) -> None:
    """Have another text stand in a file, for this process and its children."""
    target = Path(path).resolve()
    if not target.exists():
        if path.endswith("resolv.conf"):
            raise FileNotFoundError(f"there is no {path} to stand in for")
        return
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    _mount(file.name.encode(), str(target).encode(), _MS_BIND)
    os.unlink(file.name)


def _mount(source: bytes, target: bytes, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source, target, None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target.decode()}: {os.strerror(number)}")
