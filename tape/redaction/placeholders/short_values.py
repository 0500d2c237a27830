"""Placeholders of short values: a permutation of all values of one form, so that no two of them have the same.

Made by chance, as those of long values are, two of ten digits would soon have the same placeholder, and one customer would be taken for
another. Which value a placeholder stands for only the key tells.

Each letter or digit is moved on in its alphabet, from the last to the first, by a number that the key gives for what is before it in the
value and behind it in the placeholder. From the first to the last that can be undone, so no two values have one placeholder. No number is
0, so no character stays. Each character depends on all of the value.
"""

import hmac

LONGEST = 7
"""Bytes of a short value: of eight digits two have the same placeholder once in a hundred million."""
_ALPHABETS = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_OF = {code: alphabet for alphabet in _ALPHABETS for code in alphabet}


def permute_short(value: bytes, key: bytes) -> bytes:
    """Give what stands for a short value: a digit for a digit, a small letter for a small one, a capital for a capital."""
    made = bytearray(value)
    for at in reversed(range(len(value))):
        alphabet = _OF.get(value[at])
        if alphabet is not None:
            told = hmac.digest(
                key, b"short\0%d:%b%b" % (at, value[:at], bytes(made[at + 1 :])), "sha256"
            )
            step = 1 + int.from_bytes(told[:8]) % (len(alphabet) - 1)
            made[at] = alphabet[(alphabet.index(value[at]) + step) % len(alphabet)]
    return bytes(made)
