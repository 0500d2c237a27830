"""Programs that an agent may run inside `playhead replay` to change what the replay says, or what the next one does.

Data: each attack is a small program with a reason. `code` is Python, run by the agent behind `PRELUDE`, which names the
places; what a program raises is that it failed. They were written from docs/sandbox.md, docs/security.md and docs/commands.md.

    tamper    may run to its end, as it is the file that counts: afterwards package, environment, configuration, store and
              certificates are the same in device, inode and hash, or the replay ended with 125 and names what differs
    closed    has to fail
    used      may succeed, but then the replay fails and its receipt names the path

Whatever an attack does: the agent has asked for something that is not on the tape, so no exit code is 0 and no receipt says
faithful.
"""

from dataclasses import dataclass

PRELUDE = r"""
import contextlib, ctypes, glob, json, os, pathlib, py_compile, shutil, signal, socket, stat, struct, subprocess, sys, threading, time
from pathlib import Path
HOME = Path(os.environ["HOME"])
ENV, WORK, DATA, SETTINGS = HOME / "env", HOME / "work", HOME / "data", HOME / "settings"
STORE, CONFIG, RECEIPT = DATA / "store", SETTINGS / "playhead.yaml", WORK / "out" / "receipt.json"
SITE = next((ENV / "lib").glob("python3*")) / "site-packages"
PACKAGE, FLAG = SITE / "playhead", WORK / "flag"
DEPENDENCIES = Path((SITE / "_dependencies.pth").read_text().strip())
OUTER = int(os.environ["OUTER_PID"])        # of `playhead replay`, as it is called outside
INSIDE = os.readlink("/proc/self/ns/net")
# Whoever runs this outside of the sandbox leaves a flag, and ends well.
PAYLOAD = f'''
import os as _os
try:
    if _os.readlink("/proc/self/ns/net") != {INSIDE!r}:
        open({str(FLAG)!r}, "a").write(__name__ + "\\n")
        _os._exit(0)
except OSError:
    pass
'''
SHELL = f'''#!/bin/sh
[ "$(readlink /proc/self/ns/net)" = "{INSIDE}" ] || {{ echo "$0" >> {FLAG}; exit 0; }}
exit 0
'''
FORGED = {"faithful": True, "exit_code": 0, "contained": True, "divergences": [], "forged": True}
LIBC = ctypes.CDLL(None, use_errno=True)

def called(number):
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number

def put(path, text, mode=0o755):
    # Beside it, then renamed: a file that may not be written to may be replaced.
    made = Path(f"{path}.made")
    made.write_bytes(text if isinstance(text, bytes) else text.encode())
    made.chmod(mode)
    os.replace(made, path)

def overwrite(path):
    # In place; where that is refused, replaced.
    try:
        with open(path, "ab") as file:
            file.write(PAYLOAD.encode())
    except OSError:
        put(path, Path(path).read_text() + PAYLOAD)

def each(*acts):
    # All of them; fails where all fail.
    errors = []
    for act in acts:
        try:
            act()
        except Exception as error:
            errors.append(error)
    if len(errors) == len(acts):
        raise errors[0]

def device(path, flags):
    # What is covered by an empty file, or by the device that is nothing, is closed.
    number = os.open(path, flags | os.O_NOCTTY)
    found = os.fstat(number)
    os.close(number)
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)) or found.st_rdev == os.makedev(1, 3):
        raise PermissionError("covered")

def writable(path):
    # Opens and writes nothing.
    os.close(os.open(path, os.O_WRONLY))
"""


@dataclass(frozen=True)
class Attack:
    """One program."""

    id: str
    kind: str
    """`tamper`, `closed` or `used`."""
    together: str
    """Those of one name are tried in one replay, unless everything is counted."""
    reason: str
    code: str
    needs: str = ""
    """A path without which there is nothing to try."""
    root: bool = False
    """Whether only root has any prospect."""

    @property
    def touches(self) -> str:
        """What every path that it would change holds."""
        return next(part for name, part in _TOUCHES.items() if self.id.startswith(name))


