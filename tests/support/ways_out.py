"""More ways out of a sandbox: each family of sockets, namespace, device, setting and system call by itself.

For `escapes`, which loads this file from beside itself and hands over what its own tries are made of. Like those, they
need the standard library alone.
"""

import ctypes
import errno
import os
import resource
import signal
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Try = Callable[[], object]

SINGLE = ("family ", "device ", "call ", "setting", "namespace of ", "tcp by many paths")
"""How names begin of which a machine has some and not others."""
NOT_EVERYWHERE = {
    *("the first process: its descriptors", "the first process: a descriptor of it"),
    *("the first process: its memory", "the first process by another /proc"),
    *("short pointers", "32 bits", "typing into the terminal", "a disk", "a device with a network"),
}
"""What a machine may not have, or keep to itself. The first process is no other than another process."""
RACES = {"unix, late, its address changed meanwhile", "unix, late, its socket changed meanwhile"}
"""What is not won each time, wherever it is tried."""
KNOWN_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
DEVICES = (
    *("console", "kvm", "fuse", "vsock", "vhost-net", "vhost-vsock", "mem", "kmem", "port", "kmsg"),
    *("tty0", "tty1", "ttyS0", "vcs", "loop0", "loop-control", "btrfs-control", "hwrng", "nvram"),
    *(
        "cpu_dma_latency",
        "snapshot",
        "rfkill",
        "uinput",
        "ptp0",
        "mapper/control",
        "autofs",
        "cuse",
    ),
    *("userfaultfd", "udmabuf", "vga_arbiter", "net/tun", "ppp", "snd/seq", "input/event0"),
)
NAMESPACES = {
    "users": 0x10000000,
    "networks": 0x40000000,
    "mounts": 0x20000,
    "processes": 0x20000000,
    "IPC": 0x8000000,
    "host names": 0x4000000,
    "control groups": 0x2000000,
    "clocks": 0x80,
}
SETTINGS = (
    *("/proc/sys/kernel/modprobe", "/proc/sys/kernel/printk", "/proc/sys/kernel/sysrq"),
    *("/proc/sys/vm/drop_caches", "/proc/sys/fs/file-max", "/proc/sysrq-trigger"),
    *("/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/pressure/cpu"),
    *(
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
)
RELEASE_AGENTS = "/sys/fs/cgroup"
_CALLS = {
    # name: numbers on x86_64 and aarch64, arguments that do nothing where they are allowed
    "init_module": ((175, 105), (0, 0, 0)),
    "finit_module": ((313, 273), (-1, 0, 0)),
    "delete_module": ((176, 106), (b"playhead_none", 0)),
    "kexec_load": ((246, 104), (0, 0, 0, 0)),
    "reboot": ((169, 142), (0, 0, 0, 0)),
    "swapon": ((167, 224), (b"/playhead-none", 0)),
    "quotactl": ((179, 60), (0x80000100, 0, 0, 0)),
    "bpf": ((321, 280), (0, 0, 0)),
    "perf_event_open": ((298, 241), (0, 0, -1, -1, 0)),
    "keyctl": ((250, 219), (0, -3, 1)),
    "request_key": ((249, 218), (b"user", b"playhead-none", 0, 0)),
    "fanotify_init": ((300, 262), (0, 0)),
    "io_uring_enter": ((426, 426), (-1, 0, 0, 0, 0)),
    "io_uring_register": ((427, 427), (-1, 0, 0, 0)),
    "fsopen": ((430, 430), (b"tmpfs", 0)),
    "open_tree": ((428, 428), (-100, b"/", 1)),
    "mount_setattr": ((442, 442), (-100, b"/", 0, 0, 0)),
    "pivot_root": ((155, 41), (b"/playhead-none", b"/playhead-none")),
}
_PERMITTED = {errno.EPERM, errno.EACCES, errno.ENOSYS}
_SECONDS = 1.0


def ways_out(given: dict[str, str], tools: Any) -> dict[str, Try]:
    """Give all tries by name.

    given: where programs outside are, as `escapes` put them.
    tools: the module `escapes`.
    """
    tries: dict[str, Try] = {}
    tries |= _network(given, tools)
    tries |= _unix(given, tools)
    tries |= _late(given, tools)
    tries |= _processes(given, tools)
    tries |= {
        f"family {number}": _family(number)
        for number in range(3, 46)
        if number not in KNOWN_FAMILIES
    }
    tries |= {f"device {name}": _device(name) for name in DEVICES}
    tries |= {f"namespace of {name}": _namespace(flag, tools) for name, flag in NAMESPACES.items()}
    tries |= {f"setting {path}": _setting(path, tools) for path in SETTINGS}
    tries |= {f"call {name}": _call(name) for name in _CALLS}
    tries["setting: agents of control groups"] = lambda: tools._writable(
        *map(str, Path(RELEASE_AGENTS).rglob("release_agent"))
    )
    tries |= _files(given, tools)
    return tries


# ---- the network -------------------------------------------------------------------------------------


def _network(given: dict[str, str], tools: Any) -> dict[str, Try]:
    port = int(given["port"])

    def mapped() -> None:
        sock = socket.socket(socket.AF_INET6)
        sock.settimeout(_SECONDS)
        sock.connect(("::ffff:127.0.0.1", port))
        tools._hear(sock)

    def by_name() -> None:
        tools._hear(socket.create_connection(("localhost", port), _SECONDS))

    def from_device() -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        sock.settimeout(_SECONDS)
        sock.connect(("127.0.0.1", port))
        tools._hear(sock)

    def waiting_not() -> None:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))
        time.sleep(0.05)
        sock.settimeout(_SECONDS)
        tools._hear(sock)

    def multipath() -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        sock.settimeout(_SECONDS)
        sock.connect(("127.0.0.1", port))
        tools._hear(sock)

    def in_a_message() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(_SECONDS)
            sock.sendmsg([b"ask"], [], 0, ("127.0.0.1", port))
            if sock.recv(100) != b"outside":
                raise OSError("somebody else is there")

    def raw(protocol: int) -> Try:
        return lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)

    return {
        "tcp by an address of both versions": mapped,
        "tcp by name": by_name,
        "tcp by a device": from_device,
        "tcp without waiting": waiting_not,
        "tcp by many paths": multipath,
        "udp in a message": in_a_message,
        "raw tcp": raw(socket.IPPROTO_TCP),
        "raw udp": raw(socket.IPPROTO_UDP),
        "raw anything": raw(255),
        "raw ipv6 anything": lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 255),
        "netlink: a rule": lambda: tools._netlink(
            32, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 0, 0, 0, 1, 0), 0x600
        ),
        "netlink: a neighbour": lambda: tools._netlink(
            28, struct.pack("=BxxxiHBB", 2, 1, 0x80, 0, 0), 0x600
        ),
        "netlink: an address": lambda: tools._netlink(
            20,
            struct.pack("=BBBBI", 2, 32, 0, 0, 1)
            + struct.pack("=HH4s", 8, 2, bytes((10, 9, 9, 9))),
            0x600,
        ),
    }


