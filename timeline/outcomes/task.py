"""The task of a run: what its agent was asked to do, so that a recording of the same task is found.

A task is known by the system prompt, the first message of the user and the names of the tools of the first model call of a
conversation. Numbers, the names of days and months, and what an agent reminds its model of beside (`<system-reminder>`) are left out:
they are others on another day.
"""

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blake3 import blake3

from ...store import RunInfo
from ...tape.exchange import Exchange, Message, RequestClass
from ..steps.model_call import find_aside, user_texts
from ..steps.model_context import Context, read_context
from ..steps.websocket_calls import split_websocket

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_CHANGING = re.compile(
    r"\b(?:" + "|".join([*day_name, *month_name[1:], *day_abbr, *month_abbr[1:]]) + r")\b|\d+"
)
_MOST = 256 * 1024
"""Characters of a text that count."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent was asked to do."""

    system: bytes
    """Hash of the system prompt."""
    asked: bytes
    """Hash of the first message of the user."""
    tools: bytes
    """Hash of the names of the tools."""
    text: str = ""
    """The first line of what the user said."""

    @property
    def fingerprint(self) -> bytes:
        """Sixteen bytes over all three."""
        return blake3(self.system + self.asked + self.tools).digest(16)

    def noted(self) -> dict[str, Any]:
        """Give it as the log of a run has it: what diverged in a WebSocket is in no exchange."""
        return asdict(self)

    @classmethod
    def from_noted(cls, data: Mapping[str, Any]) -> "Task":
        """Read it from a log."""
        return cls(**data)

    def is_alike(self, other: "Task") -> bool:
        """Say whether the same was asked with the same tools, under another system prompt."""
        return (self.asked, self.tools) == (other.asked, other.tools)


def read_task(exchange: Exchange) -> Task | None:
    """Read the task of a model call; None where it is none, or one beside the conversation."""
    if exchange.request_class is not RequestClass.INFERENCE or exchange.request.spilled is not None:
        return None
    context = read_context(exchange.request, exchange.seq)
    if context is None or context.asked.rpc or find_aside(context):
        return None
    said = _first_said(context)
    if said is None:
        return None
    names = "\0".join(sorted(tool.name for tool in context.asked.tools))
    return Task(_hash(context.system), _hash(said), _hash(names), first_line_of(said))


def read_task_of_message(exchange: Exchange, message: Message) -> Task | None:
    """Read the task of a model call in a WebSocket; None where the message asks no model.

    exchange: the WebSocket.
    """
    calls = split_websocket(exchange, (message,))
    return next((task for _, made, _ in calls if (task := read_task(made)) is not None), None)


def find_task(exchanges: Iterable[Exchange]) -> Task | None:
    """Find the task of a run: that of its first model call in a conversation.

    exchanges: in order; no more are read than are needed.
    """
    return next((task for one in exchanges if (task := read_task(one)) is not None), None)


def _first_said(context: Context) -> str | None:
    for item in context.items:
        texts = [_REMINDER.sub("", text).strip() for text in user_texts([item])]
        if item.system is None and any(texts):
            return "\n".join(text for text in texts if text)
    return None


def first_line_of(text: str) -> str:
    """Give the first line of a text that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:200]


def _hash(text: str) -> bytes:
    short = _CHANGING.sub("0", " ".join(text[:_MOST].split()))
    return blake3(short.encode("utf-8", "surrogatepass")).digest(16)


@dataclass(frozen=True, slots=True)
class Known:
    """A recording, and its task."""

    run: RunInfo
    task: Task | None


def choose_tape(known: Iterable[Known], task: Task) -> tuple[Known, bool] | None:
    """Choose the newest recording of a task, and say whether the system prompt is the same, too.

    known: those that ended well, the newest first.
    """
    alike: Known | None = None
    for one in known:
        if one.task is None:
            continue
        if one.task.fingerprint == task.fingerprint:
            return one, True
        if alike is None and one.task.is_alike(task):
            alike = one
    return None if alike is None else (alike, False)
