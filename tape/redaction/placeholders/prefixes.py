"""Known prefixes of keys and tokens: they say whose a secret is, and nothing of the secret.

They are those of the table of formats, and a few more. Some beginnings in the table are no name of an issuer: a secret of anybody may have
them. They are prefixes of what has the whole format, and of nothing else.
"""

import re

from ..finding.format_table import FORMATS, expand

_NO_ISSUERS = frozenset(
    (
        *("0.A", "1.A", "4/0A", "4b1d", "API-", "EAAAE", "EAAB", "EAAC", "EAAG", "EAAM", "EZAK"),
        *("EZTK", "FwoGZXIvYXdz", "IQoJb3JpZ2luX2Vj", "SK", "aoaAA", "aorAAA", "cio", "cmVmdGtu"),
        *("dG9rO", "eyJrIjoi", "oy2", "pa-", "pat", "secret_", "sgp_local_", "st.", "xapp-1-"),
        *(
            "1000.",
            "A3-",
            "NF-",
            "ext_",
            "live_",
            "na1.",
            "pat.",
            "pk_",
            "sat.",
            "sc_",
            "sl.",
            "test_",
        ),
    )
)
"""Beginnings of formats that a secret of anybody may have."""
_MORE = frozenset(
    (
        *("sk-ant-ort01-", "dp.st.", "pypi-", "xapp-1-A", "0x"),
        *(f"v{version}.{use}." for version in range(1, 5) for use in ("local", "public")),  # PASETO
    )
)
_OF_FORMATS = {
    begins: row.then
    for row in FORMATS
    for begins in row.begins
    # Those of a JSON Web Token are its header, and what ends so is a place.
    if row.test != "header" and begins[-1] not in "/="
}
_ANY = re.compile(b"")
_PREFIXES: tuple[tuple[bytes, re.Pattern[bytes]], ...] = tuple(
    (
        begins.encode(),
        re.compile(f"(?:{expand(_OF_FORMATS[begins])})\\Z".encode())
        if begins in _NO_ISSUERS
        else _ANY,
    )
    for begins in sorted(_OF_FORMATS.keys() | _MORE, key=len, reverse=True)
)
"""Longest first, each with what has to be behind it."""
PREFIXES = tuple(prefix for prefix, then in _PREFIXES if then is _ANY)
"""Those that are prefixes of any value."""
_BY_BEGINNING: dict[bytes, list[tuple[bytes, re.Pattern[bytes]]]] = {}
for _prefix, _then in _PREFIXES:
    _BY_BEGINNING.setdefault(_prefix[:2], []).append((_prefix, _then))
_COST = re.compile(
    rb"\$2[aby]\$[0-9]{2}\$|\$[56]\$rounds=[0-9]{4,9}\$|\$argon2(?:id|i|d)\$(?:v=[0-9]{1,3}\$)?m=[0-9]{1,8},t=[0-9]{1,4},p=[0-9]{1,3}\$|"
    rb"\$g?y\$[A-Za-z0-9./]{1,8}\$|\$7\$[A-Za-z0-9./]{11}|\$?pbkdf2(?:[_-]sha(?:1|256|512))?\$[0-9]{1,8}\$|(?:scrypt|pbkdf2:sha(?:256|512)):[0-9]{1,8}(?::[0-9]{1,3}){0,2}\$|"
    rb"SCRAM-SHA-(?:1|256|512)\$[0-9]{1,8}:"
)
_BEGIN_COST = (b"$", b"p", b"s", b"S")
"""How a hash of a password begins that says what it costs: with another cost, who checks a password would take another time."""
_LEAST = 12
"""Characters behind a prefix, so that no short secret is given away by its beginning."""


def prefix_size(value: bytes) -> int:
    """Give the length of the longest known prefix of a value, 0 where it has none."""
    cost = _COST.match(value) if value[:1] in _BEGIN_COST else None
    if cost is not None and len(value) - cost.end() >= _LEAST:
        return cost.end()
    for prefix, then in _BY_BEGINNING.get(value[:2], ()):
        size = len(prefix)
        if value.startswith(prefix) and len(value) - size >= _LEAST and then.match(value, size):
            return size
    return 0
