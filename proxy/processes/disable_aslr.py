"""Start a command without address space randomisation: a hash or an order that follows from an address comes again, then.

Linux alone, and where it is allowed: the default profile of docker forbids it. Processes that the command starts inherit it, but for
those with the set-user-ID bit.

Source: personality(2), ADDR_NO_RANDOMIZE.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Mapping

_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF


@contextlib.contextmanager
def fixed_addresses(variables: Mapping[str, str]) -> Iterator[None]:
    """Have what this thread starts in the context run at fixed addresses, if its clock is recorded or replayed.

    variables: of the command (`preload_bundle.py`).
    """
    if sys.platform != "linux" or variables.get("PLAYHEAD_CLOCK", "off") == "off":
        yield
        return
    personality = ctypes.CDLL(None, use_errno=True).personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(_ASK)
    if before < 0 or personality(before | _NO_RANDOMIZE) < 0:
        yield
        return
    try:
        yield
    finally:
        personality(before)
