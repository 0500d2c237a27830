"""Colour for a terminal, where there is one that wants it."""

import sys

import click

from ...timeline.diff.render import Paint, plainly
from ..standard_streams import wants_colour

_STYLES: dict[str, dict[str, object]] = {
    "first": {"fg": "red"},
    "second": {"fg": "green"},
    "root": {"bold": True},
}


def find_paint() -> Paint:
    """Give what paints a text for standard output; what changes nothing where that is no terminal, or `NO_COLOR` is set."""
    return _paint if wants_colour(sys.stdout) else plainly


def _paint(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style])  # type: ignore[arg-type]  # by name
