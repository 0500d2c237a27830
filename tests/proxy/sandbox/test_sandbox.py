"""A sandbox from its beginning to its end: codes, signals, what is left over, and where there can be none."""

import asyncio
import json
import os
import select
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead import __path__ as package_path
from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem.masking import Plan
from playhead.proxy.sandbox.init import START
from playhead.proxy.sandbox.network.listeners import CAPTURED, DNS_PORT, PROXY_PORT, Service
from playhead.proxy.sandbox.sandbox import Sandbox
from playhead.proxy.sandbox.sandbox_process import Helper
from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.recordings import ask, record_run

NOTHING = Plan((), (), (), (), (), {})
PATIENCE_S = 20


def sandboxed(*command: str, **options: object) -> Sandbox:
    """A sandbox that hides nothing."""
    return Sandbox(command, os.environ, NOTHING, **options)  # type: ignore[arg-type]  # one or another


async def _run(sandbox: Sandbox) -> int | None:
    try:
        (await sandbox.open()).close()
        await sandbox.start()
        return await sandbox.wait()
    finally:
        sandbox.close()


CODES = {
    "true": 0,
    "exit 7": 7,
    "exit 200": 200,
    "kill -9 $$": 137,
    "kill -SEGV $$": 139,
    "kill $$; sleep 60": 143,
}


@pytest.mark.parametrize("code", CODES)
def test_the_code_is_the_commands(code: str) -> None:
    """Of one that a signal ended, 128 and the signal's number."""
    sandbox = sandboxed("sh", "-c", code)
    assert asyncio.run(_run(sandbox)) == CODES[code]
    assert sandbox.counters["packets_out"] == 0