def _family(number: int) -> Try:
    def attempt() -> None:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(number, kind).close()
            except OSError as error:
                last = error
            else:
                return
        raise last

    return attempt


# ---- Unix sockets ------------------------------------------------------------------------------------


def _unix(given: dict[str, str], tools: Any) -> dict[str, Try]:
    """Paths at which somebody listened before."""
    path = given["elsewhere"]
    folder, name = os.path.split(path)

    def from_there() -> None:
        here = os.getcwd()
        os.chdir(folder)
        try:
            tools._unix(name)
        finally:
            os.chdir(here)

    def by_link() -> None:
        link = f"{os.getcwd()}/link-{os.getpid()}"
        os.symlink(path, link)
        try:
            tools._unix(link)
        finally:
            os.unlink(link)

    def by_another_name() -> None:
        other = f"{folder}/other-{os.getpid()}"
        os.link(path, other)
        try:
            tools._unix(other)
        finally:
            os.unlink(other)

    def moved() -> None:
        os.rename(path, f"{path}-moved")
        try:
            tools._unix(f"{path}-moved")
        finally:
            os.rename(f"{path}-moved", path)

    def made_anew() -> None:
        # Whoever takes the place away may have what is under it.
        os.rename(folder, f"{folder}-moved")
        try:
            tools._unix(f"{folder}-moved/{name}")
        finally:
            os.rename(f"{folder}-moved", folder)

    def held() -> None:
        descriptor = os.open(path, os.O_PATH)
        try:
            tools._unix(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    def datagram_message() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendmsg([b"ask"], [], 0, given["datagrams"])

    def datagram_connected() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(given["datagrams"])
            sock.send(b"ask")

    def datagram_raw() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_RAW) as sock:
            sock.sendto(b"ask", given["datagrams"])

    def pair_message() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            ours.sendmsg([b"ask"], [], 0, given["datagrams"])

    return {
        "unix from its folder": from_there,
        "unix by a link": by_link,
        "unix by another name": by_another_name,
        "unix that was moved": moved,
        "unix in a folder that was moved": made_anew,
        "unix by the folder that we are in": lambda: tools._unix(
            os.path.relpath(path, os.getcwd())
        ),
        "unix by our root": lambda: tools._unix(f"/proc/self/root{path}"),
        "unix by a descriptor": held,
        "unix datagram in a message": datagram_message,
        "unix datagram connected": datagram_connected,
        "unix datagram, raw": datagram_raw,
        "unix datagram by a pair, in a message": pair_message,
    }


