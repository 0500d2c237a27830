"""The fault matrix: what a client saw of a failure while it was recorded it sees again on replay.

Eight faults: refused, DNS, TLS, reset before the head, cut after n bytes, timeout, malformed, client gave up. In
front of them httpx, aiohttp and curl over HTTP/1, httpx and curl over HTTP/2, in TLS tunnels and by plain proxy
requests. All is asked without any proxy, then recorded under one `playhead serve`, then the origins are stopped and
all is replayed. What no origin can show, a tunnel that failed, is shown by a proxy that fails every one. `PLAYHEAD_FULL` has every client meet every fault; else each fault meets one or two.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tape.exchange import Ending, Exchange, FaultKind, Phase
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates, make_certificates, make_leaf
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.handshakes import (
    ALERT,
    PLAIN_TEXT,
    Acceptor,
    resetting,
    resetting_proxy,
    saying,
    silent,
    unused_port,
)
from playhead.tests.support.needs import Outcomes, has
from playhead.tests.support.process import Serve
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build

PROGRAM = Path(__file__).with_name("clients") / "fault_client.py"
IMPORTS = (*prepared.HTTPX, "aiohttp", "playhead.tests.journeys.clients.transcript")
FULL = bool(os.environ.get("PLAYHEAD_FULL"))
PATIENCE_S = {"httpx": 1.0, "aiohttp": 1.0, "curl": 1.5}
"""Of clients before a silent origin; curl's is for everything from the name look-up on."""

PART = b"data: event 1\n\ndata: event 2\n\n"
"""What passes before an answer is cut."""
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
UNTIL_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
PART_CHUNK = b"%x\r\n%s\r\n" % (len(PART), PART)

INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 2, 7, 8, 11
"""Error codes of RFC 9113, section 7."""


@dataclass(frozen=True)
class Expected:
    """What the tape says of a failure; None where it is not looked at."""

    kind: FaultKind | None
    phase: Phase
    ending: Ending | None = None
    code: int = 0
    body: bytes | None = None
    """What passed before it; None where no answer had begun."""
    complete: bool = False
    """Whether that was all: what ends with its connection may end without close_notify."""

    @property
    def tunnel(self) -> bool:
        """Whether the tunnel failed, before any request was seen."""
        return self.phase in (Phase.CONNECT, Phase.TLS)


# ---- the faults --------------------------------------------------------------------------------------

CONNECTING = {
    # Refused, DNS.
    "refused": Expected(FaultKind.REFUSED, Phase.CONNECT, Ending.RST),
    "dns": Expected(FaultKind.DNS, Phase.CONNECT, Ending.RST),
    # TLS.
    "expired": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "wrong-name": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "untrusted": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "alert": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "plain-text": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "closed-in-handshake": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    "reset-in-handshake": Expected(FaultKind.TLS, Phase.TLS, Ending.RST),
    # Timeout.
    "silent-handshake": Expected(None, Phase.TLS),
}
WITHOUT_TLS = ("refused", "dns")
"""Of these, what can happen to a plain request too."""

