"""`playhead rekey`: change or remove the key of a store."""

from pathlib import Path

from ...config import Config
from ...store import StoreError, read_key
from ...store.encryption.key import VARIABLE
from ...store.maintenance.rekey import rekey
from ..progress import ProgressBar
from .open_store import configured_key


def rekey_store(config: Config, to_key_file: Path | None, *, decrypt: bool) -> str:
    """Put a store under the key in a file, under the configured one, or under none; say what was done.

    Raises: StoreError.
    """
    configured = configured_key(config)
    before, after = configured, None
    if to_key_file is not None:
        after = read_key(to_key_file)
    elif not decrypt:
        before, after = None, configured
        if after is None:
            raise StoreError(
                "no key to encrypt the store under",
                f"`playhead rekey --new-key FILE` makes one; then set encrypt.key_file or {VARIABLE}",
            )
    with ProgressBar("rekeying") as progress:
        done = rekey(config.store, before, after, progress)
    now = f"encrypted under key {after.id.hex()}" if after is not None else "not encrypted"
    if done.already:
        return f"the store at {config.store} is {now}; nothing was left to do"
    summary = f"the store at {config.store} is now {now}: {done.rows} rows, {done.files} files"
    if after is None:
        return f"{summary}\nFrom now on leave encrypt.key_file and {VARIABLE} out."
    return f"{summary}\nFrom now on its key is needed: {after.where}"
