"""The addresses of pages.

A browser takes `.` and `..` out of a path, also as `%2E`, so a run of such a name has another spelling there: `~.` and `~..`. A name that
looks like such a spelling gets one more `~`. `web/static/net.js` does the same.
"""

import re
from urllib.parse import quote

_DOTS = re.compile(r"~*\.{1,2}")
"""Names that are written another way. Source: WHATWG URL, "single-dot and double-dot URL path segment"."""


def run_path(run: str) -> str:
    """Give the address of a run's page."""
    return f"/runs/{segment_of(run)}"


def segment_of(name: str) -> str:
    """Write the name of a run as a segment of a path."""
    return f"~{name}" if _DOTS.fullmatch(name) else quote(name, safe="")


def name_of(segment: str) -> str:
    """Give the name that a segment, whose percent-encodings were decoded, was written for."""
    return segment[1:] if segment.startswith("~") and _DOTS.fullmatch(segment) else segment
