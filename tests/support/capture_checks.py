"""What a command may do to the world around it, one check each: run as it is and while it is recorded, it has to come out the same.

`python -m playhead.tests.support.capture_checks WORLD [NAME ...]` prints what each check gave, as JSON. WORLD is a `World` as JSON; without
names all checks are run but those of `FULL`. A check gives a text, or the text of its error. What it finds differs in no other way
between two runs: no time, no number of a process, no port that was drawn.
"""

import asyncio
import contextlib
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from .capture_servers import user_name
from .needs import has, need

HOST = "api.example.test"
PINNED = "pinned.example.test"
"""Who asks this one trusts the test's own root alone."""
_PATIENCE_S = 60


@dataclass(frozen=True)
class World:
    """Where everything is."""

    address: str
    """Of another machine, which `HOST` leads to."""
    own: str
    """Of this machine, no loopback."""
    special: int
    """A port of TLS that the settings name."""
    plain: int
    """A port of HTTP on loopback that nobody names."""
    echo: int
    """Says again what is said, on every address."""
    greeter: int
    """Speaks first."""
    knocker: int
    """Connects to the port that it is told, and says what it was told there."""
    udp: int
    """Says again what is sent to it, on every address."""
    closed: int
    """Nobody listens there."""
    path: str
    """A Unix socket that says again what is said."""
    abstract: str
    """The same, without a path."""
    root: str
    """PEM of the root of `PINNED`."""
    static: str
    """A program that is linked statically, and asks for what it is given; empty where there is none."""
    folder: str
    """To write to; a set-uid program stands in it."""
    database: int = 0
    """A server of PostgreSQL on loopback, whose Unix socket is in `database` of the folder; 0 where there is none."""
    ssh: int = 0
    """A server of SSH on loopback, whose key is in `ssh` of the folder; 0 where there is none."""


Check = Callable[[World], str]
CHECKS: dict[str, Check] = {}
FULL: dict[str, Check] = {}
"""Those that take longer, or need much."""
ASKS: dict[str, int] = {}
"""Requests of HTTP that each check makes, and that have to be on the tape."""


def _check(name: str, asks: int = 0, full: bool = False) -> Callable[[Check], Check]:
    def take(check: Check) -> Check:
        (FULL if full else CHECKS)[name] = check
        ASKS[name] = asks
        return check

    return take


def _run(*command: str, **more: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
        env={**os.environ, **more},
    )
    return f"{done.returncode} {done.stdout.strip()} {done.stderr.strip()[-200:]}".strip()


def _unled() -> dict[str, str]:
    """Give the variables that lead to no proxy."""
    return {
        name: ""
        for name in os.environ
        if name.lower().endswith("_proxy") or name == "NODE_USE_ENV_PROXY"
    }


def _say(where: socket.socket, text: bytes = b"hello") -> str:
    with where:
        where.settimeout(10)
        where.sendall(text)
        where.shutdown(socket.SHUT_WR)
        return where.makefile("rb").read().decode()


def _ask(sock: socket.socket, path: str, host: str = HOST) -> str:
    with sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return sock.makefile("rb").read().partition(b"\r\n\r\n")[2].decode()


def _over_tls(sock: socket.socket, host: str = HOST, root: str | None = None) -> ssl.SSLSocket:
    return ssl.create_default_context(cafile=root).wrap_socket(sock, server_hostname=host)


# ---- HTTP ----------------------------------------------------------------------------------------------


def _curl(*words: str) -> str:
    return _run("curl", "-sS", "--noproxy", "*", *words) if has("curl") else ""


@_check("curl over TLS", has("curl"))
def _(world: World) -> str:
    return _curl(f"https://{HOST}/curl")


@_check("curl, plain", has("curl"))
def _(world: World) -> str:
    return _curl(f"http://{HOST}/curl-plain")


@_check("curl at a port of the settings", has("curl"))
def _(world: World) -> str:
    return _curl(f"https://{HOST}:{world.special}/curl-special")


@_check("curl to an address", has("curl"))
def _(world: World) -> str:
    return _curl(
        "--resolve", f"other.example.test:80:{world.address}", "http://other.example.test/resolved"
    )


@_check("Node's fetch", has("node"))
def _(world: World) -> str:
    code = f"fetch('https://{HOST}/node').then(a => a.text()).then(console.log)"
    return _run("node", "-e", code, **_unled()) if has("node") else ""


