"""The canonical form of a request, its fingerprint and its raw key."""

import gzip
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import (
    BodyKind,
    canonical,
    compile_rules,
    fingerprint,
    parse_content_type,
    raw_key,
    same_bytes,
)
from playhead.tape.canonical.random_boundaries import without_signatures
from playhead.tape.exchange import Fingerprint, Headers, Request, RequestClass

RULES = compile_rules()
JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"


def ask(
    body: bytes = b"",
    content_type: bytes | None = JSON,
    target: str = "/v1/x?b=2&a=1",
    headers: Headers = (),
    **fields: object,
) -> Request:
    """Give a request to compare."""
    if content_type is not None:
        headers = (*headers, (b"Content-Type", content_type))
    request = Request("POST", "https", "api.example.com", 443, target, "HTTP/1.1", headers, body)
    return replace(request, **fields)  # type: ignore[arg-type]  # Names are checked by replace.


def print_of(
    request: Request, of: RequestClass = RequestClass.EFFECT, redacted: frozenset[str] = frozenset()
) -> Fingerprint:
    """Give a request's fingerprint under the shipped rules."""
    return fingerprint(canonical(request, of, RULES, redacted))


def multipart(boundary: bytes, content: bytes = b"x", head: bytes = b"") -> Request:
    """Give an upload of one part."""
    body = b"--%b\r\nContent-Disposition: form-data\r\n\r\n%b\r\n--%b--\r\n"
    return ask(
        body % (boundary, content, boundary),
        b"multipart/form-data; " + head + b"boundary=" + boundary,
    )


def letter(outer: str, mixed: str, inner: str, text: bytes = b"hi", said: bytes = b"") -> Request:
    """Give an email, in the part of an upload, with parts of its own."""
    lines = f"""--{outer}
Content-Type: application/json

{{}}
--{outer}
Content-Type: message/rfc822

To: a@b.test
Content-Type: multipart/mixed;
 boundary="{mixed}"

--{mixed}
content-type: multipart/alternative; boundary={inner}

--{inner}
Content-Type: text/plain

TEXT
--{inner}--
--{mixed}--
--{outer}--
"""
    body = lines.replace("\n", "\r\n").encode().replace(b"TEXT", said + text)
    return ask(body, b"multipart/related; boundary=" + outer.encode())


def batch(digit: str, name: str = "x1", at: str = "x-goog-api-client") -> Request:
    """Give a batch of google-cloud-storage: whole requests, each with an id that was drawn."""
    drawn = f"{digit * 8}-0000-4000-8000-{digit * 12}"
    lines = f"""--b{digit}
Content-Type: application/http
MIME-Version: 1.0

DELETE /storage/v1/b/bkt/o/{name}?prettyPrint=false HTTP/1.1
Accept: application/json
{at}: gl-python/3.13 gccl-invocation-id/{drawn}
x-goog-gcs-idempotency-token: {drawn}

--b{digit}--
"""
    body = lines.replace("\n", "\r\n").encode()
    return ask(body, f'multipart/mixed; boundary="b{digit}"'.encode())


def upload(digit: str, *chunks: bytes) -> Request:
    """Give an upload whose chunks are signed."""
    signature = b";chunk-signature=" + digit.encode() * 64
    told = [b"%x%b\r\n%b\r\n" % (len(one), signature, one) for one in chunks or (b"data",)]
    end = b"0%b\r\nx-amz-trailer-signature:%b\r\n\r\n" % (signature, digit.encode() * 64)
    headers = ((b"content-encoding", b"aws-chunked"),)
    return ask(b"".join(told) + end, b"image/png", headers=headers)


