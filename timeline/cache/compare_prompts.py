"""A prompt in the order in which a provider reads it, and where two of them first differ.

1. The order is the provider's: model, tools, system prompt, messages; at Anthropic thinking and tool choice before the messages. Inside
   a part it is the order that was sent: another order of tools, or of the keys of a schema, is another prompt.
2. Marks that say what is to be cached are no part of it. A last message that has further parts behind the old ones only grew.

Sources: Anthropic, "Prompt caching" (hierarchy tools, system, messages; what invalidates what); OpenAI, "Prompt caching"; Gemini,
"Context caching".
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...tape.dialects import Image, ToolResult
from ...tape.dialects.common.untrusted_json import Json, JsonObject, as_object, find_json
from ...tape.diff.request_differences import common_prefix
from ..blame.exchange_values import member_step
from ..steps.model_call import ModelCall
from ..steps.model_context import CACHE_MARKERS, plain_form, spell_out, unmarked

TOOLS = ("tools", "toolConfig", "functions")
SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
BESIDE = {"thinking": ("thinking", "reasoning"), "tool_choice": ("tool_choice",)}
"""What is read before the messages at Anthropic."""
_ROLES = ("system", "developer")
_NAME = re.compile(r"\$\.(\w+)")
LOOK_BACK = 20
"""Blocks before a mark in which an entry is looked for."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The first part of a prompt that is not as in the call before."""

    part: str
    """`model`, `tools`, `system`, `thinking`, `tool_choice`, `cache_control`, `images` or `messages`."""
    path: str | None
    """Where, in the later request; None where it is in no body."""
    was: str
    now: str
    what: str
    """In words."""
    item: int | None = None
    """Of a message its place in the context."""


class Mark(NamedTuple):
    """A mark up to which a prompt is to be cached."""

    at: int
    """Blocks before it."""
    ttl: str
    path: str
    size: int = 0
    """Bytes of the prompt up to it, as it is sent."""


def find_moved(before: ModelCall, now: ModelCall) -> Moved | None:
    """Find where a prompt first differs from the one before; None where it begins with all of it."""
    old, new = before.context, now.context
    if old.asked.model != new.asked.model:
        path = "$.model" if "model" in new.tree else None
        return Moved(
            "model", path, old.asked.model or "", new.asked.model or "", "the model is another one"
        )
    found = _find_tools(old.tree, new.tree)
    if found is not None:
        return found
    for name in SYSTEM:
        if old.tree.get(name) != new.tree.get(name) or show_value(old.tree.get(name)) != show_value(
            new.tree.get(name)
        ):
            moved = _moved(
                "system", f"${member_step(name)}", old.tree.get(name), new.tree.get(name)
            )
            if moved is not None:
                return moved
    if new.asked.dialect.startswith("anthropic"):
        for part, names in BESIDE.items():
            for name in names:
                moved = _moved(part, f"$.{name}", old.tree.get(name), new.tree.get(name))
                if moved is not None:
                    return moved
    return _find_message(before, now)


def _find_tools(old: JsonObject, new: JsonObject) -> Moved | None:
    for name in TOOLS:
        one, other = old.get(name), new.get(name)
        if one == other and show_value(one) == show_value(other):
            continue
        moved = _moved("tools", f"$.{name}", one, other)
        if moved is not None:
            return Moved("tools", moved.path, moved.was, moved.now, _describe_tools(one, other))
    return None


def _describe_tools(old: Json, new: Json) -> str:
    before, now = tool_names(old), tool_names(new)
    gone = [name for name in before if name not in now]
    fresh = [name for name in now if name not in before]
    if fresh and gone:
        return f"the tools are others: {', '.join(fresh[:4])} for {', '.join(gone[:4])}"
    if fresh:
        return f"the tools have {', '.join(fresh[:6])} more"
    if gone:
        return f"the tools have {', '.join(gone[:6])} no more"
    if before != now:
        return "the same tools in another order"
    return "a tool is described in another way, or its keys are in another order"


def tool_names(value: Json) -> list[str]:
    """Give the names of tools in their order, wherever a format has them."""
    names: list[str] = []
    level = value if isinstance(value, list) else [value]
    for one in level:
        tree = as_object(one)
        inner = next(
            (
                tree[key]
                for key in ("functionDeclarations", "tools")
                if isinstance(tree.get(key), list)
            ),
            None,
        )
        if inner is not None:
            names += tool_names(inner)
            continue
        tree = as_object(tree.get("function")) or as_object(tree.get("toolSpec")) or tree
        name = tree.get("name") or tree.get("type")
        if isinstance(name, str):
            names.append(name)
    return names


