"""Compare model calls whose tool results may stand in another order, and say whether the tools ran side by side.

Rules:

1. Two calls are the same but for order where they are equal in canonical form once each block of results is sorted by call id.
2. Another order is let through only for calls that overlapped while they were recorded: of what was asked between the turn of the
   model that made the calls and the request that lists their results, at least two were on their way at a time. Where each call asked
   for one thing, this holds for each pair of calls that stands in another order.
3. Tools that ask for nothing are seen by their results alone: where the recorded results do not stand in the order of the
   calls, they stand in the order in which the tools ended, so the tools ran side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ..canonical.canonical_request import (
    BodyKind,
    Rules,
    canonical,
    compared,
    fingerprint,
    open_body,
)
from ..canonical.json import json_tree, show_json
from ..dialects.common.sort_tool_results import Block, arrange_results
from ..exchange import Exchange, Request, RequestClass

_CLASS = RequestClass.INFERENCE


class Arranged(NamedTuple):
    """A model call with its results sorted."""

    form: bytes
    """Fingerprint of what it says."""
    blocks: tuple[Block, ...]
    """Its blocks of results as they stood."""


def arrange(
    request: Request, rules: Rules, redacted_query: frozenset[str] = frozenset()
) -> Arranged | None:
    """Sort the results of a model call; None where it has no block of several, or a body that is no JSON.

    Parses the body: to be kept off the event loop.
    """
    if request.spilled is not None:
        return None
    request = compared(request)
    try:
        tree = json_tree(open_body(request)[0].decode())
        blocks = arrange_results(tree)
    except (ValueError, RecursionError):
        return None
    if not blocks:
        return None
    body = show_json(tree).encode("utf-8", "surrogatepass")
    headers = tuple(pair for pair in request.headers if pair[0].lower() != b"content-encoding")
    form = canonical(replace(request, body=body, headers=headers), _CLASS, rules, redacted_query)
    if form.kind is not BodyKind.JSON:
        return None
    return Arranged(fingerprint(form), tuple(blocks))


def find_moved(recorded: Arranged, asked: Arranged) -> list[tuple[Block, Block]] | None:
    """Give the blocks that stand in another order, as recorded and as asked; None where more than order differs."""
    if recorded.form != asked.form or len(recorded.blocks) != len(asked.blocks):
        return None
    pairs = list(zip(recorded.blocks, asked.blocks, strict=True))
    if any(sorted(one) != sorted(other) for one, other in pairs):
        return None
    return [(one, other) for one, other in pairs if one != other]


class Span(NamedTuple):
    """When something was asked and answered, in nanoseconds."""

    began: int
    ended: int

    @classmethod
    def of(cls, exchange: Exchange) -> "Span":
        """Give that of an exchange."""
        return cls(exchange.started_ns, exchange.started_ns + exchange.end_us * 1000)

    def overlaps(self, other: "Span") -> bool:
        """Say whether both were on their way at a time."""
        return self.began < other.ended and other.began < self.ended


def ran_side_by_side(
    calls: Sequence[str], recorded: Block, asked: Block, spans: Sequence[Span]
) -> bool:
    """Say whether the calls of a block may end in any order.

    calls: keys in the order in which the model made them.
    spans: what was asked between, telemetry aside, in order of arrival.
    """
    if not spans:
        made = [key for key in calls if key in recorded]
        return len(made) == len(recorded) and tuple(made) != recorded
    if len(spans) == len(calls):
        span_of = dict(zip(calls, spans, strict=True))
        return all(
            one in span_of and other in span_of and span_of[one].overlaps(span_of[other])
            for one, other in _inverted(recorded, asked)
        )
    return any(one.overlaps(other) for one, other in combinations(spans, 2))


def _inverted(recorded: Block, asked: Block) -> Iterator[tuple[str, str]]:
    """Yield the pairs of results that stand the other way round."""
    at = {key: place for place, key in enumerate(asked)}
    for one, other in combinations(recorded, 2):
        if at[one] > at[other]:
            yield one, other
