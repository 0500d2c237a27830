"""Read an `authorization` field by its parts: which of them count, and which stand for a credential.

A signature is made anew for each request, with its date and nonce; whose it is, for which service and over which fields is
not. So a signed value counts by its scheme and those parts, and its key is linked (`linked_values.py`). A JSON Web Token that a client
signs anew for each call says who signs, and until when: it counts by its signer. Any other value is a credential as a whole,
beside its scheme.

Source: AWS Signature Version 4; RFC 5849 section 3.5.1; RFC 7616 section 3.4; Azure Storage "Authorize with Shared Key"; Cosmos DB "Access control";
Service Bus "Shared access signatures"; RFC 7519 (JWT).
"""

import base64
import json
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from ..records.credential_parts import find_parts

_SIGV4 = frozenset(
    (b"aws4-hmac-sha256", b"aws4-ecdsa-p256-sha256", b"goog4-rsa-sha256", b"goog4-hmac-sha256")
)
_OAUTH_NOISE = frozenset((b"oauth_nonce", b"oauth_timestamp", b"oauth_signature"))
_OAUTH_KEYS = frozenset((b"oauth_consumer_key", b"oauth_token", b"oauth_verifier"))
_DIGEST = (b"algorithm", b"qop", b"realm")
_SAS_NOISE = frozenset((b"sig", b"se"))
_COSMOS = re.compile(rb"type(?:=|%3d)[a-z]+(?:&|%26)ver", re.IGNORECASE)
_TIMES = frozenset(("iat", "exp", "nbf"))
_SIGNED = _TIMES | {"iss"}
_PAIR = re.compile(rb'\s*([A-Za-z0-9_.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,]*)')
MARK = b"\x00"
"""Stands for a credential."""
EMPTY = b"\x00empty"
"""Stands for a credential without a value, which every server takes for none."""
_NOTHING = re.compile(rb"""(?:[\s"']|%2[27]|%20)*""")
_COLON = re.compile(rb"(?:[A-Za-z0-9+/_-]{2})?=*")
"""One byte in base64. `Basic` needs a colon, so this is the colon alone, without user and password."""


class Authorization(NamedTuple):
    """What is compared of a value."""

    form: bytes
    """Its scheme and its other parts, with a mark for each credential."""
    credentials: tuple[bytes, ...]
    """In their order."""
    parts: tuple[bytes, ...] = ()
    """Credentials in them."""


def is_empty(value: bytes) -> bool:
    """Say whether a value has nothing but spaces and quotes; a placeholder keeps them."""
    return _NOTHING.fullmatch(value) is not None


@lru_cache(maxsize=256)
def read_authorization(value: bytes) -> Authorization:
    """Take an `authorization` value apart. Remembered: an agent sends the same one with each request."""
    found = _read(value.strip())
    basic = found.form.startswith(b"basic ")
    parts = [part for one in found.credentials for part in find_parts(one, basic=basic)]
    found = found._replace(parts=(*found.parts, *parts))
    empty = [is_empty(one) for one in found.credentials]
    if not any(empty):
        return found
    pieces = found.form.split(MARK)
    marks = [EMPTY if one else MARK for one in empty]
    if len(pieces) != len(marks) + 1:  # of Cosmos DB, whose form has no mark
        return Authorization(found.form + EMPTY, ())
    form = pieces[0] + b"".join(mark + piece for mark, piece in zip(marks, pieces[1:], strict=True))
    left = (one for one, none in zip(found.credentials, empty, strict=True) if not none)
    return Authorization(form, tuple(left), found.parts)


def _read(value: bytes) -> Authorization:
    if _COSMOS.match(value):
        return _read_cosmos(value)
    scheme, space, rest = value.partition(b" ")
    if not space:
        return Authorization(MARK, (value,))
    word, rest = scheme.lower(), rest.strip()
    if word in _SIGV4:
        return _read_sigv4(word, rest)
    if word == b"oauth":
        return _read_oauth(word, rest)
    if word in (b"sharedkey", b"sharedkeylite") and b":" in rest:
        account, _, signature = rest.partition(b":")
        signed = EMPTY if is_empty(signature) else b""
        return Authorization(word + b" " + account + signed, ())
    if word == b"aws" and b":" in rest:  # version 2
        return Authorization(word + b" " + MARK, (rest.partition(b":")[0],))
    if word == b"sharedaccesssignature":
        kept = [part for part in rest.split(b"&") if part.partition(b"=")[0] not in _SAS_NOISE]
        return Authorization(word + b" " + b"&".join(sorted(kept)), ())
    if word == b"digest":
        return _read_digest(word, rest)
    if word == b"bearer" and (signer := _read_signer(rest)) is not None:
        return Authorization(word + b" " + MARK, (signer,))
    if word == b"basic" and _COLON.fullmatch(rest):
        rest = b""
    return Authorization(word + b" " + MARK, (rest,))


def _read_signer(token: bytes) -> bytes | None:
    """Give who signed a token that says nothing else, with how; None for any other token.

    A placeholder keeps both. One with a subject is somebody's, who is told by the token alone.
    """
    parts = token.split(b".")
    if len(parts) != 3 or not token.startswith(b"eyJ") or not parts[2]:
        return None
    head, claims = (_read_json(one) for one in parts[:2])
    if not head or not claims or not claims.keys() <= _SIGNED or not claims.keys() & _TIMES:
        return None
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or not issuer:
        return None
    return json.dumps([head, issuer], sort_keys=True).encode()


def _read_json(part: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_sigv4(word: bytes, rest: bytes) -> Authorization:
    pairs = dict(_pairs(rest))
    scope = pairs.get(b"credential", b"").rsplit(b"/", 4)
    if len(scope) != 5:
        return Authorization(word + b" " + MARK, (rest,))
    key, _, *place = scope
    form = b"/".join((word, *place)) + b" " + pairs.get(b"signedheaders", b"").lower()
    return Authorization(form + (EMPTY if is_empty(key) else b""), () if is_empty(key) else (key,))


def _read_digest(word: bytes, rest: bytes) -> Authorization:
    # The target is compared itself, and the rest is made of a nonce.
    pairs = dict(_pairs(rest))
    told = [name + b"=" + pairs[name] for name in _DIGEST if name in pairs]
    user = pairs.get(b"username") or pairs.get(b"username*") or b""
    none = b"" if user and not is_empty(user) else EMPTY
    return Authorization(word + b" " + b",".join(told) + none, (), () if none else (user,))


def _read_oauth(word: bytes, rest: bytes) -> Authorization:
    told, credentials = [], []
    for name, value in sorted(_pairs(rest)):
        if name in _OAUTH_KEYS:
            credentials.append(value)
            value = MARK
        if name not in _OAUTH_NOISE:
            told.append(name + b"=" + value)
    return Authorization(word + b" " + b",".join(told), tuple(credentials))


def _read_cosmos(value: bytes) -> Authorization:
    pairs = dict(part.partition(b"=")[::2] for part in unquote_to_bytes(value).split(b"&"))
    kind, version = pairs.get(b"type", b""), pairs.get(b"ver", b"")
    # A token of a directory is a credential; a signature with the master key is made anew each time.
    credentials = (pairs.get(b"sig", b""),) if kind != b"master" else ()
    return Authorization(b"cosmos type=" + kind + b"&ver=" + version, credentials)


def _pairs(rest: bytes) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value.strip().strip(b'"')) for name, value in _PAIR.findall(rest)]
