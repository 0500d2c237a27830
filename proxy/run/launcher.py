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
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote

from ...addons.run.lifecycle.held_at_breakpoints import Breaks, HeldAtBreak
from ...addons.run.run_state import OpenRun
from ...addons.stop import stop_run
from ...config import Config, Control, Listen, Mode, OnFull
from ...config.profiles.command_programs import find_fitting
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreUnwritable
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...tape.policy.breakpoints import Breakpoint
from ...tape.records.events import Event, EventKind
from ...tape.redaction.redactor import Redactor
from ...tape.shell_words import shell_word
from ...timeline import Receipt, build, exit_code, render_receipt
from ...timeline.lookup.crashed_runs import find_crashed, find_first
from ...timeline.lookup.missing_exchange_error import no_exchange
from ...timeline.receipts.command.command_end import find_files
from ...timeline.receipts.render_text import explain_exit
from ..capture import KINDS
from ..control.address import token_path
from ..determinism import PreloadBundle, events, keeping, lacking
from ..engine.event_loop import new_event_loop
from ..errors import EngineError
from ..open_file_limit import usual_limit
from ..operations.find_tape import (
    choose_recording,
    say_name_was_taken,
    say_tape_is_empty,
    say_which_is_played,
)
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..processes.client_processes import SocketWatch
from ..processes.command_listening_ports import MachinePorts
from ..processes.disable_aslr import fixed_addresses
from ..processes.proc import Process, find_process
from ..processes.unstartable_command import explain_start
from ..progress import ProgressBar
from ..sandbox.filesystem.break_hard_links import find_second_names, use_own_inodes
from ..sandbox.filesystem.named_pipes import NOTHING, Found, Search
from ..sandbox.filesystem.protection import make_loaded_folders, restrict_imports
from ..standard_streams import print_status
from ..trust.environment import environment, proxy_url
from ..trust.receipt_file import ReceiptFile
from ..trust.receipt_signature import sign
from ..trust.redaction_and_receipt_keys import open_receipt_key
from .archive_changes import ArchivedFiles, find_archives
from .outputs import Stdout, hide_files
from .replace_recording import find_replaced, remove_replaced, require_startable
from .runtime import Runtime
from .tampering import MOST_TOLD, Baseline, named_files
from .work_folder import AnyFolder, WorkFolder

if TYPE_CHECKING:
    from ..capture.prefork import Prefork
    from .early import Early
    from .record_captured import CapturedProcess
    from .sandboxed import AnySandbox, Place, SandboxedRun
    from .tape_of_same_task import TaskWatch

_OWN = 120
"""Highest code of a replayed command's own."""
_PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_STOPPED_AT_TERMINAL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


@dataclass(frozen=True, slots=True)
class Output:
    """Where the receipt goes besides the store."""

    as_json: bool = False
    """Print JSON on stderr instead of text."""
    file: Path | None = None
    """Write the JSON here too."""
    quiet: bool = False


class ContainerHost(Protocol):
    """What runs commands in another place than on this machine: in containers."""

    def place(
        self,
        config: Config,
        command: Sequence[str],
        preload_bundle: PreloadBundle | None,
        url: str,
        files: Sequence[Path] = (),
        archives: Sequence[Path] = (),
    ) -> "Place":
        """Give the place for one command, which finds the proxy at this address.

        files: those of the configuration.
        archives: folders of archived runs, there or not.
        Raises: EngineError.
        """


def record(
    config: Config,
    run: str,
    command: Sequence[str],
    output: Output,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
    early: "Early | None" = None,
    prefork: "Prefork | None" = None,
    replaces: bool = False,
) -> int:
    """Record a command under a run's name; give the child's exit code.

    config_file: where the configuration stands, or would.
    early: what was begun for it already; whoever began it closes it.
    prefork: the same, for the capture of its connections; without it there is none.
    replaces: whether the recording of that name is deleted first.
    Raises: PlayheadError, before the command is started.
    """
    wanted = _Wanted(
        run,
        command,
        output,
        container_host,
        config_file,
        prefork=prefork,
        early=early,
        replaces=replaces,
    )
    return _launch(replace(for_command(config, command), mode=Mode.RECORD), wanted)


def replay(
    config: Config,
    run: str,
    command: Sequence[str],
    output: Output,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
    early: "Early | None" = None,
    breaking: "Breaking | None" = None,
) -> int:
    """Run a command against a tape; give 0 to 120 of its own, or the code that says what was wrong.

    config_file: where the configuration stands, or would.
    early: what was begun for it already; whoever began it closes it.
    breaking: where it is held.
    Raises: PlayheadError, before the command is started.
    """
    wanted = _Wanted(
        run, command, output, container_host, config_file, early=early, breaking=breaking
    )
    return _launch(replace(for_command(config, command), mode=Mode.PLAYBACK), wanted)


