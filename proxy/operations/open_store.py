"""Open the store that a configuration names, with its key."""

import os

from ...config import Config, Durability, Secrets
from ...store import Store, StoreKey, StoreLock, find_key
from ...store.encryption.key import VARIABLE, NoKey
from ...store.lmdb.open import find_key_id
from ...timeline.reading.present_classes import with_present_classes
from ..garbage import look


def open_store(
    config: Config,
    *,
    readonly: bool = False,
    held: StoreLock | None = None,
    as_recorded: bool = False,
) -> Store:
    """Open a configuration's store. Whoever only reads it sees each request of a tape with its class by the configuration.

    held: its lock, where whoever opens it holds it alone, and longer.
    as_recorded: show requests with the classes that they were recorded with, also to whoever only reads.
    Raises: StoreError, also where its key is missing or another.
    """
    look()  # what the command needs has been imported by now
    power = config.durability is Durability.POWER
    store = Store.open(
        config.store,
        readonly=readonly,
        key=configured_key(config),
        held=held,
        power=power,
        originals=config.secrets is Secrets.ENCRYPTED,
    )
    return with_present_classes(store, config.classes) if readonly and not as_recorded else store


def configured_key(config: Config) -> StoreKey | None:
    """Find the key of a configuration's store: in the environment, or in its file.

    Raises: StoreError, naming the key that the store is encrypted under, where it has one: another opens nothing.
    """
    try:
        return find_key(config.encrypt.key_file, os.environ)
    except NoKey as error:
        found = find_key_id(config.store)
        if not found:
            raise
        raise NoKey(
            str(error),
            f"the store at {config.store} is encrypted under key {found}: give the file that holds that key as"
            f" encrypt.key_file, or its text in {VARIABLE}; a new key does not open it",
        ) from error
