"""Known prefixes of keys and tokens: they say whose a secret is, and nothing of the secret.

They are those of the table of formats, but for what is no name of an issuer there, and a few more.
"""

import re

from ..finding.format_table import FORMATS

_NO_ISSUERS = frozenset(
    (
        *("0.A", "1.A", "4/0A", "4b1d", "API-", "EAAAE", "EAAB", "EAAC", "EAAG", "EAAM", "EZAK"),
        *("EZTK", "FwoGZXIvYXdz", "IQoJb3JpZ2luX2Vj", "SK", "aoaAA", "aorAAA", "cio", "cmVmdGtu"),
        *("dG9rO", "eyJrIjoi", "oy2", "pa-", "pat", "secret_", "sgp_local_", "st.", "xapp-1-"),
    )
)
"""Beginnings of formats that a secret of anybody may have, or that are a part of the secret."""
_MORE = frozenset(("sk-ant-ort01-", "dp.st.", "pypi-", "xapp-1-A", "0x"))
_OF_ISSUERS = {
    begins
    for row in FORMATS
    for begins in row.begins
    # Those of a JSON Web Token are its header, and what ends so is a place.
    if row.test != "header" and begins not in _NO_ISSUERS and begins[-1] not in "/="
}
PREFIXES: tuple[bytes, ...] = tuple(
    sorted((begins.encode() for begins in _OF_ISSUERS | _MORE), key=len, reverse=True)
)
"""Longest first."""
_BY_BEGINNING: dict[bytes, list[bytes]] = {}
for _prefix in PREFIXES:
    _BY_BEGINNING.setdefault(_prefix[:2], []).append(_prefix)
_COST = re.compile(rb"\$2[aby]\$[0-9]{2}\$|\$[56]\$rounds=[0-9]{4,9}\$")
"""How a hash of a password begins that says what it costs: with another cost, who checks a password would take another time."""
_LEAST = 12
"""Characters behind a prefix, so that no short secret is given away by its beginning."""


def prefix_size(value: bytes) -> int:
    """Give the length of the longest known prefix of a value, 0 where it has none."""
    cost = _COST.match(value) if value[:1] == b"$" else None
    if cost is not None and len(value) - cost.end() >= _LEAST:
        return cost.end()
    for prefix in _BY_BEGINNING.get(value[:2], ()):
        if value.startswith(prefix) and len(value) - len(prefix) >= _LEAST:
            return len(prefix)
    return 0
