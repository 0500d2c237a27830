"""The checks of `capture_checks`, run as they are and recorded, on a machine of their own.

`python -m playhead.tests.support.capture_world root|user [NAME ...]` prints as JSON what each check gave both times, the receipt of the
recording, and what was asked of the servers. Every address leads to this machine, so that its servers can be at any.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from playhead.proxy.sandbox.network import netlink

from . import machine
from .capture_checks import HOST, PINNED, World, words
from .capture_servers import Servers, servers
from .certificates import Certificates, make_certificates
from .needs import has
from .process import COMMAND

_OTHER, _OWN = "203.0.113.9", "198.51.100.4"
_HOSTS = f"127.0.0.1 localhost\n{_OTHER} {HOST}\n203.0.113.21 {PINNED}\n203.0.113.26 silent.example.test\n"
_TRUST = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
_IPV6_FREEBIND = 78
_STATIC = """
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sockaddr_in place = {AF_INET, htons(atoi(words[2]))};
  char said[1000]; int at = socket(AF_INET, SOCK_STREAM, 0), length;
  inet_pton(AF_INET, words[1], &place.sin_addr);
  if (connect(at, (struct sockaddr *)&place, sizeof place)) { perror("connect"); return 1; }
  sprintf(said, "GET %s HTTP/1.1\\r\\nHost: api.example.test\\r\\nConnection: close\\r\\n\\r\\n", words[3]);
  write(at, said, strlen(said));
  while ((length = read(at, said, sizeof said - 1)) > 0) { said[length] = 0; char *end = strstr(said, "\\r\\n\\r\\n"); printf("%s", end ? end + 4 : said); }
  return 0;
}
"""

Serve = Callable[[socket.socket], None]
_asked: list[str] = []


def _answer(sock: socket.socket) -> None:
    """Answer requests until the client leaves: what was asked."""
    with sock.makefile("rb") as said:
        while line := said.readline().decode():
            host, close = "", False
            while field := said.readline().decode().strip().lower():
                host = field.removeprefix("host: ") if field.startswith("host:") else host
                close = close or field == "connection: close"
            path = line.split()[1]
            _asked.append(path)
            body = f"{host}{path}".encode()
            ending = "close" if close else "keep-alive"
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: text/html\r\nConnection: {ending}\r\n\r\n"
            sock.sendall(head.encode() + body)
            if close:
                return


def _echo(sock: socket.socket) -> None:
    while said := sock.recv(65536):
        sock.sendall(said)


def _greet(sock: socket.socket) -> None:
    sock.sendall(b"SSH-2.0-server\r\n")
    if said := sock.recv(1000):
        sock.sendall(said)


def _knock(sock: socket.socket) -> None:
    port = int(sock.makefile("rb").readline())
    with socket.create_connection(("127.0.0.1", port)) as there:
        sock.sendall(there.makefile("rb").readline())


def _listen(serve: Serve, listening: socket.socket, context: ssl.SSLContext | None = None) -> int:
    """Serve each connection on a thread of its own; give the port."""
    listening.listen(100)

    def handle(sock: socket.socket) -> None:
        try:
            with context.wrap_socket(sock, server_side=True) if context else sock as peer:
                serve(peer)
        except OSError:
            sock.close()

    def accept() -> None:
        while True:
            sock, _ = listening.accept()
            threading.Thread(target=handle, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    name = listening.getsockname()
    return int(name[1]) if isinstance(name, tuple) else 0


def _at(host: str, port: int = 0) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ":" in host:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    sock.bind((host, port))
    return sock


def _unix(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(name)
    return sock


def _udp(host: str, port: int, answer: Callable[[bytes], bytes]) -> int:
    sock = socket.socket(type=socket.SOCK_DGRAM)
    # Answers leave from the address that was asked.
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_PKTINFO, 1)
    sock.bind((host, port))

    def work() -> None:
        while True:
            said, rows, _, peer = sock.recvmsg(1000, 100)
            sock.sendmsg(
                [answer(said)], [(level, kind, _from(row)) for level, kind, row in rows], 0, peer
            )

    threading.Thread(target=work, daemon=True).start()
    return int(sock.getsockname()[1])


def _from(row: bytes) -> bytes:
    """Give the same with the address that was asked as the one to send from."""
    _, _, address = struct.unpack("=I4s4s", row)
    return struct.pack("=I4s4s", 0, address, b"\0" * 4)


def _resolve(question: bytes) -> bytes:
    """Answer any question for an address with one."""
    end = question.index(b"\0", 12) + 5
    kind = question[end - 4 : end - 2]
    answers = 1 if kind == b"\0\1" else 0
    head = question[:2] + b"\x81\x80\0\1" + struct.pack(">H", answers) + bytes(4)
    row = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(_OTHER)
    return head + question[12:end] + row * answers


def _context(files: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain)
    return context


def _programs(folder: Path) -> str:
    """Make the programs that checks run; give the static one's path."""
    if os.geteuid() == 0:
        there = folder / "set-uid"
        there.write_bytes(Path("/usr/bin/id").read_bytes())
        os.chown(there, 65534, 65534)
        there.chmod(0o4755)
    if not has("a C compiler that links statically"):
        return ""
    made = folder / "static"
    command = ["cc", "-static", "-w", "-x", "c", "-o", str(made), "-"]
    subprocess.run(command, input=_STATIC, text=True, check=True)
    return str(made)


