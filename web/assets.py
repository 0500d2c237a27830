"""The files that pages load: one style sheet and modules of JavaScript, all of them our own."""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).parent / "static"
PREFIX = "/static/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What a browser may load for a page: our own files, and nothing that is written into the page."""
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    data: bytes
    kind: str
    """Its content type."""


@lru_cache
def load_assets() -> dict[str, Asset]:
    """Give all files by name."""
    return {
        path.name: Asset(path.read_bytes(), _KINDS[path.suffix])
        for path in sorted(STATIC.iterdir())
        if path.suffix in _KINDS
    }


@lru_cache
def version() -> str:
    """Name the state of all files: a page of an older version loads none of a newer one."""
    digest = sha256()
    for name, asset in load_assets().items():
        digest.update(name.encode() + b"\0" + asset.data)
    return digest.hexdigest()[:12]


def asset_path(name: str) -> str:
    """Give the address of a file."""
    return f"{PREFIX}{version()}/{name}"
