"""The order of the hooks: who is asking, what is decided, then what is done about it."""

from .contract import Breached, Contract
from .control import Control
from .duplex import Duplex
from .fault import Fault
from .fault_unasked import Unasked
from .gate import Gate
from .identify import Identify, Leave
from .judge import Judge
from .ledger import Ledger
from .playback import Playback
from .protocol import Protocol
from .record import Record
from .refuse import Refuse
from .sessions import Sessions
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
