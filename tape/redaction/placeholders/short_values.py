"""Placeholders of short values: a permutation of all values of one form, so that no two of them have the same.

Made by chance, as those of long values are, two of ten digits would soon have the same placeholder, and one customer would be taken for
another. Which value a placeholder stands for only the key tells.

The values of a form are numbers below some n. A network of Feistel permutes the numbers below the next power of four; who comes out at n or
above goes through it again (cycle walking). A value becomes the one behind it in that order, so it is never its own placeholder.

Source: NIST SP 800-38G (format-preserving encryption), Black and Rogaway, "Ciphers with arbitrary finite domains" (2002).
"""

import hmac
from collections.abc import Iterable
from math import prod

LONGEST = 7
"""Bytes of a short value: of eight digits two have the same placeholder once in a hundred million."""
_ROUNDS = 10
_ALPHABETS = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_OF = {code: alphabet for alphabet in _ALPHABETS for code in alphabet}


def permute_short(value: bytes, key: bytes) -> bytes:
    """Give what stands for a short value: a digit for a digit, a small letter for a small one, a capital for a capital."""
    alphabets = [_OF.get(code, b"") for code in value]
    sizes = [len(one) for one in alphabets if one]
    if not sizes:
        return value
    form = bytes(one[0] if one else code for one, code in zip(alphabets, value, strict=True))
    size = prod(sizes)
    number = 0
    for alphabet, code in zip(alphabets, value, strict=True):
        if alphabet:
            number = number * len(alphabet) + alphabet.index(code)
    seed = hmac.digest(key, b"short\0" + form, "sha256")
    rounds = range(_ROUNDS)
    number = (_walk(number, size, seed, reversed(rounds)) + 1) % size
    number = _walk(number, size, seed, rounds)
    made = bytearray(value)
    for at in reversed(range(len(value))):
        if alphabets[at]:
            number, digit = divmod(number, len(alphabets[at]))
            made[at] = alphabets[at][digit]
    return bytes(made)


def _walk(number: int, size: int, seed: bytes, rounds: Iterable[int]) -> int:
    """Permute the numbers below a size; with the rounds in reverse, undo that."""
    bits, turns = max(1, ((size - 1).bit_length() + 1) // 2), tuple(rounds)
    back = turns[0] != 0
    while True:
        number = _pass(number, bits, seed, turns, back=back)
        if number < size:
            return number


def _pass(number: int, bits: int, seed: bytes, turns: tuple[int, ...], *, back: bool) -> int:
    mask = (1 << bits) - 1
    left, right = number >> bits, number & mask
    for turn in turns:
        source = left if back else right
        mixed = hmac.digest(seed, b"%d:%d" % (turn, source), "sha256")
        mark = int.from_bytes(mixed[:8]) & mask
        if back:
            left, right = right ^ mark, left
        else:
            left, right = right, left ^ mark
    return left << bits | right