SAME = [
    # Host and scheme in any case
    (ask(host="API.Example.com", scheme="HTTPS"), ask()),
    # Query as pairs in any order, percent-encoding written any way
    (ask(target="/v1/x?b=2&a=1"), ask(target="/v1/x?a=1&b=2")),
    (ask(target="/v1/x?b=2&a=2&a=1&b=1"), ask(target="/v1/x?a=2&b=2&b=1&a=1")),
    (ask(target="/x?"), ask(target="/x")),
    (letter("o1", "i1", "d1"), letter("o2", "i2", "d2")),
    (batch("1"), batch("2")),
    (upload("a"), upload("b")),
    (ask(target="/v1/%7ex?a=%41%2f"), ask(target="/v1/~x?a=A%2F")),
    (ask(target="/v1/x?"), ask(target="/v1/x")),
    # Header fields that do not count
    (ask(headers=((b"User-Agent", b"a"), (b"X-Stainless-Retry-Count", b"0"))), ask()),
    (
        ask(headers=((b"Authorization", b"Bearer a"), (b"Idempotency-Key", b"1"))),
        ask(headers=((b"authorization", b"bearer b"),)),
    ),
    (
        ask(headers=((b"Cookie", b"a=1; b=2"),)),
        ask(headers=((b"cookie", b"b=3"), (b"cookie", b"a=4"))),
    ),
    (ask(headers=((b"Cookie", b"AWSALB=1; __cf_bm=2"),)), ask()),
    (
        ask(headers=((b"Cookie", b"AWSALB=1; sid=2; AWSALBCORS=1"),)),
        ask(headers=((b"Cookie", b"sid=3"),)),
    ),
    (
        ask(target="/k?AWSAccessKeyId=a&Signature=b&Expires=1"),
        ask(target="/k?AWSAccessKeyId=a&Signature=c&Expires=2"),
    ),
    (ask(headers=((b"Traceparent", b"00-1-1-00"),)), ask()),
    (ask(trailers=((b"Traceparent", b"00-1-1-00"),)), ask()),
    (ask(trailers=((b"X-State", b"a"),)), ask(trailers=((b"x-state", b" a"),))),
    # The name of one that counts, in any case
    (ask(headers=((b"RANGE", b"bytes=0-1"),)), ask(headers=((b"range", b" bytes=0-1 "),))),
    # An offer of HTTP/2, which may be ignored
    (ask(headers=((b"Upgrade", b"h2c"), (b"Connection", b"Upgrade"))), ask()),
    (
        ask(headers=((b"Upgrade", b"WebSocket"), (b"Sec-WebSocket-Key", b"a"))),
        ask(headers=((b"upgrade", b"websocket"), (b"sec-websocket-key", b"b"))),
    ),
    # Content types written differently
    (ask(b"{}", b"Application/JSON; charset=UTF8"), ask(b"{}", JSON)),
    (ask(b"a", b'text/plain; charset="utf-8"'), ask(b"a", b"text/plain;charset=UTF8")),
    # JSON as a value, whatever the JSON type is called
    (ask(b'{"a": 1, "b": "\xc3\xa9"}'), ask(b'{"b":"\\u00e9","a":1}')),
    (
        ask(b'{"a": 1}', b"application/vnd.api+json"),
        ask(b'{ "a":1 }', b"application/vnd.api+json"),
    ),
    (
        ask(b'{"a": 1, "b": 2}', b"application/x-amz-json-1.1"),
        ask(b'{"b": 2, "a": 1}', b"application/x-amz-json-1.1"),
    ),
    (ask(b'{"a": 1}', None), ask(b'{ "a":1 }', None)),
    # Codings undone
    (ask(gzip.compress(b'{"a":1}'), headers=((b"content-encoding", b"gzip"),)), ask(b'{"a": 1}')),
    (ask(b'{"a":1}', headers=((b"content-encoding", b"identity"),)), ask(b'{"a": 1}')),
    # Forms, percent-encoding written any way
    (ask(b"a=1+2&b=%7e%2B", FORM), ask(b"a=1%202&b=~%2b", FORM)),
    # Multipart, by any boundary
    (multipart(b"abc"), multipart(b"WebKit-7f")),
    (multipart(b"q"), multipart(b"r" * 60)),
    (multipart(b"----WebKitFormBoundaryAbCdEf01"), multipart(b"one-boundary")),
    (multipart(b"===============77=="), multipart(b"q")),
    # Signatures and their dates in a URL
    (
        ask(target="/k?X-Amz-Date=1&X-Amz-Signature=a&x=1"),
        ask(target="/k?X-Amz-Date=2&X-Amz-Signature=b&x=1"),
    ),
    # The shipped volatile places
    (
        ask(b'{"prompt_cache_key": "a", "model": "m"}', target="/v1/responses"),
        ask(b'{"prompt_cache_key": "b", "model": "m"}', target="/v1/responses"),
    ),
    (
        ask(b'{"prompt_cache_key": "a", "model": "m"}', target="/v1/chat/completions"),
        ask(b'{"prompt_cache_key": "b", "model": "m"}', target="/v1/chat/completions"),
    ),
    *(
        (
            ask(b'{"event_id": "evt_1", "type": "response.create"}', target=target),
            ask(b'{"event_id": "evt_2", "type": "response.create"}', target=target),
        )
        for target in ("/v1/realtime?model=m", "/openai/realtime?deployment=d")
    ),
]

