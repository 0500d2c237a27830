"""Secrets out, before anything is written."""

import base64
import re
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import RedactRule
from playhead.tape.exchange import Headers, Redaction, Request
from playhead.tape.redaction.credential_fields import AMBIGUOUS, HEADERS, QUERY
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import make_response

REDACTOR = Redactor(b"k" * 32)
OTHER = Redactor(b"o" * 32)

_secrets = st.text("abcXYZ019-_./+=", min_size=6, max_size=80).filter(
    lambda text: sum(char.isalnum() for char in text) >= 6
)


def ask(headers: Headers = (), target: str = "/", host: str = "api.example.com") -> Request:
    """Give a request that may hold secrets."""
    return Request("GET", "https", host, 443, target, "HTTP/1.1", headers)


def redacted(name: bytes, value: bytes) -> bytes:
    """Give what stands in a request for a header value."""
    return REDACTOR.request(ask(((name, value),)))[0].headers[0][1]


def alphabet(value: bytes) -> bytes:
    """Give a value with every letter and digit as 0, and with one sign for each byte that may be of another letter."""
    return re.sub(rb"[\x80-\xff]", b"\x80", re.sub(rb"[0-9A-Za-z]", b"0", value))


@given(st.sampled_from(["key", "token", "authorization", "cookie"]), st.binary(max_size=100))
def test_a_placeholder_keeps_length_and_alphabet(kind: str, value: bytes) -> None:
    """Lengths and boundaries stand as recorded."""
    assert alphabet(REDACTOR.placeholder(kind, value)) == alphabet(value)


@given(_secrets)
def test_a_placeholder_depends_on_key_and_value_alone(secret: str) -> None:
    """The same secret is the same placeholder all over a store, wherever it stands, and another in another store."""
    value = secret.encode()
    one = REDACTOR.placeholder("key", value)
    assert one == Redactor(b"k" * 32).placeholder("key", value)
    assert one != OTHER.placeholder("key", value)
    assert one == REDACTOR.placeholder("token", value)


@given(st.binary(min_size=1, max_size=200))
def test_no_letter_or_digit_stays(value: bytes) -> None:
    """Not even one character of a secret is what it was, at any place."""
    new = REDACTOR.placeholder("key", value)
    assert all(a != b for a, b in zip(value, new, strict=True) if bytes([a]).isalnum())


VALUES = [
    # Kept: what is before and after the secret
    (b"Authorization", b"Bearer %b", "authorization"),
    (b"authorization", b"bearer %b", "authorization"),
    (b"AUTHORIZATION", b"%b", "authorization"),
    (b"authorization", b"Token %b", "authorization"),
    (b"Proxy-Authorization", b"Bearer %b", "authorization"),
    (b"cookie", b"sid=%b", "cookie"),
    (b"cookie", b"theme=; sid=%b; x=", "cookie"),
    (b"set-cookie", b"sid=%b; Path=/; HttpOnly", "cookie"),
    *[(name.encode(), b"%b", kind) for name, kind in HEADERS.items() if "cookie" not in name],
    # By the end of the name
    (b"X-Acme-Api-Key", b"%b", "key"),
    (b"acme-apikey", b"%b", "key"),
    (b"X-Acme-Token", b"%b", "token"),
    (b"X-Client-Secret", b"%b", "token"),
    # URLs
    (b"Referer", b"https://a.example/x?q=1&access_token=%b#x", "token"),
    (b"referer", b"https://a.example/#access_token=%b&state=1", "token"),
    (b"location", b"https://user:%b@a.example/x", "authorization"),
    # URLs in fields of any name
    (b"X-Original-URL", b"/x?q=1&access_token=%b", "token"),
    (b"X-Rewrite-URL", b"https://user:%b@a.example/x", "authorization"),
    (b"X-Any", b"<https://a.example/x?access_token=%b>; rel=x", "token"),
    (b"X-Any", b'{"url": "https://a.example/x?access_token=%b", "a": 1}', "token"),
    (b"Link", b"<https://a.example/x?q=1&api_key=%b>", "key"),
    # Subprotocols of a WebSocket
    (b"Sec-WebSocket-Protocol", b"realtime, openai-insecure-api-key.%b", "token"),
    (
        b"sec-websocket-protocol",
        b"base64url.bearer.authorization.k8s.io.%b, v4.channel.k8s.io",
        "token",
    ),
    (b"sec-websocket-protocol", b"access_token, %b", "token"),
]


