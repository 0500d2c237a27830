"""Which blocks of a playback are which of the tape: the names in a list of blocks are compared by what was sent under them.

Names are random, and count by being there alone (`canonical/azure_block_names.py`). Each was sent with a block, which was
matched by its content. So a list is the recorded one if its names stand for the same blocks in the same order. Blocks with the
same content are one: which of them was sent first is a matter of luck. A name stands for the last block that was sent under it
before the list, on each side. A name under which nothing was sent is compared as it is.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator

from ..canonical.azure_block_names import find_block_names
from ..diff.divergence_types import Difference
from ..exchange import Exchange, Fingerprint, Request, Seq

_MOST = 50_000
"""Names remembered of each side; those sent longest ago go first."""

_Names = OrderedDict[tuple[str, str], list[tuple[Seq, Fingerprint]]]
"""By blob and name; what was sent, by the fingerprint of the recorded request. Those of the tape by their seq."""


class SentBlocks:
    """The blocks that were sent in one playback."""

    def __init__(self) -> None:
        self._recorded: _Names = OrderedDict()
        self._present: _Names = OrderedDict()

    def note(self, request: Request, recorded: Exchange) -> None:
        """Remember the block that a request sends, and that of the recorded one which answers it."""
        new, old = find_block_names(request), find_block_names(recorded.request)
        if new is not None and old is not None and new.sent and old.sent:
            sent = (recorded.seq, recorded.fingerprint)
            _keep(self._present, (_blob(request), new.sent))[:] = [sent]
            insort(_keep(self._recorded, (_blob(recorded.request), old.sent)), sent)

    def find_mistaken(self, request: Request, recorded: Exchange) -> Iterator[Difference]:
        """Give the places of a list of blocks that name another block than the recorded list does."""
        new, old = find_block_names(request), find_block_names(recorded.request)
        if new is None or old is None:
            return
        for number, (then, now) in enumerate(zip(old.listed, new.listed, strict=False)):
            present = self._present.get((_blob(request), now), [])
            sent = present[-1][1] if present else None
            meant = self._find_meant((_blob(recorded.request), then), recorded.seq)
            if sent != meant or (sent is None and then != now):
                yield Difference(f"body block {number}", then, now)

    def _find_meant(self, name: tuple[str, str], listed: Seq) -> Fingerprint | None:
        """Find the block that a name stood for when a list of the tape was sent."""
        sent = self._recorded.get(name, [])
        before = bisect_left(sent, (listed, b""))
        return sent[before - 1][1] if before else None


def _blob(request: Request) -> str:
    return request.url.partition("?")[0]


def _keep(names: _Names, name: tuple[str, str]) -> list[tuple[Seq, Fingerprint]]:
    """Give what was sent under a name, which is not forgotten next."""
    sent = names.setdefault(name, [])
    names.move_to_end(name)
    if len(names) > _MOST:
        names.popitem(last=False)
    return sent
