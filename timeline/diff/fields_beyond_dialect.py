"""What a model call sends beside what its dialect reads: it counts, too, or another server of tools would be no difference.

1. Every member of the body counts, known or not. What may vary is listed here, and nothing else is left out but what the messages
   and the system prompt say, which are compared by themselves.
2. Of a message of the agent, what its dialect does not read counts: `is_error`, a `detail`, an image in a result. What a model
   said and the agent repeats was compared as the answer.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from ...tape.canonical.canonical_request import MARKER, Rules, body_tree
from ...tape.canonical.json import show_json
from ...tape.dialects import DIALECTS, Image, Other, Part, Text, ToolCall, ToolResult
from ...tape.dialects.common.drift_places import NOWHERE
from ...tape.dialects.common.untrusted_json import JsonObject
from ...tape.exchange import Exchange
from ..steps.model_context import CACHE_MARKERS, Context, Item
from ..steps.split_messages import LISTS

MAY_VARY = frozenset(
    (
        "stream",
        "stream_options",
        "metadata",
        "client_metadata",
        "requestMetadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        *CACHE_MARKERS,
    )
)
"""Members that change nothing about what the model is asked: how the answer comes, whose request it is, and what is cached."""
_LINKS = ("previous_response_id", "conversation")
"""Of what a provider keeps: `Context` reads them."""
_SPOKEN = LISTS | {"prompt", "message", "chat_history", "inputText"}
"""Texts and lists that a conversation is in, where it is not one list of messages."""
_DIALECTS = {one.name: one for one in DIALECTS}


def read_beside(context: Context, tree: JsonObject) -> dict[str, str]:
    """Give the members of a request that count beside its messages, its model and its system prompt, as JSON by their names.

    tree: the request, as far as its messages are not a list by themselves.
    """
    dialect = _DIALECTS.get(context.asked.dialect)
    places = dialect.find_places(tree) if dialect is not None else NOWHERE
    left_out = {*places.system, *places.model}
    if context.previous is not None:
        left_out.add(_LINKS[0])
    if context.conversation is not None:
        left_out.add(_LINKS[1])
    whole = context.split is None
    found = {}
    for name, value in tree.items():
        if name in MAY_VARY or name in left_out:
            continue
        if name == "container" and isinstance(value, str):
            continue
        if whole and _is_spoken(name, value):
            continue
        found[name] = _text(_counted(value, name, left_out, whole=whole))
    return found


def find_links(context: Context, *, begins: bool) -> tuple[tuple[str, str, bool], ...]:
    """Give the ids of what the provider keeps for a request: name, id, and whether one may stand for another from here on."""
    container = context.tree.get("container")
    found = [
        (_LINKS[0], context.previous, begins),
        (_LINKS[1], context.conversation, begins),
        # It is made by the model's own tools, in an answer of which no dialect reads it.
        ("container", container if isinstance(container, str) else None, True),
    ]
    return tuple((name, id, may) for name, id, may in found if id is not None)


def _is_spoken(name: str, value: Any) -> bool:
    if name in _SPOKEN and isinstance(value, str | list):
        return True
    return isinstance(value, list) and any(isinstance(one, dict) and "role" in one for one in value)


def _counted(tree: Any, path: str, left_out: set[str], *, whole: bool) -> Any:
    """Leave out cache markers, and what is compared by itself."""
    if isinstance(tree, list):
        return [_counted(one, f"{path}[]", left_out, whole=whole) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        name: _counted(value, f"{path}.{name}", left_out, whole=whole)
        for name, value in tree.items()
        if name not in CACHE_MARKERS
        and f"{path}.{name}" not in left_out
        and not (whole and _is_spoken(name, value))
    }


def read_unread(item: Item, tree: Any) -> str:
    """Give what the dialect did not read of an element of the list of messages, one value a line; empty where that is all of it.

    tree: the element.
    """
    if item.system is not None or any(one.role == "assistant" for one in item.messages):
        return ""
    texts, trees = set[str](), list[Any]()
    for message in item.messages:
        _note_read(message.parts, texts, trees)
        texts.update(filter(None, (message.role, message.name)))
    names = bool(item.messages)
    lines = [
        f"{json.dumps(path)}: {_text(leaf)}"
        for path, leaf in _leaves(tree, "", trees)
        if not (isinstance(leaf, str) and leaf in texts)
        and not (names and path.rpartition("/")[2] in ("type", "role"))
    ]
    return "\n".join(lines)


def _note_read(parts: Iterable[Part], texts: set[str], trees: list[Any]) -> None:
    for part in parts:
        match part:
            case Image():
                texts.update(filter(None, (part.media_type, part.url, part.data)))
            case ToolCall():
                texts.update(filter(None, (part.id, part.name, part.text)))
                trees.append(part.arguments)
            case ToolResult():
                texts.update(filter(None, (part.id, part.name)))
                inner = [
                    one
                    for one in part.parts
                    if isinstance(one, Text) or (isinstance(one, Other) and one.kind == "json")
                ]
                _note_read(inner, texts, trees)
            case Other():
                trees.append(part.raw)
            case _:
                texts.add(part.text)


def _leaves(tree: Any, path: str, read: list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict | list) and any(tree == one for one in read):
        return
    if isinstance(tree, dict):
        for name, value in sorted(tree.items()):
            if name not in CACHE_MARKERS:
                yield from _leaves(value, f"{path}/{name}", read)
    elif isinstance(tree, list):
        for at, one in enumerate(tree):
            yield from _leaves(one, f"{path}/{at}", read)
    else:
        yield path, tree


def counted_parts(
    exchange: Exchange, rules: Rules | None, around: JsonObject, key: str, elements: dict[int, Any]
) -> tuple[JsonObject, dict[int, Any]]:
    """Give what is beside the messages of a request, and some of its messages by their places, but for what rules leave out.

    around: what is beside the messages.
    key: name of the list of messages.
    """
    request = exchange.request
    masks = rules.of(request, exchange.request_class).masks if rules is not None else None
    if rules is None or masks is None or not (masks.json or masks.placed or masks.regex):
        return around, elements
    listed = [elements.get(at) for at in range(max(elements, default=-1) + 1)]
    headers = tuple(pair for pair in request.headers if pair[0].lower() != b"content-encoding")
    try:
        body = msgspec.json.encode({**around, key: listed} if key else around)
        short = replace(request, body=body, headers=headers, spilled=None)
        tree = _plain(body_tree(short, rules, exchange.request_class))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return around, elements
    if not isinstance(tree, dict):
        return around, elements
    left = tree.pop(key, None) if key else None
    if not isinstance(left, list) or len(left) != len(listed):
        return tree, elements
    return tree, {at: left[at] for at in elements}


def _plain(tree: Any) -> Any:
    """Give a tree as it is compared as one of plain values; a word stands for what is left out."""
    if isinstance(tree, dict):
        return {
            name[2:] if name.startswith(MARKER) else name: _plain(value)
            for name, value in tree.items()
        }
    if isinstance(tree, list):
        return [_plain(one) for one in tree]
    shown = show_json(tree)
    try:
        return json.loads(shown)
    except ValueError:
        return shown


def _text(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, sort_keys=True)
