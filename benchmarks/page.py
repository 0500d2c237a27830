"""What the page costs: first paint, a step of a scrubber, what is sent to open a run, the heap, and the proxy's CPU, against the bars.

A run is written into a store made for it, unless one is given. Chromium opens it without a window, with a fresh profile each time, and
is pressed keys. A step is from a key to the next frame with the next place: cursor, list, sliders and seq. What a step holds follows once the
keys pause; `shown` is from a key to that.

With `--live` a proxy records 200 exchanges a second, with the page of their run open and without it, in turns: what the page
adds to the CPU of the proxy.

uv run python benchmarks/page.py [EXCHANGES [STORE]]
uv run python benchmarks/page.py --live [SECONDS]
"""

import asyncio
import contextlib
import http.client
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from urllib.parse import urlsplit

from playhead.tests.support.browser import Browser
from playhead.tests.support.process import Serve
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.web.cases.long_store import RUN, write_long_store
from playhead.tests.web.cases.page_process import Ui, path_of

EXCHANGES = 5_000
PAINT_BARS_MS = {5_000: 500, 100_000: 1500}
STEP_BAR_MS, SENT_BAR, HEAP_BAR = 16, 300_000, 80_000_000
_LIVE_S, _LIVE_RATE, _LIVE_TURNS, _LIVE_BAR = 60, 200, 2, 0.05
_OPENED, _STEPS, _SHOWN = 5, 200, 20
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_WATCH = """
window.took = []; window.pressed = 0;
addEventListener("keydown", () => { window.pressed = performance.now(); }, true);
new MutationObserver(() => {
  const seq = document.getElementById("place").innerText;
  if (window.pressed && seq !== window.seen) {
    requestAnimationFrame(() => { window.took.push(performance.now() - window.pressed); window.pressed = 0; });
    window.seen = seq;
  }
}).observe(document.body, { subtree: true, childList: true, characterData: true });
"""


async def measure(ui: Ui, count: int, folder: Path) -> dict[str, float]:
    """Open the run some times, then scrub through it; give medians."""
    cookie = await asyncio.to_thread(ui.open_session)
    name, _, value = cookie.partition("=")
    paints, sent, steps, shown, heap = [], [], [], [], 0
    for number in range(_OPENED):
        async with Browser.open(folder / f"profile-{number}") as browser:
            await browser.resize(1280)
            await browser.call("Network.setCookie", name=name, value=value, url=ui.origin)
            await browser.go(ui.address(path_of(RUN)))
            await browser.until(f"({_PAINT}) !== null")
            await browser.find("slider", "^Time$")
            paints.append(await browser.run(_PAINT))
            sent.append(browser.bytes_received)
            if number:
                continue
            await browser.tab_to("slider", "^Time$")
            await browser.press("Home")
            await browser.find("heading", r"^1\b")
            await browser.run(_WATCH)
            for seq in range(2, min(count, _STEPS) + 1):
                await browser.press("ArrowRight")
                await browser.until(f"window.took.length >= {seq - 1}")
            steps = await browser.run("window.took")
            for seq in range(_STEPS + 1, min(count, _STEPS + _SHOWN) + 1):
                began = await browser.run("performance.now()")
                await browser.press("ArrowRight")
                await browser.until(
                    f"(document.getElementById('step') || {{dataset: {{}}}}).dataset.seq === '{seq}'"
                )
                shown.append(await browser.run("performance.now()") - began)
            heap = await browser.heap_bytes()
    return {
        "paint": median(paints),
        "step": median(steps),
        "shown": median(shown or [0]),
        "sent": median(sent),
        "heap": heap,
    }


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"order": 7}'
    )


def _ask(proxy: str, run: str, origin: str, seconds: float) -> int:
    """Ask so many times a second through a proxy, over one connection; give how often."""
    place = urlsplit(proxy)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port)
    began, count = time.monotonic(), 0
    while count < seconds * _LIVE_RATE:
        wait = began + count / _LIVE_RATE - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        connection.request("GET", f"{origin}/orders/{count}", headers={"proxy-authorization": run})
        connection.getresponse().read()
        count += 1
    connection.close()
    return count


