"""Bodies larger than what is held in memory: both ways, in record and playback, over HTTP/1 and HTTP/2.

Each case sends or fetches some hundred megabytes (fewer by default) through a proxy of its own process, whose
memory is looked at while they pass.
"""

import hashlib
import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.store import Store
from playhead.tests.support.asgi import AsgiOrigin
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import Serve, wait_until
from playhead.timeline.receipts.receipt import build

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
MEGABYTES = 300 if FULL else 32
MOST_GROWTH = 30 * 1024 * 1024
PIECE = hashlib.shake_128(b"a piece").digest(1 << 20)


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Take a body and say what it was, or send one."""
    assert scope["type"] == "http"
    digest, size = hashlib.sha256(), 0
    while True:
        message = await receive()
        digest.update(message.get("body", b""))
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["method"] == "GET":
        for number in range(MEGABYTES):
            piece = number.to_bytes(4, "big") + PIECE[4:]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    told = f"{size} {digest.hexdigest()}".encode()
    await send({"type": "http.response.body", "body": told, "more_body": False})


def _anonymous(pid: int) -> int:
    """Bytes of memory of a process that are not a file's."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


class Watch(threading.Thread):
    """Looks at the memory of a process until it is told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.before = self.most = _anonymous(pid)
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.most = max(self.most, _anonymous(self.pid))

    @property
    def growth(self) -> int:
        return self.most - self.before


def _pieces(boundary: bytes = b"") -> Iterator[bytes]:
    yield b"--" + boundary + b"\r\n\r\n" if boundary else b""
    for number in range(MEGABYTES):
        yield number.to_bytes(4, "big") + PIECE[4:]
    yield b"\r\n--" + boundary + b"--" if boundary else b""


@dataclass
class Seen:
    """What one client saw, and what the proxy needed for it."""

    told: str
    growth: int


def _exchange(proxy: Serve, ca: Path, origin: str, case: str, boundary: str) -> Seen:
    import httpx

    version, kind = case.split("-")
    context = ssl.create_default_context(cafile=str(ca / "playhead-ca-cert.pem"))
    watch = Watch(proxy.process.pid)
    with httpx.Client(
        proxy=proxy.url_for(case), verify=context, http2=version == "h2", timeout=60
    ) as client:
        watch.start()
        if kind == "download":
            digest = hashlib.sha256()
            with client.stream("GET", f"{origin}/{case}") as response:
                for data in response.iter_raw():
                    digest.update(data)
            told = digest.hexdigest()
        else:
            headers = {}
            if kind == "multipart":
                headers["content-type"] = f"multipart/form-data; boundary={boundary}"
            body = _pieces(boundary.encode() if kind == "multipart" else b"")
            told = client.post(f"{origin}/{case}", content=body, headers=headers).text
    watch.ended.set()
    watch.join()
    return Seen(told, watch.growth)


CASES = [f"{version}-{kind}" for version in ("h1", "h2") for kind in ("download", "upload")] + [
    "h1-multipart"
]


@pytest.fixture(scope="module")
def seen(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> dict[str, tuple[Seen, Seen, Any]]:
    """Record each case and replay it; give both, and the exchange."""
    store = tmp_path_factory.mktemp("large") / "store"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)
    with AsgiOrigin(_app, certificates) as origin:
        url = origin.url
        with Serve("--mode", "record", *flags) as proxy:
            recorded = {
                case: _exchange(proxy, store / "ca", url, case, "one-boundary") for case in CASES
            }
    with Serve("--mode", "playback", *flags) as proxy:
        replayed = {
            case: _exchange(proxy, store / "ca", url, case, "another-boundary") for case in CASES
        }
        with Store.open(store, readonly=True) as opened:
            wait_until(lambda: all(opened.runs.find(f"{case}@1") for case in CASES))
    with Store.open(store, readonly=True) as opened:
        for case in CASES:
            receipt = build(opened, opened.runs.get(f"{case}@1"))
            assert receipt.faithful is True, (case, receipt.to_json())
        exchanges = {case: next(opened.exchanges.all(opened.runs.get(case))) for case in CASES}
    return {case: (recorded[case], replayed[case], exchanges[case]) for case in CASES}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_large_body_passes_and_comes_back(seen: Any, case: str) -> None:
    """Every byte, in record and in playback, with the origin gone."""
    recorded, replayed, exchange = seen[case]
    assert replayed.told == recorded.told
    whole = hashlib.sha256(b"".join(_pieces()))
    if case.endswith("download"):
        assert recorded.told == whole.hexdigest()
        assert exchange.response.spilled.size == exchange.response.body_bytes == MEGABYTES << 20
    else:
        assert exchange.request.spilled.size == exchange.request.body_bytes
        assert exchange.request.body_bytes >= MEGABYTES << 20 > HELD_BYTES


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_large_body_is_not_held_in_memory(seen: Any, case: str) -> None:
    """The proxy grows by less than 30 MB, however large the body is."""
    recorded, replayed, _ = seen[case]
    assert recorded.growth < MOST_GROWTH, f"{recorded.growth / 1e6:.1f} MB while recording"
    assert replayed.growth < MOST_GROWTH, f"{replayed.growth / 1e6:.1f} MB in playback"