def branch(
    config: Config,
    run: str,
    command: Sequence[str],
    output: Output,
    declared: Branch,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
    breaking: "Breaking | None" = None,
) -> tuple[int, Receipt]:
    """Run a command against a tape up to a point, and from there as is declared; give what `replay` does, and the receipt.

    Raises: PlayheadError, before the command is started.
    """
    made: list[Receipt] = []
    wanted = _Wanted(
        run,
        command,
        output,
        container_host,
        config_file,
        branch=declared,
        told=made.append,
        breaking=breaking,
    )
    code = _launch(replace(for_command(config, command), mode=Mode.PLAYBACK), wanted)
    return code, made[0]


def resume(
    config: Config,
    run: str,
    command: Sequence[str],
    output: Output,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
) -> int:
    """Run a command against what a crashed run has, and on from there live; give what `replay` does.

    run: the one that crashed last, of those that resume each other.
    Raises: PlayheadError, before the command is started.
    """
    wanted = _Wanted(run, command, output, container_host, config_file, resumes=True)
    return _launch(replace(for_command(config, command), mode=Mode.PLAYBACK), wanted)


def replay_like(
    config: Config,
    command: Sequence[str],
    output: Output,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
) -> int:
    """Run a command against the newest good recording of the task that it is given; see `replay`.

    Raises: PlayheadError, before the command is started, or where there is no such recording.
    """
    from .tape_of_same_task import guess_tape

    with open_store(config, readonly=True) as store:
        run = guess_tape(store, command)
    restore_runs(config, run)
    wanted = _Wanted(run, command, output, container_host, config_file, is_guess=True)
    return _launch(replace(for_command(config, command), mode=Mode.PLAYBACK), wanted)


def for_command(config: Config, command: Sequence[str]) -> Config:
    """Give a configuration without the profiles that ask for a process which this command does not run."""
    own, off = find_fitting(command, config.profiles)
    return replace(config, profiles=own, profiles_off=(*config.profiles_off, *off))


class Breaking(NamedTuple):
    """Where a command is held, and who is asked then."""

    points: tuple[Breakpoint, ...]
    stdin: int
    """Descriptor of the standard input on which somebody answers."""


class _Wanted(NamedTuple):
    """What is to be run, and where."""

    run: str
    command: Sequence[str]
    output: Output
    container_host: ContainerHost | None
    config_file: Path | None
    is_guess: bool = False
    """Whether the tape is the likeliest one, and the task is still to be known."""
    prefork: "Prefork | None" = None
    """Processes for the capture of a recording."""
    early: "Early | None" = None
    """What was begun before this module was imported."""
    branch: Branch | None = None
    """What it declares, where it is a branch."""
    told: Callable[[Receipt], None] = lambda _: None
    """Given the receipt."""
    breaking: Breaking | None = None
    """Where it is held, and who is asked then."""
    resumes: bool = False
    """Whether it goes on with a run that crashed."""
    replaces: bool = False
    """Whether the recording of that name is deleted first."""


def start_with_own_files(config: Config, container_host: ContainerHost | None) -> bool:
    """Give Playhead's files no other names, where there is a sandbox that protects them; say whether there is.

    Starts this process again, from the beginning, where there were some: call it before anything is begun.
    Raises: EngineError.
    """
    if container_host is not None or _kind_of_sandbox(config) == "none":
        return False
    with ProgressBar("copying linked files of Playhead's environment, once") as bar:
        use_own_inodes(bar)
    return True


def _launch(config: Config, wanted: _Wanted) -> int:
    if start_with_own_files(config, wanted.container_host):
        make_loaded_folders()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_run(config, wanted))


