"""Every way out of a sandbox that we know of, tried for real: on the bare machine, contained, and strict.

`python -m playhead.tests.support.escapes UID` makes a machine of its own, puts programs on it that can be reached,
tries everything three times and prints what was open as JSON. The tries themselves are `probe`, which needs the
standard library alone.
"""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import importlib.util
import json
import mmap
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MARK = "playhead-bystander"
_HELLO = b"outside"
_PATIENCE_S = 2.0
_SYS_IO_URING_SETUP, _SYS_CLONE3, _SYS_PIDFD_GETFD = 425, 435, 438
_SYS_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_PTRACE_SEIZE, _PTRACE_INTERRUPT, _PTRACE_DETACH = 0x4206, 0x4207, 17
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWNS = 0x10000000, 0x40000000, 0x20000


# ---- inside: the tries -----------------------------------------------------------------------------


def probe(given: dict[str, str]) -> dict[str, str]:
    """Try everything; give `open` or why not, by name."""
    port = int(given["port"])
    tries: dict[str, Callable[[], object]] = {
        "tcp": lambda: _hear(socket.create_connection(("127.0.0.1", port), _PATIENCE_S)),
        "tcp ipv6": lambda: _hear(socket.create_connection(("::1", port), _PATIENCE_S)),
        "udp": lambda: _ask_udp(socket.AF_INET, ("127.0.0.1", port)),
        "udp ipv6": lambda: _ask_udp(socket.AF_INET6, ("::1", port)),
        "dns by udp": lambda: _ask_udp(socket.AF_INET, ("127.0.0.1", int(given["dns"]))),
        "raw icmp": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "raw icmp ipv6": lambda: socket.socket(
            socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6
        ),
        "packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
        "old packets": lambda: socket.socket(socket.AF_INET, 10, 0x300),
        "vsock": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
        "abstract unix": lambda: _unix("\0" + given["abstract"]),
        "unix in the runtime folder": lambda: _unix(given["runtime"]),
        "unix of the ssh agent": lambda: _unix(given["ssh"]),
        "unix of docker": lambda: _unix(given["docker"]),
        "unix elsewhere": lambda: _unix(given["elsewhere"]),
        "unix datagram elsewhere": lambda: _unix_datagram(given["datagrams"]),
        "unix datagram by a pair": lambda: _pair_datagram(given["datagrams"]),
        "netlink: a route": lambda: _netlink(
            24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0)
        ),
        "netlink: loopback down and up": _toggle_loopback,
        "netlink: a new device": lambda: _netlink(16, _new_device(), 0x600),
        "setns by /proc": lambda: _setns(given["pid"]),
        "a namespace of users": lambda: _in_child(
            lambda: _libc("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)
        ),
        "a namespace by clone3": lambda: _clone3(),
        "what is mounted, taken away": lambda: _in_child(lambda: _unhide(given["runtime"])),
        "another process: signals": lambda: os.kill(int(given["pid"]), 0),
        "another process: its handle": lambda: os.close(os.pidfd_open(int(given["pid"]))),
        "another process: its variables": _read_environs,
        "another process: its root": lambda: os.listdir(f"/proc/{given['pid']}/root/"),
        "another process: its descriptors": lambda: _readable(*_listed(f"/proc/{given['pid']}/fd")),
        "another process: a descriptor of it": lambda: _take_descriptor(int(given["pid"])),
        "another process: its memory": lambda: _readable(f"/proc/{given['pid']}/mem"),
        "another process: tracing": lambda: _trace(int(given["pid"])),
        "the first process: its descriptors": lambda: _readable(*_listed("/proc/1/fd")),
        "the first process: a descriptor of it": lambda: _take_descriptor(1),
        "the first process: its memory": lambda: _readable("/proc/1/mem"),
        "the first process by another /proc": lambda: _readable(*_listed(f"{given['proc']}/1/fd")),
        "descriptors of others": _inherited,
        "shared memory of System V": lambda: _libc("shmget", int(given["key"]), 1, 0),
        "messages of System V": lambda: _libc("msgget", int(given["key"]), 0),
        "shared memory by its name": lambda: _readable(f"/dev/shm/{given['shared']}"),
        "a message queue by its file": lambda: _readable(f"{given['queues']}/{given['shared']}"),
        "a message queue": lambda: _libc("mq_open", b"/" + given["shared"].encode(), 0),
        "32 bits": lambda: _in_child(_call_32_bits),
        "short pointers": lambda: _in_child(lambda: _syscall(0x40000000 | 39)),
        "typing into the terminal": lambda: _in_child(_type),
        "a disk": lambda: _readable(*map(str, Path("/dev").iterdir()), kind=stat.S_ISBLK),
        "a device with a network": _tunnel,
        "a file by its number": _open_by_number,
        "io_uring": lambda: _syscall(_SYS_IO_URING_SETUP, 8, bytes(120)),
        "the kernel's keys": lambda: _syscall(
            _SYS_ADD_KEY[os.uname().machine], b"user", b"playhead-probe", b"x", 1, -2
        ),
        "the kernel's settings": lambda: _writable("/proc/sys/kernel/core_pattern"),
        "the kernel's settings by another /proc": lambda: _writable(
            f"{given['proc']}/sys/kernel/core_pattern"
        ),
        "a hidden folder by another mount": lambda: _unix(given["alias"]),
        "a masked socket by another mount": lambda: _unix(given["ssh alias"]),
        "control groups": lambda: _writable(
            *map(str, Path("/sys/fs/cgroup").rglob("cgroup.procs"))
        ),
        "a file of the system": lambda: _writable(given["system"]),
        "a file of the home folder": lambda: _readable(given["home"]),
        "programs with rights": lambda: _status("NoNewPrivs", "0"),
        "rights to gain": lambda: _status("CapBnd", ""),
    }
    tries |= _beside("ways_out").ways_out(given, sys.modules[__name__])
    return {name: _try(attempt) for name, attempt in tries.items()}