def test_the_sandboxs_init_imports_only_what_is_quick_to_import() -> None:
    """Each start in a sandbox waits for it: asyncio alone takes longer than all that is needed."""
    flags, option, code = START
    listed = code.replace("sys.exit(main(sys.argv))", "print(*sys.modules)")
    done = subprocess.run(
        [sys.executable, flags, option, listed, package_path[0]],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(done.stdout.split())
    assert "playhead.proxy.sandbox.init" in imported
    assert imported & {"asyncio", "inspect", "logging", "site", "ssl", "subprocess"} == set()


UNMOUNTABLE = {
    "/nowhere/hidden": Plan(("/nowhere/hidden",), (), (), (), (), {}),
    "/nowhere/target": Plan((), (), (), (), (("/etc/hosts", "/nowhere/target"),), {}),
    "/nowhere/shown": Plan((), ("/nowhere/shown",), (), (), (), {}),
}


@pytest.mark.parametrize("path", UNMOUNTABLE)
def test_what_cannot_be_mounted_is_named(path: str) -> None:
    """The path at which it failed, and why."""
    with pytest.raises(EngineError, match=f"cannot be made: .*{path}: No such file"):
        asyncio.run(_run(Sandbox(["true"], os.environ, UNMOUNTABLE[path])))


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_an_emptied_folder_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    """tmux does not start where the folder of its sockets is open to more than its user."""
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    code = f'test "$(stat -c %a {folder})" = {mode:o} && test -z "$(ls {folder})"'
    (folder / "file").touch()
    plan = Plan((str(folder),), (), (), (), (), {})
    assert asyncio.run(_run(Sandbox(["sh", "-c", code], os.environ, plan))) == 0


ALONE = {
    "exec true": "true",
    "true; exit 3": "sh",
    "env true; exit 3": "",
    "sleep 60 & exit 3": "",
    "(env true &) ; exit 3": "",
}


@pytest.mark.parametrize("code", ALONE)
def test_a_command_that_made_no_process_is_known_by_its_name(code: str) -> None:
    """What was tried was tried by it; of several nobody can tell."""
    sandbox = sandboxed("sh", "-c", code)
    asyncio.run(_run(sandbox))
    assert sandbox.sole_process == ALONE[code]


def test_every_inlet_is_there() -> None:
    """The proxy's, those of all that is captured, of DNS, of services, and the tap, over both families."""

    async def look() -> None:
        sandbox = sandboxed("true", services=[Service("127.0.0.1", 5432)])
        open_listeners = await sandbox.open()
        sandbox.close()
        ports = [sock.getsockname()[1] for sock in open_listeners.captured]
        assert ports[:2] == list(CAPTURED)
        assert [sock.getsockname()[1] for sock in open_listeners.proxy] == [PROXY_PORT]
        assert {sock.getsockname()[1] for sock in open_listeners.dns} == {DNS_PORT}
        assert [sock.getsockname() for sock in open_listeners.service] == [("127.0.0.1", 5432)]
        assert len(open_listeners.leaving) == len(open_listeners.refused) == 1
        assert len(ports) == 2 * len(open_listeners.dns)
        open_listeners.close()

    asyncio.run(look())


def test_a_port_that_is_taken_inside_is_said() -> None:
    """Two services at one address, or one at the proxy's."""
    for taken in (5432, PROXY_PORT):
        services = [Service("127.0.0.1", port) for port in (5432, taken)]
        with pytest.raises(EngineError, match=f"127.0.0.1:{taken} is the proxy's own in a sandbox"):
            asyncio.run(_run(sandboxed("true", services=services)))


def test_a_command_that_cannot_be_started_is_said() -> None:
    """By its name, with the reason."""
    for command, reason in (
        ("no-such-command", "no such program"),
        ("/etc/passwd", ".*Permission"),
    ):
        with pytest.raises(EngineError, match=f"cannot start '{command}': {reason}"):
            asyncio.run(_run(sandboxed(command)))


def test_a_command_that_stops_is_told_and_goes_on() -> None:
    """Its group is one of its own, to be signalled from outside."""

    async def stop() -> None:
        sandbox = sandboxed("sh", "-c", "kill -STOP $$; exit 5")
        (await sandbox.open()).close()
        await sandbox.start()
        assert sandbox.pid is not None
        assert await sandbox.wait() is None
        assert sandbox.stopped_by == signal.SIGSTOP
        os.killpg(sandbox.pid, signal.SIGCONT)
        assert await sandbox.wait() == 5
        sandbox.close()

    asyncio.run(stop())


def test_variables_of_the_command_are_for_the_command(tmp_path: Path) -> None:
    """Whatever is in them, and however much; not for the processes around it."""
    given = {
        **os.environ,
        "LD_PRELOAD": "/no/such/library.so",
        "LONG": "é" * 50_000,
        "LINES": "a\nb=",
    }
    code = f"import json, os; json.dump(dict(os.environ), open({str(tmp_path / 'said')!r}, 'w'))"
    with open(tmp_path / "err", "wb") as file:
        held = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            assert (
                asyncio.run(_run(Sandbox([sys.executable, "-S", "-c", code], given, NOTHING))) == 0
            )
        finally:
            os.dup2(held, 2)
            os.close(held)
    assert json.loads((tmp_path / "said").read_text()) | {"LC_CTYPE": ""} == given | {
        "LC_CTYPE": ""
    }
    assert (tmp_path / "err").read_text().count("/no/such/library.so") == 1


def test_the_first_process_cannot_be_ended_from_inside() -> None:
    """Not by a signal that Python has a handler for either: the code would be none of the command's."""
    assert (
        asyncio.run(_run(sandboxed("sh", "-c", "kill -INT 1; kill -KILL 1; kill -STOP 1; exit 4")))
        == 4
    )


def test_a_command_in_a_folder_that_was_removed_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is above it may be hidden, and can be seen from there."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert asyncio.run(_run(sandboxed("sh", "-c", f"pwd > {tmp_path}/said"))) == 0
    assert (tmp_path / "said").read_text() == "/\n"


# ---- what is left over -----------------------------------------------------------------------------

STUBBORN = """
import os, signal, sys, time
told, tell = os.pipe()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for depth in range(3):
    if os.fork():
        break
    os.setsid()
held = os.open(sys.argv[1], os.O_WRONLY)
os.write(held, b"x")
os.write(tell, b"x")
if depth == 0 and sys.argv[2] == "ends":
    for _ in range(4):
        os.read(told, 1)
    os._exit(3)
time.sleep(600)
"""
"""Leaves children in sessions of their own behind; all of them hold a pipe and ignore SIGTERM."""
COUNT = 4


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A pipe with a name, and its end for reading."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reading
    os.close(reading)


def _read_until_nobody_holds(reading: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while selector.select(PATIENCE_S):
            if not os.read(reading, 100):
                return
    raise AssertionError("somebody still holds the pipe")


def test_orphans_end_with_the_command(pipe: tuple[Path, int]) -> None:
    """Also those that left their session, and that ignore SIGTERM."""
    path, reading = pipe
    sandbox = sandboxed(sys.executable, "-S", "-c", STUBBORN, str(path), "ends")
    assert asyncio.run(_run(sandbox)) == 3
    _read_until_nobody_holds(reading)


LAUNCHER = """
import asyncio, os, sys
from playhead.proxy.sandbox.sandbox import Sandbox
from playhead.proxy.sandbox.filesystem.bubblewrap import Files
from playhead.proxy.sandbox.filesystem.masking import Plan
async def main():
    files = Files((), (), (sys.argv[1],), "/").words() if sys.argv[1] else ()
    box = Sandbox(sys.argv[2:], os.environ, Plan((), (), (), (), (), {}), files=files)
    inlets = await box.open()
    await box.start()
    await box.wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("wrapped", [False, True])
def test_nothing_is_left_of_a_launcher_that_was_killed(
    pipe: tuple[Path, int], wrapped: bool
) -> None:
    """kill -9: all processes are gone, and nothing is mounted that was not; with bubblewrap, too."""
    if wrapped:
        need("bubblewrap")
    path, reading = pipe
    files = str(path.parent) if wrapped else ""
    before = Path("/proc/mounts").read_text()
    command = [sys.executable, "-S", "-c", STUBBORN, str(path), "stays"]
    with subprocess.Popen([sys.executable, "-c", LAUNCHER, files, *command]) as launcher:
        seen = b""
        with selectors.DefaultSelector() as selector:
            selector.register(reading, selectors.EVENT_READ)
            while len(seen) < COUNT:
                assert selector.select(PATIENCE_S), seen
                seen += os.read(reading, 100)
        launcher.kill()
    _read_until_nobody_holds(reading)
    assert Path("/proc/mounts").read_text() == before


# ---- where there can be none -----------------------------------------------------------------------

FORBIDDEN = """
import os, sys
from pathlib import Path
uid, gid = os.geteuid(), os.getegid()
os.unshare(os.CLONE_NEWUSER)
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    Path("/proc/self", name).write_text(text)
Path("/proc/sys/user/max_user_namespaces").write_text("0")
"""
REPLAY = """
sys.argv = ["playhead", "replay", "latest", "--store", sys.argv[1], "--", "touch", sys.argv[2]]
from playhead.proxy.cli import main
main()
"""


def test_without_user_namespaces_nothing_is_run(tmp_path: Path) -> None:
    """One sentence names what is off, and the ways; the command is not run unsandboxed instead."""
    store, made = tmp_path / "store", tmp_path / "made"
    with Store.open(store) as opened:
        record_run(opened, "tape", [ask()])
    done = subprocess.run(
        [sys.executable, "-c", FORBIDDEN + REPLAY, str(store), str(made)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 125, done.stderr
    *folder, first, second = done.stderr.splitlines()
    assert all("the command works on a copy" in line for line in folder)
    assert first == (
        "playhead: no sandbox can be made: user namespaces are off"
        " (/proc/sys/user/max_user_namespaces)"
    )
    for way in ("sysctl user.max_user_namespaces", "Docker", "--no-sandbox"):
        assert way in second
    assert not made.exists()


def test_whether_there_can_be_one_is_tried() -> None:
    """The demo asks, and replays outside where there can be none."""
    try_it = "from playhead.proxy.sandbox.preflight import works; print(works())"
    for before, expected in (("", "True"), (FORBIDDEN, "False")):
        command = [sys.executable, "-c", before + try_it]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert said.stdout == f"{expected}\n", said.stderr


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.05, 0.1])
def test_a_helper_that_nobody_needs_says_nothing(
    after_s: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whether it is ended, or whoever started it is gone: it may be about to hand its listeners over."""
    helper = Helper(["true"], [], [])
    other = Helper(["true"], [], [])
    select.select([other.channel.socket], [], [], after_s)
    helper.close()
    other.channel.close()
    other.process.wait(PATIENCE_S)
    other.close()
    assert capfd.readouterr() == ("", "")