DIFFERENT = [
    (ask(headers=((b"Upgrade", b"foo"),)), ask()),
    (ask(headers=((b"Upgrade", b"h2c, websocket"),)), ask(headers=((b"Upgrade", b"h2c"),))),
    (ask(method="PUT"), ask()),
    (ask(scheme="http"), ask()),
    (ask(port=8443), ask()),
    (ask(host="api.example.org"), ask()),
    (ask(target="/v1/y?b=2&a=1"), ask()),
    (ask(target="/v1/X"), ask(target="/v1/x")),
    (ask(target="/v1//x"), ask(target="/v1/x")),
    (ask(target="/v1/a%2Fb"), ask(target="/v1/a/b")),
    # Queries
    (ask(target="/x?a=1"), ask(target="/x")),
    (ask(target="/x?a=1&a=1"), ask(target="/x?a=1")),
    (ask(target="/x?sort=a&sort=b"), ask(target="/x?sort=b&sort=a")),
    (ask(target="/x?a&a="), ask(target="/x?a=&a")),
    (ask(content_type=b'a/b; p="a;q=b"'), ask(content_type=b"a/b; p=a; q=b")),
    (ask(content_type=b'a/b; p="a\\";q=b"'), ask(content_type=b'a/b; p="a"; q=b')),
    (batch("1"), batch("1", "x2")),
    (batch("1", at="x-note"), batch("2", at="x-note")),
    (letter("o", "i", "d"), letter("o", "i", "d", b"other")),
    # Declared nowhere, so content
    (letter("o", "i", "d", b"--x\r\n"), letter("o", "i", "d", b"--y\r\n")),
    (upload("a"), upload("a", b"datb")),
    (upload("a"), upload("a", b"data", b"deux")),
    (ask(target="/x?a"), ask(target="/x?a=")),
    (ask(target="/x?a=b%26c=d"), ask(target="/x?a=b&c=d")),
    (ask(target="/x?a=%2B"), ask(target="/x?a=+")),
    # Broken percent-encodings, which servers read in several ways
    (ask(b"a=%zz", FORM), ask(b"a=%25zz", FORM)),
    (ask(b"a=100%", FORM), ask(b"a=100%25", FORM)),
    (ask(target="/v1/%2%35"), ask(target="/v1/%25")),
    (ask(target="/v1/x?a=%2%35"), ask(target="/v1/x?a=%25")),
    (ask(target="/v1/%%32%35"), ask(target="/v1/%25")),
    (ask(target="/x?a=1,b=2"), ask(target="/x?a=1&b=2")),
    (ask(target="/x?A=1"), ask(target="/x?a=1")),
    (ask(target="/x?X-Amz-Date=1"), ask(target="/x")),
    # Header fields that count
    (ask(headers=((b"range", b"bytes=0-1"),)), ask(headers=((b"range", b"bytes=2-3"),))),
    (ask(headers=((b"accept", b"text/event-stream"),)), ask(headers=((b"accept", JSON),))),
    (ask(headers=((b"if-none-match", b'"a"'),)), ask()),
    (ask(headers=((b"stripe-account", b"a"),)), ask(headers=((b"stripe-account", b"b"),))),
    (ask(headers=((b"x-in-no-list", b"a"),)), ask()),
    # Trailers
    (ask(trailers=((b"x-state", b"complete"),)), ask(trailers=((b"x-state", b"aborted"),))),
    (ask(trailers=((b"x-state", b"complete"),)), ask()),
    (ask(trailers=((b"x-state", b"complete"),)), ask(headers=((b"x-state", b"complete"),))),
    (
        ask(headers=((b"x-twice", b"a"), (b"x-twice", b"b"))),
        ask(headers=((b"x-twice", b"b"), (b"x-twice", b"a"))),
    ),
    (ask(headers=((b"authorization", b"Bearer a"),)), ask()),
    (
        ask(headers=((b"authorization", b"Bearer a"),)),
        ask(headers=((b"authorization", b"Basic a"),)),
    ),
    (ask(headers=((b"cookie", b"a=1"),)), ask(headers=((b"cookie", b"b=1"),))),
    (ask(headers=((b"cookie", b"a=1"),)), ask(headers=((b"cookie", b"a="),))),
    (ask(headers=((b"cookie", b"a=1"),)), ask(headers=((b"cookie", b'a=""'),))),
    (ask(headers=((b"x-api-key", b"a"),)), ask(headers=((b"x-api-key", b""),))),
    (ask(headers=((b"x-acme-secret", b"a"),)), ask(headers=((b"x-acme-secret", b"\t"),))),
    (ask(headers=((b"authorization", b"Bearer a"),)), ask(headers=((b"authorization", b""),))),
    (
        ask(headers=((b"x-original-url", b"/x?access_token=aaaa"),)),
        ask(headers=((b"x-original-url", b"/x?access_token="),)),
    ),
    (ask(headers=((b"x-amz-target", b"A.Get"),)), ask(headers=((b"x-amz-target", b"A.Put"),))),
    (ask(headers=((b"soapaction", b"a"),)), ask(headers=((b"soapaction", b"b"),))),
    (ask(headers=((b"upgrade", b"websocket"),)), ask()),
    (ask(b"a", b"text/plain"), ask(b"a", b"text/html")),
    (ask(b"a", b"text/plain; charset=latin1"), ask(b"a", b"text/plain; charset=utf-8")),
    # Bodies
    (ask(b'{"a": 1}'), ask(b'{"a": 1.0}')),
    (ask(b'{"a": 1}'), ask(b'{"a": 1, "a": 1}')),
    (ask(b""), ask(b"{}")),
    (ask(b'{"a": 1}', b"text/plain"), ask(b'{ "a": 1}', b"text/plain")),
    (ask(b'{"a": 1'), ask(b'{ "a": 1')),
    (ask(b'"\xff"'), ask(b' "\xff"')),
    (ask(b"a=1&b=2", FORM), ask(b"b=2&a=1", FORM)),
    (ask(b"a=%26", FORM), ask(b"a=&", FORM)),
    (ask(b"a=\xff", FORM), ask(b"a=\xfe", FORM)),
    (multipart(b"abc", b"x"), multipart(b"abc", b"y")),
    (multipart(b"abc", b"see --abc"), multipart(b"xyz", b"see --xyz")),
    (multipart(b"abc", b"\x00boundary"), multipart(b"abd", b"\x00boundary")),
    # What some reader takes for a delimiter, and another one for content
    *(
        (multipart(b"100", b"x%b--100%b" % around), multipart(b"900", b"x%b--900%b" % around))
        for around in (
            (b"\r\n", b"z"),
            (b"\r\n", b" \r\ny"),
            (b"\r\n", b"--z"),
            (b"\n", b"\ny"),
            (b"\n", b"\r\ny"),
            (b"\r\n", b"\ny"),
            (b"\r", b"\ry"),
            (b"\r\n-", b"\r\ny"),
        )
    ),
    (letter("o", "m", "i", b"x\r\n--iz"), letter("o", "m", "j", b"x\r\n--jz")),
    # What another reader takes for the boundary
    (
        multipart(b"b", b"1", b"boundary=100;"),
        multipart(b"b", b"1", b"boundary=900;"),
    ),
    (multipart(b"a,b"), multipart(b"a,c")),
    (
        ask(
            b"--a--",
            b"multipart/mixed; boundary=a",
            headers=((b"content-type", b"multipart/mixed; boundary=1"),),
        ),
        ask(
            b"--a--",
            b"multipart/mixed; boundary=a",
            headers=((b"content-type", b"multipart/mixed; boundary=2"),),
        ),
    ),
    # A coding that is not known counts with its bytes
    (ask(b"zz", headers=((b"content-encoding", b"aes"),)), ask(b"zz")),
    (
        ask(gzip.compress(b'{"a":1}')[:-1], headers=((b"content-encoding", b"gzip"),)),
        ask(b'{"a": 1}'),
    ),
    # A volatile place counts by being there, and on its own endpoint only
    (
        ask(b'{"prompt_cache_key": "a"}', target="/v1/responses"),
        ask(b"{}", target="/v1/responses"),
    ),
    (
        ask(b'{"prompt_cache_key": "a"}', target="/v1/chat"),
        ask(b'{"prompt_cache_key": "b"}', target="/v1/chat"),
    ),
    (
        ask(b'{"event_id": "a"}', target="/v1/realtime/sessions"),
        ask(b'{"event_id": "b"}', target="/v1/realtime/sessions"),
    ),
    # ... and where it is meant alone
    (
        ask(b'{"item": {"event_id": "a"}}', target="/v1/realtime"),
        ask(b'{"item": {"event_id": "b"}}', target="/v1/realtime"),
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question_has_one_fingerprint(one: Request, other: Request) -> None:
    """What clients vary without meaning it does not count."""
    assert print_of(one) == print_of(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_question_has_another_fingerprint(one: Request, other: Request) -> None:
    """Whatever may change an answer counts."""
    assert print_of(one) != print_of(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ask(b"1", target="/v1/traces?x=1"), ask(b"2", target="/v1/traces"), True),
        (ask(headers=((b"accept", b"a"),)), ask(), True),
        (ask(target="/v1/traces"), ask(target="/v1/logs"), False),
        (ask(method="PUT"), ask(), False),
        (ask(host="other"), ask(), False),
    ],
)
def test_telemetry_counts_by_method_and_url_alone(one: Request, other: Request, same: bool) -> None:
    """What SDKs send on their own never fails for what it says."""
    of = RequestClass.TELEMETRY
    assert (print_of(one, of) == print_of(other, of)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/x?key=aaaa&q=1", "/x?key=bb&q=1", True),
        ("/x?KEY=aaaa", "/x?KEY=bb", True),
        ("/x?k%65y=aaaa", "/x?key=bb", True),
        ("/x?key=aaaa&q=1", "/x?key=bb&q=2", False),
        ("/x?key=aaaa", "/x", False),
        ("/x?key=aaaa", "/x?key=", False),
        ("/x?key=aaaa", "/x?key=%22%22", False),
        ("/x?key=", "/x?key=", True),
        ("/x?other=aaaa", "/x?other=bb", False),
    ],
)
def test_a_secret_in_the_query_counts_by_its_kind(one: str, other: str, same: bool) -> None:
    """A tape plays under another key, and never for another question."""
    names = frozenset({"key"})
    first, second = (print_of(ask(target=target), redacted=names) for target in (one, other))
    assert (first == second) is same