def _beside(name: str) -> Any:
    """Load a module of this folder, without a package around it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _try(attempt: Callable[[], object]) -> str:
    try:
        made = attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(made, socket.socket):
        made.close()
    return "open"


def _hear(sock: socket.socket) -> None:
    with sock:
        sock.settimeout(_PATIENCE_S)
        if sock.recv(100) != _HELLO:
            raise OSError("somebody else is there")


def _ask_udp(family: int, address: tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(_PATIENCE_S)
        sock.connect(address)
        sock.send(b"ask")
        if sock.recv(100) != _HELLO:
            raise OSError("somebody else is there")


def _unix(address: str) -> None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_PATIENCE_S)
    sock.connect(address)
    _hear(sock)


def _unix_datagram(address: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"ask", address)


def _pair_datagram(address: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"ask", address)


def _netlink(kind: int, body: bytes, flags: int = 0) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.sendall(struct.pack("=IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
        number = -struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    # A route to nowhere is refused for what it is only after the right to make one was looked at.
    if number in (1, 13):
        raise PermissionError(number, os.strerror(number))


def _toggle_loopback() -> None:
    for flag in (0, 1):
        _netlink(16, struct.pack("=BBHiII", 0, 0, 0, 1, flag, 1))


def _new_device() -> bytes:
    kind = struct.pack("=HH", 4 + 5, 1) + b"veth\0\0\0\0"
    info = struct.pack("=HH", 4 + len(kind), 18) + kind
    return struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + info


def _setns(pid: str) -> None:
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    _in_child(lambda: os.setns(descriptor, _CLONE_NEWNET))


def _unhide(path: str) -> None:
    """See what is under a folder that was hidden; the bare machine hides nothing."""
    if _libc_or_error("umount2", os.fsencode(Path(path).parent), 2) == 1:  # EPERM
        raise PermissionError("umount2 is refused")
    if not Path(path).exists():
        raise FileNotFoundError(path)


def _in_child(act: Callable[[], object]) -> None:
    """Do it in a child, which is lost for anything else."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException as error:
            os._exit(getattr(error, "errno", 0) or 99)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, os.strerror(abs(status)))


def _libc(name: str, *arguments: object) -> None:
    number = _libc_or_error(name, *arguments)
    if number:
        raise OSError(number, os.strerror(number))


