"""Values that redaction replaced in messages of WebSockets: they count, and come back as they were said."""

import json
from pathlib import Path
from typing import Any

import aiohttp

from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import RunId
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build
from playhead.timeline.formats.tape_file import export_tape, import_tape

FIRST, SECOND, THIRD = (
    "ghp_" + value
    for value in (
        "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX",
        "mR4cx8Wn3qY7zBd5KsgV2tD9vP6jHu1fL0aQ",
        "pL9wq2Xk7vT4mZc6RbnY1sF8dJ3hGu5tE0oA",
    )
)
"""Keys of a known format."""
_KEYS = b"one key", b"another key"
"""Of two stores."""


async def _talk(running: Running, url: str, texts: list[str]) -> list[str]:
    """Say texts, each after an answer; give what was heard."""
    heard = list[str]()
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, proxy=running.url_for("r")) as one,
    ):
        for text in texts:
            if one.closed:
                break
            await one.send_str(text)
            got = await one.receive()
            if got.type is not aiohttp.WSMsgType.TEXT:
                break
            heard.append(got.data)
        await one.close(code=1000)
    return heard


async def _replay(
    tmp_path: Path, recorded: list[str], played: list[str], *, other: bool
) -> Receipt:
    """Record a talk and play another one, in another store where that is said."""
    store = tmp_path / "store"
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/rates"
        async with running_engine(Config(mode=Mode.RECORD, store=store), _KEYS[0]) as running:
            await _talk(running, url, recorded)
            await running.end("r")
        origin.stop()
        if other:
            store = _carry(store, tmp_path / "other")
        config = Config(mode=Mode.PLAYBACK, store=store)
        async with running_engine(config, _KEYS[other]) as running:
            await _talk(running, url, played)
            await running.end("r@1")
            return build(running.store, running.store.runs.get("r@1"))


def _carry(store: Path, to: Path) -> Path:
    pieces = list[bytes]()
    with Store.open(store, readonly=True) as one:
        export_tape(one, one.runs.get(RunId("r")), pieces.append, lambda *_: None)
    with Store.open(to) as other:
        import_tape(other, lambda: pieces, 1 << 30, lambda *_: None)
    return to


def say(*keys: str) -> list[str]:
    """Messages of a client, each with a key."""
    return [json.dumps({"text": f"use {key}"}) for key in keys]


def places(receipt: Receipt) -> list[Any]:
    """Where it diverged."""
    return [[one["place"] for one in row["differences"]] for row in receipt.divergences]


async def test_another_value_is_refused(tmp_path: Path) -> None:
    """On a tape of the same store each placeholder is that of one value."""
    receipt = await _replay(tmp_path, say(FIRST, SECOND), say(FIRST, THIRD), other=False)
    assert places(receipt) == [["message[2].$.text"]]
    assert "has another secret" in receipt.divergences[0]["text"]


async def test_the_same_values_are_served(tmp_path: Path) -> None:
    """Whoever sends what was sent is green."""
    receipt = await _replay(tmp_path, say(FIRST, SECOND), say(FIRST, SECOND), other=False)
    assert receipt.faithful, receipt.to_json()
    assert receipt.kind_alone == 0


async def test_values_are_renamed_consistently(tmp_path: Path) -> None:
    """On a tape of another store, whose placeholders say nothing of values."""
    talk = say(FIRST, SECOND, FIRST)
    receipt = await _replay(tmp_path, talk, say(SECOND, THIRD, SECOND), other=True)
    assert receipt.faithful, receipt.to_json()
    assert receipt.kind_alone == 1


async def test_values_that_are_mixed_up_are_refused(tmp_path: Path) -> None:
    """The third message has the key of the second, where the tape has that of the first."""
    talk = say(FIRST, SECOND, FIRST)
    receipt = await _replay(tmp_path, talk, say(SECOND, THIRD, THIRD), other=True)
    assert places(receipt) == [["message[4].$.text"]]


TOKENS = "rW0yC1uN8hGs4jB6eXkT5dv7Qm2pZ9xA", "J3hGu5tE0oApL9wq2Xk7vT4mZc6RbnY1"
ACCESS = "Zc6RbnY1sF8dJ3hGu5tE0oApL9wq2Xk7", "b3LrfW0yC1uN8hGs4jB6eXkT5dv7Qm2p"


def _log_in(number: int, key: str) -> tuple[str, list[str]]:
    """Give the query of a URL and the messages of a client with credentials of its own."""
    auth = json.dumps({"type": "auth", "access_token": ACCESS[number]})
    return f"?token={TOKENS[number]}", [auth, f"free text key {key}"]


async def test_a_token_of_the_url_is_compared_once(tmp_path: Path) -> None:
    """On a tape of another store: the handshake has said for which one it stands, and no message has it."""
    store = tmp_path / "store"
    talks = [_log_in(0, FIRST), _log_in(1, SECOND)]
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/rates"
        async with running_engine(Config(mode=Mode.RECORD, store=store), _KEYS[0]) as running:
            for query, texts in talks:
                await _talk(running, url + query, texts)
            await running.end("r")
        origin.stop()
        store = _carry(store, tmp_path / "other")
        async with running_engine(Config(mode=Mode.PLAYBACK, store=store), _KEYS[1]) as running:
            for query, texts in talks:
                await _talk(running, url + query, texts)
            await running.end("r@1")
            receipt = build(running.store, running.store.runs.get("r@1"))
    assert receipt.faithful, receipt.to_json()


async def test_what_the_server_said_comes_back(tmp_path: Path) -> None:
    """The client has a placeholder in its place, which stands for itself."""
    store = tmp_path / "store"
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/rates"
        async with running_engine(Config(mode=Mode.RECORD, store=store)) as running:
            (first,) = await _talk(running, url, say(FIRST))
            await _talk(running, url, [first, f"again: {first}"])
            await running.end("r")
            recorded = build(running.store, running.store.runs.get("r"))
            origin.stop()
            running.play()
            (given,) = await _talk(running, url, say(FIRST))
            assert FIRST not in given
            await _talk(running, url, [given, f"again: {given}"])
            await running.end("r@1")
            receipt = build(running.store, running.store.runs.get("r@1"))
    assert receipt.faithful, receipt.to_json()
    assert receipt.answers_replaced == recorded.answers_replaced == 2
