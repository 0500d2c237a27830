"""Recorded text for a page: bounded, and with every control character and mark of direction shown as an escape."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from ...tape.shell_words import shell_word
from ...tape.visible_text import is_visible
from ...timeline.show.multiline_text import safe_line

LINE = 200
"""Characters of a text on one line."""
BLOCK = 4000
"""Characters of a text of several lines."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as it is shown."""

    text: str
    left_out: int = 0
    """Bytes of what is not shown."""


def safe_block(text: str) -> str:
    """Give a text of several lines without anything that a page or a terminal acts on."""
    if is_visible(text):
        return text
    return "\n".join(safe_line(line.replace("\r", "\\r")) for line in text.split("\n"))


def safe_short(text: str, most: int = LINE) -> str:
    """Give a text as one line of at most `most` characters."""
    begin = " ".join(text[: 4 * most + 64].split())
    shown = safe_line(begin)
    if len(shown) <= most and len(text) <= 4 * most + 64:
        return shown
    return shown[: most - 1] + "…"


def safe_word(word: object) -> str:
    """Write a word of a command that a person may copy, in one line."""
    return safe_short(shell_word(word))


def show_block(text: str, most: int = BLOCK) -> Shown:
    """Give the beginning of a text, and how many bytes are left out."""
    if len(text) <= most:
        return Shown(safe_block(text))
    left = len(text[most:].encode("utf-8", "surrogatepass"))
    return Shown(safe_block(text[:most]), left)


def show_time(us: float) -> str:
    """Give a length of time in a few characters."""
    if us < 1000:
        return f"{us:.0f} µs"
    if us < 1_000_000:
        return f"{us / 1000:.0f} ms"
    seconds = us / 1e6
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def show_clock(at_ns: int) -> str:
    """Give a moment on this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ns / 1e9)) if at_ns else ""


def machine_time(at_ns: int) -> str:
    """Give a moment for a `time` element."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds")


def show_bytes(count: int) -> str:
    """Give a size in a few characters."""
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count_in = count / {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        if count_in < 999.5 or unit == "GB":
            return f"{count_in:.1f} {unit}" if count_in < 10 else f"{count_in:.0f} {unit}"
    return ""
