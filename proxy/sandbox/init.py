"""The sandbox's init: the launcher starts this file as a process, which sets up the sandbox step by step.

    launcher ── the helper: leaves the machine's namespaces, opens listeners, hands them over, waits for "go"
                ├─ the watcher: makes the command's connections
                └─ the first process (1 inside): mounts, drops rights, filters system calls, reaps
                   └─ the command

When the command has ended the first process ends, and with it, by the kernel, everything that is left. When the
launcher dies the kernel ends the helper, and so on down. Only modules that are quick to import are used here.

Messages to the launcher: `listeners` with sockets; `arranged`, when the file system is there; `command` from the command's own process, so that its number is
seen; `running`, and whether Landlock limits what it writes to; `stopped`, a signal; `sole`, the command's name if it was the only process; `left`, the names of
processes that it left behind; `ended`, an exit code; `failed`, what could not be done, with an error number.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from ..processes.disable_aslr import fixed_addresses
from .channel import Channel, read_variables
from .connect_for_command import Watcher
from .filesystem import mountinfo, mounts
from .kernel import landlock, namespaces, seccomp, syscalls
from .network import listeners, loopback_connector_process, netlink
from .network.packet_counters import PLACE, read_counters

_SETUP_FAILED = 125
_STDOUT = 1
_WITHIN, _WITHIN_STRICT = "within", "within-strict"
START = (
    "-IS",  # it needs nothing that is installed, and the search for it would take longer than the imports
    "-c",
    "import sys; package = sys.modules['playhead'] = type(sys)('playhead'); package.__path__ = sys.argv[1:2];"
    "from playhead.proxy.sandbox.init import main; sys.exit(main(sys.argv))",
)
"""What an interpreter is to run, with the folder of the package, then what `main` takes."""

_PATIENCE_S = 0.3
"""How long processes may outlive the command before they count as left behind."""
_LOOK_S = 0.01


class Command(NamedTuple):
    """What is to be run."""

    words: tuple[str, ...]
    variables: int
    """Descriptor of its variables, as `channel.write_variables` gave it."""


def main(arguments: list[str]) -> int:
    """Become a sandbox and run a command in it; give its exit code as a shell would.

    arguments: `-c`, the folder of the package, descriptors of the channel and of the command's variables, then the
    command; where bubblewrap has made the file system, `within`, or `within-strict`, and the places that a live rule names
    before the descriptors.
    """
    if arguments[2].startswith(_WITHIN):
        _be_first_within(arguments)
    command = Command(tuple(arguments[4:]), int(arguments[3]))
    channel = Channel(socket.socket(fileno=int(arguments[2])))
    os.set_inheritable(channel.socket.fileno(), False)
    os.set_inheritable(command.variables, False)
    given = channel.receive()
    if given is None:
        return _SETUP_FAILED
    step = "user namespaces"
    try:
        namespaces.enter()
        _die_with(given.data["launcher"])
        step = "the network"
        families = netlink.make_all_local()
        services = [listeners.Service(*one) for one in given.data["services"]]
        made = listeners.listen(families, services, given.data["ports"])
        made.append(("own_ports", loopback_connector_process.fork()))
    except OSError as error:
        return _fail(channel, step, error)
    try:
        channel.send(tuple(sock for _, sock in made), listeners=[role for role, _ in made])
        for _, sock in made:
            sock.close()
        arranged = channel.receive_descriptors()
    except ConnectionError:  # whoever asked for it is gone, or does without
        arranged = None
    if arranged is None:
        return _SETUP_FAILED
    told, (stdout,) = arranged
    os.dup2(stdout, _STDOUT)
    os.close(stdout)
    return _run(channel, told.data, command)


def _die_with(launcher: int) -> None:
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != launcher:
        sys.exit(_SETUP_FAILED)


def _fail(channel: Channel, step: str, error: OSError) -> int:
    text = error.strerror or str(error)
    if error.filename is not None:
        text = f"{os.fsdecode(error.filename)}: {text}"
    with contextlib.suppress(ConnectionError):  # nobody asks any more
        channel.send(failed=step, errno=error.errno or 0, text=text)
    return _SETUP_FAILED


def _run(channel: Channel, plan: dict[str, Any], command: Command) -> int:
    # The first process mounts another /proc, in which this one is not.
    counted = os.open(PLACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    watcher = Watcher.fork(plan["let_in"])
    try:
        namespaces.enter_processes()
    except OSError as error:
        return _fail(channel, "user namespaces", error)
    alive, ours = os.pipe()  # closed when this process ends, however it ends
    first = os.fork()
    if first == 0:
        os.close(ours)
        _be_first(channel, plan, command, alive, watcher.there)
    os.close(alive)
    watcher.there.close()
    _, status = os.waitpid(first, 0)
    code = _shell_code(status)
    channel.send(ended=code, counters=read_counters(counted), **watcher.end())
    return code


def _be_first(
    channel: Channel, plan: dict[str, Any], command: Command, alive: int, there: socket.socket
) -> NoReturn:
    """Be the first process: set up, start the command, reap, end with its code."""
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        os.set_blocking(alive, False)
        try:
            os.read(alive, 1)
            os._exit(_SETUP_FAILED)  # the helper was gone before it could be asked for
        except BlockingIOError:
            pass
        channel.send(arranged=True, read_only=mounts.rearrange(plan))
        if plan["wrapper"]:
            _wrap(channel, plan, command, there)
        # Programs would fail in the folder that they are in: it is looked up anew, below what was mounted.
        try:
            os.chdir(os.getcwd())
        except FileNotFoundError:  # it was removed, and what is above it may be hidden
            os.chdir("/")
        _give_up_rights(there, strict=plan["strict"])
    except OSError as error:
        os._exit(_fail(channel, "the sandbox", error))
    _run_and_reap(channel, command)


def _wrap(
    channel: Channel, plan: dict[str, Any], command: Command, there: socket.socket
) -> NoReturn:
    """Become bubblewrap, which makes the file system and has `_be_first_within` go on in it."""
    held = (channel.socket.fileno(), there.fileno(), command.variables)
    for descriptor in held:
        os.set_inheritable(descriptor, True)
    within = _WITHIN_STRICT if plan["strict"] else _WITHIN
    passed = (sys.argv[1], within, json.dumps(plan["let_in"]), *map(str, held))
    start = [sys.executable, *START, *passed]
    os.execv(plan["wrapper"][0], [*plan["wrapper"], *start, *command.words])


def _be_first_within(arguments: list[str]) -> NoReturn:
    """Be the first process in the file system that bubblewrap has made."""
    command = Command(tuple(arguments[7:]), int(arguments[6]))
    channel = Channel(socket.socket(fileno=int(arguments[4])))
    there = socket.socket(fileno=int(arguments[5]))
    for descriptor in (channel.socket.fileno(), there.fileno(), command.variables):
        os.set_inheritable(descriptor, False)
    try:
        syscalls.forbid_new_privileges()
        # While our own entries in /proc may be read.
        landlocked = landlock.restrict_writing([*_writable(), *json.loads(arguments[3])])
        _give_up_rights(there, strict=arguments[2] == _WITHIN_STRICT)
    except OSError as error:
        os._exit(_fail(channel, "the sandbox", error))
    _run_and_reap(channel, command, landlocked=landlocked)


def _writable() -> Iterator[str]:
    """Yield where something is mounted that can be written to."""
    for mounted in mountinfo.read_mounts():
        if "rw" in mounted.options.split(",") and mountinfo.is_in_reach(mounted):
            yield mounted.point


def _give_up_rights(there: socket.socket, *, strict: bool) -> None:
    """Be somebody without rights.

    there: to the helper, which is handed the connections that the command will make.
    """
    # Python's own handler ends us, and who is inside may send it. Programs that are executed do not inherit it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    syscalls.forbid_new_privileges()
    syscalls.drop_capabilities()
    syscalls.close_to_others()
    _limit_dumps()
    listener = seccomp.install(strict=strict)
    if listener is not None:
        socket.send_fds(there, [b"!"], [listener])
        os.close(listener)
    there.close()


def _limit_dumps() -> None:
    """Have nobody outside be handed the memory of a program that crashes: of 1 byte the kernel runs no handler.

    Source: Linux, fs/coredump.c.
    """
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))


def _run_and_reap(channel: Channel, command: Command, *, landlocked: bool = False) -> NoReturn:
    started, failing = os.pipe()
    child = os.fork()
    if child == 0:
        _execute(channel, command, failing)
    os.close(failing)
    if os.read(started, 1):
        os._exit(127)
    os.close(started)
    channel.send(running=True, landlocked=landlocked)
    os._exit(_reap(channel, child))


def _execute(channel: Channel, command: Command, failing: int) -> NoReturn:
    try:
        # A group of its own: one whose leader is outside has number 0 in here.
        os.setpgid(0, 0)
        channel.send(command=True)
        # Python ignores them, programs do not expect that.
        for ignored in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(signal.Signals[ignored], signal.SIG_DFL)
        variables = read_variables(command.variables)
        told = {os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()}
        with fixed_addresses(told):
            os.execvpe(command.words[0], command.words, variables)
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None) or 0
        channel.send(
            unknown=command.words[0], errno=number, text=getattr(error, "strerror", str(error))
        )
        os.write(failing, b"1")
    os._exit(127)


def _reap(channel: Channel, command: int) -> int:
    """Wait for whatever ends, until it is the command; say when it is stopped."""
    alone = True
    while True:
        # Looked at first: of a process that has been waited for nothing can be read any more.
        seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        assert seen is not None
        stopped = seen.si_code in (os.CLD_STOPPED, os.CLD_TRAPPED)
        if seen.si_pid == command and not stopped:
            channel.send(sole=_find_sole_name(command) if alone else "")
        _, status = os.waitpid(seen.si_pid, os.WUNTRACED)
        if seen.si_pid != command:
            alone = False
        elif not stopped:
            if left := _wait_for_others():
                channel.send(left=left)
            return _shell_code(status)
        else:
            channel.send(stopped=os.WSTOPSIG(status))


def _wait_for_others() -> list[str]:
    """Give what the command has left behind a moment to end; then name what still runs, and ends with us."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        if time.monotonic() > until:
            return [name for pid in _list_children() if (name := _find_name(pid))]
        time.sleep(_LOOK_S)


def _list_children() -> list[int]:
    try:
        with open("/proc/self/task/1/children", "rb") as file:
            return list(map(int, file.read().split()))
    except OSError:
        return []


def _find_name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip().decode(errors="replace")
    except OSError:
        return ""


def _find_sole_name(command: int) -> str:
    """Give the name of a command that has ended, if it never made another process; else nothing.

    Each child that it waited for left page faults behind (proc_pid_stat(5), `cminflt`), each other one is ours now.
    """
    try:
        with open(f"/proc/{command}/stat", "rb") as file:
            head, _, rest = file.read().rpartition(b")")
        with open("/proc/self/task/1/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return ""
    if int(rest.split()[8]) or children != [b"%d" % command]:
        return ""
    return head.partition(b"(")[2].decode(errors="replace")


def _shell_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
