"""The common view of a model call: messages, tools, settings, answer and usage.

Rules:

1. A view: the raw bytes are the record, and what no field here holds is still in them.
2. Figures and reasons are as stated in the payload; what is not stated is None, never 0 and never counted by
   us. Two providers may mean different things by the same figure; `Usage` says which.
3. Values inside are JSON as it was parsed. Nobody writes to them.
4. Text may hold half a surrogate pair, where a client cut a string inside a character.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from .untrusted_json import Json, show_value, stable_hash


class Finish(StrEnum):
    """Why a model stopped, in the same words for every provider."""

    STOP = "stop"
    """It had said all, or came to a stop sequence."""
    LENGTH = "length"
    """A limit of tokens, or the context was full."""
    TOOL_CALLS = "tool_calls"
    """It waits for the results of its tool calls."""
    FILTERED = "filtered"
    """The model refused, or a filter held the answer back."""
    PAUSED = "paused"
    """To be gone on with by another request."""
    FAILED = "failed"
    OTHER = "other"
    """Stated, but not known here."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text for or from a person."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a model thought before it answered, or a summary of it."""

    text: str
    """Empty where only the provider can read it."""
    signature: str | None = None
    """What the provider wants back, opaque."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, by its URL or with its data; neither where the provider knows it by an id."""

    media_type: str | None = None
    url: str | None = None
    data: str | None = field(default=None, repr=False)
    """Base64 as sent."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model wants a tool called by the agent."""

    id: str | None
    name: str
    arguments: Json
    """None where they are text that is no JSON, or was cut."""
    text: str | None = None
    """The arguments as they stand in the payload, where they are sent as text."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave."""

    id: str | None
    """Of the call."""
    parts: tuple["Part", ...]
    name: str | None = None
    """Of the tool, where it is stated."""
    failed: bool = False

    @property
    def text(self) -> str:
        """Its text; a value that is none as JSON."""
        return "\n".join(
            part.text if isinstance(part, Text) else show_value(part.raw)
            for part in self.parts
            if isinstance(part, Text) or (isinstance(part, Other) and part.kind == "json")
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model says that it will not."""

    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else: audio, documents, citations, calls that the provider makes itself."""

    kind: str
    """The provider's word for it."""
    raw: Json = field(repr=False)


Part = Text | Thinking | Image | ToolCall | ToolResult | Refusal | Other


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: str
    """`system`, `user`, `assistant` or `tool`; another word as the payload has it."""
    parts: tuple[Part, ...]
    name: str | None = None
    """Of who speaks, where it is stated."""

    @property
    def text(self) -> str:
        """What was said, without thoughts, refusals and results of tools."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        """What was thought."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    @property
    def refusal(self) -> str | None:
        """What was said instead of an answer."""
        found = [part.text for part in self.parts if isinstance(part, Refusal)]
        return "".join(found) if found else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """In their order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """In their order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool a model may call."""

    name: str
    description: str | None = None
    schema: Json = None
    """Of its arguments: JSON Schema, or what the provider has in its place."""
    kind: str = "function"
    """`function` for the agent's own, else the provider's word: `web_search_20250305` ..."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is to be drawn; None where the request leaves it to the provider."""

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    response_format: Json = None
    """As sent."""
    thinking: Json = None
    """As sent: an effort, a budget, on or off."""
    tool_choice: Json = None
    """As sent."""


class ModeTokens(NamedTuple):
    """Tokens of sound, images or video, which can have a price of their own."""

    kind: str
    """`audio`, `image` or `video`."""
    given: int = 0
    """Of the input."""
    cached: int | None = None
    """Of those read from a cache."""
    made: int = 0
    """Of the output."""


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_read_tokens",
    "cached_write_tokens",
    "cached_write_1h_tokens",
    "reasoning_tokens",
    "total_tokens",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the payload states them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    cached_in_input: bool = True
    """Whether `input_tokens` holds the cached tokens too (OpenAI, Gemini) or not (Anthropic, Bedrock)."""
    reasoning_in_output: bool = True
    """Whether `output_tokens` holds the reasoning tokens too; not so at Gemini and xAI."""
    cached_write_1h_tokens: int | None = None
    """Of those written, those that are kept for an hour, which cost more (Anthropic)."""
    modes: tuple[ModeTokens, ...] = ()
    """Of all these, those that are no text (OpenAI, Gemini)."""
    audio_seconds: int | float | None = None
    """Of the input, seconds of audio, which are billed by the hour and not by the token (Mistral)."""
    beside: tuple["Usage", ...] = ()
    """What else the answer used that these figures leave out: a compaction, a second model (Anthropic)."""
    model: str | None = None
    """Of what is beside, its model where it is another than that of the answer."""
    is_dearer: bool = False
    """Whether it says that it costs more than usual: it was fast, had priority, or stayed in one country."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 0:
                object.__setattr__(self, name, None)  # no count: it says nothing

    def is_all(self, *, is_said: bool) -> bool:
        """Say whether these figures are all that is billed, at the usual price.

        is_said: whether the answer says something, so that it has output.
        """
        if self.is_dearer or not all(one.is_all(is_said=is_said) for one in self.beside):
            return False
        total = None if self.audio_seconds else self.total_tokens  # Mistral's has the sound, too
        if (self.input_tokens, self.output_tokens) == (None, None):
            return total is not None and not is_said
        if total is not None:
            counted = replace(self, beside=()).count()
            return total <= (counted.asked or 0) + (counted.said or 0)
        return self.input_tokens is not None and (self.output_tokens is not None or not is_said)

    def count(self) -> "Counted":
        """Count all that is billed: with what was cached, what was thought, and what is beside."""
        asked, said = self.input_tokens, self.output_tokens
        if asked is None and said is None:
            asked = self.total_tokens
        read, written = self.cached_read_tokens or 0, self.cached_write_tokens or 0
        thought = self.reasoning_tokens or 0
        if (asked, said) != (None, None):
            if not self.cached_in_input and read + written:
                asked = (asked or 0) + read + written
            if not self.reasoning_in_output and thought:
                said = (said or 0) + thought
        counted = Counted(asked, said, read, written, thought)
        for other in self.beside:
            counted = counted.plus(other.count())
        return counted


class Counted(NamedTuple):
    """Tokens of an answer in all."""

    asked: int | None
    """With those that were cached; None where they are not stated."""
    said: int | None
    """With those that were thought; None where they are not stated."""
    read: int
    """Of the input, those read from a cache."""
    written: int
    """Of the input, those written into one."""
    thought: int
    """Of the output, those of reasoning."""

    @property
    def is_stated(self) -> bool:
        """Whether the answer states any of them."""
        return self.asked is not None or self.said is not None

    def plus(self, other: "Counted") -> "Counted":
        """Add two counts; what one states is known."""
        return Counted(
            _plus(self.asked, other.asked),
            _plus(self.said, other.said),
            self.read + other.read,
            self.written + other.written,
            self.thought + other.thought,
        )


def _plus(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


@dataclass(frozen=True, slots=True)
class ApiError:
    """What a provider says went wrong."""

    message: str
    type: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer; a request may ask for several."""

    message: Message
    finish: Finish | None = None
    """None where none is stated, as in a stream that was cut."""
    finish_reason: str | None = None
    """The provider's word."""
    index: int = 0


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """What was asked of a model, or of a server of tools."""

    dialect: str
    """Name of the dialect it was read by."""
    model: str | None = None
    """As asked for; not always what is served."""
    streamed: bool = False
    """Whether the answer is asked for as a stream."""
    system: str | None = None
    """Text of the system prompt: what stands apart, or the messages a conversation begins with."""
    sampling: Sampling = Sampling()
    tools: tuple[Tool, ...] = ()
    messages: tuple[Message, ...] = ()
    """Without those that make up `system`."""
    rpc: tuple["Rpc", ...] = ()
    """MCP alone."""
    raw_tools: Json = field(default=None, repr=False)
    """As sent."""

    @property
    def tools_hash(self) -> str | None:
        """Hash of the tools as sent, order of keys and white space aside; None without tools."""
        return stable_hash(self.raw_tools) if self.raw_tools else None

    @property
    def system_hash(self) -> str | None:
        """Hash of the system prompt's text; None without one."""
        return None if self.system is None else stable_hash(self.system)

    @property
    def drift(self) -> Mapping[str, str]:
        """Give what a person may allow to differ between a tape and its replay; only what is stated.

        Keys: `model`, `temperature`, `top_p`, `seed`, `tools` and `system`; the last two are hashes.
        """
        found = {
            "model": self.model,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "seed": self.sampling.seed,
            "tools": self.tools_hash,
            "system": self.system_hash,
        }
        return {name: str(value) for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class InferenceResponse:
    """What came back."""

    dialect: str = ""
    """Name of the dialect it was read by."""
    status: int = 0
    """Of HTTP."""
    model: str | None = None
    """As served, where it is stated."""
    id: str | None = None
    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    """None where nothing is stated."""
    error: ApiError | None = None
    rpc: tuple["Rpc", ...] = ()
    """MCP alone."""
    streamed: bool = False
    """Whether it came as a stream."""
    complete: bool = True
    """False where the body was cut, or a stream ended without its end being stated."""
    first_token_us: int | None = None
    """When the first piece of a stream that carries content was there, since the request arrived; thinking and
    tool calls are content. None where the answer was no stream, or its pieces were not noted."""
    total_us: int = 0
    """When the last piece was there, since the request arrived."""

    @property
    def message(self) -> Message | None:
        """The first answer."""
        return self.choices[0].message if self.choices else None

    @property
    def text(self) -> str:
        """What the first answer says."""
        return self.choices[0].message.text if self.choices else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """What the first answer wants called."""
        return self.choices[0].message.tool_calls if self.choices else ()

    @property
    def finish(self) -> Finish | None:
        """Why the first answer ended."""
        return self.choices[0].finish if self.choices else None

    @property
    def finish_reason(self) -> str | None:
        """Why the first answer ended, in the provider's word."""
        return self.choices[0].finish_reason if self.choices else None


class RpcKind(StrEnum):
    """What sort of message of JSON-RPC."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One message of MCP, either way."""

    kind: RpcKind
    method: str | None
    """Of an answer the method it answers, where that is known."""
    id: int | float | str | None = None
    params: Json = field(default=None, repr=False)
    result: Json = field(default=None, repr=False)
    error: ApiError | None = None
    tool_call: ToolCall | None = None
    """Of a `tools/call`."""
    tool_result: ToolResult | None = None
    """Of the answer to one."""
    tools: tuple[Tool, ...] = ()
    """Of the answer to a `tools/list`."""
    sampling: InferenceRequest | None = None
    """Of a `sampling/createMessage`: what the server wants asked of the client's model."""
    sampled: InferenceResponse | None = None
    """Of the answer to one."""
