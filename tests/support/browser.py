"""A real browser, driven over its own protocol: Chromium without a window.

`Chromium.running` starts one; each of its pages has cookies, storage and a cache of its own, so that tests share the process and
nothing else. `Browser.open` starts one for a single page.
"""

import asyncio
import contextlib
import itertools
import json
import re
import subprocess
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
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
    # A page that is not in front is to be as awake as the one that is.
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--remote-debugging-port=0",
    "--window-size=900,900",
)
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
"""Virtual key codes. Source: UI Events, legacy key attributes."""
_TEXTS = {"Enter": "\r", " ": " "}
_IS_DRAWN = (
    "document.readyState === 'complete' &&"
    " new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true))))"
)
_LOUD = ("error", "warning", "assert")
"""Kinds of lines in the console of a page that are complaints."""
_SHIFT = 8
"""Of a key event. Source: Chrome DevTools Protocol, Input.dispatchKeyEvent."""


@dataclass(frozen=True)
class Node:
    """A control or a part of a page, as an assistive technology is given it."""

    role: str
    name: str
    value: str = ""
    """Of a slider its text, where it has one."""
    properties: dict[str, Any] = field(default_factory=dict, compare=False)
    """As `focused`, `disabled`, `checked`, `selected`."""
    number: int = 0
    """Of the DOM node."""


