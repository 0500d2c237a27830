"""What is remembered: the event log, the exchanges and their index, the list of runs.

`Store.open` gives one LMDB environment in a folder. Writes go through its one writer thread and are told
of after their commit; reads are short transactions, from any thread and any process.
"""

from .compact import compact
from .errors import LogCorrupt, RunOpen, StoreError, StoreTooNew, StoreUnwritable, UnknownRun
from .exchanges import Record
from .intake import Intake
from .key import StoreKey, find_key, make_key_file, read_key
from .lock import StoreLock, hold_alone
from .runs import Owner, RunInfo, RunStatus
from .spool import Spool
from .store import Store

__all__ = [
    "Intake",
    "LogCorrupt",
    "Owner",
    "Record",
    "RunInfo",
    "RunOpen",
    "RunStatus",
    "Spool",
    "Store",
    "StoreError",
    "StoreKey",
    "StoreLock",
    "StoreTooNew",
    "StoreUnwritable",
    "UnknownRun",
    "compact",
    "find_key",
    "hold_alone",
    "make_key_file",
    "read_key",
]