HTTP1 = {
    # Reset before the head, and closed before it.
    "reset": Expected(FaultKind.RESET, Phase.HEAD, Ending.RST),
    "closed": Expected(FaultKind.RESET, Phase.HEAD, Ending.CLOSE),
    "dropped": Expected(FaultKind.RESET, Phase.HEAD, Ending.FIN),
    # Cut after n bytes.
    "length-reset": Expected(FaultKind.CUT, Phase.BODY, Ending.RST, body=PART),
    "length-closed": Expected(FaultKind.CUT, Phase.BODY, Ending.CLOSE, body=PART),
    "length-dropped": Expected(FaultKind.CUT, Phase.BODY, Ending.FIN, body=PART),
    "chunked-reset": Expected(FaultKind.CUT, Phase.BODY, Ending.RST, body=PART),
    "chunked-closed": Expected(FaultKind.CUT, Phase.BODY, Ending.CLOSE, body=PART),
    "chunked-dropped": Expected(FaultKind.CUT, Phase.BODY, Ending.FIN, body=PART),
    "in-chunk-dropped": Expected(FaultKind.CUT, Phase.BODY, Ending.FIN, body=PART + b"data"),
    # A body that ends with its connection: only a reset is a failure for sure.
    "until-end-reset": Expected(FaultKind.CUT, Phase.BODY, Ending.RST, body=PART),
    "until-end-closed": Expected(None, Phase.BODY, body=PART, complete=True),
    "until-end-dropped": Expected(None, Phase.BODY, body=PART, complete=True),
    # Malformed.
    "garbage": Expected(FaultKind.MALFORMED, Phase.HEAD, Ending.RST),
    "two-lengths": Expected(FaultKind.MALFORMED, Phase.HEAD, Ending.RST),
    "bad-chunk": Expected(FaultKind.MALFORMED, Phase.BODY, body=PART),
    # Timeout, and the client that gives up.
    "silent": Expected(None, Phase.HEAD),
    "silent-body": Expected(None, Phase.BODY, body=PART),
    "left": Expected(None, Phase.BODY, body=PART),
}
HTTP2 = {
    "stream-refused": Expected(FaultKind.RESET, Phase.HEAD, Ending.STREAM, REFUSED_STREAM),
    "stream-cancelled": Expected(FaultKind.RESET, Phase.HEAD, Ending.STREAM, CANCEL),
    "stream-calm": Expected(FaultKind.RESET, Phase.HEAD, Ending.STREAM, ENHANCE_YOUR_CALM),
    "reset": Expected(FaultKind.RESET, Phase.HEAD, Ending.RST),
    "dropped": Expected(FaultKind.RESET, Phase.HEAD, Ending.FIN),
    "gone-away": Expected(FaultKind.RESET, Phase.HEAD),
    "cut-stream": Expected(FaultKind.CUT, Phase.BODY, Ending.STREAM, INTERNAL_ERROR, PART),
    "cut-cancelled": Expected(FaultKind.CUT, Phase.BODY, Ending.STREAM, CANCEL, PART),
    "cut-calm": Expected(FaultKind.CUT, Phase.BODY, Ending.STREAM, ENHANCE_YOUR_CALM, PART),
    "cut-reset": Expected(FaultKind.CUT, Phase.BODY, Ending.RST, body=PART),
    "cut-dropped": Expected(FaultKind.CUT, Phase.BODY, Ending.FIN, body=PART),
    "garbage": Expected(FaultKind.MALFORMED, Phase.HEAD),
    "silent": Expected(None, Phase.HEAD),
    "silent-body": Expected(None, Phase.BODY, body=PART),
    "left": Expected(None, Phase.BODY, body=PART),
}

BEGUN = {
    "length": LENGTH + PART,
    "chunked": CHUNKED + PART_CHUNK,
    "until-end": UNTIL_END + PART,
}


async def _http1(conversation: Conversation) -> None:
    """Fail as the path says."""
    match conversation.path.rpartition("/")[2]:
        case "closed":
            return
        case "dropped":
            conversation.drop()
        case "reset":
            conversation.reset()
        case "garbage":
            await conversation.say(b"220 this is no web server\r\n\r\n")
        case "two-lengths":
            await conversation.say(
                CHUNKED.replace(b"Content-Type", b"Content-Length: 5\r\nContent-Type")
            )
        case "bad-chunk":
            await conversation.say(CHUNKED + PART_CHUNK + b"no number\r\n")
        case "silent":
            await conversation.left()
        case "silent-body" | "left":
            await conversation.say(CHUNKED + PART_CHUNK)
            await conversation.left()
        case "in-chunk-dropped":
            await conversation.say(CHUNKED + PART_CHUNK + b"1f\r\ndata")
            conversation.drop()
        case name:
            framing, _, how = name.rpartition("-")
            await conversation.say(BEGUN[framing])
            if how == "reset":
                conversation.reset()
            elif how == "dropped":
                conversation.drop()


_BAD_FRAME = bytes.fromhex("000001 00 00 00000000") + b"x"
"""DATA of a stream that cannot be."""
_RESETS = {
    "refused": REFUSED_STREAM,
    "cancelled": CANCEL,
    "calm": ENHANCE_YOUR_CALM,
    "stream": INTERNAL_ERROR,
}


def _http2(stream: Stream) -> bool:
    """Fail as the path says."""
    name = stream.path.rpartition("/")[2]
    begun, _, how = name.partition("-")
    if begun in ("cut", "left") or name == "silent-body":
        stream.head(("content-type", "text/event-stream"))
        stream.data(PART)
    if how in _RESETS:
        stream.reset(_RESETS[how])
    elif name == "gone-away":
        stream.go_away(last=0)
        return True
    elif name == "garbage":
        stream.raw(_BAD_FRAME)
    elif name.endswith("reset"):
        stream.abort()
    return name.endswith("dropped")


# ---- who meets them ----------------------------------------------------------------------------------

CLIENTS = {
    "tls": ("httpx", "aiohttp", "curl"),
    "plain": ("httpx", "aiohttp", "curl"),
    "h2": ("httpx-h2", "curl-h2"),
}
CURLS = ("curl", "curl-h2")