async def _run(config: Config, wanted: _Wanted) -> int:
    run, command, output, _, config_file, is_guess, *_ = wanted
    # Beside a `serve` with the same file: its ports are taken.
    runtime = Runtime(replace(config, control=own_control(config.control)), sole=run)
    async with contextlib.AsyncExitStack() as stack:
        kept = [
            config.store,
            config.public_ca_dir,
            *find_archives(config),
            *named_files(config),
            *filter(None, [config_file]),
        ]
        file = _open_file(output, stack, kept)
        search = wanted.early.search if wanted.early else _begin_search(config, wanted, stack)
        work = WorkFolder(runtime, config, in_container=wanted.container_host is not None)
        stack.callback(work.close)
        await stack.enter_async_context(runtime)
        seed = open_receipt_key(config.store)
        restrict_imports()
        archived = await asyncio.to_thread(ArchivedFiles, find_archives(config))
        for_clock = asyncio.get_running_loop().create_task(_look(config, config_file, file))
        recorded = run
        if wanted.resumes:
            crashed = find_crashed(runtime.store, run)
            run, recorded = crashed.id, find_first(runtime.store, crashed).id
        elif config.mode is Mode.PLAYBACK:
            run = recorded = _check_tape(runtime, run, is_chosen=wanted.branch is not None)
            _check_breaks(runtime.store, run, wanted.breaking)
        if config.mode is Mode.PLAYBACK:
            runtime.registry.name_sole_run(run)
            runtime.registry.branch, runtime.registry.resumes = wanted.branch, wanted.resumes
        # Clock and folder are known of the recording alone, not of runs that resumed it.
        preload_bundle = _equip(runtime, config, recorded)
        if preload_bundle is not None:
            stack.callback(preload_bundle.close)
        await work.begin(recorded, preload_bundle)
        # What is repeated follows the tape; a divergence is explained by it.
        level = "off" if preload_bundle is None else preload_bundle.basis.level
        runtime.registry.adopt(replace(runtime.registry.config, determinism=level))
        sandboxed, job = await _prepare(
            runtime, config, wanted, preload_bundle, stack, search, work
        )
        child = _Child(job, runtime.registry.hurry, is_alone=wanted.breaking is not None)
        # What was prepared in the working folder is none of the command's.
        before, folder = await asyncio.gather(for_clock, asyncio.to_thread(work.look))
        stdout = stack.enter_context(Stdout())
        watch = SocketWatch(lambda: child.pid)
        watching = sandboxed is None
        if watching:
            runtime.registry.own_ports = MachinePorts(
                lambda: watch.members() or _find_command(child)
            )
        prompting = await stack.enter_async_context(contextlib.AsyncExitStack())
        breaks = await prompting.enter_async_context(_breaking(runtime, wanted.breaking, child))
        if wanted.resumes:
            await _claim(runtime)
        if wanted.replaces:
            await asyncio.to_thread(_replace, runtime.store, wanted)
        await child.start()
        if watching:
            watch.start()
        shown = runtime.registry.redactor().redact_command(command) if is_guess else ()
        task = _watch_task(runtime, run, shown) if is_guess else None
        try:
            async with _keeping(runtime, config, preload_bundle), _watching_task(task, child):
                code = await child.wait()
            await prompting.aclose()
        finally:
            blind = await asyncio.to_thread(_stop_watch, watch, config.mode) if watching else ""
        left = await asyncio.to_thread(_find_left, watch, sandboxed)
        stdout.close()
        if isinstance(job, _CapturedJob):
            await job.captured.settle()
        open_run = await runtime.registry.find_sole_run()
        if task is not None:
            await task.finish()
        if task is not None and task.problem is not None:
            await runtime.registry.close("it was of another task")
            raise task.problem
        if open_run is None:
            info = await _empty_run(runtime, config, run)
        else:
            info = await _begun(open_run)
        redactor = open_run.redactor if open_run is not None else runtime.registry.redactor()
        said = redactor.redact_command(command)
        ended = {"child_exit": code, "command": said}
        if replaced := [at for at, word in enumerate(said) if word != command[at]]:
            ended["command_replaced"] = replaced
        if left:
            ended["left_running"] = [(pid, redactor.redact_text(name)) for pid, name in left]
        if config.mode is Mode.RECORD:
            ended["environment"] = _hash_environment(redactor)
        looking = asyncio.get_running_loop().create_task(
            asyncio.to_thread(_find_changed, runtime, before, archived)
        )
        made = await asyncio.to_thread(_find_made, runtime, info, stdout, folder)
        made |= await work.finish(info, redactor.text)
        if config.mode is Mode.PLAYBACK and config.playback.compare:
            made["compare"] = list(config.playback.compare)
        await _note(runtime, info, {**ended, **made, "contained": sandboxed is not None})
        if sandboxed is not None:
            await _note_sandbox(runtime, info, sandboxed, redactor)
        elif watching and watch.seen:
            await _note_foreign(runtime, info, watch)
        if changed := await looking:
            await _note(runtime, info, {"changed": changed})
        if isinstance(job, _CapturedJob):
            seen = await job.captured.evidence(redactor.redact_text)
            await _note(runtime, info, {"capture": seen})
        for text in [*filter(None, [blind]), *breaks.say_unmet()]:
            await _note(runtime, info, {"text": text})
        if preload_bundle is not None:
            await asyncio.to_thread(_note_determinism, runtime, info, preload_bundle, command)
        elif config.mode is Mode.PLAYBACK and config.determinism not in (None, "off"):
            runtime.store.events.append(info.number, lacking(config.determinism))
        reason = f"the command ended with {code}"
        if open_run is None:
            await runtime.store.runs.seal(info, reason=reason, at_ns=time.time_ns())
        else:
            if open_run.on_the_way.pending_exchanges:
                print_status("playhead: waiting for late answers")
            runtime.registry.end(open_run, reason)
        await runtime.registry.close(reason)
        reloaded = runtime.store.runs.reload(info)
        if config.mode is Mode.RECORD and info.id != run:
            print_status(say_name_was_taken(run, reloaded))
        if reloaded.status is RunStatus.OPEN:
            raise StoreUnwritable(
                f"run {info.id!r} could not be sealed: the store cannot be written",
                "free space: the run is shown as recovered then",
            )
        receipt = await asyncio.to_thread(build, runtime.store, reloaded)
        written = show(receipt, output, seed, file)
        _tell_empty_tape(runtime, wanted, run, receipt)
        wanted.told(receipt)
        if is_guess:
            print_status(await asyncio.to_thread(_saved_line, runtime.store, reloaded))
    if work.problem is not None:
        raise work.problem
    if not written or receipt.changed:
        _tell_reason(receipt, output)
        return ExitCode.UNTESTABLE
    if config.mode is Mode.RECORD:
        gap = receipt.gaps and config.on_full is not OnFull.PASS
        missed = config.runs.strict and receipt.unrecorded
        return code or (ExitCode.USAGE if gap or missed else 0)
    # `git bisect run` takes a code of 128 and more, such as that of a signal, for the end of all: right after Ctrl-C alone.
    verdict = exit_code(receipt)
    _tell_reason(receipt, output)
    if verdict != ExitCode.LEAKED and _is_interrupted(code, receipt):
        print_status("playhead: the command was interrupted: exit code 130")
        return ExitCode.INTERRUPTED
    return verdict or (code if code == ExitCode.INTERRUPTED else min(code, _OWN))


