"""The addon chain: the order in which hooks run."""

from .alpn import Protocol
from .answer.refuse import Refuse
from .assign_run import Identify, Leave
from .attempts.log_failed_attempts import Attempts
from .attempts.pass_own_loopback_ports import PassOwnPorts
from .bidirectional_streaming import Bidirectional
from .branching.hold_at_break import HoldAtBreak
from .branching.route_to_sandbox_host import SendToSandbox
from .contract import Contract, ReportContractViolation
from .control_host import Control
from .decide import Decide
from .failed_tunnels import Tunnels
from .faults.inject import Fault
from .faults.short_circuit import ShortCircuit
from .gate import Gate
from .playback import Playback
from .record import Record
from .run.registry import RunRegistry
from .sink_backpressure import ReportEffect
from .websocket import Websocket
from .wire.stdio_servers import StdioServers


def chain(registry: RunRegistry, attempts: Attempts, stdio_servers: StdioServers) -> list[object]:
    """Give the addons of one engine, in order."""
    return [
        Identify(registry),
        stdio_servers,
        PassOwnPorts(registry),
        attempts,
        Protocol(registry),
        Tunnels(registry),
        Contract(),
        Decide(registry),
        HoldAtBreak(registry),
        ReportContractViolation(),
        Control(stdio_servers),
        Gate(registry),
        Fault(),
        ReportEffect(),
        Refuse(),
        Playback(),
        Bidirectional(),
        Websocket(registry),
        Record(registry),
        SendToSandbox(),
        ShortCircuit(),
        Leave(registry),
    ]
