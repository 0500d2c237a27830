"""Take an answer of a model apart into the events of a stream, as its provider would send it: one piece for each part.

Source: the streams of the providers as in `tests/tape/dialects/samples`; what comes out, put together again, is what went in.
"""

import json
from collections.abc import Callable, Iterator

from ..dialects import find_dialect
from ..dialects.anthropic_messages import INPUT_TEXT
from ..dialects.common.untrusted_json import (
    Json,
    JsonObject,
    as_list,
    as_object,
    as_text,
    find_json,
)
from ..exchange import HttpRequest

Events = Iterator[tuple[str, Json]]
"""Name, or nothing, and data."""
_END = "[DONE]"


def stream_again(request: HttpRequest, tree: Json) -> bytes:
    """Give the stream that comes to this JSON.

    Raises: ValueError, where this format is not taken apart.
    """
    dialect = find_dialect(request)
    name = dialect.name if dialect is not None else ""
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(
            f"$: the recorded answer is a stream of {name or 'an unknown format'}, and JSON can be given for {known};"
            " give the stream itself, as `playhead show RUN SEQ --raw` has it"
        )
    return b"".join(_event(*one) for one in FORMATS[name](as_object(tree)))


def _event(name: str, data: Json) -> bytes:
    head = f"event: {name}\n" if name else ""
    text = data if data == _END else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{head}data: {text}\n\n".encode("utf-8", "surrogatepass")


def _openai_chat(tree: JsonObject) -> Events:
    head: JsonObject = {
        key: value for key, value in tree.items() if key not in ("choices", "usage", "object")
    }
    head["object"] = "chat.completion.chunk"
    for at, value in enumerate(as_list(tree.get("choices"))):
        choice = as_object(value)
        index = choice.get("index", at)
        delta: JsonObject = dict(as_object(choice.get("message")))
        calls = as_list(delta.get("tool_calls"))
        if calls:
            delta["tool_calls"] = [{"index": n, **as_object(one)} for n, one in enumerate(calls)]
        rest = {key: item for key, item in choice.items() if key not in ("message", "index")}
        begun: JsonObject = {"index": index, "delta": delta, "finish_reason": None}
        ended: JsonObject = {"index": index, "delta": {}, **rest}
        yield "", {**head, "choices": [begun]}
        yield "", {**head, "choices": [ended]}
    if "usage" in tree:
        yield "", {**head, "choices": [], "usage": tree["usage"]}
    yield "", _END


def _anthropic(tree: JsonObject) -> Events:
    usage = as_object(tree.get("usage"))
    late = ("content", "stop_reason", "stop_sequence")
    head: JsonObject = {key: value for key, value in tree.items() if key not in late}
    begun: JsonObject = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
    yield "message_start", {"type": "message_start", "message": begun}
    for index, value in enumerate(as_list(tree.get("content"))):
        block = as_object(value)
        start, deltas = _anthropic_block(block)
        name = "content_block_start"
        yield name, {"type": name, "index": index, "content_block": start}
        name = "content_block_delta"
        for delta in deltas:
            yield name, {"type": name, "index": index, "delta": delta}
        name = "content_block_stop"
        yield name, {"type": name, "index": index}
    why: JsonObject = {key: tree.get(key) for key in ("stop_reason", "stop_sequence")}
    yield "message_delta", {"type": "message_delta", "delta": why, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _anthropic_block(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    start: JsonObject = dict(block)
    match block.get("type"):
        case "text":
            start["text"] = ""
            return start, [{"type": "text_delta", "text": block.get("text", "")}]
        case "thinking":
            start |= {"thinking": "", "signature": ""}
            deltas: list[JsonObject] = [
                {"type": "thinking_delta", "thinking": block.get("thinking", "")}
            ]
            if block.get("signature"):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return start, deltas
        case "tool_use" | "server_tool_use":
            start = {key: value for key, value in block.items() if key != INPUT_TEXT}
            start["input"] = {}
            text = as_text(block.get(INPUT_TEXT))
            if text is None:
                text = json.dumps(block.get("input", {}), ensure_ascii=False, separators=(",", ":"))
            return start, [{"type": "input_json_delta", "partial_json": text}]
    return start, []


def settle_arguments(was: Json, now: Json) -> None:
    """Have each tool call of an edited message state its arguments once, as they are sent: Anthropic's come as text beside the value.

    What was not edited keeps its text, with its numbers and white space.
    was, now: the message before and after; changed in place.
    Raises: ValueError, where both were edited and differ, or the text is no JSON.
    """
    before = {
        as_text(block.get("id")): block
        for value in as_list(as_object(was).get("content"))
        if INPUT_TEXT in (block := as_object(value))
    }
    for at, value in enumerate(as_list(as_object(now).get("content"))):
        block = as_object(value)
        text = as_text(block.get(INPUT_TEXT))
        if text is None:
            continue
        old = before.get(as_text(block.get("id")), {})
        said = find_json(text.encode("utf-8", "surrogatepass"))
        if _is_same(said, block.get("input")):
            continue
        if text == old.get(INPUT_TEXT):
            del block[INPUT_TEXT]  # the value alone was edited
        elif said is None:
            raise ValueError(f"$.content[{at}]['{INPUT_TEXT}']: the arguments are no JSON")
        elif not _is_same(block.get("input"), old.get("input")):
            raise ValueError(
                f"$.content[{at}]: `input` and `{INPUT_TEXT}` say different arguments; expected the edit in one of them"
            )


def _is_same(one: Json, other: Json) -> bool:
    """Compare as written: `1`, `1.0` and `true` are equal in Python."""
    return json.dumps(one) == json.dumps(other)


def _responses(tree: JsonObject) -> Events:
    number = 0

    def event(kind: str, **data: Json) -> tuple[str, Json]:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number - 1, **data}

    begun: JsonObject = {**tree, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for at, value in enumerate(as_list(tree.get("output"))):
        item = as_object(value)
        name: JsonObject = {"output_index": at}
        if "id" in item:
            name["item_id"] = item["id"]
        empty: JsonObject = {**item, "status": "in_progress"}
        for key in ("content", "summary"):
            if key in item:
                empty[key] = []
        for key in ("arguments", "input"):
            if key in item:
                empty[key] = ""
        yield event("response.output_item.added", output_index=at, item=empty)
        for index, part in enumerate(as_list(item.get("content"))):
            yield from _responses_part(event, name, index, as_object(part))
        text = as_text(item.get("arguments"))
        if text is not None:
            kind = "response.function_call_arguments"
            yield event(f"{kind}.delta", **name, delta=text)
            yield event(f"{kind}.done", **name, arguments=text)
        yield event("response.output_item.done", output_index=at, item=item)
    end = {"incomplete": "incomplete", "failed": "failed"}.get(as_text(tree.get("status")) or "")
    yield event(f"response.{end or 'completed'}", response=tree)


def _responses_part(
    event: Callable[..., tuple[str, Json]], name: JsonObject, index: int, part: JsonObject
) -> Events:
    text = as_text(part.get("text"))
    if part.get("type") != "output_text" or text is None:
        return
    place: JsonObject = {**name, "content_index": index}
    yield event("response.content_part.added", **place, part={**part, "text": ""})
    yield event("response.output_text.delta", **place, delta=text)
    yield event("response.output_text.done", **place, text=text)
    yield event("response.content_part.done", **place, part=part)


def _gemini(tree: JsonObject) -> Events:
    yield "", tree


FORMATS: dict[str, Callable[[JsonObject], Events]] = {
    "openai-chat": _openai_chat,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "gemini": _gemini,
}
"""By dialect."""