@_check("aiohttp's own session", 3)
def _(world: World) -> str:
    import aiohttp

    async def ask() -> str:
        async with aiohttp.ClientSession() as session:
            told = [session.get(f"https://{HOST}/aiohttp/{number}") for number in range(3)]
            answers = await asyncio.gather(*told)
            return " ".join([await answer.text() for answer in answers])

    return asyncio.run(ask())


@_check("a static program", 1)
def _(world: World) -> str:
    if not world.static:
        return _ask(socket.create_connection((world.address, 80)), "/static")
    return _run(world.static, world.address, "80", "/static")


@_check("a raw TLS socket", 1)
def _(world: World) -> str:
    return _ask(_over_tls(socket.create_connection((HOST, 443))), "/raw")


@_check("a raw TLS socket without a blocking call", 1)
def _(world: World) -> str:
    async def ask() -> str:
        reader, writer = await asyncio.open_connection(HOST, 443, ssl=True)
        writer.write(
            f"GET /raw-async HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        return answer.partition(b"\r\n\r\n")[2].decode()

    return asyncio.run(ask())


@_check("HTTP on loopback, by the variables", 1)
def _(world: World) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{world.plain}/loopback") as answer:
        return str(answer.read().decode())


@_check("from a thread that is no leader", 1)
def _(world: World) -> str:
    told: list[str] = []
    thread = threading.Thread(
        target=lambda: told.append(_ask(socket.create_connection((world.address, 80)), "/thread"))
    )
    thread.start()
    thread.join()
    return told[0]


@_check("over IPv6", 1)
def _(world: World) -> str:
    if not has("IPv6"):
        return _ask(socket.create_connection((world.address, 80)), "/v6")
    return _ask(socket.create_connection(("2001:db8::9", 80)), "/v6")


@_check("over IPv6 alone", 1)
def _(world: World) -> str:
    if not has("IPv6"):
        return _ask(socket.create_connection((world.address, 80)), "/v6only")
    sock = socket.socket(socket.AF_INET6)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.connect(("2001:db8::9", 80))
    return _ask(sock, "/v6only")


@_check("IPv4 from a socket of IPv6", 1)
def _(world: World) -> str:
    if not has("IPv6"):
        return _ask(socket.create_connection((world.address, 80)), "/mapped")
    sock = socket.socket(socket.AF_INET6)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.connect((f"::ffff:{world.address}", 80))
    return _ask(sock, "/mapped")


@_check("from an address and a port of its own", 1)
def _(world: World) -> str:
    sock = socket.socket()
    sock.bind((world.own, 0))
    port = sock.getsockname()[1]
    sock.connect((world.address, 80))
    return f"{sock.getsockname() == (world.own, port)} {_ask(sock, '/bound')}"


@_check("to a device alone", 0)
def _(world: World) -> str:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    return _say(_connected(sock, (world.own, world.echo)))


UNREADABLE = "from a process that nobody may look into"
"""Root may."""


@_check(UNREADABLE, 1)
def _(world: World) -> str:
    code = (
        "import ctypes, socket; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0);"
        f"sock = socket.create_connection(({world.address!r}, 80));"
        r"sock.sendall(b'GET /dumpable HTTP/1.1\r\nHost: api.example.test\r\nConnection: close\r\n\r\n');"
        r"print(sock.makefile('rb').read().partition(b'\r\n\r\n')[2].decode())"
    )
    return _run(sys.executable, "-S", "-c", code)


@_check("who pins the certificate, from its second try on", 0)
def _(world: World) -> str:
    """The first try fails while recorded, which is the only difference; so it is made twice, and the last one counts."""
    told = ""
    for _ in range(3):
        with contextlib.suppress(OSError):
            sock = _over_tls(socket.create_connection((PINNED, 443)), PINNED, world.root)
            told = _ask(sock, "/pinned", PINNED)
    return told


# ---- what is no HTTP ------------------------------------------------------------------------------------


def _connected(sock: socket.socket, place: tuple[str, int]) -> socket.socket:
    sock.connect(place)
    return sock


@_check("TCP on loopback")
def _(world: World) -> str:
    return _say(socket.create_connection(("127.0.0.1", world.echo)))


@_check("TCP at an address of this machine")
def _(world: World) -> str:
    return _say(socket.create_connection((world.own, world.echo)))


@_check("TCP where the server speaks first")
def _(world: World) -> str:
    with socket.create_connection((world.own, world.greeter)) as sock:
        return sock.makefile("rb").readline().decode()


@_check("at port 443 the server speaks first")
def _(world: World) -> str:
    with socket.create_connection(("203.0.113.22", 443)) as sock:
        greeting = sock.makefile("rb").readline().decode()
        sock.sendall(b"SSH-2.0-client\r\n")
        return greeting + sock.makefile("rb").readline().decode()


@_check("at port 443 the client speaks, but no TLS")
def _(world: World) -> str:
    return _say(socket.create_connection(("203.0.113.23", 443)), b"\x00\x01\x02 binary")


@_check("a closed port")
def _(world: World) -> str:
    return str(socket.socket().connect_ex((world.own, world.closed)))


@_check("a closed port 443")
def _(world: World) -> str:
    return str(socket.socket().connect_ex(("203.0.113.24", 443)))


@_check("a closed port 443, and it does not wait")
def _(world: World) -> str:
    async def ask() -> None:
        await asyncio.open_connection("203.0.113.24", 443)

    try:
        asyncio.run(ask())
    except OSError as error:
        return type(error).__name__
    return "connected"


@_check("a closed port, and then another with the same socket", 1)
def _(world: World) -> str:
    sock = socket.socket()
    first = sock.connect_ex(("203.0.113.24", 80))
    sock.connect((world.address, 80))
    return f"{first} {_ask(sock, '/again')}"


def _knocked(world: World, host: str) -> str:
    with (
        socket.create_server((host, 0)) as listening,
        socket.create_connection(("127.0.0.1", world.knocker)) as knocker,
    ):
        knocker.sendall(f"{listening.getsockname()[1]}\n".encode())
        peer, _ = listening.accept()
        with peer:
            peer.sendall(b"who is there\n")
        return knocker.makefile("rb").readline().decode()


@_check("who listens on loopback is reached")
def _(world: World) -> str:
    return _knocked(world, "127.0.0.1")


@_check("who listens everywhere is reached")
def _(world: World) -> str:
    return _knocked(world, "0.0.0.0")


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "3")
        self.end_headers()
        self.wfile.write(b"own")

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _own_server(port: int) -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", port), _Hello)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@_check("a server of its own")
def _(world: World) -> str:
    with _own_server(0) as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        return str(answer.read().decode())


