"""Find secrets in the query or fragment of a URL in a text, under names that say something only there: `?key=`, `&sig=`.

What a request's own URL has under these names is a secret by its form (`credential_fields.is_query_secret`). In a text it has to be random,
too: a prompt has many URLs, and the key of an object or the name of an article is in some of them.
"""

import re
from urllib.parse import unquote_to_bytes

from ...credential_fields import KEY, SIGNATURE
from ...looks_like_secret import is_hex, is_random, is_shaped, is_strong
from ..pattern_prefilter import Head
from ..searched_text import Context, Found, Strings

_SIGNATURES = ("sig", "signature", "hmac")
_NAMES = "|".join(("key", *_SIGNATURES))
_LEAST = 16
_V = "[A-Za-z0-9_.~+/=%-]"
QUERY_PARAMETER = Head(f"[?&;#](?:{_NAMES})={_V}{{{_LEAST}}}", caseless=True)
_VALUE = re.compile(_V.encode() + rb"{16,4096}")
_STOPS = b".%"
_REACH = 1024
"""Bytes of a URL before the name."""
_WORD = re.compile(rb"[^\s\"'<>]*")
_URL = re.compile(rb"[\w/.-]\?|://")
"""What a URL has before the name, or its path alone: fields of a form have the same signs between them."""


def find_in_query(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at a parameter whose value begins before a position."""
    data, start = context.data, end - _LEAST
    sign = max(data.rfind(each, max(0, start - 12), start) for each in (b"?", b"&", b";", b"#"))
    name = data[sign + 1 : start - 1].decode("latin-1").lower()
    before = _WORD.match(data[max(0, sign - _REACH) : sign + 1][::-1])
    if name in context.kept or before is None or _URL.search(before[0][::-1]) is None:
        return None
    found = _VALUE.match(data, start)
    if found is None:
        return None
    raw = found[0].rstrip(_STOPS)
    value = unquote_to_bytes(raw)
    signature = name in _SIGNATURES
    told = (is_hex(value) or is_random(value)) if signature else is_strong(value)
    if not told or not is_shaped(value):
        return None
    kind = SIGNATURE if signature else KEY
    return Found(start, start + len(raw), kind, learn=not signature)
