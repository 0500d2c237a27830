"""Which ports of the machine are a command's own, by the processes that listen there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from playhead.proxy.processes.command_listening_ports import MachinePorts
from playhead.proxy.processes.proc import Process, find_process

SERVE = """
import socket, sys
held = socket.create_server(("127.0.0.1", 0))
print(held.getsockname()[1], flush=True)
sys.stdin.read()
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def served() -> Iterator[tuple[int, int]]:
    """A process that listens: its id and its port."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        yield child.pid, int(child.stdout.readline())
        assert child.stdin is not None
        child.stdin.close()


def members(pid: int) -> list[Process]:
    found = find_process(pid)
    assert found is not None
    return [found]


def test_a_port_is_own_where_a_process_of_the_command_listens(
    served: tuple[int, int],
) -> None:
    """Also one that was started since the command's processes were looked at; a parent's is none."""
    pid, port = served
    assert MachinePorts(lambda: members(pid)).listens("127.0.0.1", port)
    assert MachinePorts(lambda: members(os.getpid())).listens("127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as ours:
        assert not MachinePorts(lambda: members(pid)).listens("127.0.0.1", ours.getsockname()[1])


def test_a_port_is_nobodys_where_it_is_not_proved(served: tuple[int, int]) -> None:
    """No listener, no command yet, another process with this number, and one that shares the port."""
    pid, port = served
    with socket.create_server(("127.0.0.1", 0)) as ours:
        free = ours.getsockname()[1]
    assert not MachinePorts(lambda: members(pid)).listens("127.0.0.1", free)
    assert not MachinePorts(list).listens("127.0.0.1", port)
    other = members(pid)[0]._replace(started=1.0)
    assert not MachinePorts(lambda: [other]).listens("127.0.0.1", port)
    with socket.create_server(("127.0.0.2", port)):
        assert not MachinePorts(lambda: members(pid)).listens("127.0.0.1", port)