def _libc_or_error(name: str, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    return 0 if getattr(library, name)(*arguments) >= 0 else ctypes.get_errno()


def _syscall(*arguments: object) -> None:
    _libc("syscall", *arguments)


def _clone3() -> None:
    """Ask for a child in a namespace of users of its own, which ends at once."""
    wanted = struct.pack("=8Q", _CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    made = library.syscall(_SYS_CLONE3, wanted, len(wanted))
    if made == 0:
        os._exit(0)
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.waitpid(made, 0)


def _read_environs() -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if MARK.encode() in (folder / "environ").read_bytes():
                return
    raise OSError("nobody's are seen")


def _writable(*paths: str) -> None:
    """Find one that may be written to; nothing is."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY))
            return
    raise PermissionError("none may be written to")


def _readable(*paths: str, kind: Callable[[int], bool] | None = None) -> None:
    """Find one that may be read; nothing is."""
    for path in paths:
        with contextlib.suppress(OSError):
            if kind is None or kind(os.stat(path).st_mode):
                os.close(os.open(path, os.O_RDONLY))
                return
    raise PermissionError("none may be read")


def _listed(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in os.listdir(folder)]


def _inherited() -> None:
    """Find what nobody meant us to have."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if int(name) > 2 and not os.readlink(f"/proc/self/fd/{name}").startswith("/proc/"):
                return
    raise OSError("none")


def _take_descriptor(pid: int) -> None:
    """Have a descriptor that another process holds."""
    handle = os.pidfd_open(pid)
    try:
        for number in range(64):
            error = _libc_or_error("syscall", _SYS_PIDFD_GETFD, handle, number, 0)
            if not error:
                return
        raise OSError(error, os.strerror(error))
    finally:
        os.close(handle)


def _trace(pid: int) -> None:
    _libc("ptrace", _PTRACE_SEIZE, pid, 0, 0)
    _libc("ptrace", _PTRACE_INTERRUPT, pid, 0, 0)
    os.waitpid(pid, 0x40000000)
    _libc("ptrace", _PTRACE_DETACH, pid, 0, 0)


def _call_32_bits() -> None:
    """Make a system call with the numbers of another architecture."""
    if os.uname().machine != "x86_64":
        raise OSError(errno.ENOSYS, "not on this machine")
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    begin = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(begin)() != os.getpid():
        raise OSError(errno.ENOSYS, "no such calls")


def _type() -> None:
    """Type into a terminal that is ours."""
    ours, theirs = os.openpty()
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    fcntl.ioctl(theirs, termios.TIOCSTI, b"x")
    if os.read(ours, 1) != b"x":  # its echo
        raise OSError(errno.EIO, "nothing was typed")


def _tunnel() -> None:
    """Make a device that packets leave by."""
    with open("/dev/net/tun", "rb+", buffering=0) as device:
        fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"", 1))  # TUNSETIFF, IFF_TUN


def _open_by_number() -> None:
    """Open a folder past all that is mounted on it."""
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    _libc("name_to_handle_at", -100, b"/", handle, ctypes.byref(mount), 0)
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        _libc("open_by_handle_at", folder, handle, os.O_RDONLY)
    finally:
        os.close(folder)


def _status(name: str, value: str) -> None:
    """Say that it is open where the kernel says this, or anything but nothing, of us."""
    line = next(
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(f"{name}:")
    )
    told = line.partition(":")[2].strip()
    if (told != value) if value else not int(told, 16):
        raise OSError(f"{name} is {told}")


# ---- outside: programs that can be reached, and the three places -----------------------------------


def _serve(sock: socket.socket) -> None:
    """Say hello to everybody, for as long as we live."""

    def work() -> None:
        while True:
            if sock.type != socket.SOCK_DGRAM:
                with sock.accept()[0] as peer:
                    peer.sendall(_HELLO)
            else:
                _, peer_address = sock.recvfrom(100)
                if peer_address:
                    sock.sendto(_HELLO, peer_address)

    if sock.type != socket.SOCK_DGRAM:
        sock.listen(16)
    threading.Thread(target=work, daemon=True).start()


def _bound(family: int, kind: int, address: object) -> socket.socket:
    sock = socket.socket(family, kind)
    sock.bind(address)  # type: ignore[arg-type]  # each family has its own
    _serve(sock)
    return sock


