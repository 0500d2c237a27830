"""What encryption costs a row, in microseconds: encrypting on the thread that writes, decrypting where it is read.

Measured on the cipher alone, against the one that does nothing.
"""

import os
from functools import partial

from measure import Plan
from redact import took_us
from report import Bar, Section

from playhead.store import StoreKey
from playhead.store.encryption.choose import choose_cipher
from playhead.store.lmdb_keys import pair_key

BAR_US = 40.0
_KEY = pair_key(1, 1)
_SIZES = {"an event, 300 bytes": 300, "an exchange, 60 KB": 60_000, "an exchange, 0.6 MB": 600_000}


def encryption(plan: Plan) -> list[Section]:
    """Measure ciphers."""
    section = Section(
        "Encryption of a value", ("value", "encrypt, median us", "decrypt, median us")
    )
    raw: dict[str, list[float]] = {}
    for key in (None, StoreKey(os.urandom(32), "a benchmark")):
        cipher = choose_cipher(key)
        for name, size in _SIZES.items():
            place, encrypted = cipher.encrypt("exchanges", _KEY, os.urandom(size))
            times = [
                _median(plan, f"{name}, {what}, {key is not None}", work, raw)
                for what, work in (
                    ("encrypt", partial(cipher.encrypt, "exchanges", _KEY, os.urandom(size))),
                    ("decrypt", partial(cipher.decrypt, "exchanges", place, encrypted)),
                )
            ]
            shown = name if key else f"{name}, without a key"
            section.rows.append((shown, *(f"{time:.1f}" for time in times)))
    section.bars.append(
        Bar("encrypting 60 KB", BAR_US, raw["an exchange, 60 KB, encrypt, True"][0], "us")
    )
    section.raw = raw
    return [section]


def _median(plan: Plan, name: str, work: partial[object], raw: dict[str, list[float]]) -> float:
    raw[name] = sorted(took_us(work) for _ in range(max(5, plan.rounds)))
    return raw[name][len(raw[name]) // 2]
