"""The engine as a whole: it starts and stops, listens where it is told, and issues from our CA alone."""

import asyncio
import errno
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from mitmproxy import connection
from mitmproxy.test import tflow

from playhead.config import Config, Listen, Mode
from playhead.proxy.engine import egress_guard as guard
from playhead.proxy.engine.engine import _listen_error
from playhead.proxy.errors import EngineError
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _config(store: Path, certificates: Certificates | None = None) -> Config:
    root = certificates.root if certificates else None
    return Config(mode=Mode.RECORD, store=store, upstream_ca=root)


def _policy() -> object:
    return guard.GUARD.policy


def _get(host: str, port: int, url: str) -> bytes:
    """Ask for a URL, plainly, and read to the end."""
    with socket.create_connection((host, port), timeout=10) as opened:
        head = f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nConnection: close\r\n\r\n"
        opened.sendall(head.encode())
        received = b""
        while data := opened.recv(65536):
            received += data
        return received


# ---- starting and stopping -----------------------------------------------------------------------


async def test_an_engine_starts_again_where_one_has_stopped(store_dir: Path) -> None:
    """In one process, over one store; each leaves the loop and the guard as it found them."""
    loop = asyncio.get_running_loop()
    before = (loop.get_task_factory(), loop.get_exception_handler())
    with Origin({"/x": _ok}) as origin:
        for _ in range(2):
            async with running_engine(_config(store_dir)) as running:
                assert guard.GUARD.policy == running.engine.may_leave
                here = running.address
                answer = await asyncio.to_thread(_get, here.host, here.port, f"{origin.url}/x")
                assert answer.endswith(b"\r\n\r\nok")
            assert (loop.get_task_factory(), loop.get_exception_handler()) == before
            assert _policy() is None
            assert [run.exchanges for run in running.registry.ended] == [1]
            with pytest.raises(OSError, match=r"refused"):
                socket.create_connection((here.host, here.port), timeout=10).close()


async def test_stopping_twice_is_stopping_once(store_dir: Path) -> None:
    """Also by hand inside `async with`; what is stopped denies everything."""
    async with running_engine(_config(store_dir)) as running:
        await running.engine.stop()
        assert guard.GUARD.policy is None
        await running.engine.stop()


async def test_stopping_cuts_the_connections_that_are_left(store_dir: Path) -> None:
    """A client that only waits is not waited for."""
    async with running_engine(_config(store_dir)) as running:
        opened = socket.create_connection((running.address.host, running.address.port), timeout=10)
        while not running.engine._proxyserver.connections:  # noqa: ASYNC110  # a turn of the loop each
            await asyncio.sleep(0)
        await running.engine.stop()
        with opened:
            assert await asyncio.to_thread(opened.recv, 1) == b""


# ---- listening -----------------------------------------------------------------------------------


async def test_a_port_in_use_is_said_with_what_to_do(store_dir: Path) -> None:
    """And the engine goes on where it listened before."""
    async with running_engine(_config(store_dir)) as running:
        with pytest.raises(EngineError, match=rf"port {running.address.port} .* in use") as caught:
            await running.engine.listen(running.address)
        assert "--listen" in caught.value.hint
        other = await running.engine.listen(Listen("127.0.0.1", 0))
        assert other.port not in (0, running.address.port)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EADDRINUSE, "in use"), "port 80 on api.test is in use"),
        (OSError(errno.EACCES, "no"), "not allowed to listen on api.test:80"),
        (OSError(errno.EPERM, "no"), "not allowed to listen on api.test:80"),
        (OSError(errno.EADDRNOTAVAIL, "none"), "cannot listen on api.test:80"),
        (OverflowError("port must be 0-65535"), "cannot listen on api.test:80"),
    ],
)
def test_a_port_that_cannot_be_opened_says_why(error: Exception, said: str) -> None:
    """One sentence and one hint for each reason."""
    made = _listen_error(Listen("api.test", 80), error)
    assert str(made).startswith(said)
    assert made.hint


