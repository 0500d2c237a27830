"""Take a credential apart that has others in it.

Those are user and password of HTTP Basic, the words of `Bearer TOKEN` in a field of one's own, and the token of `org7:TOKEN` or
`{"t": "TOKEN"}`.

An agent is given a token and sends it as the password of HTTP Basic. Whose it is can be told only if the placeholder of the
whole is made of those of its parts, so that the token has its own one there, too.

Source: RFC 7617 section 2.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

_CODED = re.compile(rb"[A-Za-z0-9+/]{8,}={0,2}")
_PRINTABLE = re.compile(rb"[ -9;-~]*:[ -~]*")
_CODED_TEXT = re.compile(rb"(?:[A-Za-z0-9+/]{8,}|[A-Za-z0-9_-]{8,})={0,2}")
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_CONTROLS = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n\r")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_LEAST_TEXT = 6
"""Letters and digits of a text; with less the placeholder would say much of it."""
_WORD = re.compile(rb"""(?:[A-Za-z0-9_.-]+=(?=["']?[^\s,;"'=]))?["']?([^\s,;"']+)""")
_MARKED = re.compile(
    rb"(\s*\S*?(?:api-?key|token|bearer(?:\.authorization\.k8s\.io)?|secret|password|auth\w*|jwt)"
    rb"[.:=_-])(\S{6,}\s*)",
    re.IGNORECASE,
)
_MARK = re.compile(rb"\S*(?:api-?key|token|bearer|secret|password|auth\w*|jwt)", re.IGNORECASE)
"""Names of subprotocols that say that a secret follows, in the same one or as the next."""
_BARE = re.compile(rb"\s*(?:eyJ[\w-]+\.[\w.-]+|sk-\S{16,})\s*")
"""Subprotocols that are secrets: JSON Web Tokens and keys of model providers."""
_NO_WORDS = (b"{", b"[", b"-----")
"""What begins documents and keys, which are taken as wholes."""
_LEAST_TOKEN = 16
"""Bytes of a token; what is shorter beside a sign is a name, a number or a date."""
_MOST_TOKENS = 16
_MOST_APART = 4
_MOST_SEARCHED = 64 * 1024
"""Bytes of a credential; what is longer is a document."""
_OUTER = re.compile(rb"%[0-9A-Fa-f]{2}|([A-Za-z0-9._/+-]+(?:={1,2}(?![A-Za-z0-9=]))?)")
"""What is between signs that are in no token, written plainly or as percent-encodings. `=` at the end may be padding of base64."""
_IN_OUTER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+-"
_INNER = (
    (b".", re.compile(rb"([^.]+)")),
    (b"/", re.compile(rb"([^/]+)")),
    (b"+", re.compile(rb"([^+]+)")),
    (
        b"_-",
        re.compile(
            rb"((?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])|[^_-]+)"
        ),
    ),
)
"""Signs that may be in a token, those that are in few of them first, and what is between them; a UUID is one."""
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_UUID_SIZE = 36
_URN = re.compile(rb"urn:uuid:(?=[0-9A-Fa-f-]{36}\Z)", re.IGNORECASE)
_VERSION = re.compile(rb"v[0-9]{1,2}\.(?:(?:local|public)\.)?(?=[^.]{16})")
"""Begins tokens of PASETO, and others."""
_CLAIM = re.compile(
    rb"""(?<![A-Za-z0-9_])(?:(?:exp|iat|nbf|ttl|expires|expiry|max[_-]?age)(?:_in|_at)?=(["']?)[0-9]{1,13}\1(?![A-Za-z0-9._/+=-])"""
    rb"""|(?:scopes?|scp)=(?:"[a-z:._ -]{1,100}"|'[a-z:._ -]{1,100}'|[a-z:._-]{1,100}(?![A-Za-z0-9/+=])))"""
)
"""When a token ends, and what it is for, in it."""
_SIGNED_FOR = re.compile(
    rb"[A-Z0-9]{16,128}(/[0-9]{8}/[a-z0-9-]{1,40}/[a-z0-9-]{1,40}/aws4_request)"
)
"""The credential of a signed URL of AWS: behind the key, what it is signed for."""
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_WHOLE = re.compile(
    rb"-----|\s*M[A-Za-z0-9+/]{15,}(?:\s+[A-Za-z0-9+/]+)*={0,2}\s*\Z|eyJ[\w-]+\.[\w-]*\.[\w.-]*\Z|MI|MC4C|SG\.[\w-]+\.[\w-]+\Z|(?:ya29|hv[sbr])\.[\w.-]+\Z|(?:xkeysib-|glc_|ops_)[\w=+/-]+\Z|[a-z][a-z0-9+.-]*://"
    rb"|\$[\w-]{1,16}\$|\$?(?:pbkdf2|scrypt|bcrypt|argon2|SCRAM|sha[0-9]|md5)[\w:-]*\$",
)
"""Keys in PEM and DER, JSON Web Tokens, formats with signs in them, addresses and hashes of passwords."""


@lru_cache(maxsize=256)
def read_pair(value: bytes, *, basic: bool = False) -> tuple[bytes, bytes] | None:
    """Give user and password that a value means in base64; None where it means none.

    basic: whether it is said to, so that any bytes may be in them.
    """
    if not _CODED.fullmatch(value) and not basic:
        return None
    coded = value.rstrip(b"=")
    try:
        plain = base64.b64decode(coded + b"=" * (-len(coded) % 4), validate=True)
    except binascii.Error:
        return None
    user, colon, password = plain.partition(b":")
    if not colon or not (user or password) or not (basic or _PRINTABLE.fullmatch(plain)):
        return None
    return user, password


def write_pair(value: bytes, user: bytes, password: bytes) -> bytes:
    """Write another user and password, each as long, as `value` has them."""
    return base64.b64encode(user + b":" + password)[: len(value)]


@lru_cache(maxsize=256)
def read_text(value: bytes) -> bytes | None:
    """Give the text that a value means in base64, as one of a Secret of Kubernetes; None where it means none.

    The same for a value and for its placeholder.
    """
    if not _CODED_TEXT.fullmatch(value) or _HEX.fullmatch(value):
        return None
    coded = value.rstrip(b"=")
    try:
        plain = base64.b64decode(coded.translate(_TO_STANDARD) + b"=" * (-len(coded) % 4))
        text = plain.decode()
    except ValueError:
        return None
    if plain.translate(None, _CONTROLS) != plain or write_text(value, plain) != value:
        return None
    return plain if sum(map(str.isalnum, text)) >= _LEAST_TEXT else None


def write_text(value: bytes, text: bytes) -> bytes:
    """Write another text, as long, in base64 as `value` is."""
    coded = base64.b64encode(text)[: len(value)]
    return coded.translate(_TO_URL) if b"-" in value or b"_" in value else coded


def find_words(value: bytes) -> list[tuple[int, int]]:
    """Find the places of the words of a value; none where it is a single one, or no line of words."""
    if b" " not in value or b"\n" in value or value.startswith(_NO_WORDS):
        return []
    return [found.span(1) for found in _WORD.finditer(value)]


def write_words(
    value: bytes, make: Callable[[bytes], bytes], kept: Sequence[tuple[int, int]] = ()
) -> bytes:
    """Write another word in the place of each, but for those that are within places which stay."""
    parts, at = list[bytes](), 0
    for start, end in find_words(value):
        if any(first <= start and end <= last for first, last in kept):
            continue
        parts += (value[at:start], make(value[start:end]))
        at = end
    return b"".join((*parts, value[at:]))


def find_parts(value: bytes, *, basic: bool = False) -> tuple[bytes, ...]:
    """Give the credentials in a credential, in their places; one may be empty."""
    pair = read_pair(value, basic=basic)
    if pair is not None:
        return pair
    return tuple(value[start:end] for start, end in find_words(value))


def is_uuid(value: bytes) -> bool:
    """Say whether a value is a UUID."""
    return len(value) == _UUID_SIZE and _UUID.fullmatch(value) is not None


_VERSIONED = re.compile(rb"[0-9A-Fa-f]{12}[1-8][0-9A-Fa-f]{3}[89ABab][0-9A-Fa-f]{15}")
_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def read_uuid(value: bytes) -> bytes | None:
    """Give a UUID with a version, in whatever spelling, in small letters with hyphens; None where a value is none."""
    if len(value) not in (32, _UUID_SIZE) or (len(value) == _UUID_SIZE and not is_uuid(value)):
        return None
    digits = value.replace(b"-", b"").lower()
    if _VERSIONED.fullmatch(digits) is None:
        return None
    return b"-".join([digits[start:end] for start, end in _GROUPS])


def list_uuid_spellings(uuid: bytes) -> tuple[bytes, ...]:
    """Give the ways in which programs write a UUID, which is in small letters with hyphens."""
    digits = uuid.replace(b"-", b"")
    return uuid, digits, uuid.upper(), digits.upper()


def spell_uuid(value: bytes, uuid: bytes) -> bytes:
    """Write a UUID as `value` is written."""
    written = uuid if b"-" in value else uuid.replace(b"-", b"")
    return written.upper() if value == value.upper() and value != value.lower() else written


def is_single(value: bytes) -> bool:
    """Say at once whether a credential has no other one beside a sign: most are letters and digits, or a UUID."""
    return value.isalnum() or is_uuid(value)


@lru_cache(maxsize=1024)
def find_tokens(value: bytes) -> tuple[tuple[int, int], ...]:
    """Find the places of tokens in a credential that are beside a sign; none where it is a single one.

    The same for a credential and for its placeholder.
    """
    if not _LEAST_TOKEN < len(value) <= _MOST_SEARCHED or is_single(value) or _WHOLE.match(value):
        return ()
    for between in _list_ways(value):
        found = [one.span(1) for one in between.finditer(value) if one[1]]
        if found and found[0] != (0, len(value)):
            spans = [(start, end) for start, end in found if _is_token(value[start:end])]
            return tuple(spans[:_MOST_TOKENS])
    return ()


def _list_ways(value: bytes) -> Iterator[re.Pattern[bytes]]:
    """Give what finds the tokens between signs, for the signs that a value has: between others is all of it."""
    if value.translate(None, _IN_OUTER):
        yield _OUTER
    for signs, between in _INNER:
        if value.translate(None, signs) != value:
            yield between


def _is_token(piece: bytes) -> bool:
    if len(piece) < _LEAST_TOKEN:
        return False
    if piece.isalnum():
        # Of a text in base64 the placeholder may have no digit.
        return not (piece.isalpha() or piece.isdigit()) or read_text(piece) is not None
    return bool(_DIGIT.search(piece) and _LETTER.search(piece))


@lru_cache(maxsize=1024)
def find_open(value: bytes) -> tuple[tuple[int, int], ...]:
    """Find the places in a credential that are no secret, and that whoever gets it may read: they stay in its placeholder.

    They are `urn:uuid:`, versions, times and scopes beside tokens, and for whom a URL is signed. The same for a credential and for
    its placeholder.
    """
    if is_single(value) or len(value) > _MOST_SEARCHED:
        return ()
    signed = _SIGNED_FOR.fullmatch(value)
    if signed is not None:
        return (signed.span(1),)
    if value.startswith(_NO_WORDS) or not find_tokens(value):
        return ()
    begins = _URN.match(value) or _VERSION.match(value)
    found = [] if begins is None else [begins.span()]
    if b"=" in value:
        found += [one.span() for one in _CLAIM.finditer(value)]
    return tuple(found)


def list_tokens(value: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tokens in a credential and those in each of them, with the place where each begins."""
    for start, end in find_tokens(value):
        yield start, value[start:end]
        yield from ((start + at, token) for at, token in list_tokens(value[start:end]))


def list_apart(value: bytes) -> list[bytes]:
    """List the tokens of a credential that whoever gets it may take out of it, as the UUID of a URN, or the secret of `id.secret`.

    Those between `/`, `+`, `-` and `_` are none: most of these are signs of base64.
    """
    tokens = [value[start:end] for start, end in find_tokens(value)]
    if b"." not in value and not value.translate(None, _IN_OUTER):
        return []
    if value.translate(None, _IN_OUTER):
        tokens += [inner for one in tokens if b"." in one for inner in list_apart(one)]
    return tokens[:_MOST_APART]


def form_of(value: bytes) -> tuple[bool, list[tuple[int, int]]]:
    """Say whether a credential is a token in what it is a part of, and where tokens are in it.

    Its placeholder has the same form, so that they are found again.
    """
    if is_single(value):
        return _is_token(value), []
    return _is_token(value), [(at, len(one)) for at, one in list_tokens(value)]


def write_tokens(value: bytes, make: Callable[[bytes], bytes]) -> bytes:
    """Write another token, as long, in the place of each."""
    for start, end in find_tokens(value):
        value = value[:start] + make(value[start:end]) + value[end:]
    return value


def find_in_protocols(value: bytes) -> list[tuple[int, int]]:
    """Find the places of secrets among the subprotocols of a WebSocket, where browsers have to put them."""
    found, at, before = list[tuple[int, int]](), 0, b""
    for part in value.split(b","):
        start = at + len(part) - len(part.lstrip())
        end = at + len(part.rstrip())
        marked = _MARKED.fullmatch(part)
        if marked:
            found.append((at + marked.start(2), end))
        elif start < end and (_BARE.fullmatch(part) or _MARK.fullmatch(before.strip())):
            found.append((start, end))
        at, before = at + len(part) + 1, part
    return found
