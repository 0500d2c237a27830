"""Receipts that can be checked: signed with a key of the store, which no sandbox sees.

What is signed is the whole document but for the signature, in one spelling: keys sorted, no blanks, ASCII. Ed25519, so a
receipt is signed the same way each time (RFC 8032).
"""

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..errors import EngineError

FIELD = "signature"
_ALGORITHM = "ed25519"
_PREFIX = b"playhead receipt 1\n"
_MOST_BYTES = 64 << 20


class BadReceipt(Exception):
    """A receipt that cannot be vouched for; the text says why."""


def sign(document: Mapping[str, Any], seed: bytes) -> dict[str, Any]:
    """Give a receipt with its signature, as its last key.

    seed: 32 bytes, the store's key of receipts.
    """
    key = Ed25519PrivateKey.from_private_bytes(seed)
    body = {name: value for name, value in document.items() if name != FIELD}
    value = base64.b64encode(key.sign(_spell(body))).decode()
    return {
        **body,
        FIELD: {"algorithm": _ALGORITHM, "key": _name(key.public_key()), "value": value},
    }


class Signer(NamedTuple):
    """Whose signature is expected."""

    key: bytes | None
    """The public key: 32 bytes; None where a store has none."""
    whose: str = "this store's"
    """In a sentence: `this store's`, or `the one that was given`."""


def public_key(seed: bytes) -> bytes:
    """Give the public key of a store's key of receipts: 32 bytes, for who is to check what it signed."""
    key = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def signer_of(seed: bytes | None) -> Signer:
    """Give the signer that a store is; `seed` is its key of receipts."""
    return Signer(None if seed is None else public_key(seed))


def check(text: bytes, signer: Signer) -> dict[str, Any]:
    """Give the receipt that a text holds, if it is as it was signed.

    Raises: BadReceipt.
    """
    document = _read(text)
    signature = document.get(FIELD)
    if not isinstance(signature, dict) or set(signature) != {"algorithm", "key", "value"}:
        raise BadReceipt("it is not signed")
    if signature["algorithm"] != _ALGORITHM:
        raise BadReceipt(
            f"it is signed with {signature['algorithm']!s:.40}; expected {_ALGORITHM}: it is forged, or of a newer version"
        )
    if signer.key is None:
        raise BadReceipt(
            f"it is signed with a key whose hash is {signature['key']!s:.40}, and this store has no key of receipts"
        )
    key = Ed25519PublicKey.from_public_bytes(signer.key)
    if signature["key"] != _name(key):
        raise BadReceipt(
            f"it is signed with a key whose hash is {signature['key']!s:.40}, and the hash of {signer.whose},"
            f" {signer.key.hex()}, is {_name(key)}: it is of another store, or forged"
        )
    body = {name: value for name, value in document.items() if name != FIELD}
    try:
        key.verify(base64.b64decode(signature["value"], validate=True), _spell(body))
    except (InvalidSignature, binascii.Error, ValueError, TypeError):
        raise BadReceipt("it was changed after it was signed") from None
    return document


def read_receipt_file(path: Path) -> bytes:
    """Read a file that should hold a receipt. Raises: EngineError."""
    try:
        # Without waiting for whoever may write to a named pipe one day.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EngineError(
                    f"{str(path)!r} is no file", "name the file that --receipt was given"
                )
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise EngineError(
            f"cannot read the receipt {str(path)!r}: {error.strerror}",
            "name the file that --receipt was given",
        ) from error
    if len(text) > _MOST_BYTES:
        raise EngineError(
            f"{str(path)!r} has more than {_MOST_BYTES >> 20} MiB", "name the file of a receipt"
        )
    return text


def _name(key: Ed25519PublicKey) -> str:
    """Name a key: 16 hexadecimal digits of its hash."""
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]


def _spell(body: Mapping[str, Any]) -> bytes:
    return _PREFIX + json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _read(text: bytes) -> dict[str, Any]:
    """Read JSON that every reader takes alike. Raises: BadReceipt."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise BadReceipt("a key is there twice, which its readers take differently")
        return made

    try:
        document = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise BadReceipt("it is no JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("run"), str):
        raise BadReceipt("it is no receipt of a run")
    return document
