"""How a connection ends, on the wire: RST is RST, FIN is FIN, and TLS is closed where the upstream closed it.

Clients hide much of this, so here the client is a socket. What no client may lose are bytes that came before an
end: those that were still on their way to a slow client when the upstream was reset arrive as well.
"""

import array
import asyncio
import fcntl
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Ending, Exchange, RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import running_engine
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import ask, get, open_tunnel, read_to_end

BODY = b"data: event 1\n\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n" + BODY + b"\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + BODY
UNTIL_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY
SAID = {"nothing": b"", "chunked": CHUNKED, "length": LENGTH, "until-end": UNTIL_END}
"""What an origin says before it ends the connection."""
ENDED = {"reset": Ending.RST, "dropped": Ending.FIN, "closed": Ending.CLOSE}
CASES = {
    "tls": [f"{said}-{how}" for said in SAID for how in ENDED],
    "plain": [f"{said}-{how}" for said in SAID for how in ("reset", "dropped")],
}

LARGE = b"".join(b"%07d\n" % number for number in range(7000))
"""56 kB: more than a slow client's kernel takes at once, less than at which a sender stops to wait."""
LARGE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"


async def _end_it(conversation: Conversation) -> None:
    """Say something and end, as the path says."""
    said, _, how = conversation.path.rpartition("/")[2].rpartition("-")
    await conversation.say(SAID[said])
    if how == "reset":
        conversation.reset()
    elif how == "dropped":
        conversation.drop()


@dataclass
class Seen:
    """What a socket saw."""

    recorded: tuple[bytes, Ending]
    replayed: tuple[bytes, Ending]
    tape: list[Exchange]


async def _tell(
    origins: dict[str, Any], certificates: Certificates, store: Path
) -> dict[str, Seen]:
    """Record every case as a run of its own, stop the origins, replay every case."""
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    async with running_engine(config) as running:

        async def see(over: str, case: str) -> tuple[bytes, Ending]:
            url = f"{origins[over].url}/{case}"
            proxy = running.url_for(f"{over}-{case}")
            return await asyncio.to_thread(SEE[over], proxy, url, running.ca)

        names = [(over, case) for over, cases in CASES.items() for case in cases]
        recorded = [await see(*name) for name in names]
        for over, case in names:
            await running.end(f"{over}-{case}")
        for origin in origins.values():
            origin.stop()
        running.play()
        replayed = [await see(*name) for name in names]
        found = {}
        for (over, case), before, after in zip(names, recorded, replayed, strict=True):
            run = running.store.runs.get(RunId(f"{over}-{case}"))
            found[f"{over}-{case}"] = Seen(before, after, list(running.store.exchanges.all(run)))
        return found


def _see_plain(proxy: str, url: str, _ca: Path) -> tuple[bytes, Ending]:
    with ask(proxy, url) as opened:
        return read_to_end(opened)


def _see_tls(proxy: str, url: str, ca: Path) -> tuple[bytes, Ending]:
    with open_tunnel(proxy, url, ca) as tunnel:
        get(tunnel, url)
        return read_to_end(tunnel)


SEE: dict[str, Callable[[str, str, Path], tuple[bytes, Ending]]] = {
    "plain": _see_plain,
    "tls": _see_tls,
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> dict[str, Seen]:
    """See every way in which a connection ends, while recording and on replay."""
    store = tmp_path_factory.mktemp("endings") / "store"
    with RawOrigin(_end_it) as plain, RawOrigin(_end_it, certificates) as tls:
        origins = {"plain": plain, "tls": tls}
        return asyncio.run(_tell(origins, certificates, store))


NAMES = [f"{over}-{case}" for over, cases in CASES.items() for case in cases]


@pytest.mark.parametrize("name", NAMES)
def test_a_connection_ends_as_the_upstream_ended_it(seen: dict[str, Seen], name: str) -> None:
    """ECONNRESET after a reset, the end of the stream after FIN, close_notify after close_notify."""
    _, _, case = name.partition("-")
    said, _, how = case.rpartition("-")
    expected = (SAID[said], ENDED[how])
    assert seen[name].recorded == expected
    assert seen[name].replayed == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_tape_says_how_it_ended(seen: dict[str, Seen], name: str) -> None:
    """In the fault; where the body was to end with the connection, as ragged where TLS was not closed."""
    (exchange,) = seen[name].tape
    _, _, case = name.partition("-")
    ending = ENDED[case.rpartition("-")[2]]
    if case.startswith("until-end") and ending is not Ending.RST:
        assert exchange.fault is None
        assert exchange.response is not None
        assert exchange.response.complete
        assert exchange.response.ragged == (name == "tls-until-end-dropped")
    else:
        assert exchange.fault is not None
        assert exchange.fault.ending is ending


async def _delivered(conversation: Conversation) -> None:
    """Wait until the other side's kernel has all that was said."""
    unsent = array.array("i", [1])
    while unsent[0]:
        await asyncio.sleep(0.001)
        fcntl.ioctl(conversation.socket.fileno(), termios.TIOCOUTQ, unsent)


async def _say_much(conversation: Conversation) -> None:
    await conversation.say(LARGE_HEAD + LARGE)
    await _delivered(conversation)
    if conversation.path.endswith("reset"):
        conversation.reset()
    else:
        conversation.drop()


@pytest.mark.parametrize(("path", "ending"), [("reset", Ending.RST), ("dropped", Ending.FIN)])
async def test_a_slow_client_gets_every_byte_that_came_before_the_end(
    path: str, ending: Ending, store_dir: Path
) -> None:
    """A reset drops what is unsent: it waits until the client has taken what is on the tape."""

    def see(proxy: str) -> tuple[bytes, Ending]:
        with ask(proxy, f"{origin.url}/{path}", buffer=2048) as opened:
            return read_to_end(opened, 512)

    config = Config(mode=Mode.RECORD, store=store_dir)
    with RawOrigin(_say_much) as origin:
        async with running_engine(config) as running:
            recorded = await asyncio.to_thread(see, running.url_for("tape"))
            await running.end("tape")
            origin.stop()
            running.play()
            replayed = await asyncio.to_thread(see, running.url_for("tape"))
            tape = list(running.store.exchanges.all(running.store.runs.get(RunId("tape"))))
    assert tape[0].response is not None
    assert tape[0].response.body == LARGE
    assert recorded == (LARGE_HEAD + LARGE, ending)
    assert replayed == recorded