RULE = IgnoreRule(
    parse_match("POST https://api.example.com/v1/*"),
    json=("$.id",),
    header=("Accept",),
    query=("ts",),
    form=("nonce",),
)
OWN = [
    (ask(b'{"id": 1}'), ask(b'{"id": 2}'), True),
    (ask(b'{"id": 1}'), ask(b"{}"), False),
    (ask(b'{"id": 1}', target="/v2/x"), ask(b'{"id": 2}', target="/v2/x"), False),
    (ask(target="/v1/x?ts=1"), ask(target="/v1/x?ts=2"), True),
    (ask(target="/v1/x?ts=1"), ask(target="/v1/x"), False),
    (ask(target="/v1/x?TS=1"), ask(target="/v1/x?TS=2"), False),
    (ask(headers=((b"accept", b"a"),)), ask(headers=((b"accept", b"b"),)), True),
    (ask(headers=((b"accept", b"a"),)), ask(), False),
    (ask(b"nonce=1&a=2", FORM), ask(b"nonce=2&a=2", FORM), True),
    (ask(b"nonce=1&a=2", FORM), ask(b"nonce=1&a=3", FORM), False),
]


@pytest.mark.parametrize(("one", "other", "same"), OWN)
def test_own_rules_mask_their_places(one: Request, other: Request, same: bool) -> None:
    """A declared volatile place counts by being there, on the endpoints of its rule."""
    rules = compile_rules((RULE,))
    of = RequestClass.EFFECT
    first, second = (fingerprint(canonical(each, of, rules)) for each in (one, other))
    assert (first == second) is same
    assert print_of(one) != print_of(other)


