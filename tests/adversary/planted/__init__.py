"""Planted runs, with the truth about them: cases for the verbs that look back, made without a look at their code.

Everything is plain data, the same for the same count and seed; case N does not depend on the count. A run is a list of
exchanges in the order of arrival:

    {"seq": 1, "method": "POST", "url": "https://...", "request_headers": {...}, "request": body,
     "status": 200, "response_headers": {...}, "response": body, "started_ms": ..., "took_ms": ..., "process": 4100}

A body is JSON, a text, None for nothing, or a list of server-sent events {"event", "data"}; `wire.encode` writes it as
bytes. An exchange with `refused` was never on the wire, one with `cut` broke inside its answer (see cost.py). `process` is a number like a pid, and may be missing. The order of keys is the order in which they were sent.

Each kind has a file whose head explains its truth. `ALL` has for each kind its generator, `generate(count, seed)`, and
the full count; tests of every day use fewer.
"""

from collections.abc import Callable

from .blame import blame
from .cache import cache
from .context import context
from .cost import cost
from .diff import diff
from .history import history
from .lanes import lanes
from .wire import Plain

ALL: dict[str, tuple[Callable[..., list[Plain]], int]] = {
    "blame": (blame, 200),
    "cache": (cache, 60),
    "diff": (diff, 200),
    "context": (context, 60),
    "lanes": (lanes, 40),
    "history": (history, 60),
    "cost": (cost, 50),
}
