"""Close the runs whose process has died: an effect without an outcome is unknown, never `not sent`."""

import logging
import time

import lmdb

from ...tape.exchange import Seq
from ...tape.records.events import EventKind
from ..errors import LogCorrupt, StoreError
from ..tables.events import EventLog
from ..tables.run_info import RunStatus
from ..tables.runs import DIED, RunList

logger = logging.getLogger(__name__)


def recover(transaction: lmdb.Transaction, runs: RunList, log: EventLog) -> None:
    """End the runs that are open and whose process is gone. Writer's thread."""
    for number in runs.open_numbers(transaction):
        try:
            info = runs.load(transaction, number)
        except LogCorrupt as error:  # the other runs are sound
            logger.error("%s", error)
            continue
        if info is None or runs.owner_alive(info):
            continue
        unknown: set[Seq] = set()
        reason = DIED
        try:
            for event in log.read_in(transaction, number):
                if event.kind is EventKind.INTENT:
                    unknown.add(event.seq)
                elif event.kind is EventKind.OUTCOME:
                    unknown.discard(event.seq)
        except LogCorrupt as error:
            reason += f"; {error}"
        data = {"unknown": sorted(unknown)}
        try:
            runs.end(transaction, info, RunStatus.RECOVERED, reason, time.time_ns(), data)
        except StoreError as error:  # nothing can be put behind its last row
            logger.error("run %s cannot be ended: %s", info.id, error)