@pytest.mark.parametrize(("name", "form", "kind"), VALUES)
@tries(5, 50)
@given(secret=_secrets)
def test_a_secret_in_a_header_is_gone(name: bytes, form: bytes, kind: str, secret: str) -> None:
    """What stands round a secret stays, the secret does not, and its place is told."""
    value = secret.replace("/", "a").replace("=", "b").encode()
    before, after = form.split(b"%b")
    request = ask(((b"Accept", b"a"), (name, before + value + after)))
    new, places = REDACTOR.request(request)
    left = new.headers[1][1]
    if name.lower() in (b"location", b"referer", b"x-rewrite-url"):
        assert left.startswith(before.partition(b"user")[0])
    else:
        assert left.startswith(before)
    assert left.endswith(after)
    assert len(left) == len(before + value + after)
    assert value not in left
    assert new.headers[0] == (b"Accept", b"a")
    assert places == (Redaction(f"request.header.{name.decode().lower()}", kind),)


@pytest.mark.parametrize(
    "secret", [b"sk-proj-0123456789abcdef", b"eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln"]
)
def test_a_secret_that_is_a_subprotocol_is_gone(secret: bytes) -> None:
    """By its look: nothing before it says what it is."""
    new, places = REDACTOR.request(ask(((b"sec-websocket-protocol", b"v1, " + secret + b" , v2"),)))
    left = new.headers[0][1]
    assert left.startswith(b"v1, ")
    assert left.endswith(b" , v2")
    assert secret not in left
    assert [place.kind for place in places] == ["token"]


_SURE = [name for name in QUERY if name not in AMBIGUOUS]


@pytest.mark.parametrize(
    "name", [*_SURE, "API_KEY", "Access_Token", "X-Amz-Signature", "api%5Fkey"]
)
@tries(5, 50)
@given(secret=_secrets)
def test_a_secret_in_the_query_is_gone(name: str, secret: str) -> None:
    """A known query key keeps its name and its neighbours, and loses its value."""
    request = ask(target=f"/x?limit=10&{name}={secret}&q=a%20b")
    new, places = REDACTOR.request(request)
    assert new.target.startswith(f"/x?limit=10&{name}=")
    assert new.target.endswith("&q=a%20b")
    assert len(new.target) == len(request.target)
    assert secret not in new.target
    plain = name.lower().replace("%5f", "_")
    assert places == (Redaction(f"request.query.{plain}", QUERY[plain]),)


MEANT = [
    "token=page2",
    "key=reports/2025",
    "key=backups/db-2026-01-02T030405Z.dump.gz",
    "key=user_preferences_v2",
    "sig=linear-algebra",
    "signature=compute_similarity_v2",
    "secret=prod/db/password",
    "token=2026-01-02T03:04:05.678Z",
]


@pytest.mark.parametrize("pair", MEANT)
def test_a_query_key_of_many_meanings_keeps_what_is_no_secret(pair: str) -> None:
    """The next page or the name of an object is compared as it is."""
    request = ask(target=f"/x?limit=10&{pair}")
    assert REDACTOR.request(request) == (request, ())
    assert REDACTOR.redacted_query(request) == set()


