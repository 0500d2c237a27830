"""An answer with a placeholder inside states no digest of the bytes that came, in header fields or in its own format."""

import base64
import gzip
import hashlib
import io
import zipfile
import zlib
from dataclasses import replace

from playhead.config import RedactRule
from playhead.tape.exchange import DIGEST, Chunk, Headers, RawResponse, Spilled
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tests.support.exchanges import make_exchange

SECRET = b"ghp_" + b"kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
BODY = b"# deploy\nTOKEN_LINE: " + SECRET + b"\n"
CRC, MD5 = b"x-amz-checksum-crc32", b"content-md5"


def _crc(data: bytes) -> bytes:
    return base64.b64encode(zlib.crc32(data).to_bytes(4))


def _md5(data: bytes) -> bytes:
    return base64.b64encode(hashlib.md5(data).digest())


def _answer(body: bytes = BODY, more: Headers = (), trailers: Headers = ()) -> RawResponse:
    fields = ((MD5, _md5(body)), (b"x-amz-checksum-blake9", b"AAAA"), (b"etag", b'"1"'), *more)
    return RawResponse(200, b"OK", "HTTP/1.1", fields, body, 1, (Chunk(1, len(body)),), trailers)


def test_digests_of_an_answer_are_those_of_what_is_played() -> None:
    """In trailers, too; one that cannot be computed is gone, and its exchange says so."""
    answer = _answer(trailers=((CRC, _crc(BODY)),))
    kept, found, _ = Redactor(b"k" * 32).response(answer)
    assert SECRET not in kept.body
    assert kept.headers == ((MD5, _md5(kept.body)), (b"etag", b'"1"'))
    assert kept.trailers == ((CRC, _crc(kept.body)),)
    assert [one.place for one in found if one.kind == DIGEST] == [
        "response.header.content-md5",
        "response.header.x-amz-checksum-blake9",
        "response.trailer.x-amz-checksum-crc32",
    ]


def test_digests_of_a_coded_answer_fit_the_decoded_one() -> None:
    """S3 states those of the object, which may be coded."""
    coded = gzip.compress(BODY)
    for told in (coded, BODY):
        more = (b"content-encoding", b"gzip"), (CRC, _crc(told))
        kept, _, _ = Redactor(b"k" * 32).response(_answer(coded, more))
        assert dict(kept.headers)[CRC] == _crc(kept.body)
        assert dict(kept.headers)[MD5] == _md5(kept.body)


def test_an_answer_without_a_secret_stays_as_it_is() -> None:
    """Its digests are not even read."""
    answer = _answer(b"nothing")
    kept, found, _ = Redactor(b"k" * 32).response(answer)
    assert (kept.headers, found) == (answer.headers, ())


def test_digests_of_a_body_in_a_file_are_left_out() -> None:
    """It is not read again to compute them."""
    answer = replace(
        _answer(), body=b"", chunks=(), spilled=Spilled(b"d" * 32, 9_000_000, b"m" * 32)
    )
    kept, found, _ = Redactor(b"k" * 32).response(answer)
    assert (kept.headers, found) == (answer.headers, ())
    secrets = Redactor(b"k" * 32).response(_answer())[0].secrets
    kept, found, _ = Redactor(b"k" * 32).response(replace(answer, secrets=secrets))
    assert kept.headers == ((b"etag", b'"1"'),)
    assert {one.kind for one in found} == {DIGEST}


def test_a_rewritten_answer_states_its_own_digests() -> None:
    """`redact --rewrite` is a redaction as any other."""
    plain = b'{"note": "pear-tree-52 and more"}'
    came = replace(_answer(plain, ((CRC, _crc(plain)),)), trailers=((MD5, _md5(plain)),))
    kept, _, _ = Redactor(b"k" * 32).response(came)
    exchange = replace(make_exchange(), response=kept)
    rewriter = Rewriter(b"k" * 32, (RedactRule(json="note"),))
    answer = rewriter.exchange(exchange)[0].response
    assert answer is not None
    assert answer.body != plain
    assert dict(answer.headers)[CRC] == _crc(answer.body)
    assert dict(answer.trailers)[MD5] == _md5(answer.body)


def test_a_zip_with_a_placeholder_opens() -> None:
    """Its files that are stored are replaced, and have the checksums of what is in them; so has the answer."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("deploy.txt", BODY)
    kept, _, _ = Redactor(b"k" * 32).response(_answer(made.getvalue()))
    with zipfile.ZipFile(io.BytesIO(kept.body)) as archive:
        assert SECRET not in archive.read("deploy.txt")
    assert dict(kept.headers)[MD5] == _md5(kept.body)
