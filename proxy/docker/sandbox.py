"""The containers of one command: `playhead` starts them, waits for them and removes them."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ...config import Config
from ..determinism import PreloadBundle
from ..errors import EngineError
from ..open_file_limit import usual_limit
from ..sandbox.filesystem.masking import RESOLVER
from ..sandbox.filesystem.protection import find_depended
from ..sandbox.network.listeners import Service
from ..sandbox.sandbox import SandboxListeners, SocketUse
from .container_network import Link
from .container_spec import (
    HARD,
    agent_flags,
    agent_variables,
    asked_variables,
    mounts,
    share_certificates,
    variable_flags,
)
from .docker_cli import Docker, Sweep, variables_of
from .volumes import Depended, find_reached, guard

IMAGE_VARIABLE = "PLAYHEAD_IMAGE"
_IMAGE = "playhead"
_HOLDER_S = 60.0
_LINK = "/link"
_NEVER = "0001-01-01"
"""How Docker writes that something never was."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asked for."""

    image: str
    """Of the agent."""
    variables: tuple[str, ...] = ()
    """NAME=VALUE or NAME."""
    volumes: tuple[str, ...] = ()
    """As Docker's own flag takes them."""


class DockerPlace:
    """Runs a command in a container of an image. See `launcher.ContainerHost`."""

    def __init__(self, wanted: Wanted) -> None:
        """Prepare for one command."""
        self._wanted = wanted

    def place(
        self,
        config: Config,
        command: Sequence[str],
        preload_bundle: PreloadBundle | None,
        url: str,
        files: Sequence[Path] = (),
        archives: Sequence[Path] = (),
    ) -> "_Containers":
        """Give the place for one command.

        files: those of the configuration.
        archives: folders of archived runs.
        """
        let_in = [os.path.realpath(rule.socket) for rule in config.live if rule.socket]
        depended = Depended(
            hidden=tuple(map(os.path.realpath, (config.store, *filter(os.path.isdir, archives)))),
            locked=find_depended(files),
            let_in=tuple(let_in),
        )

        def make(services: Sequence[Service]) -> DockerSandbox:
            public = config.public_ca_dir
            return DockerSandbox(
                self._wanted,
                command,
                url=url,
                public=public,
                preload_bundle=preload_bundle,
                services=services,
                depended=depended,
            )

        return _Containers(make, self._wanted.volumes, let_in)


class _Containers:
    """See `contained.Place`."""

    def __init__(
        self,
        make: "Callable[[Sequence[Service]], DockerSandbox]",
        volumes: Sequence[str],
        let_in: Sequence[str],
    ) -> None:
        self._make = make
        self._volumes = volumes
        self._let_in = let_in
        self.summary: dict[str, Any] = {
            "strict": False,
            "files": None,
            "image": "",
            "copied": [],
            "pipes_unsearched": [],
            "pipes_open": [],
        }

    def make_sandbox(self, services: Sequence[Service]) -> "DockerSandbox":
        sandbox = self._make(services)
        self.summary["image"] = sandbox.image
        return sandbox

    def look_for_pipes(self, _: object) -> tuple[list[str], list[str]]:
        # Those that a program has open are closed; nobody looked for others.
        return [], [volume.partition(":")[0] for volume in self._volumes]

    def reachable_sockets(self) -> list[str]:
        # Of the machine's files it sees none but ours, and what somebody mounted; there without sockets of its own.
        return find_reached(self._volumes, self._let_in) if self._let_in else []


