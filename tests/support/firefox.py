"""Another real browser: Firefox without a window, driven over WebDriver BiDi, with no network.

Source: https://w3c.github.io/webdriver-bidi/
"""

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

_LONG_S = 60.0
_PREFERENCES = """
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
"""
"""Whatever it asks for goes to a port where nobody listens."""


class Firefox:
    """One page of Firefox."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._context = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, profile: Path) -> "AsyncIterator[Firefox]":
        """Start Firefox with a profile of its own, and end it."""
        _prepare(profile)
        process = await asyncio.create_subprocess_exec(
            need("firefox-esr"),
            *("--headless", "--no-remote", "--remote-debugging-port", "0"),
            *("--profile", str(profile)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        reading: asyncio.Task[bytes] | None = None
        try:
            address = await asyncio.wait_for(_find_address(process), _LONG_S)
            assert process.stderr is not None
            reading = asyncio.create_task(process.stderr.read())
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.ws_connect(f"{address}/session", max_msg_size=0) as socket,
            ):
                firefox = cls(socket)
                await firefox.call("session.new", capabilities={})
                tree = await firefox.call("browsingContext.getTree")
                firefox._context = tree["contexts"][0]["context"]
                yield firefox
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            if reading is not None:
                await reading

    async def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and give its result."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(_LONG_S):
            while True:
                told = json.loads((await self._socket.receive()).data)
                if told.get("id") == number:
                    assert "error" not in told, told
                    return told["result"]

    async def go(self, address: str) -> None:
        """Open a page, and wait until it is there."""
        await self.call(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )

    async def run(self, script: str) -> Any:
        """Give the value of an expression in the page: a text, a number or a word."""
        told = await self.call(
            "script.evaluate",
            expression=script,
            target={"context": self._context},
            awaitPromise=True,
        )
        assert told["type"] == "success", told
        return told["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true, whatever pages the browser leaves meanwhile."""
        async with asyncio.timeout(_LONG_S):
            while not await self._is_true(script):  # noqa: ASYNC110  # the page tells nobody
                await asyncio.sleep(0.04)

    async def _is_true(self, script: str) -> bool:
        try:
            return await self.run(script) is True
        except AssertionError:  # the page was left
            return False


def _prepare(profile: Path) -> None:
    profile.mkdir()
    (profile / "user.js").write_text(_PREFERENCES)


async def _find_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode("utf-8", "replace"):
        _, found, address = line.strip().rpartition("WebDriver BiDi listening on ")
        if found:
            return address
    raise AssertionError("Firefox ended before it could be driven")