def _tell_reason(receipt: Receipt, output: Output) -> None:
    """Say why nothing was tested, where no receipt says so: nothing else is said then."""
    if output.quiet and exit_code(receipt) == ExitCode.UNTESTABLE:
        reason = explain_exit(receipt, ExitCode.UNTESTABLE)
        print_status(f"playhead: exit code {ExitCode.UNTESTABLE.value}: {reason}")


def _tell_empty_tape(runtime: Runtime, wanted: _Wanted, run: str, receipt: Receipt) -> None:
    """Say that nothing was tested since the tape has nothing; who reads JSON has the counts."""
    is_replay = receipt.mode == Mode.PLAYBACK.value and not (wanted.resumes or wanted.branch)
    if not is_replay or wanted.output.as_json or exit_code(receipt) != ExitCode.UNTESTABLE:
        return
    if told := say_tape_is_empty(runtime.store.runs.get(run)):
        print_status(told)


def _is_interrupted(code: int, receipt: Receipt) -> bool:
    """Say whether Ctrl-C has ended a replayed command; not where the recorded one ended so, too."""
    return (
        code == ExitCode.INTERRUPTED
        and receipt.parts.command.recorded.child_exit != ExitCode.INTERRUPTED
    )


def _watch_task(runtime: Runtime, run: str, shown: Sequence[str]) -> "TaskWatch":
    from .tape_of_same_task import (
        TaskWatch,  # which reads costs and outcomes, as no other replay does
    )

    return TaskWatch(runtime, run, shown)


def _saved_line(store: Store, run: RunInfo) -> str:
    from .tape_of_same_task import saved_line

    return saved_line(store, run)


@contextlib.asynccontextmanager
async def _watching_task(task: "TaskWatch | None", child: "_Child") -> AsyncIterator[None]:
    """Watch for the task of a command while it runs."""
    if task is None:
        yield
        return
    watching = asyncio.get_running_loop().create_task(task.watch(child.send))
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


def _replace(store: Store, wanted: _Wanted) -> None:
    """Delete the recording whose name is wanted. Blocks. Raises: StoreError; EngineError, where the command is not there."""
    if wanted.container_host is None:
        require_startable(wanted.command)
    replaced = find_replaced(store, wanted.run)
    remove_replaced(store, replaced)
    if replaced:
        players = ", ".join(repr(str(run.id)) for run in replaced[1:])
        more = f", with its replays: {players}" if players else ""
        print_status(f"playhead: replaced the recording {wanted.run!r}{more}")


async def _claim(runtime: Runtime) -> None:
    """Open the run that resumes a crashed one, before its command does anything. Raises: EngineError, where another one has done so."""
    problem = (await runtime.registry.open_sole_run()).lifetime.problem
    if problem:
        raise EngineError(problem, "the command was not started")


