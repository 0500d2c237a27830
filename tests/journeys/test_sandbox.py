"""Agents in the sandbox: what they ask is captured, what they try is told, what they need is let in."""

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.proxy.command_line.json_key_meanings import RECEIPT
from playhead.store import Store
from playhead.tests.support.apart import told_by
from playhead.tests.support.captured import HOST, PLAIN
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture(scope="module")
def captured() -> dict[str, Any]:
    """What clients that know no proxy were told, while recording and in playback."""
    told: dict[str, Any] = told_by("captured", timeout_s=180)
    return told


CLIENTS = {
    "urllib": f"{HOST}/urllib",
    "urllib plain": f"{PLAIN}/urllib",
    "aiohttp": f"{HOST}/aiohttp",
    "raw TLS": f"{HOST}/raw",
    "an address, with TLS": f"{HOST}/raw",
    "an address, plain": f"{PLAIN}/raw",
    "curl": f"{HOST}/curl",
    "curl, bare": f"{HOST}/bare",
    "node": f"{HOST}/node",
}
PROGRAMS = {"curl": "curl", "curl, bare": "curl", "node": "node"}


@pytest.mark.parametrize("client", CLIENTS)
def test_who_knows_no_proxy_is_recorded_and_replayed(captured: dict[str, Any], client: str) -> None:
    """Without one proxy variable, and in playback without an upstream."""
    if client in PROGRAMS:
        need(PROGRAMS[client])
    assert captured["recorded"]["told"][client] == CLIENTS[client]
    assert captured["replayed"]["told"][client] == CLIENTS[client]


def test_such_a_replay_is_faithful_and_contained(captured: dict[str, Any]) -> None:
    """The receipt tells what was asked of DNS; nothing left."""
    count = len(captured["recorded"]["told"])
    assert captured["recorded"]["code"] == captured["replayed"]["code"] == 0
    assert captured["recorded"]["receipt"]["counts"]["recorded"] == count
    receipt = captured["replayed"]["receipt"]
    assert (receipt["faithful"], receipt["contained"]) == (True, True)
    assert receipt["counts"]["served"] == receipt["matched"]["exact"] == count
    sandbox = receipt["sandbox"]
    assert sandbox["counters"]["packets_out"] == 0
    assert sandbox["counters"]["packets_inside"] > 0
    assert {row["name"] for row in sandbox["names"]} == {HOST, PLAIN}
    assert receipt["egress"] == []


# ---- what is tried, and what is let in ---------------------------------------------------------------

ASK = """
import urllib.request
asked = urllib.request.Request(
    "https://api.test/v1/runs", b"", {"content-type": "application/json"}
)
urllib.request.urlopen(asked).read()
"""
AGENT = """
import socket, subprocess, sys
for port in map(int, sys.argv[1:]):
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            sock.sendall(b"hello " * 50000)
            sock.shutdown(socket.SHUT_WR)
            print(len(sock.makefile("rb").read()))
    except OSError as error:
        print(error.errno)
for family, address in ((socket.AF_INET, "192.0.2.7"), (socket.AF_INET6, "2001:db8::7")):
    for _ in range(2):
        socket.socket(family).connect_ex((address, 22))
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (address, 123))
subprocess.run([sys.executable, "-c", "import socket; socket.socket().connect_ex(('192.0.2.8', 22))"])
"""


