"""Behind a company's proxy: what is sent to it, what is not, and what becomes of its refusals."""

import asyncio
import contextlib
import ssl
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from playhead.config import Config, LiveRule, Mode, parse_match
from playhead.config.sections.upstreams import UpstreamProxy, parse_proxy
from playhead.proxy.engine.upstream import dial_through_proxy
from playhead.proxy.operations.open_store import open_store
from playhead.tests.support.certificates import Certificates, make_certificates, make_leaf
from playhead.tests.support.company_proxy import ESCAPED, PASSWORD, USER, CompanyProxy
from playhead.tests.support.deck import Deck
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead
from playhead.tests.support.tinyproxy import Tinyproxy
from playhead.tests.support.upstream_proxy_cases import EXCHANGES, Exchange
from playhead.tests.support.wire import Answer, Wire, tunnel

_SIMPLE = "pa55word-of-corp"
"""A password that can stand in the configuration of tinyproxy."""
_GIVEN = {"none": "", "right": ESCAPED, "wrong": "corp-user:other", "missing": ""}


async def _hello(request: web.Request) -> web.Response:
    said = sorted(f"{name}: {value}" for name, value in request.headers.items())
    return web.Response(text="\n".join(said))


@pytest.fixture(name="certificates", scope="module")
def name_certificates(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Certificates:
    """Give a leaf for the name that the proxy alone can look up."""
    return make_leaf(certificates, tmp_path_factory.mktemp("named") / "leaf.pem", ("api.test",))


@pytest.fixture(params=["http", "https"])
def origin(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Origin]:
    """An origin, plain or over TLS."""
    own = certificates if request.param == "https" else None
    with Origin({"/hello": _hello, "/other": _hello}, own) as running:
        yield running


def behind(tmp_path: Path, certificates: Certificates, url: str) -> Config:
    """Give a configuration with one proxy for all."""
    proxy = parse_proxy(url)
    settings = UpstreamProxy(inherit=False, http=proxy, https=proxy)
    return Config(
        mode=Mode.RECORD,
        store=tmp_path / "store",
        upstream_ca=certificates.root,
        upstream_proxy=settings,
    )


def ask(deck: Deck, origin: Origin, run: str, path: str = "/hello", count: int = 1) -> list[Answer]:
    """Send requests to the origin by its name, over one connection, through the proxy."""
    place = f"api.test:{origin.port}"
    if origin.scheme == "https":
        opened = tunnel(deck.proxy, place, run, ca=deck.running.ca)
        target, fields = path, ""
    else:
        opened = Wire.open(*deck.proxy).sock
        given = b64encode(f"{run}:x".encode()).decode()
        target, fields = f"http://{place}{path}", f"Proxy-Authorization: Basic {given}\r\n"
    with Wire(opened) as wire:
        head = f"GET {target} HTTP/1.1\r\nHost: {place}\r\n{fields}\r\n".encode()
        return [wire.ask(head) for _ in range(count)]


@pytest.mark.parametrize("case", EXCHANGES, ids=["-".join(map(str, case)) for case in EXCHANGES])
def test_a_request_goes_by_the_proxy(
    case: Exchange, tmp_path: Path, certificates: Certificates
) -> None:
    """It is answered with the credentials that the proxy wants, and recorded; else there is a fault that names the proxy."""
    secured = case.credentials != "none"
    own = certificates if case.target == "https" else None
    with (
        Origin({"/hello": _hello}, own) as origin,
        CompanyProxy(case.proxy, certificates, secured=secured) as proxy,
        Deck(behind(tmp_path, certificates, proxy.url(_GIVEN[case.credentials]))) as deck,
    ):
        answers: list[Answer] = []
        with contextlib.suppress(OSError):
            answers = ask(deck, origin, "run")
        deck.end("run")
        receipt = deck.receipt("run")
        tape = deck.tape("run")
    if case.answered:
        assert [answer.status for answer in answers] == [200]
        assert proxy.asked == [f"api.test:{origin.port}"]
        assert b"proxy-authorization" not in answers[0].body.lower()
        assert len(tape) == 1
        assert not receipt.faults
    else:
        assert origin.requests == []
        assert not [one for one in answers if one.head and one.status in (200, 407)]
        assert "upstream proxy" in str(receipt.faults)
        assert f"127.0.0.1:{proxy.port}" in str(receipt.faults)
    for stored in stored_texts(tmp_path / "store"):
        assert PASSWORD not in stored
        assert b64encode(f"{USER}:{PASSWORD}".encode()).decode() not in stored


def test_a_plain_request_goes_to_the_proxy_in_absolute_form(
    tmp_path: Path, certificates: Certificates
) -> None:
    """With the client's own credentials replaced by those of the proxy, over one connection."""
    with (
        Origin({"/hello": _hello}) as origin,
        CompanyProxy("http", secured=True) as proxy,
        Deck(behind(tmp_path, certificates, proxy.url(ESCAPED))) as deck,
    ):
        assert [answer.status for answer in ask(deck, origin, "run", count=3)] == [200] * 3
        deck.end("run")
    assert proxy.connections == 1
    line, *fields = proxy.heads[0].split(b"\r\n")
    assert line == f"GET http://api.test:{origin.port}/hello HTTP/1.1".encode()
    said = [field for field in fields if field.lower().startswith(b"proxy-")]
    assert said == [b"Proxy-Authorization: Basic " + b64encode(f"{USER}:{PASSWORD}".encode())]


def test_credentials_that_the_proxy_repeats_are_replaced(tmp_path: Path) -> None:
    """In its page, its fields and its status line, as they are and in base64; the user alone stays."""
    basic = b64encode(f"{USER}:{PASSWORD}".encode())
    word, coded = PASSWORD.encode(), b64encode(PASSWORD.encode())
    page = b"%b may not, with %b, %b, %b" % (USER.encode(), word, basic, coded)
    head = b"HTTP/1.1 403 No %b\r\nX-Why: %b\r\nX-Key: a %b\r\n" % (word, word, basic)
    answer = head + b"Content-Length: %d\r\n\r\n%b" % (len(page), page)
    folder = tmp_path / "store"
    with CompanyProxy("http", mood=_saying(answer)) as proxy:  # type: ignore[arg-type]
        ask_once: list[str | Path] = ["--", need("curl"), "-sS", "http://api.test/hello"]
        given = {"http_proxy": proxy.url(ESCAPED)}
        done = playhead("record", "--run", "run", "--store", folder, *ask_once, env=given)
    assert done.stdout.encode() == page
    with open_store(Config(store=folder), readonly=True) as store:
        (kept,) = store.exchanges.all(store.runs.get("run"))
    assert kept.response is not None
    assert kept.response.body.startswith(USER.encode() + b" may not, with ")
    shown = f"{kept.response!r} {done.stderr}"
    assert [one for one in (word, basic, coded) if one.decode() in shown] == []


def test_tls_is_end_to_end(tmp_path: Path, certificates: Certificates) -> None:
    """The proxy sees CONNECT and no request."""
    with (
        Origin({"/hello": _hello}, certificates) as origin,
        CompanyProxy("http") as proxy,
        Deck(behind(tmp_path, certificates, proxy.url())) as deck,
    ):
        ask(deck, origin, "run", count=2)
        deck.end("run")
    [head] = proxy.heads
    place = f"api.test:{origin.port}".encode()
    assert head == b"CONNECT " + place + b" HTTP/1.1\r\nHost: " + place + b"\r\n\r\n"


def test_http2_is_agreed_on_through_the_tunnel(tmp_path: Path, certificates: Certificates) -> None:
    """What the upstream speaks is what the client is offered, as without a proxy."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.chain)
    context.set_alpn_protocols(["h2"])

    async def agree(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def main(deck: Deck) -> int:
        async with await asyncio.start_server(agree, "127.0.0.1", 0, ssl=context) as server:
            port: int = server.sockets[0].getsockname()[1]
            place, ca = f"api.test:{port}", deck.running.ca
            opened = await asyncio.to_thread(tunnel, deck.proxy, place, "run", ca=ca, alpn="h2")
            opened.close()
            return port

    with (
        CompanyProxy("http") as proxy,
        Deck(behind(tmp_path, certificates, proxy.url())) as deck,
    ):
        port = asyncio.run(main(deck))
    assert proxy.asked == [f"api.test:{port}"]


def test_what_is_no_http_for_long_goes_through_a_tunnel(
    tmp_path: Path, certificates: Certificates
) -> None:
    """A WebSocket without TLS: proxies do not pass on its upgrade."""

    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("from beyond")
        await socket.close()
        return socket

    with (
        Origin({"/talk": talk}) as origin,
        CompanyProxy("http") as proxy,
        Deck(behind(tmp_path, certificates, proxy.url())) as deck,
    ):
        place = f"api.test:{origin.port}"
        with Wire(tunnel(deck.proxy, place, "run")) as wire:
            answer = wire.ask(
                f"GET /talk HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
            )
            assert answer.status == 101
            wire.send(b"\x88\x80\0\0\0\0")  # a close frame: the origin waits for one
            assert b"from beyond" in wire.rest()[0]
        deck.end("run")
    assert [head.split(b" ")[0] for head in proxy.heads] == [b"CONNECT"]


def test_a_root_that_upstreams_may_have_is_good_for_the_proxy_too(tmp_path: Path) -> None:
    """As one that does not say what its key is for, which Python 3.13 refuses by itself."""
    own = make_certificates(tmp_path / "own", key_usage=False)
    named = make_leaf(own, tmp_path / "named.pem", ("api.test",))
    with (
        Origin({"/hello": _hello}, named) as origin,
        CompanyProxy("https", own) as proxy,
        Deck(behind(tmp_path, own, proxy.url())) as deck,
    ):
        answers = ask(deck, origin, "run")
    assert [answer.status for answer in answers] == [200]
    assert proxy.asked == [f"api.test:{origin.port}"]


@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
def test_in_playback_nothing_goes_to_the_proxy(
    kind: str, origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """Neither for a hit nor for a miss; a live rule goes by it, and nothing else."""
    with CompanyProxy(kind, certificates) as proxy:
        config = behind(tmp_path, certificates, proxy.url())
        live = LiveRule(parse_match(f"{origin.scheme}://api.test:{origin.port}/other"), "it is")
        with Deck(replace(config, live=(live,))) as deck:
            ask(deck, origin, "run")
            deck.end("run")
            before = proxy.connections
            deck.play()
            assert [answer.status for answer in ask(deck, origin, "run")] == [200]
            assert [answer.status for answer in ask(deck, origin, "run", "/missing")] == [424]
            assert proxy.connections == before
            assert [answer.status for answer in ask(deck, origin, "run", "/other")] == [200]
            assert proxy.connections == before + 1
    assert origin.requests == ["GET /hello", "GET /other"]


# ---- refusals ----------------------------------------------------------------------------------


def _saying(answer: bytes) -> object:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    return say


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        (_saying(b"HTTP/1.1 403 Blocked\r\nContent-Length: 0\r\n\r\n"), "403"),
        (_saying(b"HTTP/1.1 502 Bad gateway\r\n\r\n"), "502"),
        (_saying(b"HTTP/1.1 407 Who\r\n\r\n"), "wants credentials"),
        (_saying(b""), "hung up"),
        (_saying(b"HTTP/1.1 200"), "hung up"),
        (_saying(b"SSH-2.0 hello\r\n\r\n"), "no HTTP"),
        (_saying(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"), "without end"),
        (_silent, "timed out"),
    ],
    ids=["403", "502", "407", "nothing", "half", "nonsense", "endless", "silent"],
)
def test_a_refusal_is_a_fault_that_names_the_proxy(
    mood: object,
    says: str,
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not the upstream, which was never asked."""
    monkeypatch.setattr(dial_through_proxy, "_TIMEOUT_S", 0.2)
    with (
        Origin({"/hello": _hello}, certificates) as origin,
        CompanyProxy("http", mood=mood) as proxy,  # type: ignore[arg-type]
        Deck(behind(tmp_path, certificates, proxy.url())) as deck,
    ):
        with contextlib.suppress(OSError):
            ask(deck, origin, "run")
        deck.end("run")
        receipt = deck.receipt("run")
    assert says in str(receipt.faults)
    assert f"upstream proxy http://127.0.0.1:{proxy.port}" in str(receipt.faults)
    assert origin.requests == []


def test_nobody_listens_where_the_proxy_is(
    origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """The fault names the proxy."""
    with Deck(behind(tmp_path, certificates, "http://127.0.0.1:9")) as deck:
        with contextlib.suppress(OSError):
            ask(deck, origin, "run")
        deck.end("run")
        assert "upstream proxy http://127.0.0.1:9" in str(deck.receipt("run").faults)
    assert origin.requests == []


def test_a_proxy_that_is_not_trusted_is_told_from_an_upstream(
    origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """With the option that adds its root."""
    with CompanyProxy("https", certificates) as proxy:
        config = replace(behind(tmp_path, certificates, proxy.url()), upstream_ca=None)
        with Deck(config) as deck:
            with contextlib.suppress(OSError, ssl.SSLError):
                ask(deck, origin, "run")
            deck.end("run")
            assert "--upstream-ca" in str(deck.receipt("run").faults)
    assert origin.requests == []


# ---- the guard ---------------------------------------------------------------------------------


def test_playhead_is_no_proxy_of_its_own(
    origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """A proxy whose address is where Playhead listens is not asked."""
    with Deck(behind(tmp_path, certificates, "http://127.0.0.1:9")) as deck:
        host, port = deck.proxy
        looping = parse_proxy(f"http://{host}:{port}")
        deck.running.engine._dialler._routes = replace(
            deck.running.engine._dialler._routes, http=looping, https=looping
        )
        with contextlib.suppress(OSError):
            ask(deck, origin, "run")
        deck.end("run")
        assert deck.running.engine.denied
    assert origin.requests == []


def test_a_proxy_on_this_machine_leads_to_no_port_of_ours(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Whatever name it would look up."""
    with (
        CompanyProxy("http") as proxy,
        Deck(behind(tmp_path, certificates, proxy.url())) as deck,
        Origin({"/": _hello}) as origin,
    ):
        origin.port, elsewhere = deck.proxy[1], origin.port
        with contextlib.suppress(OSError):
            ask(deck, origin, "run")
        deck.end("run")
        origin.port = elsewhere
        assert deck.running.engine.denied
    assert proxy.connections == 0


# ---- the command line --------------------------------------------------------------------------

_CHILD = """
import os, ssl, sys, urllib.request
sys.stdout.write(urllib.request.urlopen(os.environ["TARGET"]).read().decode())
said = " ".join(value for name, value in os.environ.items() if name.lower().endswith("_proxy"))
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        said += open(f"/proc/{process}/cmdline").read()
    except OSError:
        continue
print("SEEN" if "pa" + "55" in said or os.environ["BESIDE"] in said else "unseen")
"""


def test_the_inherited_variables_are_taken_and_replaced(
    origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """A command that is recorded behind a company's proxy works, and is replayed without; nobody is shown the credentials."""
    with CompanyProxy("http", secured=True) as proxy:
        given = proxy.url(ESCAPED)
        env = {
            "HTTPS_PROXY": given,
            "http_proxy": given,
            "TARGET": f"{origin.scheme}://api.test:{origin.port}/hello",
            "BESIDE": f":{proxy.port}",
        }
        flags: list[str | Path] = [
            "--store",
            tmp_path / "store",
            "--upstream-ca",
            certificates.root,
        ]
        command: list[str | Path] = ["--", sys.executable, "-c", _CHILD]
        recorded = playhead("record", "--run", "run", *flags, *command, env=env)
        assert recorded.returncode == 0, recorded.stderr
        assert proxy.asked == [f"api.test:{origin.port}"]
        replayed = playhead("replay", "run", *flags, "--no-sandbox", *command, env=env)
        assert replayed.returncode == 0, replayed.stderr
    assert len(proxy.asked) == 1
    assert recorded.stdout == replayed.stdout
    assert recorded.stdout.endswith("unseen\n")
    for text in (recorded.stderr, replayed.stderr, *stored_texts(tmp_path / "store")):
        assert "pa55" not in text
        assert b64encode(f"{USER}:{PASSWORD}".encode()).decode() not in text


def test_a_variable_that_cannot_be_used_ends_the_command_before_it_starts(tmp_path: Path) -> None:
    """With its name, what would be right, and without its credentials."""
    done = playhead(
        *("record", "--store", tmp_path / "store", "--", "true"),
        env={"HTTPS_PROXY": "ftp://me:s3cret-word@p:1"},
    )
    assert done.returncode == 2
    assert "HTTPS_PROXY" in done.stderr
    assert "inherit: false" in done.stderr
    assert "s3cret-word" not in done.stderr


# ---- a real one --------------------------------------------------------------------------------


@pytest.mark.parametrize("password", [_SIMPLE, "an0ther"])
def test_tinyproxy_with_authentication(
    password: str, origin: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """Recorded through it, replayed without; with another password nothing reaches the upstream."""
    with Tinyproxy(tmp_path / "tinyproxy", USER, _SIMPLE) as real:
        (tmp_path / "credentials").write_text(f"{USER}:{password}")
        config = tmp_path / "playhead.yaml"
        config.write_text(
            f"upstream_ca: {certificates.root}\n"
            "upstream_proxy:\n"
            f"  hosts: {{127.0.0.1: http://127.0.0.1:{real.port}}}\n"
            "  credentials_file: credentials\n"
        )
        flags: list[str | Path] = ["--config", config, "--store", tmp_path / "store"]
        command: list[str | Path] = ["--", need("curl"), "-sS", f"{origin.url}/hello"]
        recorded = playhead("record", "--run", "run", *flags, *command)
        seen = real.log()
    assert "Connect" in seen
    assert (origin.requests == ["GET /hello"]) is (password != "an0ther")
    if password != "an0ther":
        assert recorded.returncode == 0, recorded.stderr
        replayed = playhead("replay", "run", *flags, "--no-sandbox", *command)
        assert replayed.returncode == 0, replayed.stderr
        assert replayed.stdout == recorded.stdout
    elif origin.scheme == "https":  # else it answers as an upstream might: 401
        assert f"upstream proxy http://127.0.0.1:{real.port}" in recorded.stderr
        assert "wants other credentials" in recorded.stderr
    assert password not in recorded.stderr


def stored_texts(folder: Path) -> Iterator[str]:
    """Yield what is in each file of a store."""
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.read_bytes().decode("latin-1")
