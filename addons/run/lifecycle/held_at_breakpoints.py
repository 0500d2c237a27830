"""What is held at breakpoints, over all runs of a process. Belongs to the event loop.

A request is held once it is decided what becomes of it, and before anything is sent, answered or logged. Who holds it lets it go
with a command; a client that leaves goes, too.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .... import PlayheadError
from ....config import Answer
from ....tape.exchange import Exchange, RequestClass, Seq
from ....tape.matching.cursor import Hit
from ....tape.policy.breakpoints import BreakCommand, Breakpoint
from ..pending_exchange import PendingExchange

_STEP = "step"


class BreakError(PlayheadError):
    """What was said of a request that is held cannot be done."""


@dataclass(slots=True, eq=False)
class HeldAtBreak:
    """One request that is held."""

    pending: PendingExchange
    why: str
    """The breakpoint, as it was written; or that somebody went step by step."""
    since_ns: int
    let_go: asyncio.Event
    command: BreakCommand | None = None
    """What was said; None while it is held, and where its client has left."""
    answer: Answer | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is held no more."""

    @property
    def name(self) -> str:
        """`RUN:SEQ`."""
        info = self.pending.open_run.info
        return f"{info.id if info is not None else ''}:{self.pending.seq}"

    @property
    def tape_seq(self) -> Seq | None:
        """The recorded exchange that was found for it."""
        return find_tape_seq(self.pending)

    def read_recorded(self) -> Exchange | None:
        """Read that exchange."""
        playback, seq = self.pending.open_run.playback, self.tape_seq
        return playback.read_recorded(seq) if playback is not None and seq is not None else None


def find_tape_seq(pending: PendingExchange) -> Seq | None:
    """Find the recorded exchange that answers a request, or would if nothing else had been decided."""
    found = pending.lookup.found
    if isinstance(found, Hit):
        return found.seq
    if pending.lookup.passed_over is not None:
        return pending.lookup.passed_over
    return pending.decision.seq if pending.decision is not None else None


class Breaks:
    """The breakpoints of a process, and what is held at them."""

    def __init__(self, points: Sequence[Breakpoint]) -> None:
        """Begin with nothing held."""
        self.points = tuple(points)
        """At which requests are held; none once they are disabled."""
        self._unmet = {one.text: one for one in points}
        self.stepping = False
        """Whether the next request is held, whatever it is."""
        self.on_held: list[Callable[[HeldAtBreak], None]] = []
        """Told of each request that is held from now on."""
        self.on_quit: Callable[[HeldAtBreak], Awaitable[None]] | None = None
        """Stops the run of a request that is held, when somebody quits."""
        self._held: dict[str, HeldAtBreak] = {}

    def __iter__(self) -> Iterator[HeldAtBreak]:
        """Give what is held, oldest first."""
        return iter(list(self._held.values()))

    def find_why(self, pending: PendingExchange) -> str:
        """Say why a request is to be held; empty where it is not."""
        decision, facts = pending.decision, pending.facts
        if decision is None or facts.request_class is RequestClass.TELEMETRY:
            return ""
        seq = find_tape_seq(pending)
        for text, one in list(self._unmet.items()):
            if one.hits(facts, decision, seq):
                del self._unmet[text]
        hit = next((one.text for one in self.points if one.hits(facts, decision, seq)), "")
        return hit or (_STEP if self.stepping else "")

    def say_unmet(self) -> list[str]:
        """Say of each breakpoint that no request came to it, also not once they were disabled."""
        return [
            f"the breakpoint {one.text!r} was never met: {one.unmet}"
            for one in self._unmet.values()
        ]

    async def hold(self, pending: PendingExchange, why: str) -> HeldAtBreak:
        """Hold a request until somebody lets it go, or its client leaves."""
        held = HeldAtBreak(pending, why, time.time_ns(), pending.held.delay())
        self.stepping = False
        self._held[held.name] = held
        try:
            for tell in self.on_held:
                tell(held)
            await held.let_go.wait()
        finally:
            self._held.pop(held.name, None)
            held.done.set()
            pending.held.go_on()
        return held

    def get(self, name: str) -> HeldAtBreak:
        """Get what is held by its name. Raises: BreakError."""
        found = self._held.get(name)
        if found is None:
            raise BreakError(
                f"nothing is held at a breakpoint by the name {name[:80]!r}",
                f"held: {', '.join(list(self._held)[:5]) or 'nothing'}",
            )
        return found

    async def decide(self, held: HeldAtBreak, command: BreakCommand) -> None:
        """Let a request go, with a command other than `answer`."""
        if held.done.is_set():
            raise BreakError(f"{held.name} is not held any more", "")
        self.stepping = command is BreakCommand.STEP
        held.command = command
        if command is BreakCommand.QUIT and self.on_quit is not None:
            await self.on_quit(held)
        held.let_go.set()

    def answer(self, held: HeldAtBreak, body: bytes) -> None:
        """Let a request go with another answer.

        Raises: BreakError, with the JSON path at which the answer cannot be read.
        """
        from ....tape.edits.edit_answer import edit_answer, make_answer  # reads every dialect

        recorded = held.read_recorded()
        try:
            made = make_answer(body) if recorded is None else edit_answer(recorded, body)
        except ValueError as error:
            raise BreakError(f"it cannot be the answer: {error}", "it is still held") from error
        if held.done.is_set():
            raise BreakError(f"{held.name} is not held any more", "")
        held.answer, held.command = made, BreakCommand.ANSWER
        held.let_go.set()

    def disable(self) -> None:
        """Hold nothing from now on, and let go of what is held."""
        self.points, self.stepping = (), False
        for held in self:
            held.command = BreakCommand.CONTINUE
            held.let_go.set()
