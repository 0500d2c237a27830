"""The addon chain: the order in which hooks run."""

from .answer.refuse import Refuse
from .bidirectional import Bidirectional
from .contract import Contract, ReportContractViolation
from .control import Control
from .decide import Decide
from .faults.inject import Fault
from .faults.short_circuit import ShortCircuit
from .gate import Gate
from .identify import Identify, Leave
from .playback import Playback
from .protocol import Protocol
from .record import Record
from .report_effect import ReportEffect
from .run.registry import RunRegistry
from .tunnels import Tunnels
from .websocket import Websocket


def chain(registry: RunRegistry) -> list[object]:
    """Give the addons of one engine, in order."""
    record = Record(registry)
    return [
        Identify(registry),
        Protocol(registry),
        Tunnels(registry),
        Contract(),
        Decide(registry),
        ReportContractViolation(),
        Control(),
        Gate(registry),
        Fault(),
        ReportEffect(),
        Refuse(),
        Playback(),
        Bidirectional(),
        Websocket(registry),
        record,
        ShortCircuit(record.keep_failed),
        Leave(registry),
    ]
