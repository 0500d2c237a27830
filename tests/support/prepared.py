"""Python programs that begin with their imports done: forked from a process that has done nothing else.

A start of `playhead` takes most of a second, nearly all of it imports, and the tests start some two hundred.
What is forked runs the same `main` in a process of its own, with arguments, environment, folder, standard files,
signals and exit of its own. The workers of one run of the tests share what they fork from: see `share`. With PLAYHEAD_FULL=1 every program is started for real, and always those that a test
starts by other means, such as through a shell.
"""

import atexit
import contextlib
import gc
import hashlib
import importlib
import io
import json
import os
import runpy
import selectors
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TextIO

from playhead.proxy.sandbox.filesystem.break_hard_links import separate

OURS = (sys.executable, "-m", "playhead.proxy.cli")
FOR_OURS = (
    *("encodings.idna", "uvloop", "playhead.proxy.run.sandboxed", "playhead.tests.support.warm"),
    "playhead.proxy.cli",
    "playhead.proxy.run.launcher",
    "playhead.proxy.run.serve",
    "playhead.proxy.operations.end_run",
    "playhead.proxy.operations.learn",
    "playhead.proxy.operations.tape_files",
    "playhead.proxy.operations.notes",
    "playhead.proxy.operations.policy_dry_run",
    "playhead.proxy.operations.retention",
    "playhead.proxy.operations.verify",
    "playhead.proxy.control.client",
    "playhead.proxy.control.gate_commands",
    "playhead.proxy.control.server",
    "playhead.timeline.receipts.exchange_rows",
    "playhead.timeline.rules.reindex",
    "playhead.timeline.learning.render_text",
    "playhead.timeline.checks.secrets",
    "playhead.proxy.looking_back.show",
    "playhead.proxy.run_again.branch",
    "playhead.timeline.diff.diff_json",
    "playhead.timeline.diff.render",
    "playhead.timeline.show.run_tree",
    *("lmdb._envid", "encodings.utf_16_be", "cryptography.hazmat.backends.openssl.backend"),
)
"""What `playhead` has imported; programs of the tests that use much of it are forked from the same template."""
FOR_PAGES = (
    *FOR_OURS,
    "aiohttp.web",
    "genai_prices.data_snapshot",
    "playhead.proxy.pages.application",
    "playhead.proxy.pages.server",
    "playhead.tests.support.warm_pages",
)
"""What `playhead ui` has imported once it has shown a run; no other command has, and none is to look at all of those files."""
HTTPX = ("httpx", "certifi", "encodings.idna", "httpcore._sync.http11", "httpcore._sync.http2")
"""What httpx has imported when its first request has come back."""
MCP = (
    *HTTPX,
    *("httpcore._async.http2", "anyio._backends._asyncio", "mcp.client.sse"),
    *("mcp.client.streamable_http", "mcp.server.fastmcp", "playhead.tests.support.asgi"),
)
"""What clients and servers of the `mcp` package have imported."""
SDKS = (
    *MCP,
    *("openai.resources.chat.completions", "anthropic.resources.messages", "truststore"),
    *("httpcore2._async.http2", "httpcore2._sync.http2"),
    "playhead.tests.journeys.clients.transcript",
)
"""What clients of models have imported; one process has it for all of them."""
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ")
"""Of the environment: what comes too late for a process that runs."""
_NEVER_LATE = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
"""Does not: see `_become`."""
_NAME = "playhead.tests.support.prepared"
"""Of this module, also where it is run."""
_NUMBER = struct.Struct("i")
_LONGEST = 70
"""In bytes, of a folder with sockets in it: a path has at most 107. Source: unix(7)."""
_LAST_S = 60
"""How long the process that has started what others fork from waits for the last of them."""
_LOCK = threading.Lock()
_FIRST = dict(os.environ)
"""The environment before any test has changed it."""


def start(
    command: Sequence[str | Path], *, imports: Sequence[str] = (), **options: Any
) -> "subprocess.Popen[Any]":
    """Start a program as `subprocess.Popen` does.

    command: forked if it is `playhead`, or `python -m MODULE ...` or `python SCRIPT ...` with imports.
    imports: modules that are there when the program begins; those of `playhead` need not be named.
    options: of Popen that have to do with files, environment, folder, umask and process group.
    """
    words = list(map(str, command))
    if tuple(words[:3]) == OURS:
        imports = FOR_PAGES if "ui" in words[3:5] else FOR_OURS
    if (
        not imports
        or words[0] != sys.executable
        or (words[1].startswith("-") and words[1] != "-m")
        or os.environ.get("PLAYHEAD_FULL")
        or _starts_otherwise(options.get("env"))
    ):
        return subprocess.Popen(words, **options)
    return _Forked(words, tuple(imports), **options)


