"""Open the store that a configuration names, with its key."""

import os

from ...config import Config, Durability, Secrets
from ...store import Store, StoreKey, StoreLock, find_key
from ..garbage import look


def open_store(config: Config, *, readonly: bool = False, held: StoreLock | None = None) -> Store:
    """Open a configuration's store.

    held: its lock, where whoever opens it holds it alone, and longer.
    Raises: StoreError, also where its key is missing or another.
    """
    look()  # what the command needs has been imported by now
    power = config.durability is Durability.POWER
    return Store.open(
        config.store,
        readonly=readonly,
        key=configured_key(config),
        held=held,
        power=power,
        originals=config.secrets is Secrets.ENCRYPTED,
    )


def configured_key(config: Config) -> StoreKey | None:
    """Find the key of a configuration's store: in the environment, or in its file.

    Raises: StoreError.
    """
    return find_key(config.encrypt.key_file, os.environ)
