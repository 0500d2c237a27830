"""A resumed run whose prefix is another one: whatever differs, nothing is sent any more."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.store import Store
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import Serve
from playhead.tests.support.resume_world import Client, Upstream
from playhead.tests.support.websocket import WebsocketOrigin


class Crashed(NamedTuple):
    """A store with a run that crashed, and what its agent talks to."""

    upstream: Upstream
    talks: WebsocketOrigin
    flags: tuple[str | Path, ...]
    ca: Path

    def ask(self, proxy: Serve, *said: str) -> list[int]:
        """Ask as the agent does; give the status of each answer.

        said: what is said over the WebSocket.
        """
        client = Client(proxy.address, "job", self.ca, self.upstream.url)
        statuses = [client.ask("m1").status]
        talk(f"http://job:x@{proxy.address}", self.talks.url, *said)
        return [*statuses, client.ask("e1").status]


def talk(proxy: str, url: str, *said: str) -> None:
    """Say something, and hear the answer to each."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with connect(url, proxy=proxy, compression=None) as conversation:
        try:
            for one in said:
                conversation.send(one)
                conversation.recv(30)
        except ConnectionClosed:
            pass


@pytest.fixture(scope="module")
def crashed(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Crashed]:
    """The proxy was killed after a WebSocket and an effect."""
    pytest.importorskip("websockets")
    folder = tmp_path_factory.mktemp("prefix")
    file = folder / "playhead.yaml"
    file.write_text(f"store: {folder / 'store'}\nruns: {{resume: auto}}\n")
    flags = ("-c", file, "--upstream-ca", certificates.root, "--listen", "127.0.0.1:0")
    with Upstream(certificates) as upstream, WebsocketOrigin() as talks, Serve(*flags) as proxy:
        ca = next((folder / "store" / "ca").glob("*.pem"))
        made = Crashed(upstream, talks, flags, ca)
        assert made.ask(proxy, "one", "two") == [200, 200]
        proxy.stop(signal.SIGKILL)
        Store.open(folder / "store").close()  # which recovers it
        upstream.sent.clear()
        yield made


@pytest.mark.parametrize(
    "said",
    [("one", "other"), ("one", "two", "three"), ("two", "one"), ("one",), ()],
    ids=["another message", "one more", "another order", "one fewer", "nothing"],
)
def test_another_conversation_stops_it(crashed: Crashed, said: tuple[str, ...]) -> None:
    """What the WebSocket was told is part of the prefix."""
    with Serve(*crashed.flags) as proxy:
        crashed.ask(proxy, *said)
        client = Client(proxy.address, "job", crashed.ca, crashed.upstream.url)
        assert client.ask("e2").status == 424
    assert crashed.upstream.sent == {}


def test_the_same_conversation_goes_on(crashed: Crashed) -> None:
    """From the tape up to the crash, live behind it."""
    with Serve(*crashed.flags) as proxy:
        assert crashed.ask(proxy, "one", "two") == [200, 200]
        client = Client(proxy.address, "job", crashed.ca, crashed.upstream.url)
        assert client.ask("e2").status == 200
    assert crashed.upstream.sent == {"e2": 1}