def _populate(folder: Path) -> dict[str, str]:
    """Put programs on the machine; give where they are."""
    tcp = _bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    _bound(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port))
    _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port))
    _bound(socket.AF_INET6, socket.SOCK_DGRAM, ("::1", port))
    dns = _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
    _bound(socket.AF_UNIX, socket.SOCK_STREAM, f"\0playhead-{os.getpid()}")
    given = {
        "port": str(port),
        "dns": str(dns.getsockname()[1]),
        "abstract": f"playhead-{os.getpid()}",
    }
    for name in ("runtime", "ssh", "docker", "elsewhere"):
        path = folder / name / "socket"
        path.parent.mkdir(exist_ok=True)
        _bound(socket.AF_UNIX, socket.SOCK_STREAM, str(path))
        given[name] = str(path)
    for name, place in (("alias", "runtime"), ("ssh alias", "ssh")):
        given[name] = str(folder / "again" / place / "socket")
    for name in ("system", "home"):
        (folder / name).write_text(name)
        given[name] = str(folder / name)
    given |= {"proc": str(folder / "proc"), "queues": str(folder / "queues")}
    given["datagrams"] = str(folder / "elsewhere" / "datagrams")
    _bound(socket.AF_UNIX, socket.SOCK_DGRAM, given["datagrams"])
    given |= _populate_late(folder)
    os.mkfifo(folder / "pipe")
    given["pipe"] = str(folder / "pipe")
    given["device"] = str(folder / "device")
    threading.Thread(
        target=_drain, args=(os.open(folder / "pipe", os.O_RDWR),), daemon=True
    ).start()
    ours, theirs = os.openpty()
    given["terminal"] = os.ttyname(theirs)
    threading.Thread(target=_drain, args=(ours,), daemon=True).start()
    return {**given, **_share()}


def _drain(descriptor: int) -> None:
    while os.read(descriptor, 100):
        pass


def _populate_late(folder: Path) -> dict[str, str]:
    """Put programs on the machine as soon as a command is there, and once more for each."""
    late = folder / "late"
    late.mkdir()
    path, ready = late / "socket", late / "ready"

    def work() -> None:
        while True:
            if ready.exists():
                kinds = (
                    (socket.SOCK_STREAM, path),
                    (socket.SOCK_SEQPACKET, f"{path}-packets"),
                    (socket.SOCK_DGRAM, f"{path}-datagrams"),
                )
                for kind, place in kinds:
                    if not os.path.exists(place):
                        # Seen once it listens: a command that sees it connects at once.
                        _bound(socket.AF_UNIX, kind, f"{place}.new")
                        with contextlib.suppress(FileNotFoundError):  # it is forgotten meanwhile
                            os.rename(f"{place}.new", place)
            time.sleep(0.01)

    threading.Thread(target=work, daemon=True).start()
    return {"late": str(path), "ready": str(ready)}


def forget_late(folder: Path) -> None:
    """Have nobody listen there who came late, before the next command."""
    for path in (folder / "late").iterdir():
        path.unlink(missing_ok=True)


