"""Bodies of model requests and answers, as four providers' clients and servers send them.

A conversation is a list of neutral messages, `user`, `said` and `result` below; `request` and `answer` write them
in a provider's format. Sources: the providers' public API references.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

type Plain = dict[str, Any]

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini")
MODELS = {
    "anthropic": "claude-sonnet-4-5-20250929",
    "openai-chat": "gpt-4.1-2025-04-14",
    "openai-responses": "gpt-5-2025-08-07",
    "gemini": "gemini-2.5-pro",
}
_URLS = {
    "anthropic": "https://api.anthropic.com/v1/messages",
    "openai-chat": "https://api.openai.com/v1/chat/completions",
    "openai-responses": "https://api.openai.com/v1/responses",
}
_AGENTS = {
    "anthropic": "Anthropic/Python 0.75.0",
    "openai-chat": "OpenAI/Python 2.8.1",
    "openai-responses": "OpenAI/Python 2.8.1",
    "gemini": "google-genai-sdk/1.52.0 gl-python/3.12.3",
}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def user(text: str) -> Plain:
    """Give what the user said; a message with `as` has a name in chats."""
    return {"role": "user", "text": text}


def said(text: str, calls: Sequence[Plain] = ()) -> Plain:
    """Give what the model said; each call has `id`, `name` and `arguments`."""
    return {"role": "assistant", "text": text, "calls": list(calls)}


def result(call: Plain, text: str) -> Plain:
    """Give what a tool call gave."""
    return {"role": "tool", "id": call["id"], "name": call["name"], "text": text}


def tool(name: str, *parameters: str, about: str = "") -> Plain:
    """Give a neutral tool with parameters that are texts."""
    return {
        "name": name,
        "description": about or f"Call {name.replace('_', ' ')}.",
        "schema": {
            "type": "object",
            "properties": {one: {"type": "string"} for one in parameters},
            "required": list(parameters),
        },
    }


def draw(rng: Random, prefix: str, count: int = 22) -> str:
    """Draw an id."""
    return prefix + "".join(rng.choices(_ALPHABET, k=count))


def call_id(dialect: str, rng: Random) -> str:
    """Draw the id of a tool call as the provider writes it."""
    return draw(rng, "toolu_01" if dialect == "anthropic" else "call_")


def url(dialect: str, model: str, stream: bool) -> str:
    """Give where a request goes."""
    if dialect != "gemini":
        return _URLS[dialect]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"https://generativelanguage.googleapis.com/v1beta/models/{model}:{verb}"


def request_headers(dialect: str) -> dict[str, str]:
    """Give the header fields of a request, without credentials."""
    fields = {"content-type": "application/json", "user-agent": _AGENTS[dialect]}
    return fields | ({"anthropic-version": "2023-06-01"} if dialect == "anthropic" else {})


def _arguments(call: Plain) -> str:
    return json.dumps(call["arguments"], ensure_ascii=False)


def _anthropic(message: Plain) -> Plain:
    if message["role"] == "user":
        return {"role": "user", "content": [{"type": "text", "text": message["text"]}]}
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["id"], "content": message["text"]}
        return {"role": "user", "content": [block]}
    return {"role": "assistant", "content": anthropic_blocks(message)}


def anthropic_blocks(message: Plain) -> list[Plain]:
    """Give the content of what the model said."""
    blocks: list[Plain] = []
    if message["text"]:
        blocks.append({"type": "text", "text": message["text"]})
    for call in message["calls"]:
        block = {"type": "tool_use", "id": call["id"], "name": call["name"]}
        blocks.append(block | {"input": call["arguments"]})
    return blocks


def _chat(message: Plain) -> Plain:
    named = {"name": message["as"]} if "as" in message else {}
    if message["role"] == "user":
        return {"role": "user", "content": message["text"]} | named
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["id"], "content": message["text"]}
    written: Plain = {"role": "assistant", "content": message["text"] or None} | named
    if message["calls"]:
        written["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": _arguments(call)},
            }
            for call in message["calls"]
        ]
    return written


def _responses(message: Plain) -> list[Plain]:
    if message["role"] == "user":
        return [{"role": "user", "content": message["text"]}]
    if message["role"] == "tool":
        kind = "function_call_output"
        return [{"type": kind, "call_id": message["id"], "output": message["text"]}]
    items: list[Plain] = []
    if message["text"]:
        part = {"type": "output_text", "text": message["text"], "annotations": []}
        items.append({"type": "message", "role": "assistant", "content": [part]})
    for call in message["calls"]:
        item = {"type": "function_call", "call_id": call["id"], "name": call["name"]}
        items.append(item | {"arguments": _arguments(call)})
    return items


def _gemini(message: Plain) -> Plain:
    if message["role"] == "user":
        return {"role": "user", "parts": [{"text": message["text"]}]}
    if message["role"] == "tool":
        given = {"name": message["name"], "response": {"result": message["text"]}}
        return {"role": "user", "parts": [{"functionResponse": given}]}
    return {"role": "model", "parts": _gemini_parts(message)}


def _gemini_parts(message: Plain) -> list[Plain]:
    parts: list[Plain] = [{"text": message["text"]}] if message["text"] else []
    for call in message["calls"]:
        parts.append({"functionCall": {"name": call["name"], "args": call["arguments"]}})
    return parts


def _merged(messages: list[Plain], key: str) -> list[Plain]:
    """Put results of tool calls that were made together into one message, as the clients do."""
    merged: list[Plain] = []
    for message in messages:
        if merged and message["role"] == "user" == merged[-1]["role"]:
            merged[-1][key].extend(message[key])
        else:
            merged.append(message)
    return merged


def request(
    dialect: str,
    model: str,
    system: str,
    tools: Sequence[Plain],
    messages: Sequence[Plain],
    stream: bool = False,
) -> Plain:
    """Write the body of a request; the order of keys is the clients'."""
    if dialect == "anthropic":
        return {
            "model": model,
            "max_tokens": 8192,
            "system": [{"type": "text", "text": system}],
            "tools": [
                {
                    "name": one["name"],
                    "description": one["description"],
                    "input_schema": one["schema"],
                }
                for one in tools
            ],
            "messages": _merged([_anthropic(one) for one in messages], "content"),
        } | ({"stream": True} if stream else {})
    described = [
        {
            "name": one["name"],
            "description": one["description"],
            "parameters": one["schema"],
        }
        for one in tools
    ]
    if dialect == "openai-chat":
        head = [{"role": "system", "content": system}]
        body: Plain = {"model": model, "messages": head + [_chat(one) for one in messages]}
        if tools:
            body["tools"] = [{"type": "function", "function": one} for one in described]
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body
    if dialect == "openai-responses":
        items = [item for one in messages for item in _responses(one)]
        body = {"model": model, "instructions": system, "input": items}
        if tools:
            body["tools"] = [{"type": "function"} | one for one in described]
        return body | {"store": False} | ({"stream": True} if stream else {})
    body = {
        "contents": _merged([_gemini(one) for one in messages], "parts"),
        "systemInstruction": {"parts": [{"text": system}]},
    }
    if tools:
        body["tools"] = [{"functionDeclarations": described}]
    return body


