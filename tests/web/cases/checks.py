"""What has to hold of a page, and of a shared file, that shows hostile text."""

import json
import re
import unicodedata
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
    return {one for one in text if unicodedata.category(one) in hidden} - {"\n", "\t"}


def check_shown(payload: Payload, text: str) -> None:
    """Check that a payload is there, letter by letter where it is one that is shown so."""
    assert payload.marker in text, payload.name
    if payload.is_shown and len(payload.text) <= _SHOWN_WHOLE:
        wanted = re.sub(r"\s", "", payload.text)
        quoted = re.sub(r"\s", "", json.dumps(payload.text, ensure_ascii=False)[1:-1])
        shown = re.sub(r"\s", "", text)
        assert wanted in shown or quoted in shown, payload.name
