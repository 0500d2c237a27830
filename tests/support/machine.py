"""A machine of one's own for tests of the sandbox: a network with loopback alone and no shared memory, as root or as somebody without rights.

What is run in it can harm nothing outside, whoever runs it.
"""

import ctypes
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .namespaces import _loopback_up, _mount

SOMEBODY = 10001
NONE = 77
"""Exit code of a script that could not make a machine."""
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_TRAVERSED = stat.S_IXOTH
_FORBIDDEN = (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSPC, errno.ENOSYS)
"""How a kernel or a container says that there are no namespaces for us."""
_NEW = os.CLONE_NEWNET | os.CLONE_NEWNS | os.CLONE_NEWIPC


def enter_or_exit(
    uid: int,
    files: Mapping[str, str] | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> None:
    """Do as `enter`; where that is not allowed end with `NONE`, so that a test can be skipped by name."""
    try:
        enter(uid, files, prepare)
    except OSError as error:
        if error.errno not in _FORBIDDEN:
            raise
        print(f"no machine of one's own: {error}", file=sys.stderr)
        sys.exit(NONE)


def enter(
    uid: int,
    files: Mapping[str, str] | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> None:
    """Leave the network, and be this user. Call it before the process has a second thread.

    Root may become anybody; who is not root stays who it is, whatever is asked for.

    files: texts that stand in files of this machine from now on.
    prepare: called before rights to mount are given up.
    Any port may be listened on.
    Raises: OSError, where the kernel or the machine does not allow it.
    """
    if os.geteuid() != 0:
        unshare_as_ourselves(_NEW)
        _loopback_up()
        _replace(files)
        prepare()
        return
    os.unshare(_NEW)
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
    _loopback_up()
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    _replace(files)
    prepare()
    if uid:
        # The interpreter, the environment, and this package.
        _let_in([Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]])
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def unshare_as_ourselves(kinds: int) -> None:
    """Leave namespaces, as root or as an ordinary user, who stays who it is and gets a namespace of users for it.

    kinds: flags of clone(2). Raises: OSError.
    """
    try:
        os.unshare(kinds)
    except PermissionError:
        ours, group = os.geteuid(), os.getegid()
        os.unshare(os.CLONE_NEWUSER | kinds)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{ours} {ours} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text)


def _replace(files: Mapping[str, str] | None) -> None:
    # Not files that are deleted afterwards: over those a sandbox could mount nothing.
    stage = "/srv"
    if files:
        _fill(stage)
    for index, (path, text) in enumerate((files or {}).items()):
        source = Path(stage, str(index))
        source.write_text(text)
        source.chmod(0o644)
        _mount(os.fsencode(source), os.path.realpath(path).encode(), _MS_BIND)


def _let_in(folders: Iterable[Path]) -> None:
    """Make folders be there for everybody, where one above them is closed to others."""
    staged, filled = {}, set()
    # All of them before anything is filled: one folder may be closed above several.
    for folder in map(Path.resolve, folders):
        closed = [above for above in folder.parents if not above.stat().st_mode & _TRAVERSED]
        if closed:
            staged[folder] = stage = tempfile.mkdtemp()
            _mount(os.fsencode(folder), stage.encode(), _MS_BIND | _MS_REC)
            filled.add(closed[-1])
    for above in filled:
        _fill(str(above))
    for folder, stage in staged.items():
        folder.mkdir(parents=True, exist_ok=True)
        _mount(stage.encode(), os.fsencode(folder), _MS_BIND | _MS_REC)


def _fill(folder: str) -> None:
    """Have an empty folder stand in the place of another."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"mode=755") != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {folder}: {os.strerror(number)}")