def test_a_rule_that_names_a_query_looks_at_it() -> None:
    """A pattern with a question mark masks only where its query stands."""
    rules = compile_rules((replace(RULE, match=parse_match("*://*/v1/x?op=a*")),))
    of = RequestClass.EFFECT
    masked, other = (
        {fingerprint(canonical(ask(b'{"id": %d}' % n, target=t), of, rules)) for n in (1, 2)}
        for t in ("/v1/x?op=a", "/v1/x?op=b")
    )
    assert (len(masked), len(other)) == (1, 2)


def test_other_rules_have_another_digest() -> None:
    """An index made under other rules can be told."""
    assert compile_rules((RULE,)).digest != RULES.digest
    assert compile_rules() == RULES
    assert compile_rules().digest == RULES.digest


def test_a_rule_without_a_json_path_is_refused() -> None:
    """A path that is none is said so at the start."""
    with pytest.raises(ValueError, match="no JSON path"):
        compile_rules((replace(RULE, json=("id",)),))


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b'{"a": 1}', JSON, BodyKind.JSON),
        (b"[]", None, BodyKind.JSON),
        (b"", JSON, BodyKind.NONE),
        # Broken, too deep, too large, not UTF-8: bytes
        (b"{", JSON, BodyKind.BYTES),
        (b"{", None, BodyKind.BYTES),
        (b"[" * 300_000 + b"]" * 300_000, JSON, BodyKind.BYTES),
        (b'"' + b"a" * (16 << 20) + b'"', JSON, BodyKind.BYTES),
        (b'"\xff"', JSON, BodyKind.BYTES),
        (b"\xef\xbb\xbf{}", JSON, BodyKind.BYTES),
        (b'{"a": 1}', b"text/plain", BodyKind.BYTES),
        (b"a=1", FORM, BodyKind.FORM),
        (b"&" * 100_000, FORM, BodyKind.BYTES),
        (b"--a--", b"multipart/mixed; boundary=a", BodyKind.MULTIPART),
        (b"--a--", b"multipart/mixed", BodyKind.BYTES),
        (b"\x00\x00", b"application/grpc", BodyKind.BYTES),
    ],
)
def test_a_body_is_compared_by_its_type(
    body: bytes, content_type: bytes | None, kind: BodyKind
) -> None:
    """What cannot be read as its type says is compared as bytes."""
    assert canonical(ask(body, content_type), RequestClass.EFFECT, RULES).kind is kind