def run(
    command: Sequence[str | Path],
    *,
    imports: Sequence[str] = (),
    input: Any = None,
    timeout: float | None = None,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run a program to its end as `subprocess.run` does, and keep what it says."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, imports=imports, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _starts_otherwise(env: Mapping[str, str] | None) -> bool:
    """Say whether an interpreter would read other variables at its start than the templates have read."""
    return _read_at_start(os.environ if env is None else env) != _of_templates()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in env.items()
        if name.startswith(_READ_AT_START) and name not in _NEVER_LATE
    }


@cache
def _of_templates() -> dict[str, str]:
    return _read_at_start(_FIRST)


class _Forked(subprocess.Popen[Any]):
    """A process whose parent is a template, which tells how it ended."""

    def __init__(self, words: list[str], imports: tuple[str, ...], **options: Any) -> None:
        self._imports = imports
        super().__init__(words, **options)

    def _execute_child(self, args: list[str], *given: Any) -> None:
        # As CPython 3.12 to 3.14 call it.
        _, _, _, _, cwd, env, _, _, _, *pipes = given[:15]
        umask, new_session, process_group = given[-3:]
        order = {
            "words": args[1:],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or os.getcwd()),
            "umask": umask,
            "new_session": new_session,
            "process_group": process_group,
        }
        self._news, theirs = socket.socketpair()
        with theirs, _LOCK:
            standard = [
                number if given == -1 else given
                for number, given in enumerate((pipes[0], pipes[3], pipes[5]))
            ]
            _template(self._imports).send(order, [*standard, theirs.fileno()])
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self.pid = self._hear()
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        try:
            status = self._hear(socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)
        except BlockingIOError:
            return 0, 0
        self._news.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _hear(self, flags: int = 0) -> int:
        number: int = _NUMBER.unpack(self._news.recv(_NUMBER.size, flags))[0]
        return number


def stay_ready() -> None:
    """Have programs be forked from this process as it is now, and not from one that would import the same again.

    Call it in a program that was forked itself, before it has a second thread; in any other it does nothing.
    """
    if _BEGAN_WITH:
        _READY[_BEGAN_WITH] = _ForkedTemplate()


_BEGAN_WITH: tuple[str, ...] = ()
"""What this process had imported when it was forked; empty in one that was not."""
_READY: "dict[tuple[str, ...], _Template]" = {}


def share(folder: Path) -> None:
    """Have other processes fork from what this one forks from, and the other way round.

    folder: the same for all of them; it is made where it is missing. Programs that are forked do not share any more.
    """
    global _SHARED
    if len(os.fsencode(folder)) < _LONGEST:
        folder.mkdir(mode=0o700, exist_ok=True)
        _SHARED = folder


_SHARED: Path | None = None


