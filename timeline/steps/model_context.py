"""Read a model call: its context as a list of items, each read once for all requests that repeat it."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from blake3 import blake3

from ...tape.dialects import (
    Dialect,
    InferenceRequest,
    Message,
    Text,
    ToolCall,
    ToolResult,
    find_dialect,
    read_request,
)
from ...tape.dialects.common.untrusted_json import Json, JsonObject, find_json, stable_hash
from ...tape.exchange import HttpRequest, Seq
from ...tape.records.content_coding import read_codings, undo_coding
from .split_messages import Split, split_body

_MOST = 64 * 1024 * 1024
CACHE_MARKERS = ("cache_control", "cachePoint")
"""Parts of a request that say what a provider is to cache: they move, and nothing that was said changes."""
_TEXTS = ("input_text", "output_text")
_OF_MESSAGE = ("type", "id", "status")
_OF_TEXT = ("annotations", "logprobs")


class Item:
    """One element of the context, as one message of a conversation."""

    __slots__ = (
        "_calls",
        "_key",
        "_results",
        "_slice",
        "messages",
        "raw",
        "since",
        "size",
        "system",
    )

    def __init__(
        self,
        messages: tuple[Message, ...],
        since: int,
        *,
        slice: bytes = b"",
        system: str | None = None,
        raw: str = "",
        key: str = "",
    ) -> None:
        """Make an item.

        since: the request that first had it, as far as this reader has seen.
        slice: itself as it was sent.
        system: of a message that is a part of the system prompt, its text.
        raw: of one that no dialect could read, its kind.
        key: its key, where that is not of the slice or of the messages.
        """
        self.messages = messages
        self.system = system
        self.size = len(slice)
        self.since = since
        self.raw = raw
        self._slice = slice
        self._key = key
        self._calls: tuple[ToolCall, ...] | None = None
        self._results: tuple[ToolResult, ...] | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it, in order; looked for once."""
        if self._calls is None:
            self._calls = tuple(one for message in self.messages for one in message.tool_calls)
        return self._calls

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of tools in it, in order; looked for once."""
        if self._results is None:
            self._results = tuple(one for message in self.messages for one in message.tool_results)
        return self._results

    @property
    def key(self) -> str:
        """Hash of what it says: cache markers do not count. Computed once it is asked for."""
        if not self._key:
            if self._slice:
                self._key = _key_of(unmarked(find_json(self._slice)))
            else:
                self._key = blake3(b"".join(map(_bytes, self.messages))).hexdigest(16)
            self._slice = b""
        return self._key


@dataclass(slots=True)
class Context:
    """What a model was asked, with all that it was given."""

    asked: InferenceRequest
    """Without its messages."""
    items: list[Item]
    same: int
    """How many items, from the first, are those of the context that it was read against."""
    told: int
    """The same, but for the system prompt that the conversation begins with."""
    tree: JsonObject
    """What stands beside the list of messages."""
    split: Split | None = field(default=None, repr=False)
    dialect: Dialect | None = field(default=None, repr=False)
    request: HttpRequest | None = field(default=None, repr=False)
    _ids: frozenset[str] | None = field(default=None, repr=False)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the tool calls in it, and of those that it has results of; collected once."""
        if self._ids is None:
            calls = {one.id for item in self.items for one in item.calls if one.id}
            results = {one.id for item in self.items for one in item.results if one.id}
            self._ids = frozenset(calls | results)
        return self._ids

    def add_ids(self, before: "Context") -> None:
        """Take over the ids of a context whose items are the first of this one."""
        if before._ids is not None:
            new = self.items[len(before.items) :]
            calls = [one.id for item in new for one in item.calls if one.id]
            results = [one.id for item in new for one in item.results if one.id]
            self._ids = before._ids.union(calls, results)

    @property
    def system(self) -> str:
        """The system prompt: what stands apart, and the messages that begin the conversation."""
        said = [self.asked.system] if self.asked.system is not None else []
        for item in self.items:
            if item.system is None:
                break
            said.append(item.system)
        return "\n".join(said)

    @property
    def previous(self) -> str | None:
        """Id of the answer that it goes on from, where the conversation is kept at the provider."""
        found = self.tree.get("previous_response_id")
        return found if isinstance(found, str) else None

    @property
    def conversation(self) -> str | None:
        """Id of the conversation that the provider keeps, with all turns before; OpenAI's `conversation`."""
        if self.asked.dialect != "openai-responses":
            return None
        found = self.tree.get("conversation")
        found = found.get("id") if isinstance(found, dict) else found
        return found if isinstance(found, str) else None

    @property
    def is_kept(self) -> bool:
        """Whether the provider keeps what came before, so that the request need not repeat it."""
        return bool(self.previous or self.conversation)

    @property
    def short_input(self) -> JsonObject | None:
        """The message for which an `input` is short that is a text; None of any other context.

        Source: OpenAI API reference, "Responses": a text is "equivalent to a text input with the `user` role".
        """
        found = self.tree.get("input") if self.asked.dialect == "openai-responses" else None
        return {"role": "user", "content": found} if isinstance(found, str) else None

    def new(self) -> list[Item]:
        """Give the items that the context before did not have, or not in this place."""
        system = count_system(self.items)
        return self.items[self.same : system] + self.items[max(self.told, system) :]


