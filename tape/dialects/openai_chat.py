"""OpenAI chat completions: at OpenAI, Azure, vLLM, OpenRouter, DeepSeek, xAI and others.

Thoughts stand under several names (`reasoning_content`, `reasoning`), and cached tokens too.

Source: OpenAI API reference, "Chat completions"; the pages of the others on what they add.
"""

import re
from dataclasses import replace
from urllib.parse import unquote

from ..exchange import HttpRequest, HttpResponse
from .common.dialect import Claim, Dialect, find_finish, is_post
from .common.drift_places import DEPLOYMENT, Places
from .common.inference import (
    Choice,
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
    ModeTokens,
    Other,
    Part,
    Refusal,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
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
    find_json,
    first_set,
)
from .openai_chat_fold import ChatFold

_FINISH = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "eos_token": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "end_turn": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "content_filter": Finish.FILTERED,
    "refusal": Finish.FILTERED,
    "error": Finish.FAILED,
    "insufficient_system_resource": Finish.FAILED,
}
_ROLES = {"developer": "system", "function": "tool"}
_DATA_URL = re.compile(r"data:([^;,]*)[^,]*;base64,")
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")


def claim(request: HttpRequest) -> Claim:
    """Claim the path, on any host."""
    ours = is_post(request) and request.path.endswith("/chat/completions")
    return Claim.YES if ours else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a chat."""
    return isinstance(as_object(tree).get("messages"), list)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request."""
    if not has_shape(tree):
        return None
    body = as_object(tree)
    messages = [read_message(item) for item in as_objects(body["messages"])]
    system, rest = split_system(messages)
    tools = body.get("tools") or body.get("functions")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=read_model(body, request),
        streamed=body.get("stream") is True,
        system=system,
        sampling=read_sampling(body),
        tools=tuple(read_tool(item) for item in as_objects(tools)),
        messages=rest,
        raw_tools=tools,
    )


def read_model(body: JsonObject, request: HttpRequest) -> str | None:
    """Give the model asked for: Azure has it in the path, and clients need not say it twice."""
    model = as_text(body.get("model"))
    if model is None and (found := _DEPLOYMENT.search(request.path)):
        model = unquote(found[1])
    return model


def read_sampling(body: JsonObject) -> Sampling:
    """Read the parameters that chats and text completions share."""
    return Sampling(
        temperature=as_number(body.get("temperature")),
        top_p=as_number(body.get("top_p")),
        top_k=as_number(body.get("top_k")),
        max_tokens=as_count(first_set([body.get("max_completion_tokens"), body.get("max_tokens")])),
        seed=as_count(first_set([body.get("seed"), body.get("random_seed")])),
        stop=as_texts(body.get("stop")),
        response_format=body.get("response_format"),
        thinking=first_set(
            [body.get(name) for name in ("reasoning_effort", "reasoning", "thinking")]
        ),
        tool_choice=first_set([body.get("tool_choice"), body.get("function_call")]),
    )


def read_tool(item: JsonObject) -> Tool:
    """Read one tool, also of the kind before tools: a function alone."""
    kind = as_text(item.get("type")) or "function"
    inner = item.get(kind)
    body = inner if isinstance(inner, dict) else item
    return Tool(
        name=as_text(body.get("name")) or kind,
        description=as_text(body.get("description")),
        schema=first_set([body.get(name) for name in ("parameters", "input_schema", "format")]),
        kind=kind,
    )


def split_system(messages: list[Message]) -> tuple[str | None, tuple[Message, ...]]:
    """Take the system messages that a conversation begins with for its system prompt."""
    first = next(
        (at for at, message in enumerate(messages) if message.role != "system"), len(messages)
    )
    said = [
        "\n".join(part.text for part in message.parts if isinstance(part, Text))
        for message in messages[:first]
    ]
    return ("\n".join(said) if said else None), tuple(messages[first:])


def read_message(item: JsonObject) -> Message:
    """Read one message, asked or answered."""
    role = as_text(item.get("role")) or ""
    role = _ROLES.get(role, role)
    name = as_text(item.get("name"))
    content = read_content(item.get("content"))
    if role == "tool":
        call = as_text(item.get("tool_call_id"))
        return Message(role, (ToolResult(call, content, name),))
    parts: list[Part] = [*_thoughts(item), *content]
    if refusal := as_text(item.get("refusal")):
        parts.append(Refusal(refusal))
    parts += [read_content_part(image) for image in as_objects(item.get("images"))]
    parts += [read_call(call) for call in as_objects(item.get("tool_calls"))]
    if isinstance(item.get("function_call"), dict):
        parts.append(read_call({"function": item["function_call"]}))
    if isinstance(item.get("audio"), dict):
        parts.append(Other("audio", item["audio"]))
    return Message(role, tuple(parts), name)


def _thoughts(item: JsonObject) -> list[Part]:
    said = as_text(item.get("reasoning_content")) or as_text(item.get("reasoning"))
    return [Thinking(said)] if said else []


