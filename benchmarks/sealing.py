"""What encryption costs a row, in microseconds: sealing on the thread that writes, opening where it is read.

Measured on the vault alone, against the one that does nothing.
"""

import os
from functools import partial

from measure import Plan
from redact import took_us
from report import Bar, Section

from playhead.store import StoreKey
from playhead.store.encryption.choose import open_vault
from playhead.store.keys import pair_key

BAR_US = 40.0
_KEY = pair_key(1, 1)
_SIZES = {"an event, 300 bytes": 300, "an exchange, 60 KB": 60_000, "an exchange, 0.6 MB": 600_000}


def sealing(plan: Plan) -> list[Section]:
    """Measure vaults."""
    section = Section("Encryption of a value", ("value", "seal, median us", "open, median us"))
    raw: dict[str, list[float]] = {}
    for key in (None, StoreKey(os.urandom(32), "a benchmark")):
        vault = open_vault(key)
        for name, size in _SIZES.items():
            place, sealed = vault.seal("exchanges", _KEY, os.urandom(size))
            times = [
                _median(plan, f"{name}, {what}, {key is not None}", work, raw)
                for what, work in (
                    ("seal", partial(vault.seal, "exchanges", _KEY, os.urandom(size))),
                    ("open", partial(vault.open, "exchanges", place, sealed)),
                )
            ]
            shown = name if key else f"{name}, without a key"
            section.rows.append((shown, *(f"{time:.1f}" for time in times)))
    section.bars.append(
        Bar("sealing 60 KB", BAR_US, raw["an exchange, 60 KB, seal, True"][0], "us")
    )
    section.raw = raw
    return [section]


def _median(plan: Plan, name: str, work: partial[object], raw: dict[str, list[float]]) -> float:
    raw[name] = sorted(took_us(work) for _ in range(max(5, plan.rounds)))
    return raw[name][len(raw[name]) // 2]
