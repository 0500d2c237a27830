"""The context of a model call for a page: the conversation as it was sent, with what entered and what left."""

from dataclasses import dataclass
from typing import Any

from ...timeline.show.listing import input_tokens
from ...timeline.state.calls_before import Exchanges
from ...timeline.state.context_parts import ContextPart
from ...timeline.state.find_state import Origin, State, find_state
from ...timeline.state.render import count_bytes, estimate_tokens
from .safe_text import Shown, safe_block, safe_short, show_block

WINDOW = 60
"""Parts that are shown at a time, the last ones first."""
_TEXT = 1600


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of a context."""

    number: int
    """Its place in the context, from 0; -1 of one that left."""
    what: str
    name: str
    text: Shown
    size: int
    change: str
    """`entered`, `left`, `perhaps left` or `kept`."""
    origin: int
    """The seq that first had it, as far as that is known; 0 otherwise."""


@dataclass(slots=True)
class ContextView:
    """The context of a model call."""

    state: State
    model: str
    system: Shown
    parts: list[PartView]
    total: int
    """Parts of the conversation."""
    earlier: int
    """Parts before those that are shown."""
    left: list[PartView]
    unknown: list[str]
    """Why it is not known whether more has left."""
    pending: list[str]
    next: list[str]
    tokens: list[tuple[str, int, float]]
    """By part, estimated: name, tokens, and the share of all in percent; bytes where none are stated."""
    stated: bool
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    tools: list[tuple[str, str]]
    held: list[tuple[int, list[PartView]]]
    since: str
    evidence: str
    rule: str


def view_context(
    exchanges: Exchanges,
    seq: int,
    part: int = 0,
    *,
    begin: int | None = None,
    window: int = WINDOW,
) -> ContextView:
    """Read the context at a step.

    begin: the first part that is shown; without it the last ones are.
    window: how many are shown.
    Raises: StoreError; LogCorrupt.
    """
    state = find_state(exchanges, seq, part)
    context = state.call.context
    said = [
        (number, one)
        for number, one in enumerate(state.parts)
        if context.items[one.item].system is None
    ]
    first = max(0, len(said) - window) if begin is None else min(max(begin, 0), len(said))
    shown = said[first : first + window]
    entered = {id(one.part): one.seq for one in state.entered}
    usage = state.usage
    stated = estimate_tokens(state)
    sizes = stated or count_bytes(state)
    whole = sum(sizes.values()) or 1
    before, edge = state.before, state.edge
    return ContextView(
        state,
        safe_short(context.asked.model or "model not stated", 80),
        show_block(context.system, 3000),
        [_part(number, one, entered) for number, one in shown],
        len(said),
        first,
        [
            *(_left(one, "left") for one in state.left),
            *(_left(one, "perhaps left") for one in state.unsure),
        ],
        [safe_short(one, 300) for one in state.unknown[:WINDOW]],
        [safe_short(f"{one.name} {one.text}") for one in state.pending],
        _next(state),
        [(name, size, 100 * size / whole) for name, size in sizes.items()],
        bool(stated),
        input_tokens(usage) if usage is not None else None,
        usage.output_tokens if usage is not None else None,
        usage.cached_read_tokens if usage is not None else None,
        [
            (safe_short(tool.name, 80), safe_short(tool.description or "", 300))
            for tool in context.asked.tools[:100]
        ],
        [
            (held, [_part(-1, one, {}) for one in parts[:WINDOW]])
            for held, parts in state.held[-20:]
        ],
        "" if before is None else f"{before.seq}.{before.part}" if before.part else str(before.seq),
        edge.evidence.value if edge is not None else "",
        safe_short(edge.rule) if edge is not None else "",
    )


def _part(number: int, one: ContextPart, entered: dict[int, int]) -> PartView:
    origin = entered.get(id(one))
    text = one.text
    if one.data is not None:
        text = f"{one.text or 'image'}, {one.size} bytes as it was sent"
    return PartView(
        number,
        safe_short(one.what, 60),
        safe_short(one.name, 80),
        show_block(text, _TEXT),
        one.size,
        "kept" if origin is None else "entered",
        origin if origin is not None else one.since,
    )


def _left(one: Origin, change: str) -> PartView:
    part = one.part
    return PartView(
        -1,
        safe_short(part.what, 60),
        safe_short(part.name, 80),
        show_block(part.text, _TEXT),
        part.size,
        change,
        one.seq,
    )


def _next(state: State) -> list[str]:
    answer = state.call.answer
    if answer is None:
        return ["no answer"]
    if answer.error is not None:
        return [safe_short(f"error: {answer.error.message}")]
    calls = [
        safe_block(f"{one.name} {one.text or _json(one.arguments)}"[:_TEXT])
        for one in state.call.calls
    ]
    return calls or (
        [safe_block(state.call.said[:_TEXT])] if state.call.said else ["an empty answer"]
    )


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def part_json(view: PartView) -> dict[str, Any]:
    """Give a part as JSON types."""
    return {
        "number": view.number if view.number >= 0 else None,
        "what": view.what,
        "name": view.name or None,
        "bytes": view.size,
        "text": view.text.text,
        "text_left_out": view.text.left_out,
        "change": view.change,
        "origin": view.origin or None,
    }
