"""The seccomp filter: the system calls that a sandbox refuses.

1. Sockets of families that a network namespace does not cover (vsock) or that an agent has no use for: only IPv4,
   IPv6, netlink and Unix, the last as streams: a datagram may be sent to any path by calls whose arguments no filter sees.
   `strict` refuses Unix sockets too, since their paths may lead to programs outside; pairs of streams stay.
2. io_uring, which opens sockets without the system calls that are looked at here.
3. New namespaces and mounts: nobody needs rights that the kernel gives inside a namespace of one's own, and
   hidden folders stay hidden. clone3 keeps its flags in memory, where no filter sees them: it does not exist here, and
   C libraries go on with clone.
4. The kernel's key store, which can have the kernel start a program outside (and look names up); bpf and perf.
5. Typing into the terminal (TIOCSTI): the shell outside would read it.
6. Modules, other kernels, disks, clocks and files by their number: all need rights that are given up, too.
7. System calls of another architecture, whose numbers mean something else: these kill.

Where Unix sockets are allowed each `connect` is answered by another process (`connect_for_command`): only there can be seen to where
a path leads. There each program that is started is seen, too, and starts whatever it is.

Source: seccomp(2); numbers from Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

import errno
import platform

from .bpf import AND, ANY_BIT, AT_LEAST, EQUAL, LOAD, RETURN, Op, assemble
from .seccomp_notifications import can_watch
from .syscalls import install_filter, install_listening_filter

ALLOW, KILL, ERROR, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000

NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16
"""Places in what a filter sees of a call; of each argument, 8 bytes, the lower half comes first."""

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_FIRST_X32 = 0x40000000

CALLS: dict[str, tuple[int, int]] = {
    # name: number on x86_64, on aarch64
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "fanotify_init": (300, 262),
    "connect": (42, 203),
    "execve": (59, 221),
    "execveat": (322, 281),
}
STARTS = ("execve", "execveat")
"""Start a program."""
NOT_THERE = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""Answered as by a kernel that does not have them, so that programs do without."""
REFUSED = (
    *("setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "mount_setattr"),
    "open_tree_attr",
    *("fsopen", "fsconfig", "fsmount", "fspick"),
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"),
    *("swapon", "swapoff", "reboot", "acct", "quotactl", "quotactl_fd"),
    *("settimeofday", "clock_settime", "fanotify_init"),
)

UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
FAMILIES = (_INET, _INET6, _NETLINK, UNIX)
STREAMS = (1, 5)
"""SOCK_STREAM and SOCK_SEQPACKET."""
TYPE_BITS = 0xF
NEW_NAMESPACE = 0x7E020000
"""CLONE_NEW* of users, networks, mounts, processes, IPC, host names and control groups."""
NEW_TIME = 0x80
"""CLONE_NEWTIME; clone has a signal's number there."""
TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""


def program(machine: str, *, strict: bool, asks: bool = False) -> list[Op | str]:
    """Write the filter for a machine, as `platform.machine()` names it.

    asks: somebody answers each `connect`, and is told of each program that is started.
    Raises: KeyError, on another than these.
    """
    column = tuple(MACHINES).index(machine)
    number = {name: numbers[column] for name, numbers in CALLS.items()}
    families = [one for one in FAMILIES if one != UNIX or not strict]
    written: list[Op | str] = [
        Op(LOAD, MACHINE_AT),
        Op(EQUAL, MACHINES[machine], None, "foreign"),
        Op(LOAD, NUMBER_AT),
    ]
    if machine == "x86_64":
        written.append(Op(AT_LEAST, _FIRST_X32, "foreign"))
    written += [Op(EQUAL, number[name], name) for name in _INSPECTED]
    written += [Op(EQUAL, number[name], "not there") for name in NOT_THERE]
    written += [Op(EQUAL, number[name], "refused") for name in REFUSED]
    asked = ("connect", *STARTS) if asks else ()
    written += [Op(EQUAL, number[name], "connect") for name in asked]
    written += [Op(RETURN, ALLOW), "connect", Op(RETURN, ASK)]
    written += ["socket", _argument(0)]
    written += [Op(EQUAL, UNIX, "streams")] if UNIX in families else []
    written += [Op(EQUAL, family, "allowed") for family in families if family != UNIX]
    written += ["no family", Op(RETURN, ERROR | errno.EAFNOSUPPORT)]
    written += ["socketpair", _argument(0), Op(EQUAL, UNIX, None, "no stream")]
    written += ["streams", _argument(1), Op(AND, TYPE_BITS)]
    written += [Op(EQUAL, kind, "allowed") for kind in STREAMS]
    written += ["no stream", Op(RETURN, ERROR | errno.EAFNOSUPPORT)]
    written += ["ioctl", _argument(1)]
    written += [Op(EQUAL, request, "refused") for request in TYPING]
    written += [Op(RETURN, ALLOW)]
    written += ["clone", _argument(0), Op(ANY_BIT, NEW_NAMESPACE, "refused"), Op(RETURN, ALLOW)]
    written += ["unshare", _argument(0), Op(ANY_BIT, NEW_NAMESPACE | NEW_TIME, "refused")]
    written += ["allowed", Op(RETURN, ALLOW)]
    written += ["refused", Op(RETURN, ERROR | errno.EPERM)]
    written += ["not there", Op(RETURN, ERROR | errno.ENOSYS)]
    written += ["foreign", Op(RETURN, KILL)]
    return written


_INSPECTED = ("socket", "socketpair", "ioctl", "clone", "unshare")
"""Their arguments decide."""


def _argument(index: int) -> Op:
    return Op(LOAD, ARGUMENTS_AT + 8 * index)


def install(*, strict: bool) -> int | None:
    """Filter every system call of this process and of all that it makes.

    Gives a descriptor at which each `connect` and each start of a program has to be answered; None where nobody needs to, or can.
    Raises: OSError; KeyError, on a machine that is not known.
    """
    machine = platform.machine()
    if not strict and can_watch():
        listener = install_listening_filter(assemble(program(machine, strict=strict, asks=True)))
        if listener is not None:
            return listener
    install_filter(assemble(program(machine, strict=strict)))
    return None


def find_starts() -> dict[int, str]:
    """Give the calls that start a program by their numbers here."""
    machine = platform.machine()
    if machine not in MACHINES:
        return {}
    column = tuple(MACHINES).index(machine)
    return {CALLS[name][column]: name for name in STARTS}
