"""Choose how a store keeps its rows and body files: plain, or encrypted where there is a key."""

from .key import StoreKey
from .plain import Vault


def open_vault(key: StoreKey | None) -> Vault:
    """Give the vault for a key, or the plain one."""
    if key is None:
        return Vault()
    from .encrypted import Sealed  # a store without a key does not wait for its imports

    return Sealed(key)
