"""The sidecar: an agent in a container of a compose file, next to the proxy's container.

Two folders are shared. In `link` the container that holds the agent's network finds the proxy; the agent does not see
it. In `agent` the agent finds what it needs, and leaves its exit code:

    environment   for a shell to read: exports of all variables
    ca/           certificates
    preloads/     for its interpreters
    alive         a pipe that its shell holds open: it has ended when nobody does
    code          what its shell writes in the end; whatever an agent wrote there before is overwritten
"""

import asyncio
import os
import select
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...config import Config, Mode
from ..determinism import PreloadBundle
from ..errors import EngineError
from ..sandbox.network.listeners import Service
from ..sandbox.sandbox import SandboxListeners, SocketUse
from ..trust.env_files import Form, render_env_file
from ..trust.environment import removed
from .container_network import Link
from .container_spec import PRELOADS, agent_variables, share_certificates
from .network_interfaces import leading_out

READY = Path("/tmp/playhead-ready")
"""Is there once the agent may start; in a folder of the proxy's container alone."""
_HOLDER_S = 60.0
_AGENT_S = 60.0
"""Longest wait for an agent's shell, from when it may start."""
_LOOK_S = 0.05
_CODES = frozenset(map(str, range(256)))
"""What a shell may have written as its agent's exit code."""
_FIRST = {"PYTHONPATH": ":"}
"""Ours come before what the image has."""
_LAST = {"NODE_OPTIONS": " ", "BUN_OPTIONS": " ", "JAVA_TOOL_OPTIONS": " "}


class Sidecar:
    """Waits for an agent in another container. See `launcher.ContainerHost`."""

    def __init__(self, link: Path, agent: Path) -> None:
        """Prepare for one agent."""
        self._link = link
        self._agent = agent

    def place(
        self,
        config: Config,
        command: Sequence[str],
        preload_bundle: PreloadBundle | None,
        url: str,
        files: Sequence[Path] = (),
        archives: Sequence[Path] = (),
    ) -> "_SidecarPlace":
        """Give the place for one agent, whose container sees neither the configuration's files nor archives.

        Raises: EngineError, where something has to go out and nothing can.
        """
        _require_way_out(config)
        return _SidecarPlace(self._link, self._agent, config.public_ca_dir, preload_bundle, url)


def _require_way_out(config: Config) -> None:
    if leading_out():
        return
    if config.mode is Mode.RECORD:
        raise EngineError(
            "a recording needs a network, and this container is on network `none`",
            "use the profile `record` of compose.yaml",
        )
    if config.live or config.playback.inference or config.playback.reads:
        raise EngineError(
            "there are live rules, but this container is on network `none`",
            "use the profile `live` of compose.yaml, where Playhead alone has a way out, or remove the rules",
        )


class _SidecarPlace:
    """See `contained.Place`."""

    def __init__(
        self, link: Path, agent: Path, public: Path, preload_bundle: PreloadBundle | None, url: str
    ) -> None:
        self.summary: dict[str, Any] = {
            "strict": False,
            "files": None,
            "image": "another container",
            "copied": [],
            "pipes_unsearched": [],
            "pipes_open": [],
        }
        self._given = (link, agent, public, preload_bundle, url)

    def make_sandbox(self, services: Sequence[Service]) -> "SidecarSandbox":
        return SidecarSandbox(*self._given, services)

    def look_for_pipes(self, _: object) -> tuple[list[str], list[str]]:
        return [], []

    def reachable_sockets(self) -> tuple[str, ...]:
        return ()