@pytest.fixture
def service() -> Iterator[int]:
    """A service of this machine that says everything twice; gives its port."""

    def work() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with peer:
                said = peer.makefile("rb").read()
                peer.sendall(2 * said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.fixture
def free() -> int:
    """A port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def test_what_was_tried_is_told_and_what_is_let_in_is_live(
    tmp_path: Path, service: int, free: int
) -> None:
    """123: each destination once, with its count; the service by its reason."""
    store, file, written = tmp_path / "store", tmp_path / "live.yaml", tmp_path / "receipt.json"
    with Store.open(store) as opened:
        record_run(opened, "tape", [ask()])
    live = {"match": f"tcp://127.0.0.1:{service}", "reason": "the test database"}
    file.write_text(json.dumps({"live": [live], "store": str(store)}))
    code = ["--", sys.executable, "-S", "-c", ASK + AGENT, str(service), str(free)]
    done = playhead("replay", "tape", "-c", file, "--receipt", written, *code)
    receipt = json.loads(written.read_text())
    assert done.returncode == receipt["exit_code"] == 123, done.stderr
    assert done.stdout.split() == ["600000", "111"]
    rows = {(row["protocol"], row["target"]): row for row in receipt["egress"]}
    assert {target: row["count"] for target, row in rows.items()} == {
        ("tcp", "192.0.2.7:22"): 2,
        ("tcp", "[2001:db8::7]:22"): 2,
        ("udp", "192.0.2.7:123"): 1,
        ("udp", "[2001:db8::7]:123"): 1,
        ("tcp", "192.0.2.8:22"): 1,
    }
    assert {row["by"] for row in rows.values()} == {"kernel"}
    (used,) = receipt["sandbox"]["services"]
    assert (used["service"], used["reason"]) == (live["match"], live["reason"])
    assert (used["connections"], used["failed"]) == (1, 0)
    assert (used["bytes_sent"], used["bytes_received"]) == (300_000, 600_000)
    (refused,) = receipt["sandbox"]["refused"]
    assert set(_keys(receipt["sandbox"])) <= set(re.findall(r"\w+", repr(RECEIPT["sandbox"])))
    assert (refused["target"], refused["count"]) == (f"tcp://127.0.0.1:{free}", 1)
    assert receipt["level"].startswith("1")
    for said in (
        "192.0.2.7:22, 2 times: refused in the sandbox",
        f"tcp://127.0.0.1:{service}: the test database (1 connection)",
        f"tcp://127.0.0.1:{free} 1 time",
        "contained: 0 packets left the machine",
    ):
        assert said in done.stderr


SLY = """
import contextlib, os, signal, socket
def say(address, *said):
    with socket.create_connection(address, 5) as sock:
        for one in said:
            sock.sendall(one)
            sock.recv(1000)
os.kill(1, signal.SIGINT)
for port in range(2000, 3100):  # more than are listed
    socket.socket().connect_ex(("127.0.0.1", port))
socket.socket().connect_ex(("192.0.2.1", 22))
socket.socket().connect_ex(("git.example.test", 22))
with socket.create_server(("0.0.0.0", 2222)):  # every address leads to it
    socket.create_connection(("192.0.2.2", 2222))
socket.create_connection(("192.0.2.3", 443)).sendall(b"SSH-2.0-x")
say(("192.0.2.4", 443), b"SSH-2.0-x" + bytes((13, 10)))
end = bytes((13, 10))
say(("127.0.0.1", 1023), b"CONNECT 192.0.2.5:22 HTTP/1.1" + 2 * end, b"SSH-2.0-x" + end)
ours = socket.socket(type=socket.SOCK_DGRAM)
ours.sendto(b"secret", ("192.0.2.6", 53))
ours.connect(("192.0.2.7", 53))
assert ours.getsockname()[0] == "198.18.0.1", ours.getsockname()
with contextlib.suppress(OSError):
    socket.socket().connect(("198.18.0.1", 22))
# Where something was asked for, too: plain, and in TLS.
import ssl, time, urllib.error, urllib.request
with contextlib.suppress(urllib.error.HTTPError):
    urllib.request.urlopen(urllib.request.Request("http://192.0.2.9/"), timeout=5)
socket.create_connection(("192.0.2.9", 80))
socket.create_connection(("192.0.2.9", 80)).sendall(b"secret")
inside = ssl.create_default_context()
inside.check_hostname = False
with socket.create_connection(("192.0.2.10", 443)) as sock:
    inside.wrap_socket(sock, server_hostname="nothing.test").unwrap()
with inside.wrap_socket(socket.create_connection(("192.0.2.11", 443)), server_hostname="a.test") as sock:
    sock.sendall(b"secret")
# Clients that trust nobody, and one that says what is no request; past the proxy and in tunnels.
def tunnel(host):
    sock = socket.create_connection(("127.0.0.1", 1023))
    sock.sendall(b"CONNECT " + host.encode() + b":443 HTTP/1.1" + 2 * end)
    sock.recv(1000)
    return sock
pinned = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
for sock, name in (
    (socket.create_connection(("192.0.2.12", 443)), "pinned.test"),
    (tunnel("tunnel.test"), "tunnel.test"),
):
    with contextlib.suppress(ssl.SSLError):
        pinned.wrap_socket(sock, server_hostname=name)
with inside.wrap_socket(tunnel("said.test"), server_hostname="said.test") as sock:
    sock.sendall(b"GET /secret HT")
inside.wrap_socket(tunnel("ahead.test"), server_hostname="ahead.test").close()
socket.create_connection(("192.0.2.8", 80))
"""


def test_no_attempt_is_hidden(tmp_path: Path) -> None:
    """Behind many others, at a server of one's own, in what is no HTTP, in the last moment, by a signal."""
    written = tmp_path / "receipt.json"
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    flags = ("--store", tmp_path / "store", "--receipt", written)
    code = ASK + SLY
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", code)
    receipt = json.loads(written.read_text())
    assert done.returncode == receipt["exit_code"] == 123, done.stderr
    assert {(row["by"], row["target"]): row["reason"] for row in receipt["egress"]} == {
        ("kernel", "192.0.2.1:22"): "refused in the sandbox",
        ("kernel", "git.example.test:22"): "refused in the sandbox",
        ("kernel", "192.0.2.2:2222"): "refused in the sandbox",
        ("proxy", "192.0.2.3:443"): "connected to, and no request of HTTP came",
        ("proxy", "192.0.2.4:443"): "no request of HTTP, but SSH",
        ("proxy", "192.0.2.5:22"): "no request of HTTP, but SSH",
        ("proxy", "192.0.2.6:53"): "no question to DNS",
        ("proxy", "192.0.2.9:80"): "connected to, and no request of HTTP came",
        ("proxy", "192.0.2.11:443"): "connected to, and no request of HTTP came",
        ("proxy", "192.0.2.8:80"): "connected to, and no request of HTTP came",
        ("proxy", "192.0.2.12:443"): "TLS refused by the client (it greeted pinned.test)",
        ("proxy", "tunnel.test:443"): "TLS refused by the client",
        ("proxy", "said.test:443"): "connected to, and no request of HTTP came",
    }
    assert len(receipt["sandbox"]["refused"]) == 1000


def test_a_command_cannot_change_its_tape(tmp_path: Path) -> None:
    """The store is not there, but for the certificate."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    code = (
        f"import os; print(os.listdir({str(tmp_path / 'store')!r}))\n"
        f"try: open({str(tmp_path / 'store' / 'ca' / 'x')!r}, 'w')\n"
        "except OSError as error: print(error.errno)\n"
    )
    flags = ("--store", tmp_path / "store")
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", ASK + code)
    assert (done.returncode, done.stdout) == (0, "['ca']\n30\n"), done.stderr


def test_strict_lets_no_unix_socket_be(tmp_path: Path) -> None:
    """And the receipt says that it was strict."""
    with Store.open(tmp_path) as opened:
        record_run(opened, "tape", [ask()])
    code = (
        "import socket; socket.socketpair()\n"
        "try: socket.socket(socket.AF_UNIX)\n"
        "except OSError as error: print(error.errno)\n"
    )
    flags = ("--sandbox", "strict", "--store", tmp_path)
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", ASK + code)
    assert (done.returncode, done.stdout) == (0, "97\n"), done.stderr
    assert "contained, strict: 0 packets left the machine" in done.stderr
