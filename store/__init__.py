"""The store: the event log, the exchanges and their index, and the list of runs, in one LMDB environment.

`Store.open` gives one LMDB environment in a folder. Its parts have the methods: `store.runs.create(...)`, `store.exchanges.find(...)`;
`store/store.py` lists them. Writes go through its one writer thread and are told of after their commit; reads are short
transactions, from any thread and any process.
"""

from .encryption.key import StoreKey, find_key, make_key_file, read_key
from .errors import (
    LogCorrupt,
    NoStore,
    RunOpen,
    StoreError,
    StoreTooNew,
    StoreUnwritable,
    UnknownRun,
)
from .folder_ownership import (
    make_own_folder,
    require_own_contents,
    require_own_file,
    require_own_folder,
)
from .lmdb.free_space import put_ballast, without_ballast
from .lmdb.lock import StoreLock, hold_alone
from .maintenance.compact import compact
from .maintenance.ingest import Ingest
from .store import Store
from .tables.exchanges import Record
from .tables.run_info import Archived, Made, Owner, RunInfo, RunStatus, Told

__all__ = [
    "Archived",
    "Ingest",
    "LogCorrupt",
    "Made",
    "NoStore",
    "Owner",
    "Record",
    "RunInfo",
    "RunOpen",
    "RunStatus",
    "Store",
    "StoreError",
    "StoreKey",
    "StoreLock",
    "StoreTooNew",
    "StoreUnwritable",
    "Told",
    "UnknownRun",
    "compact",
    "find_key",
    "hold_alone",
    "make_key_file",
    "make_own_folder",
    "put_ballast",
    "read_key",
    "require_own_contents",
    "require_own_file",
    "require_own_folder",
    "without_ballast",
]
