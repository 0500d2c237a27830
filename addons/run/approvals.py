"""What is held, over all runs of a process, and who may let it go.

A request is held between its decision and its being sent. Whoever rules names it and its digest; the first ruling
stands. Belongs to the event loop.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from ... import PlayheadError
from ...config import Gate
from ...tape.exchange import Repeat, Request, Seq
from ...tape.policy.gates import Ruled, Ruling, gate_name, request_digest

MOST_HELD = 10_000
"""Most requests that are held at a time; the next are refused at once."""
_REMEMBERED = 1000
"""Gates of which is remembered how they were ruled on."""


class CannotRule(PlayheadError):
    """The request is not held, or is another than the one that was looked at."""


@dataclass(slots=True, eq=False)
class Held:
    """A request that waits for a ruling."""

    name: str
    run: str
    seq: Seq
    request: Request
    """Redacted."""
    digest: str
    reason: str
    rule: str
    repeat: Repeat | None
    since_ns: int
    deadline_s: float
    redact_text: Callable[[str], str]
    """Takes the secrets of its run out of what people say."""
    ruled: "asyncio.Future[Ruled]"

    def rule_on(self, ruled: Ruled) -> bool:
        """Take a ruling; False where there is one already."""
        if self.ruled.done():
            return False
        self.ruled.set_result(replace(ruled, reason=self.redact_text(ruled.reason)))
        return True

    async def wait(self) -> Ruled:
        """Wait for the ruling; the deadline is one."""
        timer = asyncio.get_running_loop().call_later(
            self.deadline_s, self.rule_on, Ruled(Ruling.EXPIRED)
        )
        try:
            return await self.ruled
        finally:
            timer.cancel()


class Gates:
    """The requests that are held now."""

    def __init__(self) -> None:
        """Begin with none."""
        self._held: dict[str, Held] = {}
        self._past: OrderedDict[str, Ruled] = OrderedDict()

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._held)

    def listed(self, most: int | None = None) -> list[Held]:
        """Give what is held, oldest first."""
        return list(islice(self._held.values(), most))

    def find(self, name: str) -> Held | None:
        """Find what is held by its name."""
        return self._held.get(name)

    def hold(
        self,
        run: str,
        seq: Seq,
        request: Request,
        gate: Gate,
        *,
        reason: str,
        rule: str,
        repeat: Repeat | None,
        redact_text: Callable[[str], str] = str,
    ) -> Held:
        """Begin to hold a request."""
        name = gate_name(run, seq)
        held = self._held[name] = Held(
            name=name,
            run=run,
            seq=seq,
            request=request,
            digest=request_digest(request),
            reason=reason,
            rule=rule,
            repeat=repeat,
            since_ns=time.time_ns(),
            deadline_s=gate.deadline_s,
            redact_text=redact_text,
            ruled=asyncio.get_running_loop().create_future(),
        )
        return held

    def let_go(self, held: Held, ruled: Ruled) -> None:
        """Forget a request that is held no more, but for how it was ruled on."""
        self._held.pop(held.name, None)
        self._past[held.name] = ruled
        while len(self._past) > _REMEMBERED:
            self._past.popitem(last=False)

    def rule_on(self, name: str, digest: str | None, ruled: Ruled) -> Held:
        """Approve or deny a held request.

        digest: of the request that was looked at; None only to deny.
        Raises: CannotRule, when it is not held, not held any more, or another request.
        """
        held = self._held.get(name)
        if held is None or held.ruled.done():
            past = self._past.get(name)
            if held is not None:
                past = held.ruled.result()
            known = f"{name} is held no more: {past.text}" if past else f"nothing is held as {name}"
            raise CannotRule(known, "`playhead gates` lists what is held")
        if digest is None and ruled.ruling is Ruling.APPROVED:
            raise CannotRule(
                f"{name}: an approval names the request it is for; its digest is {held.digest}",
                "look at the request, then approve it with its digest",
            )
        if digest is not None and digest != held.digest:
            raise CannotRule(
                f"{name} is another request than the one approved: its digest is {held.digest},"
                f" not {digest}",
                "look at it again: `playhead gates`",
            )
        held.rule_on(ruled)
        return held
