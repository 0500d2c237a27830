"""A host that says what each SDK wants to hear, over HTTP and WebSockets; `answer` is its one handler."""

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

CALL = {"name": "refund", "arguments": '{"charge": "ch_1007", "amount": 5}'}
CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-fake",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
    ],
}
TOOL_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-fake",
    "content": [{"type": "text", "text": "yes"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
MESSAGE_EVENTS = (
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
)
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "yes", "annotations": []}],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-fake",
    "output": [SAID],
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "status": "completed",
    **CALL,
}
EMBEDDINGS = {
    "object": "list",
    "model": "e",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}
CONTENT = {"candidates": [{"content": {"role": "model", "parts": [{"text": "yes"}]}, "index": 0}]}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}
LIST = {"object": "list", "data": [], "has_more": False, "url": "/v1/x"}
FILE = {
    "id": "file_1",
    "object": "file",
    "bytes": 9,
    "created_at": 1,
    "filename": "a.jsonl",
    "purpose": "batch",
    "status": "processed",
}

ANSWERS: tuple[tuple[str, object], ...] = (
    ("/api/", {"ok": True, "channels": [], "ts": "1.0"}),
    ("/BerriAI/", {}),
    ("/traces/ingest", {}),
    ("/embeddings", EMBEDDINGS),
    ("/v1/files", FILE),
    ("/count_tokens", {"input_tokens": 3}),
    (":generateContent", CONTENT),
    ("/converse", CONVERSE),
    ("/refunds", {"id": "re_1", "object": "refund", "amount": 1}),
    ("/v1/", LIST),
)
"""By what the path ends with or, last, holds."""


async def answer(request: web.Request) -> web.StreamResponse:
    """Say what each SDK wants to hear."""
    if request.headers.get("upgrade", "").lower() == "websocket":
        return await _converse(request)
    sent = await request.read()
    path = request.path
    if path.startswith("/busy/") and request.headers["x-stainless-retry-count"] == "0":
        return web.json_response({}, status=500, headers={"retry-after-ms": "1"})
    if path.endswith(("/chat/completions", "/v1/messages", "/v1/responses")):
        asked = json.loads(sent)
        return _stream(path) if asked.get("stream") else web.json_response(_told(path, asked))
    target = request.headers.get("x-amz-target", "")
    if target.startswith("AmazonSQS"):
        told: object = {"MessageId": "1", "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592"}
    elif target:
        told = {}
    else:
        told = next((said for part, said in ANSWERS if part in path), None)
    if told is None:  # a plain client, or S3, which has no body after a PUT
        return web.Response(text="" if request.method == "PUT" else "fine")
    return web.json_response(told)


def _stream(path: str) -> web.Response:
    if path.endswith("/v1/messages"):
        events = (f"event: {told['type']}\ndata: {json.dumps(told)}" for told in MESSAGE_EVENTS)
        text = "".join(f"{event}\n\n" for event in events)
    else:
        delta = {"index": 0, "delta": {"content": "yes"}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunk = {**CHAT, "object": "chat.completion.chunk"}
        lines = [json.dumps({**chunk, "choices": [choice]}) for choice in (delta, end)]
        lines.append("[DONE]")
        text = "".join(f"data: {line}\n\n" for line in lines)
    return web.Response(text=text, content_type="text/event-stream")


def _told(path: str, asked: dict[str, Any]) -> object:
    """Answer; want a tool before, where there is one."""
    if path.endswith("/v1/messages"):
        return MESSAGE
    if path.endswith("/responses"):
        wanted = asked.get("tools") and asked["input"][-1].get("type") != "function_call_output"
        return {**RESPONSE, "output": [FUNCTION_CALL if wanted else SAID]}
    if not asked.get("tools") or asked["messages"][-1]["role"] == "tool":
        return CHAT
    return {
        **CHAT,
        "choices": [{**CHAT["choices"][0], "finish_reason": "tool_calls", "message": TOOL_CALL}],
    }


# ---- WebSockets --------------------------------------------------------------------------------------


async def _converse(request: web.Request) -> web.WebSocketResponse:
    """Say back what is said, or at `/realtime` what a realtime model says."""
    socket = web.WebSocketResponse(protocols=("realtime",))
    await socket.prepare(request)
    said = _realtime if request.path.endswith("/realtime") else None
    said = _responses if request.path.endswith("/responses") else said
    if said is _realtime:
        await _tell(socket, "session.created", session={"type": "realtime"})
    async for message in socket:
        if said is not None:
            await said(socket, json.loads(message.data))
        elif message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


async def _realtime(socket: web.WebSocketResponse, asked: dict[str, Any]) -> None:
    if asked["type"] == "session.update":
        await _tell(socket, "session.updated", session=asked["session"])
    elif asked["type"] == "response.create":
        made = {"id": "resp_1", "object": "realtime.response", "output": []}
        await _tell(socket, "response.created", response={**made, "status": "in_progress"})
        await _tell(socket, "response.done", response={**made, "status": "completed"})


async def _responses(socket: web.WebSocketResponse, asked: dict[str, Any]) -> None:
    made = _told("/responses", asked)
    await socket.send_json({"type": "response.created", "sequence_number": 0, "response": made})
    await socket.send_json({"type": "response.completed", "sequence_number": 1, "response": made})


async def _tell(socket: web.WebSocketResponse, kind: str, **more: object) -> None:
    await socket.send_json({"type": kind, "event_id": f"event_{kind}", **more})


# ---- HTTP/2 ------------------------------------------------------------------------------------------


async def answer_asgi(scope: Any, receive: Any, send: Any) -> None:
    """Read what comes, and say `fine`."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"fine"})


# ---- git ---------------------------------------------------------------------------------------------


def serve_repository(repository: Path) -> Any:
    """Give a handler that serves a repository over git's smart HTTP protocol, for fetches and pushes."""

    async def serve(request: web.Request) -> web.StreamResponse:
        asked = await request.read()
        if request.headers.get("content-encoding") == "gzip":
            asked = gzip.decompress(asked)
        advertise = request.path.endswith("/info/refs")
        service = request.query["service"] if advertise else request.path.rpartition("/")[2]
        flags = ("--advertise-refs",) if advertise else ()
        process = await asyncio.create_subprocess_exec(
            *("git", service.removeprefix("git-"), "--stateless-rpc", *flags, str(repository)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "GIT_PROTOCOL": request.headers.get("git-protocol", "")},
        )
        told, _ = await process.communicate(asked)
        kind = "advertisement" if advertise else "result"
        if advertise and (service, request.headers.get("git-protocol")) != (
            "git-upload-pack",
            "version=2",
        ):
            line = f"# service={service}\n"
            told = f"{len(line) + 4:04x}{line}0000".encode() + told
        return web.Response(body=told, content_type=f"application/x-{service}-{kind}", charset=None)

    return serve
