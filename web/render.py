"""Templates: what was recorded is put into them as text, never as markup."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .assets import asset_path
from .views.addresses import run_path, segment_of
from .views.safe_text import (
    machine_time,
    safe_block,
    safe_short,
    safe_word,
    show_bytes,
    show_clock,
    show_time,
)

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def render(name: str, /, **values: Any) -> str:
    """Give a page, or a part of one.

    name: of the template, without its ending.
    """
    return _environment().get_template(f"{name}.html").render(**values)


def thousands(number: int) -> str:
    """Give a number with its thousands apart."""
    return f"{number:,}"


def warm_up() -> None:
    """Read the templates, which takes longer than to render any."""
    for path in TEMPLATES.iterdir():
        _environment().get_template(path.name)


@lru_cache
def _environment() -> "Environment":
    # Reading it takes a third of a second, which no command is to pay that shows no page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "block": safe_block,
        "short": safe_short,
        "word": safe_word,
        "took": show_time,
        "clock": show_clock,
        "iso": machine_time,
        "size": show_bytes,
        "number": thousands,
        "segment": segment_of,
    }
    made.globals |= {"run_path": run_path, "asset": asset_path}
    return made
