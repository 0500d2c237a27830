"""Open runs: a recording, which may begin later where nothing can be written, or the playback of a tape."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from .... import PlayheadError
from ....config import Config, Mode, Sink
from ....store import LogCorrupt, RunInfo, RunStatus, Store, StoreError, StoreUnwritable, UnknownRun
from ....tape.canonical.canonical_request import CANONICAL_VERSION, rules_of
from ....tape.classify.by_method_and_url import classes_digest
from ....tape.exchange import RedactedText
from ....tape.matching.index import index_digest
from ....tape.records.events import EventKind
from ....tape.shell_words import shell_word
from ....timeline.lookup.crashed_runs import find_first, find_rival, read_crash
from ....timeline.reading.present_classes import with_present_classes
from ..effect_sinks import SinkQueue
from ..run_state import OpenRun
from .log_run_rules import describe_branch, describe_classes, describe_resume, list_live, note_rules

logger = logging.getLogger(__name__)

_TOO_NEW = (
    "run {0} is indexed in canonical form {1}, and this version of Playhead compares in form {2}: its requests"
    " were compared from their raw bytes; `playhead reindex {3}` makes that last"
)


MakeRun = Callable[..., OpenRun]


def refuse_all(make: MakeRun, problem: str) -> OpenRun:
    """Make a run that has no tape, with why."""
    logger.warning("playback refused: %s", problem)
    return make(None, None, problem)


def _describe_index(open_run: OpenRun) -> dict[str, Any]:
    """Give what the row of a run says of its fingerprints and placeholders."""
    return {
        "rules": index_digest(rules_of(open_run.config), open_run.config),
        "canonical": CANONICAL_VERSION,
        "placeholders": open_run.redactor.key_id,
        "classes": classes_digest(open_run.config.classes),
    }


class RunOpener:
    """Opens runs in a store."""

    def __init__(self, store: Store, restore: Callable[[RunInfo], None] | None) -> None:
        """Open runs in `store`.

        restore: puts a tape that was archived into the store again; blocking.
        """
        self._store = store
        self._restore = restore
        self._sink_queues: dict[Sink, SinkQueue] = {}

    async def resume(
        self,
        config: Config,
        make: MakeRun,
        crashed: RunInfo,
        agent: RedactedText,
    ) -> OpenRun:
        """Open a run that resumes a crashed one; where that cannot be, one in which everything is refused, with why."""
        problem = await self._restore_line(crashed)
        if problem:
            return refuse_all(make, problem)
        crashed = self._store.runs.reload(crashed)
        try:
            seen = with_present_classes(self._store, config.classes)
            known = await asyncio.to_thread(read_crash, seen, crashed)
        except StoreError as error:
            return refuse_all(make, f"{error}; {error.hint}")
        first = await asyncio.to_thread(find_first, self._store, crashed)
        run = await self._store.runs.create(
            first.id,
            mode=Mode.PLAYBACK.value,
            at_ns=time.time_ns(),
            parent=crashed,
            agent=agent,
            resumes=True,
            **_describe_index(make(None)),
        )
        rival = await asyncio.to_thread(find_rival, self._store, run)
        if rival is not None:
            return make(run, None, f"run {crashed.id!r} is being resumed as {rival.id!r}")
        logger.info("run %s: resuming %s", run.id, crashed.id)
        open_run = make(run, self._store.runs.reload(crashed), resume=known)
        open_run.note(EventKind.NOTED, resume=describe_resume(crashed, known))
        open_run = await self._prepare_playback(config, make, open_run)
        if open_run.playback is not None:
            await asyncio.to_thread(open_run.playback.expect_prefix)
        self._begun(open_run)
        return open_run

    async def open(self, config: Config, make: MakeRun, name: str, agent: RedactedText) -> OpenRun:
        """Open a run in the mode of the configuration.

        make: makes it, of its row in the store, its tape, and why there is none.
        """
        if config.mode is Mode.PLAYBACK:
            open_run = await self._open_playback(config, make, name, agent)
            self._begun(open_run)
            return open_run
        open_run = make(None)
        if config.mode is Mode.RECORD:
            await self._begin(open_run, name, agent)
        return open_run

    async def _begin(self, open_run: OpenRun, name: str, agent: RedactedText) -> None:
        """Begin a recording; where it cannot be written and may pass, later."""
        config = open_run.config
        try:
            open_run.info = await self._store.runs.create(
                name,
                mode=config.mode.value,
                at_ns=time.time_ns(),
                agent=agent,
                **_describe_index(open_run),
            )
        except StoreUnwritable as error:
            open_run.miss(error)
            if open_run.lifetime.begin_later is None:
                logger.warning("run %s passes unrecorded: %s", name, error)
            open_run.lifetime.begin_later = partial(self._begin, open_run, name, agent)
            return
        open_run.lifetime.begin_later = None
        note_rules(open_run)
        logger.info("run %s: recording", open_run.info.id)
        self._begun(open_run)

    def _begun(self, open_run: OpenRun) -> None:
        if open_run.usage_meter is not None and open_run.info is not None:
            open_run.usage_meter.begin()
        if open_run.info is not None and open_run.config.sink.used:
            open_run.sink_queue = self._sink_queue(open_run.config.sink)

    def _sink_queue(self, sink: Sink) -> SinkQueue:
        """Give where a configuration's effects are told; runs of the same share it."""
        found = self._sink_queues.get(sink)
        if found is None:
            found = self._sink_queues[sink] = SinkQueue(sink)
        return found

    async def _open_playback(
        self, config: Config, make: MakeRun, name: str, agent: RedactedText
    ) -> OpenRun:
        try:
            tape = self._find_tape(name)
            if isinstance(tape, RunInfo) and tape.is_only_in_archive:
                tape = await self._restored(tape)
        except UnknownRun as error:
            return refuse_all(make, f"{error}; {error.hint}")
        if isinstance(tape, str):
            return refuse_all(make, tape)
        run = await self._store.runs.create(
            tape.id,
            mode=config.mode.value,
            at_ns=time.time_ns(),
            parent=tape,
            agent=agent,
            classes=classes_digest(config.classes),
        )
        logger.info("run %s: playing %s", run.id, tape.id)
        # Its index may have been replaced meanwhile; from now on it stays for as long as this run is open.
        tape = self._store.runs.reload(tape)
        open_run = make(run, tape)
        if open_run.policy.branch is not None:
            open_run.note(EventKind.NOTED, branch=describe_branch(open_run.policy.branch))
        elif open_run.policy.live:
            # The receipt spares what may go live from being unused, also when it is printed again.
            open_run.note(EventKind.NOTED, live=list_live(open_run))
        return await self._prepare_playback(config, make, open_run)

    async def _prepare_playback(self, config: Config, make: MakeRun, open_run: OpenRun) -> OpenRun:
        """Note the rules of a playback, and read what it needs to know of its tape."""
        if told := describe_classes(config.classes):
            # By these its receipt reads the tape, whatever its requests counted as when they were recorded.
            open_run.note(EventKind.NOTED, classes=told)
        for one in open_run.policy.drift:
            open_run.note(EventKind.NOTED, allow_model_drift=[one.recorded, one.asked])
        note_rules(open_run)
        playback, run = open_run.playback, open_run.info
        if playback is None:
            return open_run
        tape = playback.tape
        if tape.rules != index_digest(open_run.identifier.rules, config):
            if tape.canonical > CANONICAL_VERSION:
                # Sound: the index is made from the raw bytes. But it is another Playhead's idea of the same.
                text = _TOO_NEW.format(
                    tape.id, tape.canonical, CANONICAL_VERSION, shell_word(tape.id)
                )
                logger.warning("%s", text)
                open_run.note(EventKind.NOTED, text=text)
            logger.info("run %s: the match rules changed since it was indexed, indexing", tape.id)
            try:
                await asyncio.to_thread(playback.reindex)
            except LogCorrupt as error:
                # Its own index still stands, but for other rules: everything is refused, and the run says why.
                problem = f"the tape cannot be indexed under the rules of now: {error}"
                logger.error("%s", problem)
                open_run.note(EventKind.NOTED, text=problem)
                return make(run, None, problem)
        if warning := await playback.prepare():
            open_run.note(EventKind.NOTED, text=warning)
        return open_run

    def _find_tape(self, name: str) -> RunInfo | str:
        """Find the tape to play, or say why there is none."""
        if name == "latest":
            latest = self._store.runs.find_latest()
            return latest or "there is no sealed recording yet to play as 'latest'"
        tape = self._store.runs.get(name)
        if not tape.is_tape:
            return f"{name!r} is a playback of {tape.parent!r}; play {tape.parent!r} instead"
        if tape.status is RunStatus.OPEN and self._store.runs.owner_alive(tape):
            return f"run {name!r} is still being recorded; end it with: playhead seal {shell_word(name)}"
        return tape

    async def _restore_line(self, run: RunInfo) -> str:
        """Have a run and those that it resumes in the store again; say why that cannot be."""
        one: RunInfo | None = run
        while one is not None:
            if one.is_only_in_archive:
                restored = await self._restored(one)
                if isinstance(restored, str):
                    return restored
            one = self._store.runs.find_tape(one) if one.parent is not None else None
        return ""

    async def _restored(self, tape: RunInfo) -> RunInfo | str:
        """Have a tape that was archived in the store again, or say why it is not."""
        if self._restore is None:
            return (
                f"run {tape.id!r} is archived; restore it with: playhead show {shell_word(tape.id)}"
            )
        logger.info("run %s: archived, restoring it", tape.id)
        try:
            await asyncio.to_thread(self._restore, tape)
        except PlayheadError as error:
            return f"run {tape.id!r} is archived and cannot be restored: {error}; {error.hint}"
        return self._store.runs.reload(tape)

    async def close(self) -> None:
        """Close the sinks, once every run is sealed."""
        for sink_queue in self._sink_queues.values():
            await sink_queue.close()
        self._sink_queues.clear()
