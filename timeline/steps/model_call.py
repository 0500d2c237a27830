"""One model call as the tracer keeps it: its context, its answer, and what of both is looked for later."""

import json
import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...tape.dialects import InferenceResponse, Message, Text, ToolCall, ToolResult
from ...tape.dialects.common.untrusted_json import Json
from ...tape.dialects.openai_responses import COMPACT
from ...tape.exchange import Exchange, Seq
from .model_context import Context, Item

_KEEPS = "openai-responses"
SAME_BUT_SPACE = "same text but for white space"
_WORD = re.compile(r"\w+")
_TITLE = re.compile(
    r"\b(title|session name|conversation topic|name for (this|the) (chat|session|conversation)"
    r"|summari[sz]e (this|the) [a-z ]{0,20}(chat|session|conversation) in [a-z ]{0,14}\d+ (characters|words))\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_CALENDAR = frozenset(
    word.lower()
    for words in (day_name, day_abbr, month_name, month_abbr)
    for word in (*words, "am", "pm")
)
"""A prompt may say what day it is."""
_MONTHS = "|".join(word for word in (*month_name, *month_abbr) if word)
_DAYS = "|".join(word for word in (*day_name, *day_abbr) if word)
_TIME = re.compile(
    rf"(?i)(?:\b(?:{_DAYS})\b,?\s*)?\b(?:[0-9]{{1,2}}(?:st|nd|rd|th)?\s+)?(?:{_MONTHS})\b\.?(?:\s+[0-9]{{1,2}}(?:st|nd|rd|th)?\b)?"
    rf"(?:,?\s+[0-9]{{4}}\b)?|\b(?:{_DAYS})\b"
    r"|\b[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}(?![0-9])|\b[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}\b"
    r"|T?(?<![0-9])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:\s*[ap]m\b)?(?:Z|\s*UTC|[+-][0-9]{2}:?[0-9]{2})?"
    r"|\b[0-9]{10}(?:[0-9]{3}|\.[0-9]+)?\b"
)
"""A date or a time of day, as a prompt states it."""
_ROLE = re.compile(r"\b(you are|you're|act as|your (role|name|job|task))\b", re.IGNORECASE)
"""A prompt may begin with who the agent is."""
_FIELD = re.compile(
    r"((?!\w* ?(?:role|agent|name|persona|job|task|team|desk)\b)[\w-]+(?: [\w-]+){0,4}): +\S",
    re.IGNORECASE,
)
"""A line of what was looked up, as `Cart: a mug`: another value is no other role."""
_ID = re.compile(r"[A-Za-z0-9]+")
_DRAWN = 8
"""Letters and digits in a row from which on an id was drawn, not counted."""
_SHORT = 64
"""Words up to which a prompt is taken to say nothing but who the agent is."""
_CLOCKED = 4
"""Words up to which a sentence with a date or a time is taken to say nothing else."""
_TITLED = 4000
"""Characters of a prompt that are searched for a wish for a title."""


@dataclass(slots=True)
class ModelCall:
    """A model call."""

    seq: Seq
    part: int
    context: Context
    answer: InferenceResponse | None
    overlaps: frozenset[int]
    """Seqs of the requests that were under way when it came."""
    process: int
    failed: bool
    aside: str = ""
    tools: frozenset[str] = field(default_factory=frozenset)
    exchange: Exchange | None = field(default=None, repr=False)
    """Itself as an exchange, of a dialect by which a provider may keep what was said: its answer has ids that nothing else has."""

    @property
    def is_cut(self) -> bool:
        """Whether there is an answer, and it has no end: the last that it says may be half of what the model said."""
        return self.answer is not None and not self.answer.complete

    def is_half(self, call: ToolCall) -> bool:
        """Say whether a tool call of the answer may have been cut: its arguments are no JSON, or it is the last one and has none."""
        if not self.is_cut:
            return False
        is_last = bool(self.calls) and call is self.calls[-1]
        return call.arguments is None or (is_last and not call.arguments)

    @property
    def said(self) -> str:
        """What the answer says."""
        return self.answer.text if self.answer is not None else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """What the answer wants called."""
        return self.answer.tool_calls if self.answer is not None else ()


def read_call(
    exchange: Exchange, context: Context, answer: InferenceResponse | None, part: int = 0
) -> ModelCall:
    """Make a model call of what was read."""
    lane = exchange.lane
    failed = answer is None or answer.error is not None
    made = ModelCall(
        exchange.seq,
        part,
        context,
        answer,
        frozenset(lane.overlaps) if lane is not None else frozenset(),
        lane.number if lane is not None else 0,
        failed or not answer.choices if answer is not None else True,
        tools=frozenset(tool.name for tool in context.asked.tools),
        exchange=exchange if context.asked.dialect == _KEEPS else None,
    )
    made.aside = "compaction" if exchange.request.path.endswith(COMPACT) else find_aside(context)
    return made


