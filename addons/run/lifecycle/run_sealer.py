"""Seal runs: what is under way is finished or kept, what is missing is told, and the run is closed for good."""

import asyncio
import contextlib
import logging
import time

from ....store import RunInfo, Store, StoreError, StoreUnwritable
from ....tape.policy.approval_decision import ApprovalDecision, Ruling
from ..gaps import Gap
from ..pending_exchange import on_their_way
from ..run_state import OpenRun
from .log_run_rules import note_slow
from .run_hooks import RunHooks

logger = logging.getLogger(__name__)

_REFUSED_S = 2.0
"""Longest wait for the refusal of what a gate held when its run ends."""
_LOOK_S = 0.25
_MOST_ENDED = 100


class RunSealer:
    """Seals the runs of a store."""

    def __init__(self, store: Store, hooks: RunHooks) -> None:
        """Seal runs of `store`; ask `hooks` to keep what is under way."""
        self._store = store
        self._hooks = hooks
        self.sealing: dict[asyncio.Task[None], OpenRun] = {}
        self.ended: list[RunInfo] = []
        """Runs that were sealed by this process, for the receipt at the end."""
        self.closed = False
        """Whether the proxy stops."""

    def begin(self, open_run: OpenRun, reason: str) -> "asyncio.Task[None]":
        """Begin to seal a run; it is sealed once what is in flight is done."""
        task = asyncio.get_running_loop().create_task(self._seal(open_run, reason))
        self.sealing[task] = open_run
        task.add_done_callback(self.sealing.pop)
        return task

    def hurry(self) -> None:
        """Seal what is ending without waiting for what is in flight."""
        for open_run in self.sealing.values():
            open_run.hurry()

    async def close(self, patience_s: float | None) -> None:
        """Wait until all are sealed.

        patience_s: longest wait for what is in flight; None waits as long as each run's grace allows.
        """
        if self.sealing and patience_s is not None:
            await asyncio.wait(list(self.sealing), timeout=patience_s)
            self.hurry()
        if self.sealing:
            await asyncio.wait(list(self.sealing))

    async def _seal(self, open_run: OpenRun, reason: str) -> None:
        try:
            await self._settle(open_run)
            while True:
                try:
                    await self._seal_whole(open_run, reason)
                    break
                except StoreUnwritable:
                    if self.closed:
                        raise
                    await self._writable()
        except StoreError as error:
            # The next process that opens the store finds the run open and its owner gone: recovered.
            name = open_run.info.id if open_run.info is not None else ""
            logger.error("run %s could not be sealed: %s", name, error)

    async def _writable(self) -> None:
        """Wait until the store can be written, or the proxy stops."""
        writer = self._store.writer
        while writer.failed is not None and not self.closed:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(_LOOK_S)

    async def _settle(self, open_run: OpenRun) -> None:
        settled = await open_run.settled(open_run.config.runs.grace_s)
        if not settled:
            await _refuse_held(open_run)
        open_run.lifetime.unfinished = tuple(
            sorted(pending.seq for pending in on_their_way(open_run))
        )
        if not settled and self._hooks.on_unfinished is not None:
            for pending in list(on_their_way(open_run)):
                with contextlib.suppress(StoreUnwritable):  # a gap
                    await self._hooks.on_unfinished(pending)
        playback = open_run.playback
        if playback is not None and playback.preparing is not None:
            await asyncio.wait([playback.preparing])
        with contextlib.suppress(StoreUnwritable):
            for keep in self._hooks.on_ending:
                await keep(open_run)
            note_slow(open_run)
        if self._hooks.on_ended is not None:
            await self._hooks.on_ended(open_run)
        if open_run.sink_queue is not None:
            await open_run.sink_queue.settle(open_run.reporter)

    async def _seal_whole(self, open_run: OpenRun, reason: str) -> None:
        await self.report_gap(open_run, ending=True)
        if open_run.info is not None:
            run = await self._store.runs.seal(
                open_run.info,
                reason=reason,
                at_ns=time.time_ns(),
                unfinished=open_run.lifetime.unfinished,
            )
            self.ended.append(run)
            del self.ended[:-_MOST_ENDED]
            logger.info("run %s: sealed, %d exchanges (%s)", run.id, run.exchanges, reason)

    async def report_gap(self, open_run: OpenRun, *, ending: bool = False) -> None:
        """Say in a run's log what is missing: that there is a gap while it lasts, and once it is over what.

        ending: no more of the run follows.
        """
        writer = self._store.writer
        if open_run.lifetime.begin_later is not None and (writer.failed is None or ending):
            await open_run.lifetime.begin_later()
        if open_run.info is None:
            if open_run.lifetime.begin_later is not None and ending:
                raise StoreUnwritable("the run could not be begun", "nothing of it was recorded")
            return
        number, gap = open_run.info.number, open_run.gap
        if number in writer.lost:
            gap.note(str(writer.failed or "rows of it could not be written"))
        if not gap.open or (writer.failed is not None and gap.begun and not ending):
            return
        if writer.failed is not None and not ending:
            gap.begun = True
            await self._store.events.append_durably(number, gap.begin_event(), vital=True)
            return
        open_run.gap, lost = Gap(), writer.take_lost(number)
        try:
            await self._store.events.append_durably(number, gap.end_event(lost), vital=True)
        except StoreUnwritable:
            gap.add(open_run.gap)
            open_run.gap = gap
            writer.count_lost(number, lost)
            raise

    async def give_up_overdue(self, open_run: OpenRun) -> None:
        """Keep what there is of answers that go on long after their clients have left."""
        for pending in list(on_their_way(open_run)):
            if pending.is_overdue and self._hooks.on_overdue is not None:
                await self._hooks.on_overdue(pending)


async def _refuse_held(open_run: OpenRun) -> None:
    """Refuse what gates still hold, and wait until that is kept: nothing but words follows the end of a run."""
    ended = ApprovalDecision(Ruling.ENDED)
    held = [
        one
        for one in on_their_way(open_run)
        if one.held.approval is not None and one.held.approval.decide(ended)
    ]
    await asyncio.gather(*(pending.ended(_REFUSED_S) for pending in held))