@contextlib.asynccontextmanager
async def _breaking(
    runtime: Runtime, breaking: Breaking | None, child: "_Child"
) -> AsyncIterator[Breaks]:
    """Hold the command at breakpoints while it runs, and ask what becomes of it."""
    breaks, registry = Breaks(breaking.points if breaking else ()), runtime.registry
    if breaking is None:
        yield breaks
        return
    from .break_prompt import BreakPrompt

    async def quit_run(held: HeldAtBreak) -> None:
        open_run = held.pending.open_run
        await stop_run(registry, open_run, by="breakpoint", pid=os.getpid(), reason="quit")
        child.send(signal.SIGTERM)

    breaks.on_quit = quit_run
    is_remote = runtime.config.control.listen is not None and not os.isatty(breaking.stdin)
    release = partial(_say_release, runtime) if is_remote else None
    prompt = BreakPrompt(breaks, breaking.stdin, release=release)
    registry.breaks = breaks
    try:
        async with prompt.asking():
            yield breaks
    finally:
        breaks.disable()


def _say_release(runtime: Runtime, name: str) -> str:
    """Give the command that lets go what is held at a breakpoint."""
    token = shell_word(str(token_path(runtime.config)))
    url = f"{runtime.control.url}/v1/breaks/{quote(name, safe='')}/continue"
    return f'curl -X POST -H "authorization: Bearer $(cat {token})" {url}'


def _find_command(child: "_Child") -> list[Process]:
    """Give the command's process; nothing before it has begun."""
    found = find_process(child.pid) if child.pid is not None else None
    return [found] if found is not None else []


def _find_made(
    runtime: Runtime, info: RunInfo, stdout: Stdout, folder: AnyFolder
) -> dict[str, object]:
    """Give what the command left behind, as far as that is known. Blocking."""
    tape = runtime.store.runs.find_tape(info) if info.parent is not None else None
    then = find_files(runtime.store, tape) if tape is not None else ()
    changed = folder.changed(then)
    files = changed and hide_files(changed, runtime.registry.redactor().text)
    found = {"stdout": stdout.result, "files": files}
    return {name: value for name, value in found.items() if value is not None}


def _find_changed(
    runtime: Runtime, before: Baseline, archived: ArchivedFiles
) -> list[dict[str, str]]:
    """Give what a run rests on and is not as it was. Blocking."""
    return [*before.compare(), *archived.compare(runtime.store)][:MOST_TOLD]


def _open_file(
    output: Output, stack: contextlib.AsyncExitStack, kept: Sequence[Path]
) -> ReceiptFile | None:
    """Hold the place of the receipt's file, which is none of `kept`. Raises: EngineError."""
    if output.file is None:
        return None
    file = ReceiptFile(output.file, kept)
    stack.callback(file.close)
    return file


def _begin_search(
    config: Config, wanted: _Wanted, stack: contextlib.AsyncExitStack
) -> Search | None:
    """Have named pipes be looked for while the proxy starts; None where nothing is hidden from the command."""
    if wanted.container_host is not None or _kind_of_sandbox(config) == "none":
        return None
    from .early import begin_search

    search = begin_search(config)
    stack.callback(search.close)
    return search


async def _find_pipes(search: Search | None) -> Found:
    """Give what was found."""
    if search is None:
        return NOTHING
    return await asyncio.to_thread(search.result)


async def _look(config: Config, config_file: Path | None, file: ReceiptFile | None) -> Baseline:
    """Look at what the run rests on, before the command runs."""
    folders = [] if file is None else [file.path.absolute().parent]
    return await asyncio.to_thread(Baseline, config, config_file=config_file, folders=folders)


async def _prepare(
    runtime: Runtime,
    config: Config,
    wanted: _Wanted,
    preload_bundle: PreloadBundle | None,
    stack: contextlib.AsyncExitStack,
    search: Search | None,
    work: WorkFolder,
) -> "tuple[SandboxedRun | None, _Job]":
    """Open what the command is to use as its proxy, in a sandbox where one is asked for."""
    command, container_host = wanted.command, wanted.container_host
    where = _kind_of_sandbox(config)
    if config.sandbox.files and (where == "none" or container_host is not None):
        raise EngineError(
            "--sandbox-files needs a sandbox on this machine, and this command is to run in "
            + ("none" if container_host is None else "an image, which has files of its own"),
            "record with --capture, replay without --no-sandbox; or leave the flag out",
        )
    if where == "none" and container_host is None:
        address = await runtime.listen(Listen("127.0.0.1", 0))
        url = proxy_url(address.host, address.port)
        variables = _variables(config, url, preload_bundle)
        if wanted.prefork is None:
            return None, _Process(command, variables, work)
        from .record_captured import CapturedProcess

        captured = CapturedProcess(wanted.prefork, runtime, config, command, variables)
        stack.callback(captured.close)
        return None, _CapturedJob(captured)
    from .sandboxed import PROXY_URL, OwnNamespaces, SandboxedRun

    if container_host is None and (linked := find_second_names(config.store)):
        raise EngineError(
            f"{linked[0]} has a second name: a command in a sandbox could read or change the store by it",
            "make copies of a store that are no links (cp -a, not cp -al), and remove the links",
        )
    runtime.control.open()
    files = [*named_files(config), *filter(None, [wanted.config_file, config.sink.file])]
    if container_host is not None:
        place = container_host.place(
            config, command, preload_bundle, PROXY_URL, files, find_archives(config)
        )
    else:
        variables = _variables(config, PROXY_URL, preload_bundle)
        shared = [preload_bundle.folder] if preload_bundle is not None else []
        place = OwnNamespaces(
            runtime,
            config,
            command,
            variables,
            strict=where == "strict",
            shared=shared,
            files=files,
            fixed=[] if wanted.output.file is None else [wanted.output.file.absolute().parent],
            pipes=await _find_pipes(search),
            copies=work.mounts,
            closed=work.hidden,
            elsewhere=work.find_shown(),
            helper=wanted.early.helper if wanted.early else None,
        )
    sandboxed = SandboxedRun(runtime, config, place)
    await stack.enter_async_context(sandboxed)
    return sandboxed, _SandboxJob(sandboxed.sandbox)


