"""Assemble classic BPF programs, with names instead of jump distances.

A program is a list of instructions and of labels; a jump names the label it goes to, None is the next instruction.
Source: Linux, Documentation/networking/filter.rst.
"""

import struct
from typing import NamedTuple

LOAD, LOAD_HALF, LOAD_BYTE = 0x20, 0x28, 0x30
"""Of the place `k`: of packets in network order, of a system call in the machine's."""
LOAD_HALF_AT, LOAD_BYTE_AT, LOAD_AT = 0x48, 0x50, 0x40
"""The same, with the index register added."""
HEADER_LENGTH = 0xB1
"""The length of an IPv4 header at `k`, into the index register."""
AND = 0x54
EQUAL, AT_LEAST, ANY_BIT = 0x15, 0x35, 0x45
GOTO, RETURN = 0x05, 0x06


class Op(NamedTuple):
    """One instruction."""

    code: int
    k: int = 0
    yes: str | None = None
    """Label to go to where a comparison holds."""
    no: str | None = None


def assemble(program: list[Op | str]) -> bytes:
    """Give a program as the kernel wants it.

    Raises: ValueError, on a jump backwards or further than the bytecode can tell.
    """
    places: dict[str, int] = {}
    steps: list[Op] = []
    for part in program:
        if isinstance(part, str):
            places[part] = len(steps)
        else:
            steps.append(part)
    return b"".join(_encode(step, index, places) for index, step in enumerate(steps))


def _encode(step: Op, index: int, places: dict[str, int]) -> bytes:
    def distance(label: str | None) -> int:
        far = 0 if label is None else places[label] - index - 1
        if far < 0 or far > 255:
            raise ValueError(f"no jump from {index} to {label!r}")
        return far

    if step.code == GOTO:
        return struct.pack("=HBBI", step.code, 0, 0, distance(step.yes))
    return struct.pack("=HBBI", step.code, distance(step.yes), distance(step.no), step.k)
