"""The steps of a run in memory: in pages, compressed, so that a long run costs little."""

import json
from collections import OrderedDict
from typing import Any
from zlib import compress, decompress

Steps = list[dict[str, Any]]

PAGE = 128
"""Exchanges of a page."""
_OPEN = 4
"""Pages that are kept unpacked."""
_ROOMY_BYTES = 32 << 20
"""Compressed size up to which the texts of steps are kept as the commands give them."""
_SHORT = 200
"""Characters of a text that are kept beyond that."""


class StepPages:
    """A list of steps for each exchange, by its position in the run. Not safe for several threads at once."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._last: list[Steps] = []
        self._size = 0
        self._open: OrderedDict[int, list[Steps]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._packed) * PAGE + len(self._last)

    def append(self, steps: Steps) -> None:
        """Add the steps of the next exchange."""
        self._last.append(self._shortened(steps) if self._size > _ROOMY_BYTES else steps)
        if len(self._last) == PAGE:
            self._packed.append(compress(json.dumps(self._last, separators=(",", ":")).encode(), 3))
            self._size += len(self._packed[-1])
            self._last = []

    def get(self, position: int) -> Steps:
        """Give the steps of an exchange; none where there are none yet."""
        number, place = divmod(position, PAGE)
        if number == len(self._packed):
            return self._last[place] if place < len(self._last) else []
        if number > len(self._packed):
            return []
        return self._unpacked(number)[place]

    def extend(self, position: int, steps: Steps) -> None:
        """Add steps to an exchange that is there: what came behind it."""
        number, place = divmod(position, PAGE)
        if number == len(self._packed):
            self._last[place] = [*self._last[place], *steps]
            return
        page = [*self._unpacked(number)]
        page[place] = [*page[place], *steps]
        self._packed[number] = compress(json.dumps(page, separators=(",", ":")).encode(), 3)
        self._open[number] = page

    def _unpacked(self, number: int) -> list[Steps]:
        found = self._open.get(number)
        if found is None:
            found = json.loads(decompress(self._packed[number]))
            self._open[number] = found
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(number)
        return found

    @staticmethod
    def _shortened(steps: Steps) -> Steps:
        short = []
        for step in steps:
            more = max(0, len(step["text"]) - _SHORT)
            cut = {"text": step["text"][:_SHORT], "text_left_out": step["text_left_out"] + more}
            short.append({**step, **cut, "name": step["name"][:_SHORT]})
        return short
