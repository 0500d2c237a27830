"""A state, and what a context lost, as text in 80 columns and as JSON types."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from ...tape.dialects.common.untrusted_json import find_json
from ..show.fit import fit
from ..show.listing import WIDTH, input_tokens, show_time
from ..show.multiline_text import safe_line, show_block
from ..steps.model_context import Context
from .compare_contexts import Lost
from .context_parts import ContextPart
from .find_state import Origin, State
from .watch_contexts import Looked

_MOST = 600
"""Characters of a part that are shown without `--full`."""
_LAST = 40
"""Parts of the conversation that are shown without `--full`: the last ones."""
_HISTORY = ("system", "tools", "user", "assistant", "tool calls", "tool results", "other")


def count_bytes(state: State) -> dict[str, int]:
    """Count the bytes of a context by part: of the system prompt, tools, what was said, tool results."""
    context = state.call.context
    found = dict.fromkeys(_HISTORY, 0)
    found["system"] = len(context.system.encode("utf-8", "surrogatepass"))
    raw = context.asked.raw_tools
    found["tools"] = (
        len(json.dumps(raw, ensure_ascii=False).encode("utf-8", "surrogatepass")) if raw else 0
    )
    for part in state.parts:
        if context.items[part.item].system is None:
            found[_kind_of(part)] += part.size
    return {name: size for name, size in found.items() if size}


def _kind_of(part: ContextPart) -> str:
    if part.what in ("tool call", "tool result"):
        return f"{part.what}s"
    if part.what in ("assistant", "model", "thought"):
        return "assistant"
    return "user" if part.what in ("user", "system", "developer") else "other"


def estimate_tokens(state: State) -> dict[str, int]:
    """Share the tokens that the answer states among the parts, by their bytes: an estimate.

    What the provider keeps of the conversation was read, too. Empty where no tokens are stated, or not all that is kept is known.
    """
    usage = state.usage
    stated = input_tokens(usage) if usage is not None else None
    if state.broken or state.unplaced or state.doubtful or state.deleted:
        return {}
    sizes = count_bytes(state)
    for _, kept in state.held:
        for part in kept:
            kind = _kind_of(part)
            sizes[kind] = sizes.get(kind, 0) + part.size
    whole = sum(sizes.values())
    if stated is None or not whole:
        return {}
    return {name: round(stated * size / whole) for name, size in sizes.items()}


def render_state(state: State, *, full: bool) -> Iterator[str]:
    """Give the lines of a state.

    full: show every part whole.
    """
    call, context = state.call, state.call.context
    most = None if full else _MOST
    yield fit(
        f"state at {_name(state.asked_seq, state.asked_part)}: the context of model call {_name(call.seq, call.part)}",
        WIDTH,
    )
    if call.seq != state.asked_seq:
        yield f"({state.asked_seq} is no model call; this is the last one before it)"
    model = context.asked.model or "model not stated"
    yield fit(
        f"model {model}, {context.asked.dialect}; fingerprint {state.exchange.fingerprint.hex()}",
        WIDTH,
    )
    yield from _render_tokens(state)
    yield from _render_changes(state)
    yield from _render_calls(
        "pending tool calls", [f"{one.name} {one.text}" for one in state.pending]
    )
    yield from _render_calls("next", _planned(state))
    for one in state.snapshots:
        yield f"snapshot that the agent took after {one.after}"
        yield from show_block(one.text, "  ", most, "--full")
    yield ""
    system = context.system
    yield f"system ({len(system.encode('utf-8', 'surrogatepass'))} bytes)"
    yield from show_block(system, "  ", most, "--full") if system else ()
    for seq, parts in state.held:
        yield ""
        by = state.deleted.get(seq)
        gone = f"; exchange {by} deleted it" if by is not None else ""
        yield f"kept by the provider, rebuilt from exchange {seq}{gone}"
        yield from _render_parts(parts, most)
    if context.conversation:
        told = f"the provider keeps all earlier turns of {context.conversation}, also those of other runs"
        yield fit(told, WIDTH)
    shown = {seq for seq, _ in state.held}
    for seq in state.doubtful:
        what = "more of its answer" if seq in shown else "it, too"
        yield f"exchange {seq} was not answered to its end: the provider may have kept {what}"
    for seq in state.unplaced:
        yield f"exchange {seq} deleted an item of it that no exchange has by its id: it may be above"
    if state.broken:
        yield "the provider keeps more: the answer that came before is not in this run"
    yield ""
    yield f"messages ({len(context.items)})"
    said = [one for one in state.parts if context.items[one.item].system is None]
    earlier = [] if full else said[:-_LAST]
    if earlier:
        size = sum(one.size for one in earlier)
        yield f"  … {len(earlier)} earlier parts of {size} bytes: --full"
    yield from _render_parts(said[len(earlier) :], most)
    tools = context.asked.tools
    yield ""
    yield f"tools ({len(tools)})"
    for tool in tools:
        told = f"{tool.name}: {tool.description or ''}"
        if full:
            yield from show_block(told, "  ", None, "")
            yield from show_block(json.dumps(tool.schema, ensure_ascii=False), "    ", None, "")
        else:
            yield f"  {fit(told, WIDTH - 2)}"


def _render_tokens(state: State) -> Iterator[str]:
    usage, answer = state.usage, state.call.answer
    if usage is None or input_tokens(usage) is None:
        sizes = ", ".join(f"{name} {size}" for name, size in count_bytes(state).items())
        yield fit(f"tokens: not stated; bytes: {sizes}", WIDTH)
    else:
        cached = f", {usage.cached_read_tokens} from the cache" if usage.cached_read_tokens else ""
        yield f"tokens: {input_tokens(usage)} in{cached}, {usage.output_tokens or 0} out, as stated"
        if usage.beside:
            counted = usage.count()
            yield f"beside, with all that was billed: {counted.asked} in, {counted.said or 0} out"
        parts = ", ".join(f"{name} {count}" for name, count in estimate_tokens(state).items())
        if parts:
            yield f"  {fit(f'by part, estimated from bytes: {parts}', WIDTH - 2)}"
    if answer is not None:
        took = answer.total_us if state.call.part else state.exchange.end_us
        first = (
            f"first token after {show_time(answer.first_token_us)}, "
            if answer.first_token_us is not None
            else ""
        )
        end = "whole" if answer.complete else "cut"
        yield f"answer: {first}{end} after {show_time(took)}, {answer.finish_reason or 'no reason to end stated'}"


def _render_changes(state: State) -> Iterator[str]:
    if state.before is None or state.edge is None:
        is_taken = any(one.seq < state.call.seq for one in state.entered)
        what = "a lane with a conversation of another" if is_taken else "a conversation"
        yield f"begins {what}: no call before it is of this lane"
        for one in state.entered if is_taken else ():
            yield f"  + {fit(_origin(one), WIDTH - 4)}"
        return
    name = _name(state.before.seq, state.before.part)
    edge = state.edge
    source = f", going on from {edge.source}" if edge.source != state.before.seq else ""
    yield fit(f"since {name}{source} ({edge.evidence.value}: {edge.rule})", WIDTH)
    if not (state.entered or state.left or state.unsure or state.unknown):
        yield "  nothing entered or left"
    for sign, origins in (("+", state.entered), ("-", state.left), ("?", state.unsure)):
        for one in origins:
            yield f"  {sign} {fit(_origin(one), WIDTH - 4)}"
    yield from _render_unknown(state.unknown)


def _origin(one: Origin) -> str:
    named = f"{one.part.what} {one.part.name}".strip()
    return f"{one.seq} {named}: {one.part.text}"


def _render_calls(title: str, told: list[str]) -> Iterator[str]:
    if not told:
        yield f"{title}: none"
    for one in told:
        yield fit(f"{title}: {one}", WIDTH)


def _planned(state: State) -> list[str]:
    answer = state.call.answer
    if answer is None:
        return ["no answer"]
    if answer.error is not None:
        return [f"error: {answer.error.message}"]
    if not answer.complete:
        # A client raises an error before it gives the agent the calls of such an answer.
        return ["the answer was cut, so it tells nothing"]
    calls = [
        f"{one.name} {one.text or json.dumps(one.arguments, ensure_ascii=False)}"
        for one in state.call.calls
    ]
    return calls or ([f"says: {state.call.said}"] if state.call.said else ["an empty answer"])


def _render_parts(parts: Iterable[ContextPart], most: int | None) -> Iterator[str]:
    for part in parts:
        name = f" {safe_line(part.name)}" if part.name else ""
        yield f"  {part.item + 1} {safe_line(part.what)}{name} ({part.size} bytes)"
        yield from show_block(part.text, "    ", most, "--full")


def _name(seq: int, part: int) -> str:
    return f"{seq}.{part}" if part else str(seq)


def state_json(state: State) -> dict[str, Any]:
    """Give a state as JSON types; the body is the whole request as it was sent."""
    call, context, edge = state.call, state.call.context, state.edge
    return {
        "asked_seq": state.asked_seq,
        "seq": call.seq,
        "part": call.part or None,
        "fingerprint": state.exchange.fingerprint.hex(),
        "dialect": context.asked.dialect,
        "model": context.asked.model,
        "system": context.system or None,
        "tools": [tool.name for tool in context.asked.tools],
        "messages": [_part_json(one) for one in state.parts],
        "held": [
            {
                "seq": seq,
                "messages": list(map(_part_json, parts)),
                "deleted_by": state.deleted.get(seq),
            }
            for seq, parts in state.held
        ],
        "doubtful": state.doubtful,
        "unplaced": state.unplaced,
        "before": state.before.seq if state.before is not None else None,
        "evidence": edge.evidence.value if edge is not None else None,
        "rule": edge.rule if edge is not None else None,
        "conversation": context.conversation,
        "entered": [{"origin": one.seq, **_part_json(one.part)} for one in state.entered],
        "left": [{"origin": one.seq, **_part_json(one.part)} for one in state.left],
        "perhaps_left": [{"origin": one.seq, **_part_json(one.part)} for one in state.unsure],
        "unknown": state.unknown,
        "pending": [_part_json(one) for one in state.pending],
        "snapshots": [
            {"after": one.after, "at_ns": one.at_ns, "value": one.value} for one in state.snapshots
        ],
        "planned": [
            {"name": one.name, "call": one.id, "arguments": one.arguments}
            for one in (() if call.is_cut else call.calls)
        ],
        "complete": call.answer.complete if call.answer is not None else None,
        "says": call.said or None,
        "usage": asdict(state.usage) if state.usage is not None else None,
        "bytes_by_part": count_bytes(state),
        "estimated_tokens_by_part": estimate_tokens(state),
        "body": _body_json(context, state),
    }


def _body_json(context: Context, state: State) -> Any:
    body = context.split.body if context.split is not None else state.exchange.request.body
    tree = find_json(body)
    if tree is not None:
        return tree
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _part_json(part: ContextPart) -> dict[str, Any]:
    return {
        "message": part.item + 1,
        "what": part.what,
        "name": part.name or None,
        "call": part.call,
        "bytes": part.size,
        "text": part.text,
    }


def render_lost(found: Iterable[Looked], *, full: bool) -> Iterator[str]:
    """List what was dropped, by the request that has it no more."""
    some, kept = False, dict[str, None]()
    found = list(found)
    for looked in found:
        if looked.conversation:
            kept[looked.conversation] = None
        is_lost = bool(looked.lost or looked.tools or looked.system)
        if not (is_lost or looked.unsure or looked.unknown):
            continue
        some = True
        size = sum(one.part.size - (one.left or 0) for one in looked.lost)
        size += sum(len(line.encode("utf-8", "surrogatepass")) for line in looked.system)
        name = f"at {_name(looked.seq, looked.call_part)}, lane {looked.lane}"
        if is_lost:
            yield f"{name}: {size} bytes are gone since {looked.before}"
        else:
            yield f"{name}: not known whether all is kept since {looked.before}"
        for sign, gone in (("-", looked.lost), ("?", looked.unsure)):
            for one in gone:
                yield from _render_gone(sign, one, full=full)
        for line in looked.system:
            yield f"  - {fit(f'system prompt: {line}', WIDTH - 4)}"
        if looked.tools:
            yield f"  - {fit('tools: ' + ', '.join(looked.tools), WIDTH - 4)}"
        yield from _render_unknown(looked.unknown)
    dropping = dict.fromkeys(one for looked in found for one in looked.dropping)
    taken = [looked for looked in found if looked.taken_from]
    if not some:
        yield "no request dropped anything" if dropping or taken else "nothing was dropped"
    for looked in taken:
        name = _name(looked.seq, looked.call_part)
        told = f"{name} begins lane {looked.lane} with the conversation of {looked.taken_from}"
        yield from wrap(f"{told}: what that had more is not compared", WIDTH)
    for name in dropping:
        yield from wrap(
            f"the provider may drop parts by itself ({name}): no exchange shows it", WIDTH
        )
    for name in kept:
        yield fit(f"the provider keeps all turns of {name}: no request repeats them", WIDTH)


def _render_unknown(reasons: list[str]) -> Iterator[str]:
    for told in reasons:
        lines = wrap(f"not known: {safe_line(told)}", WIDTH - 4, break_on_hyphens=False)
        yield f"  {'\n    '.join(lines)}"


def _render_gone(sign: str, one: Lost, *, full: bool) -> Iterator[str]:
    named = f"{one.part.what} {one.part.name}".strip()
    other = ", replaced" if one.is_replaced else ""
    was = f" (was {one.part.size} bytes, is {one.left}{other})" if one.left is not None else ""
    if full:
        yield f"  {sign} {one.origin} {safe_line(named)}{was}"
        yield from show_block(one.part.text, "      ", None, "")
    else:
        yield f"  {sign} {fit(f'{one.origin} {named}{was}: {one.part.text}', WIDTH - 4)}"


def render_orphans(found: Iterable[Looked], *, full: bool) -> Iterator[str]:
    """List what no recorded answer and no message of the agent explains, each where it is first seen."""
    seen: set[str] = set()
    for looked in found:
        fresh = [one for one in looked.orphans if one.key not in seen]
        if not fresh:
            continue
        seen.update(one.key for one in fresh)
        yield f"at {_name(looked.seq, looked.call_part)}, lane {looked.lane}: nothing in the run explains"
        for one in fresh:
            call = f" {one.call}" if one.call else ""
            named = f"message {one.item + 1}, {one.what}{call}"
            if full:
                yield f"  ? {safe_line(named)}"
                yield from show_block(one.text, "      ", None, "")
            else:
                yield f"  ? {fit(f'{named}: {one.text}', WIDTH - 4)}"
    if not seen:
        yield "everything is explained: answers are recorded, results are as they were first sent"


def looked_json(looked: Looked) -> dict[str, Any]:
    """Give what was found in a request as JSON types."""
    return {
        "seq": looked.seq,
        "part": looked.call_part or None,
        "lane": looked.lane,
        "before": looked.before or None,
        "conversation": looked.conversation or None,
        "taken_from": looked.taken_from or None,
        "provider_may_drop": looked.dropping,
        "lost": [_lost_json(one) for one in looked.lost],
        "perhaps_lost": [_lost_json(one) for one in looked.unsure],
        "unknown": looked.unknown,
        "lost_tools": looked.tools,
        "lost_system_lines": looked.system,
        "orphans": [_part_json(one) for one in looked.orphans],
    }


def _lost_json(one: Lost) -> dict[str, Any]:
    return {
        "origin": one.origin,
        "bytes_now": one.left,
        "replaced": one.is_replaced,
        **_part_json(one.part),
    }