async def test_an_address_that_is_not_here_is_an_error_of_ours(store_dir: Path) -> None:
    """No traceback of the event loop's."""
    async with running_engine(_config(store_dir)) as running:
        with pytest.raises(EngineError, match="cannot listen"):
            await running.engine.listen(Listen("192.0.2.1", 0))


async def test_it_listens_on_ipv6(store_dir: Path) -> None:
    """The address it gives is the one that clients can use."""
    need("IPv6")
    with Origin({"/x": _ok}) as origin:
        async with running_engine(_config(store_dir)) as running:
            here = await running.engine.listen(Listen("::1", 0))
            assert here.host == "::1"
            answer = await asyncio.to_thread(_get, "::1", here.port, f"{origin.url}/x")
            assert answer.endswith(b"\r\n\r\nok")


async def test_it_serves_on_a_socket_that_was_opened_elsewhere(store_dir: Path) -> None:
    """It takes what waits there already, and knows the address as its own."""
    with Origin({"/x": _ok}) as origin:
        async with running_engine(_config(store_dir)) as running:
            ready = socket.create_server(("127.0.0.1", 0))
            port = ready.getsockname()[1]
            asking = asyncio.to_thread(_get, "127.0.0.1", port, f"{origin.url}/x")
            answer = asyncio.get_running_loop().create_task(asking)
            await running.engine.serve_on(ready)
            assert (await answer).endswith(b"\r\n\r\nok")
            assert running.engine._is_us(("localhost", port))
            assert not running.engine._is_us(("127.0.0.1", origin.port))


async def test_what_it_denies_is_counted_and_noted(
    store_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By destination, for whoever writes the receipt."""
    async with running_engine(_config(store_dir)) as running:
        stranger = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
        upstream = connection.Server(address=("api.test", 443))
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                assert not running.engine.may_leave(stranger, upstream, None)
        assert dict(running.engine.denied) == {"api.test:443": 2}
        assert "denied: api.test:443" in caplog.text


# ---- certificates --------------------------------------------------------------------------------


def _leaf(running: Running, origin: Origin) -> x509.Certificate:
    """Shake hands through a tunnel and give the certificate that was shown."""
    with socket.create_connection(
        (running.address.host, running.address.port), timeout=10
    ) as opened:
        opened.sendall(f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += opened.recv(1)
        context = ssl.create_default_context(cafile=str(running.ca))
        with context.wrap_socket(opened, server_hostname="127.0.0.1") as sock:
            shown = sock.getpeercert(binary_form=True)
            assert shown is not None
            return x509.load_der_x509_certificate(shown)


def _key(certificate: x509.Certificate) -> tuple[int, int]:
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    numbers = key.public_numbers()
    return numbers.x, numbers.y


async def test_leaves_are_from_our_ca_and_have_a_key_of_their_own(
    store_dir: Path, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No CA but ours signs, its key is shown to nobody, and mitmproxy writes no files of its own."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with Origin({"/x": _ok}, certificates) as origin:
        async with running_engine(_config(store_dir, certificates)) as running:
            leaf = await asyncio.to_thread(_leaf, running, origin)
            again = await asyncio.to_thread(_leaf, running, origin)
            ours = x509.load_pem_x509_certificate(running.ca.read_bytes())
            tls: Any = running.engine._master.addons.get("tlsconfig")
            kept = tls.certstore
            running.engine._master.options.update(confdir=str(home / "other"), key_size=4096)
            assert tls.certstore is kept
    leaf.verify_directly_issued_by(ours)
    assert leaf == again
    assert _key(leaf) != _key(ours)
    written = [str(path) for path in tmp_path.glob("**/*")]  # noqa: ASYNC240  # a test's own folder
    assert [path for path in written if "mitmproxy" in path or path.startswith(f"{home}/")] == []


async def test_a_list_of_revocations_is_not_answered_by_the_engine(store_dir: Path) -> None:
    """mitmproxy would, in any mode; in a playback that answer would be on no tape."""
    async with running_engine(_config(store_dir)) as running:
        tls: Any = running.engine._master.addons.get("tlsconfig")
        flow = tflow.tflow()
        flow.request.path = tls.crl_path()
        tls.request(flow)
        assert flow.response is None