def _late(given: dict[str, str], tools: Any) -> dict[str, Try]:
    """Paths at which somebody listens who came after we did: nobody could hide those."""
    path = given["late"]
    race_s = float(given["race_s"])

    def wait_for(late: str) -> str:
        Path(given["ready"]).touch()
        deadline = time.monotonic() + 5
        while not os.path.exists(late):
            if time.monotonic() > deadline:
                raise FileNotFoundError(late)
            time.sleep(0.01)
        return late

    def packets() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(_SECONDS)
            sock.connect(wait_for(f"{path}-packets"))
            tools._hear(sock)

    def datagram() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"ask", wait_for(f"{path}-datagrams"))

    def by_link() -> None:
        link = f"{os.getcwd()}/late-{os.getpid()}"
        os.symlink(wait_for(path), link)
        try:
            tools._unix(link)
        finally:
            os.unlink(link)

    def relative() -> None:
        tools._unix(os.path.relpath(wait_for(path), os.getcwd()))

    def in_a_child() -> None:
        wait_for(path)
        tools._in_child(lambda: tools._unix(path))

    def in_a_thread() -> None:
        wait_for(path)
        errors: list[BaseException] = []

        def work() -> None:
            try:
                tools._unix(path)
            except OSError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    return {
        "unix, late": lambda: tools._unix(wait_for(path)),
        "unix, late, packets": packets,
        "unix, late, datagram": datagram,
        "unix, late, by a link": by_link,
        "unix, late, by a relative path": relative,
        "unix, late, in a child": in_a_child,
        "unix, late, in a thread": in_a_thread,
        "unix, late, its address changed meanwhile": lambda: _flip_address(wait_for(path), race_s),
        "unix, late, its socket changed meanwhile": lambda: _flip_socket(wait_for(path), race_s),
    }


def _address(path: str) -> bytes:
    return (struct.pack("=H", socket.AF_UNIX) + os.fsencode(path) + b"\0").ljust(110, b"\0")


def _flip_address(path: str, race_s: float) -> None:
    """Connect to a socket of our own, and have another thread put the other address in its place."""
    libc = ctypes.CDLL(None, use_errno=True)
    ours = f"{os.getcwd()}/own-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(ours)
        own.listen(200)
        shared = ctypes.create_string_buffer(_address(ours), 110)
        _race(shared, (_address(ours), _address(path)), lambda: _one(libc, shared, own), race_s)
    os.unlink(ours)


def _one(libc: Any, shared: Any, own: socket.socket) -> bool:
    """Connect once; say whether it is somebody outside."""
    with socket.socket(socket.AF_UNIX) as sock:
        if libc.connect(sock.fileno(), shared, 110) != 0:
            return False
        own.settimeout(0.01)
        try:
            own.accept()[0].close()
        except TimeoutError:
            return True
    return False


def _race(
    shared: Any, texts: tuple[bytes, bytes], attempt: Callable[[], bool], race_s: float
) -> None:
    """Try for so many seconds, with something changing beside it."""
    over = threading.Event()

    def flip() -> None:
        while not over.is_set():
            for text in texts:
                ctypes.memmove(shared, text, len(text))

    thread = threading.Thread(target=flip)
    thread.start()
    deadline = time.monotonic() + race_s
    try:
        while time.monotonic() < deadline:
            if attempt():
                return
    finally:
        over.set()
        thread.join()
    raise OSError(errno.ECONNREFUSED, "it was always the address that was looked at")


