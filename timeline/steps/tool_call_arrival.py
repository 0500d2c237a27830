"""When the tool calls of an answer had come to the agent: a request that was sent before cannot be of them.

The rule of `seen_answer`, which blame has, too. What a tape answered had come before all that follows it.
"""

from dataclasses import replace

from ...tape.dialects import ToolCall, read_response
from ...tape.exchange import Exchange, Seq, VerdictKind
from ...tape.matching.dependence import seen_answer

_EVER = 1 << 62


class Arrival:
    """The answer of one model call on its way."""

    def __init__(self, exchange: Exchange) -> None:
        """Begin.

        exchange: with the answer, of a WebSocket that of one model call.
        """
        response = exchange.response
        chunks = response.chunks if response is not None else ()
        self._exchange: Exchange | None = None
        self._since: list[int] = []
        """By the tool calls of the answer: the highest seq that had arrived before all of it."""
        is_by_tape = exchange.verdict is VerdictKind.SERVED
        self._last = max((one.after for one in chunks), default=0)
        if not is_by_tape and (exchange.gone is not None or self._last > exchange.seq):
            self._exchange = exchange  # something arrived before the end of it

    def had_come(self, at: int, seq: Seq) -> bool:
        """Say whether a tool call had come when a request was sent.

        at: its place among the tool calls of the answer, from 0.
        """
        exchange = self._exchange
        if exchange is None or (seq > self._last and exchange.gone is None):
            return True
        if not self._since:
            self._since = _find_since(exchange)
        return at < len(self._since) and self._since[at] < seq


def _find_since(exchange: Exchange) -> list[int]:
    """Find for each tool call the highest seq that had arrived before the agent had all of it."""
    response = exchange.response
    whole = _calls(exchange, _EVER)
    levels = sorted({one.after for one in response.chunks}) if response is not None else []
    found: list[int] = []
    for at, call in enumerate(_calls(replace(exchange, gone=None), _EVER)):
        if whole[at : at + 1] != [call]:
            found.append(_EVER)  # the client had left before
            continue
        low, high = 0, len(levels)
        while low < high:
            middle = (low + high) // 2
            if _calls(exchange, levels[middle] + 1)[at : at + 1] == [call]:
                high = middle
            else:
                low = middle + 1
        found.append(levels[low] if low < len(levels) else 0)
    return found or [_EVER]


def _calls(exchange: Exchange, before: int) -> list[ToolCall]:
    """Give the tool calls that the agent can have seen when a request came."""
    seen = seen_answer(exchange, Seq(before))
    if seen is None or seen.spilled is not None:
        return []
    answer = read_response(exchange.request, seen)
    message = answer.message if answer is not None else None
    return list(message.tool_calls) if message is not None else []
