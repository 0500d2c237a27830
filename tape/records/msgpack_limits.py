"""Bound the memory that unpacking an untrusted msgpack value takes, without unpacking it.

A value of a few kilobytes can announce arrays of billions in each other, and one byte can be an empty map of 64: so the
values are counted, one by one, before the first is made.
"""

from .codec import BadRecord

MOST_VALUES = 4 << 20
"""About 80 bytes of memory each; a response in 800,000 pieces has as many."""
_CONTAINERS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Bytes of the length, and values for each that it counts."""
_TEXTS = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1), 0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # fmt: skip
"""Bytes of the length, and of what comes between it and the text."""
_SIZES = [1] * 256
for _first, _size in {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}.items():  # fmt: skip
    _SIZES[_first] = _size
for _first in range(0xA0, 0xC0):
    _SIZES[_first] = 1 + (_first & 31)


def check_values(data: bytes, at: int = 0) -> None:
    """Raise BadRecord where a value, or a part of one, announces more than MOST_VALUES.

    at: where it begins.
    """
    count, wanted, size = 0, 1, len(data)
    while wanted and at < size:
        first = data[at]
        wanted -= 1
        count += 1
        if 0x80 <= first < 0xA0:
            wanted += (first & 15) << (first < 0x90)
            at += 1
        elif first in _CONTAINERS:
            width, each = _CONTAINERS[first]
            wanted += each * int.from_bytes(data[at + 1 : at + 1 + width], "big")
            at += 1 + width
        elif first in _TEXTS:
            width, between = _TEXTS[first]
            at += 1 + width + between + int.from_bytes(data[at + 1 : at + 1 + width], "big")
        else:
            at += _SIZES[first]
        if count + wanted > MOST_VALUES:
            raise BadRecord(f"a record of more than {MOST_VALUES} values; so many are not unpacked")
