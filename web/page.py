"""A page with the policy under which a browser shows it."""

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """HTML, and its content security policy."""

    text: str
    policy: str


@lru_cache
def load_page(name: str) -> Page:
    """Give a page of this folder; its own script and style run, nothing else does, and nothing else is asked."""
    text = (Path(__file__).parent / f"{name}.html").read_text("utf-8")
    allowed = {"script": [], "style": []}  # type: dict[str, list[str]]
    for kind, inner in _INLINE.findall(text):
        allowed[kind].append(f"'sha256-{b64encode(sha256(inner.encode()).digest()).decode()}'")
    policy = (
        f"default-src 'none'; script-src {' '.join(allowed['script'])}; style-src {' '.join(allowed['style'])};"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text, policy)