@dataclass(frozen=True)
class Cell:
    """One client before one fault."""

    over: str
    fault: str
    client: str

    @property
    def name(self) -> str:
        """Name of its run."""
        return f"{self.over}-{self.fault}-{self.client}"

    @property
    def expected(self) -> Expected:
        """What the tape is to say."""
        faults = CONNECTING | (HTTP2 if self.over == "h2" else HTTP1)
        found = faults[self.fault]
        if self.over == "plain" and found.ending is Ending.CLOSE:
            return replace(found, ending=Ending.FIN)
        return found

    @property
    def unreachable(self) -> bool:
        """Whether nobody could be connected."""
        return self.expected.tunnel and self.expected.kind is not None

    @property
    def malformed(self) -> bool:
        """Whether what came was no HTTP."""
        return self.expected.kind is FaultKind.MALFORMED


def _faults(over: str) -> Iterator[str]:
    for name in CONNECTING:
        if over != "plain" or name in WITHOUT_TLS:
            yield name
    for name in HTTP2 if over == "h2" else HTTP1:
        # Without TLS closing is dropping.
        if over != "plain" or not name.endswith("dropped") or name == "in-chunk-dropped":
            yield name


def _cells() -> Iterator[Cell]:
    """Give the whole matrix, or of each row one client in turn."""
    for turn, over in enumerate(CLIENTS):
        for row, fault in enumerate(_faults(over)):
            clients = CLIENTS[over]
            chosen = clients if FULL else (clients[(turn + row) % len(clients)],)
            for client in chosen:
                yield Cell(over, fault, client)


CELLS = {cell.name: cell for cell in _cells()}


# ---- running it --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of one cell."""

    expected: dict[str, Any]
    """What the client sees without any proxy, or where a proxy cannot connect it."""
    recorded: dict[str, Any]
    replayed: dict[str, Any]
    tape: list[Exchange] = field(default_factory=list)
    receipt: Receipt | None = None


@contextlib.contextmanager
def _origins(
    certificates: Certificates, folder: Path
) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
    """Run every origin; give the base URL of each, and what stops them."""
    expired = make_leaf(certificates, folder / "expired.pem", days=-1)
    other = make_leaf(certificates, folder / "other.pem", ("elsewhere.test",), ())
    stranger = make_certificates(folder / "stranger")
    with contextlib.ExitStack() as stack:
        origins: dict[str, Any] = {
            "tls": RawOrigin(_http1, certificates),
            "plain": RawOrigin(_http1),
            "h2": FramesOrigin(_http2, certificates),
            "expired": RawOrigin(_http1, expired),
            "wrong-name": RawOrigin(_http1, other),
            "untrusted": RawOrigin(_http1, stranger),
            "alert": Acceptor(saying(ALERT)),
            "plain-text": Acceptor(saying(PLAIN_TEXT)),
            "closed-in-handshake": Acceptor(saying(b"")),
            "reset-in-handshake": Acceptor(resetting),
            "silent-handshake": Acceptor(silent),
        }
        places = {name: stack.enter_context(made).url for name, made in origins.items()}
        nobody = stack.enter_context(unused_port())
        places["refused"] = f"https://127.0.0.1:{nobody}"
        places["dns"] = "https://nobody.playhead.invalid"

        def stop() -> None:
            for made in origins.values():
                made.stop()

        yield places, stop


def _job(cell: Cell, places: dict[str, str], proxy: str, ca: Path) -> dict[str, Any]:
    base = places[cell.fault if cell.expected.tunnel else cell.over]
    if cell.over == "plain":
        base = base.replace("https:", "http:")
    impatient = cell.fault.startswith("silent")
    return {
        "name": cell.name,
        "client": cell.client,
        "url": f"{base}/{cell.name}/{cell.fault}",
        "proxy": proxy,
        "ca": str(ca),
        "patience": PATIENCE_S[cell.client.removesuffix("-h2")] if impatient else 0,
        "hasty": cell.fault == "silent-handshake",
        "until": "event 2" if cell.fault == "left" else "",
    }


