"""The order of the hooks: who is asking, what is decided, then what is done about it."""

from .answer.refuse import Refuse
from .bidirectional import Duplex
from .contract import Breached, Contract
from .control import Control
from .decide import Judge
from .faults.inject import Fault
from .faults.short_circuit import Unasked
from .gate import Gate
from .identify import Identify, Leave
from .playback import Playback
from .protocol import Protocol
from .record import Record
from .run.effect_row import Ledger
from .run.registry import Sessions
from .tunnels import Tunnels
from .websocket import Websocket


def chain(sessions: Sessions) -> list[object]:
    """Give the addons of one engine, in order."""
    record = Record(sessions)
    return [
        Identify(sessions),
        Protocol(sessions),
        Tunnels(sessions),
        Contract(),
        Judge(sessions),
        Breached(),
        Control(),
        Gate(sessions),
        Fault(),
        Ledger(),
        Refuse(),
        Playback(),
        Duplex(),
        Websocket(sessions),
        record,
        Unasked(record.keep_failed),
        Leave(sessions),
    ]
