"""Which protocol a client is offered: the upstream's while recording, the recorded one in playback, and HTTP/2 without TLS."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from playhead.addons.alpn import Protocol
from playhead.addons.run.registry import RunRegistry
from playhead.config import Mode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ADDRESS = ("api.test", 443)
ASK_AGAIN = object()


def protocol(open_run: Any) -> Protocol:
    """The addon, where each client belongs to a run."""
    return Protocol(cast("RunRegistry", SimpleNamespace(of=lambda client: open_run)))


def make_run(mode: Mode, *, stopped: bool = False, tape: bool = True) -> Any:
    """A run whose tape has negotiated HTTP/2 with whoever offers it."""
    found = SimpleNamespace(
        find=lambda tape, host, port, offers: b"h2" if b"h2" in offers else None
    )
    return SimpleNamespace(
        mode=mode,
        lifetime=SimpleNamespace(stopped="eve" if stopped else None),
        tape="tape" if tape else None,
        store=SimpleNamespace(alpn=found),
    )


def greet(
    open_run: Any, offers: tuple[bytes, ...] = (b"h2", b"http/1.1"), address: Any = ADDRESS
) -> tuple[bool, Any]:
    """Begin TLS; give whether the upstream is connected first, and what the client is told."""
    client = SimpleNamespace(alpn_offers=offers, alpn=None)
    context = SimpleNamespace(client=client, server=SimpleNamespace(address=address))
    data: Any = SimpleNamespace(context=context, establish_server_tls_first=False)
    protocol(open_run).tls_clienthello(data)
    return data.establish_server_tls_first, client.alpn


@pytest.mark.parametrize(
    ("open_run", "first", "alpn"),
    [
        (None, False, None),
        (make_run(Mode.RECORD), True, None),
        (make_run(Mode.PASSTHROUGH), True, None),
        (make_run(Mode.RECORD, stopped=True), False, None),
        (make_run(Mode.PLAYBACK), False, b"h2"),
        (make_run(Mode.PLAYBACK, stopped=True), False, None),
        (make_run(Mode.PLAYBACK, tape=False), False, None),
    ],
)
def test_the_upstream_is_asked_or_the_tape(open_run: Any, first: bool, alpn: Any) -> None:
    """Nothing is connected in a playback, nor for a run that was stopped."""
    assert greet(open_run) == (first, alpn)


@pytest.mark.parametrize(
    ("offers", "address", "alpn"),
    [
        ((b"http/1.1",), ADDRESS, None),
        ((), ADDRESS, None),
        ((b"h2",), None, None),
        ((b"h2",), ADDRESS, b"h2"),
    ],
)
def test_a_playback_forces_what_is_on_the_tape(
    offers: tuple[bytes, ...], address: Any, alpn: Any
) -> None:
    """For a client with these offers; where it has nothing, the client is left to itself."""
    assert greet(make_run(Mode.PLAYBACK), offers, address) == (False, alpn)


def begin(
    begun: bytes, *, tls: bool = False, alpn: Any = None, mode: Mode = Mode.RECORD, address: Any
) -> Any:
    """Begin to speak; give what is taken for spoken, or `ASK_AGAIN`."""
    client = SimpleNamespace(alpn=alpn, tls=tls)
    data: Any = SimpleNamespace(
        context=SimpleNamespace(client=client, server=SimpleNamespace(address=address)),
        data_client=lambda: begun,
        layer="chosen",
    )
    protocol(make_run(mode)).next_layer(data)
    return ASK_AGAIN if data.layer is None else client.alpn


@pytest.mark.parametrize(
    ("begun", "tls", "alpn", "mode", "spoken"),
    [
        (PREFACE, False, None, Mode.RECORD, b"h2"),
        (PREFACE + b"more", False, None, Mode.RECORD, b"h2"),
        (PREFACE[:5], False, None, Mode.RECORD, ASK_AGAIN),
        (b"", False, None, Mode.RECORD, None),
        (b"GET / HTTP/1.1", False, None, Mode.RECORD, None),
        (b"PRIVATE", False, None, Mode.RECORD, None),
        (PREFACE, True, None, Mode.RECORD, None),
        (PREFACE, True, None, Mode.PLAYBACK, b"h2"),
        (PREFACE, True, b"http/1.1", Mode.PLAYBACK, b"h2"),
        (PREFACE[:5], True, None, Mode.PLAYBACK, None),
        (PREFACE, False, b"http/1.1", Mode.RECORD, b"http/1.1"),
        (PREFACE[:5], False, b"h2", Mode.RECORD, b"h2"),
    ],
)
def test_a_client_that_begins_with_the_preface_speaks_http2(
    begun: bytes, tls: bool, alpn: Any, mode: Mode, spoken: Any
) -> None:
    """In TLS only in a playback; it is asked again while it may still become the preface."""
    assert begin(begun, tls=tls, alpn=alpn, mode=mode, address=ADDRESS) == spoken


def test_what_leads_nowhere_is_not_looked_at() -> None:
    """It is the proxy itself that is spoken to."""
    assert begin(PREFACE, address=None) is None


@pytest.mark.parametrize(
    ("client", "client_tls", "server_tls", "alpn"),
    [
        (b"h2", False, False, b"h2"),
        (b"h2", True, False, None),
        (b"h2", False, True, None),
        (None, False, False, None),
        (b"http/1.1", False, False, None),
    ],
)
def test_an_upstream_without_tls_is_spoken_to_as_the_client_speaks(
    client: Any, client_tls: bool, server_tls: bool, alpn: Any
) -> None:
    """There is nothing to negotiate."""
    data: Any = SimpleNamespace(
        client=SimpleNamespace(alpn=client, tls=client_tls),
        server=SimpleNamespace(alpn=None, tls=server_tls),
    )
    protocol(None).server_connected(data)
    assert data.server.alpn == alpn