def _kind_of_sandbox(config: Config) -> str:
    kind = config.sandbox.record if config.mode is Mode.RECORD else config.sandbox.replay
    return "none" if kind in KINDS else kind


def _variables(config: Config, url: str, preload_bundle: PreloadBundle | None) -> dict[str, str]:
    made = environment(os.environ, proxy_url=url, public_dir=config.public_ca_dir)
    return made if preload_bundle is None else preload_bundle.variables(made)


def _equip(runtime: Runtime, config: Config, run: str) -> PreloadBundle | None:
    """Make what the command's clock and randomness come from; None where they are left alone."""
    if config.mode is Mode.RECORD:
        return PreloadBundle.for_recording(
            config.determinism, os.environ, library=config.libc_preload == "auto"
        )
    return PreloadBundle.for_replay(
        config.determinism,
        runtime.store,
        runtime.store.runs.get(run),
        short_sleeps=config.playback.sleeps == "short",
        library=config.libc_preload != "off",
    )


def own_control(given: Control) -> Control:
    """Give where the control API of a command listens: beside a `serve` with the same file its port is taken."""
    listen = Control().listen if given.listen is not None else None
    return Control(listen=listen, token_file=given.token_file)


def _stop_watch(watch: SocketWatch, mode: Mode) -> str:
    """End the watch; of a recording, which it must not cost, say why it saw nothing."""
    try:
        watch.stop()
    except Exception as error:
        text = f"the command's sockets could not be watched: {error}"
        if mode is Mode.RECORD:
            return f"{text}; nobody knows whether something went past the proxy"
        # Blind is not clean: nothing can be said about this replay.
        raise EngineError(text) from error
    return ""


def _find_left(watch: SocketWatch, sandboxed: "SandboxedRun | None") -> list[tuple[int, str]]:
    """Find the processes that the command left behind, by number and name; number 0 where they ended with its sandbox."""
    if sandboxed is not None:
        return [(0, name) for name in sandboxed.sandbox.left_behind]
    return [(one.pid, one.name) for one in watch.find_left()]


def _check_breaks(store: Store, run: str, breaking: Breaking | None) -> None:
    """Have the tape hold each exchange at which the command is to be held. Raises: StoreError, naming the nearest."""
    wanted = [point.seq for point in breaking.points if point.seq is not None] if breaking else []
    seqs = store.exchanges.seqs(store.runs.get(run)) if wanted else []
    for seq in wanted:
        if seq not in seqs:
            raise no_exchange(run, seq, seqs)


def _check_tape(runtime: Runtime, run: str, *, is_chosen: bool) -> str:
    """Give the run that is played.

    is_chosen: whether the name is that of the very run, as a branch has found it, and not of the newest of that name.
    """
    if run == "latest":
        latest = runtime.store.runs.find_latest()
        if latest is None:
            raise EngineError("there is no sealed recording to replay", "record one first")
        return latest.id
    asked = run
    run, others = (asked, ()) if is_chosen else choose_recording(runtime.store, asked)
    if told := say_which_is_played(asked, run, others):
        print_status(told)
    info = runtime.store.runs.get(run)
    if not info.is_tape:
        raise EngineError(
            f"{run!r} is a playback of {info.parent!r}, not a recording",
            f"replay {info.parent!r} instead",
        )
    if info.status is RunStatus.OPEN:
        raise RunOpen(
            f"run {run!r} is still being recorded", f"end it with: playhead seal {shell_word(run)}"
        )
    return run


