"""Runs a filter in the kernel's classic bytecode, as the kernel would, on any machine."""

import struct
from collections.abc import Callable

_SIZES = {0x00: 4, 0x08: 2, 0x10: 1}


def run(program: bytes, look: Callable[[int, int], int]) -> int:
    """Give what a filter returns.

    look: (place, bytes) -> what stands there.
    """
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator = index = at = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        kind, mode = code & 0x07, code & 0xE0
        if code == 0xB1:
            index = 4 * (look(k, 1) & 0xF)
        elif kind == 0x00:
            accumulator = look(k + (index if mode == 0x40 else 0), _SIZES[code & 0x18])
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        elif kind == 0x05:
            holds = {
                0x10: accumulator == k,
                0x30: accumulator >= k,
                0x40: bool(accumulator & k),
            }[code & 0xF0]
            at += yes if holds else no
        elif kind == 0x06:
            return int(k)
        else:
            raise AssertionError(hex(code))