@_check("a server of its own at port 443")
def _(world: World) -> str:
    with _own_server(443):
        return _ask(socket.create_connection(("127.0.0.1", 443)), "/")


def _udp(host: str, port: int) -> str:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.connect((host, port))
        sock.send(b"datagram")
        return sock.recv(100).decode()


@_check("UDP on loopback")
def _(world: World) -> str:
    return _udp("127.0.0.1", world.udp)


@_check("UDP at an address of this machine")
def _(world: World) -> str:
    return _udp(world.own, world.udp)


@_check("UDP to another machine")
def _(world: World) -> str:
    return _udp(world.address, world.udp)


@_check("a look for a route, at port 443")
def _(world: World) -> str:
    """As getaddrinfo takes it to sort addresses."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        return str(sock.connect_ex((world.address, 443)))


@_check("DNS")
def _(world: World) -> str:
    return socket.gethostbyname("asked.example.test")


@_check("a Unix socket with a path")
def _(world: World) -> str:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(world.path)
    return _say(sock)


@_check("an abstract Unix socket")
def _(world: World) -> str:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(f"\0{world.abstract}")
    return _say(sock)


@_check("ssh-agent")
def _(world: World) -> str:
    return _run("ssh-add", "-l") if has("ssh-agent") else ""


@_check("a set-uid program")
def _(world: World) -> str:
    return _run(f"{world.folder}/set-uid") if os.geteuid() == 0 else ""


def _ping(address: str) -> str:
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except PermissionError as error:
        return str(error)
    with sock:
        sock.settimeout(10)
        sock.connect((address, 0))
        sock.send(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"ping")
        return sock.recv(100)[8:].decode()


@_check("ping, on loopback")
def _(world: World) -> str:
    return _ping("127.0.0.1")


@_check("ping, another machine")
def _(world: World) -> str:
    return _ping(world.address)


@_check("a namespace of users")
def _(world: World) -> str:
    return _run("unshare", "-Ur", "id", "-u") if has("unshare") else ""


@_check("a network of its own")
def _(world: World) -> str:
    code = "import socket; print(socket.socket().connect_ex(('127.0.0.1', 443)), socket.socket().connect_ex(('203.0.113.9', 443)))"
    return _run("unshare", "-Urn", sys.executable, "-S", "-c", code) if has("unshare") else ""


@_check("bubblewrap")
def _(world: World) -> str:
    words = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "echo", "inside")
    return _run(*words) if has("bubblewrap") else ""


@_check("bubblewrap, and curl in it", int(has("bubblewrap") and has("curl")))
def _(world: World) -> str:
    if not (has("bubblewrap") and has("curl")):
        return ""
    words = ("bwrap", "--unshare-all", "--share-net", "--ro-bind", "/", "/", "--proc", "/proc")
    return _run(*words, "curl", "-sS", "--noproxy", "*", f"https://{HOST}/bwrap")


@_check("who it is")
def _(world: World) -> str:
    return f"{os.getuid()} {os.geteuid()} {os.getgroups()} {os.umask(0o22)}"


@_check("processes of the machine")
def _(world: World) -> str:
    with open("/proc/1/comm") as file:
        return file.read()


@_check("addresses of the machine")
def _(world: World) -> str:
    return str(socket.if_nameindex())


@_check("who traces", 0)
def _(world: World) -> str:
    if not has("strace"):
        return ""
    code = f"import socket; print(socket.socket().connect_ex(({world.own!r}, {world.echo})))"
    return _run("strace", "-f", "-qq", "-o", "/dev/null", sys.executable, "-S", "-c", code)


# ---- what takes longer ----------------------------------------------------------------------------------


@_check("gdb", full=True)
def _(world: World) -> str:
    if not has("gdb"):
        return ""
    return _run("gdb", "-q", "-batch", "-ex", "run", "-ex", "quit", "/bin/true")[:1]


@_check("sudo", full=True)
def _(world: World) -> str:
    return _run("sudo", "-n", "id", "-u") if has("sudo") else ""


@_check("a program of Go", 1, full=True)
def _(world: World) -> str:
    if not has("go"):
        return _ask(socket.create_connection((world.address, 80)), "/go")
    with tempfile.TemporaryDirectory() as made:
        source = Path(made, "main.go")
        source.write_text(_GO)
        more = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOCACHE": f"{made}/cache", "HOME": made}
        built = _run("go", "build", "-o", f"{made}/main", str(source), **more)
        return built + _run(f"{made}/main", f"http://{HOST}/go", **_unled())


_GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
}
"""


