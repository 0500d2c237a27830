"""Choose the cipher of a store: encrypted if there is a key, else plain."""

from .key import StoreKey
from .plain import StoreCipher


def choose_cipher(key: StoreKey | None) -> StoreCipher:
    """Give the cipher for a key, or the plain cipher."""
    if key is None:
        return StoreCipher()
    from .encrypted import AesCipher  # a store without a key does not wait for its imports

    return AesCipher(key)