@pytest.mark.parametrize(
    "request_",
    [
        ask(),
        ask(target="/x?limit=10&page_token=abc"),
        ask(target="/x?monkey=abcdef"),
        ask(target="/users:me@example.com/x"),
        ask(target="//user:pass@host/x"),
        ask(target="//user:pass@host/x?q=1"),
        ask(((b"Accept", b"*/*"), (b"X-Next-Page-Token", b"abc"), (b"Idempotency-Key", b"abc"))),
        ask(((b"Referer", b"https://a.example/x?q=1"), (b"Sec-WebSocket-Key", b"abc="))),
        ask(((b"sec-websocket-protocol", b"realtime, openai-beta.realtime-v1, v12.stomp"),)),
        ask(((b"x-ratelimit-remaining-tokens", b"12"), (b"authorization", b""))),
    ],
)
def test_a_request_without_secrets_is_given_back(request_: Request) -> None:
    """It is the same, and its body is not copied."""
    new, places = REDACTOR.request(request_)
    assert new == request_
    assert new.body is request_.body
    assert places == ()


@pytest.mark.parametrize(
    ("name", "value", "pattern"),
    [
        (b"authorization", b"Bearer sk-abc.DEF-123", rb"Bearer [a-z]{2}-[a-z]{3}\.[A-Z]{3}-\d{3}"),
        (b"authorization", b"secret words", rb"[a-z]{6} [a-z]{5}"),
        (
            b"authorization",
            b"AWS4-HMAC-SHA256 Credential=AK1/x, SignedHeaders=host, Signature=0a",
            rb"AWS4-HMAC-SHA256 Credential=[A-Z]{2}\d/[a-z], SignedHeaders=[a-z]{4}, Signature=\d[a-z]",
        ),
        (b"authorization", b'Digest username="me", nc=01', rb'Digest username="[a-z]{2}", nc=\d\d'),
        (b"authorization", b"Digest abc", rb"Digest [a-z]{3}"),
        (b"cookie", b'a=12; b="x y"; c', rb'a=\d\d; b="[a-z] [a-z]"; [a-z]'),
        (b"cookie", b"c2VjcmV0LXNlY3JldC1zZQ==", rb"[a-zA-Z0-9]{22}=="),
        (b"location", b"//u:p@h/", rb"//[a-z]:[a-z]@h/"),
        (b"cookie", b"a=b=c%2Fd", rb"a=[a-z]=[a-z]%2F[a-z]"),
        (
            b"set-cookie",
            b"sid=ab12; Expires=Thu, 01 Jan 2026 00:00:00 GMT; Path=/",
            rb"sid=[a-z]{2}\d\d; Expires=Thu, 01 Jan 2026 00:00:00 GMT; Path=/",
        ),
        (
            b"referer",
            b"http://u:p%40w@h/?sig=a%2Fb",
            rb"http://[a-z]:[a-z]%40[a-z]@h/\?sig=[a-z]%2F[a-z]",
        ),
        (b"referer", b"http://u:p@w@h/", rb"http://[a-z]:[a-z]@[a-z]@h/"),
    ],
)
def test_the_shape_of_a_value_stays(name: bytes, value: bytes, pattern: bytes) -> None:
    """Schemes, names and attributes can still be read."""
    left = redacted(name, value)
    assert re.fullmatch(pattern, left), left
    assert left != value


def test_basic_credentials_stay_base64() -> None:
    """A placeholder can be decoded where the secret could."""
    secret = base64.b64encode(b"user:password?>")
    left = redacted(b"authorization", b"Basic " + secret)
    assert left != b"Basic " + secret
    assert len(base64.b64decode(left.removeprefix(b"Basic "), validate=True)) == 15


@given(st.text("abc019%/+ é", min_size=1, max_size=20), st.booleans())
def test_percent_encodings_stay_valid(text: str, small: bool) -> None:
    """Every encoding of a redacted value decodes, and stands where it stood."""
    value = "".join(f"%{byte:02x}" if small else f"%{byte:02X}" for byte in text.encode())
    new = REDACTOR.request(ask(target=f"/?token={value}"))[0].target
    left = new.removeprefix("/?token=")
    assert len(left) == len(value)
    assert re.fullmatch(r"(?:%[0-9a-fA-F]{2})*", left)
    plain, before = (bytes.fromhex(one.replace("%", "")) for one in (left, value))
    assert alphabet(plain) == alphabet(before)


