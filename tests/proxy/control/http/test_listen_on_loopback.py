"""A browser finds nobody else's server under a name of loopback: both of its addresses are ours, or neither is."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from playhead.config import Config, Control, Listen
from playhead.proxy.control.http import listen_on_loopback
from playhead.proxy.control.http.listen_on_loopback import PAIR, listen_at
from playhead.proxy.errors import EngineError
from playhead.proxy.pages.server import Shown, serve_pages
from playhead.tests.support.control import controlled
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.refund_store import write_refund_store


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _addresses(sockets: list[socket.socket]) -> list[tuple[str, int]]:
    return [ready.getsockname()[:2] for ready in sockets]


def _need_ipv6() -> None:
    try:
        socket.create_server((PAIR[1], 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"needs IPv6: {error}")


@pytest.mark.parametrize("host", [*PAIR, "localhost"])
def test_both_addresses_on_one_port(opened: ExitStack, host: str) -> None:
    """Nobody else gets the other one, with SO_REUSEADDR neither."""
    _need_ipv6()
    sockets = [opened.enter_context(one) for one in listen_at(host, 0)]
    first = PAIR[0] if host == "localhost" else host
    port = sockets[0].getsockname()[1]
    other = next(one for one in PAIR if one != first)
    assert _addresses(sockets) == [(first, port), (other, port)]
    for taken, family in zip(PAIR, (socket.AF_INET, socket.AF_INET6), strict=True):
        for any_address in (taken, "0.0.0.0" if family == socket.AF_INET else "::"):
            with pytest.raises(OSError, match="in use"):
                socket.create_server((any_address, port), family=family)


@pytest.mark.parametrize("host", PAIR)
def test_a_port_whose_other_address_is_taken_is_refused(opened: ExitStack, host: str) -> None:
    """And nothing is left listening."""
    _need_ipv6()
    other = next(one for one in PAIR if one != host)
    family = socket.AF_INET6 if ":" in other else socket.AF_INET
    taken = opened.enter_context(socket.create_server((other, 0), family=family))
    port = taken.getsockname()[1]
    with pytest.raises(OSError, match="in use") as caught:
        listen_at(host, port)
    assert other in str(caught.value)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened.enter_context(socket.create_server((host, port), family=family))


def test_of_free_ports_one_is_chosen_that_is_free_at_both(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that the kernel gives, and that a stranger has at ::1, is let go."""
    real = listen_on_loopback._open
    refused: list[int] = []

    def open_(host: str, port: int, backlog: int) -> Any:
        if host == PAIR[1] and len(refused) < 3:
            refused.append(port)
            raise OSError(errno.EADDRINUSE, "in use")
        return real(host, port, backlog)

    monkeypatch.setattr(listen_on_loopback, "_open", open_)
    _need_ipv6()
    sockets = [opened.enter_context(one) for one in listen_at(PAIR[0], 0)]
    assert [host for host, _ in _addresses(sockets)] == list(PAIR)
    assert len(refused) == 3
    refused.clear()
    monkeypatch.setattr(listen_on_loopback, "_TRIES", 2)
    with pytest.raises(OSError, match="2 free ports"):
        listen_at(PAIR[0], 0)


@pytest.mark.parametrize("reason", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_machine_without_ipv6_has_one_address(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """Its browsers have no other one, either."""
    real = listen_on_loopback._open

    def open_(host: str, port: int, backlog: int) -> Any:
        if ":" in host:
            raise OSError(reason, "no such address")
        return real(host, port, backlog)

    monkeypatch.setattr(listen_on_loopback, "_open", open_)
    sockets = [opened.enter_context(one) for one in listen_at(PAIR[0], 0)]
    assert [host for host, _ in _addresses(sockets)] == [PAIR[0]]


def test_another_address_is_no_pair(opened: ExitStack) -> None:
    """No name below localhost leads to it."""
    sockets = [opened.enter_context(one) for one in listen_at("127.0.0.2", 0)]
    assert [host for host, _ in _addresses(sockets)] == ["127.0.0.2"]


def test_ui_listens_at_both_addresses(tmp_path: Path) -> None:
    """And refuses a port of which a stranger has one, rather than to print a link to him."""
    _need_ipv6()
    store = write_refund_store(tmp_path / "store")
    with Ui(store) as ui:
        listening = {
            one.laddr[:2]
            for one in psutil.Process(ui.process.pid).net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
        }
        assert listening == {(host, ui.port) for host in PAIR}
    with socket.create_server((PAIR[1], 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match="'::1'") as caught:
            serve_pages(Config(store=store), Shown(port=port, browser=False), pytest.fail)
        assert "--port" in caught.value.hint


async def test_the_control_api_listens_at_both_addresses(store_dir: Path) -> None:
    """It has the pages of `playhead gates --page`; requests of agents lead to neither."""
    _need_ipv6()
    async with controlled(Config(store=store_dir)) as api:
        port = int(api.address.rpartition(":")[2])
        assert {(host, port) for host in PAIR} <= set(api.running.engine.own_addresses)
        for host in PAIR:
            socket.create_connection((host, port), 5).close()
    with socket.create_server((PAIR[1], 0), family=socket.AF_INET6) as taken:
        listen = Listen(PAIR[0], taken.getsockname()[1])
        with pytest.raises(EngineError, match="'::1'"):
            async with controlled(Config(store=store_dir, control=Control(listen))):
                pytest.fail("it was opened")