@_check("Chromium", 1, full=True)
def _(world: World) -> str:
    if not has("Chromium"):
        return _ask(socket.create_connection((world.address, 80)), "/chromium")
    words = ["--headless", "--disable-gpu", "--dump-dom", "--no-first-run"]
    words += ["--disable-background-networking", f"--user-data-dir={tempfile.mkdtemp()}"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    words += ["--no-proxy-server", "--disable-component-update", "--disable-dev-shm-usage"]
    told = _run("chromium", *words, f"http://{HOST}/chromium")
    return told.partition("</html>")[0]


@_check("docker's client", full=True)
def _(world: World) -> str:
    return _run("docker", "version", "--format", "{{.Client.Os}}")[:20] if has("docker") else ""


@_check("docker's daemon", full=True)
def _(world: World) -> str:
    return (
        _run("docker", "run", "--rm", "busybox", "echo", "in it") if has("a docker daemon") else ""
    )


@_check("PostgreSQL, nobody listens", full=True)
def _(world: World) -> str:
    return _query("127.0.0.1", world.closed) if has("psql") else ""


@_check("PostgreSQL, by TCP", full=True)
def _(world: World) -> str:
    return _query("127.0.0.1", world.database) if world.database else ""


@_check("PostgreSQL, by its Unix socket", full=True)
def _(world: World) -> str:
    return _query(f"{world.folder}/database", world.database) if world.database else ""


def _query(host: str, port: int) -> str:
    words = ("psql", "-h", host, "-p", str(port), "-U", "agent", "-Atc", "select 6 * 7", "postgres")
    return _run(*words, PGCONNECT_TIMEOUT="5")


@_check("a tool of UDP", full=True)
def _(world: World) -> str:
    return _run("dig", "+short", "+tries=1", "@127.0.0.53", HOST) if has("dig") else ""


@_check("Chromium by Playwright", 1, full=True)
def _(world: World) -> str:
    """A page over TLS, whose certificate it is told to ignore, passes untouched: see docs/capture.md."""
    if not has("playwright-core"):
        return _ask(socket.create_connection((world.address, 80)), "/playwright")
    pages = [f"{scheme}://{HOST}/playwright" for scheme in ("http", "https")]
    return _run("node", "-e", _PLAYWRIGHT, need("chromium"), *pages)


_PLAYWRIGHT = """
const {chromium} = require('playwright-core');
(async () => {
  const [executablePath, ...urls] = process.argv.slice(1);
  const args = ['--no-proxy-server', '--disable-background-networking', '--disable-dev-shm-usage'];
  const browser = await chromium.launch({executablePath, args, chromiumSandbox: process.getuid() !== 0});
  const page = await browser.newPage({ignoreHTTPSErrors: true});
  for (const url of urls) {
    await page.goto(url);
    console.log(await page.textContent('body'));
  }
  await browser.close();
})();
"""


@_check("an agent that is a web server", 1, full=True)
def _(world: World) -> str:
    """It answers others with what it has asked itself."""
    context = ssl.create_default_context()

    class Agent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
            )
            with opener.open(f"https://{HOST}{self.path}") as answer:
                body = answer.read()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Agent) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with socket.create_connection(server.server_address[:2]) as sock:  # type: ignore[arg-type]
            sock.sendall(b"GET /agent HTTP/1.0\r\n\r\n")
            return sock.makefile("rb").read().decode().partition("\r\n\r\n")[2]


