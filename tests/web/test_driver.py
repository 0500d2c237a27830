"""The driver of the page's tests: it finds controls by role and name, presses keys, clicks, and hears complaints."""

from pathlib import Path

from playhead.tests.support.browser import Browser
from playhead.tests.support.needs import need

PAGE = """<!doctype html><html lang="en"><title>one</title>
<meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'unsafe-inline'">
<main><h1>Try</h1><p><a href="#x">Go on</a> <button id="b" aria-pressed="false">Tree</button></p>
<div role="slider" tabindex="0" aria-label="Time" aria-valuemin="1" aria-valuemax="7" aria-valuenow="1"
aria-valuetext="step 1 of 7" id="s"></div><input aria-label="Reason"><button hidden>Away</button></main>
<script>
b.onclick = () => b.setAttribute("aria-pressed", "true");
s.onkeydown = (event) => { if (event.key === "ArrowRight") s.setAttribute("aria-valuetext", "step 2 of 7");
  if (event.key === "E" && event.shiftKey) s.setAttribute("aria-valuetext", "an effect"); };
</script>"""


async def test_controls_are_found_clicked_and_typed_into(tmp_path: Path) -> None:
    """By what an assistive technology is given, as a person would."""
    need("Chromium")
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    async with Browser.open(tmp_path / "profile") as browser:
        await browser.go(page.as_uri())
        assert (await browser.find("heading", "^Try$")).name == "Try"
        assert [one.name for one in await browser.nodes("button")] == ["Tree"]
        await browser.click("button", "^Tree$")
        assert await browser.run("b.getAttribute('aria-pressed')") == "true"
        assert (await browser.tab_to("slider", "^Time$")).value == "step 1 of 7"
        await browser.press("ArrowRight")
        assert (await browser.focused()).value == "step 2 of 7"
        await browser.press("E")
        assert (await browser.focused()).value == "an effect"
        await browser.tab_to("textbox", "^Reason$")
        await browser.write("fine")
        assert await browser.run("document.querySelector('input').value") == "fine"
        await browser.press("Shift+Tab")
        assert (await browser.focused()).name == "Time"
        await browser.resize(400, dark=True)
        assert await browser.run("innerWidth") == 400
        assert await browser.run("matchMedia('(prefers-color-scheme: dark)').matches") is True
        assert await browser.heap_bytes() > 10_000
        assert "Try" in await browser.text()
        assert browser.complaints == []


async def test_what_a_page_does_wrong_is_heard(tmp_path: Path) -> None:
    """An error, a line in the console, what its policy refuses, and whom it asks."""
    need("Chromium")
    page = tmp_path / "page.html"
    page.write_text(
        PAGE.replace("</main>", '<img src="http://127.0.0.1:9/a.png"></main>')
        + "<script>console.error('loud'); queueMicrotask(() => { throw new Error('thrown') })</script>"
    )
    async with Browser.open(tmp_path / "profile") as browser:
        await browser.go(page.as_uri())
        await browser.find("heading", "^Try$")
        await browser.until("document.readyState === 'complete'")
        complaints = " ".join(browser.complaints)
        assert [one for one in ("loud", "thrown", "127.0.0.1:9") if one not in complaints] == []
        assert page.as_uri() in browser.asked
