"""An `authorization` field by its parts."""

import base64
import hashlib
import json
from dataclasses import replace

import pytest

from playhead.tape.headers.authorization import read_authorization
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request

AWS = (
    b"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE000000000/20261122/us-east-1/s3/aws4_request,"
    b" SignedHeaders=host;x-amz-date, Signature=aaaaaaaa00000000"
)
OAUTH = (
    b'OAuth realm="Example", oauth_consumer_key="key1key1key1", oauth_token="tok1tok1tok1",'
    b' oauth_signature_method="HMAC-SHA1", oauth_timestamp="1", oauth_nonce="n1", oauth_signature="c2ln"'
)
DIGEST = (
    b'Digest username="alice", realm="shop", nonce="n1n1n1n1n1n1", uri="/pay", qop=auth, nc=00000001,'
    b' cnonce="c1c1c1c1", response="aaaaaaaa00000000", algorithm=SHA-256'
)
COSMOS = b"type%3Dmaster%26ver%3D1.0%26sig%3DaGVsbG8%3D"
ROWS = [
    (AWS, AWS.replace(b"20261122", b"20261123").replace(b"aaaaaaaa", b"bbbbbbbb"), True),
    (AWS, AWS.replace(b"us-east-1", b"eu-west-1"), False),
    (AWS, AWS.replace(b"/s3/", b"/sqs/"), False),
    (AWS, AWS.replace(b"host;x-amz-date", b"host"), False),
    (AWS, AWS.replace(b"AWS4-HMAC", b"AWS4-ECDSA-P256"), False),
    (
        OAUTH,
        OAUTH.replace(b'"n1"', b'"n2"').replace(b'"1"', b'"2"').replace(b"c2ln", b"d2ln"),
        True,
    ),
    (OAUTH, OAUTH.replace(b"Example", b"Other"), False),
    (OAUTH, OAUTH.replace(b"SHA1", b"SHA256"), False),
    (
        DIGEST,
        DIGEST.replace(b"n1n1", b"n2n2").replace(b"c1c1", b"c2c2").replace(b"aa", b"bb"),
        True,
    ),
    (DIGEST, DIGEST.replace(b"alice", b"bob"), True),
    (DIGEST, DIGEST.replace(b"alice", b""), False),
    (DIGEST, DIGEST.replace(b"shop", b"bank"), False),
    (DIGEST, DIGEST.replace(b"SHA-256", b"MD5"), False),
    (DIGEST, DIGEST.replace(b"=auth,", b"=auth-int,"), False),
    (b"SharedKey acc:c2lnbmF0dXJl", b"SharedKey acc:b3RoZXI=", True),
    (b"SharedKey acc:c2lnbmF0dXJl", b"SharedKey other:c2lnbmF0dXJl", False),
    (COSMOS, COSMOS.replace(b"aGVsbG8", b"d29ybGQ"), True),
    (COSMOS, COSMOS.replace(b"1.0", b"2.0"), False),
    (
        b"SharedAccessSignature sr=a&sig=b&se=1&skn=k",
        b"SharedAccessSignature sr=a&sig=c&se=2&skn=k",
        True,
    ),
    (
        b"SharedAccessSignature sr=a&sig=b&se=1&skn=k",
        b"SharedAccessSignature sr=z&sig=b&se=1&skn=k",
        False,
    ),
    (b"Bearer abcdefgh12345678", b"bearer 12345678abcdefgh", True),
    (b"Bearer abcdefgh12345678", b"Basic abcdefgh12345678", False),
]


@pytest.mark.parametrize("redacted", [False, True], ids=["sent", "redacted"])
@pytest.mark.parametrize(("one", "other", "same"), ROWS)
def test_signed_values_count_by_their_parts(
    one: bytes, other: bytes, same: bool, redacted: bool
) -> None:
    """Date, nonce and signature do not count; region, service, account and method do, in a tape as on the wire."""
    forms = []
    for value in (one, other):
        if redacted:
            request = replace(make_request(), headers=((b"authorization", value),))
            value = Redactor(b"key").request(request)[0].headers[0][1]
        forms.append(read_authorization(value).form)
    assert (forms[0] == forms[1]) is same


