"""Ollama's own API: chats and texts, streamed by default as lines of JSON.

Arguments of tool calls are values, and results have the tool's name in the place of an id.

Source: Ollama's documentation, "API": "Generate a chat completion", "Generate a completion".
"""

from ..exchange import HttpRequest, HttpResponse
from . import openai_chat
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import Places
from .common.inference import (
    Choice,
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
    Part,
    Sampling,
    Text,
    Thinking,
    ToolResult,
    Usage,
)
from .common.untrusted_json import (
    Json,
    JsonObject,
    as_count,
    as_list,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_texts,
)

_FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH, "load": Finish.OTHER}
_PORT = 11434


def claim(request: HttpRequest) -> Claim:
    """Claim the paths on Ollama's port and hosts; elsewhere many have such paths."""
    if not is_post(request) or not request.path.endswith(("/api/chat", "/api/generate")):
        return Claim.NO
    ours = request.port == _PORT or "ollama" in request.host.lower()
    return Claim.YES if ours else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks a model for a chat or a text."""
    body = as_object(tree)
    asks = isinstance(body.get("messages"), list) or isinstance(body.get("prompt"), str)
    return asks and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; one that only loads a model has neither messages nor prompt."""
    body = as_object(tree)
    model = as_text(body.get("model"))
    if model is None:
        return None
    options = as_object(body.get("options"))
    if isinstance(body.get("messages"), list):
        messages = [_message(item) for item in as_objects(body["messages"])]
        system, rest = openai_chat.split_system(messages)
    else:
        system, rest = as_text(body.get("system")), _prompt(body)
    tools = body.get("tools")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=model,
        streamed=body.get("stream") is not False,
        system=system,
        sampling=Sampling(
            temperature=as_number(options.get("temperature")),
            top_p=as_number(options.get("top_p")),
            top_k=as_number(options.get("top_k")),
            max_tokens=as_count(options.get("num_predict")),
            seed=as_count(options.get("seed")),
            stop=as_texts(options.get("stop")),
            response_format=body.get("format"),
            thinking=body.get("think"),
        ),
        tools=tuple(openai_chat.read_tool(item) for item in as_objects(tools)),
        messages=rest,
        raw_tools=tools,
    )


def _prompt(body: JsonObject) -> tuple[Message, ...]:
    text = as_text(body.get("prompt"))
    parts: list[Part] = [Text(text)] if text else []
    parts += _images(body.get("images"))
    return (Message("user", tuple(parts)),) if parts else ()


def _images(images: Json) -> list[Part]:
    return [Image(data=data) for data in as_texts(as_list(images))]


def _message(item: JsonObject) -> Message:
    role = as_text(item.get("role")) or "assistant"
    text, thought = as_text(item.get("content")), as_text(item.get("thinking"))
    said: tuple[Part, ...] = (Text(text),) if text else ()
    if role == "tool":
        name = as_text(item.get("tool_name")) or as_text(item.get("name"))
        return Message(role, (ToolResult(as_text(item.get("tool_call_id")), said, name),))
    parts: list[Part] = [Thinking(thought)] if thought else []
    parts += said
    parts += _images(item.get("images"))
    parts += [openai_chat.read_call(call) for call in as_objects(item.get("tool_calls"))]
    return Message(role, tuple(parts))


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer: a message, or a text."""
    body = as_object(tree)
    if isinstance(body.get("message"), dict):
        item = as_object(body["message"])
    elif isinstance(body.get("response"), str):
        item = {"content": body["response"], "thinking": body.get("thinking")}
    else:
        return None
    message = _message(item)
    reason = as_text(body.get("done_reason"))
    if reason is None and body.get("done") is True:
        finish: Finish | None = Finish.STOP  # before it gave reasons
    else:
        finish = find_finish(reason, _FINISH)
    if finish is Finish.STOP and message.tool_calls:
        finish = Finish.TOOL_CALLS
    usage = Usage(as_count(body.get("prompt_eval_count")), as_count(body.get("eval_count")))
    return InferenceResponse(
        model=as_text(body.get("model")),
        choices=(Choice(message, finish, reason),),
        usage=None if usage == Usage() else usage,
    )


class AnswerFold:
    """Lines, each an answer of its own, to one answer."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._message: JsonObject = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[Json] = []

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next line."""
        message = piece.get("message")
        text = as_text(piece.get("response"))
        if not isinstance(message, dict) and text is None:
            return Heard.UNKNOWN
        self._body.update(piece)
        self.ended |= piece.get("done") is True
        item = as_object(message) or {"content": text, "thinking": piece.get("thinking")}
        self._message.update(item)
        said = False
        for what in ("content", "thinking"):
            if part := as_text(item.get(what)):
                self._texts.setdefault(what, []).append(part)
                said = True
        calls = as_list(item.get("tool_calls"))
        self._calls += calls
        return Heard.CONTENT if said or calls else Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        texts = {what: "".join(parts) for what, parts in self._texts.items()}
        if isinstance(self._body.get("response"), str):
            text = texts.pop("content", "")
            return {**self._body, **texts, "response": text}
        message = {**self._message, "content": "", **texts, "tool_calls": self._calls}
        return {**self._body, "message": message}


_PLACES = Places(
    model=("model",),
    temperature=("options.temperature",),
    top_p=("options.top_p",),
    seed=("options.seed",),
    tools=("tools",),
    system=("system",),
    leading=("messages",),
    roles=frozenset({"system"}),
)

DIALECT = Dialect(
    "ollama",
    claim,
    has_shape,
    read_request,
    read_answer,
    AnswerFold,
    by_lines=True,
    places=_PLACES,
)