def read_context(request: HttpRequest, seq: Seq, before: Context | None = None) -> Context | None:
    """Read the context of a model call; None where no dialect can.

    before: an earlier one that it may repeat; what they share is not read again.
    """
    body = request.body
    coding = read_codings(request.headers)
    if coding:
        plain = undo_coding(body, coding, _MOST)
        body = body if plain is None else plain
        request = replace(request, body=body, headers=_plain_headers(request))
    split = split_body(body, before.split if before is not None else None)
    if split is None:
        return _read_whole(request, seq, before)
    around = {**split.head, **split.tail}
    known = _find_known(request, split, before)
    if known is not None:
        dialect, asked = known
    else:
        found, read = _find_dialect(request, split, around), None
        if found is not None:
            read = found.read_request({**around, split.key: []}, request)
        if found is None or read is None:
            return None
        dialect, asked = found, read
    items = before.items[: split.same] if before is not None else []
    stub = {name: around[name] for name in ("model",) if name in around}
    items += _read_items(dialect, request, split, stub, seq)
    same, told = _take_over(items, before, split.same)
    made = Context(asked, items, same, told, around, split, dialect, request)
    if before is not None and same == len(before.items):
        made.add_ids(before)
    return made


def _find_known(
    request: HttpRequest, split: Split, before: Context | None
) -> tuple[Dialect, InferenceRequest] | None:
    """Give who read an earlier request and what it asked, where this one has the same around its messages."""
    if before is None or before.split is None or before.dialect is None or before.request is None:
        return None
    same = split.head is before.split.head and split.tail is before.split.tail
    other = before.request
    head = request.method, request.host, request.target, request.headers
    if not same or head != (other.method, other.host, other.target, other.headers):
        return None
    return before.dialect, before.asked


def _plain_headers(request: HttpRequest) -> Any:
    return tuple(pair for pair in request.headers if pair[0].lower() != b"content-encoding")


def _find_dialect(request: HttpRequest, split: Split, around: JsonObject) -> Dialect | None:
    """Find who reads it, by a body that has its first and last element alone."""
    few = [split.element(at) for at in {0, len(split.places) - 1}] if split.places else []
    try:
        short = msgspec.json.encode({**around, split.key: few})
    except (ValueError, msgspec.MsgspecError):
        return find_dialect(request)
    return find_dialect(replace(request, body=short))


def _read_items(
    dialect: Dialect, request: HttpRequest, split: Split, stub: JsonObject, seq: Seq
) -> list[Item]:
    """Read the elements that are new: at once, but for those of the system prompt, which dialects take apart."""
    numbers = range(split.same, len(split.places))
    trees = {number: split.element(number) for number in numbers}
    spoken = [number for number in numbers if not _is_system(trees[number])]
    read = dialect.read_request({**stub, split.key: [trees[one] for one in spoken]}, request)
    if read is not None and len(read.messages) == len(spoken) and read.system is None:
        known = dict(zip(spoken, read.messages, strict=True))
    else:
        known = {}
    items = []
    for number in numbers:
        slice_ = split.slice(number)
        if number in known:
            items.append(Item((known[number],), seq, slice=slice_))
            continue
        one = dialect.read_request({**stub, split.key: [trees[number]]}, request)
        if one is None:
            items.append(Item((), seq, slice=slice_, raw="not read"))
        else:
            items.append(Item(one.messages, seq, slice=slice_, system=one.system))
    return items


