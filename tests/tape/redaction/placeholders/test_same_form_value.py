"""What is made in the place of a secret: of its form, of few characters, and never the secret."""

import base64
import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import assume, example, given
from hypothesis import strategies as st

from playhead.tape.records.credential_parts import read_pair
from playhead.tape.redaction.finding.format_table import FORMATS, expand
from playhead.tape.redaction.placeholders.prefixes import PREFIXES, prefix_size
from playhead.tape.redaction.placeholders.same_form_value import (
    is_versioned_uuid,
    make_alike,
    make_run_alike,
    make_uuid_alike,
    reads_as_made,
)

SEEDS = [hashlib.sha256(bytes([number])).digest() for number in range(8)]
_VALUES = st.from_regex(r"[A-Za-z0-9_.+/=-]{1,80}", fullmatch=True).map(str.encode)


def jwt(claims: object, **header: str) -> bytes:
    """Make a token; its signature is nothing."""
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256", **header}, claims)]
    coded = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (*parts, bytes(range(256)))]
    return b".".join(coded)


def entropy(value: bytes) -> float:
    """Give the bits a character, as scanners count them."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


@given(_VALUES, st.binary(min_size=32, max_size=32))
def test_length_and_seed_decide(value: bytes, seed: bytes) -> None:
    """The same value gives the same; what is no letter or digit stays where base64 is not coded anew."""
    made = make_alike(value, seed)
    assert len(made) == len(value)
    assert made == make_alike(value, seed)
    assert [code for code in made if code in b".="] == [code for code in value if code in b".="]


@given(_VALUES, st.binary(min_size=32, max_size=32))
@example(b"0000000000000/0", bytes(32))
def test_what_was_made_of_a_long_value_reads_so(value: bytes, seed: bytes) -> None:
    """From 14 letters and digits on; a shorter one could be anything."""
    letters = re.sub(rb"[^A-Za-z0-9]", b"", value[prefix_size(value) :])
    if len(letters) >= 14 and not value.startswith(b"eyJ"):
        assert reads_as_made(make_alike(value, seed))
    if len(set(letters)) > 12:
        assert not reads_as_made(value)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_made_jwt_reads_so(seed: bytes) -> None:
    """Its issuer and short claims may be anything; no token that was signed does."""
    value = jwt({"iss": "https://accounts.example.com", "sub": "bob", "to": "zV8kQ2mXv9LpZ4tWc8N"})
    made = make_alike(value, seed)
    assert reads_as_made(made)
    assert not reads_as_made(value)
    head, claims, signature = value.split(b".")
    assert not reads_as_made(b".".join([head, claims, made.split(b".")[2]]))
    assert not reads_as_made(b".".join([*made.split(b".")[:2], signature]))


_BEGINNINGS = [
    (begins, row.then)
    for row in FORMATS
    for begins in row.begins
    # the header of a token stays as its own, and what ends so is a place
    if row.test != "header" and begins[-1] not in "/="
]


_UNIT = re.compile(r"(\(\?:[^()]*\)|\[[^\]]*\]|\\.|.)(?:\{(\d+)(?:,\d*)?\}|(\?))?")
_SIGNS = "".join(map(chr, range(33, 127)))


def make_shortest(pattern: str, chance: Random) -> str:
    """Make a text of a pattern of the table, of the least length."""
    made = ""
    for unit, least, optional in _UNIT.findall(pattern):
        for _ in range(0 if optional else int(least or 1)):
            if unit.startswith("(?:"):
                made += make_shortest(unit[3:-1].partition("|")[0], chance)
            else:
                made += chance.choice([sign for sign in _SIGNS if re.fullmatch(unit, sign)])
    return made


@pytest.mark.parametrize(("begins", "then"), _BEGINNINGS, ids=[one for one, _ in _BEGINNINGS])
def test_every_beginning_of_the_table_of_formats_stays(begins: str, then: str) -> None:
    """In the placeholder of a value of that format, whatever else such a beginning may be."""
    text = make_shortest(expand(then), Random(begins))
    assert re.fullmatch(expand(then), text)
    made = make_alike(f"{begins}{text}".encode(), SEEDS[0])
    assert made.startswith(begins.encode())
    assert made != f"{begins}{text}".encode()


def test_the_beginning_of_a_secret_of_nobody_does_not_stay() -> None:
    """It is a known prefix only with all of the format behind it."""
    for value in (b"SKhunter2hunter2x", b"pathunter2hunter2", b"cio2hunter2hunter"):
        assert prefix_size(value) == 0


FORMS = [
    ("sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f", r"sk-proj-[A-Za-z0-9]{32}"),
    ("hunter2hunter2", r"[a-z0-9]{14}"),
    ("Tr0ub4dor&3", r"[A-Z][a-z]\d[a-z]{2}\d[a-z]{3}&\d"),
    ("pat-na1-6f1d9c0e-7b2a-4c3d-9e8f-0a1b2c3d4e5f", r"pat-na1-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}"),
    ("0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318", r"0x[0-9a-f]{64}"),
    ("9F86D081884C7D659A2FEAA0C55AD015", r"[0-9A-F]{32}"),
    ("9f86d081", r"[0-9a-f]{8}"),
    ("JBSWY3DPEHPK3PXP", r"[A-Z2-7]{16}"),
    ("1234567890123456", r"\d{16}"),
    ("xapp-1-A02CD3EF4GH-1234567890123-0123456789abcdef0123456789abcdef", r"xapp-1-A[0-9A-Z]{10}-\d{13}-[0-9a-f]{32}"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "form"), FORMS)
def test_a_value_keeps_its_form(value: str, form: str) -> None:
    """Clients check it."""
    made = {make_alike(value.encode(), seed) for seed in SEEDS}
    assert all(re.fullmatch(form, one.decode()) for one in made), made
    assert len(made) == len(SEEDS)
    assert value.encode() not in made


@given(st.from_regex(r"[A-Za-z0-9]{14,80}", fullmatch=True), st.sampled_from(PREFIXES))
def test_what_is_long_has_few_characters(value: str, prefix: bytes) -> None:
    """Below the entropy from which scanners report a value; 28 bits are left to tell secrets apart."""
    # Behind `$7$` parameters of the hash come, which stay: that is a longer prefix.
    assume(prefix_size(prefix + value.encode()) == len(prefix))
    made = make_alike(prefix + value.encode(), SEEDS[0])
    assert made.startswith(prefix)
    behind = made[len(prefix) :]
    few = len(set(behind))
    assert few <= 4 + 1  # the last one, where base64 wants it
    assert entropy(behind) <= 2.4
    assert len(behind) * math.log2(max(2, few - 1)) >= 14


@pytest.mark.parametrize("size", range(20, 60))
def test_base64_stays_what_strict_decoders_take(size: int) -> None:
    """Padding stays, and the bits behind the end are 0."""
    value = base64.b64encode(bytes((7 * at + size) % 256 for at in range(size)))
    for seed in SEEDS:
        made = make_alike(value, seed)
        assert base64.b64encode(base64.b64decode(made, validate=True)) == made


def test_a_pair_in_base64_can_be_split() -> None:
    """User and password are others, each as long as it was."""
    value = base64.b64encode(b"bob:correct-horse-1")
    user, password = base64.b64decode(make_alike(value, SEEDS[0])).split(b":")
    assert (len(user), len(password)) == (3, 15)
    assert user != b"bob"
    assert b"horse" not in password


def test_a_token_keeps_what_a_client_reads() -> None:
    """Its header, dates and issuer; who it is about and the signature are others."""
    claims = {"iss": "https://i.test/", "sub": "bob@b.test", "exp": 1767229200, "admin": False}
    value = jwt(claims | {"roles": ["owner\n"], "at": {"iss": 1}}, kid="k1")
    made = make_alike(value, SEEDS[0])
    head, body, signature = made.split(b".")
    assert head == value.split(b".")[0]
    assert list(map(len, (head, body, signature))) == list(map(len, value.split(b".")))
    said = json.loads(base64.urlsafe_b64decode(body + b"=="))
    assert {**said, "sub": "", "roles": ""} == {**claims, "sub": "", "roles": "", "at": {"iss": 1}}
    assert said["sub"] != claims["sub"]
    assert said["roles"] != ["owner\n"]
    assert signature != value.rpartition(b".")[2]


def test_json_stays_json() -> None:
    """As in the cookie of a session."""
    value = b'{"token": "s3cret\\u00e9 \\n", "n": 12, "ok": true}'
    made = json.loads(make_alike(value, SEEDS[0]))
    assert list(made) == ["token", "n", "ok"]
    assert (made["n"], made["ok"]) == (12, True)
    assert re.fullmatch(r"[a-z]\d[a-z]{4}é \n", made["token"])
    assert "s3cret" not in made["token"]


def test_a_token_whose_header_is_none_is_a_text() -> None:
    """Then every part is another one."""
    value = b"eyJhYmMiOiJkZWYifQ.eyJhYmMiOiJkZWYifQ.eyJhYmMiOiJkZWYifQ"
    made = make_alike(value, SEEDS[0])
    assert not any(
        one == other for one, other in zip(made, value, strict=True) if chr(one).isalnum()
    )


KEYS: dict[str, tuple[Callable[[], Any], str]] = {
    "ed25519": (lambda: ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)), "PKCS8"),
    "P-256": (lambda: ec.derive_private_key(7, ec.SECP256R1()), "PKCS8"),
    "P-384": (lambda: ec.derive_private_key(7, ec.SECP384R1()), "PKCS8"),
    "P-256, SEC1": (lambda: ec.derive_private_key(7, ec.SECP256R1()), "TraditionalOpenSSL"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_another_one(name: str) -> None:
    """It loads, in lines as long as they were."""
    make, form = KEYS[name]
    key = make()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        getattr(serialization.PrivateFormat, form),
        serialization.NoEncryption(),
    )
    lines = pem.splitlines(keepends=True)
    made = make_alike(b"\n" + b"".join(lines[1:-1]), SEEDS[0])
    other = serialization.load_pem_private_key(lines[0].rstrip() + made + lines[-1], None)
    assert type(other) is type(key)
    assert [len(line) for line in made.splitlines()] == [0, *(len(one) - 1 for one in lines[1:-1])]
    assert made.strip() not in pem


def test_a_key_that_cannot_be_made_is_base64() -> None:
    """One of RSA would take seconds."""
    key = rsa.generate_private_key(65537, 1024)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    body = b"".join(pem.splitlines(keepends=True)[1:-1])
    made = make_alike(body, SEEDS[0])
    assert base64.b64decode(made)
    assert list(map(len, made.splitlines())) == list(map(len, body.splitlines()))


@pytest.mark.parametrize("prefix", [b"ghp_", b"gho_", b"npm_"])
def test_no_checksum_fits(prefix: bytes) -> None:
    """Whatever chance says."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for seed in SEEDS:
        made = make_alike(prefix + b"A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5abcdef", seed)
        number = 0
        for letter in made[-6:].decode():
            number = number * 62 + digits.index(letter)
        assert number != zlib.crc32(made[4:-6])