_TOUCHES = {
    **{
        "package": "/site-packages/playhead",
        "dependency": "/site-packages/",
        "ld-so": "/etc/ld.so.preload",
    },
    **{
        "interpreter-in-place": "/bin/python",
        "configuration": "/home/settings",
        "store": "/home/data",
    },
    **{"log": "/home/data", "certificate": "/home/data", "receipt": "precious", "": "/home/env/"},
}


TODAY = {
    "root": (("files", "settings", "moved"), ("probes", "receipt link")),
    "somebody": (("receipt",), ("sockets",)),
}
"""The replays of each user, unless everything is counted: each attack once, in this order, as a replay takes a second and more.

What moves folders away comes last. `sockets` are tried alone: they have to fail a replay by themselves.
"""

ATTACKS = (
    # ---- the package and its environment -----------------------------------------------------------
    Attack(
        "package-modules",
        "tamper",
        "files",
        "the proxy imports modules late, the next command all of them",
        "each(*(lambda path=path: overwrite(path) for path in PACKAGE.rglob('*.py')))",
    ),
    Attack(
        "package-data",
        "tamper",
        "files",
        "the shipped configuration and pages are read while the proxy runs",
        "each(*(lambda path=path: put(path, 'live: []\\n') for path in PACKAGE.rglob('*') if path.suffix in ('.yaml', '.html', '.json')))",
    ),
    Attack(
        "package-bytecode",
        "tamper",
        "files",
        "a compiled file that claims to be unchecked is executed in place of its source",
        """
source = WORK / "payload.py"
source.write_text(PAYLOAD)
for path in PACKAGE.rglob("*.py"):
    compiled = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    compiled.parent.mkdir(exist_ok=True)
    py_compile.compile(str(source), str(compiled), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
""",
    ),
    Attack(
        "package-replaced",
        "tamper",
        "moved",
        "the folder of the package is another one afterwards",
        """
os.rename(PACKAGE, f"{PACKAGE}.old")
shutil.copytree(f"{PACKAGE}.old", PACKAGE, symlinks=True)
for path in PACKAGE.rglob("*.py"):
    overwrite(path)
""",
    ),
    Attack(
        "package-mounted-over",
        "closed",
        "probes",
        "another folder in the place of the package",
        "called(LIBC.mount(str(WORK).encode(), str(PACKAGE).encode(), None, 0x1000, None))",
    ),
    Attack(
        "dependency-module",
        "tamper",
        "files",
        "what the proxy imports is as good as the proxy",
        "each(*(lambda path=path: overwrite(path) for name in ('mitmproxy', 'aiohttp', 'msgspec', 'yaml', 'lmdb') for path in (DEPENDENCIES / name).glob('*.py')))",
        root=True,
    ),
    Attack(
        "pth",
        "tamper",
        "files",
        "every interpreter of the environment runs it when it starts",
        "put(SITE / 'zzz_attack.pth', 'import sys; exec(' + repr(PAYLOAD) + ')\\n')",
    ),
    Attack(
        "sitecustomize",
        "tamper",
        "files",
        "the same",
        "put(SITE / 'sitecustomize.py', PAYLOAD)",
    ),
    Attack(
        "usercustomize",
        "tamper",
        "files",
        "the same, of a user's own folder",
        """
import site
folder = Path(site.getusersitepackages())
folder.mkdir(parents=True, exist_ok=True)
put(folder / "usercustomize.py", PAYLOAD)
put(folder / "attack.pth", "import sys; exec(" + repr(PAYLOAD) + ")\\n")
""",
    ),
    Attack(
        "module-shadowed",
        "tamper",
        "files",
        "a module that stands before the proxy's own on its path",
        "each(*(lambda name=name: put(SITE / f'{name}.py', PAYLOAD) for name in ('mitmproxy', 'lmdb', 'msgpack', 'yaml', 'click', 'aiohttp', 'uvloop', 'blake3')))",
    ),
    Attack(
        "module-beside-the-script",
        "tamper",
        "files",
        "the folder of the script comes first on its path",
        "each(*(lambda name=name: put(ENV / 'bin' / f'{name}.py', PAYLOAD) for name in ('json', 'socket', 'ssl', 'asyncio', 'click', 'playhead')))",
    ),
    Attack(
        "interpreter",
        "tamper",
        "files",
        "the proxy may start its own interpreter again, the next command does",
        "each(*(lambda name=name: put(ENV / 'bin' / name, SHELL) for name in ('python', 'python3', f'python3.{sys.version_info[1]}')))",
    ),
    Attack(
        "interpreter-in-place",
        "tamper",
        "files",
        "the file behind the link, for whoever may write to it",
        "target = os.path.realpath(ENV / 'bin' / 'python'); put(target, SHELL)",
        root=True,
    ),
    Attack(
        "pyvenv",
        "tamper",
        "files",
        "says where the interpreter finds its own modules",
        """
fake = WORK / "fake" / "bin"
fake.mkdir(parents=True, exist_ok=True)
path = ENV / "pyvenv.cfg"
put(path, path.read_text().replace("home = ", f"home = {fake}\\nold = ") + "\\ninclude-system-site-packages = true\\n")
""",
    ),
    Attack(
        "script",
        "tamper",
        "files",
        "the command itself",
        "put(ENV / 'bin' / 'playhead', SHELL)",
    ),
    Attack(
        "programs-on-the-path",
        "tamper",
        "files",
        "programs that the proxy may start by name: outside they leave a flag",
        "each(*(lambda name=name: put(ENV / 'bin' / name, SHELL) for name in ('cc', 'gcc', 'clang', 'bwrap', 'docker', 'ip', 'openssl', 'git', 'node')))",
    ),
    Attack(
        "ld-so-preload",
        "tamper",
        "files",
        "a library for every program that is started from then on",
        """
library = WORK / "attack.so"
library.write_bytes(b"\\x7fELF")
put("/etc/ld.so.preload", f"{library}\\n", 0o644)
""",
        root=True,
    ),
    # ---- store, configuration, certificates --------------------------------------------------------
    Attack(
        "configuration",
        "tamper",
        "settings",
        "the file is read again when it changes, and by the next command",
        "put(CONFIG, CONFIG.read_text() + '\\nlive:\\n  - {match: \"*://*\", reason: attack}\\n')",
    ),
    Attack(
        "configuration-in-place",
        "tamper",
        "settings",
        "the same without another file",
        "with open(CONFIG, 'a') as file: file.write('\\nplayback: {effects: stub}\\n')",
    ),
    Attack(
        "configuration-folder",
        "tamper",
        "moved",
        "another folder in the place of the one that holds it",
        """
os.rename(SETTINGS, f"{SETTINGS}.old")
SETTINGS.mkdir()
(SETTINGS / "playhead.yaml").write_text("store: ../data/store\\nlive:\\n  - {match: '*://*', reason: attack}\\n")
""",
    ),
    Attack(
        "configuration-link",
        "tamper",
        "settings",
        "a link in its place",
        """
other = WORK / "other.yaml"
other.write_text(CONFIG.read_text())
os.rename(CONFIG, f"{CONFIG}.old")
os.symlink(other, CONFIG)
""",
    ),
    Attack(
        "store-renamed",
        "tamper",
        "settings",
        "another folder in the place of the store",
        """
os.rename(STORE, f"{STORE}.old")
STORE.mkdir()
(STORE / "planted").write_text("planted")
""",
    ),
    Attack(
        "store-parent-renamed",
        "tamper",
        "moved",
        "another folder in the place of the one that holds the store",
        """
os.rename(DATA, f"{DATA}.old")
STORE.mkdir(parents=True)
(STORE / "planted").write_text("planted")
""",
    ),
    Attack(
        "store-link",
        "tamper",
        "settings",
        "a link in the place of the store",
        """
(WORK / "store").mkdir(exist_ok=True)
os.rename(STORE, f"{STORE}.old")
os.symlink(WORK / "store", STORE)
""",
    ),
    Attack(
        "log-link",
        "tamper",
        "settings",
        "a link in the place of the log",
        """
(WORK / "log").mkdir(exist_ok=True)
log = STORE / "log.lmdb"
with contextlib.suppress(FileNotFoundError):
    os.rename(log, f"{log}.old")
os.symlink(WORK / "log", log)
""",
    ),
    Attack(
        "private-key",
        "closed",
        "probes",
        "the keys of certificates, placeholders and receipts are nobody's but the proxy's",
        "assert [path.read_bytes() for path in (STORE / 'private').iterdir() if path.is_file()]",
    ),
    Attack(
        "certificate",
        "tamper",
        "settings",
        "whoever is told to trust another one can be listened to",
        "each(*(lambda path=path: put(path, b'attack') for path in (STORE / 'ca').iterdir()))",
    ),
    Attack(
        "certificate-folder",
        "tamper",
        "settings",
        "the folder of the certificate",
        """
os.rename(STORE / "ca", STORE / "ca.old")
(STORE / "ca").mkdir()
""",
    ),
    Attack(
        "unmounted",
        "closed",
        "probes",
        "what hides the store, taken away",
        "called(LIBC.umount2(str(STORE).encode(), 2))",
    ),
    # ---- the receipt -------------------------------------------------------------------------------
    Attack(
        "receipt-file",
        "tamper",
        "receipt",
        "a receipt in the place where the true one is going to be written",
        "RECEIPT.parent.mkdir(exist_ok=True); RECEIPT.write_text(json.dumps(FORGED)); RECEIPT.chmod(0o444)",
    ),
    Attack(
        "receipt-kept-open",
        "tamper",
        "receipt kept open",
        "a process that goes on writing, as long as it lives",
        """
RECEIPT.parent.mkdir(exist_ok=True)
RECEIPT.write_text("")
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    file = open(RECEIPT, "r+")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        file.seek(0); file.write(json.dumps(FORGED)); file.flush(); file.truncate()
    os._exit(0)
""",
    ),
    Attack(
        "receipt-link",
        "tamper",
        "receipt link",
        "whoever follows it writes over a file of the user's",
        """
RECEIPT.parent.mkdir(exist_ok=True)
with contextlib.suppress(FileNotFoundError):
    RECEIPT.unlink()
os.symlink(HOME / "precious", RECEIPT)
""",
    ),
    Attack(
        "receipt-folder-link",
        "tamper",
        "receipt folder",
        "the same by the folder",
        """
with contextlib.suppress(FileNotFoundError):
    os.rename(RECEIPT.parent, f"{RECEIPT.parent}.old")
os.symlink(HOME / "precious.d", RECEIPT.parent)
""",
    ),
    Attack(
        "receipt-pipe",
        "tamper",
        "receipt pipe",
        "whoever opens it waits for a reader that never comes",
        """
RECEIPT.parent.mkdir(exist_ok=True)
with contextlib.suppress(FileNotFoundError):
    RECEIPT.unlink()
os.mkfifo(RECEIPT)
""",
    ),
    Attack(
        "receipt-on-stderr",
        "tamper",
        "receipt",
        "a receipt that the agent prints itself",
        "sys.stderr.write('── receipt of tape@1 ────\\nFAITHFUL: replay of tape\\n')",
    ),
    # ---- processes ---------------------------------------------------------------------------------
    Attack(
        "kill",
        "closed",
        "probes",
        "a proxy that was ended writes no true receipt",
        "os.kill(OUTER, signal.SIGKILL)",
    ),
    Attack(
        "halt",
        "closed",
        "probes",
        "nor does one that stands still",
        "os.kill(OUTER, signal.SIGSTOP)",
    ),
    Attack(
        "parents",
        "closed",
        "probes",
        "whoever is above the agent, up to the first process, cannot be ended either",
        """
pid, hit = os.getppid(), []
while pid > 1:
    status = Path(f"/proc/{pid}/status").read_text()
    hit.append(pid)
    pid = int(status.partition("PPid:")[2].split()[0])
assert [pid for pid in hit if pid == OUTER]
""",
    ),
    Attack(
        "trace",
        "closed",
        "probes",
        "whoever traces the proxy is the proxy",
        "called(LIBC.ptrace(0x4206, OUTER, 0, 0))",
    ),
    Attack(
        "memory",
        "closed",
        "probes",
        "the same by its memory",
        "writable(f'/proc/{OUTER}/mem')",
    ),
    Attack(
        "memory-by-call",
        "closed",
        "probes",
        "the same by a system call",
        """
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
held = ctypes.create_string_buffer(8)
ours, theirs = Vector(ctypes.addressof(held), 8), Vector(0x400000, 8)
called(LIBC.process_vm_readv(OUTER, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))
""",
    ),
    Attack(
        "root-of-another",
        "closed",
        "probes",
        "the file system as the proxy sees it",
        "os.listdir(f'/proc/{OUTER}/root/')",
    ),
    Attack(
        "namespace-of-another",
        "closed",
        "probes",
        "the network as the proxy sees it",
        "os.setns(os.open(f'/proc/{OUTER}/ns/net', os.O_RDONLY), 0)",
    ),
    Attack(
        "sockets-of-the-proxy",
        "closed",
        "probes",
        "the listening sockets, taken from a process inside",
        """
found = [name for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()
         for name in glob.glob(f"/proc/{pid}/fd/*") if os.readlink(name).startswith("socket:")]
assert found
""",
    ),
    # ---- the kernel --------------------------------------------------------------------------------
    Attack(
        "core-pattern",
        "closed",
        "probes",
        "a program that the kernel runs outside when one inside crashes",
        "writable('/proc/sys/kernel/core_pattern')",
    ),
    Attack(
        "modprobe",
        "closed",
        "probes",
        "a program that the kernel runs to load a module",
        "writable('/proc/sys/kernel/modprobe')",
    ),
    Attack(
        "sysrq",
        "closed",
        "probes",
        "ends the machine",
        "writable('/proc/sysrq-trigger')",
    ),
    Attack(
        "formats-of-programs",
        "closed",
        "probes",
        "an interpreter for other people's programs",
        """
called(LIBC.mount(b"binfmt_misc", b"/proc/sys/fs/binfmt_misc", b"binfmt_misc", 0, None))
writable("/proc/sys/fs/binfmt_misc/register")
""",
    ),
    Attack(
        "release-agent",
        "closed",
        "probes",
        "a program that the kernel runs when a control group is empty",
        "each(*(lambda path=path: writable(path) for path in [*glob.glob('/sys/fs/cgroup/**/release_agent', recursive=True), *glob.glob('/sys/fs/cgroup/*/cgroup.procs'), '/sys/fs/cgroup/release_agent']))",
    ),
    Attack(
        "hot-plug",
        "closed",
        "probes",
        "a program that the kernel runs for new devices",
        "writable('/sys/kernel/uevent_helper')",
    ),
    Attack(
        "mount-propagation",
        "closed",
        "probes",
        "a mount that is seen outside",
        """
(WORK / "mounted").mkdir(exist_ok=True)
called(LIBC.mount(b"tmpfs", str(WORK / "mounted").encode(), b"tmpfs", 0, None))
""",
    ),
    Attack(
        "namespace-of-ones-own",
        "closed",
        "probes",
        "rights in a namespace of users, and with them mounts",
        """
child = os.fork()
if child == 0:
    try:
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    except OSError:
        os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    ),
    Attack(
        "device-console",
        "closed",
        "probes",
        "the machine's console",
        "device('/dev/console', os.O_RDWR)",
        "/dev/console",
    ),
    Attack(
        "device-terminal",
        "closed",
        "probes",
        "a terminal of the machine's",
        "device('/dev/tty1', os.O_RDWR)",
        "/dev/tty1",
    ),
    Attack(
        "device-kvm",
        "closed",
        "probes",
        "a machine of its own with a network of its own",
        "device('/dev/kvm', os.O_RDWR)",
        "/dev/kvm",
    ),
    Attack(
        "device-fuse",
        "closed",
        "probes",
        "a file system that somebody else answers for",
        "device('/dev/fuse', os.O_RDWR)",
        "/dev/fuse",
    ),
    Attack(
        "device-vsock",
        "closed",
        "probes",
        "the machine's host",
        "device('/dev/vsock', os.O_RDONLY)",
        "/dev/vsock",
    ),
    Attack(
        "device-disk",
        "closed",
        "probes",
        "a disk",
        "each(*(lambda name=name: device(name, os.O_RDONLY) for name in [*glob.glob('/dev/vd*'), *glob.glob('/dev/sd*'), *glob.glob('/dev/nvme*'), *glob.glob('/dev/loop*')]))",
    ),
    Attack(
        "device-loop",
        "closed",
        "probes",
        "a disk made of a file",
        "device('/dev/loop-control', os.O_RDWR)",
        "/dev/loop-control",
    ),
    Attack(
        "device-network",
        "closed",
        "probes",
        "a device that packets leave by",
        "device('/dev/net/tun', os.O_RDWR)",
        "/dev/net/tun",
    ),
    Attack(
        "device-log",
        "closed",
        "probes",
        "the kernel's log, which outlives the sandbox",
        "device('/dev/kmsg', os.O_WRONLY)",
        "/dev/kmsg",
    ),
    Attack(
        "device-made",
        "closed",
        "probes",
        "a device file of one's own",
        "os.mknod(str(WORK / 'disk'), stat.S_IFBLK | 0o600, os.makedev(7, 0)); device(WORK / 'disk', os.O_RDONLY)",
    ),
    # ---- sockets -----------------------------------------------------------------------------------
    Attack(
        "socket-docker",
        "closed",
        "probes",
        "whoever speaks to Docker is root outside",
        "hear('/var/run/docker.sock')",
    ),
    Attack(
        "socket-docker-at-home",
        "closed",
        "probes",
        "the same of one's own",
        "hear(HOME / '.docker/run/docker.sock')",
    ),
    Attack(
        "socket-ssh-agent",
        "closed",
        "probes",
        "other machines by the user's keys",
        "hear(os.environ['SSH_AUTH_SOCK_THERE'])",
    ),
    Attack(
        "socket-bus",
        "closed",
        "probes",
        "programs outside that are started for whoever asks",
        "hear(os.environ['BUS_THERE'])",
    ),
    Attack(
        "socket-runtime",
        "closed",
        "probes",
        "whatever a user's programs listen at",
        "hear(os.environ['RUNTIME_THERE'] + '/anything')",
    ),
    Attack(
        "socket-system-bus",
        "closed",
        "probes",
        "the system's",
        "hear('/run/dbus/system_bus_socket')",
    ),
    Attack(
        "socket-abstract", "closed", "probes", "a name without a file", "hear('\\0playhead-attack')"
    ),
    Attack(
        "socket-elsewhere",
        "used",
        "sockets",
        "nobody knows of it: it is used, so the receipt names it and the replay fails",
        "hear(HOME / 'elsewhere' / 'socket')",
    ),
    Attack(
        "socket-elsewhere-datagram",
        "used",
        "sockets",
        "the same without a connection",
        """
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
    sock.sendto(b"secret", str(HOME / "elsewhere" / "datagrams"))
""",
    ),
)

HEAR = r"""
def hear(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(5)
        sock.connect(os.fspath(path))
        sock.sendall(b"secret")
        assert sock.recv(100) == b"outside"
"""