def find_aside(context: Context) -> str:
    """Say what a call beside the conversation is for; empty for one of the conversation."""
    asked, items = context.asked, context.items
    if context.tree.get("generate") is False:
        return "warm-up"
    if asked.tools or len(items) > 4:
        return ""
    if asked.sampling.max_tokens is not None and asked.sampling.max_tokens <= 1:
        return "quota"
    if _TITLE.search(context.system[:_TITLED]):
        return "title"
    spoken = [message for item in items for message in item.messages]
    if spoken and not context.system and _TITLE.search(spoken[-1].text[-_TITLED:]):
        return "title"
    return ""


def answer_in(call: ModelCall, context: Context, same: int) -> str | None:
    """Say how the answer of a call is in a later context; None where it is not.

    An empty word says that it is there byte for byte.
    same: how many items both begin with; what has no id is looked for behind them.
    """
    if call.answer is None or call.answer.message is None:
        return None
    ids = {one.id for one in call.calls if one.id}
    if ids:
        shared = ids & context.ids
        if not shared:
            return None
        if any(map(is_drawn, shared)):
            return ""
        later = find_calls(context.items[same:])
        has_call = any(is_among(one.id, one.name, one.arguments, later) for one in call.calls)
        return "" if has_call else None
    items = context.items[same:]
    said = call.said
    messages = [message for item in items for message in item.messages]
    if call.calls:
        wanted = {(one.name, _text(one.arguments)) for one in call.calls}
        given = {(one.name, _text(one.arguments)) for one in find_calls(items)}
        if wanted <= given:
            return ""
    elif said:
        for message in messages:
            if message.role == "assistant" and message.text == said:
                return ""
        short = "".join(said.split())
        for message in messages:
            if message.role == "assistant" and short and "".join(message.text.split()) == short:
                return SAME_BUT_SPACE
    return None


def is_drawn(id: str) -> bool:
    """Say whether an id was drawn, so that no other call has it: `call_0` was counted, and each agent may have one."""
    return any(
        len(word) >= _DRAWN and _DIGIT.search(word) and not word.isdigit()
        for word in _ID.findall(id)
    )


def is_among(id: str | None, name: str, arguments: Json, calls: Sequence[ToolCall]) -> bool:
    """Say whether a tool call is among others: the same id, the same tool, and the same arguments."""
    return any((id, name, arguments) == (one.id, one.name, one.arguments) for one in calls)


def find_calls(items: list[Item]) -> list[ToolCall]:
    """Give the tool calls in items, in order."""
    return [one for item in items for one in item.calls]


def find_results(items: list[Item]) -> list[ToolResult]:
    """Give the results of tools in items, in order."""
    return [one for item in items for one in item.results]


def user_texts(items: list[Item]) -> list[str]:
    """Give the texts that the agent itself put into items, each by itself."""
    return [
        part.text
        for item in items
        for message in item.messages
        if message.role != "assistant"
        for part in message.parts
        if isinstance(part, Text) and part.text
    ]


def argument_texts(value: Json) -> list[str]:
    """Give the strings and numbers in the arguments of a tool call."""
    found: list[str] = []
    level: list[Json] = [value]
    while level and len(found) < 1000:
        one = level.pop()
        if isinstance(one, dict):
            level += reversed(list(one.values()))
        elif isinstance(one, list):
            level += reversed(one)
        elif isinstance(one, str):
            found.append(one)
        elif isinstance(one, int | float) and not isinstance(one, bool):
            found.append(str(one))
    return found


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def same_agent(one: ModelCall, other: ModelCall, *, continued: bool = False) -> bool:
    """Say whether two calls are of one agent, by their system prompts and tools.

    A prompt may have a clock or a counter in it, and tools may come and go; who works in another role has another prompt.
    continued: whether the conversation goes on: then a prompt may have changed behind its first sentence.
    """
    first, second = one.context.system, other.context.system
    if first == second and first:
        return True
    if first and second and _are_roles(first, second, continued=continued):
        return False
    alike = _alike(first, second)
    tools = _share(one.tools, other.tools)
    if continued and min(alike, tools) >= 0.5 and _is_same_but_less(one, other):
        return True
    if one.tools and other.tools:
        return alike >= 0.5 and tools >= 0.5 and (tools >= 0.9 or alike >= 0.8)
    if one.tools or other.tools:
        return alike >= 0.8 and bool(first)
    return alike >= 0.8


def _is_same_but_less(one: ModelCall, other: ModelCall) -> bool:
    """Say whether lines of a prompt and tools only went, or only came: what one agent is given less, it is not given anew.

    Who hands a conversation over gives it to an agent that has something of its own, and does not have what the first one had.
    """
    lines = [frozenset(call.context.system.splitlines()) for call in (one, other)]
    sides = lines, [one.tools, other.tools]
    return all(first <= second or second <= first for first, second in sides)


