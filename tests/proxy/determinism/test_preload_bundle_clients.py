"""Clients that no variable reaches, with the preload: they come to the proxy, and trust it."""

import contextlib
import socket
import ssl
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from playhead.proxy.trust.ca import CertificateAuthority, certificate_store, open_ca
from playhead.proxy.trust.environment import environment
from playhead.tests.support.needs import need
from playhead.tests.support.preload_bundles import Ran, new_kit, run

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@dataclass
class Proxy:
    """A proxy that is the end of every tunnel: it answers itself, with a certificate for each."""

    ca: CertificateAuthority
    chain: Path
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """What a tunnel was asked for with which credentials, and the first line that came through it. Plain requests
    to the proxy, as newer versions of Node send them, are told as if they had come through one."""

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(self.chain)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock, contextlib.suppress(OSError):  # a client may refuse the certificate
                sock.settimeout(10)
                self._serve(sock)

    def _serve(self, sock: socket.socket) -> None:
        head = _head(sock).split("\r\n")
        credentials = [line.split()[-1] for line in head if line.lower().startswith("proxy-auth")]
        if not head[0].startswith("CONNECT"):
            target = head[0].split()[1].removeprefix("http://").partition("/")
            line = head[0].replace(f"http://{target[0]}", "")
            self.asked.append((f"CONNECT {target[0]} HTTP/1.1", "".join(credentials), line))
            sock.sendall(_ANSWER)
            return
        sock.sendall(b"HTTP/1.1 200 Connected\r\nX-Said: 1\r\n\r\n")
        first = sock.recv(1, socket.MSG_PEEK)
        if first == b"\x16":
            sock = self._tls.wrap_socket(sock, server_side=True)
        asked = _head(sock).split("\r\n")
        self.asked.append((head[0], "".join(credentials), asked[0]))
        sock.sendall(_ANSWER)
        sock.close()

    def ask(self, program: str, *arguments: str) -> Ran:
        """Run a client with the preload, and with the variables that it has."""
        url = f"http://run:a%20token@127.0.0.1:{self.port}"
        given = environment({}, proxy_url=url, public_dir=self.ca.bundle_file.parent)
        preload_bundle = new_kit()
        ran = run(preload_bundle, program, *arguments, **given)
        assert ran.told["problems"] == []
        return ran


def _head(sock: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            return "(nothing)"
        data += byte
    return data.decode()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    ca = open_ca(tmp_path, tmp_path / "ca", environ={})
    leaf = certificate_store(ca).get_cert("api.test", [x509.DNSName("api.test")])
    key = leaf.privatekey.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "leaf.pem").write_bytes(key + leaf.cert.to_pem())
    made = Proxy(ca, tmp_path / "leaf.pem")
    yield made
    made.close()


THROUGH = "cnVuOmEgdG9rZW4="
"""`run:a token`."""


@pytest.mark.parametrize(
    ("program", "target", "line"),
    [
        (
            "c = HTTPSConnection('api.test'); c.request('GET', '/a'); assert c.host == 'api.test'",
            "api.test:443",
            "GET /a HTTP/1.1",
        ),
        (
            "c = HTTPConnection('api.test', 8000); c.request('GET', '/b')",
            "api.test:8000",
            "GET /b HTTP/1.1",
        ),
        (
            "c = HTTPConnection('127.0.0.1', 8000); c.request('GET', '/local')",
            "127.0.0.1:8000",
            "GET /local HTTP/1.1",
        ),
        # Who knows of the proxy is left alone.
        (
            "c = HTTPSConnection(*PROXY); c.set_tunnel('api.test', 443); c.request('GET', '/c')",
            "api.test:443",
            "GET /c HTTP/1.1",
        ),
    ],
)
def test_http_client_comes_to_the_proxy(proxy: Proxy, program: str, target: str, line: str) -> None:
    """By a tunnel, with the credentials of the run; names are the proxy's to look up."""
    first = f"from http.client import *; PROXY = ('127.0.0.1', {proxy.port})\n"
    ran = proxy.ask(sys.executable, "-c", f"{first}{program}\nprint(c.getresponse().read())")
    assert ran.out == "b'{}'\n", ran.err
    ((asked, credentials, said),) = proxy.asked
    assert (asked, said) == (f"CONNECT {target} HTTP/1.1", line)
    assert credentials == ("" if "set_tunnel" in program else THROUGH)