def _is_system(tree: Json) -> bool:
    return isinstance(tree, dict) and tree.get("role") in ("system", "developer")


def unmarked(tree: Json) -> Json:
    """Leave out cache markers, from messages and from their parts."""
    if not isinstance(tree, dict):
        return tree
    found: JsonObject = {name: value for name, value in tree.items() if name not in CACHE_MARKERS}
    for name in ("content", "parts"):
        parts = found.get(name)
        if isinstance(parts, list):
            found[name] = [
                unmarked(part)
                for part in parts
                if not (isinstance(part, dict) and part.keys() <= set(CACHE_MARKERS) and part)
            ]
    return found


def spell_out(content: Json) -> Json:
    """Give a content that is a text as the list of one part for which it is short.

    Source: Anthropic API reference, "Messages", and OpenAI API reference, "Chat completions" and "Responses": `content`, `output`.
    """
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def plain_form(tree: JsonObject) -> JsonObject:
    """Give a message, or a part of one, in the one form for all that say the same to a model.

    The `type` of a message may be missing. Its id and status are of the answer that it was. A part that is a text has the kind of
    its role. The values of members are as they were.
    Source: OpenAI API reference, "Responses", `input`: input message, item, output message.
    """
    kind = tree.get("type")
    if "role" in tree and kind == "message":
        return {one: value for one, value in tree.items() if one not in _OF_MESSAGE}
    if kind in _TEXTS and "text" in tree:
        left = {one: value for one, value in tree.items() if value != [] or one not in _OF_TEXT}
        return {**left, "type": "text"}
    return tree


def _key_of(tree: Json) -> str:
    return stable_hash(_spelled_out(tree))


def _spelled_out(tree: Json) -> Json:
    """Spell out the content of a message, and of the results of tools in it."""
    if not isinstance(tree, dict):
        return tree
    tree = plain_form(tree)
    for name in ("content", "output"):
        if name in tree:
            content = spell_out(tree[name])
            parts = (
                [_spelled_out(part) for part in content] if isinstance(content, list) else content
            )
            tree = {**tree, name: parts}
    return tree


def _read_whole(request: HttpRequest, seq: Seq, before: Context | None) -> Context | None:
    """Read a request whose messages are not one list: a prompt, or one more object around it."""
    asked = read_request(request)
    if asked is None:
        return None
    items = [Item((message,), seq) for message in asked.messages]
    for item in items:
        item.size = len(_bytes(item.messages[0]))
    tree = find_json(request.body)
    around = tree if isinstance(tree, dict) else {}
    made = Context(replace(asked, messages=()), items, 0, 0, around)
    if made.short_input is not None and len(items) == 1:
        items[0] = Item(items[0].messages, seq, key=_key_of(made.short_input))
        items[0].size = len(_bytes(items[0].messages[0]))
    made.same, made.told = _take_over(items, before, 0)
    return made


def _take_over(items: list[Item], before: Context | None, same: int) -> tuple[int, int]:
    """Put the items of a context before in the place of those that repeat it; count those from the first, and those behind the prompt.

    same: how many are known to be the same.
    """
    if before is None:
        return same, same
    same = _replace_same(items, before.items, same, same)
    system = count_system(items)
    if same >= system:
        return same, same
    # A prompt that is written anew each turn says nothing of the conversation behind it.
    told = _replace_same(items, before.items, system, count_system(before.items))
    return same, told if told > system else same


def _replace_same(items: list[Item], before: list[Item], at: int, at_before: int) -> int:
    """Take the items of `before` as long as they say the same; give the place of the first that does not."""
    while at < len(items) and at_before < len(before) and items[at].key == before[at_before].key:
        items[at] = before[at_before]
        at, at_before = at + 1, at_before + 1
    return at


def count_system(items: list[Item]) -> int:
    """Count the messages of the system prompt that a conversation begins with."""
    return next((at for at, one in enumerate(items) if one.system is None), len(items))


def _bytes(message: Message) -> bytes:
    try:
        return msgspec.json.encode(message)
    except (ValueError, OverflowError, msgspec.MsgspecError, TypeError):
        return repr(message).encode("utf-8", "surrogatepass")


def system_message(text: str) -> Message:
    """Give a part of the system prompt as a message."""
    return Message("system", (Text(text),))
