"""Search a text that goes on where an earlier one of its run ended: only what is new is scanned.

A conversation sends all that was said with every request. What heads and learned values match at a place depends on no more than
`MOST_WIDTH` bytes, or the longest needle, before its end. So places in what two texts have in common are the same ones, and the rest
is scanned with as much before it. Whatever is done with the places is done for the whole text, so its result is the same.

What was learned counts only while nothing was learned since. Texts are held in memory while their run is open, never written.
"""

from typing import NamedTuple

from .finding.finder import Finder, Looked
from .finding.pattern_prefilter import MOST_PLACES
from .learned import Learned

LEAST = 16 * 1024
"""Bytes below which a text is searched whole: that takes no longer than to compare."""
_MOST = 4 * 1024 * 1024
"""Bytes of a text that is remembered."""
_MOST_ALL = 8 * 1024 * 1024
"""Bytes of all that are remembered of one run."""
_MOST_TEXTS = 8
MOST_WIDTH = 1024
"""Bytes that a head matches at most."""
_END = 1024
"""Bytes at the end of a text that the next one may not begin with: what closes it."""
_PROBE = 64
_NEAR = 256
"""Bytes that are scanned again rather than compared."""


class _Text(NamedTuple):
    """A text that was searched to its end."""

    data: bytes
    looked: Looked | None
    known: tuple[bytes, ...] | None
    """The learned values of which it has none; None where it has some, or nobody asked."""


class Resumed:
    """The last texts of one run. May be used from any thread."""

    def __init__(self, finder: Finder, learned: Learned) -> None:
        """Take who finds places, and what was learned."""
        self._finder = finder
        self._learned = learned
        self._texts: tuple[_Text, ...] = ()

    def look(self, data: bytes) -> tuple[Looked | None, tuple[bytes, ...] | None]:
        """Give what `Finder.look` gives, and the learned values where a text has none of them, else None."""
        known = self._learned.values
        text, same = self._find(data)
        looked = self._go_on(data, text, same) if text is not None else self._finder.look(data)
        if text is not None and text.known is known:
            clean = self._learned.is_clean(data[max(0, same - self._learned.longest) :])
        else:
            clean = self._learned.is_clean(data)
        if len(data) <= _MOST and (looked is None or looked.searched == len(data)):
            new = _Text(data, looked, known if clean else None)
            self._texts = _newest([new, *(one for one in self._texts if one is not text)])
        return looked, known if clean else None

    def _find(self, data: bytes) -> tuple[_Text | None, int]:
        """Find the text that another one goes on from, and how many bytes at least they have in common."""
        begin = data[:_PROBE]
        texts = [text for text in self._texts if text.data[:_PROBE] == begin]
        for part in (1, 2) if texts else ():
            for text in texts:
                at = (len(text.data) - _END) // part
                if data[at - _PROBE : at] == text.data[at - _PROBE : at]:
                    same = _common(data, text.data, at)
                    if same >= LEAST // 2:
                        return text, same
        return None, 0

    def _go_on(self, data: bytes, text: _Text, same: int) -> Looked | None:
        start = max(0, same - MOST_WIDTH)
        more = self._finder.look(data[start:])
        before = text.looked
        places = [hit for hit in before.places if hit[0] <= same] if before is not None else []
        escaped = before is not None and before.escaped
        coloured = before is not None and before.coloured
        lettered = before is not None and before.lettered
        if more is not None:
            if more.searched < len(data) - start:
                return self._finder.look(data)
            places += [(end + start, which) for end, which in more.places if end + start > same]
            escaped = escaped or more.escaped
            coloured = coloured or more.coloured
            lettered = lettered or more.lettered
        if len(places) > MOST_PLACES:
            return self._finder.look(data)
        if not (places or escaped or coloured or lettered):
            return None
        return Looked(places, len(data), escaped, coloured, lettered)


def _newest(texts: list[_Text]) -> tuple[_Text, ...]:
    """Give as many of the first texts as may be remembered."""
    size, kept = 0, 0
    for text in texts[:_MOST_TEXTS]:
        size += len(text.data)
        if size > _MOST_ALL:
            break
        kept += 1
    return tuple(texts[:kept])


def _common(one: bytes, other: bytes, probed: int) -> int:
    """Give how many bytes two texts begin with alike, or some fewer."""
    low, high = 0, min(len(one), len(other))
    middle = probed
    while high - low > _NEAR:
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return low
