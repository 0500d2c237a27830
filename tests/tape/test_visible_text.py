"""What is shown has an escape for each character that nobody would see; what is seen stays."""

import unicodedata

import pytest

from playhead.tape.diff.divergence_types import one_line
from playhead.tape.visible_text import show_visibly
from playhead.timeline.receipts.render_text import show_text
from playhead.timeline.receipts.safe_terminal_text import plain
from playhead.timeline.show.fit import fit
from playhead.timeline.show.multiline_text import safe_line
from playhead.web.views.safe_text import safe_block, safe_short

FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
BLANKS = "\u2800\U00016fe4\U0001d159\xa0\u3000\u2003"
FORMATS = "\u200b\xad\u202e\u180e\u2060\u2064\u206f\ufff0\ufff9\U0001bca0\U0001d173\U000e0001"


@pytest.mark.parametrize("char", FILLERS + BLANKS + FORMATS, ids=lambda char: f"{ord(char):x}")
def test_what_nobody_sees_is_an_escape(char: str) -> None:
    """On a page, in a file and in a terminal."""
    text = f"acc{char}1"
    shown = f"acc{char.encode('unicode_escape').decode()}1"
    assert show_visibly(text) == safe_line(text) == safe_block(text) == plain(text) == shown
    assert one_line(text) == show_text(text.encode()) == shown
    folded = "acc 1" if char.isspace() else shown
    assert fit(text, 80) == safe_short(text) == folded


def test_what_is_seen_stays() -> None:
    """Of every writing, with its marks; and what a view keeps."""
    text = "Zażółć, \u1112\u1161\u11ab 한 ก็ हिन्दी \u2801 \u3131 ❤ 🙂"
    assert show_visibly(text) == text
    assert show_visibly("a\tb\n", "\t") == "a\tb\\n"
    seen = [chr(code) for code in range(0x30000) if unicodedata.category(chr(code))[0] in "LNPS"]
    hidden = {char for char in seen if show_visibly(char) != char}
    assert hidden == set("\u115f\u1160\u3164\uffa0\u2800\U0001d159")
