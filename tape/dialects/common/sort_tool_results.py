"""Blocks of tool results in the body of a model call: their order apart from what they say.

A block is a maximal run of results that follow one another in a list, as they follow one turn of the model. Wires list them as

* messages of role `tool` with `tool_call_id` (OpenAI chat and what speaks it),
* items `..._output` with `call_id` in `input` (OpenAI Responses),
* content blocks `tool_result` with `tool_use_id`, or `toolResult` (Anthropic, Bedrock), also in a message each,
* parts `functionResponse` with `id`, or with distinct names where there is none (Gemini, also in Code Assist's `request`).

A block in which two results have the same key is none: nobody knows which is which. `cache_control` marks how much of a
conversation a cache keeps, so it belongs to a place in the block and not to a result.
"""

from collections.abc import Callable
from typing import Any

Block = tuple[str, ...]
"""Keys of results in the order in which they stand."""

_CACHE = "cache_control"


def arrange_results(tree: Any) -> list[Block]:
    """Sort each block of results by its keys, in place; give the blocks as they stood.

    tree: a body as JSON types. Blocks of one result are not given.
    """
    blocks: list[Block] = []
    if not isinstance(tree, dict):
        return blocks
    holders = [tree, tree.get("request")]
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        for name in ("messages", "input", "contents"):
            listed = holder.get(name)
            if isinstance(listed, list):
                for item in listed:
                    for inner in ("content", "parts"):
                        if isinstance(item, dict) and isinstance(item.get(inner), list):
                            _arrange(item[inner], _block_key, blocks)
                _arrange(listed, _item_key, blocks)
    return blocks


def _arrange(items: list[Any], key_of: Callable[[Any], str], blocks: list[Block]) -> None:
    keys = [key_of(item) for item in items]
    start = 0
    while start < len(items):
        end = start
        while end < len(items) and keys[end]:
            end += 1
        block = tuple(keys[start:end])
        if len(block) > 1 and len(set(block)) == len(block):
            blocks.append(block)
            _sort(items, start, block)
        start = end + 1


def _sort(items: list[Any], start: int, block: Block) -> None:
    """Sort a block; what marks a place of it stays there."""
    end = start + len(block)
    part = items[start:end]
    marks = [_pop_mark(item) for item in part]
    sorted_part = [item for _, item in sorted(zip(block, part, strict=True), key=_first)]
    for item, mark in zip(sorted_part, marks, strict=True):
        if mark is not None:
            item[_CACHE] = mark
    items[start:end] = sorted_part


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _pop_mark(item: Any) -> Any:
    return item.pop(_CACHE, None) if isinstance(item, dict) else None


def _item_key(item: Any) -> str:
    """Give the key of a list item that is the result of a tool, and nothing else; else nothing."""
    if not isinstance(item, dict):
        return ""
    if item.get("role") == "tool":
        return _text(item.get("tool_call_id"))
    kind = item.get("type")
    if isinstance(kind, str) and kind.endswith("_output"):
        return _text(item.get("call_id"))
    for inner in ("content", "parts"):
        parts = item.get(inner)
        if isinstance(parts, list) and len(parts) == 1:
            return _block_key(parts[0])
    return ""


def _block_key(block: Any) -> str:
    """Give the key of a part of a message that is the result of a tool; else nothing."""
    if not isinstance(block, dict):
        return ""
    if block.get("type") == "tool_result":
        return _text(block.get("tool_use_id"))
    for name in ("toolResult", "functionResponse", "function_response"):
        inner = block.get(name)
        if isinstance(inner, dict):
            return (
                _text(inner.get("toolUseId")) or _text(inner.get("id")) or _text(inner.get("name"))
            )
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