def _find_message(before: ModelCall, now: ModelCall) -> Moved | None:
    old, new = before.context, now.context
    if new.is_kept:  # the provider keeps what the request does not repeat
        return None
    key = new.split.key if new.split is not None else "messages"
    if new.short_input is not None:
        key = "input"
    for number, item in enumerate(old.items):
        path = f"${member_step(key)}[{number}]"
        if number >= len(new.items):
            told = item.messages[0].text if item.messages else ""
            return Moved("messages", path, told, "", "the messages from here on are gone", number)
        if _is_same(before, now, number):
            continue
        one, two = _tree(before, number), _tree(now, number)
        part = "messages"
        if as_object(one).get("role") in _ROLES or as_object(two).get("role") in _ROLES:
            part = "system"
        if number == len(old.items) - 1 and _is_grown(one, two):
            continue
        moved = _moved(part, path, one, two)
        if moved is not None:
            return Moved(part, moved.path, moved.was, moved.now, moved.what, number)
    return None


def _is_same(before: ModelCall, now: ModelCall, number: int) -> bool:
    old, new = before.context.split, now.context.split
    if old is None or new is None:
        one, other = before.context.items[number], now.context.items[number]
        return one is other or one.key == other.key
    return old.slice(number) == new.slice(number)


def _tree(call: ModelCall, number: int) -> Json:
    split = call.context.split
    if split is not None:
        return unmarked(find_json(split.slice(number)))
    short = call.context.short_input
    if short is not None:
        return short
    return [{"role": one.role, "text": one.text} for one in call.context.items[number].messages]


def _is_grown(old: Json, new: Json) -> bool:
    """Say whether a message has what the old one had, and more behind it."""
    if not isinstance(old, dict) or not isinstance(new, dict) or old.get("role") != new.get("role"):
        return False
    for name in ("content", "parts"):
        one, other = spell_out(old.get(name)), spell_out(new.get(name))
        if isinstance(one, list) and isinstance(other, list) and len(other) > len(one):
            return first_difference(one, other[: len(one)], "$") is None
    return False


def _moved(part: str, path: str, old: Json, new: Json) -> Moved | None:
    found = first_difference(old, new, path)
    if found is None:
        return None
    at, was, now = found
    what = {
        "system": "the system prompt is another one",
        "messages": "a message that was sent before is another one",
        "thinking": "thinking is set in another way",
        "tool_choice": "the choice of tools is another one",
    }.get(part, "")
    return Moved(part, at, show_value(was), show_value(now), what)


def first_difference(old: Json, new: Json, path: str) -> tuple[str, Json, Json] | None:
    """Find where two values first differ in the order in which they were sent, cache markers aside.

    A text is the same as the list of one part for which it is short, and a message is the same in each of its forms.
    """
    if isinstance(old, list):
        new = spell_out(new)
    elif isinstance(new, list):
        old = spell_out(old)
    if isinstance(old, dict) and isinstance(new, dict):
        one, other = _compared(old), _compared(new)
        if one.keys() == other.keys() and list(one) != list(other):
            name = next(b for a, b in zip(one, other, strict=True) if a != b)
            return path + member_step(name), list(one), list(other)
        for name in (*one, *(name for name in other if name not in one)):
            if name not in one or name not in other:
                return path + member_step(name), one.get(name), other.get(name)
            found = first_difference(one[name], other[name], path + member_step(name))
            if found is not None:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        old, new = _unpointed(old), _unpointed(new)
        for number in range(max(len(old), len(new))):
            place = f"{path}[{number}]"
            if number >= len(old) or number >= len(new):
                sides = [one[number] if number < len(one) else None for one in (old, new)]
                return place, sides[0], sides[1]
            found = first_difference(old[number], new[number], place)
            if found is not None:
                return found
        return None
    return None if type(old) is type(new) and old == new else (path, old, new)


def _compared(tree: JsonObject) -> JsonObject:
    """Give the members of an object that are compared."""
    return {name: value for name, value in plain_form(tree).items() if name not in CACHE_MARKERS}


def _unpointed(values: list[Json]) -> list[Json]:
    """Leave out elements that are nothing but a cache marker."""
    return [
        one
        for one in values
        if not (isinstance(one, dict) and one and one.keys() <= set(CACHE_MARKERS))
    ]


def show_value(value: Json) -> str:
    """Write a value of JSON; nothing of null, and a text as it is."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Marks


def find_marks(call: ModelCall) -> list[Mark]:
    """Find the marks of a request to Anthropic's models, in the order in which the prompt is read."""
    context = call.context
    found: list[Mark] = []
    at = size = 0
    for name in ("tools", "system"):
        value = context.tree.get(name)
        for number, one in enumerate(
            value if isinstance(value, list) else [value] if value else []
        ):
            at += 1
            size += _size(one)
            found += _mark_of(one, at, f"$.{name}[{number}]", size)
    split = context.split
    for number, item in enumerate(context.items):
        begin = at
        at += max(1, sum(len(message.parts) for message in item.messages))
        slice_ = split.slice(number) if split is not None else b""
        if any(word.encode() in slice_ for word in CACHE_MARKERS):
            content = as_object(find_json(slice_)).get("content")
            inside = 0
            for part, one in enumerate(content if isinstance(content, list) else []):
                inside += _size(one)
                path = f"$.messages[{number}].content[{part}]"
                found += _mark_of(one, begin + part + 1, path, size + inside)
        size += item.size
    if "cache_control" in context.tree:
        found += _mark_of(context.tree, at, "$", size)
    return found


