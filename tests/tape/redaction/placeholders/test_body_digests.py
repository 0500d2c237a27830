"""Digests of a body in header fields fit the body beside them."""

import base64
import hashlib
import zlib

import pytest

from playhead.tape.exchange import Headers
from playhead.tape.redaction.placeholders.body_digests import fit_digests, leave_out_digests

CHECKED = b"123456789"
"""What the catalogues of CRCs check with."""
OTHER = b"another body"
LARGE = bytes(300_000)


def b64(data: bytes) -> bytes:
    """Give base64."""
    return base64.b64encode(data)


def of_hex(digits: str) -> bytes:
    """Give base64 of hexadecimal digits."""
    return b64(bytes.fromhex(digits))


def fit(name: bytes, value: bytes, came: bytes = CHECKED, body: bytes = OTHER) -> Headers:
    """Give what stands in the place of a field."""
    return fit_digests(((name, value),), [came], body).headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"Content-MD5", b64(hashlib.md5(CHECKED).digest())),
        (b"x-ms-blob-content-md5", b64(hashlib.md5(CHECKED).digest())),
        (b"x-amz-checksum-crc32", of_hex("cbf43926")),
        (b"x-amz-checksum-crc32c", of_hex("e3069283")),
        (b"x-amz-checksum-crc64nvme", of_hex("ae8b14860a799888")),
        (b"x-ms-content-crc64", b64(bytes.fromhex("ae8b14860a799888")[::-1])),
        (b"x-oss-hash-crc64ecma", b"%d" % 0x995DC9BBDF1939FA),
        (b"x-amz-checksum-sha1", b64(hashlib.sha1(CHECKED).digest())),
        (b"x-amz-checksum-sha256", b64(hashlib.sha256(CHECKED).digest())),
        (b"x-amz-crc32", b"%d" % 0xCBF43926),  # DynamoDB
        (b"x-checksum-sha1", hashlib.sha1(CHECKED).hexdigest().encode()),
        (b"digest", b"SHA-256=" + b64(hashlib.sha256(CHECKED).digest())),
        (b"content-digest", b"sha-512=:" + b64(hashlib.sha512(CHECKED).digest()) + b":"),
        (b"repr-digest", b"md5=:" + b64(hashlib.md5(CHECKED).digest()) + b":, sha-256=:" + b64(hashlib.sha256(CHECKED).digest()) + b":"),
        (b"x-goog-hash", b"crc32c=" + of_hex("e3069283") + b",md5=" + b64(hashlib.md5(CHECKED).digest())),
    ],
)  # fmt: skip
def test_a_digest_is_computed_anew_in_its_form(name: bytes, value: bytes) -> None:
    """What is computed for the other body is what came once that is the one that came."""
    (found,) = fit(name, value)
    assert found[0] == name
    assert found[1] != value
    assert fit(name, found[1], OTHER, CHECKED) == ((name, value),)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Computed by nothing here.
        (b"x-amz-checksum-xxhash64", b"AAAAAAAAAAA="),
        (b"x-amz-sha256-tree-hash", b"00" * 32),
        (b"content-digest", b"blake3=:AAAA:"),
    ],
)
def test_a_digest_that_cannot_be_computed_is_left_out(name: bytes, value: bytes) -> None:
    """A client that checks what is there has nothing to check."""
    assert fit(name, value) == ()


def test_a_slow_digest_of_a_large_body_is_left_out() -> None:
    """It would take seconds."""
    assert fit(b"x-amz-checksum-crc64nvme", b"AAAAAAAAAAA=", LARGE, LARGE[1:]) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-amz-checksum-crc32", of_hex("cbf43926") + b"-2"),  # of parts
        (b"content-md5", b64(hashlib.md5(b"the whole").digest())),  # of which this is a range
        (b"x-amz-checksum-type", b"FULL_OBJECT"),
        (b"etag", b'"%s"' % hashlib.md5(CHECKED).hexdigest().encode()),
        (b"digest", b"no digest at all"),
    ],
)
def test_what_was_no_digest_of_the_body_stays(name: bytes, value: bytes) -> None:
    """A client fails or does not look, as before; an entity tag comes back in requests."""
    found = fit_digests(((name, value),), [CHECKED], OTHER)
    assert found == (((name, value),), ())


def test_a_digest_of_either_coding_fits() -> None:
    """Of a coded body that is kept decoded both are the same."""
    value = b64(zlib.crc32(CHECKED).to_bytes(4))
    name = b"x-amz-checksum-crc32"
    found = fit_digests(((name, value),), [b"coded", CHECKED], OTHER)
    assert found == (((name, b64(zlib.crc32(OTHER).to_bytes(4))),), (name.decode(),))


def test_digests_of_a_body_that_is_not_at_hand_are_left_out() -> None:
    """All others stay, in order."""
    headers = ((b"a", b"1"), (b"X-Goog-Hash", b"md5=AAAA,crc32c=AA=="), (b"Content-MD5", b"AA=="))
    assert leave_out_digests(headers) == (((b"a", b"1"),), ("x-goog-hash", "content-md5"))
