"""Make secrets that are more than a draw: tokens with parts, keys that load, numbers with check digits.

A maker is named in a case as `{make: jwt, alg: RS256}`. Keys are derived from the generator, never from the machine's randomness.
"""

import base64
import json
import math
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any

from .secret_draws import BadRecipe, draw
from .secret_texts import b64url


def compact(value: Any) -> bytes:
    """Write JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def _jwt(given: Mapping[str, Any], rng: Random) -> str:
    """alg, header (more of it), claims (instead of the default ones)."""
    alg = str(given.get("alg", "HS256"))
    signature = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64, "EdDSA": 64, "PS256": 256}[
        alg
    ]
    claims = given.get("claims") or {
        "iss": "https://issuer.example.test/",
        "sub": draw("user_<A20>", rng),
        "iat": 1_767_225_600,
        "exp": 1_767_229_200,
        "jti": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    }
    header = {"alg": alg, "typ": "JWT", **given.get("header", {})}
    return ".".join(map(b64url, (compact(header), compact(claims), rng.randbytes(signature))))


def _jwe(given: Mapping[str, Any], rng: Random) -> str:
    header = {"alg": given.get("alg", "RSA-OAEP"), "enc": given.get("enc", "A256GCM")}
    key = 0 if header["alg"] == "dir" else 256
    parts = (
        compact(header),
        rng.randbytes(key),
        rng.randbytes(12),
        rng.randbytes(120),
        rng.randbytes(16),
    )
    return ".".join(map(b64url, parts))


_TRIED = {"rsa": (501, 1264)}
"""By seed, how many numbers are drawn until one is prime: to look for it takes seconds."""


def _prime(rng: Random, bits: int, tried: int = 0) -> int:
    """Draw numbers until one is prime.

    tried: which one is; 0 where that is not known.
    """
    if tried:
        return [rng.getrandbits(bits) for _ in range(tried)][-1] | (3 << (bits - 2)) | 1
    small = [
        number
        for number in range(3, 2000, 2)
        if all(number % d for d in range(3, 45, 2) if d < number)
    ]
    while True:
        found = rng.getrandbits(bits) | (3 << (bits - 2)) | 1
        if (
            all(found % number for number in small)
            and pow(2, found - 1, found) == 1
            and found % 65537 != 1
        ):
            return found


@cache
def _rsa(seed: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import rsa

    rng = Random(seed)
    tried = _TRIED.get(seed, (0, 0))
    p, q = sorted((_prime(rng, 1024, tried[0]), _prime(rng, 1024, tried[1])), reverse=True)
    d = pow(65537, -1, math.lcm(p - 1, q - 1))
    public = rsa.RSAPublicNumbers(65537, p * q)
    return rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public
    ).private_key()


def _armour(label: str, body: bytes, width: int = 64) -> str:
    text = base64.b64encode(body).decode()
    lines = [text[place : place + width] for place in range(0, len(text), width)]
    return "\n".join([f"-----{'BEGIN'} {label}-----", *lines, f"-----{'END'} {label}-----", ""])


def _openssh(rng: Random) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = rng.randbytes(32)
    public = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()

    def field(data: bytes) -> bytes:
        return len(data).to_bytes(4) + data

    kind = b"ssh-ed25519"
    check = rng.randbytes(4) * 2
    inner = check + field(kind) + field(public) + field(secret + public) + field(b"agent@host")
    inner += bytes(range(1, 1 + -len(inner) % 8))
    outer = b"openssh-key-v1\0" + field(b"none") * 2 + field(b"") + (1).to_bytes(4)
    return _armour(
        "OPENSSH PRIVATE KEY", outer + field(field(kind) + field(public)) + field(inner), 70
    )


def _pem(given: Mapping[str, Any], rng: Random) -> str:
    """type: rsa, pkcs8-rsa, ec, pkcs8-ec, ed25519, openssh; encrypted, dsa and pgp have the shape alone."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    kind = str(given.get("type", "pkcs8-rsa"))
    old = serialization.PrivateFormat.TraditionalOpenSSL
    match kind:
        case "rsa" | "pkcs8-rsa":
            key = _rsa(str(given.get("seed", "rsa")))
        case "ec" | "pkcs8-ec":
            key = ec.derive_private_key(rng.getrandbits(255) | 1, ec.SECP256R1())
        case "ed25519":
            key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        case "openssh":
            return _openssh(rng)
        case "encrypted":
            return _armour("ENCRYPTED PRIVATE KEY", b"\x30\x82\x05\x36" + rng.randbytes(1300))
        case "dsa":
            return _armour("DSA PRIVATE KEY", b"\x30\x82\x03\x53" + rng.randbytes(850))
        case "pgp":
            return _armour("PGP PRIVATE KEY BLOCK", b"\x95\x03\x98\x04" + rng.randbytes(1500))
        case _:
            raise BadRecipe(f"no key of type {kind}")
    form = old if kind in ("rsa", "ec") else serialization.PrivateFormat.PKCS8
    made: bytes = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return made.decode()