async def _empty_run(runtime: Runtime, config: Config, run: str) -> RunInfo:
    """Make the run that no request opened, so that its receipt says so."""
    parent = runtime.store.runs.find(run) if config.mode is Mode.PLAYBACK else None
    return await runtime.store.runs.create(
        run, mode=config.mode.value, at_ns=time.time_ns(), parent=parent
    )


async def _begun(open_run: OpenRun) -> RunInfo:
    """Give the stored run of an open run, beginning it where that could not be done before.

    Raises: StoreUnwritable.
    """
    if open_run.lifetime.begin_later is not None:
        await open_run.lifetime.begin_later()
    if open_run.info is None:
        raise StoreUnwritable(
            "nothing was recorded: the store could not be written",
            "free space or make the folder writable, then record again",
        )
    return open_run.info


def _hash_environment(redactor: Redactor) -> list[str]:
    """Give what `learn` knows the words of the environment by: an id that came from there is none that the command has made."""
    from ...timeline.learning.identifying_words import hash_environment  # here: a replay needs none

    return hash_environment(os.environ.values(), redactor.hash_word)


async def _note(runtime: Runtime, info: RunInfo, data: dict[str, object]) -> None:
    event = Event(EventKind.NOTED, time.time_ns(), data)
    await runtime.store.events.append_durably(info.number, event, vital=True)


async def _note_sandbox(
    runtime: Runtime, info: RunInfo, sandboxed: "SandboxedRun", redactor: Redactor
) -> None:
    summary, attempts = await sandboxed.evidence(redactor.redact_text)
    await _note(runtime, info, {"sandbox": summary})
    for attempt in attempts:
        event = Event(EventKind.EGRESS, time.time_ns(), attempt)
        await runtime.store.events.append_durably(info.number, event, vital=True)


def _keeping(
    runtime: Runtime, config: Config, preload_bundle: PreloadBundle | None
) -> contextlib.AbstractAsyncContextManager[None]:
    """Keep the journal of a recording while its command runs."""
    if preload_bundle is None or config.mode is not Mode.RECORD:
        return contextlib.nullcontext()

    def find_run() -> int | None:
        open_run = runtime.registry.sole_run
        return None if open_run is None or open_run.info is None else open_run.info.number

    return keeping(preload_bundle, find_run, runtime.store.events.append_durably)


def _note_determinism(
    runtime: Runtime, info: RunInfo, preload_bundle: PreloadBundle, command: Sequence[str]
) -> None:
    for event in events(preload_bundle, command):
        runtime.store.events.append(info.number, event)


async def _note_foreign(runtime: Runtime, info: RunInfo, watch: SocketWatch) -> None:
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
    await runtime.store.events.append_durably(info.number, event, vital=True)


def show(receipt: Receipt, output: Output, seed: bytes, file: ReceiptFile | None) -> bool:
    """Print a receipt on stderr, so that the child's stdout stays its own, and write it where asked; signed.

    seed: the store's key of receipts.
    Says whether it was written, where it was to be.
    """
    document = json.dumps(sign(receipt.to_json(), seed), indent=2)
    written = True
    if file is not None:
        try:
            file.write(f"{document}\n".encode())
        except OSError as error:
            written = False
            why = error.strerror or error
            print_status(f"playhead: cannot write the receipt to {file.path}: {why}")
            print_status(
                f"  hint: `playhead receipt {shell_word(receipt.run)} --json` prints it again"
            )
    if not output.quiet:
        print_status(document if output.as_json else render_receipt(receipt))
    return written


class _Job(Protocol):
    """A command that leads a process group of its own, or runs where there is none of ours."""

    async def start(self) -> int | None:
        """Start it; give its process id, where it has one here. Raises: EngineError."""

    def signal(self, number: int) -> None:
        """Pass a signal on. Raises: ProcessLookupError."""

    async def wait(self) -> "int | _Stopped":
        """Wait until it ends, and give its exit code as a shell would, or until it is stopped."""


class _Stopped(NamedTuple):
    """A command does not run on before it is continued."""

    by: int
    """The signal."""


class _SandboxJob:
    """A command in a sandbox."""

    def __init__(self, sandbox: "AnySandbox") -> None:
        self._sandbox = sandbox

    async def start(self) -> int | None:
        return await self._sandbox.start()

    def signal(self, number: int) -> None:
        self._sandbox.signal(number)

    async def wait(self) -> int | _Stopped:
        ended = await self._sandbox.wait()
        return _Stopped(self._sandbox.stopped_by) if ended is None else ended


