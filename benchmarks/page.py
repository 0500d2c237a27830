"""What the page costs in a browser: first paint, a step of a scrubber, what is sent to open a run, and the heap, against the bars.

A run is written into a store made for it, unless one is given. Chromium opens it without a window, with a fresh profile each time, and
is pressed keys. A step is from a key to the next frame with the next place: cursor, list, sliders and seq. What a step holds follows once the
keys pause; `shown` is from a key to that.

uv run python benchmarks/page.py [EXCHANGES [STORE]]
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median

from playhead.tests.support.browser import Browser
from playhead.tests.web.cases.long_store import RUN, write_long_store
from playhead.tests.web.cases.page_process import Ui, path_of

EXCHANGES = 5_000
PAINT_BARS_MS = {5_000: 500, 100_000: 1500}
STEP_BAR_MS, SENT_BAR, HEAP_BAR = 16, 300_000, 80_000_000
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


def main(arguments: list[str]) -> int:
    """Print each figure with its bar; give 1 where one is above it."""
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