def read_content(content: Json) -> tuple[Part, ...]:
    """Read a message's content: text, or a list of parts."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: list[Part] = []
    for item in as_list(content):
        if isinstance(item, str):
            parts.append(Text(item))
        elif isinstance(item, dict):
            parts.append(read_content_part(item))
    return tuple(parts)


def read_content_part(item: JsonObject) -> Part:
    """Read one part of a content."""
    kind = as_text(item.get("type")) or ""
    text = as_text(item.get("text"))
    if kind in ("text", "input_text", "output_text") and text is not None:
        return Text(text)
    if kind == "refusal":
        return Refusal(as_text(item.get("refusal")) or "")
    if kind == "thinking":  # Mistral
        said = item.get("thinking")
        return Thinking(said if isinstance(said, str) else _join(said))
    if kind in ("image_url", "input_image"):
        image = item.get("image_url")
        return read_image(as_text(image) or as_text(as_object(image).get("url")))
    return Other(kind, item)


def _join(content: Json) -> str:
    return "".join(as_text(item.get("text")) or "" for item in as_objects(content))


def read_image(url: str | None) -> Image:
    """Read an image's URL, which may hold the image itself."""
    if url is not None and (found := _DATA_URL.match(url)):
        return Image(found[1] or None, None, url[found.end() :])
    return Image(None, url)


def read_call(item: JsonObject) -> ToolCall:
    """Read one tool call: of a function, or one whose input is free text."""
    kind = as_text(item.get("type")) or "function"
    body = as_object(item.get(kind)) or as_object(item.get("function"))
    name = as_text(body.get("name")) or ""
    if kind == "custom":
        return ToolCall(as_text(item.get("id")), name, None, as_text(body.get("input")))
    return read_arguments(as_text(item.get("id")), name, body.get("arguments"))


def read_arguments(call: str | None, name: str, arguments: Json) -> ToolCall:
    """Give a tool call whose arguments are JSON in a string, or a value at once."""
    if isinstance(arguments, str):
        parsed = find_json(arguments.encode("utf-8", "surrogatepass"))
        return ToolCall(call, name, parsed, arguments)
    return ToolCall(call, name, arguments)


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    if not isinstance(body.get("choices"), list):
        return None
    return InferenceResponse(
        model=as_text(body.get("model")),
        id=as_text(body.get("id")),
        choices=tuple(_choice(item, at) for at, item in enumerate(as_objects(body["choices"]))),
        usage=read_usage(body.get("usage"), as_text(body.get("service_tier"))),
    )


def _choice(item: JsonObject, at: int) -> Choice:
    reason = as_text(item.get("finish_reason"))
    message = read_message({"role": "assistant", **as_object(item.get("message"))})
    index = as_count(item.get("index"))
    calls = bool(message.tool_calls)
    return Choice(
        message, find_finish(reason, _FINISH, calls), reason, at if index is None else index
    )


def read_usage(usage: Json, tier: str | None = None) -> Usage | None:
    """Read the figures of a chat or a text completion.

    tier: of the service, as the answer states it.
    """
    body = as_object(usage)
    if not body:
        return None
    prompt = as_object(body.get("prompt_tokens_details"))
    output = as_object(body.get("completion_tokens_details"))
    reasoning = as_count(first_set([output.get("reasoning_tokens"), body.get("reasoning_tokens")]))
    figures = Usage(
        input_tokens=as_count(body.get("prompt_tokens")),
        output_tokens=as_count(body.get("completion_tokens")),
        cached_read_tokens=as_count(
            first_set(
                [
                    prompt.get("cached_tokens"),
                    body.get("prompt_cache_hit_tokens"),  # DeepSeek
                    body.get("cached_tokens"),  # Moonshot
                    body.get("cache_read_input_tokens"),  # LiteLLM
                ]
            )
        ),
        cached_write_tokens=as_count(
            first_set(
                [
                    prompt.get("cache_write_tokens"),  # OpenRouter
                    prompt.get("cache_creation_tokens"),
                    body.get("cache_creation_input_tokens"),  # LiteLLM
                ]
            )
        ),
        reasoning_tokens=reasoning,
        total_tokens=as_count(body.get("total_tokens")),
        modes=read_modes(prompt, output),
        is_dearer=tier == PRIORITY,
        audio_seconds=as_number(body.get("prompt_audio_seconds")) or None,  # Mistral
    )
    return replace(figures, reasoning_in_output=not _adds_reasoning(figures))


PRIORITY = "priority"
"""Tier of the service that costs more."""


def read_modes(given: JsonObject, output: JsonObject) -> tuple[ModeTokens, ...]:
    """Read the tokens that are no text from the details of the input and of the output."""
    cached = as_object(given.get("cached_tokens_details"))
    found = (
        ModeTokens(
            kind,
            as_count(given.get(f"{kind}_tokens")) or 0,
            as_count(cached.get(f"{kind}_tokens")),
            as_count(output.get(f"{kind}_tokens")) or 0,
        )
        for kind in ("audio", "image", "video")
    )
    return tuple(one for one in found if one.given or one.made)


def _adds_reasoning(usage: Usage) -> bool:
    """Say whether the total shows that reasoning is counted beside the output, as at xAI."""
    return bool(usage.reasoning_tokens) and usage.total_tokens == sum(
        figure or 0 for figure in (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    )


TEXT_PLACES = Places(
    model=("model",),
    temperature=("temperature",),
    top_p=("top_p",),
    seed=("seed", "random_seed"),
    in_path=DEPLOYMENT,
)
PLACES = replace(TEXT_PLACES, tools=("tools", "functions"), leading=("messages",))

DIALECT = Dialect(
    "openai-chat", claim, has_shape, read_request, read_answer, ChatFold, places=PLACES
)