def _ask(jobs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Have all jobs done; give what was seen by name."""
    command = [sys.executable, str(PROGRAM)]
    done = prepared.run(command, imports=IMPORTS, input=json.dumps(jobs), text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return {report["name"]: report for report in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Outcomes[Outcome]:
    """Have every client meet its fault: as it should be seen, recorded, replayed."""
    folder = tmp_path_factory.mktemp("faults")
    store = folder / "store"
    ca = store / "ca" / "playhead-ca-cert.pem"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)
    cells = [cell for cell in CELLS.values() if cell.client not in CURLS or has("curl")]
    with _origins(certificates, folder) as (places, stop):
        with Acceptor(resetting_proxy) as failing:
            url = failing.url.replace("https:", "http:")
            expected = _ask(
                [
                    _job(cell, places, url if cell.unreachable else "", certificates.root)
                    for cell in cells
                ]
            )
        with Serve("--mode", "record", *flags) as proxy:
            recorded = _ask([_job(cell, places, proxy.url_for(cell.name), ca) for cell in cells])
        stop()
        with Serve("--mode", "playback", *flags) as proxy:
            replayed = _ask([_job(cell, places, proxy.url_for(cell.name), ca) for cell in cells])
    found = {name: Outcome(expected[name], recorded[name], replayed[name]) for name in expected}
    with Store.open(store, readonly=True) as opened:
        for name, outcome in found.items():
            run, again = opened.runs.find(name), opened.runs.find(f"{name}@1")
            outcome.tape = list(opened.exchanges.all(run)) if run else []
            outcome.receipt = build(opened, again) if again else None
    return Outcomes(found, "curl")


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CELLS)
def test_a_client_sees_on_replay_the_failure_it_saw_while_recorded(
    outcomes: Outcomes[Outcome], name: str
) -> None:
    """Exceptions with their errno, exit code and words of curl, and every byte before it."""
    outcome = outcomes[name]
    assert _failed(outcome.recorded) == _failed(outcome.expected), outcome.recorded
    assert outcome.replayed == outcome.recorded


def _failed(seen: dict[str, Any]) -> bool:
    return bool(seen["raised"] or seen.get("exit"))


_SHOWN = [name for name, cell in CELLS.items() if cell.expected.ending and not cell.malformed]
_SHOWN += [name for name, cell in CELLS.items() if cell.expected.kind is None]
"""Not what is no HTTP: it cannot be passed on."""


@pytest.mark.parametrize("name", _SHOWN)
def test_a_client_sees_the_failure_that_happened(outcomes: Outcomes[Outcome], name: str) -> None:
    """As without any proxy; as a tunnel that is reset where nobody could be connected."""
    outcome = outcomes[name]
    assert outcome.recorded == outcome.expected


@pytest.mark.parametrize("name", CELLS)
def test_a_failure_is_no_page(outcomes: Outcomes[Outcome], name: str) -> None:
    """Whoever gets a status gets the upstream's."""
    seen = outcomes[name].recorded
    if CELLS[name].expected.body is None:
        assert (seen["head"] or None, seen["body"]) == (None, "")
    else:
        assert "200" in json.dumps(seen["head"])


@pytest.mark.parametrize("name", CELLS)
def test_the_tape_says_how_and_where_it_failed(outcomes: Outcomes[Outcome], name: str) -> None:
    """Kind and phase, how the connection or stream ended, and what had passed by then."""
    outcome, expected = outcomes[name], CELLS[name].expected
    assert outcome.tape
    for exchange in outcome.tape:  # some clients try again
        fault, response = exchange.fault, exchange.response
        assert (response.body if response else None) == expected.body
        assert response is None or response.complete == expected.complete
        if expected.complete:
            assert response is not None
            assert (fault, exchange.gone) == (None, None)
            assert response.ragged == name.startswith("tls-until-end-dropped")
            continue
        if expected.kind is None:
            assert fault is None
            assert exchange.gone is not None
            assert exchange.gone.head == (expected.body is not None)
            continue
        assert fault is not None
        assert (fault.kind, fault.phase) == (expected.kind, expected.phase)
        assert exchange.gone is None
        if expected.ending is not None:
            assert (fault.ending, fault.code) == (expected.ending, expected.code)


@pytest.mark.parametrize("name", [name for name, cell in CELLS.items() if cell.expected.tunnel])
def test_a_tunnel_that_failed_is_an_exchange_of_its_own(
    outcomes: Outcomes[Outcome], name: str
) -> None:
    """CONNECT without a target; a plain request that could not be connected is that request."""
    for exchange in outcomes[name].tape:
        request = exchange.request
        if CELLS[name].over == "plain":
            assert (request.method, request.scheme) == ("GET", "http")
            assert request.target.endswith(f"/{name}/{CELLS[name].fault}")
        else:
            assert (request.method, request.target) == ("CONNECT", "")
            assert request.url == f"https://{request.authority}"
            assert exchange.tunnel.number > 0


@pytest.mark.parametrize("name", CELLS)
def test_a_replayed_failure_is_faithful(outcomes: Outcomes[Outcome], name: str) -> None:
    """The whole tape was used, nothing else was asked for, nothing tried to leave."""
    receipt = outcomes[name].receipt
    assert receipt is not None
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.counts["served"] == len(outcomes[name].tape)
    assert not receipt.egress