@pytest.mark.parametrize(
    ("value", "form", "boundary"),
    [
        (b"text/plain", b"text/plain", b""),
        (b"TEXT/Plain ;Charset=UTF8", b"text/plain;charset=utf-8", b""),
        (b"a/b; y=2; x=1", b"a/b;x=1;y=2", b""),
        (b'multipart/form-data; boundary="a: b"', b"multipart/form-data", b"a: b"),
        # Readers differ on quotes, backslashes, commas and a second one: it counts.
        (
            b'multipart/form-data; boundary="a;b\\"c"',
            b'multipart/form-data;boundary="a;b\\"c"',
            b"",
        ),
        (b"multipart/mixed; boundary=a,b", b"multipart/mixed;boundary=a,b", b""),
        (
            b"multipart/mixed; boundary=b; boundary=a",
            b"multipart/mixed;boundary=a;boundary=b",
            b"",
        ),
        (
            b"multipart/mixed; boundary=b;x-boundary=a",
            b"multipart/mixed;boundary=b;x-boundary=a",
            b"",
        ),
        (b"multipart/related; boundary=x; type=a/b", b"multipart/related;type=a/b", b"x"),
        (b"", b"", b""),
        (b';;"', b'"', b""),
    ],
)
def test_a_content_type_has_one_form(value: bytes, form: bytes, boundary: bytes) -> None:
    """Case, order and quotes of a content type do not count; its boundary is kept apart."""
    parsed = parse_content_type(value)
    assert (parsed.form, parsed.boundary) == (form, boundary)


def test_the_canonical_form_reads_as_expected() -> None:
    """The parts of a form are what a person would write down."""
    request = ask(b'{"b": [1.0], "a": "x"}', headers=((b"Accept", b"*/*"), (b"X-Y", b"z")))
    assert canonical(request, RequestClass.READ, RULES) == (
        "POST",
        "https",
        "api.example.com:443",
        "/v1/x",
        ("a=1", "b=2"),
        ((b"accept", b"*/*"), (b"content-type", JSON), (b"x-y", b"z")),
        BodyKind.JSON,
        b'{"a":"x","b":[1.0]}',
        (),
        (),
        None,
    )


def test_the_fingerprint_of_a_known_request_stays() -> None:
    """Tapes outlive this code: a change here is a new version of the canonical form."""
    request = ask(b'{"b": [1.0], "a": "x"}', headers=((b"Accept", b"*/*"), (b"X-Y", b"z")))
    assert print_of(request).hex() == "6f6f4baeab4cc5f1d9a3b60af32ef0d9"