def _share() -> dict[str, str]:
    """Have memory and messages that others may use."""
    key, name = 0x70680000 | os.getpid() & 0xFFFF, f"playhead-{os.getpid()}"
    _libc("shmget", key, 4096, 0o1666)
    _libc("msgget", key, 0o1666)
    _libc("mq_open", f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    Path("/dev/shm", name).write_text("shared")
    return {"key": str(key), "shared": name}


async def _sandboxed(
    command: list[str],
    environ: dict[str, str],
    folder: Path,
    *,
    strict: bool = False,
    wrapped: bool = False,
) -> dict[str, Any]:
    from playhead.proxy.sandbox.filesystem.bubblewrap import make_files
    from playhead.proxy.sandbox.filesystem.masking import make_plan
    from playhead.proxy.sandbox.sandbox import Sandbox

    roots, store = folder / "roots.pem", folder / "store"
    forget_late(folder)
    plan = make_plan(environ, command[0], bundle=roots, store=store, public=store / "ca")
    output = folder / "work" / "output"
    command = [*command, str(output)]
    files: list[str] = []
    if wrapped:
        files = make_files(environ, command, public=store / "ca", shared=[]).words()
    sandbox = Sandbox(command, environ, plan, strict=strict, files=files)
    inlets = await sandbox.open()
    await sandbox.start()
    code = await sandbox.wait()
    sandbox.close()
    inlets.close()
    assert code == 0, code
    found = json.loads(output.read_text())
    return {**found, "sockets refused": sandbox.sockets.refused}


def _furnish(folder: Path, uid: int) -> None:
    """Mount what a machine may have mounted twice, while we may."""
    _mount("tmpfs", folder.parent, "tmpfs")
    for name in ("", "again", "again/runtime", "again/ssh", "runtime", "ssh", "proc", "queues"):
        (folder / name).mkdir()
        os.chown(folder / name, uid, uid)
    _mount(str(folder / "runtime"), folder / "again" / "runtime")
    _mount(str(folder / "ssh"), folder / "again" / "ssh")
    with contextlib.suppress(OSError):  # root alone may make one
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        os.chown(folder / "device", uid, uid)
    (folder / "closed").mkdir(0o700)
    (folder / "closed" / "proc").mkdir()
    # Somebody who is root in a namespace of his own alone may not have these.
    with contextlib.suppress(OSError):
        for place in ("proc", "closed/proc"):
            _mount("proc", folder / place, "proc")
    with contextlib.suppress(OSError):
        _mount("mqueue", folder / "queues", "mqueue")


def _mount(source: str, target: Path, kind: str = "") -> None:
    flags = 0 if kind else 0x1000  # MS_BIND
    _libc("mount", source.encode(), os.fsencode(target), kind.encode() or None, flags, None)


@contextlib.contextmanager
def populated(uid: int) -> Iterator[tuple[list[str], dict[str, str], Path]]:
    """Be on a machine of its own with programs on it; give what tries everything, its variables, and a folder.

    Ends the process where no such machine can be had.
    """
    from . import machine
    from .counts import FULL

    folder = Path("/srv/machine")
    machine.enter_or_exit(uid, prepare=lambda: _furnish(folder, os.geteuid() or uid))
    bystander = subprocess.Popen(["sleep", "600"], env={"MARK": MARK}, stdout=subprocess.DEVNULL)
    # What a launcher may have been started with itself.
    leaked = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    leaked.set_inheritable(True)
    (folder / "roots.pem").write_text("")
    (folder / "work").mkdir()
    os.chdir(folder / "work")
    # How long a race is tried for: two races in each of six places take a whole processor meanwhile.
    given = {**_populate(folder), "pid": str(bystander.pid), "race_s": "1" if FULL else "0.1"}
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "SSH_AUTH_SOCK": given["ssh"],
        "DOCKER_HOST": f"unix://{given['docker']}",
    }
    try:
        yield [sys.executable, "-I", __file__, json.dumps(given)], environ, folder
    finally:
        os.unlink(f"/dev/shm/{given['shared']}")
        leaked.close()
        bystander.kill()
        bystander.wait()


def try_bare(command: list[str], environ: dict[str, str]) -> dict[str, str]:
    """Try everything on the machine as it is."""
    forget_late(Path(environ["HOME"]))
    done = subprocess.run(
        command, env=environ, stdout=subprocess.PIPE, check=True, timeout=60, close_fds=False
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _main(uid: int) -> None:
    from . import needs
    from .counts import FULL

    is_root = os.geteuid() == 0
    with populated(uid) as (command, environ, folder):
        found = {
            "bare": try_bare(command, environ),
            "contained": asyncio.run(_sandboxed(command, environ, folder)),
            "strict": asyncio.run(_sandboxed(command, environ, folder, strict=True)),
        }
        if needs.has("bubblewrap"):
            for name, strict in (("contained", False), ("strict", True)):
                # One of the two for each of two users, unless everything is counted: a place takes a second.
                if is_root and not FULL and strict == bool(uid):
                    continue
                wrapped = _sandboxed(command, environ, folder, strict=strict, wrapped=True)
                found[f"{name}, with files"] = asyncio.run(wrapped)
        print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1].startswith("{"):
        found = json.dumps(probe(json.loads(sys.argv[1])))
        if len(sys.argv) > 2:
            Path(sys.argv[2]).write_text(found)
        else:
            print(found)
    else:
        _main(int(sys.argv[1]))