def test_urllib_asks_as_it_did(proxy: Proxy) -> None:
    """It knows the proxy by itself, and stands on `http.client`."""
    program = "import urllib.request as u; print(u.urlopen('https://api.test/u').status)"
    ran = proxy.ask(sys.executable, "-c", program)
    assert ran.out == "200\n", ran.err
    assert proxy.asked == [("CONNECT api.test:443 HTTP/1.1", THROUGH, "GET /u HTTP/1.1")]


def test_a_proxy_that_does_not_answer_is_told(proxy: Proxy) -> None:
    """As any connection that failed."""
    program = textwrap.dedent(
        """
        import http.client, os, socket
        listener = socket.create_server(("127.0.0.1", 0))
        import playhead_preload.http_client_tunnel as tunnel
        sock = socket.create_connection(listener.getsockname())
        listener.accept()[0].close()
        try:
            tunnel._ask(sock, ("api.test", 443), "")
        except OSError as error:
            print(error)
        """
    )
    assert "hung up on CONNECT api.test:443" in proxy.ask(sys.executable, "-c", program).out


@pytest.mark.parametrize(
    "program",
    [
        "import stripe; print(stripe.ca_bundle_path == os.environ['SSL_CERT_FILE'])",
        "import certifi; print(certifi.where() == os.environ['SSL_CERT_FILE'])",
        "from certifi import contents; print('BEGIN CERTIFICATE' in contents())",
    ],
)
def test_clients_with_roots_of_their_own_take_ours(proxy: Proxy, program: str) -> None:
    """Those that the bundle holds, which are theirs and more."""
    assert proxy.ask(sys.executable, "-c", f"import os; {program}").out == "True\n"


def test_deadlines_of_grpc_are_told_in_real_time(proxy: Proxy) -> None:
    """By the clock of a tape they would be over before they began."""
    program = textwrap.dedent(
        """
        import sys, time
        time.time = lambda: 5.0  # as a tape's clock would be
        import grpc, grpc._channel as channel, grpc._common as common
        import grpc.aio._utils as utils
        print(channel._deadline(1) > 1e9, utils._timeout_to_deadline(1) > 1e9, time.time())
        """
    )
    assert proxy.ask(sys.executable, "-c", program).out == "True True 5.0\n"


# ---- Node --------------------------------------------------------------------------------------------

NODE = """
const http = require('http'), https = require('https');
const told = (answer) => { answer.on('data', (data) => console.log(String(data))); };
const failed = (error) => { console.log(error.message); };
"""


@pytest.mark.parametrize(
    ("program", "target", "line"),
    [
        ("https.get('https://api.test/a', told)", "api.test:443", "GET /a HTTP/1.1"),
        ("http.get('http://api.test:8000/b', told)", "api.test:8000", "GET /b HTTP/1.1"),
        (
            "https.get('https://api.test/c', { agent: new https.Agent({ keepAlive: true }) }, told)",
            "api.test:443",
            "GET /c HTTP/1.1",
        ),
        (
            "https.get('https://api.test/d', { agent: false }, told)",
            "api.test:443",
            "GET /d HTTP/1.1",
        ),
        (
            "fetch('https://api.test/e').then((answer) => answer.text()).then(console.log)",
            "api.test:443",
            "GET /e HTTP/1.1",
        ),
    ],
)
def test_clients_of_node_come_to_the_proxy(
    proxy: Proxy, program: str, target: str, line: str
) -> None:
    """Where they follow variables by themselves, and where they do not: before version 24."""
    node = need("node")
    ran = proxy.ask(node, "-e", f"{NODE}{program}")
    assert ran.out == "{}\n", ran.err
    ((asked, credentials, said),) = proxy.asked
    assert (asked, said, credentials) == (f"CONNECT {target} HTTP/1.1", line, THROUGH)


