"""Clients behind connections and sockets off the machine, with real processes on loopback."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from playhead.proxy.processes import client_processes as sockets
from playhead.proxy.processes import sockdiag
from playhead.proxy.processes.client_processes import (
    ForeignSocket,
    SocketWatch,
    find_client,
    group_alive,
    is_foreign,
)
from playhead.proxy.processes.proc import find_process
from playhead.tests.support.needs import need

FOREIGN = "127.0.0.9"
"""Stands for another machine in these tests: loopback is all they have."""

Spawn = Callable[..., subprocess.Popen[str]]


@pytest.fixture(params=["kernel", "psutil"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to read sockets must agree."""
    if request.param == "psutil":

        def refuse(*_: object) -> None:
            raise OSError("no sock_diag here")

        monkeypatch.setattr(sockdiag, "list_sockets", refuse)
        monkeypatch.setattr(sockdiag, "find_socket", refuse)
    elif sys.platform != "linux":
        pytest.skip("sock_diag is Linux only")
    return str(request.param)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A server on an address that counts as foreign here."""
    monkeypatch.setattr(sockets, "is_foreign", lambda address: address == FOREIGN)
    with socket.create_server((FOREIGN, 0)) as server:
        yield server


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start Python programs that say when they are ready and end when their input does."""
    children: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, own_group: bool = True) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", PRELUDE + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0 if own_group else None,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        assert child.stdin
        assert child.stdout
        child.stdin.close()
        child.stdout.read()  # whoever is left of the family has ended when this ends
        child.stdout.close()
        child.wait()


PRELUDE = """
import os, socket, subprocess, sys
def connect(kind=socket.SOCK_STREAM):
    peer = socket.socket(socket.AF_INET, kind)
    peer.connect((sys.argv[1], int(sys.argv[2])))
    return peer
def ready():
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def line(child: subprocess.Popen[str]) -> int:
    assert child.stdout
    return int(child.stdout.readline())


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("::ffff:0.0.0.0", False),
        ("10.0.0.1", True),
        ("8.8.8.8", True),
        ("169.254.1.1", True),
        ("fe80::1%eth0", True),
        ("::ffff:8.8.8.8", True),
        ("2001:db8::1", True),
    ],
)
def test_foreign_is_what_leads_off_the_machine(address: str, expected: bool) -> None:
    """Loopback and the unspecified address stay here."""
    assert is_foreign(address) is expected


def test_client_is_found_by_its_connection(source: str, spawn: Spawn) -> None:
    """Process, group, start and name, with and without a hint that helps."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = spawn("peer = connect(); ready()", *server.getsockname())
        connection, peer = server.accept()
        with connection:
            found = find_client(peer, connection.getsockname())
            assert found is not None
            assert (found.pid, found.pgid) == (child.pid, child.pid)
            assert found.name
            assert group_alive(found.pgid, found.started)
            for hint in ([child.pid], [1, os.getpid()], [2**22 - 1]):
                assert find_client(peer, connection.getsockname(), hint) == found


def test_child_of_an_agent_is_in_its_group(source: str, spawn: Spawn) -> None:
    """An agent and the program it starts are one run."""
    code = "subprocess.run([sys.executable, '-c', sys.argv[3], *sys.argv[1:3]])"
    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = spawn(code, *server.getsockname(), PRELUDE + "peer = connect(); ready()")
        connection, peer = server.accept()
        with connection:
            found = find_client(peer, connection.getsockname(), [agent.pid])
    assert found is not None
    assert found.pid != agent.pid
    assert found.pgid == agent.pid


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_client_is_found_in_both_families(source: str, family: socket.AddressFamily) -> None:
    """Also behind a socket that serves both, where IPv4 shows in its IPv6 form."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    need("IPv6")
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    client = socket.create_connection((host, server.getsockname()[1]))
    connection, peer = server.accept()
    with server, client, connection:
        found = find_client(peer, connection.getsockname())
        assert found is not None
        assert found.pid == os.getpid()
        assert (find_client(client.getsockname(), client.getpeername()) or found).pid == os.getpid()


def test_client_out_of_sight_is_none(source: str) -> None:
    """Another machine's port that happens to be a listening one here is nobody's."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        assert find_client(("192.0.2.1", port), ("127.0.0.1", 8080)) is None
        assert find_client(("127.0.0.1", port), ("127.0.0.1", 8080)) is None