@given(st.from_regex(r"[A-Za-z0-9]{8,70}", fullmatch=True), st.sampled_from(SEEDS))
def test_letters_and_digits_are_made_alike_in_both_ways(text: str, seed: bytes) -> None:
    """The short way is for most secrets; a pair in base64 takes the other one."""
    value = text.encode()
    if read_pair(value) is None:
        assert make_run_alike(value, seed) == make_alike(value, seed)


@given(st.uuids(version=4), st.booleans(), st.sampled_from(SEEDS))
def test_a_uuid_is_made_alike_in_both_ways(value: UUID, capitals: bool, seed: bytes) -> None:
    """Version and variant stay."""
    text = str(value).upper() if capitals else str(value)
    made = make_uuid_alike(text.encode(), seed)
    assert is_versioned_uuid(made)
    assert made == make_alike(text.encode(), seed)


def test_what_is_no_sequence_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried: that takes a millisecond."""
    tried: list[object] = []
    monkeypatch.setattr(
        serialization, "load_der_private_key", lambda *told, **_: tried.append(told)
    )
    for body in (b"M" + b"A" * 63, base64.b64encode(b"\x30\x2f" + bytes(46))):
        make_alike(b"\n" + body + b"\n", SEEDS[0])
    assert tried == []
    make_alike(b"\n" + base64.b64encode(b"\x30\x2e" + bytes(46)) + b"\n", SEEDS[0])
    assert len(tried) == 1