def test_a_cookie_comes_back_as_it_was_set() -> None:
    """What an answer sets and a request sends has one placeholder."""
    answer, _ = REDACTOR.response_headers(((b"Set-Cookie", b"sid=abc123; Path=/"),))
    assert redacted(b"cookie", b"x=1; sid=abc123").split(b"sid=")[1] == answer[0][1][4:10]


def test_an_answer_keeps_what_the_agent_needs() -> None:
    """Of a response the known secrets go, and nothing by the look of its name."""
    headers = (
        (b"Content-Type", b"a"),
        (b"x-next-token", b"abc"),
        (b"Set-Cookie", b"a=1; Secure"),
        (b"set-cookie", b"b=2"),
        (b"Location", b"/x?X-Amz-Signature=abc&X-Amz-Date=1"),
    )
    new, places = REDACTOR.response_headers(headers)
    assert new[:2] == headers[:2]
    assert re.fullmatch(rb"/x\?X-Amz-Signature=[a-z]{3}&X-Amz-Date=1", new[4][1])
    assert places == (
        Redaction("response.header.set-cookie", "cookie"),
        Redaction("response.header.set-cookie", "cookie"),
        Redaction("response.header.location", "signature"),
    )
    harmless = headers[:2]
    assert REDACTOR.response_headers(harmless)[0] is harmless


def test_configured_places_are_redacted() -> None:
    """A rule adds a header field or query key; what the table knows keeps its kind."""
    redactor = Redactor(
        b"k", (RedactRule(header="X-Team"), RedactRule(query="Who"), RedactRule(header="Cookie"))
    )
    request = ask(((b"x-team", b"abc"), (b"cookie", b"a=1")), "/?who=me")
    new, places = redactor.request(request)
    assert new.headers[0][1] != b"abc"
    assert new.target != request.target
    assert new.headers[1][1].startswith(b"a=")
    assert places == (
        Redaction("request.header.x-team", "configured"),
        Redaction("request.header.cookie", "cookie"),
        Redaction("request.query.who", "configured"),
    )
    assert redactor.redacted_query(request) == {"who"}
    assert redactor.response_headers(((b"X-Team", b"abc"),))[1]


def test_trailers_are_redacted() -> None:
    """A secret after the body is a secret too."""
    new, places = REDACTOR.request(replace(ask(), trailers=((b"x-api-key", b"abc123"),)))
    assert new.trailers[0][1] != b"abc123"
    assert places == (Redaction("request.trailer.x-api-key", "key"),)


DRAWN = b"v7Qm2pZ9xAb3LrfW0yC1kT5d"


@pytest.mark.parametrize(
    "name", [b"x-trail-token", b"X-Auth_Jwt", b"x-tenant-secret", b"x-trailtoken"]
)
def test_a_field_of_an_answer_named_like_a_secret_is_replaced(name: bytes) -> None:
    """If its value looks like one; a replay knows the placeholder again wherever the agent puts it."""
    fields = ((name, DRAWN),)
    redactor = Redactor(b"k" * 32)
    kept, places, _ = redactor.response(replace(make_response(b""), trailers=fields))
    ((_, made),) = kept.trailers
    assert made == redactor.stands_for(DRAWN) != DRAWN
    assert [one.kind for one in places] == ["secret"]
    assert redactor.response_headers(fields)[0] == kept.trailers
    recorded, replay = redactor.text(b"use %b now" % DRAWN), Redactor(b"k" * 32)
    assert replay.learn(kept) == [("", made, made)]
    assert replay.text(b"use %b now" % made) == recorded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, DRAWN) for name in (b"x-next-token", b"x-ms-continuation-token", b"etag")),
        *((name, DRAWN) for name in (b"lock-token", b"mcp-session-id", b"x-cache-key")),
        (b"x-rate-limit-token", b"page2"),
    ],
)
def test_other_fields_of_an_answer_stay(name: bytes, value: bytes) -> None:
    """Cursors, ids of sessions, keys of caches, and words."""
    fields = ((name, value),)
    assert Redactor(b"k" * 32).response_headers(fields) == (fields, ())


