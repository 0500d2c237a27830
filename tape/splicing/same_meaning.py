"""Say whether two recorded answers to one question mean the same, and which texts in them are another without meaning another thing.

Two answers of a model mean the same if they call the same tools with the same arguments or, without a call, say the same text. Any two
others do if body and header fields are equal but for what looks like an id or a time, and for fields about the transfer. What differs all the same, such as the words beside a call or the id
of it, is *wording*: an agent sends it back, and then the next question differs by it, and by nothing that matters.
"""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..dialects import InferenceResponse, Thinking, ToolCall, read_response
from ..diff.align import find_made_anew
from ..exchange import Exchange, Response
from ..records.content_coding import read_codings, undo_coding
from ..stubs.synthesize import UNTRUE

_OF_THE_TRANSFER = UNTRUE | frozenset(
    b"content-encoding date expires nel report-to server-timing via x-cache x-cache-hits x-envoy-upstream-service-time"
    b" x-process-time x-response-time x-runtime x-served-by x-timer openai-processing-ms".split()
)
"""Header fields that differ each time, or that are not given with an answer in the place of another (`reused_answer.py`)."""
_COUNTERS = (b"ratelimit", b"x-ratelimit-", b"x-rate-limit-")
_LEAST = 6
"""Characters from which on a text is wording: a shorter one may stand anywhere."""


class Compared(NamedTuple):
    """What comparing two answers gives."""

    same: bool
    """Whether they mean the same."""
    wording: tuple[tuple[str, str], ...] = ()
    """Texts of the first, each with its counterpart; of answers that mean the same alone."""


def compare_answers(one: Exchange, other: Exchange) -> Compared:
    """Compare the answers of two exchanges."""
    first, second = one.response, other.response
    if first is None or second is None or one.fault or other.fault or one.gone or other.gone:
        return Compared(_outcome(one) == _outcome(other))
    if first.status != second.status or first.spilled or second.spilled:
        return Compared((first.status, first.spilled) == (second.status, second.spilled))
    told, said = read_response(one.request, first), read_response(other.request, second)
    if told is not None and said is not None and told.error is None and said.error is None:
        return _compare_models(told, said)
    fields = _compare_texts(_show_fields(first), _show_fields(second))
    if not fields.same:
        return fields
    bodies = _compare_texts(plain_text(first), plain_text(second))
    return Compared(bodies.same, (*fields.wording, *bodies.wording) if bodies.same else ())


def _show_fields(response: Response) -> str:
    """Give the header fields that an agent may act on, in the order of their names."""
    fields = [(name.lower(), value) for name, value in response.headers]
    shown = [
        name + b": " + value
        for name, value in sorted(fields, key=lambda field: field[0])
        if name not in _OF_THE_TRANSFER and not name.startswith(_COUNTERS)
    ]
    return b"\n".join(shown).decode("latin-1")


def plain_text(response: Response) -> str:
    """Give a body as text, its codings undone."""
    coding = read_codings(response.headers)
    plain = undo_coding(response.body, coding) if coding else response.body
    return (response.body if plain is None else plain).decode("utf-8", "surrogateescape")


def _outcome(exchange: Exchange) -> object:
    """Give what came of an exchange that was not answered whole."""
    response, fault, gone = exchange.response, exchange.fault, exchange.gone
    return (
        (response.status, response.body) if response is not None else None,
        (fault.kind, fault.phase) if fault is not None else None,
        (gone.head, gone.chunks) if gone is not None else None,
    )


def _compare_models(one: InferenceResponse, other: InferenceResponse) -> Compared:
    first, second = (sorted(answer.tool_calls, key=_call) for answer in (one, other))
    if not first and not second:
        return Compared(" ".join(one.text.split()) == " ".join(other.text.split()))
    if list(map(_call, first)) != list(map(_call, second)):
        return Compared(False)
    texts = [(one.text, other.text)]
    for mine, theirs in zip(first, second, strict=True):
        texts += [(mine.id or "", theirs.id or ""), (mine.text or "", theirs.text or "")]
    texts += zip(_thoughts(one), _thoughts(other), strict=False)
    return Compared(True, tuple(_wording(texts)))


def _call(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)} {call.text if call.arguments is None else ''}"


def _thoughts(answer: InferenceResponse) -> Iterator[str]:
    for choice in answer.choices:
        for part in choice.message.parts:
            if isinstance(part, Thinking):
                yield from (part.text, part.signature or "")


def _compare_texts(one: str, other: str) -> Compared:
    if one == other:
        return Compared(True)
    (first, mine), (second, theirs) = find_made_anew(one), find_made_anew(other)
    if first != second or len(mine) != len(theirs):
        return Compared(False)
    return Compared(True, tuple(_wording(zip(mine, theirs, strict=True))))


def _wording(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for mine, theirs in texts:
        if mine != theirs and min(len(mine), len(theirs)) >= _LEAST:
            yield mine, theirs
