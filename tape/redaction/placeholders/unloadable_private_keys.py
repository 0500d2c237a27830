"""Find placeholders of private keys that no library loads: those of RSA and of OpenSSH, which cannot be made up cheaply."""

import base64
import re
from collections.abc import Iterable

from ...exchange import BODY, Response, Secret
from .placeholder import unescape

_BEGINS = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY-----(?:\\+[nr]|\s){0,8}\Z")
_BEFORE = 96
"""Bytes before a key in which it is said to be one."""
_MOST = 32
"""Keys of one answer that are looked at."""
_SPACE = re.compile(rb"\s+")


def has_unloadable_key(response: Response) -> bool:
    """Say whether an answer has a placeholder in the place of a private key, and a client that loads it would fail."""
    if not response.secrets or b"PRIVATE KEY-----" not in response.body:
        return False
    keys = [one for one in response.secrets if _is_key(response.body, one)][:_MOST]
    return not all(_loads(_values(response.body, keys)))


def _is_key(body: bytes, secret: Secret) -> bool:
    before = body[max(0, secret.at - _BEFORE) : secret.at]
    return secret.part == BODY and _BEGINS.search(before) is not None


def _values(body: bytes, secrets: Iterable[Secret]) -> Iterable[bytes]:
    return (unescape(body[one.at : one.at + one.size]) for one in secrets)


def _loads(values: Iterable[bytes]) -> Iterable[bool]:
    # It takes long to import, and hardly anybody needs it.
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    for value in values:
        try:
            load_der_private_key(base64.b64decode(_SPACE.sub(b"", value), validate=True), None)
        except Exception:  # whatever cryptography has against it
            yield False
        else:
            yield True