def _flip_socket(path: str, race_s: float) -> None:
    """Connect a socket of IPv4 by a number that another thread gives to a Unix socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    there = struct.pack("!H4s", 9, bytes((127, 0, 0, 1)))
    inet = (struct.pack("=H", socket.AF_INET) + there).ljust(110, b"\0")
    shared = ctypes.create_string_buffer(inet, 110)
    over = threading.Event()
    place = os.dup(0)

    def swap() -> None:
        while not over.is_set():
            for family in (socket.AF_INET, socket.AF_UNIX):
                with socket.socket(family) as sock:
                    os.dup2(sock.fileno(), place)

    def attempt() -> bool:
        if libc.connect(place, shared, 110) != 0:
            return False
        try:
            held = socket.socket(fileno=os.dup(place))
        except OSError:
            return False
        with held:
            return bool(held.family == socket.AF_UNIX)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        _race(shared, (inet, _address(path)), attempt, race_s)
    finally:
        over.set()
        thread.join()
        os.close(place)


# ---- processes ---------------------------------------------------------------------------------------


def _processes(given: dict[str, str], tools: Any) -> dict[str, Try]:
    pid = int(given["pid"])
    tries: dict[str, Try] = {
        f"another process: its {name}": _read(f"/proc/{pid}/{name}")
        for name in ("environ", "cmdline", "maps", "stat", "io", "mountinfo", "net/unix")
    }
    tries |= {
        f"another process: its namespace of {name}": lambda name=name: os.close(  # type: ignore[misc]
            os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        )
        for name in ("mnt", "pid", "user", "ipc", "uts", "cgroup")
    }

    def read_memory() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(8)
        local = struct.pack("@PN", ctypes.addressof(buffer), 8)
        with open(f"/proc/{pid}/maps") as file:
            at = int(file.readline().partition("-")[0], 16)
        if libc.process_vm_readv(pid, local, 1, struct.pack("@PN", at, 8), 1, 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    tries |= {
        "another process: its limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE),
        "another process: its processors": lambda: os.sched_setaffinity(
            pid, os.sched_getaffinity(pid)
        ),
        "another process: its priority": lambda: os.setpriority(
            os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)
        ),
        "another process: its group": lambda: os.killpg(os.getpgid(pid), 0),
        "another process: read at a distance": read_memory,
        "another process: its end": lambda: _pidfd_signal(pid),
        "another process: its score": lambda: tools._writable(f"/proc/{pid}/oom_score_adj"),
    }
    return tries


def _pidfd_signal(pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, 0)
    finally:
        os.close(handle)


def _read(path: str) -> Try:
    def attempt() -> None:
        with open(path, "rb") as file:
            file.read(1)

    return attempt


# ---- the kernel --------------------------------------------------------------------------------------


def _device(name: str) -> Try:
    def attempt() -> None:
        path = f"/dev/{name}"
        for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
            try:
                os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
            except OSError as error:
                last = error
            else:
                return
        raise last

    return attempt


def _namespace(flag: int, tools: Any) -> Try:
    return lambda: tools._in_child(lambda: tools._libc("unshare", flag))


def _setting(path: str, tools: Any) -> Try:
    return lambda: tools._writable(path)


def _call(name: str) -> Try:
    def attempt() -> None:
        numbers, arguments = _CALLS[name]
        number = numbers[("x86_64", "aarch64").index(os.uname().machine)]
        libc = ctypes.CDLL(None, use_errno=True)
        # An error of any other kind is of what was asked for: that one may ask was looked at first.
        if libc.syscall(number, *arguments) < 0 and ctypes.get_errno() in _PERMITTED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return attempt


# ---- files -------------------------------------------------------------------------------------------


def _files(given: dict[str, str], tools: Any) -> dict[str, Try]:
    def pipe() -> None:
        descriptor = os.open(given["pipe"], os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, b"x")
        os.close(descriptor)

    def terminal() -> None:
        descriptor = os.open(given["terminal"], os.O_RDWR | os.O_NOCTTY)
        os.write(descriptor, b"x")
        os.close(descriptor)

    def other_terminals() -> None:
        for path in Path("/dev/pts").iterdir():
            if path.name.isdigit() and stat.S_ISCHR(path.stat().st_mode):
                os.close(os.open(path, os.O_WRONLY | os.O_NOCTTY))
                return
        raise FileNotFoundError("there is none")

    def new_device() -> None:
        path = f"{os.getcwd()}/device-{os.getpid()}"
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        try:
            os.close(os.open(path, os.O_RDONLY))
        finally:
            os.unlink(path)

    def dumps() -> None:
        if resource.getrlimit(resource.RLIMIT_CORE)[1] in (0, 1):
            raise OSError("no handler is given the memory of what crashes")

    def leave_root() -> None:
        def act() -> None:
            os.mkdir(f"{os.getcwd()}/root-{os.getpid()}")
            os.chroot(f"{os.getcwd()}/root-{os.getpid()}")

        tools._in_child(act)

    def hostname() -> None:
        socket.sethostname(socket.gethostname())

    def set_user() -> None:
        tools._in_child(lambda: os.setresuid(*[1 if os.getuid() == 0 else 0] * 3))

    def elsewhere() -> Iterator[str]:
        yield given["device"]

    return {
        "a named pipe": pipe,
        "a terminal of somebody else": terminal,
        "any terminal": other_terminals,
        "a device elsewhere": lambda: tools._readable(*elsewhere()),
        "a device of our own": new_device,
        "the handler of crashes": dumps,
        "another root": leave_root,
        "the name of the machine": hostname,
        "another user": set_user,
    }
