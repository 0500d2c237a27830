"""`playhead doctor`: run every installed client through a temporary proxy, outside and inside the sandbox.

The proxy plays a tape on which each client's request stands, so that nothing leaves. Each client is run twice:

1. outside, with the variables that `record` sets. It asks for a port of loopback, where an origin waits that has a
   certificate of ours: who goes past the proxy is seen there;
2. in the sandbox, with the preloads of a replay and no word of a proxy.

For whom the variables are not enough is run once more outside, with the preloads. All clients of a turn run side by
side, in one sandbox; the turns one after the other.
"""

import asyncio
import contextlib
import itertools
import json
import math
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import click

from ... import __path__ as package_path
from ...config import Config, Control, IgnoreRule, Listen, Mode, parse_match
from ..determinism.preload_bundle import FULL, Basis, PreloadBundle
from ..engine.connection_observer import ConnectionObserver
from ..engine.event_loop import new_event_loop
from ..errors import EngineError
from ..operations.tape_files import import_jsonl
from ..progress import ProgressBar
from ..run.runtime import Runtime
from ..standard_streams import print_status
from ..trust.ca import open_ca
from ..trust.environment import environment, proxy_url
from . import diagnose as doctor
from .agents import Agent, find_agents, render_agents
from .loopback_origins import Origins
from .probes import Probe, probes
from .run_probe import Outcome, ProbeRun, count_ended, load_outcomes, run_probes, save_probe_runs

_TAPE = "doctor"
_BACK_S = 3600
"""How far the clock of the tape is behind: far enough to be told apart, near enough for certificates."""
_LOOK_S = 0.2
_BOUND_S = 7.5
"""Time for all clients, unless all are asked for; starting and ending take another second."""
_SHARE = 0.55
"""Of it that those outside the sandbox have."""
_SPARE_S = 30.0
_DOMAIN = "doctor.playhead.test"
_DRIVE = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    "from playhead.proxy.doctor.run_probe import main; sys.exit(main(sys.argv[2:]))"
)
"""Run with the folder that the package stands in, then the arguments of `run_probe.main`."""