def keeps_role(one: ModelCall, other: ModelCall) -> bool:
    """Say whether a call that has the whole conversation of another, its answer with it, is of the same agent.

    A prompt may be written anew each turn, with what was looked up for it. Who hands a conversation over gives it to other tools, before
    a person has said anything, or to who has another role.
    """
    if same_agent(one, other, continued=True):
        return True
    first, second = one.context.system, other.context.system
    if not first or not second or _share(one.tools, other.tools) < 0.9:
        return False
    last = other.context.items[-1].messages if other.context.items else ()
    if one.calls or not any(message.role == "user" for message in last):
        return False
    begins = [_first_sentence(text) for text in (first, second)]
    if _timeless(begins[0]) == _timeless(begins[1]):
        return True
    roles = [_role_sentences(text) for text in (first, second)]
    fields = [_FIELD.match(begin) for begin in begins]
    is_field = fields[0] is not None and fields[1] is not None and fields[0][1] == fields[1][1]
    if roles[0] == roles[1] and (roles[0] or is_field):
        return True
    if all(len(_WORD.findall(text[:_TITLED])) <= _SHORT for text in (first, second)):
        return False
    if not _are_roles(first, second, continued=True):
        return True
    return _alike(first, second) >= 0.8 and not all(map(_ROLE.search, begins))


@lru_cache(64)
def _role_sentences(text: str) -> frozenset[str]:
    """Give all sentences of a prompt that say who the agent is, but for dates and times."""
    sentences = (one for line in text[: 16 * _TITLED].splitlines() for one in line.split(". "))
    return frozenset(_timeless(one.strip(" .")) for one in sentences if _ROLE.search(one))


def same_prompt(one: ModelCall, other: ModelCall) -> bool:
    """Say whether two calls have the same system prompt, but for the date and the time; without prompts their tools tell.

    A number or a short word more is another agent: workers are often told apart by nothing else.
    """
    first, second = one.context.system, other.context.system
    if not first or not second:
        return not first and not second and same_agent(one, other)
    return first == second or _timeless(first) == _timeless(second)


@lru_cache(64)
def _timeless(text: str) -> str:
    """Leave out dates, times, and lines that a client adds as fields."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("x-"))
    return _TIME.sub("", "\n".join(lines))


@lru_cache(64)
def _are_roles(first: str, second: str, *, continued: bool) -> bool:
    """Say whether two prompts give two roles: each has a word where it says who the agent is that the other has not.

    A short prompt says nothing else; a long one does so in its first line. Of one conversation it is the first sentence that tells.
    """
    if continued:
        one, other = (_named(_first_sentence(text)) for text in (first, second))
        return bool(one - other and other - one)
    words = [_named(text[:_TITLED]) for text in (first, second)]
    if max(map(len, words)) > _SHORT or max(len(first), len(second)) > _TITLED:
        lines = [_first_telling_line(text) for text in (first, second)]
        words = [_named(text) for text in lines]
    return bool(words[0] - words[1] and words[1] - words[0])


def _named(text: str) -> frozenset[str]:
    """Give the words of a text, but for numbers, what has some in it, and the names of days."""
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(word for word in words if word not in _CALENDAR and not _DIGIT.search(word))


def _first_sentence(text: str) -> str:
    """Give the first sentence of a prompt that says more than what day or time it is."""
    sentences = (one for line in _telling_lines(text) for one in line.split(". "))
    return (
        next((one for one in sentences if not _is_clock(one)), "")
        or (_first_telling_line(text).partition(". ")[0])
    )


def _is_clock(sentence: str) -> bool:
    """Say whether a sentence says nothing but when it is, as `At 12:01` does."""
    rest, times = _TIME.subn("", sentence)
    return bool(times) and len(_WORD.findall(rest)) <= _CLOCKED and not _ROLE.search(rest)


def _first_telling_line(text: str) -> str:
    return next(_telling_lines(text), "")


def _telling_lines(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text[: 16 * _TITLED].splitlines())
    return (one[:200] for one in lines if one and not one.startswith(("x-", "<", "#")))


@lru_cache(64)
def _alike(first: str, second: str) -> float:
    if first == second:
        return 1.0
    lines = _share(frozenset(first.splitlines()), frozenset(second.splitlines()))
    words = _share(frozenset(_WORD.findall(first)), frozenset(_WORD.findall(second)))
    return max(lines, words)


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    if not first and not second:
        return 1.0
    return len(first & second) / len(first | second)


def first_line(message: Message) -> str:
    """Give the first line of a message's text."""
    return message.text.strip().partition("\n")[0]
