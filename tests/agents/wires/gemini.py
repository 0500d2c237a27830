"""Gemini's generateContent, whole and as a stream of events."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from playhead.tests.agents.script import Asked, Said, Tool
from playhead.tests.agents.wires.pieces import cut

_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema", "parameters")
"""Where the schema of a tool may stand: Google ADK writes it in the way of Python."""
_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}


def read(body: dict[str, Any], model: str, *, stream: bool) -> Asked:
    """Read a request; its model and whether it streams stand in the path."""
    stage = sum(
        content.get("role") == "model"
        and any("functionCall" in part for part in content.get("parts", ()))
        for content in body.get("contents", ())
    )
    tools = tuple(
        Tool(one["name"], next((one[key] for key in _SCHEMAS if one.get(key)), {}))
        for tool in body.get("tools") or ()
        for one in tool.get("functionDeclarations", ())
    )
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return Asked(tools, stage, model, stream, json.dumps(body), schema)


def _answers(asked: Asked, said: Said, pieces: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    name = secrets.token_hex(12)
    for number, part in enumerate(pieces, 1):
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if number == len(pieces):
            candidate["finishReason"] = "STOP"
        yield {
            "candidates": [candidate],
            "usageMetadata": _USAGE,
            "modelVersion": asked.model,
            "responseId": name,
        }


def _calls(said: Said) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": call.name, "args": call.arguments}} for call in said.calls]


def whole(asked: Asked, said: Said) -> dict[str, Any]:
    """Give the answer as one body."""
    parts = [{"text": said.text}] if said.text else []
    answer = next(_answers(asked, said, [{}]))
    answer["candidates"][0]["content"]["parts"] = [*parts, *_calls(said)]
    return answer


def stream(asked: Asked, said: Said) -> Iterator[str]:
    """Give the events of the stream."""
    text = said.text
    pieces = [{"text": piece} for piece in cut(text)]
    for answer in _answers(asked, said, [*pieces, *_calls(said)]):
        yield f"data: {json.dumps(answer)}\r\n\r\n"
