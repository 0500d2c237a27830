"""The context of a model call part by part, so that two can be compared: what was said, called and given."""

import json
import re
from dataclasses import dataclass

from blake3 import blake3

from ...tape.dialects import (
    Image,
    Message,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...tape.diff.request_differences import common_prefix
from ..steps.model_context import Item, system_message

_KEPT = 12
"""Characters of a text that have to be left in a shortened one."""
_CUT = re.compile(
    r"\W*(?:\.\.\.|…)(?:\W.{0,100})?"
    r"|\W.{0,100}(?:truncat|omit|shorten|clip|elid|remov|snip|trim|skip|clear|cut|more).{0,100}",
    re.IGNORECASE | re.DOTALL,
)
"""What stands in a shortened text for what is gone, without its white space: an ellipsis, or a note in brackets."""
_GONE = (
    r"truncated|omitted|shortened|clipped|elided|removed|snip(?:ped)?|trimmed|skipped|cleared|cut|left\W*out|dropped|hidden"
    r"|collapsed|abbreviated|excluded|deleted|discarded|stripped|redacted|not\W*shown|more|remaining"
)
_UNIT = r"characters?|chars?|bytes?|tokens?|lines?|rows?|items?|entries|words?|letters?|messages?|pages?|records?|results?|images?"
_GONE_WORD = re.compile(rf"\.|…|{_GONE}", re.IGNORECASE)
_NOTE = re.compile(
    rf"(?:\W|_|[0-9]++(?:[.,/][0-9]++)*+(?:[kmg]?i?b|[kmg]?(?:more|of|other|further)?\W?(?:{_UNIT}))|{_GONE}|{_UNIT}|pictures?"
    r"|screenshots?|attachments?|files?|output|contents?|text|data|response|tool|parts?|rest|middle|section|history|for|from|brevity"
    r"|of|the|was|were|is|are|has|have|been|to|save|space|context|here|too|long|large|old|older|earlier|previous|some|in|by|and|due"
    r"|length|limit|size|original|total|about|note)+",
    re.IGNORECASE,
)
"""The same without brackets: it says that something is gone and perhaps how much, and has a word for nothing else."""
_LONGEST = 240
"""Characters of a note."""
_OVERLAP = 12
"""Characters that the beginning of a note may have in common with what it replaces, and its end."""


@dataclass(slots=True)
class ContextPart:
    """One part of a context."""

    what: str
    """`user`, `assistant`, `system`, `tool call`, `tool result`, `thought`, `image`, or another word of the payload."""
    text: str
    name: str = ""
    """Of the tool."""
    call: str | None = None
    """Id of the tool call."""
    data: str | None = None
    """Of an image its data or URL."""
    item: int = 0
    """Place of its message in the context, from 0."""
    since: int = 0
    """The first request that had it, as far as was read."""
    unread: int = 0
    """Bytes of what no dialect reads."""
    _key: str = ""

    @property
    def size(self) -> int:
        """Bytes of the text, or of the image as it was sent."""
        if self.unread:
            return self.unread
        text = self.text if self.data is None else self.data
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    @property
    def key(self) -> str:
        """Hash of what it says, ids of tool calls with it. Computed once it is asked for."""
        if not self._key:
            # Which tool a result is of may stand elsewhere.
            name = "" if self.call else self.name
            told = "\0".join((self.what, self.call or "", name, self.text, self.data or ""))
            self._key = blake3(told.encode("utf-8", "surrogatepass")).hexdigest(16)
        return self._key


def split_items(items: list[Item], names: dict[str, str] | None = None) -> list[ContextPart]:
    """Give the parts of a context in their order.

    names: of tools, by the ids of tool calls; those of the context itself are added.
    """
    known = {} if names is None else names
    parts: list[ContextPart] = []
    for number, item in enumerate(items):
        messages = item.messages
        if item.system is not None:
            messages = (system_message(item.system), *messages)
        made = [_read(message, part, known) for message in messages for part in message.parts]
        if item.raw:
            made.append(ContextPart(item.raw, "", unread=item.size, _key=item.key))
        for one in made:
            one.item, one.since = number, item.since
        parts += made
    return parts


def _read(message: Message, part: Part, names: dict[str, str]) -> ContextPart:
    role = message.role or "user"
    match part:
        case Text():
            return ContextPart(role, part.text)
        case Thinking():
            return ContextPart("thought", part.text)
        case ToolCall():
            if part.id:
                names[part.id] = part.name
            text = json.dumps(part.arguments, ensure_ascii=False, sort_keys=True)
            if part.arguments is None and part.text:
                text = part.text
            return ContextPart("tool call", text, part.name, part.id)
        case ToolResult():
            name = part.name or names.get(part.id or "", "")
            extra = sum(not isinstance(one, Text) for one in part.parts)
            text = part.text + (
                f" (and {extra} parts that are no text)" if extra and not part.text else ""
            )
            return ContextPart("tool result", text, name, part.id)
        case Refusal():
            return ContextPart(role, part.text)
        case Image():
            return ContextPart("image", part.media_type or "", data=part.data or part.url or "")
        case Other():
            return ContextPart(part.kind, json.dumps(part.raw, ensure_ascii=False, sort_keys=True))


def short(part: ContextPart) -> str:
    """Give what a model said or wanted, so that it is the same where an agent writes white space in another way."""
    if part.what == "tool call":
        return f"tool call {part.name} {part.text}"
    return squeezed("thought" if part.what == "thought" else "assistant", part.text)


def is_rest_of(now: str, first: str) -> bool:
    """Say whether a text is an earlier one, or what was left of that when it was shortened: a part, or its ends around a note.

    White space does not count.
    """
    now, first = ("".join(one.split()) for one in (now, first))
    return now in first or _has_ends_of(now, first) or _has_ends_around_note(now, first)


def is_cut_from(now: str, first: str) -> bool:
    """Say whether a text is the ends of an earlier one around a note that says nothing but that something is gone."""
    return _has_ends_around_note("".join(now.split()), "".join(first.split()))


def is_note(text: str) -> bool:
    """Say whether a text in brackets says nothing but that something is gone."""
    short = "".join(text.split())
    is_set_off = len(short) <= _LONGEST and not (short[:1] + short[-1:]).isalnum()
    return is_set_off and _says_gone(short, 0, len(short), 0)


def _has_ends_of(now: str, first: str) -> bool:
    begin, end = _common_ends(now, first)
    is_cut = _CUT.fullmatch(now, begin, len(now) - end) is not None
    return len(now) < len(first) and begin + end >= _KEPT and is_cut


def _has_ends_around_note(now: str, first: str) -> bool:
    begin, end = _common_ends(now, first)
    between = len(now) - begin - end
    if len(now) >= len(first) or begin + end < _KEPT or not 0 < between <= _LONGEST:
        return False
    return _says_gone(now, begin, len(now) - end, _OVERLAP)


def _common_ends(now: str, first: str) -> tuple[int, int]:
    begin = common_prefix(now, first)
    most = min(len(now), len(first)) - begin
    return begin, min(common_prefix(now[::-1], first[::-1]), most)


def _says_gone(text: str, begin: int, end: int, overlap: int) -> bool:
    """Say whether a piece of a text is a note.

    overlap: characters by which it may begin before and end behind, as the text may go on as the note begins. No number is taken in.
    """
    if _GONE_WORD.search(text, begin, end) is None:
        return False
    first = last = 0
    while first < min(overlap, begin) and not text[begin - first - 1].isdigit():
        first += 1
    while last < min(overlap, len(text) - end) and not text[end + last].isdigit():
        last += 1
    return any(
        _NOTE.fullmatch(text, begin - before, end + behind) is not None
        for before in range(first + 1)
        for behind in range(last + 1)
    )


def squeezed(what: str, text: str) -> str:
    """Give a text without its white space, as something of a kind."""
    return f"{what} {''.join(text.split())}"
