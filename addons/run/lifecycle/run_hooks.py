"""What a run asks of others over its life: they keep what is under way, and close its connections."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mitmproxy import connection

from ....tape.exchange import RedactedText
from ..pending_exchange import PendingExchange
from ..run_state import OpenRun


@dataclass(slots=True)
class RunHooks:
    """Who is asked; set by the addons that answer."""

    on_opened: list[Callable[[OpenRun], Awaitable[None]]] = field(default_factory=list)
    """Told of a run that was opened, before its first request goes on."""
    before_effect: Callable[[PendingExchange], Awaitable[None]] | None = None
    """Asked to keep how things stand before an effect is forwarded while recording; its request waits."""
    on_unfinished: Callable[[PendingExchange], Awaitable[None]] | None = None
    """Asked to keep what there is of an exchange whose run ends."""
    on_overdue: Callable[[PendingExchange], Awaitable[None]] | None = None
    """Called with an exchange whose answer goes on long after its client has left."""
    on_broken: Callable[[PendingExchange, RedactedText, str], Awaitable[None] | None] | None = None
    """Asked to keep an exchange that is broken off by us, with why and what decided that."""
    on_ended: Callable[[OpenRun], Awaitable[None]] | None = None
    """Asked to close what is left of a run's connections."""
    on_ending: list[Callable[[OpenRun], Awaitable[None]]] = field(default_factory=list)
    """Asked to keep what is left of a run, before it is sealed."""
    on_reset: Callable[[connection.Client], None] | None = None
    """Asked to end a client's connection with RST."""