@_check("pip", full=True)
def _(world: World) -> str:
    """Installs a wheel that stands in a folder."""
    if not has("pip"):
        return ""
    with tempfile.TemporaryDirectory() as made:
        wheel = f"{made}/one-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("one.py", "")
            file.writestr(
                "one-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1\n"
            )
            file.writestr(
                "one-1.dist-info/WHEEL",
                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            file.writestr("one-1.dist-info/RECORD", "")
        there = f"{made}/there"
        code = _run("pip", "install", "--no-index", "--quiet", "--target", there, wheel)[:1]
        return f"{code} {sorted(os.listdir(there))}"


@_check("npm", full=True)
def _(world: World) -> str:
    if not has("npm"):
        return ""
    with tempfile.TemporaryDirectory() as made:
        Path(made, "a").mkdir()
        Path(made, "a", "package.json").write_text('{"name": "a", "version": "1.0.0"}')
        words = ("npm", "install", "--prefix", made, "--no-audit", "--no-fund", "--silent")
        return _run(*words, f"{made}/a", HOME=made)


@_check("ssh, nobody listens", full=True)
def _(world: World) -> str:
    """To a port that is closed: that it gets there, and says so."""
    return _ssh(world, world.own, world.closed, "true") if has("ssh") else ""


@_check("ssh, with its agent", full=True)
def _(world: World) -> str:
    """The agent of here is reached from there."""
    if not (world.ssh and has("ssh-agent")):
        return ""
    _run("ssh-add", "-q", f"{world.folder}/ssh/user")
    told = _ssh(world, "127.0.0.1", world.ssh, "ssh-add -l")
    _run("ssh-add", "-q", "-d", f"{world.folder}/ssh/user")
    return told


def _ssh(world: World, host: str, port: int, command: str) -> str:
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
    words = [word for option in (*options, "LogLevel=ERROR") for word in ("-o", option)]
    return _run("ssh", "-A", *words, "-p", str(port), f"{user_name()}@{host}", command)


def main(arguments: list[str]) -> None:
    """Run the checks; print what each gave."""
    world = World(**json.loads(arguments[0]))
    wanted = {name: {**CHECKS, **FULL}[name] for name in arguments[1:]} or CHECKS
    told = {}
    for name, check in wanted.items():
        try:
            told[name] = check(world)
        except Exception as error:
            told[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(told))


def words(world: World, names: list[str]) -> list[str]:
    """Give the command line that runs these checks."""
    return [sys.executable, "-m", __name__, json.dumps(asdict(world)), *names]


if __name__ == "__main__":
    main(sys.argv[1:])