def test_group_is_alive_while_one_member_is(spawn: Spawn) -> None:
    """The leader may be gone: what it left behind counts."""
    code = (
        "subprocess.Popen([sys.executable, '-c',"
        " 'import os, sys; print(os.getpid(), flush=True); sys.stdin.read()'])"
    )
    leader = spawn(code)
    started = _started(leader.pid)
    line(leader)
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
    assert group_alive(leader.pid, started)
    leader.wait()
    assert group_alive(leader.pid, started)
    assert leader.stdin
    assert leader.stdout
    leader.stdin.close()
    leader.stdout.read()


def test_zombies_are_not_alive(spawn: Spawn) -> None:
    """A leader that nobody waited for."""
    leader = spawn("")
    started = _started(leader.pid)
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    assert not group_alive(leader.pid, started)
    leader.wait()
    assert not group_alive(leader.pid, started)


def test_number_given_out_again_is_another_group(spawn: Spawn) -> None:
    """Told by the start of its leader."""
    leader = spawn("ready()")
    line(leader)
    assert group_alive(leader.pid, _started(leader.pid))
    assert not group_alive(leader.pid, _started(leader.pid) - 1)


def _started(pid: int) -> float:
    process = find_process(pid)
    assert process is not None
    return process.started


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_foreign_socket_is_seen_once(
    source: str, spawn: Spawn, foreign: socket.socket, kind: socket.SocketKind
) -> None:
    """However many samples it lives through; a second one counts."""
    code = (
        "held = [connect(int(sys.argv[3]))]; print(os.getpid(), flush=True); sys.stdin.readline()\n"
        "held += [connect(int(sys.argv[3]))]; ready()"
    )
    child = spawn(code, *foreign.getsockname(), int(kind))
    watch = SocketWatch(lambda: child.pid)
    line(child)
    watch.sample()
    watch.sample()
    [found] = watch.seen
    protocol = "tcp" if kind == socket.SOCK_STREAM else "udp"
    expected = ForeignSocket(
        protocol, FOREIGN, foreign.getsockname()[1], found.process, child.pid, 1, 1
    )
    assert found == expected
    assert found.process
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()
    line(child)
    watch.sample()
    assert [(it.first_seen, it.count) for it in watch.seen] == [(1, 2)]
    assert (watch.samples, watch.dropped) == (3, 0)


@pytest.mark.parametrize(
    "family",
    [
        # its child
        "subprocess.run([sys.executable, '-c', sys.argv[3], *sys.argv[1:3]])",
        # its child's child, in a group of its own
        "subprocess.run([sys.executable, '-c', sys.argv[4], *sys.argv[1:4]], process_group=0)",
        # a child that outlives it, in its group
        "subprocess.Popen([sys.executable, '-c', sys.argv[3], *sys.argv[1:3]])",
    ],
)
def test_whole_tree_is_watched(
    source: str, spawn: Spawn, foreign: socket.socket, family: str
) -> None:
    """Children, theirs, and those whose parent is gone."""
    inner = PRELUDE + "subprocess.run([sys.executable, '-c', sys.argv[3], *sys.argv[1:3]])"
    leaf = PRELUDE + "peer = connect(); ready()"
    root = spawn(family, *foreign.getsockname(), leaf, inner)
    watch = SocketWatch(lambda: root.pid)
    watch.sample()
    pid = line(root)
    watch.sample()
    assert [it.pid for it in watch.seen] == [pid]