@pytest.mark.parametrize("name", [b"Lock-Token", b"lock_token", b"x-lock", b"if"])
def test_a_lock_of_webdav_stays(name: bytes) -> None:
    """Its URL comes back in other syntax: in `If` it is between parentheses, too."""
    url = b"<opaquelocktoken:3f2504e0-4f89-41d3-9a0c-0305e82c3301>"
    fields = ((name, url), (b"x-list", b"(%b)" % url))
    assert Redactor(b"k" * 32).response_headers(fields) == (fields, ())


@pytest.mark.parametrize("form", [b"upload_token=%b", b"https://h/x?upload_token=%b&a=1"])
def test_what_a_search_replaced_in_a_field_of_an_answer_is_known_when_it_comes_back(
    form: bytes,
) -> None:
    """In any field, alone or in another syntax."""
    recorded, replay = Redactor(b"k" * 32), Redactor(b"k" * 32)
    kept, places, _ = recorded.response(
        replace(make_response(b""), headers=((b"x-note", form % DRAWN),))
    )
    made = recorded.stands_for(DRAWN)
    assert kept.headers == ((b"x-note", form % made),)
    assert replay.learn(kept, places) == [("", made, made)]
    for field in (b"x-back", b"if", b"cookie"):
        came, _ = recorded.request(ask(((field, b"a=(%b)" % DRAWN),)))
        again, _ = replay.request(ask(((field, b"a=(%b)" % made),)))
        assert (again.headers, again.secrets) == (came.headers, came.secrets)


@pytest.mark.parametrize(
    "form", [b"%b", b"data:text/plain;base64,%b", b"https://h.test/x?state=%b&a=1"]
)
@pytest.mark.parametrize("before", [b"", b"a", b"ab"])
def test_what_a_search_replaced_in_base64_of_a_field_is_known_in_the_open(
    form: bytes, before: bytes
) -> None:
    """As it is, or as a part of a URL."""
    coded = base64.b64encode(before + b'{"access_token": "%b"}' % DRAWN)
    for one in (coded, quote(coded, safe="").encode()):
        recorded, replay = Redactor(b"k" * 32), Redactor(b"k" * 32)
        came = replace(make_response(b""), headers=((b"x-config", form % one),))
        kept, places, _ = recorded.response(came)
        made = recorded.stands_for(DRAWN)
        assert replay.learn(kept, places) == [("", made, made)]
        assert made in Redactor.list_given(kept)
        assert replay.text(b"use %b now" % made) == b"use %b now" % made


def test_what_a_tape_of_before_says_in_the_open_is_not_hidden_in_its_replay() -> None:
    """Its requests have it in the open, too."""
    replay = Redactor(b"k" * 32)
    answer = replace(make_response(b""), trailers=((b"x-trail-token", DRAWN),))
    assert replay.learn(answer) == []
    assert replay.text(b"use %b now" % DRAWN) == b"use %b now" % DRAWN


@pytest.mark.parametrize(
    "value", ["%5aUiPOJj4%GH1Wj", "a%5aUiPOJj4%GH1Wj", "UiPOJj4%GH1Wj%5a", "Ui%POJj4%5a1Wj9q"]
)
def test_a_cookie_that_no_encoder_has_written_is_as_long_as_it_looks(value: str) -> None:
    """Its percent signs mean nothing; it is found in what follows."""
    redactor = Redactor(b"k" * 32)
    kept, _ = redactor.request(ask(((b"cookie", b"a=" + value.encode()),)))
    made = kept.headers[0][1].removeprefix(b"a=")
    assert redactor.text(b'{"c": "%b"}' % value.encode()) == b'{"c": "%b"}' % made
    assert value.encode() not in made


