"""Fold the chunks of a chat completion into the completion that an unstreamed answer would contain.

Tool calls come in deltas by `index`. Some servers send each call whole, without an index, or all under the
same: another id is another call.

Source: OpenAI API reference, "Chat completions", "Streaming"; streams of those that speak it.
"""

from .common.dialect import Heard
from .common.untrusted_json import (
    Json,
    JsonObject,
    as_count,
    as_list,
    as_object,
    as_objects,
    as_text,
    first_set,
)

_WHOLE = ("id", "model", "created", "system_fingerprint", "service_tier")
"""What each chunk says of the whole answer."""


class _Call:
    """One tool call on its way."""

    def __init__(self) -> None:
        self.item: JsonObject = {}
        self.kind = "function"
        self.body: JsonObject = {}
        self.texts: list[str] = []

    def add(self, delta: JsonObject) -> None:
        self.kind = as_text(delta.get("type")) or self.kind
        self.item.update({key: value for key, value in delta.items() if value})
        body = as_object(delta.get(self.kind)) or as_object(delta.get("function"))
        self.body.update({key: value for key, value in body.items() if value})
        for key in ("arguments", "input"):
            if text := as_text(body.get(key)):
                self.texts.append(text)

    def whole(self) -> JsonObject:
        body: JsonObject = dict(self.body)
        if self.texts:
            body["input" if self.kind == "custom" else "arguments"] = "".join(self.texts)
        return {**self.item, "type": self.kind, self.kind: body}


class _Answer:
    """One choice on its way."""

    def __init__(self) -> None:
        self.message: JsonObject = {}
        self.content: list[Json] = []
        self.texts: dict[str, list[str]] = {}
        self.calls: list[_Call] = []
        self.by_index: dict[int, _Call] = {}
        self.function: _Call | None = None
        """Of the kind before tools."""
        self.reason: Json = None

    def add(self, delta: JsonObject) -> bool:
        """Take a delta; True where it says something."""
        said = False
        for key, value in delta.items():
            if key == "content":
                said |= self._add_content(value)
            elif key in ("reasoning_content", "reasoning", "refusal"):
                if text := as_text(value):
                    self.texts.setdefault(key, []).append(text)
                    said = True
            elif key == "tool_calls":
                for call in as_objects(value):
                    self._add_call(call)
                    said = True
            elif key == "function_call":
                if isinstance(value, dict):
                    self.function = self.function or _Call()
                    self.function.add({"function": value})
                    said = True
            elif value is not None:
                self.message[key] = value
        return said

    def _add_content(self, value: Json) -> bool:
        added = [value] if isinstance(value, str) else as_list(value)
        self.content += added
        return any(added)

    def _add_call(self, delta: JsonObject) -> None:
        index, named = as_count(delta.get("index")), as_text(delta.get("id"))
        call = self.by_index.get(index) if index is not None else None
        if index is None and not named and self.calls:
            call = self.calls[-1]
        if call is not None and named and call.item.get("id") not in (None, named):
            call = None  # another call under the same index
        if call is None:
            call = _Call()
            self.calls.append(call)
            if index is not None:
                self.by_index[index] = call
        call.add(delta)

    def whole(self, index: int) -> JsonObject:
        message: JsonObject = dict(self.message)
        message["content"] = _merge(self.content)
        for key, texts in self.texts.items():
            message[key] = "".join(texts)
        if self.function is not None:
            message["function_call"] = self.function.whole().get("function")
        message["tool_calls"] = [call.whole() for call in self.calls]
        return {"index": index, "message": message, "finish_reason": self.reason}


def _merge(content: list[Json]) -> Json:
    """Join what came as text; a list of parts where some came as such."""
    texts = [item for item in content if isinstance(item, str)]
    if len(texts) == len(content):
        return "".join(texts)
    parts: list[Json] = []
    run: list[str] = []
    thoughts: list[Json] = []
    for item in content:
        part = as_object(item)
        kind = "thinking" if part.get("type") == "thinking" else "text"
        text = item if isinstance(item, str) else as_text(part.get("text"))
        if thoughts and kind != "thinking":
            parts.append({"type": "thinking", "thinking": thoughts})
            thoughts = []
        if run and (kind == "thinking" or text is None):
            parts.append({"type": "text", "text": "".join(run)})
            run = []
        if kind == "thinking":
            said = part.get("thinking")
            thoughts += [{"text": said}] if isinstance(said, str) else as_list(said)
        elif text is not None:
            run.append(text)
        elif part:
            parts.append(part)
    if thoughts:
        parts.append({"type": "thinking", "thinking": thoughts})
    if run:
        parts.append({"type": "text", "text": "".join(run)})
    return parts


class ChatFold:
    """Chunks to one chat completion."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._answers: dict[int, _Answer] = {}
        self._open: set[int] = set()

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next chunk."""
        choices = piece.get("choices")
        usage = first_set([piece.get("usage"), as_object(piece.get("x_groq")).get("usage")])
        if not isinstance(choices, list) and usage is None:
            return Heard.UNKNOWN
        self._body.update({key: piece[key] for key in _WHOLE if piece.get(key) not in (None, "")})
        if usage is not None:
            self._body["usage"] = usage
        said = False
        for at, item in enumerate(as_objects(choices)):
            said |= self._add_choice(item, at)
        self.ended = bool(self._answers) and not self._open
        return Heard.CONTENT if said else Heard.KNOWN

    def _add_choice(self, item: JsonObject, at: int) -> bool:
        stated = as_count(item.get("index"))
        index = at if stated is None else stated
        if index not in self._answers:
            self._answers[index] = _Answer()
            self._open.add(index)
        answer = self._answers[index]
        if item.get("finish_reason") is not None:
            answer.reason = item["finish_reason"]
            self._open.discard(index)
        if isinstance(item.get("usage"), dict):  # Moonshot
            self._body["usage"] = item["usage"]
        delta = item.get("delta")
        return answer.add(as_object(item.get("message") if delta is None else delta))

    def whole(self) -> Json:
        """Give the chat completion."""
        choices: list[Json] = [self._answers[index].whole(index) for index in sorted(self._answers)]
        return {**self._body, "choices": choices}