class _Template:
    """The process that forks. It ends with the last process that gives it orders."""

    def __init__(self, imports: tuple[str, ...]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if _SHARED is None:
            self._orders, theirs = socket.socketpair()
            self._start(theirs, imports)
        else:
            name = hashlib.sha256(" ".join(imports).encode()).hexdigest()[:16]
            self._orders = self._connect(str(_SHARED / name), imports)
        atexit.register(self._close)

    def _connect(self, path: str, imports: tuple[str, ...]) -> socket.socket:
        """Connect to the process that listens at a path, or else start one."""
        while True:
            orders = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(FileNotFoundError):
                orders.connect(path)
                return orders
            orders.close()
            listener, own = socket.socket(socket.AF_UNIX), f"{path}-{os.getpid()}"
            listener.bind(own)
            listener.listen(100)
            # It listens before it can be found; of several processes that start one at once, one does.
            with contextlib.suppress(FileExistsError):
                os.link(own, path)
                self._start(listener, imports)
            listener.close()
            os.unlink(own)

    def _start(self, theirs: socket.socket, imports: tuple[str, ...]) -> None:
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", _NAME, str(number), *imports]
            env = {**os.environ, **_of_templates()}
            for name in _read_at_start(env).keys() - _of_templates().keys():
                del env[name]  # of the test that is first to need this template
            self._process = subprocess.Popen(command, pass_fds=[number], env=env)

    def send(self, order: dict[str, Any], files: list[int]) -> None:
        """Have a program started with these files: stdin, stdout, stderr, and where to tell of it."""
        body = json.dumps(order).encode()
        socket.send_fds(self._orders, [_NUMBER.pack(len(body))], files)
        self._orders.sendall(body)

    def _close(self) -> None:
        self._orders.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # others still use it
                self._process.wait(10 if _SHARED is None else _LAST_S)


class _ForkedTemplate(_Template):
    """A copy of this process that forks."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            self._orders.close()
            atexit._clear()  # what our parent has to do at its end
            try:
                _become_what_is_ordered(theirs)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)  # whoever called us goes on in our parent alone
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._orders.close()
        os.waitpid(self._pid, 0)


def _template(imports: tuple[str, ...]) -> _Template:
    return _READY.get(imports) or _new_template(imports)


@cache
def _new_template(imports: tuple[str, ...]) -> _Template:
    # Else each of what is forked would start again, from files that were replaced once it had loaded them.
    separate()
    return _Template(imports)


# ---- in the template, and in what it forks -----------------------------------------------------------


def _fork_for_orders(given: socket.socket) -> list[str] | None:
    """Fork until there are no more orders; give None then, and in a child the words of its command.

    given: where orders come from, or where those connect who have some.
    """
    running: dict[int, tuple[int, socket.socket]] = {}
    is_shared = bool(given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    connected: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(given, selectors.EVENT_READ)
        if not is_shared:
            connected[given.fileno()] = given
        while True:
            for number in [key.fd for key, _ in selector.select()]:
                if number in running:
                    selector.unregister(number)
                    pid, news = running.pop(number)
                    os.close(number)
                    with news:
                        news.send(_NUMBER.pack(os.waitpid(pid, 0)[1]))
                    continue
                if number not in connected:
                    orders, _ = given.accept()
                    connected[orders.fileno()] = orders
                    selector.register(orders, selectors.EVENT_READ)
                    continue
                orders = connected[number]
                head, files, _, _ = socket.recv_fds(orders, _NUMBER.size, 4)
                if not head:
                    selector.unregister(number)
                    connected.pop(number).close()
                    if connected or (is_shared and _is_wanted(given)):
                        continue
                    return None
                body = _read(orders, _NUMBER.unpack(head)[0])
                pid = os.fork()
                if not pid:
                    for watched, (_, news) in running.items():
                        os.close(watched)
                        news.close()
                    for one in (given, *connected.values()):
                        one.close()
                    return _become(json.loads(body), files)
                for file in files[:3]:
                    os.close(file)
                news = socket.socket(fileno=files[3])
                news.send(_NUMBER.pack(pid))
                watched = os.pidfd_open(pid)
                selector.register(watched, selectors.EVENT_READ)
                running[watched] = pid, news


def _is_wanted(listener: socket.socket) -> bool:
    """Say whether somebody has connected; who comes from now on does not find us any more, and starts another."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_find_shared(listener))
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        return bool(selector.select(0))


def _find_shared(listener: socket.socket) -> str:
    """Give the path at which others find us: the one that was bound has a number added."""
    return str(listener.getsockname()).rpartition("-")[0]


def _read(orders: socket.socket, length: int) -> bytes:
    body = b""
    while len(body) < length:
        body += orders.recv(length - len(body))
    return body


def _become(order: dict[str, Any], files: list[int]) -> list[str]:
    """Take on what a process has of its own; give the words of its command."""
    if order["new_session"]:
        os.setsid()
    if order["process_group"] not in (None, -1):
        os.setpgid(0, order["process_group"])
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    os.chdir(order["folder"])
    if order["umask"] >= 0:
        os.umask(order["umask"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX") or None
    sys.stdin = _standard(0, "rb", sys.stdin)
    sys.stdout = _standard(1, "wb", sys.stdout)
    sys.stderr = _standard(2, "wb", sys.stderr)
    words: list[str] = order["words"]
    return words


def _standard(number: int, mode: str, old: TextIO) -> TextIO:
    """Open a standard file again: what it is, such as a terminal, is looked at when it is opened."""
    return io.TextIOWrapper(
        open(number, mode, closefd=False),  # open as long as the process
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=number == 2 or os.isatty(number),
        write_through=bool(os.environ.get("PYTHONUNBUFFERED")),
    )


def _main() -> None:
    orders = socket.socket(fileno=int(sys.argv[1]))
    names = tuple(sys.argv[2:])
    gc.disable()  # nothing that imports make is garbage
    for name in names:
        importlib.import_module(name)
    vars(importlib.import_module(_NAME))["_BEGAN_WITH"] = names
    gc.freeze()
    gc.enable()
    _become_what_is_ordered(orders)


def _become_what_is_ordered(orders: socket.socket) -> None:
    """Fork for as long as there are orders, and run in each child what was ordered."""
    words = _fork_for_orders(orders)
    if words is None:
        os._exit(0)
    try:
        _run(words)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _leave(end.code or 0)
    _leave(0)


def _leave(code: int) -> NoReturn:
    """End as an interpreter does, but for taking itself apart: that would copy all the pages of the template."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(ValueError):  # closed already
        try:
            sys.stdout.flush()
        except OSError:
            code = 120  # as the interpreter says it
    with contextlib.suppress(ValueError, OSError):
        sys.stderr.flush()
    os._exit(code & 0xFF)


def _run(words: list[str]) -> None:
    if words[0] != "-m":
        sys.path[0], sys.argv = os.path.dirname(words[0]), words
        runpy.run_path(words[0], run_name="__main__")
        return
    _, name, *arguments = words
    sys.path[0], sys.argv = os.getcwd(), [name, *arguments]
    if name in sys.modules:
        sys.modules[name].main()
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