class SidecarSandbox:
    """The network of an agent that runs in a container of somebody else's."""

    landlocked = False

    def __init__(
        self,
        link: Path,
        agent: Path,
        public: Path,
        preload_bundle: PreloadBundle | None,
        url: str,
        services: Sequence[Service],
    ) -> None:
        """Prepare; the parameters are those of `sandbox.DockerSandbox`."""
        self.stopped_by = 0
        self.sole_process = ""
        self.counters: dict[str, int] = {}
        self.sockets = SocketUse()
        self.read_only: list[str] = []
        self._link = Link(link, services)
        self._agent = agent
        self._public = public
        self._preload_bundle = preload_bundle
        self._url = url
        self._alive = -1
        self._ended_by = 0
        self._asked_to_end = threading.Event()

    @property
    def left_behind(self) -> list[str]:
        """None: nobody looks inside of the container."""
        return []

    async def open(self) -> SandboxListeners:
        """Wait for the network. Raises: EngineError."""
        self._link.listen()
        try:
            return await asyncio.wait_for(self._link.open(), _HOLDER_S)
        except TimeoutError as error:
            raise EngineError(
                f"no container with the agent's network came within {_HOLDER_S:.0f} s",
                "start one that runs `playhead inlets` with the same folder, as compose.yaml does",
            ) from error

    async def start(self) -> None:
        """Lay out what the agent needs, and let it start. Raises: EngineError."""
        try:
            await asyncio.to_thread(self._lay_out)
        except OSError as error:
            raise EngineError(
                f"cannot write into {str(self._agent)!r}: {error.strerror}",
                "mount a folder there that this user can write to",
            ) from error

    def _lay_out(self) -> None:
        # What another agent was given before.
        for path in self._agent.iterdir():
            if self._preload_bundle is not None and path == self._preload_bundle.folder.parent:
                continue
            if path.is_dir():
                # But for what that one put away there as its own: it is in nobody's way.
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        certificates = share_certificates(self._public, self._agent / "ca")
        if self._preload_bundle is not None:
            self._preload_bundle.serve_container()
            self._preload_bundle.folder.parent.chmod(0o755)
        variables = agent_variables(
            {}, {}, url=self._url, certificates=certificates, preload_bundle=self._preload_bundle
        )
        preloads = self._agent / "preloads"
        shutil.copytree(PRELOADS, preloads, ignore=shutil.ignore_patterns("__pycache__"))
        text = render_env_file({}, removed({}), Form.SH)
        text += "".join(_export(name, value) for name, value in variables.items())
        (self._agent / "environment").write_text(text.replace(str(PRELOADS), str(preloads)))
        os.mkfifo(self._agent / "alive")
        (self._agent / "alive").chmod(0o666)
        self._alive = os.open(self._agent / "alive", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        (self._agent / "code").touch()
        (self._agent / "code").chmod(0o666)
        READY.touch()

    async def wait(self) -> int:
        """Wait until the agent's shell has ended, or we are told to end; give its exit code as a shell would.

        Raises: EngineError.
        """
        code = await asyncio.to_thread(self._wait_for_end)
        self.counters = await self._link.count()
        return int(code) if code in _CODES else 128 + (self._ended_by or signal.SIGKILL)

    def _wait_for_end(self) -> str:
        """Give what the agent's shell has written, once that is gone or we are to end; nothing where it has not.

        Raises: EngineError, where no shell comes.
        """
        deadline = time.monotonic() + _AGENT_S
        while not self._shell_has_come() and not self._asked_to_end.wait(_LOOK_S):
            if time.monotonic() > deadline:
                raise EngineError(
                    f"no agent came within {_AGENT_S:.0f} s: no shell opened {str(self._agent / 'alive')!r}",
                    "its image needs /bin/sh; without one use `--sandbox docker`, outside of compose.yaml",
                )
        while not self._shell_is_gone() and not self._asked_to_end.wait(_LOOK_S):
            pass
        # Whoever tells us to end has ended the agent before.
        return self._read_code()

    def _shell_has_come(self) -> bool:
        """Say whether a process holds the pipe, or did."""
        try:
            return bool(os.read(self._alive, 1)) or self._shell_is_gone()
        except BlockingIOError:
            return True

    def _shell_is_gone(self) -> bool:
        """Say whether a process held the pipe and none does now."""
        looking = select.poll()
        looking.register(self._alive, 0)
        return bool(looking.poll(0))

    def _read_code(self) -> str:
        """Give what the agent's shell has written, once that is a whole line."""
        try:
            with open(self._agent / "code", errors="replace") as file:
                line = file.readline(16)
        except OSError:
            return ""
        return line.strip() if line.endswith("\n") else ""

    def signal(self, number: int) -> None:
        """End; the agent is for others to signal."""
        self._ended_by = number
        self._asked_to_end.set()

    def close(self) -> None:
        """Let the network go. Whatever we are told from now on: we end, and with our own code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # First from the loop, which would put the default in its place when it is closed.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        READY.unlink(missing_ok=True)
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        self._link.close()


def _export(name: str, value: str) -> str:
    """Write a line for a shell, which keeps what its image has of this variable."""
    text = shlex.quote(value)
    if name in _FIRST:
        text += f'"${{{name}:+{_FIRST[name]}${name}}}"'
    elif name in _LAST:
        text = f'"${{{name}:+${name}{_LAST[name]}}}"' + text
    return f"export {name}={text}\n"