def _mark_of(value: Json, at: int, path: str, size: int) -> Iterator[Mark]:
    for name in CACHE_MARKERS:
        mark = as_object(value).get(name)
        if isinstance(mark, dict):
            ttl = mark.get("ttl")
            yield Mark(at, ttl if isinstance(ttl, str) else "5m", f"{path}.{name}", size)


def find_kept_mark(old: list[Mark], new: list[Mark], kept: float) -> float:
    """Give the part of what a call left that is before its last mark that can still be found; 0 where none can.

    kept: part of the prompt, by bytes up to its last mark, that is as it was.
    """
    whole = max((mark.size for mark in old), default=0)
    found = [
        mark.size / whole
        for mark in old
        if mark.size <= kept * whole and any(0 <= one.at - mark.at <= LOOK_BACK for one in new)
    ]
    return max(found, default=0.0)


def find_moved_mark(old: list[Mark], new: list[Mark]) -> Moved | None:
    """Find whether marks keep a prompt that begins as before from being found in the cache."""
    if not old:
        return None
    last = max(old, key=lambda one: one.at)
    if any(0 <= mark.at - last.at <= LOOK_BACK for mark in new):
        return None
    messages = [mark for mark in new if mark.path.startswith("$.messages")]
    path = (messages or new)[0].path if new else None
    what = "no mark is behind the one up to which it was cached"
    if any(mark.at > last.at for mark in new):
        what = f"the next mark is more than {LOOK_BACK} blocks behind the one up to which it was cached"
    return Moved("cache_control", path, last.path, path or "", what)


def find_new_image(before: ModelCall, now: ModelCall) -> Moved | None:
    """Find whether images came in or left: at Anthropic the messages are then read anew."""
    old, new = _has_image(before), _has_image(now)
    if old == new:
        return None
    what = (
        "images are in the prompt for the first time" if new else "images are no more in the prompt"
    )
    return Moved("images", None, "", "", what)


def _has_image(call: ModelCall) -> bool:
    return any(
        isinstance(one, Image)
        for item in call.context.items
        for message in item.messages
        for part in message.parts
        for one in (part, *(part.parts if isinstance(part, ToolResult) else ()))
    )


def count_kept(call: ModelCall, now: ModelCall, moved: Moved | None) -> tuple[float, int]:
    """Give the part of a prompt, by bytes, that comes before what moved, and the bytes of the prompt.

    now: the call whose prompt differs. What both parts begin with is before what moved, as a system prompt is whose last line changed.
    """
    context = call.context
    tools = _size(context.asked.raw_tools)
    system = sum(_size(context.tree.get(name)) for name in SYSTEM)
    sizes = [item.size for item in context.items]
    whole = tools + system + sum(sizes)
    if moved is None or not whole:
        return 1.0, whole
    before: float = {"model": 0, "tools": 0, "system": tools}.get(moved.part, tools + system)
    if moved.item is not None:
        before = tools + system + sum(sizes[: moved.item])
        if moved.item < len(now.context.items):
            same = _share_of_beginning(_tree(call, moved.item), _tree(now, moved.item))
            before += same * sizes[moved.item]
    elif moved.part in ("tools", "system"):
        name = _NAME.match(moved.path or "")
        if name is not None:
            old = context.tree.get(name[1])
            before += _share_of_beginning(old, now.context.tree.get(name[1])) * _size(old)
    return min(1.0, before / whole), whole


def _share_of_beginning(old: Json, new: Json) -> float:
    """Say which part of a value another one has, too, from its beginning on."""
    if isinstance(old, list) or isinstance(new, list):
        old, new = spell_out(old), spell_out(new)
    one, other = (_bytes_of(value) for value in (old, new))
    return common_prefix(one, other) / len(one) if one else 0.0


def _bytes_of(value: Json) -> bytes:
    if isinstance(value, list):
        value = [unmarked(one) for one in _unpointed(value)]
    elif isinstance(value, dict):
        value = _compared(as_object(unmarked(value)))
    return show_value(value).encode("utf-8", "surrogatepass")


def _size(value: Json) -> int:
    return len(show_value(value).encode("utf-8", "surrogatepass"))