def test_an_encoded_setting_in_a_cookie_stays_elsewhere() -> None:
    """It is shorter than it is written."""
    redactor = Redactor(b"k" * 32)
    redactor.request(ask(((b"cookie", b"a=lang%3Den%3Btz%3D2"),)))
    assert redactor.text(b"lang=en;tz=2") == b"lang=en;tz=2"


@pytest.mark.parametrize(
    ("target", "host", "names"),
    [
        ("/", "a.example", set()),
        ("/?limit=1", "a.example", set()),
        ("/?Access_Token=a&bearer=b&q=1", "a.example", {"access_token", "bearer"}),
        # `token` is many things
        ("/?token=page2&sig=linear-algebra&q=1", "a.example", set()),
        ("/?Token=AbCdEf9hIj2lMnOp1234", "a.example", {"token"}),
        ("/?api%5Fkey=a", "a.example", {"api_key"}),
        # `key` is many things
        ("/?key=dummy", "generativelanguage.googleapis.com", {"key"}),
        ("/?key=dummy", "a.example", set()),
        ("/?key=AbCdEfGhIjKlMnOp1234", "a.example", {"key"}),
        ("/?key=some-long-name-without-digits", "a.example", set()),
    ],
)
def test_query_secrets_count_by_kind(target: str, host: str, names: set[str]) -> None:
    """Names are told alike for a request and its redacted copy."""
    request = ask(target=target, host=host)
    assert REDACTOR.redacted_query(request) == names
    assert REDACTOR.redacted_query(REDACTOR.request(request)[0]) == names


@given(st.text(max_size=30), st.binary(max_size=30))
def test_no_request_makes_it_raise(target: str, value: bytes) -> None:
    """Hostile targets and values keep their length."""
    headers = tuple((name, value) for name in (b"authorization", b"cookie", b"referer"))
    request = ask(headers, "/?" + target)
    new, _ = REDACTOR.request(request)
    assert [len(v) for _, v in new.headers] == [len(v) for _, v in headers]
    assert len(new.target) == len(request.target)
    REDACTOR.request(replace(request, target=target))


def test_an_empty_key_is_refused() -> None:
    """Placeholders without a key would give secrets away."""
    with pytest.raises(ValueError, match="empty"):
        Redactor(b"")


SPELLED = [
    ("/?token[]=%s&a=1", b"", b"", ()),
    ("/?auth[token]=%s", b"", b"", ()),
    ("/?user%%5Bpassword%%5D=%s", b"", b"", ()),
    ("/?api_key[0]=%s", b"", b"", ()),
    ("/", b'{"API-KEY": "%s"}', b"application/json", ()),
    ("/", b"", b"", ((b"X_Api_Key", b"%s"),)),
    *[
        (
            "/",
            b"--b%bContent-Disposition: form-data; %b%b%b%%s%b--b--%b"
            % (line, name, line, line, line, line),
            b"multipart/form-data; boundary=b",
            (),
        )
        for line in (b"\r\n", b"\n")
        for name in (b'name="password"', b"name=password", b'NAME="user[password]"')
    ],
]


@pytest.mark.parametrize(("target", "body", "kind", "fields"), SPELLED, ids=range(len(SPELLED)))
def test_a_name_is_known_however_it_is_spelled(
    target: str, body: bytes, kind: bytes, fields: Headers
) -> None:
    """With brackets as PHP and Rails have them, underscores as CGI has them, and parts without quotes."""
    secret = "Zq7Kx0Wv9Lm2Np4Rt6Yb"
    asked = ask(
        tuple((name, value.replace(b"%s", secret.encode())) for name, value in fields)
        + (((b"content-type", kind),) if kind else ()),
        target.replace("%s", secret).replace("%%", "%"),
    )
    kept, _ = REDACTOR.request(replace(asked, body=body.replace(b"%s", secret.encode())))
    text = repr((kept.target, kept.headers, kept.body))
    assert secret not in text