def test_a_signature_has_a_key_that_can_be_linked() -> None:
    """Two requests of one program have different signatures, and one key."""
    assert read_authorization(AWS).credentials == (b"AKIDEXAMPLE000000000",)
    assert read_authorization(OAUTH).credentials == (b"key1key1key1", b"tok1tok1tok1")
    assert read_authorization(COSMOS).credentials == ()
    assert read_authorization(DIGEST)[1:] == ((), (b"alice",))


@pytest.mark.parametrize(
    "value", [b"", b" ", b"AWS4-HMAC-SHA256 ", b"OAuth =,=", b"type=x&ver", b"\xff\x00"]
)
def test_anything_can_be_read(value: bytes) -> None:
    """What is no authorization is a credential as a whole."""
    assert isinstance(read_authorization(value).form, bytes)


@pytest.mark.parametrize("redacted", [False, True], ids=["sent", "redacted"])
@pytest.mark.parametrize(
    ("value", "empty"),
    [
        (b"Bearer abcdefgh12345678", b'Bearer ""'),
        (b"Basic YWxpY2U6c2VjcmV0MTIz", b"Basic Og=="),
        (b"abcdefgh12345678", b""),
        (b"abcdefgh12345678", b"''"),
        (AWS, AWS.replace(b"AKIDEXAMPLE000000000", b"")),
        (OAUTH, OAUTH.replace(b"tok1tok1tok1", b"")),
        (b"SharedKey acc:c2lnbmF0dXJl", b"SharedKey acc:"),
        (b"AWS key1:c2lnbmF0dXJl", b"AWS :c2lnbmF0dXJl"),
    ],
)
def test_an_empty_credential_is_none(value: bytes, empty: bytes, redacted: bool) -> None:
    """An unset variable of the environment leaves the scheme with nothing behind it."""
    found = []
    for text in (value, empty, empty):
        if redacted:
            request = replace(make_request(), headers=((b"authorization", text),))
            text = Redactor(b"key").request(request)[0].headers[0][1]
        found.append(read_authorization(text))
    assert found[0].form != found[1].form
    assert found[1] == found[2]
    assert b"" not in found[1].credentials


def _jwt(head: dict[str, object], **claims: object) -> bytes:
    parts = [json.dumps(one, separators=(",", ":")).encode() for one in (head, claims)]
    signature = hashlib.sha256(b".".join(parts)).digest()
    coded = [base64.urlsafe_b64encode(one).rstrip(b"=") for one in (*parts, signature)]
    return b"Bearer " + b".".join(coded)


_HEAD: dict[str, object] = {"alg": "RS256", "kid": "k1"}
_SIGNED = _jwt(_HEAD, iss="12345", iat=1795500000, exp=1795500600)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (_jwt(_HEAD, iss="12345", iat=1795500001, exp=1795500601), True),
        (_jwt(_HEAD, iss="54321", iat=1795500000, exp=1795500600), False),
        (_jwt({"alg": "RS256", "kid": "k2"}, iss="12345", iat=1795500001), False),
        # One with a subject is somebody's.
        (_jwt(_HEAD, iss="12345", sub="a", iat=1795500000), False),
        (_jwt(_HEAD, iss="12345"), False),
        (_jwt(_HEAD, iat=1795500000), False),
        (_SIGNED.rpartition(b".")[0] + b".", False),
        (b"Bearer eyJ.eyJ.a", False),
    ],
)
def test_a_token_that_is_signed_for_each_call_is_its_signer(other: bytes, same: bool) -> None:
    """As with GitHub Apps: only the second differs in which it was signed; a placeholder has the same signer."""
    one, two = read_authorization(_SIGNED), read_authorization(other)
    assert one.form == two.form == b"bearer \x00"
    assert (one.credentials == two.credentials) is same
    hidden = Redactor(b"k" * 32).text(b"authorization: " + other).partition(b": ")[2]
    if same:
        assert hidden != other
        assert read_authorization(hidden) == two
