"""A real browser, driven over its own protocol: Chromium without a window."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from .needs import need

_LONG_S = 30.0
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--window-size=900,900",
)


class Browser:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.complaints: list[str] = []
        """What the page logged as an error, and what broke its policy."""

    @classmethod
    @asynccontextmanager
    async def open(cls, profile: Path) -> "AsyncIterator[Browser]":
        """Start a browser with a profile of its own, and end it."""
        process = await asyncio.create_subprocess_exec(
            need("Chromium"),
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(profile / "DevToolsActivePort")
            async with aiohttp.ClientSession(trust_env=False) as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = await answer.json()
                address = next(one for one in pages if one["type"] == "page")
                socket = await session.ws_connect(address["webSocketDebuggerUrl"], max_msg_size=0)
                browser = cls(socket)
                reading = asyncio.create_task(browser._read())
                try:
                    await browser.call("Page.enable")
                    await browser.call("Runtime.enable")
                    await browser.call("Log.enable")
                    yield browser
                finally:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                    await socket.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    async def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and give its result."""
        number = next(self._ids)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(future, _LONG_S)

    async def go(self, address: str) -> None:
        """Open a page."""
        await self.call("Page.navigate", url=address)

    async def run(self, script: str) -> Any:
        """Give the value of an expression in the page."""
        told = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(_LONG_S):
            while await self.run(script) is not True:  # noqa: ASYNC110  # the page tells nobody
                await asyncio.sleep(0.02)

    async def picture(self) -> str:
        """Give a picture of the page: a PNG, in base64."""
        return str((await self.call("Page.captureScreenshot"))["data"])

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                future = self._waiting.pop(told["id"])
                if not future.done():
                    future.set_result(told.get("result", {"error": told.get("error")}))
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.complaints.append(told["params"]["entry"]["text"])
            elif told["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(told["params"]["exceptionDetails"]))


async def _port(file: Path) -> int:
    async with asyncio.timeout(_LONG_S):
        while True:
            with contextlib.suppress(OSError, IndexError, ValueError):
                return int((await asyncio.to_thread(file.read_text)).splitlines()[0])
            await asyncio.sleep(0.02)