class DockerSandbox:
    """One container for the network and one for the command. Open it, take its listeners, start the command, wait."""

    landlocked = False

    def __init__(
        self,
        wanted: Wanted,
        command: Sequence[str],
        *,
        url: str,
        public: Path,
        preload_bundle: PreloadBundle | None,
        services: Sequence[Service] = (),
        depended: Depended = Depended(),  # noqa: B008  # frozen
    ) -> None:
        """Prepare; nothing is started yet.

        url: of the proxy, inside.
        depended: what the agent must not change in a folder of this machine.
        public: folder of the CA's public files.
        Raises: EngineError, where there is no engine, or not the images.
        """
        self.stopped_by = 0
        self.sole_process = ""
        """Docker does not tell."""
        self.counters: dict[str, int] = {}
        self.sockets = SocketUse()
        self.read_only: list[str] = []
        guarded = guard(wanted.volumes, depended)
        self._volumes = [word for volume in wanted.volumes for word in ("--volume", volume)]
        self._volumes += guarded
        self._sockets = not wanted.volumes or bool(depended.let_in)
        self.sockets.watched = not wanted.volumes or not self._sockets
        self._docker = docker = Docker()
        self._wanted = wanted
        self._command = list(command)
        self._url = url
        self._preload_bundle = preload_bundle
        holder_image = os.environ.get(IMAGE_VARIABLE) or _IMAGE
        self._image = docker.find_image(
            wanted.image, f"build it, or fetch it with: docker pull {wanted.image}"
        )
        open_listeners = docker.find_image(
            holder_image,
            f"build it in Playhead's repository with: docker build -t {_IMAGE} . (or name another in {IMAGE_VARIABLE})",
        )
        # Containers are made of these very images: a name may be another's by then, or be fetched.
        self._holder_id = str(open_listeners["Id"])
        token = secrets.token_hex(6)
        self._network, self._agent = f"playhead-{token}-network", f"playhead-{token}-agent"
        self._folder = Path(tempfile.mkdtemp(prefix="playhead-docker-")).resolve()
        (self._folder / "link").mkdir()
        (self._folder / "link").chmod(0o755)
        self._certificates = share_certificates(public, self._folder / "ca")
        self._link = Link(self._folder / "link", services)
        self._sweep: Sweep | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._signals: list[subprocess.Popen[bytes]] = []

    @property
    def left_behind(self) -> list[str]:
        """None: nobody looks inside of the container."""
        return []

    async def open(self) -> SandboxListeners:
        """Make the network; the command does not run yet. Raises: EngineError."""
        self._link.listen()
        self._sweep = Sweep(self._folder, [self._agent, self._network])
        await asyncio.to_thread(self._docker.run, *self._network_words())
        try:
            return await asyncio.wait_for(self._link.open(), _HOLDER_S)
        except TimeoutError as error:
            said = await asyncio.to_thread(self._logs)
            raise EngineError(
                f"the container {self._holder_id!r} does not find us: {said}",
                "the engine has to be on this very machine; where it is in a virtual machine use compose.yaml",
            ) from error

    @property
    def _terminal(self) -> bool:
        return sys.stdin.isatty() and sys.stdout.isatty()

    @property
    def image(self) -> str:
        """Of the agent: its name, and what it really was."""
        return f"{self._wanted.image} {self._image['Id']}"

    def _network_words(self) -> list[str]:
        link = f'type=bind,"source={self._folder / "link"}",target={_LINK},readonly'
        return [
            *("run", "--detach", "--init", "--name", self._network),
            *("--network", "none", "--hostname", socket.gethostname()),
            *("--dns", RESOLVER, "--dns-search", "."),
            *("--user", "0:0", "--read-only", *HARD, *_ipv6_flags()),
            *("--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW"),
            *("--no-healthcheck", "--mount", link, self._holder_id, "inlets", "--link", _LINK),
        ]

    def _logs(self) -> str:
        try:
            return self._docker.run("logs", self._network).splitlines()[-1]
        except (EngineError, IndexError):
            return "it printed nothing"

    async def start(self) -> int | None:
        """Run the command; give the process id of what needs the terminal, where there is one.

        Raises: EngineError, where it cannot be started.
        """
        await asyncio.to_thread(self._create)
        self._process = self._spawn()
        return self._process.pid if self._terminal else None

    def _spawn(self) -> subprocess.Popen[bytes]:
        words = [self._docker.program, "start", "--attach", "--interactive", self._agent]
        # Without its output a terminal is of no use, and from the background nobody may read from it.
        idle = subprocess.DEVNULL if sys.stdin.isatty() and not self._terminal else None
        with usual_limit():
            return subprocess.Popen(words, stdin=idle, process_group=0)

    def _create(self) -> None:
        if self._preload_bundle is not None:
            self._preload_bundle.serve_container()
        variables = agent_variables(
            variables_of(self._image),
            asked_variables(self._wanted.variables),
            url=self._url,
            certificates=self._certificates,
            preload_bundle=self._preload_bundle,
        )
        terminal = ["--tty"] if self._terminal else []
        program, *arguments = self._command
        file = self._folder / "environment"
        self._docker.run(
            *("create", "--name", self._agent, "--interactive", *terminal),
            *agent_flags(self._network, sockets=self._sockets),
            *mounts(self._certificates, self._preload_bundle),
            *self._volumes,
            *variable_flags(variables, os.environ, file),
            *("--no-healthcheck", "--entrypoint", program, str(self._image["Id"]), *arguments),
        )
        file.unlink()
        if not any(self._docker.has_file(self._agent, path) for path in self._places(program)):
            raise EngineError(
                f"cannot start {program!r}: image {self._wanted.image!r} has no such program",
                "name a program of the image, by its name in the image's PATH or its path there",
            )

    def _places(self, program: str) -> list[str]:
        settings = self._image.get("Config") or {}
        if "/" in program:
            return [str(PurePosixPath(settings.get("WorkingDir") or "/", program))]
        path = (variables_of(self._image) | asked_variables(self._wanted.variables)).get(
            "PATH"
        ) or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return [f"{folder}/{program}" for folder in path.split(":") if folder]

    async def wait(self) -> int | None:
        """Wait until the command ends, or Docker's command line is stopped; give its exit code or None.

        Raises: EngineError, where it never ran, or nobody knows what it did.
        """
        assert self._process is not None
        _, status = await asyncio.to_thread(os.waitpid, self._process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            self.stopped_by = os.WSTOPSIG(status)
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        state = await asyncio.to_thread(self._state)
        if state["StartedAt"].startswith(_NEVER):
            raise EngineError(
                f"cannot start {self._command[0]!r} in image {self._wanted.image!r}: {state['Error']}",
                "try the same with docker run",
            )
        self.counters = await self._link.count()
        return int(state["ExitCode"])

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(
            self._docker.run("inspect", "--format", "{{json .State}}", self._agent)
        )
        if state["Running"]:
            # Docker's command line was killed.
            with contextlib.suppress(EngineError):
                self._docker.run("kill", self._agent)
            self._docker.run("wait", self._agent)
            return self._state()
        return state

    def signal(self, number: int) -> None:
        """Send the command a signal; does not wait until it is there."""
        # Docker's command line would pass it on too, and end itself before the command does.
        self._signals.append(self._docker.begin("kill", "--signal", str(number), self._agent))

    def close(self) -> None:
        """End whatever is left of it."""
        self._link.close()
        if self._sweep is not None:
            self._sweep.finish()
        for process in self._signals:
            process.wait()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ipv6_flags() -> list[str]:
    """Have IPv6 in the network where the kernel has it: Docker turns it off, and attempts to use it would not be seen."""
    if not Path("/proc/sys/net/ipv6").exists():
        return []
    places = ("all", "default", "lo")
    return [
        word for place in places for word in ("--sysctl", f"net.ipv6.conf.{place}.disable_ipv6=0")
    ]