def usage(dialect: str, counts: Plain) -> Plain:
    """Write `input` (all of it), `output`, `read` and `written` (of the input) as the provider counts them."""
    whole, output = counts["input"], counts["output"]
    read, written = counts.get("read", 0), counts.get("written", 0)
    if dialect == "anthropic":
        return {
            "input_tokens": whole - read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": output,
        }
    if dialect == "openai-chat":
        return {
            "prompt_tokens": whole,
            "completion_tokens": output,
            "total_tokens": whole + output,
            "prompt_tokens_details": {"cached_tokens": read}
            | ({"cache_write_tokens": written} if written else {}),
        }
    if dialect == "openai-responses":
        return {
            "input_tokens": whole,
            "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": whole + output,
        }
    stated = {
        "promptTokenCount": whole,
        "candidatesTokenCount": output,
        "totalTokenCount": whole + output,
    }
    return stated | ({"cachedContentTokenCount": read} if read else {})


def answer(dialect: str, model: str, message: Plain, stated: Plain | None, rng: Random) -> Plain:
    """Write an answer in one piece; `stated` is its usage as `usage` gives it, None for none."""
    calls = message["calls"]
    if dialect == "anthropic":
        body: Plain = {
            "id": draw(rng, "msg_01"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": anthropic_blocks(message),
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
        }
        return body | ({"usage": stated} if stated else {})
    if dialect == "openai-chat":
        body = {
            "id": draw(rng, "chatcmpl-"),
            "object": "chat.completion",
            "created": rng.randrange(1_760_000_000, 1_790_000_000),
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": _chat(message),
                    "finish_reason": "tool_calls" if calls else "stop",
                }
            ],
        }
        return body | ({"usage": stated} if stated else {})
    if dialect == "openai-responses":
        body = {
            "id": draw(rng, "resp_"),
            "object": "response",
            "created_at": rng.randrange(1_760_000_000, 1_790_000_000),
            "status": "completed",
            "model": model,
            "output": [
                {
                    "id": draw(rng, "msg_" if one["type"] == "message" else "fc_"),
                    "status": "completed",
                }
                | one
                for one in _responses(message)
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        return body | ({"usage": stated} if stated else {})
    candidate = {"content": {"role": "model", "parts": _gemini_parts(message)}}
    body = {"candidates": [candidate | {"finishReason": "STOP", "index": 0}]}
    if stated:
        body["usageMetadata"] = stated
    return body | {"modelVersion": model, "responseId": draw(rng, "")}


def encode(body: Any) -> bytes:
    """Write a body as bytes: a list of events as a stream, a text as UTF-8, None as nothing, else JSON.

    Halves of surrogate pairs are escapes in JSON, and what UTF-8 does not allow in a text.
    """
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if not isinstance(body, list) or not is_events(body):
        return _json(body)
    lines = []
    for event in body:
        data = event["data"]
        name = f"event: {event['event']}\n".encode() if "event" in event else b""
        lines.append(name + b"data: " + (data.encode() if isinstance(data, str) else _json(data)))
    return b"\n\n".join([*lines, b""])


def _json(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


def is_events(body: Any) -> bool:
    """Say whether a body is a list of server-sent events: each has `data`, and `event` where it has a name."""
    return (
        isinstance(body, list)
        and bool(body)
        and all(
            isinstance(one, dict) and "data" in one and set(one) <= {"data", "event"}
            for one in body
        )
    )
