"""`playhead record` and `playhead replay`: a proxy around one command.

The child gets a process group of its own and, where there is a terminal, the terminal; signals sent to us go
on to it; its exit code comes back. However it ends, the run is sealed and its receipt printed.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..config import Config, Listen, Mode
from ..store import RunInfo, RunOpen, RunStatus
from ..tape.events import Event, EventKind
from ..timeline import Receipt, build, exit_code, render_receipt
from .engine.loop import new_event_loop
from .errors import EngineError
from .runtime import Runtime
from .sockets import SocketWatch
from .trust import environment, proxy_url

UNTESTABLE = 125
_PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@dataclass(frozen=True, slots=True)
class Output:
    """Where the receipt goes besides the store."""

    as_json: bool = False
    """Print JSON on stderr instead of text."""
    file: Path | None = None
    """Write the JSON here too."""
    quiet: bool = False


def record(config: Config, run: str, command: Sequence[str], output: Output) -> int:
    """Record a command under a run's name; give the child's exit code.

    Raises: PlayheadError, before the command is started.
    """
    return _launch(replace(config, mode=Mode.RECORD), run, command, output)


def replay(config: Config, run: str, command: Sequence[str], output: Output) -> int:
    """Run a command against a tape; give 0 to 120 of its own, or the code that says what was wrong.

    Raises: PlayheadError, before the command is started.
    """
    return _launch(replace(config, mode=Mode.PLAYBACK), run, command, output)


def _launch(config: Config, run: str, command: Sequence[str], output: Output) -> int:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_run(config, run, command, output))


async def _run(config: Config, run: str, command: Sequence[str], output: Output) -> int:
    runtime = Runtime(config, sole=run)
    async with runtime:
        if config.mode is Mode.PLAYBACK:
            run = _check_tape(runtime, run)
        address = await runtime.listen(Listen("127.0.0.1", 0))
        url = proxy_url(address.host, address.port)
        variables = environment(os.environ, proxy_url=url, public_dir=config.public_ca_dir)
        child = _Child(command, variables)
        child.start()
        watch = SocketWatch(lambda: child.pid)
        watching = config.mode is Mode.PLAYBACK
        if watching:
            watch.start()
        try:
            code = await child.wait()
        finally:
            if watching:
                await asyncio.to_thread(watch.stop)
        session = runtime.sessions.sole_session
        if session is None:
            info = await _empty_run(runtime, config, run)
        else:
            assert session.run is not None
            info = session.run
        _note(runtime, info, {"child_exit": code, "contained": False})
        if watching and watch.seen:
            sockets = [
                {
                    "protocol": seen.protocol,
                    "address": seen.address,
                    "port": seen.port,
                    "process": seen.process,
                    "pid": seen.pid,
                    "count": seen.count,
                }
                for seen in watch.seen
            ]
            event = Event(EventKind.FOREIGN, time.time_ns(), {"sockets": sockets})
            runtime.store.append(info.number, event)
        reason = f"the command ended with {code}"
        if session is None:
            await runtime.store.seal(info, reason=reason, at_ns=time.time_ns())
        else:
            if session.flights:
                print("playhead: waiting for late answers", file=sys.stderr, flush=True)
            runtime.sessions.end(session, reason)
        await runtime.sessions.close(reason)
        receipt = await asyncio.to_thread(build, runtime.store, runtime.store.reload(info))
    show(receipt, output)
    if config.mode is Mode.RECORD:
        return code
    return exit_code(receipt) or code


def _check_tape(runtime: Runtime, run: str) -> str:
    if run == "latest":
        latest = runtime.store.find_latest()
        if latest is None:
            raise EngineError("there is no sealed recording to replay", "record one first")
        return latest.id
    info = runtime.store.get_run(run)
    if info.mode != Mode.RECORD.value:
        raise EngineError(
            f"{run!r} is a playback of {info.parent!r}, not a recording",
            f"replay {info.parent!r} instead",
        )
    if info.status is RunStatus.OPEN:
        raise RunOpen(f"run {run!r} is still being recorded", f"end it with: playhead seal {run}")
    return run


async def _empty_run(runtime: Runtime, config: Config, run: str) -> RunInfo:
    """Make the run that no request opened, so that its receipt says so."""
    parent = runtime.store.find_run(run) if config.mode is Mode.PLAYBACK else None
    return await runtime.store.create_run(
        run, mode=config.mode.value, at_ns=time.time_ns(), parent=parent
    )


def _note(runtime: Runtime, info: RunInfo, data: dict[str, object]) -> None:
    runtime.store.append(info.number, Event(EventKind.NOTED, time.time_ns(), data))


def show(receipt: Receipt, output: Output) -> None:
    """Print a receipt on stderr, so that the child's stdout stays its own, and write it where asked."""
    document = json.dumps(receipt.to_json(), indent=2)
    if output.file is not None:
        try:
            output.file.write_text(document + "\n")
        except OSError as error:
            print(f"playhead: cannot write the receipt to {output.file}: {error}", file=sys.stderr)
    if output.quiet:
        return
    print(document if output.as_json else render_receipt(receipt), file=sys.stderr, flush=True)


class _Child:
    """The command, in a process group of its own."""

    def __init__(self, command: Sequence[str], variables: dict[str, str]) -> None:
        self._command = command
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        try:
            # Not the loop's own: uvloop's cannot set a process group without a preexec function.
            self._process = subprocess.Popen(self._command, env=self._variables, process_group=0)
        except (OSError, ValueError) as error:
            text = getattr(error, "strerror", None) or str(error)
            raise EngineError(
                f"cannot start {self._command[0]!r}: {text}",
                "the command stands after --, as in: playhead record -- python agent.py",
            ) from error

    async def wait(self) -> int:
        """Wait for the command's end, passing signals on; give its exit code as a shell would."""
        process = self._process
        assert process is not None
        loop = asyncio.get_running_loop()
        with _terminal_for(process.pid):
            for number in _PASSED_ON:
                loop.add_signal_handler(number, self._pass_on, number)
            try:
                code = await asyncio.to_thread(process.wait)
            finally:
                for number in _PASSED_ON:
                    loop.remove_signal_handler(number)
        # A second Ctrl-C while the run is being sealed is not to cut the sealing short.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: None)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


@contextlib.contextmanager
def _terminal_for(pgid: int) -> Iterator[None]:
    """Let the child's group have the terminal, so that Ctrl-C and reading from it work as without us."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        yield
        return
    try:
        ours = os.tcgetpgrp(descriptor)
        foreground = ours == os.getpgrp()
        # Writing to the terminal's settings from the background would stop us.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            if foreground:
                with contextlib.suppress(OSError):
                    os.tcsetpgrp(descriptor, pgid)
            yield
        finally:
            if foreground:
                with contextlib.suppress(OSError):
                    os.tcsetpgrp(descriptor, ours)
            signal.signal(signal.SIGTTOU, before)
    except OSError:
        yield
    finally:
        os.close(descriptor)
