"""The network that a container makes, and what the proxy has of it. Without Docker: a namespace does."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.proxy.docker.container_network import Link
from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.network.listeners import Service

# A user namespace of its own has the rights that Docker gives, and no others.
INSIDE = """
import os, socket, struct, sys
from pathlib import Path
from playhead import PlayheadError
from playhead.proxy.docker.network_holder import serve
uid, gid = os.getuid(), os.getgid()
os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
    Path("/proc/self", name).write_text(text)
if sys.argv[2:] == ["device"]:
    # A pair of devices, of which one is up.
    request = lambda kind, body: struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body
    text = lambda kind, value: struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    link = text(1, b"veth")
    kernel.send(request(16, struct.pack("=BBHiII", 0, 0, 0, 0, 1, 1) + text(3, b"out0") + text(18, link)))
    number = struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    sys.exit(f"PermissionError: {number}") if number else None
elif len(sys.argv) > 2:
    busy = socket.create_server(("0.0.0.0", int(sys.argv[2])))
try:
    sys.exit(serve(Path(sys.argv[1])))
except PlayheadError as error:
    sys.exit(f"{error}; {error.hint}")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: addresses of sockets are."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _inside(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", INSIDE, str(folder), *words], stderr=subprocess.PIPE, text=True
    )


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=20)
    if "PermissionError" in said:
        pytest.skip("user namespaces are off here")
    return process.returncode, said


async def _open(link: Link) -> dict[str, Any]:
    """Take what there is, count, hang up."""
    link.listen()
    try:
        open_listeners = await asyncio.wait_for(link.open(), 20)
        told = {
            "proxy": [sock.getsockname()[:2] for sock in open_listeners.proxy],
            "captured": sorted(sock.getsockname()[1] for sock in open_listeners.captured),
            "dns": [sock.getsockname()[1] for sock in open_listeners.dns],
            "service": [sock.getsockname()[:2] for sock in open_listeners.service],
            "counters": await link.count(),
        }
        open_listeners.close()
        return told
    finally:
        link.close()


def test_what_listens_in_a_container_is_handed_over(folder: Path) -> None:
    """The proxy has it all, and the container ends when the proxy hangs up."""
    process = _inside(folder)
    try:
        told = asyncio.run(_open(Link(folder, [Service("127.0.0.1", 5432)])))
    except (EngineError, TimeoutError):
        told = {}
    assert _ended(process) == (0, "")
    assert told["proxy"] == [("127.0.0.1", 1023)]
    assert set(told["captured"]) == {80, 443}
    assert set(told["dns"]) == {53}
    assert told["service"] == [("127.0.0.1", 5432)]
    assert told["counters"]["packets_out"] == 0
    assert not list(folder.iterdir())


def test_a_busy_port_is_named_on_both_sides(folder: Path) -> None:
    """Something else listens in the network already."""
    process = _inside(folder, "443")
    with pytest.raises(EngineError, match=r"0\.0\.0\.0:443 .*") as told:
        asyncio.run(_open(Link(folder, [])))
    code, said = _ended(process)
    assert code == 1
    assert "0.0.0.0:443" in said
    assert "nothing else in it that listens" in str(told.value.hint)
    assert "nothing else in it" in said


def test_a_network_with_another_device_is_refused(folder: Path) -> None:
    """It would lead past the proxy: a socket can be bound to a device."""
    process = _inside(folder, "device")
    with pytest.raises((EngineError, TimeoutError)) as told:
        asyncio.run(_open(Link(folder, [])))
    code, said = _ended(process)
    assert code == 1
    assert "it has other devices than loopback: out0" in said
    assert "it has other devices than loopback: out0" in str(told.value)


def test_another_version_is_told(folder: Path) -> None:
    """Of the image; not what a message of it would look like."""
    link = Link(folder, [])

    async def meet() -> None:
        link.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect(str(folder / "inlets"))
            stranger.send(json.dumps({"version": 999}).encode())
            await link.open()

    with pytest.raises(EngineError, match="another version of Playhead"):
        asyncio.run(meet())
    link.close()


def test_a_socket_that_was_left_behind_is_no_hindrance(folder: Path) -> None:
    """Its proxy was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(folder / "inlets"))
    link = Link(folder, [])
    link.listen()
    link.close()
    assert not os.path.exists(folder / "inlets")


def test_one_proxy_waits_in_a_folder(folder: Path) -> None:
    """A second one would take the first one's network, which may have another way out."""
    first, second = Link(folder, []), Link(folder, [])
    first.listen()
    with pytest.raises(EngineError, match="another proxy waits"):
        second.listen()
    second.close()
    assert os.path.exists(folder / "inlets")
    first.close()
    second.listen()
    second.close()
