"""Interim answers (1xx): what becomes of them beside faults, WebSockets, secrets and clients that know of none.

That they pass and are played byte for byte, over both protocols, is in test_bytes.py.
"""

import socket
from base64 import b64encode
from dataclasses import dataclass, field

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Exchange
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.wire import Answer, Wire
from playhead.timeline import Receipt

_HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
_SECRET = b"sid-4f9c1d7b2e8a6035"
_FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
SAID = {
    "reset": _HINT,
    "secret": b"HTTP/1.1 103 Early Hints\r\nSet-Cookie: session=%s; Path=/\r\n\r\n" % _SECRET
    + _FINE,
    "old": _HINT + _FINE,
    "websocket": _HINT
    + b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
}
_UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def _say(conversation: Conversation) -> None:
    await conversation.say(SAID[conversation.path.rpartition("/")[2]])
    conversation.over = True


def _ask(deck: Deck, origin: str, name: str, run: str) -> Answer:
    version = "1.0" if name == "old" else "1.1"
    given = b64encode(f"{run}:x".encode()).decode()
    head = (
        f"GET {origin}/{name} HTTP/{version}\r\nHost: {origin.partition('//')[2]}\r\n"
        f"Proxy-Authorization: Basic {given}\r\n{_UPGRADE if name == 'websocket' else ''}\r\n"
    )
    with Wire(socket.create_connection(deck.proxy, timeout=10)) as wire:
        return wire.ask(head.encode())


@dataclass
class Story:
    """Everything that was recorded and played."""

    recorded: dict[str, Answer] = field(default_factory=dict)
    played: dict[str, Answer] = field(default_factory=dict)
    tape: dict[str, Exchange] = field(default_factory=dict)
    receipt: Receipt | None = None


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Record every case, stop the origin, play everything."""
    made = Story()
    store = tmp_path_factory.mktemp("interim") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with Deck(config) as deck, RawOrigin(_say) as origin:
        made.recorded = {name: _ask(deck, origin.url, name, "interim") for name in SAID}
        deck.end("interim")
        origin.stop()
        deck.play()
        made.played = {name: _ask(deck, origin.url, name, "interim") for name in SAID}
        deck.end("interim@1")
        made.tape = {one.request.target.lstrip("/"): one for one in deck.tape("interim")}
        made.receipt = deck.receipt("interim@1")
    return made


@pytest.mark.parametrize("name", ["reset", "websocket"])
def test_an_interim_answer_comes_before_what_follows(story: Story, name: str) -> None:
    """Before a failure, and before the end of a WebSocket's handshake, while recording and on replay."""
    assert story.recorded[name].interim == (_HINT,)
    assert story.played[name] == story.recorded[name]


def test_an_interim_answer_without_an_answer_is_on_the_tape(story: Story) -> None:
    """What failed after it has no response; what was heard is kept all the same."""
    exchange = story.tape["reset"]
    assert (exchange.response, exchange.fault is None) == (None, False)
    assert [one.status for one in exchange.interim] == [103]


def test_a_secret_of_an_interim_answer_is_not_kept(story: Story) -> None:
    """A cookie is a secret there as in any head: the client gets it, the tape does not."""
    exchange = story.tape["secret"]
    assert _SECRET in story.recorded["secret"].interim[0]
    assert _SECRET not in repr(exchange.interim).encode()
    assert "response.interim.set-cookie" in [one.place for one in exchange.redactions]
    (played,) = story.played["secret"].interim
    assert len(played) == len(story.recorded["secret"].interim[0])


def test_a_client_of_http_1_0_gets_none_and_the_tape_says_so(story: Story) -> None:
    """It would take it for the answer (RFC 9110 section 15.2)."""
    assert story.recorded["old"].interim == story.played["old"].interim == ()
    assert story.tape["old"].warnings == ("an interim answer was left out: 103",)


def test_a_replay_of_interim_answers_is_faithful(story: Story) -> None:
    """Nothing diverged."""
    assert story.receipt is not None
    assert story.receipt.divergences == []
    assert story.receipt.counts["served"] == len(SAID)