def test_others_are_not_watched(source: str, spawn: Spawn, foreign: socket.socket) -> None:
    """Neither the watcher, whose group and session the agent may share, nor its other children."""
    agent = spawn("ready()", own_group=False)
    other = spawn("peer = connect(); ready()", *foreign.getsockname(), own_group=False)
    with socket.create_connection(foreign.getsockname()):
        line(agent), line(other)
        watch = SocketWatch(lambda: agent.pid)
        for _ in range(3):
            watch.sample()
        assert watch.seen == ()


def test_expected_peers_are_no_finding(source: str, spawn: Spawn, foreign: socket.socket) -> None:
    """The proxy itself may listen on another address."""
    child = spawn("peer = connect(); ready()", *foreign.getsockname())
    line(child)
    watch = SocketWatch(lambda: child.pid, expected=[foreign.getsockname()])
    watch.sample()
    assert watch.seen == ()


def test_loopback_and_listeners_are_no_finding(source: str, spawn: Spawn) -> None:
    """What stays on this machine is nobody's business."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = spawn(
            "peer = connect(); door = socket.create_server(('0.0.0.0', 0)); ready()",
            *server.getsockname(),
        )
        line(child)
        watch = SocketWatch(lambda: child.pid)
        watch.sample()
        assert watch.seen == ()


def test_list_is_bounded(
    source: str, spawn: Spawn, foreign: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peers past the limit are counted."""
    monkeypatch.setattr(sockets, "MOST_PEERS", 1)
    with socket.create_server((FOREIGN, 0)) as second:
        code = "held = connect(); sys.argv[2] = sys.argv[3]; more = connect(); ready()"
        child = spawn(code, *foreign.getsockname(), second.getsockname()[1])
        line(child)
        watch = SocketWatch(lambda: child.pid)
        watch.sample()
    assert (len(watch.seen), watch.dropped) == (1, 1)


def test_process_that_is_gone_or_not_there_yet_is_no_error(source: str, spawn: Spawn) -> None:
    """A watch may be early or late."""
    child = spawn("")
    child.wait()
    for pid in (None, child.pid):
        watch = SocketWatch(lambda pid=pid: pid)  # type: ignore[misc]
        watch.sample()
        watch.sample()
        assert watch.seen == ()


def test_thread_watches_until_it_is_stopped(
    source: str, spawn: Spawn, foreign: socket.socket
) -> None:
    """Stopping takes a last look, so that nothing open at the end is missed."""
    child = spawn("sys.stdin.readline(); peer = connect(); ready()", *foreign.getsockname())
    asked = threading.Event()

    def pid() -> int:
        asked.set()
        return child.pid

    with SocketWatch(pid, interval_s=60.0) as watch:
        assert asked.wait(10)
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
        line(child)
    assert [it.pid for it in watch.seen] == [child.pid]


def test_watch_that_went_blind_says_so() -> None:
    """No finding of a dead watch is no result."""

    def fail() -> int:
        raise RuntimeError("lost the child")

    watch = SocketWatch(fail)
    watch.start()
    with pytest.raises(RuntimeError, match="lost the child"):
        watch.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="sock_diag is Linux only")
def test_kernel_that_knows_no_such_question_is_told_from_no_such_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are ENOENT; only the first is a reason to ask psutil."""
    ends = ("127.0.0.1", 1), ("127.0.0.1", 2)
    assert sockdiag.find_socket(*ends) is None

    def refuse(*_: object) -> list[bytes]:
        raise FileNotFoundError(2, "no handler")

    monkeypatch.setattr(sockdiag, "_ask", refuse)
    sockdiag._require_answers.cache_clear()
    with pytest.raises(OSError, match="no handler"):
        sockdiag.find_socket(*ends)


def test_what_outlives_a_root_is_found(spawn: Spawn) -> None:
    """By its group, also where nobody had looked before the root ended; and nothing of a root that left none."""
    child = spawn("print(os.fork() or os.read(0, 1), flush=True); os._exit(0)")
    assert child.stdout
    other = int(child.stdout.readline())
    child.wait()
    (left,) = SocketWatch(lambda: child.pid).find_left(patience_s=0)
    assert left.pid == other
    assert SocketWatch(lambda: None).find_left() == []
