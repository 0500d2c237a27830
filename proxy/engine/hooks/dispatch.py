"""Dispatch hooks by table, failing closed.

Why: mitmproxy swallows an exception in a hook and goes on, which for a request means that it is sent.
Here an exception while a request is being decided becomes a refusal, and one while an answer is being
recorded ends the flow before its last byte. A table instead of a walk over every addon for every hook is
also the largest single saving of CPU there is.
Replaces: `AddonManager.handle_lifecycle`, `AddonManager.trigger_event`. Checked against 12.2.3.
Test: tests/proxy/engine/hooks/test_dispatch.py.
"""

import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy import addonmanager, flow, hooks, http

from .... import PlayheadError
from ....addons.answer.refuse import refuse_failed

logger = logging.getLogger(__name__)

_TOLD = 64
_DECIDING = frozenset({"http_connect", "requestheaders", "request"})
_KEEPING = frozenset(
    {
        "responseheaders",
        "response",
        "playhead_release",
        "playhead_uploaded",
        "playhead_bidirectional",
        "playhead_gate",
        "playhead_left",
        "playhead_websocket_ended",
    }
)


class TableAddonManager(addonmanager.AddonManager):
    """Call the handlers of a hook in order, found once."""

    def __init__(self, master: Any) -> None:
        """Manage the addons of a master."""
        super().__init__(master)  # type: ignore[no-untyped-call]  # mitmproxy's
        self._table: dict[str, tuple[Callable[[Any], Any], ...]] = {}
        self._arguments: dict[type[hooks.Hook], str] = {}
        self._told: deque[str] = deque(maxlen=_TOLD)
        """Failures that a person can mend, and that were logged."""

    def add(self, *addons: Any) -> None:
        """Add addons at the end of the chain."""
        super().add(*addons)  # type: ignore[no-untyped-call]  # mitmproxy's
        self._table.clear()

    def handlers(self, name: str) -> tuple[Callable[[Any], Any], ...]:
        """Give the handlers of a hook, in order."""
        try:
            return self._table[name]
        except KeyError:
            found = [getattr(addon, name, None) for addon in addonmanager.traverse(self.chain)]
            handlers = self._table[name] = tuple(func for func in found if callable(func))
            return handlers

    def start(self, hook: hooks.Hook) -> Awaitable[None] | None:
        """Run a hook as far as it goes without waiting; give the rest, or None when there is none.

        For hooks with one argument, which all hooks of a connection are.
        """
        handlers = self.handlers(hook.name)
        if not handlers:
            return None
        kind = type(hook)
        name = self._arguments.get(kind)
        if name is None:
            name = self._arguments[kind] = next(iter(kind.__dataclass_fields__))  # type: ignore[attr-defined]  # every hook is a dataclass
        subject = getattr(hook, name)
        try:
            for place, handler in enumerate(handlers):
                result = handler(subject)
                if result is not None and inspect.isawaitable(result):
                    return self._finish(hook.name, subject, result, handlers[place + 1 :])
        except Exception as error:
            self._fail(hook.name, subject, error)
        return None

    async def _finish(
        self,
        name: str,
        subject: Any,
        waiting: Awaitable[Any],
        handlers: tuple[Callable[[Any], Any], ...],
    ) -> None:
        try:
            await waiting
            for handler in handlers:
                result = handler(subject)
                if result is not None and inspect.isawaitable(result):
                    await result
        except Exception as error:
            self._fail(name, subject, error)

    async def handle_lifecycle(self, event: hooks.Hook) -> None:
        """Run a hook."""
        await self.trigger_event(event)

    async def trigger_event(self, event: hooks.Hook) -> None:
        """Run a hook; a failing handler ends it."""
        arguments = event.args()
        try:
            for handler in self.handlers(event.name):
                result = handler(*arguments)
                if result is not None and inspect.isawaitable(result):
                    await result
        except Exception as error:
            self._fail(event.name, arguments[0] if arguments else None, error)

    def _fail(self, name: str, subject: Any, error: Exception) -> None:
        """Make a failed hook harmless: refuse what was being decided, end what was being kept."""
        self._log(name, error)
        message = subject if isinstance(subject, http.HTTPFlow) else getattr(subject, "flow", None)
        if not isinstance(message, http.HTTPFlow):
            return
        if name in _DECIDING:
            refuse_failed(message, error)
        elif name in _KEEPING and message.error is None:
            message.error = flow.Error(flow.Error.KILLED_MESSAGE)

    def _log(self, name: str, error: Exception) -> None:
        """Log a failure with its place; one that a person can mend in a sentence, and once, as each request meets it again."""
        if not isinstance(error, PlayheadError):
            logger.error("hook %s failed: %s", name, error, exc_info=error)
        elif str(error) not in self._told and not getattr(error, "is_said", False):
            self._told.append(str(error))
            logger.error("%s%s", error, f"; {error.hint}" if error.hint else "")
