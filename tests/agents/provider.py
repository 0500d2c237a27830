"""The model provider: answers a request of any of the four wires by the script."""

import asyncio
import json
import re
from pathlib import PurePath
from types import ModuleType
from typing import Any

from aiohttp import WSMsgType, web

from playhead.tests.agents.script import Asked, say
from playhead.tests.agents.wires import anthropic, chat, gemini, responses

_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>\w+)$")
_WIRES: dict[str, ModuleType] = {
    "/messages": anthropic,
    "/chat/completions": chat,
    "/responses": responses,
}
"""By the end of the path."""
_MODELS = ("gpt-5.1", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-coder-plus")


class Provider:
    """Answers model requests on whatever host they come.

    work: the agent's working folder, for tools that want absolute paths.
    """

    def __init__(self, work: PurePath) -> None:
        self._work = work

    async def find_answer(self, request: web.Request) -> web.StreamResponse | None:
        """Answer a model request; None where it is none."""
        path = request.path
        if request.method == "GET":
            if path.endswith("/responses") and "upgrade" in request.headers:
                return await self._websocket(request)
            return _models(path)
        if found := _GEMINI.search(path):
            return await self._gemini(request, found["model"], found["verb"])
        body = await _json(request)
        if path.endswith("/responses/input_tokens"):
            return web.json_response({"object": "response.input_tokens", "input_tokens": 100})
        if path.endswith("/count_tokens"):
            return web.json_response({"input_tokens": 100})
        if path.endswith("/embeddings"):
            return _embeddings(body)
        wire = next((one for end, one in _WIRES.items() if path.endswith(end)), None)
        if wire is None:
            return None
        asked: Asked = wire.read(body)
        said = say(asked, self._work)
        if not asked.stream:
            return web.json_response(wire.whole(asked, said))
        return await _stream(request, wire.stream(asked, said))

    async def _gemini(
        self, request: web.Request, model: str, verb: str
    ) -> web.StreamResponse | None:
        body = await _json(request)
        match verb:
            case "countTokens":
                return web.json_response({"totalTokens": 100})
            case "embedContent":
                return web.json_response({"embedding": {"values": [0.1] * 8}})
            case "batchEmbedContents":
                one = {"values": [0.1] * 8}
                return web.json_response({"embeddings": [one for _ in body.get("requests", ())]})
            case "generateContent":
                asked = gemini.read(body, model, stream=False)
                return web.json_response(gemini.whole(asked, say(asked, self._work)))
            case "streamGenerateContent":
                asked = gemini.read(body, model, stream=True)
                return await _stream(request, gemini.stream(asked, say(asked, self._work)))
        return None

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=1 << 26)
        await socket.prepare(request)
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            body = json.loads(message.data)
            if body.get("type") != "response.create":
                continue
            asked = responses.read(body.get("response") or body)
            said = say(asked, self._work)
            if body.get("generate") is False:
                said = type(said)()
            for event in responses.events(asked, said):
                await socket.send_str(json.dumps(event))
        return socket


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read() or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _models(path: str) -> web.StreamResponse | None:
    if not path.endswith("/models"):
        return None
    models = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in _MODELS]
    return web.json_response({"object": "list", "data": models, "models": []})


def _embeddings(body: dict[str, Any]) -> web.StreamResponse:
    texts = body.get("input", "")
    count = len(texts) if isinstance(texts, list) else 1
    data = [
        {"object": "embedding", "index": index, "embedding": [0.1] * 8} for index in range(count)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    model = body.get("model", "")
    return web.json_response({"object": "list", "data": data, "model": model, "usage": usage})


async def _stream(request: web.Request, events: Any) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    for event in events:
        await answer.write(event.encode())
        await asyncio.sleep(0)
    await answer.write_eof()
    return answer