@pytest.mark.parametrize(
    "touched",
    [
        "new Headers({ a: 'b' })",
        "new Request('https://api.test/other')",
        "new FormData()",
        "new Response('').text()",
        "class Mine extends Response {}",
        "Object.keys(globalThis).map((name) => globalThis[name])",
        # As npm's undici does when it is loaded.
        "const at = Symbol.for('undici.globalDispatcher.1');"
        " if (globalThis[at] === undefined) Object.defineProperty(globalThis, at, { value: { dispatch() { process.exit(3); } } })",
    ],
)
def test_fetch_of_node_comes_to_the_proxy_whatever_was_touched_before(
    proxy: Proxy, touched: str
) -> None:
    """What loads Node's own client before the first `fetch` does not make its dispatcher one of the program's."""
    node = need("node")
    ask = "fetch('https://api.test/e').then((answer) => answer.text()).then(console.log)"
    ran = proxy.ask(node, "-e", f"{touched}; {ask}")
    assert ran.out == "{}\n", ran.err
    assert [said for _, _, said in proxy.asked] == ["GET /e HTTP/1.1"]


def test_a_dispatcher_of_the_program_is_left_alone(proxy: Proxy) -> None:
    """Who sets one means it, before the first `fetch` and after."""
    node = need("node")
    program = """
    const set = () => { globalThis[Symbol.for('undici.globalDispatcher.1')] = { dispatch(options) { console.log(options.path); process.exit(); } }; };
    new Headers();
    set();
    fetch('https://api.test/own');
    """
    ran = proxy.ask(node, "-e", program)
    assert ran.out == "/own\n", ran.err
    assert proxy.asked == []


def test_certificates_are_checked_as_ever(proxy: Proxy) -> None:
    """Behind the tunnel, against the name that was asked for."""
    node = need("node")
    ran = proxy.ask(node, "-e", f"{NODE}https.get('https://other.test/', told).on('error', failed)")
    assert "altnames" in ran.out


def test_sockets_and_agents_of_its_own_are_left_alone(proxy: Proxy, tmp_path: Path) -> None:
    """A path is none of a proxy's business, and who makes its own connections means it."""
    node = need("node")
    program = f"""
    const net = require('net');
    const server = http.createServer((request, answer) => answer.end(request.url));
    server.listen({str(tmp_path / "s")!r}, () => {{
      http.get({{ socketPath: {str(tmp_path / "s")!r}, path: '/path' }}, told);
      const agent = new http.Agent();
      agent.createConnection = () => net.connect({str(tmp_path / "s")!r});
      http.get({{ host: 'api.test', agent, path: '/own' }}, (answer) => {{ told(answer); server.close(); }});
    }});
    """
    ran = proxy.ask(node, "-e", NODE + program)
    assert sorted(ran.out.split()) == ["/own", "/path"], ran.err
    assert proxy.asked == []


# ---- Bun ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", ", ['chat']", ", 'chat'", ", { headers: { a: 'b' } }"])
def test_websockets_of_bun_come_to_the_proxy(proxy: Proxy, words: str) -> None:
    """Whatever else they are given."""
    bun = need("bun")
    program = f"new WebSocket('wss://api.test/w'{words}).onclose = () => console.log('closed')"
    ran = proxy.ask(bun, "-e", program)
    assert ran.out == "closed\n", ran.err
    assert proxy.asked == [("CONNECT api.test:443 HTTP/1.1", THROUGH, "GET /w HTTP/1.1")]
