"""Cohere chat, version 1: message and history are separate fields, tool calls have no ids.

Source: Cohere API reference, "Chat (v1)"; also the format of Command R on Bedrock.
"""

from dataclasses import replace

from ..exchange import HttpRequest, HttpResponse
from . import cohere
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.inference import (
    Choice,
    InferenceRequest,
    InferenceResponse,
    Message,
    Other,
    Part,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from .common.untrusted_json import (
    Json,
    JsonObject,
    as_list,
    as_object,
    as_objects,
    as_text,
    first_set,
)

_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system", "TOOL": "tool"}


def claim(request: HttpRequest) -> Claim:
    """Claim the path at Cohere; elsewhere it may be anything."""
    if not is_post(request) or not request.path.endswith("/v1/chat"):
        return Claim.NO
    return Claim.YES if "cohere" in request.host.lower() else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks a model for a chat."""
    body = as_object(tree)
    more = "chat_history" in body or "preamble" in body or isinstance(body.get("model"), str)
    return isinstance(body.get("message"), str) and more


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request: history first, the message last."""
    body = as_object(tree)
    message = as_text(body.get("message"))
    if message is None:
        return None
    messages = [_turn(item) for item in as_objects(body.get("chat_history"))]
    results = as_objects(body.get("tool_results"))
    if message:
        messages.append(Message("user", (Text(message),)))
    if results:
        messages.append(_results(results))
    tools = body.get("tools")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(body.get("model")),
        streamed=body.get("stream") is True,
        system=as_text(body.get("preamble")),
        sampling=cohere.read_sampling(body),
        tools=tuple(_tool(item) for item in as_objects(tools)),
        messages=tuple(messages),
        raw_tools=tools,
    )


def _turn(item: JsonObject) -> Message:
    role = as_text(item.get("role")) or ""
    if "tool_results" in item:
        return _results(as_objects(item.get("tool_results")))
    text = as_text(item.get("message"))
    parts: list[Part] = [Text(text)] if text else []
    parts += _calls(item.get("tool_calls"))
    return Message(_ROLES.get(role.upper(), role), tuple(parts))


def _results(results: list[JsonObject]) -> Message:
    return Message(
        "tool",
        tuple(
            ToolResult(
                None,
                tuple(Other("json", output) for output in as_list(item.get("outputs"))),
                as_text(as_object(item.get("call")).get("name")),
            )
            for item in results
        ),
    )


def _calls(calls: Json) -> list[Part]:
    return [
        ToolCall(None, as_text(item.get("name")) or "", item.get("parameters"))
        for item in as_objects(calls)
    ]


def _tool(item: JsonObject) -> Tool:
    name, description = as_text(item.get("name")) or "", as_text(item.get("description"))
    return Tool(name, description, item.get("parameter_definitions"))


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    text = as_text(body.get("text"))
    if text is None:
        return None
    parts: list[Part] = [Text(text)] if text else []
    parts += _calls(body.get("tool_calls"))
    message = Message("assistant", tuple(parts))
    reason = as_text(body.get("finish_reason"))
    return InferenceResponse(
        id=as_text(first_set([body.get("response_id"), body.get("generation_id")])),
        choices=(
            Choice(message, find_finish(reason, cohere.FINISH, bool(message.tool_calls)), reason),
        ),
        usage=cohere.read_usage(body.get("meta")),
    )


class ChatFold:
    """Lines or events to one answer; the last holds all of it."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._texts: list[str] = []

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next line."""
        match as_text(piece.get("event_type")) or name:
            case "stream-start":
                self._body["generation_id"] = piece.get("generation_id")
            case "text-generation":
                if text := as_text(piece.get("text")):
                    self._texts.append(text)
                    return Heard.CONTENT
            case "tool-calls-generation":
                self._body["tool_calls"] = piece.get("tool_calls")
                return Heard.CONTENT
            case "tool-calls-chunk":
                return Heard.CONTENT
            case "stream-end":
                whole = as_object(piece.get("response"))
                self._body.update({key: value for key, value in whole.items() if value is not None})
                self._body["finish_reason"] = piece.get("finish_reason")
                self.ended = True
            case "search-queries-generation" | "search-results" | "citation-generation" | "debug":
                pass
            case _:
                return Heard.UNKNOWN
        return Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        return {"text": "".join(self._texts), **self._body}


PLACES = replace(cohere.TEXT_PLACES, tools=("tools",), system=("preamble",))

DIALECT = Dialect(
    "cohere-v1",
    claim,
    has_shape,
    read_request,
    read_answer,
    ChatFold,
    by_lines=True,
    places=PLACES,
)