def _open(folder: Path) -> tuple[World, Path]:
    """Make the world; give it, and the roots that its clients trust."""
    files = make_certificates(folder, (HOST,))
    pinned = make_certificates(folder / "pinned", (PINNED,))
    context = _context(files)
    everywhere = "0.0.0.0"
    _listen(_answer, _at(_OTHER, 443), context)
    _listen(_answer, _at("203.0.113.21", 443), _context(pinned))
    _listen(_answer, _at(_OTHER, 80))
    if has("IPv6"):
        _listen(_answer, _at("2001:db8::9", 80))
    _listen(_greet, _at("203.0.113.22", 443))
    _listen(_echo, _at("203.0.113.23", 443))
    _udp("127.0.0.53", 53, _resolve)
    closed = _at(everywhere)
    world = World(
        address=_OTHER,
        own=_OWN,
        special=_listen(_answer, _at(_OTHER), context),
        plain=_listen(_answer, _at("127.0.0.1")),
        echo=_listen(_echo, _at(everywhere)),
        greeter=_listen(_greet, _at(everywhere)),
        knocker=_listen(_knock, _at("127.0.0.1")),
        udp=_udp(everywhere, 0, lambda said: said),
        closed=closed.getsockname()[1],
        path=str(folder / "echo.sock"),
        abstract=f"capture-{os.getpid()}",
        root=str(pinned.root),
        static=_programs(folder),
        folder=str(folder),
    )
    closed.detach()
    _listen(_echo, _unix(world.path))
    _listen(_echo, _unix(f"\0{world.abstract}"))
    both = folder / "both.pem"
    both.write_bytes(files.root.read_bytes() + pinned.root.read_bytes())
    return world, both


def _agent(folder: Path) -> subprocess.Popen[bytes] | None:
    if not has("ssh-agent"):
        return None
    os.environ["SSH_AUTH_SOCK"] = f"{folder}/agent"
    return subprocess.Popen(
        ["ssh-agent", "-D", "-a", f"{folder}/agent"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _recorded(world: World, names: list[str], folder: Path) -> dict[str, Any]:
    settings = folder / "settings.yaml"
    settings.write_text(f"sandbox: {{record: notify, ports: [{world.special}]}}\n")
    flags = ["--json", "-c", str(settings), "--store", f"{folder}/store", "--run", "tape"]
    done = subprocess.run(
        [*COMMAND, "record", *flags, "--", *words(world, names)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, (done.returncode, done.stderr)
    alone = [*COMMAND, "record", "--json", "--store", f"{folder}/store", "--sandbox", "auto"]
    by_itself = subprocess.run(
        [*alone, "--", "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return {
        "code": done.returncode,
        "told": json.loads(done.stdout),
        "receipt": _read(done.stderr),
        "auto": _read(by_itself.stderr)["capture"],
    }


def _read(said: str) -> Any:
    """Read the receipt in what `playhead` has said."""
    return json.loads(said[said.index("{\n") :])


def _open_network() -> None:
    """Have every address lead here, and everybody ping."""
    for _ in netlink.make_all_local():
        pass
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")


def _is_needed(names: list[str]) -> bool:
    """Say whether a check asks servers that take long to begin."""
    return any(name.startswith(("PostgreSQL, by", "ssh, with")) for name in names)


def main(arguments: list[str]) -> None:
    """Run them both ways."""
    uid = 0 if arguments[0] == "root" else machine.SOMEBODY
    # A database and a server of SSH ask for the name of their user.
    users = Path("/etc/passwd").read_text()
    users += f"somebody:x:{machine.SOMEBODY}:{machine.SOMEBODY}::/tmp:/bin/sh\n"
    files = {
        "/etc/hosts": _HOSTS,
        "/etc/resolv.conf": "nameserver 127.0.0.53\n",
        "/etc/passwd": users,
    }
    machine.enter_or_exit(uid, files, _open_network)
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        folder = Path(made)
        folder.chmod(0o755)
        os.environ["HOME"] = made
        os.chdir(made)
        world, roots = _open(folder)
        more = stack.enter_context(servers(folder)) if _is_needed(arguments[1:]) else Servers()
        world = replace(world, database=more.database, ssh=more.ssh)
        os.environ |= dict.fromkeys(_TRUST, str(roots))
        agent = _agent(folder)
        try:
            done = subprocess.run(
                words(world, arguments[1:]),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            direct, _asked[:] = json.loads(done.stdout), ()
            recorded = _recorded(world, arguments[1:], folder)
        finally:
            if agent is not None:
                agent.send_signal(signal.SIGTERM)
                agent.wait()
        print(json.dumps({"direct": direct, **recorded, "asked": _asked}))


if __name__ == "__main__":
    main(sys.argv[1:])
