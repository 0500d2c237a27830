"""Find the recorded answers that a request depends on.

Rules:

1. B depends on A only if a value (`traceable_values.py`) that was first seen in A's answer stands in B's request.
2. First seen means: in nothing that was asked or answered before A's answer, A's own request included. So what
   every request carries (system prompts, names of models, schemas of tools) makes nothing depend on anything.
3. Only what can have reached the agent by then counts: pieces that arrived after B had been asked for did not,
   nor did those after the client had left. That is read from the order of arrival, never from times.

Finding out is left to the caller to bound: `may_hold` is a look at bytes, cheap enough for thousands.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from ..diff.divergence_types import Dependence
from ..exchange import Exchange, Request, RequestClass, Response, Seq
from .traceable_values import Values, answer_body, answer_values


def seen_answer(exchange: Exchange, before: Seq) -> Response | None:
    """Give what an agent can have seen of an answer when request `before` came; None for nothing."""
    response, gone = exchange.response, exchange.gone
    if response is None or exchange.request_class is RequestClass.TELEMETRY:
        return None
    if exchange.saw_nothing:
        return None
    chunks = response.chunks
    if gone is not None:
        chunks = chunks[: gone.chunks]
    size = 0
    for chunk in chunks:
        if chunk.after >= before:
            break
        size += chunk.size
    if chunks and not size:
        return None
    if not response.chunks or size == len(response.body):
        return response
    return replace(response, body=response.body[:size], chunks=())


def seen_values(exchange: Exchange, before: Seq) -> Values:
    """Give the values that an agent can have seen of an answer when request `before` came."""
    seen = seen_answer(exchange, before)
    return answer_values(seen) if seen is not None else {}


def find_shared(asked: Values, tape_seq: Seq, answered: Values) -> Iterator[Dependence]:
    """Give what a request may have from an answer, the longest value first."""
    for value in sorted(asked.keys() & answered.keys(), key=lambda one: (-len(one), one)):
        yield Dependence(tape_seq, asked[value], answered[value], value)


_CORES = (re.compile(rb"[A-Za-z0-9_.~-]+"), re.compile(rb"[A-Za-z0-9_.~ ,:;()-]+"))
_CORE = 8
"""Bytes of a value that are looked for: enough to find every place, and perhaps some too many."""


def core(value: str) -> tuple[bytes, ...]:
    """Give the bytes one of which stands wherever a value does, however it is written there."""
    told = value.encode("utf-8", "replace")
    for pattern in _CORES:
        longest = max(pattern.findall(told), key=len, default=b"")
        if len(longest) >= _CORE:
            return (longest,)
    escaped = json.dumps(value)[1:-1].encode()
    return (told, escaped, escaped.replace(b"\\", b"\\\\"))


def may_stand_in_request(request: Request, needles: tuple[bytes, ...]) -> bool:
    """Say whether a value may stand in a request: a look at its bytes, no parsing."""
    target = request.target.encode("utf-8", "replace")
    return any(
        needle in request.body
        or needle in target
        or any(needle in value for _, value in request.headers)
        for needle in needles
    )


def may_stand_in_answer(response: Response | None, needles: tuple[bytes, ...]) -> bool:
    """Say the same of an answer; what a stream spells out in pieces is put together first."""
    if response is None:
        return False
    body = answer_body(response)
    for needle in needles:
        if needle in body or any(needle in value for _, value in response.headers):
            return True
    if response.is_events:
        return any(needle in _spelt(response) for needle in needles)
    return False


def _spelt(response: Response) -> bytes:
    return "\n".join(answer_values(response)).encode("utf-8", "replace")
