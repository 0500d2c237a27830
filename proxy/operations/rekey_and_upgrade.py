"""`playhead rekey` and `playhead upgrade`: change or remove the key of a store; upgrade the store, or files."""

from pathlib import Path

from ...config import Config
from ...store import StoreError, read_key
from ...store.encryption.key import VARIABLE
from ...store.maintenance.rekey import rekey
from ...store.maintenance.upgrade import upgrade
from ...timeline.formats.upgrade_file import upgrade_file
from ..progress import ProgressBar
from .open_store import configured_key
from .restore_archived import require_pyarrow


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
    outside = after is not None and (
        after.where == VARIABLE
        or not Path(after.where).resolve().is_relative_to(config.store.resolve())
    )
    with ProgressBar("rekeying") as progress:
        done = rekey(config.store, before, after, progress, originals=outside)
    now = f"encrypted under key {after.id.hex()}" if after is not None else "not encrypted"
    if done.already:
        return f"the store at {config.store} is {now}; nothing was left to do"
    summary = f"the store at {config.store} is now {now}: {done.rows} rows, {done.files} files"
    if done.dropped:
        summary += f"\n{done.dropped} originals of secrets were removed: they are kept only under a key from outside the store"
    if after is None:
        return f"{summary}\nFrom now on leave encrypt.key_file and {VARIABLE} out."
    return f"{summary}\nFrom now on its key is needed: {after.where}"


def upgrade_store(config: Config, *, backup: bool) -> str:
    """Bring the configured store to the current format; say what was done.

    Raises: StoreError.
    """
    with ProgressBar("backing up") as copying, ProgressBar("upgrading") as progress:
        done = upgrade(
            config.store,
            configured_key(config),
            backup=backup,
            copying=copying,
            progress=progress,
        )
    if done.before == done.after:
        return (
            f"the store at {config.store} has format {done.after}, the current one; nothing to do"
        )
    summary = f"the store at {config.store} is upgraded from format {done.before} to {done.after}"
    if done.backup is None:
        return summary
    return f"{summary}\nThe old version is in {done.backup}: remove it once you do not need it any more"


def upgrade_one(path: Path) -> str:
    """Bring a tape, or a file of an archive, to the current version of its format; say what was done.

    Raises: StoreError; PlayheadError without pyarrow.
    """
    if path.suffix == ".parquet":
        require_pyarrow()
    done = upgrade_file(path)
    if done.backup is None:
        return f"{path}: {done.kind} of version {done.after}, the current one; nothing to do"
    return f"{path}: {done.kind} upgraded from version {done.before} to {done.after}; the old version is {done.backup}"
