"""Compare the contexts of two calls of a lane: what the earlier one had and the later one has not, whoever keeps it.

A context is what the request has, and what the provider keeps of that which it goes on from. What both have from the same exchanges is not
looked at. Where what the provider keeps is not known, what is gone may still be there: that is told apart, with the reason.

1. Lost is what is in the later context neither as a part nor inside the text of another.
2. A result whose call is still there with another text was shortened, or replaced where that is no rest of it.
3. System prompts are compared by their lines: of the prompt, and of all messages of the system.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...tape.exchange import Seq
from ..steps.agent_lanes import MIN_TEXT, count_same
from ..steps.model_call import ModelCall
from ..steps.model_context import Context
from .context_parts import ContextPart, is_rest_of, split_items
from .provider_conversation import Held, Kept, Provider

_PROMPT = "prompt"
_APART = (_PROMPT, "cachedContent", "cached_content")
"""Members that name text of a context which the provider keeps apart from any conversation.

Source: OpenAI API reference, "Responses", `prompt`; Gemini API reference, "Caching", `cachedContent`."""


_DROPS = (("truncation", "auto"), ("transforms", "middle-out"))
"""Members of requests, and values of them, by which a provider may leave out what does not fit.

Source: OpenAI API reference, "Responses", `truncation`; OpenRouter documentation, "Message transforms"."""
_EDITS = "context_management"
"""Rules by which a provider clears or sums up what came before. Source: Anthropic API reference, "Context editing"."""


@dataclass(slots=True)
class Lost:
    """A part that a request of a lane does not have any more."""

    origin: int
    """The answer, or of what the agent wrote the request, that first had it."""
    part: ContextPart
    left: int | None = None
    """Of a result that has another text now, how many bytes that has."""
    is_replaced: bool = False
    """Whether that is no rest of it."""


@dataclass(slots=True)
class Change:
    """Two contexts, but for what both are known to have."""

    before: ModelCall
    call: ModelCall
    had: list[ContextPart] = field(default_factory=list)
    kept: list[ContextPart] = field(default_factory=list)
    """What the provider keeps for the later call."""
    own: list[ContextPart] = field(default_factory=list)
    """What its request has."""
    same: int = 0
    """Items that both requests begin with, where the provider keeps nothing of them."""
    unknown: list[str] = field(default_factory=list)
    """Why it is not known whether something is gone."""
    is_open: bool = False
    """Whether anything that is gone may be in what the provider keeps."""
    is_prompt_open: bool = False
    """Whether tools and lines of the prompt may be, too."""
    doubtful: set[Seq] = field(default_factory=set)
    """Seqs of exchanges whose parts may still be there."""
    _seqs: dict[int, Seq] = field(default_factory=dict)

    def add(self, items: list[Kept], into: list[ContextPart]) -> None:
        """Take items that the provider keeps."""
        for item in items:
            self._seqs.update((id(part), item.seq) for part in item.parts)
            into += item.parts

    def is_unsure(self, part: ContextPart) -> bool:
        """Say whether a part that is gone may still be kept."""
        return self.is_open or self._seqs.get(id(part), self.before.seq) in self.doubtful


@dataclass(slots=True)
class Difference:
    """What is gone."""

    lost: list[Lost] = field(default_factory=list)
    unsure: list[Lost] = field(default_factory=list)
    """What the request does not have, and the provider may or may not keep."""
    tools: list[str] = field(default_factory=list)
    """Tools that are not offered any more."""
    system: list[str] = field(default_factory=list)
    """Lines that are gone from the system prompt."""
    unknown: list[str] = field(default_factory=list)
    """Why not all is known."""


def find_change(
    provider: Provider, before: ModelCall, call: ModelCall, names: dict[str, str]
) -> Change:
    """Put two contexts side by side.

    names: of tools, by the ids of tool calls.
    """
    change = Change(before, call)
    old, new = before.context, call.context
    if not (old.is_kept or new.is_kept):
        change.same = count_same(old.items, new.items)
        change.had = split_items(old.items[change.same :], names)
        change.own = split_items(new.items[change.same :], names)
    elif provider.only_grew(before, call):
        change.own = split_items(new.items, names)
    else:
        _compare_kept(change, provider.held(before), provider.held(call))
        change.had += split_items(old.items, names)
        change.add(provider.deleted_answer(before, call), change.had)
        change.own = split_items(new.items, names)
    _compare_apart(change, old, new)
    return change


def _compare_kept(change: Change, had: Held, has: Held) -> None:
    deleted = {seq: by for seq, by in has.deleted.items() if seq not in had.deleted}
    there = [one for one in has.items if one.seq not in deleted]
    same = 0
    while same < min(len(there), len(had.items)) and there[same] is had.items[same]:
        same += 1
    change.add(had.items[same:], change.had)
    change.add(there[same:], change.kept)
    change.doubtful = {*has.doubtful, *deleted} - {*had.doubtful}
    change.is_open = bool(has.root) and has.root != had.root
    told = change.unknown
    if change.is_open:
        told.append(f"what {has.root} had before is not in this run")
    if had.root and had.root != has.root:
        told.append(
            f"call {change.before.seq} had more: what {had.root} had before is not in this run"
        )
    told += [
        f"exchange {seq} was not answered to its end: the provider may have kept it, too"
        for seq in has.doubtful
        if seq in change.doubtful
    ]
    told += [
        f"exchange {by} deleted it: the provider may still use it" for by in {*deleted.values()}
    ]
    told += [
        f"exchange {seq} deleted an item that no exchange has by its id"
        for seq in has.unplaced
        if seq not in had.unplaced
    ]


def _compare_apart(change: Change, old: Context, new: Context) -> None:
    for name in _APART:
        was, now = old.tree.get(name), new.tree.get(name)
        if was == now or (name == _PROMPT and not isinstance(was or now, dict)):
            continue
        change.is_open = change.is_prompt_open = now is not None or change.is_prompt_open
        for seq, value in ((change.before.seq, was), (change.call.seq, now)):
            if value is not None:
                id = value.get("id") if isinstance(value, dict) else value
                told = f"call {seq} has {name} {id}: what that says is not in this run"
                change.unknown.append(told)


def find_difference(
    change: Change, origin: Callable[[ContextPart], int], given: Mapping[str, str]
) -> Difference:
    """Find what is gone between two contexts.

    origin: gives the exchange that first had a part.
    given: results as they were first sent, by the ids of their calls.
    """
    found = Difference(unknown=list(change.unknown))
    for one in _list_gone(change, origin, given):
        (found.unsure if change.is_unsure(one.part) else found.lost).append(one)
    before, call = change.before, change.call
    tools = sorted(before.tools - call.tools)
    now = _system(call.context, [*change.kept, *change.own])
    gone = _gone_lines(_system(before.context, change.had), now)
    lines = [] if change.is_prompt_open else gone
    if change.is_open and not change.is_prompt_open:
        # A prompt is of its request alone; messages of the system may be kept.
        apart = set(_gone_lines(before.context.asked.system or "", now))
        lines = [line for line in gone if line in apart]
    if change.is_prompt_open:
        found.unsure += [Lost(before.seq, ContextPart("tool", "", one)) for one in tools]
    else:
        found.tools = tools
    found.system = lines
    kept = Counter(gone) - Counter(lines)
    found.unsure += [Lost(before.seq, ContextPart("system prompt", one)) for one in kept.elements()]
    return found


def _list_gone(
    change: Change, origin: Callable[[ContextPart], int], given: Mapping[str, str]
) -> list[Lost]:
    now = [*change.kept, *change.own]
    keys = Counter(one.key for one in now)
    places = {one.call: one for one in now if one.what == "tool result" and one.call}
    nameless = _pair_nameless(change.had, now)
    texts = [one.text for one in now]
    found = []
    for one in change.had:
        if one.what == "system":
            continue  # its lines are compared
        if keys[one.key]:
            keys[one.key] -= 1
            continue
        other = nameless.get(id(one))
        if one.what == "tool result" and one.call:
            other = places.get(one.call)
        if other is not None:
            is_rest = is_rest_of(other.text, given.get(one.call or "", one.text))
            found.append(Lost(origin(one), one, other.size, is_replaced=not is_rest))
            continue
        if len(one.text) >= MIN_TEXT and any(one.text in text for text in texts):
            continue
        found.append(Lost(origin(one), one))
    return found


def _pair_nameless(earlier: list[ContextPart], now: list[ContextPart]) -> dict[int, ContextPart]:
    """Pair the results of calls without ids by their order, where none of them is gone."""
    old, new = (
        [one for one in parts if one.what == "tool result" and not one.call]
        for parts in (earlier, now)
    )
    pairs = list(zip(old, new, strict=False))
    if len(new) < len(old) or any(one.name != other.name for one, other in pairs):
        return {}
    return {id(one): other for one, other in pairs}


def _system(context: Context, parts: list[ContextPart]) -> str:
    """Give the prompt of a request, and what the system says among parts of its context."""
    said = [context.asked.system] if context.asked.system is not None else []
    return "\n".join([*said, *(one.text for one in parts if one.what == "system")])


def _gone_lines(before: str, now: str) -> list[str]:
    """Give the lines that are gone from a system prompt; a line that begins as a new one does was changed."""
    if before == now:
        return []
    old, new = Counter(before.splitlines()), Counter(now.splitlines())
    changed = {line[:MIN_TEXT] for line in new - old}
    return [line for line in old - new if line.strip() and line[:MIN_TEXT] not in changed]


def find_dropping(context: Context) -> list[str]:
    """Name the settings of a request by which the provider itself may drop something of it; no exchange shows what."""
    found = []
    for name, value in _DROPS:
        given = context.tree.get(name)
        if given == value or (isinstance(given, list) and value in given):
            found.append(f"{name}: {value}")
    return found + [_EDITS] * bool(context.tree.get(_EDITS))
