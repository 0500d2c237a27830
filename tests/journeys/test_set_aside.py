"""Bodies that are set aside while others take the memory: what is stored, matched and served is what it would be otherwise."""

import gzip
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from playhead.addons.run import pending_exchange as pending
from playhead.config import Config, Mode
from playhead.store.spill import body_memory
from playhead.store.spill.spool import Spool
from playhead.tape.exchange import Chunk, Exchange
from playhead.tests.support.deck import Deck
from playhead.tests.support.origins import Origin

SECRET = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3
TEXT = json.dumps({"key": SECRET, "rows": list(range(40_000))}).encode()


async def _text(request: web.Request) -> web.Response:
    return web.Response(body=TEXT, content_type="application/json")


async def _coded(request: web.Request) -> web.Response:
    fields = {"content-encoding": "gzip", "content-type": "application/json"}
    return web.Response(body=gzip.compress(TEXT, mtime=0), headers=fields)


async def _events(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    for number in range(300):
        await answer.write(b'data: {"number": %d, "key": "%s"}\n\n' % (number, SECRET.encode()))
    await answer.write(b"data: [DONE]\n\n")
    await answer.write_eof()
    return answer


async def _take(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


@pytest.fixture
def origin() -> Iterator[Origin]:
    paths: dict[str, Any] = {"/text": _text, "/coded": _coded, "/events": _events, "/take": _take}
    with Origin(paths) as made:
        yield made


@pytest.fixture
def deck(store_dir: Path) -> Iterator[Deck]:
    with Deck(Config(mode=Mode.RECORD, store=store_dir)) as made:
        yield made


def _ask(deck: Deck, run: str, url: str, body: bytes | None = None) -> bytes:
    proxy = urllib.request.ProxyHandler({"http": deck.running.url_for(run)})
    fields = {"content-type": "application/json"} if body is not None else {}
    asked = urllib.request.Request(url, body, fields)
    with urllib.request.build_opener(proxy).open(asked, timeout=20) as answer:
        found: bytes = answer.read()
        return found


def _timeless(exchange: Exchange) -> Exchange:
    """Give an exchange without what differs between any two recordings: times, and where the network cut the body."""
    response = exchange.response
    assert response is not None
    whole = Chunk(0, sum(chunk.size for chunk in response.chunks))
    date = tuple(field for field in response.headers if field[0].lower() != b"date")
    response = replace(response, head_us=0, chunks=(whole,), headers=date)
    return replace(exchange, started_ns=0, end_us=0, response=response)


@pytest.mark.parametrize("path", ["/text", "/coded", "/events", "/take"])
def test_what_was_set_aside_is_stored_as_if_it_had_been_held(
    deck: Deck, origin: Origin, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same fingerprint, without its secrets; and it is served to whoever asks as before."""
    url, body = origin.url + path, TEXT if path == "/take" else None
    heard = _ask(deck, "held", url, body)
    taken: list[int] = []
    take_back = Spool.take_back

    async def counted(self: Spool) -> tuple[bytes, list[Chunk]]:
        taken.append(self.size)
        return await take_back(self)

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "take_back", counted)
        patch.setattr(body_memory, "MOST_HELD_BYTES", -1)
        patch.setattr(pending, "_ALWAYS_HELD_BYTES", 1000)
        assert _ask(deck, "aside", url, body) == heard
    for run in ("held", "aside"):
        deck.end(run)
    (held,), (aside,) = deck.tape("held"), deck.tape("aside")
    assert taken
    assert _timeless(aside) == _timeless(held)
    stored = aside.request if path == "/take" else aside.response
    assert stored is not None
    assert stored.spilled is None
    assert SECRET.encode() not in stored.body
    assert deck.running.store.bodies.memory.held == 0
    assert deck.running.store.bodies.memory.backlog == 0
    assert not list(Path(deck.running.store.path).rglob("partial-*"))
    deck.play()
    origin.stop()
    assert held.response is not None
    assert _ask(deck, "aside", url, body) == held.response.body