def test_a_secret_in_a_field_that_overrides_the_path_counts_by_its_kind() -> None:
    """A tape plays under other credentials; another path, or another value of another name, is another request."""

    def key(url: bytes) -> str:
        return print_of(ask(b"", headers=((b"X-Original-URL", url),))).hex()

    assert key(b"/a?access_token=one&b=1") == key(b"/a?access_token=two&b=1")
    assert key(b"/a?access_token=one&b=1") != key(b"/a?access_token=one&b=2")
    assert key(b"/a?access_token=one") != key(b"/b?access_token=one")
    assert key(b"/a?token=one") != key(b"/a?token=two")


_token = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=12)
_header = st.tuples(
    st.sampled_from([b"Accept", b"content-type", b"Content-Encoding", b"X-Other", b"Range"]),
    st.sampled_from([b"", b"gzip", JSON, FORM, b"multipart/a; boundary=b", b"\xff", b"br"]),
)
_requests = st.builds(
    Request,
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.example", "::1", "A.example"]),
    st.sampled_from([80, 443]),
    st.builds(
        lambda path, query: f"/{path}?{query}", st.text(max_size=5), st.text(max_size=8) | _token
    ),
    st.just("HTTP/1.1"),
    st.lists(_header, max_size=4).map(tuple),
    st.binary(max_size=20)
    | st.sampled_from([b"{}", b'{"a":1}', b'{"a":1,"a":2}', b"--b\r\n", b"a=1"]),
)


@given(_requests, st.sampled_from(RequestClass))
def test_no_request_makes_it_raise(request: Request, of: RequestClass) -> None:
    """Whatever was sent has a fingerprint and a raw key of 16 bytes."""
    assert len(print_of(request, of)) == len(raw_key(request, of)) == 16


@given(_requests, _requests)
def test_equal_raw_keys_mean_equal_fingerprints(one: Request, other: Request) -> None:
    """Bytes seen before need no parsing."""
    of = RequestClass.EFFECT
    if raw_key(one, of) == raw_key(other, of):
        assert print_of(one) == print_of(other)
    unread = replace(one, headers=(*one.headers, (b"Traceparent", b"1")), http_version="HTTP/2.0")
    assert raw_key(one, of) == raw_key(unread, of)
    assert print_of(one) == print_of(unread)


@given(_requests, _requests)
def test_the_same_bytes_are_those_of_one_raw_key(one: Request, other: Request) -> None:
    """Compared without a hash; header fields that are not read may differ."""
    of = RequestClass.EFFECT
    for second in (other, one, replace(one, headers=(*one.headers, (b"date", b"now")))):
        assert same_bytes(one, second) == (raw_key(one, of) == raw_key(second, of))


@given(_requests, st.sampled_from(["method", "scheme", "host", "port", "target", "body"]))
def test_a_raw_key_reads_every_part(request: Request, part: str) -> None:
    """No part that counts is left out of the raw key."""
    value = getattr(request, part)
    more = {int: 1, str: "x", bytes: b"x"}[type(value)]
    changed = replace(request, **{part: value + more})
    assert raw_key(changed, RequestClass.READ) != raw_key(request, RequestClass.READ)


def test_key_order_and_spaces_never_count() -> None:
    """A conversation written by another JSON library is the same question."""
    rng = random.Random(1)
    for _ in range(50):
        pairs = [(f"k{n}", rng.choice([n, str(n), None, [n, {"z": 1, "a": 2}]])) for n in range(8)]
        one = json.dumps(dict(pairs)).encode()
        rng.shuffle(pairs)
        other = json.dumps(dict(pairs), indent=2, separators=(" ,", " : ")).encode()
        assert print_of(ask(one)) == print_of(ask(other))


def test_what_the_rules_say_of_a_long_path_is_not_remembered() -> None:
    """Thousands of them would be much to hold; a short one is looked up once."""

    def twice(path: str) -> bool:
        first, second = (RULES.endpoint("GET", "https", "a.test", 443, path, "") for _ in range(2))
        assert first == second
        return first is second

    assert twice("/v1/x")
    assert not twice("/" + "x" * 5000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"data",
        b"5;chunk-signature=" + b"a" * 64 + b"\r\ndata\r\n",
        b"ffffffffffffffff\r\ndata",
        b"4;chunk-signature=short\r\ndata\r\n0\r\n\r\n",
    ],
)
def test_an_upload_that_is_not_chunked_as_it_says_stays(body: bytes) -> None:
    """What cannot be read as chunks counts as bytes."""
    assert without_signatures(body) == body
