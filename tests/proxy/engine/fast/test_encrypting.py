"""Pieces that one event sends are encrypted as one, and nothing overtakes anything."""

from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.tls import TLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

from playhead.proxy.engine.fast import encrypting

_MOST = 65535


class _Openssl:
    """Encrypts by putting brackets around what it is given; read like OpenSSL's memory."""

    def __init__(self) -> None:
        self._made = b""

    def sendall(self, data: bytes) -> None:
        self._made += b"[" + data + b"]"

    def bio_read(self, size: int) -> bytes:
        if not self._made:
            raise SSL.WantReadError
        data, self._made = self._made[:size], self._made[size:]
        return data


class _Layer(TLSLayer):
    """A layer whose TLS stands, around a child that asks for what it is told to."""

    _handle_event = encrypting.handle_event
    event_to_child = encrypting.event_to_child
    tls_interact = encrypting.tls_interact

    def __init__(self, conn: connection.Connection, asked: list[commands.Command]) -> None:
        self.conn = self.tunnel_connection = conn
        self.tunnel_state = TunnelState.OPEN
        self._event_queue = []
        self.debug, self._paused, self._paused_event_queue = None, None, deque()
        self.tls: Any = _Openssl()
        self.seen: list[events.Event] = []
        self.child_layer: Any = SimpleNamespace(handle_event=self._ask)
        self._asked = asked

    def _ask(self, event: events.Event) -> Iterator[commands.Command]:
        self.seen.append(event)
        yield from self._asked


_CLIENT = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
_SERVER = connection.Server(address=("api.test", 443))


def _said(asked: list[commands.Command]) -> list[Any]:
    """Tell what comes out of the layer: what is sent to whom, and the kinds of other commands."""
    layer = _Layer(_CLIENT, asked)
    event = events.DataReceived(_SERVER, b"x")
    told = [
        (command.connection, command.data)
        if isinstance(command, commands.SendData)
        else type(command)
        for command in layer.handle_event(event)
    ]
    assert layer.seen == [event]
    return told


def _to_client(data: bytes) -> commands.SendData:
    return commands.SendData(_CLIENT, data)


def test_pieces_with_nothing_between_are_encrypted_as_one() -> None:
    """Head and body of a message leave in one record."""
    assert _said([_to_client(b"head"), _to_client(b"body")]) == [(_CLIENT, b"[headbody]")]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (commands.SendData(_SERVER, b"up"), (_SERVER, b"up")),
        (commands.Log("said"), commands.Log),
        (commands.RequestWakeup(1.0), commands.RequestWakeup),
        (commands.CloseConnection(_SERVER), commands.CloseConnection),
    ],
)
def test_nothing_overtakes_what_was_sent_before(other: commands.Command, told: object) -> None:
    """Whatever is asked for between two pieces comes between them."""
    said = _said([_to_client(b"1"), _to_client(b"2"), other, _to_client(b"3")])
    assert said == [(_CLIENT, b"[12]"), told, (_CLIENT, b"[3]")]


def test_what_was_sent_leaves_before_the_connection_is_closed() -> None:
    """A close comes last."""
    said = _said([_to_client(b"last"), commands.CloseConnection(_CLIENT)])
    assert said == [(_CLIENT, b"[last]"), commands.CloseConnection]


def test_what_was_sent_leaves_before_a_layer_waits() -> None:
    """A command that blocks ends the event: nothing may be kept back for later."""
    said = _said([_to_client(b"1"), commands.OpenConnection(_SERVER)])
    assert said == [(_CLIENT, b"[1]"), commands.OpenConnection]


@pytest.mark.parametrize("size", [1, _MOST - 3, _MOST - 2, _MOST - 1, 2 * _MOST - 2, 3 * _MOST])
def test_all_that_was_encrypted_is_sent(size: int) -> None:
    """Also where it is as long as one look takes, or longer."""
    said = _said([_to_client(b"x" * size)])
    assert b"".join(data for _, data in said) == b"[" + b"x" * size + b"]"
    assert all(0 < len(data) <= _MOST for _, data in said)


def test_before_tls_stands_events_wait() -> None:
    """As mitmproxy has it: the layer inside hears of them once there is something to send with."""
    layer = _Layer(_CLIENT, [])
    layer.tunnel_state = TunnelState.ESTABLISHING
    event = events.DataReceived(_SERVER, b"x")
    assert list(layer.handle_event(event)) == []
    assert (layer.seen, layer._event_queue) == ([], [event])
