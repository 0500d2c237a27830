"""The working folder of a launched command: looked at while recording; a fresh one for each replay."""

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from ...addons.run.run_state import OpenRun
from ...config import Config, Mode
from ...store import RunInfo, StoreError
from ...store.encryption.key import VARIABLE as KEY_VARIABLE
from ...tape.folders.manifest import show_path
from ..determinism import PreloadBundle
from ..errors import EngineError
from ..folder.command_folders import Area, find_area, find_around, find_linked
from ..folder.execution_folder import AUTO, IN_PLACE, OVERLAY, Execution, Kept, Wanted, prepare
from ..folder.git import find_tracked_ignored
from ..folder.list_folder import IgnoreFilter
from ..folder.overlay_support import Trial, command_words, find_overlay
from ..folder.recording import (
    MOST_ROWS,
    FolderRecording,
    count_effects,
    effect_rows,
    explain_error,
    explain_unread,
    find_umask,
)
from ..folder.restore import NotBegun, count_paths, name_paths
from ..folder.savepoints import END, Savepoints
from ..sandbox.channel import write_variables
from ..standard_streams import print_status
from .archive_changes import find_archives
from .outputs import Folder, LayeredFolder
from .runtime import Runtime


class AnyFolder(Protocol):
    """What says which files a command changed."""

    def changed(self, also: tuple[str, ...] = ()) -> dict[str, str] | None:
        """See `outputs.Folder`."""


