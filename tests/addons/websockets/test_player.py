"""What is noted of a WebSocket that comes from the tape."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from playhead.config import Config, Mode
from playhead.tape.records.events import EventKind
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.websocket import WebsocketOrigin

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection


async def _answer(connection: "ServerConnection") -> None:
    """Answer each request with a response."""
    async for _ in connection:
        await connection.send('{"type": "response.completed", "response": {"output": []}}')


async def _ask(running: Running, url: str, *words: str) -> None:
    """Ask a model in turn, until the WebSocket is closed."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, proxy=running.url_for("r")) as one,
    ):
        for word in words:
            await one.send_json({"type": "response.create", "model": "m", "input": word})
            if (await one.receive()).type is not aiohttp.WSMsgType.TEXT:
                break


@pytest.mark.parametrize(
    ("words", "task", "played"),
    [
        (("Refund.", "More?"), "Refund.", None),
        (("Refund.", "Less?"), "Refund.", 2),
        (("Sing.", "More?"), "Sing.", 0),
    ],
)
async def test_the_task_and_what_was_played_are_noted(
    tmp_path: Path, words: tuple[str, ...], task: str, played: int | None
) -> None:
    """Also of a message that diverged, which is in no exchange."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    with WebsocketOrigin({"/v1/responses": _answer}) as origin:
        async with running_engine(config) as running:
            url = f"{origin.url}/v1/responses"
            await _ask(running, url, "Refund.", "More?")
            await running.end("r")
            origin.stop()
            running.play()
            await _ask(running, url, *words)
            await running.end("r@1")
            store = running.store
            events = store.events.of_kind(store.runs.get("r@1"), EventKind.NOTED)
            noted: dict[str, Any] = {}
            for event in events:
                noted |= event.data
    assert (noted["task"]["text"], noted.get("played")) == (task, played)
