"""Record a command whose `connect` is reported to us: its connections to ports of HTTP are led to the proxy, whatever its client ignores.

Proxy variables are set all the same: they lead HTTP at other ports here, and are all there is where the kernel gives no reports.
"""

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...config import Config
from ..capture.command_starter import Installed
from ..capture.connection_origins import Origins
from ..capture.destination import HTTP_PORTS
from ..capture.prefork import Prefork, explain, unable
from ..errors import EngineError
from ..processes.unstartable_command import explain_start
from .runtime import Runtime

_MOST_PASSED = 100


class CapturedProcess:
    """A command among all others of this machine, whose connections are led here. A job, as the launcher has it."""

    def __init__(
        self,
        prefork: Prefork,
        runtime: Runtime,
        config: Config,
        command: Sequence[str],
        variables: dict[str, str],
    ) -> None:
        """Prepare; nothing runs yet."""
        self._prefork = prefork
        self._runtime = runtime
        self._forced = config.sandbox.record == "notify"
        self._ports = (*HTTP_PORTS, *config.sandbox.ports)
        self._command = command
        self._variables = variables
        self._installed = Installed(None)
        self._obstacle = 0
        self._origins: Origins | None = None
        self._lost = False
        self._listening: list[socket.socket] = []

    async def start(self) -> int:
        """Start it; give its process id. Raises: EngineError."""
        starter = self._prefork.starter
        try:
            self._install()
        except OSError as error:
            raise EngineError(
                f"the capture of the command's connections cannot begin: {error}",
                "it was killed, or the machine ran out of files or memory; run it again, or record with --sandbox none",
            ) from error
        try:
            starter.go()
        except OSError as error:
            number, text = error.errno or 0, error.strerror or str(error)
            raise explain_start(self._command, number, text, self._variables) from error
        return starter.pid

    def _install(self) -> None:
        """Have the process that becomes the command install the filter. Raises: EngineError; OSError."""
        installed = self._installed = self._prefork.starter.install(
            self._command, self._variables, may_forbid=self._forced
        )
        if installed.listener is not None:
            self._begin(installed.listener)
        number = installed.error or self._obstacle
        if self._forced and number:
            self._prefork.starter.close()
            raise unable(number)

    def _begin(self, listener: int) -> None:
        """Have reports be answered from now on."""
        self._listening = _listen()
        engine = self._runtime.engine
        channel = self._prefork.supervisor.channel
        ipv6 = [sock.getsockname()[1] for sock in self._listening[1:]]
        channel.send_descriptors(
            [listener],
            command=self._prefork.starter.pid,
            ports=sorted(set(self._ports)),
            own=[port for _, port in engine.own_addresses],
            dials=engine.dials_directly,
            port=self._listening[0].getsockname()[1],
            ipv6=ipv6[0] if ipv6 else 0,
        )
        said = channel.receive()
        self._obstacle = said.data["able"] if said is not None else errno.EPIPE
        # Held for the day that the supervisor ends before the command: a filter without anybody refuses each `connect`.
        origins = self._origins = Origins(channel, lambda: self._stand_in(listener))
        engine.serve_captured(self._listening, origins.take)

    def _stand_in(self, listener: int) -> None:
        """Let everything go on, in the place of a supervisor that was killed."""
        self._lost = True
        stand_in = self._prefork.supervisor.stand_in
        threading.Thread(target=stand_in, args=(listener,), daemon=True).start()

    def signal(self, number: int) -> None:
        """Pass a signal on to its group. Raises: ProcessLookupError."""
        os.killpg(self._prefork.starter.pid, number)

    async def settle(self) -> None:
        """Wait until what has come from the command is handled. Once it has ended."""
        if self._origins is not None:
            await self._runtime.engine.transparent.settle()

    async def evidence(self, redact: Callable[[str], str]) -> dict[str, Any]:
        """Give what was seen, as a receipt has it.

        redact: takes secrets out of a text.
        """
        seen: dict[str, Any] = {}
        led = 0
        if self._origins is not None:
            seen = await self._origins.report()
            led = self._origins.led
            self._origins.close()
        passed = [
            {
                "host": redact(row.host),
                "port": row.port,
                "process": redact(row.process),
                "count": count,
                "why": row.why,
            }
            for row, count in _by_process(self._runtime.engine.captured.passed).items()
        ]
        return {
            "off": "" if self._installed.listener is not None else explain(self._installed.error),
            "blind": explain(self._obstacle) if self._obstacle else "",
            "lost": self._lost,
            "no_new_privileges": self._installed.no_new_privileges,
            "ports": sorted(set(self._ports)),
            "taken": seen.get("taken", led),
            "quic_refused": seen.get("quic", 0),
            "passed": passed[:_MOST_PASSED],
            "unseen": {redact(name): count for name, count in seen.get("unseen", {}).items()},
            "rings": {redact(name): count for name, count in seen.get("rings", {}).items()},
            "left": [
                {"host": redact(host), "port": port, "process": redact(name)}
                for host, port, name in seen.get("left", ())
            ],
        }

    def close(self) -> None:
        """Take no more connections."""
        if self._origins is not None:
            self._origins.close()
        for sock in self._listening:
            sock.close()
        if self._installed.listener is not None and not self._lost:
            with contextlib.suppress(OSError):
                os.close(self._installed.listener)


def _by_process(passed: Any) -> dict[Any, int]:
    """Count them by all but the number of the process."""
    rows: dict[Any, int] = {}
    for row, count in passed.items():
        plain = row._replace(pid=0)
        rows[plain] = rows.get(plain, 0) + count
    return rows


def _listen() -> list[socket.socket]:
    """Open where the supervisor leads connections to: of IPv4, and of IPv6 where that is."""
    made = [socket.create_server(("127.0.0.1", 0), backlog=512)]
    with contextlib.suppress(OSError):
        made.append(socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=512))
    return made
