"""What has to hold of a page, and of a shared file, that shows hostile text."""

import json
import re
import unicodedata
from html.parser import HTMLParser
from urllib.parse import urlsplit

from playhead.tests.support.browser import Browser

from .payloads import EVIL, Payload

_SHOWN_WHOLE = 500
"""Characters: a longer text may be cut, and the page says how much is left out."""
_FOREIGN = """
(() => {
  const found = [], here = location.origin, says = (node) => found.push(node.outerHTML.slice(0, 200));
  const leads = ["href", "src", "srcset", "action", "formaction", "data", "ping", "poster", "background", "xlink:href"];
  for (const node of document.querySelectorAll("*")) {
    if (node.id === "pwned" || node.shadowRoot) says(node);
    if (["IFRAME", "OBJECT", "EMBED", "BASE", "FRAME", "PORTAL"].includes(node.tagName)) says(node);
    if (node.tagName === "META" && node.httpEquiv === "refresh") says(node);
    for (const one of node.attributes) {
      if (one.name.startsWith("on") || one.name === "style") says(node);
      if (!leads.includes(one.name)) continue;
      if (one.name === "srcset" || one.name === "ping") { says(node); continue; }
      const url = new URL(one.value, location.href);
      if (OUTSIDE) says(node);
    }
  }
  return found;
})()
"""
_ON_A_SERVER = "url.origin !== here || url.protocol !== 'http:'"
_IN_A_FILE = "!(one.value.startsWith('#') || url.protocol === 'data:' && node.tagName !== 'A' && node.tagName !== 'SCRIPT')"


async def check_harmless(browser: Browser, *, is_file: bool = False) -> str:
    """Check that nothing has run, been asked or become an element; give the text that is shown."""
    script = _FOREIGN.replace("OUTSIDE", _IN_A_FILE if is_file else _ON_A_SERVER)
    assert await browser.run("window.pwned === undefined && ({}).pwned === undefined") is True
    assert await browser.run(script) == []
    text = await browser.text()
    assert invisible(text) == set()
    assert invisible(await browser.run("document.title")) == set()
    return text


def check_quiet(browser: Browser, origin: str = "") -> None:
    """Check that the page complained of nothing and asked nobody else; `origin` is empty of a file."""
    assert browser.complaints == []
    foreign = [
        url
        for url in browser.asked
        if not url.startswith((f"{origin}/", "about:") if origin else ("file:", "about:", "data:"))
    ]
    assert foreign == []
    assert not any(EVIL in urlsplit(url).netloc for url in browser.asked)


def invisible(text: str) -> set[str]:
    """Give the characters of a text that nobody sees, or that change how others are seen."""
    hidden = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    fillers = set("\u034f\u115f\u1160\u2800\u3164\ufe0f\uffa0")
    found = {one for one in text if unicodedata.category(one) in hidden or one in fillers}
    return found - {"\n", "\t"}


def check_shown(payload: Payload, text: str) -> None:
    """Check that a payload is there, letter by letter where it is one that is shown so."""
    assert payload.marker in text, payload.name
    if payload.is_shown and len(payload.text) <= _SHOWN_WHOLE:
        wanted = re.sub(r"\s", "", payload.text)
        quoted = re.sub(r"\s", "", json.dumps(payload.text, ensure_ascii=False)[1:-1])
        shown = re.sub(r"\s", "", text)
        assert wanted in shown or quoted in shown, payload.name


def shown_text(page: str) -> str:
    """Give what a page shows before its script has run: without what is hidden, and what is folded."""
    reader = _Shown()
    reader.feed(page)
    return "".join(reader.found)


class _Shown(HTMLParser):
    """Collects the texts that are shown."""

    _VOID = frozenset(("br", "img", "input", "link", "meta", "option"))
    _NEVER = frozenset(("script", "style", "template", "textarea"))

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[tuple[str, bool]] = []
        """Elements that are open, each with whether it shows its texts."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Go into an element."""
        if tag in self._VOID:
            return
        names = {name for name, _ in attrs}
        shows = not self._open or self._open[-1][1]
        if self._open and self._open[-1][0] == "details (closed)":
            shows = tag == "summary" and (len(self._open) < 2 or self._open[-2][1])
        shows = shows and "hidden" not in names and tag not in self._NEVER
        is_closed = tag == "details" and "open" not in names
        self._open.append(("details (closed)" if is_closed else tag, shows))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        while self._open and self._open.pop()[0].partition(" ")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Take a text, unless it stands in what is folded."""
        if not self._open or (self._open[-1][1] and self._open[-1][0] != "details (closed)"):
            self.found.append(data)
