"""When the tool calls of an answer had come to the agent: a request that was sent before cannot be of them.

The rule of `seen_answer`, which blame has, too. What a tape answered had come before all that follows it.
"""

import re
from dataclasses import replace
from urllib.parse import unquote

from ...tape.dialects import InferenceResponse, ToolCall, read_response
from ...tape.exchange import Exchange, Seq, VerdictKind
from ...tape.matching.dependence import seen_answer

_EVER = 1 << 62
_KEEPS = "openai-responses"
"""The dialect whose answers can be asked for by their ids."""
_RESPONSE = re.compile(r"(/responses)/([^/]+)(?:/cancel)?/?")


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


def read_late_answer(exchange: Exchange) -> tuple[Exchange, InferenceResponse] | None:
    """Read an answer that was made in the background, and is asked for by its id (OpenAI's Responses, "Background mode").

    Gives it with the exchange that it would have been, had the model call waited for it; None for one that is not there yet.
    """
    request, response = exchange.request, exchange.response
    found = _RESPONSE.search(request.path) if "/responses/" in request.path else None
    if found is None or found.end() != len(request.path) or request.method not in ("GET", "POST"):
        return None
    if response is None or response.spilled is not None or not 200 <= response.status < 300:
        return None
    made = replace(
        exchange, request=replace(request, method="POST", target=request.path[: found.end(1)])
    )
    answer = read_response(made.request, response)
    if answer is None or answer.id != unquote(found[2]) or not answer.complete:
        return None
    return (made, answer) if answer.finish_reason is not None else None


def is_to_come(answer: InferenceResponse) -> bool:
    """Say whether an answer has nothing but its id yet, under which it is asked for later."""
    is_open = answer.finish_reason is None and answer.error is None
    return answer.dialect == _KEEPS and bool(answer.id) and is_open and not _has_said(answer)


def _has_said(answer: InferenceResponse) -> bool:
    return any(choice.message.parts for choice in answer.choices)