def _putty(_: Mapping[str, Any], rng: Random) -> str:
    def lines(size: int) -> list[str]:
        text = base64.b64encode(rng.randbytes(size)).decode()
        return [text[place : place + 64] for place in range(0, len(text), 64)]

    public, private = lines(51), lines(36)
    head = ["PuTTY-User-Key-File-3: ssh-ed25519", "Encryption: none", "Comment: agent@host"]
    mac = rng.randbytes(32).hex()
    lines_of_key = [
        f"Public-Lines: {len(public)}",
        *public,
        f"Private-Lines: {len(private)}",
        *private,
    ]
    return "\n".join([*head, *lines_of_key, f"Private-MAC: {mac}", ""])


def _base64(given: Mapping[str, Any], rng: Random) -> str:
    """of: a recipe; url: true for base64url without padding."""
    text = draw(str(given["of"]), rng).encode()
    return b64url(text) if given.get("url") else base64.b64encode(text).decode()


def _json(given: Mapping[str, Any], rng: Random) -> str:
    """begin and end, and between them base64 of a JSON object whose texts are recipes."""
    value = {name: draw(text, rng) for name, text in given["of"].items()}
    return f"{given.get('begin', '')}{b64url(compact(value))}{draw(given.get('end', ''), rng)}"


def _bytes(given: Mapping[str, Any], rng: Random) -> str:
    """hex: what the bytes begin with; length: how many follow. Written as base64."""
    return base64.b64encode(
        bytes.fromhex(given.get("hex", "")) + rng.randbytes(given["length"])
    ).decode()


def _luhn(given: Mapping[str, Any], rng: Random) -> str:
    """of: a recipe of digits; one more makes them the number of a card."""
    digits = draw(str(given["of"]), rng)
    doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(digits))]
    return digits + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def _iban(given: Mapping[str, Any], rng: Random) -> str:
    """country and of: a recipe of digits; the two digits of the check are put between them."""
    country, digits = str(given["country"]), draw(str(given["of"]), rng)
    number = int("".join(str(int(letter, 36)) for letter in digits + country + "00"))
    return f"{country}{98 - number % 97:02}{digits}"


MAKERS: dict[str, Callable[[Mapping[str, Any], Random], str]] = {
    "base64": _base64,
    "bytes": _bytes,
    "iban": _iban,
    "json": _json,
    "jwe": _jwe,
    "jwt": _jwt,
    "luhn": _luhn,
    "pem": _pem,
    "putty": _putty,
}


def make(recipe: str | Mapping[str, Any], rng: Random) -> str:
    """Make a value of a recipe or of a maker, `{make: jwt, alg: RS256}`."""
    if isinstance(recipe, str):
        return draw(recipe, rng)
    if recipe.get("make") not in MAKERS:
        raise BadRecipe(f"no maker {recipe.get('make')!r}")
    return MAKERS[recipe["make"]](recipe, rng)
