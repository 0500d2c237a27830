"""Choose the cipher of a store: encrypted if there is a key, else plain."""

from .cipher import StoreCipher
from .key import StoreKey
from .plain_cipher import PlainCipher


def choose_cipher(key: StoreKey | None) -> StoreCipher:
    """Give the cipher for a key, or the plain cipher."""
    if key is None:
        return PlainCipher()
    from .aes_cipher import AesCipher  # a store without a key does not wait for its imports

    return AesCipher(key)
