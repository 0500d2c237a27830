"""Values behind telling names: what a key may look like, and what names say of it."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

_DIGITS = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
_ADDRESS = "0x" + _DIGITS[:40]
_HEX = "0x" + _DIGITS

KEYS = [
    "PRIVATE_KEY={}",
    'PRIVATE_KEY="{}"',
    "export DEPLOYER_PRIVATE_KEY={}",
    "private_key: {}",
    'private_key = "{}"',
    "SECRET_KEY={}",
    "API_KEY={}",
    "ENCRYPTION_KEY={}",
    "WALLET_SECRET={}",
    "DB_PASSWORD={}",
    "cast send --private-key {}",
    "cast send --private-key={} x",
    "ENV PRIVATE_KEY {}",
    '{{"privateKey":"{}"}}',
    '{{"name": "PRIVATE_KEY", "value": "{}"}}',
    "<privateKey>{}</privateKey>",
]
STAY = [
    ("TX_HASH={}", _HEX),
    ("transaction_hash: {}", _HEX),
    ('{{"hash": "{}", "blockHash": "0x1"}}', _HEX),
    ("PUBLIC_KEY={}", _HEX),
    ("AUTHENTICATION_KEY={}", _HEX),
    ("STORAGE_KEY={}", _HEX),
    ("L2_TOKEN={}", _HEX),
    ("signature: {}", _HEX),
    *((text, _ADDRESS) for text in ("PRIVATE_KEY={}", "API_KEY={}", "owner_secret: {}")),
    ("WALLET_SECRET={}", "0x" + "0" * 24 + _DIGITS[:40]),
]


@pytest.mark.parametrize("text", KEYS)
@pytest.mark.parametrize("value", [_HEX, _DIGITS], ids=["0x", "plain"])
def test_a_key_in_hexadecimal_is_found(text: str, value: str) -> None:
    """Behind a name that says nothing else, with `0x` and without."""
    assert _DIGITS not in Redactor(b"key").redact_text(text.format(value) + "\n")


@pytest.mark.parametrize(("text", "value"), STAY)
def test_hashes_and_addresses_stay(text: str, value: str) -> None:
    """Under names of their own; 40 digits under any name, as 64 that begin with zeros."""
    said = text.format(value) + "\n"
    assert Redactor(b"key").redact_text(said) == said


PARTS = [
    'form-data; name="password"',
    "form-data; name=password",
    'form-data;name="password"',
    "form-data;name=password",
    'form-data ; name = "password"',
    "form-data; name='password'",
    "form-data; name*=utf-8''password",
    "form-data; Name*=UTF-8'en'user_password; x=y",
    'form-data; filename="a.txt"; name=password',
    'form-data; name="password" ; filename="a.txt"',
    'form-data; name="user[password]"',
]
OTHER_PARTS = [
    'form-data; name="a"; filename="password"',
    "form-data; nickname=password",
    'form-data; name="password hint"',
    'form-data; name*="page_token"',
]


CURSORS = [
    *("nextForwardToken", "nextBackwardToken", "offset_token", "since_token", "cursor_key"),
    *("startKey", "LastEvaluatedKey"),
]


@pytest.mark.parametrize("name", CURSORS)
def test_a_cursor_is_no_secret(name: str) -> None:
    """Its name says that a list goes on there."""
    text = json.dumps({name: "f/xK9u7mQ2o4vB8naw3Zs1Tq8LmP2"})
    assert Redactor(b"key").redact_text(text) == text


@pytest.mark.parametrize("disposition", [*PARTS, *OTHER_PARTS])
def test_the_name_of_a_part_is_read_as_servers_read_it(disposition: str) -> None:
    """With blanks, either quote or none, a character set, and other parameters before it."""
    value = "9f2kQ7zLm3xw8Rt"
    body = f"--zz\r\nContent-Disposition: {disposition}\r\n\r\n{value}\r\n--zz--\r\n"
    kept = Redactor(b"key").redact_text(body)
    assert (value in kept) is (disposition in OTHER_PARTS)
