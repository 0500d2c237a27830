"""WebSockets to one URL are told apart by the first message of their client."""

import asyncio
import contextlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Seq
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection


async def _ask(running: Running, url: str, words: list[str], *, at_once: bool) -> dict[str, Any]:
    """Open a WebSocket for each word, say it and one more; give what each heard.

    at_once: all are open before the first one says anything.
    """
    heard: dict[str, Any] = {}
    async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as stack:
        proxy = running.url_for("r")
        opened = []
        for word in words:
            if at_once:
                opened.append(await stack.enter_async_context(session.ws_connect(url, proxy=proxy)))
                continue
            async with session.ws_connect(url, proxy=proxy) as one:
                heard[word] = await _talk(one, word)
        for word, one in zip(words, opened, strict=False):
            heard[word] = await _talk(one, word)
    return heard


async def _talk(one: aiohttp.ClientWebSocketResponse, word: str) -> list[Any]:
    found = []
    for text in (word, f"more {word}"):
        if one.closed:
            break
        await one.send_str(text)
        found.append((await one.receive()).data)
    await one.close(code=1000)
    return found


async def _replay(
    store: Path, recorded: list[str], played: list[str], *, at_once: bool
) -> tuple[dict[str, Any], dict[str, Any], Receipt]:
    config = Config(mode=Mode.RECORD, store=store)
    with WebsocketOrigin({}) as origin:
        async with running_engine(config) as running:
            url = f"{origin.url}/rates"
            then = await _ask(running, url, recorded, at_once=at_once)
            await running.end("r")
            origin.stop()
            running.play()
            now = await _ask(running, url, played, at_once=at_once)
            await running.end("r@1")
            return then, now, build(running.store, running.store.runs.get("r@1"))


@pytest.mark.parametrize("at_once", [False, True], ids=["in-turn", "at-once"])
@pytest.mark.parametrize(
    "played", [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]], ids="".join
)
async def test_each_is_played_to_who_begins_as_it_did(
    tmp_path: Path, played: list[str], at_once: bool
) -> None:
    """In whatever order they are opened: nobody hears what another one heard."""
    then, now, receipt = await _replay(tmp_path, ["a", "b", "c"], played, at_once=at_once)
    assert now == then
    assert receipt.faithful, receipt.to_json()
    assert receipt.counts["served"] == 3
    assert Counter(receipt.matched).total() == 3


async def test_one_that_was_not_opened_again_is_unused(tmp_path: Path) -> None:
    """The one that the tape has first is given back when another one turns out to be meant."""
    _, now, receipt = await _replay(tmp_path, ["a", "b"], ["b"], at_once=False)
    assert now["b"] == ["b", "more b"]
    assert receipt.faithful is False
    assert [row["seq"] for row in receipt.unused] == [1]


async def test_one_that_begins_as_none_did_has_changed(tmp_path: Path) -> None:
    """It is compared with the first that was not served."""
    _, _, receipt = await _replay(tmp_path, ["a", "b"], ["x"], at_once=False)
    root = receipt.root
    assert root is not None
    assert (root["kind"], root["differences"][0]["recorded"]) == ("changed", "a")


async def _part(connection: "ServerConnection") -> None:
    """Answer two messages, and close."""
    for _ in range(2):
        await connection.send(await connection.recv())
    await connection.close(4001, "bye")


async def _converse(running: Running, url: str, said: list[list[str]]) -> None:
    """Say messages, those of one list at once and each after an answer to the one before; hear until it is closed."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, proxy=running.url_for("r"), autoclose=False) as one,
    ):
        for texts in said:
            for text in texts:
                await one.send_str(text)
            await one.receive()
        await one.receive()


@pytest.mark.parametrize(
    ("said", "faithful"),
    [([["a"], ["b"]], True), ([["a"], ["b", "pay"]], False), ([["a"], ["b"], ["pay"]], False)],
    ids=["as recorded", "behind the last one", "across the close"],
)
async def test_one_message_more_is_told_where_the_server_closes_next(
    tmp_path: Path, said: list[list[str]], *, faithful: bool
) -> None:
    """It came before the client's own closing frame."""
    with WebsocketOrigin({"/part": _part}) as origin:
        async with running_engine(Config(mode=Mode.RECORD, store=tmp_path)) as running:
            url = f"{origin.url}/part"
            await _converse(running, url, [["a"], ["b"]])
            await running.end("r")
            origin.stop()
            running.play()
            await _converse(running, url, said)
            await running.end("r@1")
            receipt = build(running.store, running.store.runs.get("r@1"))
    assert receipt.faithful is faithful, receipt.to_json()
    assert all("is one more" in row["text"] for row in receipt.divergences)


async def test_one_that_is_open_is_on_the_tape(tmp_path: Path) -> None:
    """From the moment its client knows of it, and soon each message: whoever kills the proxy then finds it unfinished."""
    with WebsocketOrigin() as origin:
        async with (
            running_engine(Config(mode=Mode.RECORD, store=tmp_path)) as running,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{origin.url}/a", proxy=running.url_for("r")) as one,
        ):
            store, run = running.store, running.store.runs.get("r")
            begun = store.exchanges.find(run, Seq(1))
            assert begun is not None
            assert begun.websocket is not None
            await one.send_str("pay")
            await one.receive()
            async with asyncio.timeout(5):
                messages = partial(store.messages.all, run, Seq(1), -1)
                while [m.data for m in messages()] != 2 * [b"pay"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
