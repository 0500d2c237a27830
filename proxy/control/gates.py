"""What is held, and rulings on it."""

import time
from typing import Any

from ...addons.gates import CannotRule, Held
from ...tape.gate import Ruled, Ruling
from ...tape.policy import is_duplicate
from ...timeline.render import MAX_SHOWN_BYTES, show_text
from .problem import ControlError
from .routes import Answer, Call, Text

REASON = Text(500, "Why, for the log and for the agent.")
DIGEST = Text(64, "Digest of the request that was looked at.")
VIA = Text(20, "How the ruling was made; api where nothing is said.", ("api", "command", "page"))


async def list_gates(call: Call) -> Answer:
    """List what is held, oldest first."""
    return Answer({"gates": [_shown(held) for held in call.house.sessions.gates.listed()]})


async def approve(call: Call) -> Answer:
    """Let a held request go; it has to be the one whose digest is given."""
    return await _rule(call, Ruling.APPROVED)


async def deny(call: Call) -> Answer:
    """Refuse a held request."""
    return await _rule(call, Ruling.DENIED)


async def _rule(call: Call, ruling: Ruling) -> Answer:
    caller = await call.find_caller()
    ruled = Ruled(ruling, str(caller), call.body.get("via", "api"), call.body.get("reason", ""))
    name = call.parameters["id"]
    try:
        held = call.house.sessions.gates.rule_on(name, call.body.get("digest"), ruled)
    except CannotRule as error:
        raise ControlError(
            409,
            str(error),
            expected="the name and digest of a request that is held",
            found=name,
            hint=error.hint,
        ) from None
    return Answer({**_shown(held), "ruling": ruling.value, "by": ruled.by})


def _shown(held: Held) -> dict[str, Any]:
    request = held.request
    repeat = held.repeat
    return {
        "id": held.name,
        "run": held.run,
        "seq": held.seq,
        "method": request.method,
        "url": request.url,
        "digest": held.digest,
        "reason": held.reason,
        "rule": held.rule,
        "repeats": repeat.of if repeat is not None and is_duplicate(repeat) else None,
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in request.headers
        ],
        "body": show_text(request.body),
        "body_bytes": request.body_bytes,
        "whole": request.spilled is None and len(request.body) <= MAX_SHOWN_BYTES,
        "since_ns": held.since_ns,
        "deadline_ns": held.since_ns + int(held.deadline_s * 1e9),
        "now_ns": time.time_ns(),
    }