class WorkFolder:
    """The working folder of one command."""

    def __init__(self, runtime: Runtime, config: Config, *, in_container: bool) -> None:
        """Prepare, before the proxy starts: whether an overlay works here is tried meanwhile.

        in_container: the command sees the files of an image.
        """
        self._runtime = runtime
        self._config = config
        self._trial: Future[Trial] | None = None
        self._area = None if in_container else _find_area()
        self._in_container = in_container
        self._within = self._area.find_within(os.getcwd()) if self._area is not None else b""
        own = config.store, config.public_ca_dir, *find_archives(config)
        self._own = tuple(path.absolute() for path in own)
        self._left_out = frozenset(os.path.realpath(path) for path in self._own)
        self._execution: Execution | None = None
        self.problem: EngineError | None = None
        """Why what the command wrote was not kept, though that was asked for: for whoever has shown the receipt."""
        self._said: list[str] = []
        """Sentences of the receipt, beside those of the execution."""
        self._recording: FolderRecording | None = None
        self._savepoints: Savepoints | None = None
        self._of_user = config.sandbox.replay != "none" or os.geteuid() != 0
        if config.mode is Mode.PLAYBACK and config.files.replay in (AUTO, OVERLAY):
            self._begin_trial()

    def _begin_trial(self) -> None:
        area = self._area
        if area is None or area.folder == "/":
            return
        trial: Future[Trial] = Future()

        def run() -> None:
            try:
                trial.set_result(
                    find_overlay(
                        self._config.store, area.folder, area.folders, of_user=self._of_user
                    )
                )
            except Exception as error:  # raised by whoever asks for the result
                trial.set_exception(error)

        threading.Thread(target=run, name="playhead-overlay", daemon=True).start()
        self._trial = trial

    @property
    def mounts(self) -> list[dict[str, Any]]:
        """The mounts that put copies in the place of folders."""
        return self._execution.mounts if self._execution is not None else []

    @property
    def hidden(self) -> list[str]:
        """Folders that the command must not reach."""
        return self._execution.hidden if self._execution is not None else []

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The folders outside that git writes to and the command sees, also where it sees nothing else of the machine."""
        if self._area is None:
            return ()
        return find_linked(self._area) if self._config.sandbox.files else self._area.also

    def find_shown(self) -> tuple[str, ...]:
        """Give the folders beside the working folder that a command in a sandbox sees where it sees nothing else of the machine.

        What it does not see of the work tree around it is said.
        """
        if self._area is None or not self._config.sandbox.files:
            return self.elsewhere
        around = find_around(self._area, os.getcwd(), os.path.expanduser("~"))
        if around.why_not:
            text = f"of the work tree {self._area.folder} the command sees its working folder alone, because {around.why_not}"
            self._said.append(text)
            print_status(f"playhead: {text}")
        return (*filter(None, [around.folder]), *self.elsewhere)

    async def begin(self, run: str, preload_bundle: PreloadBundle | None) -> None:
        """Look at the folder, or prepare one; say what there is to say.

        run: name of the tape that is played.
        Raises: EngineError; StoreError.
        """
        config = self._config
        if self._in_container and (config.files.transaction or config.files.save):
            raise EngineError(
                "--save-files and --transaction are for a folder of this machine, and the command works in a container",
                "leave the flag out, or record without --sandbox docker",
            )
        if self._area is None:
            return
        try:
            if config.mode is Mode.RECORD:
                await self._begin_recording(self._area)
            else:
                await self._begin_replay(self._area, run, preload_bundle)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise EngineError(
                f"the working folder {self._area.folder} cannot be prepared: {explain_error(error)}",
                "free some space there"
                if full
                else "--in-place runs the command on the folder itself",
            ) from error

    async def _begin_recording(self, area: Area) -> None:
        store, registry = self._runtime.store, self._runtime.registry
        redact = registry.redactor().text
        recording = FolderRecording(store, area, self._config, redact, self._left_out)
        for text in await asyncio.to_thread(recording.begin):
            print_status(f"playhead: {text}")
        self._recording = recording
        registry.hooks.on_opened.append(self._adopt)
        if self._config.files.transaction:
            self._savepoints = Savepoints(recording, store)
            registry.hooks.before_effect = self._savepoints.before_effect

    async def _adopt(self, open_run: OpenRun) -> None:
        """Have the run own what was looked at, so that it is there even if we are killed."""
        if self._recording is not None and open_run.info is not None:
            try:
                await asyncio.to_thread(self._recording.adopt, open_run.info.number)
            except StoreError as error:  # it is tried again at the end
                print_status(f"playhead: the folder's manifest cannot be saved: {error}")

    async def _begin_replay(
        self, area: Area, run: str, preload_bundle: PreloadBundle | None
    ) -> None:
        config, store = self._config, self._runtime.store
        sandboxed = config.sandbox.replay != "none"
        kept = (str(preload_bundle.folder),) if preload_bundle is not None else ()
        tape = store.runs.get(run)
        wanted = Wanted(
            config.files.replay,
            of_user=self._of_user,
            trial=self._trial,
            left_out=self._left_out,
            kept=kept,
            shown=(str(self._own[1]),),
            sandboxed=sandboxed,
            stays=config.files.keep_writes,
            # Made if a name is not found: it is rare, and takes time before the command starts.
            redact=lambda text: self._runtime.registry.redactor().text(text),
        )
        self._execution = await asyncio.to_thread(prepare, store, tape, area, wanted)
        for text in self._execution.said:
            print_status(f"playhead: {text}")

    def look(self) -> AnyFolder:
        """Look at what the command is about to see. Blocks."""
        execution, working = self._execution, Path.cwd()
        if execution is None or execution.mode == IN_PLACE:
            return Folder(working, left_out=self._own)
        if execution.mode == OVERLAY:
            return LayeredFolder(execution, working)
        within = os.path.relpath(os.path.realpath(working), execution.area.folder)
        return Folder(Path(execution.place, within))

    @contextlib.contextmanager
    def wrapped(
        self, command: Sequence[str], variables: Mapping[str, str]
    ) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """Give the words and options with which a command outside of a sandbox is started on its folder."""
        if not self.mounts:
            yield list(command), {"env": dict(variables)}
            return
        held = write_variables(variables)
        try:
            # What the command's variables ask for (PYTHONPATH, LD_PRELOAD) is not for the process that mounts.
            own = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
            words = command_words(
                self.mounts, self.hidden, of_user=os.geteuid() != 0, variables=held
            )
            yield [*words, *command], {"env": own, "pass_fds": (held,)}
        finally:
            os.close(held)

    async def finish(self, info: RunInfo, redact: Callable[[bytes], bytes]) -> dict[str, Any]:
        """Give what the log has of the folder, once the command has ended; keep what it wrote where that is asked for.

        redact: takes secrets out of a text.
        """
        if self._recording is not None:
            return await asyncio.to_thread(self._finish_recording, self._recording, info.number)
        if self._execution is not None:
            return await asyncio.to_thread(self._finish_replay, self._execution, redact)
        return {}

    def _finish_recording(self, recording: FolderRecording, run: int) -> dict[str, Any]:
        try:
            noted = recording.finish(run)
        except (OSError, StoreError) as error:
            noted = recording.describe_unknown(error)
        try:
            if self._savepoints is not None:
                self._savepoints.take(run, END)
        except StoreError as error:
            print_status(f"playhead: no savepoint at the end: {error}")
        return noted

    def _finish_replay(
        self, execution: Execution, redact: Callable[[bytes], bytes]
    ) -> dict[str, Any]:
        plain = _plain_with(redact)
        described = {
            "path": plain(execution.area.folder),
            "within": show_path(redact(self._within)),
            "umask": find_umask(),
            "mode": execution.mode,
            "differs": [plain(text) for text in execution.differs],
            "uncompared": [plain(text) for text in execution.uncompared],
            "restored": execution.restored,
            "unlisted": plain(execution.unlisted),
            "elsewhere": [plain(path) for path in self.elsewhere],
        }
        try:
            return self._list_written(execution, described, redact)
        except OSError as error:
            why = explain_unread(execution.area.folder, error)
            if self._config.files.keep_writes:
                self.problem = EngineError(
                    f"the command's writes were not kept: what it wrote is not known, because {why}",
                    "replay once more in a folder that stays where it is",
                )
            said = [
                *execution.said,
                *self._said,
                *([str(self.problem)] if self.problem is not None else []),
            ]
            folder = {**described, "said": [plain(text) for text in said], "unknown": why}
            return {"folder": folder, "file_effects": None}

    def _list_written(
        self,
        execution: Execution,
        described: Mapping[str, Any],
        redact: Callable[[bytes], bytes],
    ) -> dict[str, Any]:
        plain = _plain_with(redact)
        written = execution.find_written()
        folder = execution.area.folder
        rules = IgnoreFilter(folder, find_tracked_ignored(folder))
        effects = [
            one
            for one in written.effects
            if not rules.leaves_out(one.path, folder=one.entry.is_folder)
        ]
        said = [text for text in [execution.find_full()] if text]
        for text in said:
            print_status(f"playhead: {text}")
        kept = Kept(0, [])
        if self._config.files.keep_writes:
            try:
                kept = execution.keep()
                self.problem = _explain_left(folder, kept)
            except EngineError as error:
                self.problem = error
            except OSError as error:
                self.problem = _explain_not_kept(folder, error)
        if self.problem is not None:
            said.append(str(self.problem))
        return {
            "folder": {
                **described,
                "cut": plain(written.cut),
                "said": [plain(text) for text in (*execution.said, *self._said, *said)],
                "kept": kept.paths,
                "ignored": len(written.effects) - len(effects),
            },
            "file_effects": effect_rows(effects, redact),
            "file_effects_omitted": max(0, len(effects) - MOST_ROWS),
            "file_effects_counts": count_effects(effects),
        }

    def close(self) -> None:
        """Discard what a replay worked on."""
        if self._execution is not None:
            self._execution.close()


def _plain_with(redact: Callable[[bytes], bytes]) -> Callable[[str], str]:
    """Give what makes a text with names of files one that can be stored."""
    return lambda text: redact(os.fsencode(text)).decode("utf-8", "backslashreplace")


def _explain_left(folder: str, kept: Kept) -> EngineError | None:
    if not kept.left:
        return None
    was, stay = ("were", "stay") if len(kept.left) > 1 else ("was", "stays")
    return EngineError(
        f"{count_paths(kept.left)} in {folder} changed or {was} removed while the command ran, and {stay} so:"
        f" {name_paths(kept.left)}; all else that the command wrote was kept",
        "replay once more while nothing else writes to the folder, if you want what the command wrote there",
    )


def _explain_not_kept(folder: str, error: OSError) -> EngineError:
    if isinstance(error, NotBegun):
        return EngineError(
            f"the command's writes were not kept ({error.strerror}): {folder} is as it was",
            "free some space there, and replay once more",
        )
    return EngineError(
        f"the command's writes were kept in part: {explain_error(error)}",
        f"compare {folder} with the files that the receipt lists",
    )


def _find_area() -> Area | None:
    """Find the folder that we are in; None where it was removed."""
    try:
        return find_area(os.getcwd(), os.path.expanduser("~"))
    except FileNotFoundError:
        return None
