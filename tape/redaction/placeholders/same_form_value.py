"""Make a value that is like a secret: of its form, so that clients work with it, and of few characters, so that scanners stay silent.

| form | what stays | |
|---|---|---|
| a known prefix | the prefix | a checksum behind it does not fit |
| JSON Web Token | header, numbers, truth values, `iss`, the length of each part | all other texts are made alike |
| `user:password` in base64 | the colon | both are made alike and coded again |
| a key in DER (the body of PEM) | length, lines | of Ed25519 and of elliptic curves it is another key; others do not load |
| a text in base64 | the blanks around it | it is made alike and coded again (`placeholder.py`) |
| JSON | names, numbers, truth values | all other texts are made alike |
| UUID, also as `urn:uuid:` | version, variant | |
| hexadecimal, base32, base64 | alphabet, padding, bits behind the end that are 0 | |
| anything else | all but letters and digits | a digit for a digit, a small letter for a small one, a capital for a capital |

What has many letters and digits becomes two, three or four different ones, with at least 28 bits of chance: scanners of code hosts
take what has so few for no secret.

Source: RFC 7519 (JWT), RFC 4648 (base16 to base64), RFC 9562 (UUID), GitHub's and npm's pages on the form of their tokens.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import shake_256

from ...records.credential_parts import find_open, find_tokens, read_text, read_uuid
from ..looks_like_secret import has_checksum
from .prefixes import prefix_size

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_DIGITS = b"0123456789"

_FEW = ((32, 2), (20, 3), (14, 4))
"""From so many letters and digits on, of how many different ones they are made: 28 bits at least."""
_CHOSEN = {_DIGITS: b"2345", _LOWER: b"abcd", _UPPER: b"ABCD"}
"""Those that are in every alphabet: hexadecimal, base32, base58, base64."""
_ALL_CHOSEN = frozenset(b"".join(_CHOSEN.values()))
_LONG = 8
"""Letters and digits beside each other from which hexadecimal is known by them."""
_OTHER = 0x2D
"""What is no letter or digit."""
_LAST = {1: b"AEIMQUYcgkosw048", 2: b"AQgw"}
"""What may be last in base64 by the characters of padding, the bits behind the end being 0."""

_RUN = re.compile(rb"[A-Za-z0-9]+")
_SIGNS = bytes(frozenset(range(256)) - frozenset(_DIGITS + _LOWER + _UPPER))
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_BASE32 = re.compile(rb"[A-Z2-7]{16,}")
_UUID = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-([1-8])[0-9a-f]{3}-([89ab])[0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{15,}(={0,2})")
_CODED = re.compile(rb"[A-Za-z0-9+/]{8,}={0,2}")
_JOSE = re.compile(rb"eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2,4}")
_PAIR = re.compile(rb"[ -9;-~]*:[ -~]+")
_DER = re.compile(rb"\s*M[A-Za-z0-9+/]{15,}(?:\s+[A-Za-z0-9+/]+)*={0,2}\s*")
_SEQUENCE = 0x30
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?')
_ESCAPE = re.compile(rb"(\\(?:u[0-9A-Fa-f]{4}|.))")
_CHECKED = re.compile(rb"(?:gh[pousr]_|npm_)([A-Za-z0-9]{36})")


class Chance:
    """Bytes that depend on a seed alone; each part of a value takes others."""

    def __init__(self, seed: bytes) -> None:
        """Take the seed, of any length."""
        self._seed = seed
        self._parts = 0

    def draw(self, size: int) -> bytes:
        """Give so many bytes."""
        self._parts += 1
        if self._parts == 1 and size <= len(self._seed):
            return self._seed[:size]
        return shake_256(b"%d:%b" % (self._parts, self._seed)).digest(size)


def make_alike(value: bytes, seed: bytes, kept: Sequence[tuple[int, int]] = ()) -> bytes:
    """Make a value that is like another one, and as long; it depends on the two alone.

    kept: places that may stay as they are, for somebody else writes them; of a form with parts they may not.
    """
    chance = Chance(seed)
    if value.startswith(b"eyJ") and _JOSE.fullmatch(value):
        return _jose(value, chance) or _text(value, chance, kept)
    if _CODED.fullmatch(value):
        return _pair(value, chance) or _text(value, chance, kept)
    if value.startswith((b"{", b"[")):
        return _strings(value, chance, kept=b"") or _text(value, chance, kept)
    if _DER.fullmatch(value):
        return _key(value, chance) or _text(value, chance, kept)
    return _text(value, chance, kept)


def make_run_alike(value: bytes, seed: bytes) -> bytes:
    """Make the same of letters and digits alone as `make_alike` does, which most secrets are: in half the time.

    value: eight of them or more, which are no pair in base64.
    """
    size, begin = len(value), prefix_size(value)
    few = next((few for least, few in _FEW if size - begin >= least), 0)
    if not few:
        return _text(value, Chance(seed))
    drawn = Chance(seed).draw(size)
    run = value[begin:]
    of_few = _of_few(few, not run.isalpha(), run != run.upper(), run != run.lower())
    made = bytearray(value[:begin]) + _write_few(run, drawn[begin:], *of_few)
    if value[-1] in _LAST.get((begin - size) % 4, b""):
        _end_base64(value, made, begin, drawn)
    return bytes(made)


_IN_UUID = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36))
_KEPT_IN_UUID = (14, 19)
"""The version and the variant."""


def make_uuid_alike(value: bytes, seed: bytes) -> bytes:
    """Make the same of a UUID that has a version and a variant as `make_alike` does."""
    drawn = Chance(seed).draw(len(value))
    made = bytearray(value)
    for start, end in _IN_UUID:
        run = value[start:end]
        of_few = _of_few(_FEW[0][1], not run.isalpha(), run != run.upper(), run != run.lower())
        made[start:end] = _write_few(run, drawn[start:end], *of_few)
    for at in _KEPT_IN_UUID:
        made[at] = value[at]
    return bytes(made)


def is_versioned_uuid(value: bytes) -> bool:
    """Say whether a value is a UUID that has a version and a variant."""
    return len(value) == _IN_UUID[-1][1] and _UUID.fullmatch(value) is not None


def reads_as_made(value: bytes) -> bool:
    """Say whether a value has so many letters and digits and so few different ones as `make_alike` makes: it is hardly a secret.

    Of a JSON Web Token its signature and each long text of its claims have to, of tokens beside signs each.
    """
    if (uuid := read_uuid(value)) is not None:
        value = uuid
    text = read_text(value)
    if text is not None and reads_as_made(text.strip()):
        return True
    if not value.startswith(b"eyJ") or not _JOSE.fullmatch(value):
        return _has_few(value) or _has_made_tokens(value)
    claims, *rest = value.split(b".")[1:]
    try:
        texts = _long_texts(_from_url(claims))
    except ValueError:  # they are encrypted
        texts = [claims]
    texts += [part for part in rest[:-1] if _is_long(part)]
    return _has_few(rest[-1]) and all(map(_has_few, texts))


def _long_texts(claims: bytes) -> list[bytes]:
    """Give the texts of claims that are long enough to become few characters; `iss` is none, for it stays."""
    json.loads(claims)
    found, key = [], b""
    for string in _STRING.finditer(claims):
        if string[2] is not None:
            key = string[1]
        elif key != b"iss" and _is_long(string[1]):
            found.append(string[1])
    return found


def _has_made_tokens(value: bytes) -> bool:
    tokens = find_tokens(value)
    rest, at = list[bytes](), prefix_size(value)
    for start, end in sorted((*tokens, *find_open(value))):
        rest.append(value[at:start])
        at = end
    around = b" ".join((*rest, value[at:]))
    return (
        bool(tokens)
        and all(reads_as_made(value[start:end]) for start, end in tokens)
        and _ALL_CHOSEN.issuperset(b"".join(_RUN.findall(around)))
    )


def _is_long(text: bytes) -> bool:
    return bool(_how_few(text))


def _how_few(text: bytes) -> int:
    """Give how many different letters and digits a text is made of; 0 for as many as there are."""
    count = len(text.translate(None, _SIGNS))
    for least, few in _FEW:
        if count >= least:
            return few
    return 0


def _has_few(value: bytes) -> bool:
    begin = prefix_size(value)
    made = bytearray(value)
    for uuid in _UUID.finditer(value):
        made[uuid.start(1)] = made[uuid.start(2)] = made[uuid.start()]
    coded = _BASE64.fullmatch(value, begin)
    if coded is not None:
        made[coded.start(1) - 1] = _OTHER  # it counts, and may be any
    runs = _RUN.findall(made, begin)
    few = _how_few(value[begin:])
    codes = frozenset(code for chosen in _CHOSEN.values() for code in chosen[:few])
    return bool(few) and all(len(set(run)) <= few and codes.issuperset(run) for run in runs)


# ---- letters and digits --------------------------------------------------------------------------


def _text(value: bytes, chance: Chance, kept: Sequence[tuple[int, int]] = ()) -> bytes:
    """Make each letter and digit another one, behind a prefix and outside of some places."""
    begin = prefix_size(value)
    uuids = list(_UUID.finditer(value)) if value.count(b"-") >= 4 else []
    few = _how_few(value[begin:])
    drawn = chance.draw(len(value))
    made = bytearray(value)
    for found in _find_runs(value, begin, kept):
        run, (start, end) = found[0], found.span()
        by = drawn[start:end]
        if few:
            of_few = _of_few(few, not run.isalpha(), run != run.upper(), run != run.lower())
            made[start:end] = _write_few(run, by, *of_few)
            continue
        in_uuid = any(uuid.start() <= start < uuid.end() for uuid in uuids)
        others = _of_many(run, is_hex=in_uuid or _is_hex(run))
        made[start:end] = [others[code][draw] for code, draw in zip(run, by, strict=True)]
    for uuid in uuids:
        for at in (uuid.start(1), uuid.start(2)):
            made[at] = value[at]
    _end_base64(value, made, begin, drawn)
    return _without_checksum(bytes(made))


def _find_runs(
    value: bytes, begin: int, kept: Sequence[tuple[int, int]]
) -> Iterator[re.Match[bytes]]:
    """Find the letters and digits beside each other, outside of some places."""
    for start, end in kept:
        if begin < end:
            yield from _RUN.finditer(value, begin, start)
            begin = end
    yield from _RUN.finditer(value, begin)


def _is_hex(run: bytes) -> bool:
    return len(run) >= _LONG and _HEX.fullmatch(run) is not None


@cache
def _of_few(few: int, digits: bool, lower: bool, upper: bool) -> tuple[bytes, dict[int, bytes]]:
    """Give what characters become by what was drawn: few ones, of the classes that a run has; and what these few become, never themselves."""
    has = (digits, lower, upper)
    chosen = [one for one, is_there in zip(_CHOSEN.values(), has, strict=True) if is_there]
    turns = bytes([one[turn] for turn in range(few) for one in chosen])[:few]
    own = {code: _choices(turns, code) for code in turns}
    return _choices(turns, _OTHER), own


def _write_few(run: bytes, drawn: bytes, others: bytes, own: dict[int, bytes]) -> bytearray:
    made = bytearray(drawn.translate(others))
    for code, choices in own.items():
        at = run.find(code)
        while at >= 0:
            made[at] = choices[drawn[at]]
            at = run.find(code, at + 1)
    return made


def _of_many(run: bytes, *, is_hex: bool) -> list[bytes]:
    """Give what each character of a run becomes by what was drawn, never itself: one of its own class."""
    return _of_classes(b"234567" if _BASE32.fullmatch(run) else _DIGITS, 6 if is_hex else 26)


@cache
def _of_classes(digits: bytes, letters: int) -> list[bytes]:
    """Give what each character becomes of its own class."""
    found = [b""] * 128
    for alphabet in (digits, _LOWER[:letters], _UPPER[:letters]):
        for code in alphabet:
            found[code] = _choices(alphabet, code)
    return found


@cache
def _choices(alphabet: bytes, code: int) -> bytes:
    """Give what a character becomes of an alphabet, by each byte that may be drawn."""
    others = alphabet.replace(bytes([code]), b"")
    return bytes([others[drawn * len(others) >> 8] for drawn in range(256)])


def _end_base64(value: bytes, made: bytearray, begin: int, drawn: bytes) -> None:
    """Have the bits behind the end of base64 be 0, where they were: strict decoders want it."""
    found = _BASE64.fullmatch(value, begin)
    if found is None:
        return
    at = found.start(1) - 1
    last = _LAST.get(len(found[1]) or -(at + 1 - begin) % 4, b"")
    if value[at] not in last:
        return
    classes = [one for one in _CHOSEN if not frozenset(value[begin : at + 1]).isdisjoint(one)]
    others = bytes(
        code for code in last if code != value[at] and any(code in one for one in classes)
    )
    if others:
        made[at] = others[drawn[at] * len(others) >> 8]


def _without_checksum(made: bytes) -> bytes:
    """Have no checksum fit: a tape must not look as if it held a token."""
    found = _CHECKED.fullmatch(made)
    if found is None or not has_checksum(found[1]):
        return made
    return made[:-1] + (b"b" if made.endswith(b"a") else b"a")


# ---- forms with parts ----------------------------------------------------------------------------


def _jose(value: bytes, chance: Chance) -> bytes | None:
    """Make a JSON Web Token alike; None where its header is none."""
    head, *parts = value.split(b".")
    try:
        header = json.loads(_from_url(head))
    except ValueError:
        return None
    if not isinstance(header, dict) or header.keys().isdisjoint(("alg", "enc")):
        return None
    made = [_claims(parts[0], chance) or _text(parts[0], chance)]
    made += [_text(part, chance) for part in parts[1:]]
    return b".".join([head, *made])


def _claims(part: bytes, chance: Chance) -> bytes | None:
    """Make the texts of claims alike; None where they are not JSON, as those of an encrypted token."""
    try:
        made = _strings(_from_url(part), chance, kept=b"iss")
    except ValueError:
        return None
    return base64.urlsafe_b64encode(made).rstrip(b"=") if made is not None else None


def _strings(text: bytes, chance: Chance, *, kept: bytes) -> bytes | None:
    """Make the strings of JSON alike, but for its names and the members named `kept`; None where it is none."""
    try:
        json.loads(text)
    except ValueError:
        return None
    key = b""

    def write(found: re.Match[bytes]) -> bytes:
        nonlocal key
        if found[2] is not None:
            key = found[1]
        if found[2] is not None or (kept and key == kept):
            return found[0]
        pieces = _ESCAPE.split(found[1])
        pieces[::2] = [_text(piece, chance) for piece in pieces[::2]]
        return b'"' + b"".join(pieces) + b'"'

    return _STRING.sub(write, text)


def _from_url(part: bytes) -> bytes:
    return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))


def _pair(value: bytes, chance: Chance) -> bytes | None:
    """Make user and password in base64 alike; None where it is something else."""
    try:
        coded = value.rstrip(b"=")
        plain = base64.b64decode(coded + b"=" * (-len(coded) % 4), validate=True)
    except binascii.Error:
        return None
    if not _PAIR.fullmatch(plain):
        return None
    user, colon, password = plain.partition(b":")
    made = base64.b64encode(_text(user, chance) + colon + _text(password, chance))
    return made[: len(value)]


def _key(value: bytes, chance: Chance) -> bytes | None:
    """Make another private key of the same kind and length; None where that cannot be, as with RSA."""
    plain = b"".join(value.split())
    try:
        der = base64.b64decode(plain, validate=True)
    except binascii.Error:
        return None
    if not _is_sequence(der):
        return None
    # It takes long to import, and hardly anybody needs it.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    try:
        # What kind it is, is all that is asked of one of RSA: to try whether its numbers are primes takes a tenth of a second.
        key = serialization.load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    except Exception:  # whatever cryptography has against it
        return None
    other: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    match key:
        case ed25519.Ed25519PrivateKey():
            other = ed25519.Ed25519PrivateKey.from_private_bytes(chance.draw(32))
        case ec.EllipticCurvePrivateKey():
            size = key.curve.key_size
            number = int.from_bytes(chance.draw(size // 8 - 1)) | 1
            other = ec.derive_private_key(number, key.curve)
        case _:
            return None
    plainly = serialization.NoEncryption()
    for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        try:
            same = key.private_bytes(serialization.Encoding.DER, form, plainly) == der
        except ValueError:  # Ed25519 has no other form
            continue
        if same:
            made = base64.b64encode(other.private_bytes(serialization.Encoding.DER, form, plainly))
            return _in_lines(value, made) if len(made) == len(plain) else None
    return None


def _is_sequence(der: bytes) -> bool:
    """Say whether bytes are one sequence of DER, by its first bytes: to find out by trying takes a millisecond."""
    if len(der) < 2 or der[0] != _SEQUENCE:
        return False
    size, more = der[1], der[1] & 0x7F if der[1] & 0x80 else 0
    if more:
        size = int.from_bytes(der[2 : 2 + more])
    return len(der) == 2 + more + size


def _in_lines(value: bytes, made: bytes) -> bytes:
    """Write characters where those of `value` are, its white space staying."""
    codes = iter(made)
    return bytes([code if chr(code).isspace() else next(codes) for code in value])
