"""Colour for a terminal, where there is one that wants it."""

import os
import sys

import click

from ...timeline.diff.render import Paint, plainly

_STYLES: dict[str, dict[str, object]] = {
    "first": {"fg": "red"},
    "second": {"fg": "green"},
    "root": {"bold": True},
}


def find_paint() -> Paint:
    """Give what paints a text for standard output; what changes nothing where that is no terminal, or `NO_COLOR` is set."""
    wanted = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return _paint if wanted and sys.stdout is not None and sys.stdout.isatty() else plainly


def _paint(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style])  # type: ignore[arg-type]  # by name