def run_doctor(as_json: bool, *, all_clients: bool = False) -> int:
    """Try the clients and print what was found; 1 where one is proxied and does not work.

    all_clients: also those that take long, without a bound for all of them.
    """
    with (
        tempfile.TemporaryDirectory(prefix="playhead-doctor-") as folder,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        print_status("playhead: trying the clients of this machine")
        work = examine(Path(folder), time.time_ns() / 1e9, bounded=not all_clients)
        findings, agents = runner.run(_look(work))
    if as_json:
        click.echo(doctor.render_json(findings, agents))
    else:
        click.echo(f"{doctor.render(findings)}\n{render_agents(agents)}".rstrip("\n"))
    # A client that goes past proxies by its own nature is a finding, not a failure: aiohttp's default session
    # does so on every machine. One that reaches us and does not trust us, whatever we do, is ours to mend.
    bad = (doctor.Status.UNTRUSTED, doctor.Status.FAILED)
    mended = doctor.Answer.YES
    failed = [f for f in findings if f.status in bad and f.preloaded.answer is not mended]
    return 1 if failed else 0


async def _look[Found](work: Awaitable[Found]) -> tuple[Found, list[Agent]]:
    """Look for agents, and try the clients."""
    async with asyncio.TaskGroup() as group:
        finding = group.create_task(find_agents(os.environ))
        found = await work
    return found, finding.result()


async def examine(
    folder: Path,
    real_s: float,
    only: Sequence[str] | None = None,
    *,
    parallel: int = 4,
    bounded: bool = False,
) -> tuple[doctor.Finding, ...]:
    """Try the clients, or those of these names; findings stand in the order of the probes.

    folder: for a store that is thrown away.
    real_s: the time that it is, in seconds since 1970.
    parallel: how many run at once.
    bounded: leave out those that take long, and what is not tried in some seconds.
    Raises: EngineError, where there can be no proxy.
    """
    until = time.monotonic() + _BOUND_S if bounded else math.inf
    config = Config(
        mode=Mode.PLAYBACK,
        store=folder / "store",
        listen=Listen("127.0.0.1", 0),
        control=Control(listen=None),
        ignore=(IgnoreRule(parse_match("https://*"), header=("accept",)),),
    )
    ca = open_ca(config.store, config.public_ca_dir, upstream_ca=config.upstream_ca)
    clocks = doctor.Clocks(real_s - _BACK_S, real_s)
    async with contextlib.AsyncExitStack() as stack:
        origins = await stack.enter_async_context(Origins(ca, folder))
        unsandboxed, again, sandboxed = [
            [probe for probe in turn if only is None or probe.name in only]
            for turn in (
                await _near("outside", origins),
                await _near("again", origins),
                _far("inside"),
            )
        ]
        await asyncio.to_thread(
            _make_tape, config, folder, (*unsandboxed, *again, *sandboxed), clocks
        )
        runtime = await stack.enter_async_context(Runtime(config, sole=_TAPE))
        here = [
            number
            for number, probe in enumerate(unsandboxed)
            if probe.installed and not (bounded and probe.slow)
        ]
        bar = stack.enter_context(ProgressBar("trying clients"))
        trial = _Trial(
            runtime, origins, folder, parallel, lambda done: bar(done, 2 * len(here)), until
        )
        address = await runtime.listen(config.listen)
        url = proxy_url(address.host, address.port)
        variables = environment(os.environ, proxy_url=url, public_dir=config.public_ca_dir)
        preload_bundle = stack.enter_context(
            contextlib.closing(await asyncio.to_thread(_preload_bundle, config, clocks))
        )
        clocks = replace(clocks, no_library=preload_bundle.no_library)
        chosen = {number: unsandboxed[number] for number in here}
        first = await trial.unsandboxed(chosen, variables, share=_SHARE)
        wanting = {number: again[number] for number in here if doctor.needs_more(first[number])}
        more = await trial.unsandboxed(wanting, preload_bundle.variables(variables))
        no_sandbox = ""
        try:
            within = await trial.sandboxed(
                {
                    number: sandboxed[number]
                    for number in sorted(here, key=lambda one: one not in wanting)
                },
                preload_bundle,
            )
        except EngineError as error:
            no_sandbox = str(error)
            rest = {number: again[number] for number in here if number not in wanting}
            within = more | await trial.unsandboxed(rest, preload_bundle.variables(variables))
    return tuple(
        doctor.untried(probe)
        if probe.installed and number not in first
        else doctor.diagnose(
            probe,
            first.get(number),
            within.get(number),
            clocks,
            again=more.get(number),
            no_sandbox=no_sandbox,
        )
        for number, probe in enumerate(unsandboxed)
    )


def _far(turn: str) -> tuple[Probe, ...]:
    """Make probes that ask for names which no resolver knows: the proxy is asked for them, or the sandbox."""

    def address(number: int) -> str:
        return f"https://c{number}.{turn}.{_DOMAIN}:443"

    return probes(address, address)


async def _near(turn: str, origins: Origins) -> tuple[Probe, ...]:
    """Make probes that ask for an origin on loopback, where they can."""
    far = _far(turn)
    opened = [await origins.open() for _ in far]
    return probes(opened.__getitem__, lambda number: f"https://c{number}.{turn}.{_DOMAIN}:443")


def _preload_bundle(config: Config, clocks: doctor.Clocks) -> PreloadBundle:
    """Make what a replay of a recording without clock reads is made with: every clock read returns its beginning."""
    start_ns = int(clocks.virtual_s * 1e9)
    basis = Basis(FULL, secrets.token_bytes(32), "1", start_ns, libc=True)
    return PreloadBundle(basis, recorded=True, library=config.libc_preload == "auto")


def _probe_run(probe: Probe, variables: Mapping[str, str], number: int) -> ProbeRun:
    environ = {**variables, "TZ": "UTC", "PLAYHEAD_LANE": str(number), **probe.variables}
    return ProbeRun(probe.command, environ, dict(probe.files), probe.left, probe.timeout_s)


def _make_tape(
    config: Config, folder: Path, all_probes: Sequence[Probe], clocks: doctor.Clocks
) -> None:
    """Write a recording in which each probe has its answer."""
    lines = folder / "tape.jsonl"
    started_ns = int(clocks.virtual_s * 1e9)
    with lines.open("w") as file:
        for probe, fields in itertools.product(all_probes, ({}, {"accept": "*/*"})):
            # Whoever says what it accepts differs from who does not, whatever that is.
            row = {
                "started_ns": started_ns,
                "request": {"method": "GET", "url": probe.url, "headers": fields},
                "response": {
                    "status": 200,
                    "headers": {"content-type": "application/json"},
                    "body": '{"ok": true}',
                },
            }
            file.write(json.dumps(row) + "\n")
    import_jsonl(config, lines, _TAPE)


class _Trial:
    """Runs probes, and sees who comes where. Probes and what came of them go by their number."""

    def __init__(
        self,
        runtime: Runtime,
        origins: Origins,
        folder: Path,
        parallel: int,
        show: Callable[[int], None],
        until: float = math.inf,
    ) -> None:
        """Begin to look.

        show: called with how many have ended.
        until: monotonic time at which nothing is tried any more.
        """
        self._until = until
        self._runtime = runtime
        self._origins = origins
        self._folder = folder
        self._parallel = parallel
        self._show = show
        self._ended = 0
        self._observer = ConnectionObserver()
        runtime.engine.watch(self._observer)

    async def unsandboxed(
        self, chosen: Mapping[int, Probe], variables: Mapping[str, str], *, share: float = 1.0
    ) -> dict[int, doctor.ProbeResult]:
        """Run probes with these variables.

        share: of the time that is left.
        """
        probe_runs = [_probe_run(probe, variables, number) for number, probe in chosen.items()]
        outcomes = await run_probes(
            probe_runs, parallel=self._parallel, done=self._count, within_s=self._left_s() * share
        )
        return self._results(chosen, outcomes)

    def _left_s(self) -> float:
        return self._until - time.monotonic()

    def _count(self) -> None:
        self._ended += 1
        self._show(self._ended)

    async def sandboxed(
        self, chosen: Mapping[int, Probe], preload_bundle: PreloadBundle
    ) -> dict[int, doctor.ProbeResult]:
        """Run probes in a sandbox, with nothing that tells of a proxy.

        Raises: EngineError, where there can be none.
        """
        from ..run.sandboxed import OwnNamespaces, SandboxedRun

        config = self._runtime.config
        variables = environment(os.environ, proxy_url=None, public_dir=config.public_ca_dir)
        given = preload_bundle.variables(variables)
        source, target = self._folder / "tries.json", self._folder / "outcomes.json"
        save_probe_runs(
            [_probe_run(probe, given, number) for number, probe in chosen.items()], source
        )
        bounds = str(self._parallel), str(self._left_s())
        words = [str(Path(package_path[0]).parent), str(source), str(target), *bounds]
        command = [sys.executable, "-E", "-P", "-s", "-c", _DRIVE, *words]
        place = OwnNamespaces(self._runtime, config, command, variables, strict=False)
        sandboxed = SandboxedRun(self._runtime, config, place)
        longest_s = sum(probe.timeout_s for probe in chosen.values()) + _SPARE_S
        try:
            async with sandboxed, asyncio.timeout(longest_s):
                looking = asyncio.get_running_loop().create_task(self._watch(target))
                try:
                    await sandboxed.sandbox.start()
                    await sandboxed.sandbox.wait()
                finally:
                    looking.cancel()
                    await asyncio.wait([looking])
            return self._results(chosen, load_outcomes(target))
        except (OSError, ValueError) as error:
            raise EngineError(f"the sandbox came to no end: {error}") from error

    async def _watch(self, target: Path) -> None:
        while True:
            self._show(self._ended + await asyncio.to_thread(count_ended, target))
            await asyncio.sleep(_LOOK_S)

    def _results(
        self, chosen: Mapping[int, Probe], outcomes: Sequence[Outcome]
    ) -> dict[int, doctor.ProbeResult]:
        return {
            number: doctor.ProbeResult(outcome, self._seen(probe))
            for (number, probe), outcome in zip(chosen.items(), outcomes, strict=True)
        }

    def _seen(self, probe: Probe) -> doctor.Seen:
        parts = urlsplit(probe.url)
        place = f"{parts.hostname}:{parts.port}"
        return doctor.Seen(
            reached=place in self._observer.reached,
            asked=place in self._observer.asked,
            refused=place in self._observer.refused | self._origins.refused,
            direct=place in self._origins.reached,
            direct_asked=place in self._origins.asked,
        )