def _record(serve: Serve, run: str, origin: str, seconds: float) -> float:
    """Record a run of so many seconds; give the CPU seconds of the proxy."""
    given = "Basic " + b64encode(f"{run}:x".encode()).decode()
    before = _cpu_s(serve.process.pid)
    _ask(serve.url, given, origin, seconds)
    return _cpu_s(serve.process.pid) - before


def _cpu_s(pid: int) -> float:
    """Give the CPU seconds of one process, without the process that serves its pages."""
    return time.clock_gettime(~pid << 3 | 2)  # Source: clock_getcpuclockid(3), Linux


@contextmanager
def _looked_at(ui: Ui, run: str, folder: Path) -> Iterator[None]:
    """Have a page of a run open in a browser, on a thread of its own."""
    there, over = threading.Event(), threading.Event()

    async def look() -> None:
        async with Browser.open(folder) as browser:
            await browser.resize(1280)
            await ui.show(browser, path_of(run))
            there.set()
            await asyncio.to_thread(over.wait)

    looking = threading.Thread(target=lambda: asyncio.run(look()))
    looking.start()
    there.wait(60)
    try:
        yield
    finally:
        over.set()
        looking.join()


def measure_live(seconds: float) -> int:
    """Print what the page adds to the CPU of a proxy; give 1 where that is above its bar."""
    found: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as text, RawOrigin(_say_ok, lasting=True) as origin:
        folder = Path(text)
        store = folder / "store"
        config = folder / "playhead.yaml"
        # A run has to stay open while a browser starts.
        config.write_text(f"store: {store}\nlisten: 127.0.0.1:0\nruns: {{grace: 10m}}\n")
        with Serve("-c", config) as serve, Ui(store) as ui:
            _record(serve, "warm", origin.url, 2)
            for number in range(2 * _LIVE_TURNS):
                looked, run = bool(number % 2), f"live-{number}"
                _record(serve, run, origin.url, 1)
                profile = folder / f"profile-{number}"
                with _looked_at(ui, run, profile) if looked else contextlib.nullcontext():
                    found[looked].append(_record(serve, run, origin.url, seconds))
    without, beside = mean(found[False]), mean(found[True])
    added = beside / without - 1
    mark = "" if added < _LIVE_BAR else "  MISSED"
    print(f"{_LIVE_RATE} exchanges/s for {seconds:.0f} s, {_LIVE_TURNS} times each")
    print(
        f"  proxy without the page {without:6.2f} s of CPU, {[round(one, 2) for one in found[False]]}"
    )
    print(
        f"  with the page open     {beside:6.2f} s of CPU, {[round(one, 2) for one in found[True]]}"
    )
    print(f"  added {added:+.1%} of {_LIVE_BAR:.0%}{mark}")
    return int(added >= _LIVE_BAR)


def main(arguments: list[str]) -> int:
    """Print each figure with its bar; give 1 where one is above it."""
    if arguments[:1] == ["--live"]:
        return measure_live(float(arguments[1]) if arguments[1:] else _LIVE_S)
    count = int(arguments[0]) if arguments else EXCHANGES
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        store = (
            Path(arguments[1]) if len(arguments) > 1 else write_long_store(folder / "store", count)
        )
        with Ui(store) as ui:
            found = asyncio.run(measure(ui, count, folder))
    paint_bar = next((bar for most, bar in PAINT_BARS_MS.items() if count <= most), 1500)
    bars = {
        "paint": paint_bar,
        "step": STEP_BAR_MS,
        "shown": 250,
        "sent": SENT_BAR,
        "heap": HEAP_BAR,
    }
    units = {"paint": "ms", "step": "ms", "shown": "ms", "sent": "bytes", "heap": "bytes"}
    print(f"{count:,} exchanges")
    for name, value in found.items():
        mark = "" if value <= bars[name] else "  MISSED"
        print(f"  {name:6} {value:14,.1f} {units[name]:5} of {bars[name]:,}{mark}")
    return int(any(value > bars[name] for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
