"""What is held at breakpoints: list it, let it go on, or give it another answer."""

import time
from typing import Any

from ....addons.run.lifecycle.held_at_breakpoints import BreakError, Breaks, HeldAtBreak
from ....tape.diff.divergence_types import one_line
from ....tape.policy.breakpoints import BreakCommand
from ....timeline.receipts.render_text import MAX_SHOWN_BYTES, show_text
from ..http.error_body import ControlError
from ..http.route import Answer, Call, Text

_URL = 2000
ANSWER = Text(1 << 20, "Body of the answer.", is_any=True, is_needed=True)


async def list_breaks(call: Call) -> Answer:
    """List what is held, oldest first."""
    return Answer({"breaks": [_shown(held) for held in call.proxy_state.registry.breaks or ()]})


async def step(call: Call) -> Answer:
    """Let it go, and hold the next request."""
    return await _decide(call, BreakCommand.STEP)


async def go_on(call: Call) -> Answer:
    """Let it go, up to the next breakpoint."""
    return await _decide(call, BreakCommand.CONTINUE)


async def quit_run(call: Call) -> Answer:
    """Stop the run."""
    return await _decide(call, BreakCommand.QUIT)


async def answer(call: Call) -> Answer:
    """Give it another answer."""
    breaks, held = _find(call)
    shown = _shown(held)
    try:
        breaks.answer(held, call.body["answer"].encode())
    except BreakError as error:
        raise _conflict(error, call) from None
    return Answer({**shown, "command": BreakCommand.ANSWER.value})


async def _decide(call: Call, command: BreakCommand) -> Answer:
    breaks, held = _find(call)
    shown = _shown(held)
    try:
        await breaks.decide(held, command)
    except BreakError as error:
        raise _conflict(error, call) from None
    return Answer({**shown, "command": command.value})


def _find(call: Call) -> tuple[Breaks, HeldAtBreak]:
    breaks = call.proxy_state.registry.breaks or Breaks(())
    try:
        return breaks, breaks.get(call.parameters["id"])
    except BreakError as error:
        raise _conflict(error, call) from None


def _conflict(error: BreakError, call: Call) -> ControlError:
    return ControlError(
        409,
        str(error),
        expected="the name of a request that is held, and an answer that its dialect reads",
        found=call.parameters["id"],
        hint=error.hint,
    )


def _shown(held: HeldAtBreak) -> dict[str, Any]:
    pending, request = held.pending, held.pending.request
    decision = pending.decision
    return {
        "id": held.name,
        "seq": pending.seq,
        "tape_seq": held.tape_seq,
        "why": held.why,
        "method": request.method if request is not None else "",
        "url": one_line(request.url, _URL) if request is not None else "",
        "verdict": decision.verdict.value if decision is not None else "",
        "reason": decision.reason if decision is not None else "",
        "body": show_text(request.body[:MAX_SHOWN_BYTES]) if request is not None else "",
        "since_ns": held.since_ns,
        "now_ns": time.time_ns(),
    }
