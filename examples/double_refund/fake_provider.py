"""A model provider on loopback: speaks the OpenAI chat API, thinks by a script.

    python -m playhead.examples.double_refund.fake_provider --port 0

`answer` is the model: the same messages get the same reply and the same ids, always. It does what a
helpful model does and shares its blind spot: when a tool says that it timed out, it calls it again.

Wire format: OpenAI API reference, "Chat completions" and "Streaming"; a stream is server-sent events,
a tool call's arguments come in pieces, and `usage` comes last and only where it was asked for.
"""

import argparse
import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from .serving import serve

CHUNK_GAP_S = 0.004
CREATED = 1_760_000_000
"""Seconds since the epoch; the same for every answer, so that answers can be compared."""
MAX_TRIES = 3

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says, and the one tool it calls, if any."""

    text: str
    tool: str = ""
    arguments: str = ""
    """JSON; empty where no tool is called."""


def answer(messages: list[Message]) -> Reply:
    """Decide the next turn of the support agent from the conversation so far."""
    question = max((n for n, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    complaint = _text(messages[question]) if question >= 0 else ""
    results = _tool_results(messages[question + 1 :])
    if not results:
        order = re.search(r"\border (\d+)", complaint, re.IGNORECASE)
        if not order:
            return Reply("Which order is this about?")
        return _call("I am sorry. Let me look at your order.", "lookup_order", order_id=order[1])
    tool, result = results[-1]
    if "timed out" in result:
        if sum("timed out" in text for _, text in results) >= MAX_TRIES:
            return Reply("The payment service does not answer. Please try again tomorrow.")
        return _again(messages, "That took too long. Let me try again.")
    record = _json_object(result)
    if "error" in record or not record.get("id"):
        return Reply("I am sorry, that did not work. Please write to a colleague of mine.")
    if tool == "lookup_order":
        price = re.search(r"\b(\d+)\.(\d\d)\b", complaint)
        amount = int(price[1] + price[2]) if price else record.get("amount", 0)
        return _call("I will refund that now.", "refund", charge=record["id"], amount=amount)
    amount, currency = record.get("amount", 0), str(record.get("currency", "")).upper()
    paid = f"{amount / 100:.2f} {currency}"
    return Reply(f"You get {paid} back (refund {record['id']}). Sorry for the trouble!")


def _text(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _tool_results(messages: list[Message]) -> list[tuple[str, str]]:
    """Tool name and result of every tool message, in order."""
    names = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    return [
        (names.get(message.get("tool_call_id"), ""), _text(message))
        for message in messages
        if message.get("role") == "tool"
    ]


def _call(text: str, tool: str, **arguments: Any) -> Reply:
    return Reply(text, tool, json.dumps(arguments))


def _again(messages: list[Message], text: str) -> Reply:
    """Repeat the last tool call, word for word."""
    last = [call for m in messages for call in m.get("tool_calls") or ()][-1]["function"]
    return Reply(text, last["name"], last["arguments"])


def _json_object(text: str) -> Message:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def completion(request: Message) -> Message:
    """Answer a request in one piece, as a `chat.completion` object."""
    reply, base, usage = _begin(request, "chat.completion")
    message: Message = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.tool:
        function = {"name": reply.tool, "arguments": reply.arguments}
        message["tool_calls"] = [{"id": _call_id(base), "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {**base, "choices": [choice], "usage": usage}


def chunks(request: Message) -> Iterator[Message]:
    """Answer a request piece by piece, as `chat.completion.chunk` objects."""
    reply, base, usage = _begin(request, "chat.completion.chunk")
    with_usage = bool((request.get("stream_options") or {}).get("include_usage"))

    def chunk(delta: Message, finish: str | None = None) -> Message:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**base, "choices": [choice]} | ({"usage": None} if with_usage else {})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in re.findall(r"\S+\s*", reply.text):
        yield chunk({"content": piece})
    if reply.tool:
        function = {"name": reply.tool, "arguments": ""}
        opening = {"index": 0, "id": _call_id(base), "type": "function", "function": function}
        yield chunk({"tool_calls": [opening]})
        for start in range(0, len(reply.arguments), 7):
            piece = reply.arguments[start : start + 7]
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    if with_usage:
        yield {**base, "choices": [], "usage": usage}


def _begin(request: Message, kind: str) -> tuple[Reply, Message, Message]:
    messages = request["messages"]
    reply = answer(messages)
    said = json.dumps(messages, sort_keys=True)
    asked, told = len(said) // 4, len(reply.text + reply.arguments) // 4
    base = {
        "id": "chatcmpl-" + hashlib.sha256(said.encode()).hexdigest()[:24],
        "object": kind,
        "created": CREATED,
        "model": request.get("model", ""),
        "system_fingerprint": "fp_script",
    }
    usage = {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
    return reply, base, usage


def _call_id(base: Message) -> str:
    return "call_" + str(base["id"]).removeprefix("chatcmpl-")


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.tool else "stop"


async def _chat(request: web.Request) -> web.StreamResponse:
    try:
        asked = _json_object(await request.text())
        if not isinstance(asked.get("messages"), list):
            return _bad_request("'messages' is a required property")
        if not asked.get("stream"):
            return web.json_response(completion(asked))
        pieces = list(chunks(asked))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        return _bad_request(f"the messages cannot be read: {error!r}")
    response = web.StreamResponse(
        headers={"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    )
    try:
        await response.prepare(request)
        for piece in pieces:
            await response.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
            await asyncio.sleep(CHUNK_GAP_S)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
    except ConnectionError:
        pass  # the client closed its stream early, which is its right
    return response


def _bad_request(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=400)


def make_app() -> web.Application:
    """Make the provider's application; it keeps no state."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _chat)
    return app


def main() -> None:
    """Run the provider until a signal ends it."""
    parser = argparse.ArgumentParser(description="A scripted model behind the OpenAI chat API.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    serve(make_app(), parser.parse_args().port)


if __name__ == "__main__":
    main()
