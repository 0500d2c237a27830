"""Choose how a store keeps its rows and body files: plain, or encrypted where there is a key."""

from .key import StoreKey
from .plain import StoreCipher


def choose_cipher(key: StoreKey | None) -> StoreCipher:
    """Give the cipher for a key, or the plain one."""
    if key is None:
        return StoreCipher()
    from .encrypted import AesCipher  # a store without a key does not wait for its imports

    return AesCipher(key)
