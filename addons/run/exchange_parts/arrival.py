"""How a request arrived."""

import time
from dataclasses import dataclass, field

from ....tape.exchange import NO_TUNNEL, Headers, Lane, Tunnel


@dataclass(slots=True)
class Arrival:
    """What is known of a request by its head and its connection, and when it came."""

    fields: Headers = ()
    """Header fields as they stood when the request's head arrived."""
    tunnel: Tunnel = NO_TUNNEL
    lane: Lane | None = None
    names: tuple[tuple[str, str], ...] = ()
    """Names of its host that do not agree and stand in none of its fields."""
    started_ns: int = field(default_factory=time.time_ns)
    t0: float = field(default_factory=time.monotonic)

    def number_lane(self, number: int) -> None:
        """Note which lane it belongs to, now that its process has been found."""
        if self.lane is not None:
            self.lane = self.lane._replace(number=number)