class Chromium:
    """A browser that runs."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        self._path = path
        """Of the address under which the browser itself is driven."""
        self._first = ""
        """The page that is there from the start."""

    @classmethod
    @contextmanager
    def running(cls, profile: Path) -> "Iterator[Chromium]":
        """Start a browser with a profile of its own, and end it."""
        process = subprocess.Popen(
            [need("Chromium"), *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield cls(*_read_port(profile / "DevToolsActivePort"))
        finally:
            process.terminate()
            process.wait()

    @asynccontextmanager
    async def page(self) -> "AsyncIterator[Browser]":
        """Open a page of its own, and close it: nothing of another page is in it."""
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            self._drive(session, self._path) as browser,
        ):
            context = (await browser.call("Target.createBrowserContext"))["browserContextId"]
            target = await browser.call(
                "Target.createTarget",
                url="about:blank",
                browserContextId=context,
                newWindow=True,
            )
            try:
                async with self._look_at(session, target["targetId"]) as page:
                    yield page
            finally:
                await browser.call("Target.disposeBrowserContext", browserContextId=context)

    @asynccontextmanager
    async def same_page(self) -> "AsyncIterator[Browser]":
        """Give one and the same page, without the cookies and the cache that it had: it costs a third of a second less."""
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            self._drive(session, self._path) as browser,
        ):
            if not self._first:
                told = await browser.call("Target.getTargets")
                pages = [one for one in told["targetInfos"] if one["type"] == "page"]
                self._first = pages[0]["targetId"]
            async with self._look_at(session, self._first) as page:
                try:
                    yield page
                finally:
                    await page.go("about:blank")
                    await page.call("Network.clearBrowserCookies")
                    await page.call("Network.clearBrowserCache")
                    await page.call("Log.clear")

    @asynccontextmanager
    async def _look_at(
        self, session: aiohttp.ClientSession, target: str
    ) -> "AsyncIterator[Browser]":
        async with self._drive(session, f"/devtools/page/{target}") as page:
            for what in ("Page", "Runtime", "Log", "Network", "Inspector"):
                await page.call(f"{what}.enable")
            await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
            yield page

    @asynccontextmanager
    async def _drive(self, session: aiohttp.ClientSession, path: str) -> "AsyncIterator[Browser]":
        socket = await session.ws_connect(f"ws://127.0.0.1:{self._port}{path}", max_msg_size=0)
        browser = Browser(socket)
        reading = asyncio.create_task(browser.read())
        try:
            yield browser
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await socket.close()


class Browser:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._loading: set[str] = set()
        """Frames."""
        self.complaints: list[str] = []
        """What the page logged as an error, and what broke its policy."""
        self.asked: list[str] = []
        """URLs that the page asked for, in order."""
        self.bytes_received = 0
        """Of what it asked for, with heads, as they came over the wire."""

    @classmethod
    @asynccontextmanager
    async def open(cls, profile: Path) -> "AsyncIterator[Browser]":
        """Start a browser with a profile of its own for one page, and end it."""
        with Chromium.running(profile) as chromium:
            async with chromium.page() as page:
                yield page

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
        """Give the value of an expression in the page; of a promise what it comes to."""
        told = await self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true. Between two pages it has no value."""
        async with asyncio.timeout(_LONG_S):
            while await self._value(script) is not True:  # noqa: ASYNC110  # the page tells nobody
                await asyncio.sleep(0.04)

    async def shows(self, *words: str) -> str:
        """Wait until the page shows all of these; give the text that it shows."""
        text = ""
        missing = list(words)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONG_S):
                while missing := [
                    word for word in words if word not in text
                ]:  # the page tells nobody
                    text = await self.text()
                    await asyncio.sleep(0.05)
        assert missing == [], text
        return text

    async def nodes(self, role: str = "", name: str = "") -> list[Node]:
        """Give what the page has of a role, in its order; `name` is a regular expression that is searched for."""
        # Chromium's page crashes, now and then, when it is asked for the tree of a document that comes or goes.
        root = (await self.call("DOM.getDocument", depth=0)).get("root", {})
        is_there = await self._value(_IS_DRAWN)
        if self._loading or not is_there:
            return []
        if role:  # a third of what all of the tree costs
            told = await self.call(
                "Accessibility.queryAXTree", backendNodeId=root.get("backendNodeId", 0), role=role
            )
        else:
            told = await self.call("Accessibility.getFullAXTree")
        # Between two pages there is none.
        found = [_node(one) for one in told.get("nodes", ()) if not one.get("ignored")]
        wanted = re.compile(name)
        return [one for one in found if role in ("", one.role) and wanted.search(one.name)]

    async def find(self, role: str, name: str = "") -> Node:
        """Wait until the page has exactly one such, and give it."""
        found: list[Node] = []
        try:
            async with asyncio.timeout(_LONG_S):
                while len(found := await self.nodes(role, name)) != 1:  # noqa: ASYNC110  # the page tells nobody
                    await asyncio.sleep(0.08)
        except TimeoutError:
            names = [one.name for one in await self.nodes(role)]
            raise AssertionError(f"{len(found)} of {role} {name!r}; there are {names}") from None
        return await self._with_text(found[0])

    async def click(self, role: str, name: str = "") -> Node:
        """Click into the middle of the one such, and give it."""
        found = await self.find(role, name)
        await self.call("DOM.scrollIntoViewIfNeeded", backendNodeId=found.number)
        corners = await self._corners(found)
        async with asyncio.timeout(_LONG_S):
            while (now := await self._corners(found)) != corners:  # what arrives above it moves it
                corners = now
        place = {"x": sum(corners[::2]) / 4, "y": sum(corners[1::2]) / 4}
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place
            )
        return found

    async def _corners(self, node: Node) -> list[float]:
        """Give the four corners of a control in the window, as x and y in turns."""
        told = await self.call("DOM.getContentQuads", backendNodeId=node.number)
        return list(told["quads"][0])

    async def press(self, key: str, times: int = 1) -> None:
        """Press a key: `Tab`, `Shift+Tab`, `ArrowRight`, or a letter."""
        *held, key = key.split("+") if key != "+" else ["+"]
        text = _TEXTS.get(key, key if len(key) == 1 else "")
        what: dict[str, Any] = {
            "key": key,
            "code": f"Key{key.upper()}" if key.isalpha() and len(key) == 1 else key,
            "windowsVirtualKeyCode": _KEYS.get(key, ord(key.upper()[0])),
            "modifiers": _SHIFT if held or (len(key) == 1 and key.isupper()) else 0,
        }
        for _ in range(times):
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **what)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    async def write(self, text: str) -> None:
        """Write into the control that has the focus."""
        await self.call("Input.insertText", text=text)

    async def focused(self) -> Node:
        """Give the control that has the focus."""
        told = await self.call("Runtime.evaluate", expression="document.activeElement")
        number = told["result"].get("objectId")
        if number is None:  # the page is still coming
            return Node("", "")
        tree = await self.call(
            "Accessibility.getPartialAXTree", objectId=number, fetchRelatives=False
        )
        return await self._with_text(_node(tree["nodes"][0]))

    async def _with_text(self, node: Node) -> Node:
        """Give a slider the text of its value, which Chromium's tree of nodes leaves out."""
        if node.role != "slider":
            return node
        told = await self.call("DOM.describeNode", backendNodeId=node.number)
        pairs = itertools.batched(told["node"]["attributes"], 2)
        return replace(node, value=dict(pairs).get("aria-valuetext", node.value))

    async def focus(self, role: str, name: str = "") -> Node:
        """Give the focus to the one such control, however many stops away it is; give it."""
        found = await self.find(role, name)
        await self.call("DOM.focus", backendNodeId=found.number)
        return found

    async def tab_to(self, role: str, name: str = "", most: int = 200) -> Node:
        """Press Tab until such a control has the focus; give it. Each stop has a role and a name."""
        stops = []
        for _ in range(most):
            await self.press("Tab")
            here = await self.focused()
            stops.append(f"{here.role} {here.name!r}")
            if here.role == role and re.search(name, here.name):
                return here
        raise AssertionError(f"Tab leads to no {role} {name!r}, but to {stops}")

    async def text(self) -> str:
        """Give the text that is shown."""
        return str(await self._value("document.body?.innerText ?? ''") or "")

    async def _value(self, script: str) -> Any:
        """Give the value of an expression; of one that has none, None."""
        told = await self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        return told.get("result", {}).get("value")

    async def heap_bytes(self) -> int:
        """Give what the page's scripts hold, garbage aside."""
        await self.call("HeapProfiler.collectGarbage")
        told = await self.call("Runtime.getHeapUsage")
        return int(told["usedSize"])

    async def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Give the window a size in pixels, and a colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self) -> bytes:
        """Give a picture of what is in view: WebP, which takes a third of what PNG takes."""
        told = await self.call("Page.captureScreenshot", format="webp", quality=80)
        return b64decode(told["data"])

    async def read(self) -> None:
        """Hear what the browser says, until it says no more."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                future = self._waiting.pop(told["id"])
                if not future.done():
                    future.set_result(told.get("result", {"error": told.get("error")}))
            elif told["method"] == "Page.frameStartedLoading":
                self._loading.add(told["params"]["frameId"])
            elif told["method"] in ("Page.frameStoppedLoading", "Page.frameDetached"):
                self._loading.discard(told["params"]["frameId"])
            elif told["method"] == "Inspector.targetCrashed":
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(AssertionError("Chromium's page has crashed"))
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.complaints.append(told["params"]["entry"]["text"])
            elif told["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(told["params"]["exceptionDetails"]))
            elif told["method"] == "Runtime.consoleAPICalled" and told["params"]["type"] in _LOUD:
                self.complaints.append(str(told["params"]["args"]))
            elif told["method"] == "Network.requestWillBeSent":
                self.asked.append(told["params"]["request"]["url"])
            elif told["method"] == "Network.webSocketCreated":
                self.asked.append(told["params"]["url"])
            elif told["method"] == "Network.loadingFinished":
                self.bytes_received += int(told["params"]["encodedDataLength"])


def _node(told: dict[str, Any]) -> Node:
    properties = {one["name"]: one["value"].get("value") for one in told.get("properties", ())}
    value = told.get("value", {}).get("value", "")
    return Node(
        str(told.get("role", {}).get("value", "")),
        str(told.get("name", {}).get("value", "")),
        str(value),
        properties,
        int(told.get("backendDOMNodeId", 0)),
    )


def _read_port(file: Path) -> tuple[int, str]:
    """Wait until the browser has written on which port and at which path it listens."""
    until = time.monotonic() + _LONG_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError, ValueError):
            port, path = file.read_text().splitlines()
            return int(port), path
        time.sleep(0.02)  # the browser tells nobody
    raise AssertionError(f"Chromium did not write {file}")