class _Process:
    """A command among all others of this machine."""

    def __init__(self, command: Sequence[str], variables: dict[str, str], work: WorkFolder) -> None:
        self._command = command
        self._variables = variables
        self._work = work

    async def start(self) -> int:
        self._process = self._spawn()
        return self._process.pid

    def signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            # Not the loop's own: uvloop's cannot set a process group without a preexec function.
            with (
                usual_limit(),
                fixed_addresses(self._variables),
                self._work.wrapped(self._command, self._variables) as (words, options),
            ):
                return subprocess.Popen(words, process_group=0, **options)
        except (OSError, ValueError) as error:
            text = getattr(error, "strerror", None) or str(error)
            number = getattr(error, "errno", None) or 0
            raise explain_start(self._command, number, text, self._variables) from error

    async def wait(self) -> int | _Stopped:
        _, status = await asyncio.to_thread(os.waitpid, self._process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return _Stopped(os.WSTOPSIG(status))
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


class _CapturedJob:
    """A command among all others, whose connections are captured."""

    def __init__(self, captured: "CapturedProcess") -> None:
        self.captured = captured
        self._pid = 0

    async def start(self) -> int:
        self._pid = await self.captured.start()
        return self._pid

    def signal(self, number: int) -> None:
        self.captured.signal(number)

    async def wait(self) -> int | _Stopped:
        _, status = await asyncio.to_thread(os.waitpid, self._pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return _Stopped(os.WSTOPSIG(status))
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


class _Child:
    """The command, with the signals that we get and the terminal that we have."""

    def __init__(self, job: _Job, hurry: Callable[[], None], *, is_alone: bool = False) -> None:
        """Prepare; nothing is started yet.

        hurry: called on signals to end that come when the command has ended already.
        is_alone: whether it is not given the terminal, which is needed here.
        """
        self._is_alone = is_alone
        self._job = job
        self._hurry = hurry
        self.pid: int | None = None
        self._started = False
        self._ended = False
        self._early: list[int] = []
        """Signals that came before it was started."""

    async def start(self) -> None:
        """Start it. From now on signals are for the command."""
        loop = asyncio.get_running_loop()
        for number in _PASSED_ON:
            loop.add_signal_handler(number, self._take, number)
        # Some supervisors start us with it ignored: the kernel would keep the exit code for itself.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.pid = await self._job.start()
        self._started = True
        for early in self._early:
            self.send(early)

    async def wait(self) -> int:
        """Wait for the command's end, passing signals on; give its exit code as a shell would.

        A command that is stopped at a terminal takes us with it, as any shell's job stops whole.
        """
        with _terminal_for(None if self._is_alone else self.pid) as terminal:
            while isinstance(ended := await self._job.wait(), _Stopped):
                if terminal is not None and ended.by in _STOPPED_AT_TERMINAL:
                    terminal.suspend()
        self._ended = True
        return ended

    def send(self, number: int) -> None:
        """Send a signal to the command, where it still runs."""
        if self._started and not self._ended:
            with contextlib.suppress(ProcessLookupError):
                self._job.signal(number)

    def _take(self, number: int) -> None:
        if self._started and not self._ended:
            with contextlib.suppress(ProcessLookupError):
                self._job.signal(number)
        elif self._ended:
            self._hurry()
        else:
            self._early.append(number)


class _Terminal:
    """The terminal that we were started at, in the foreground."""

    def __init__(self, descriptor: int, ours: int, theirs: int) -> None:
        self._descriptor = descriptor
        self._ours = ours
        self._theirs = theirs

    def give(self) -> None:
        """Let the child's group have it, and go on if it had asked for it too early."""
        self._hand_over(self._ours, self._theirs)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._theirs, signal.SIGCONT)

    def take(self) -> None:
        """Have it back from the child's group, and from nobody else."""
        self._hand_over(self._theirs, self._ours)

    def suspend(self) -> None:
        """Stop as the child has, and go on with it when we are told to. On the main thread only."""
        self.take()
        # First the rest of the job (`playhead record ... | tee`), then we, on this very thread: it runs on
        # when we are continued, and not a moment before.
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.killpg(self._ours, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
        # Here again: in the foreground (`fg`), or in the background (`bg`), where nothing is ours to give.
        self.give()

    def _hand_over(self, giver: int, taker: int) -> None:
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(self._descriptor) == giver:
                os.tcsetpgrp(self._descriptor, taker)


@contextlib.contextmanager
def _terminal_for(pgid: int | None) -> Iterator[_Terminal | None]:
    """Let the child's group have the terminal, so that Ctrl-C and reading from it work as without us.

    None where there is no terminal, or where it is not ours: in a shell's background.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            stack.callback(os.close, descriptor)
            ours = os.tcgetpgrp(descriptor)
        except OSError:
            yield None
            return
        if pgid is None or ours != os.getpgrp():
            yield None
            return
        # Writing to the terminal's settings from the background would stop us.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        stack.callback(signal.signal, signal.SIGTTOU, before)
        terminal = _Terminal(descriptor, ours, pgid)
        terminal.give()
        stack.callback(terminal.take)
        yield terminal
