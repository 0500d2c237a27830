"""Secrets in bodies and other texts: what is hidden, what is left, and that a tape still matches."""

import base64
import gzip
import json
import re
import string
from collections.abc import Callable
from random import Random
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from playhead.config import KeepRule, RedactRule
from playhead.config.parse_values import SECRET_FORMATS
from playhead.tape.canonical.canonical_request import canonical, compile_rules, raw_key
from playhead.tape.exchange import (
    Chunk,
    Headers,
    Message,
    MessageKind,
    Request,
    RequestClass,
    Response,
)
from playhead.tape.redaction.finding.format_table import FORMATS
from playhead.tape.redaction.placeholders.placeholder import unescape
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response

KEY = "tk7Qm2+/Zp9x=Ab3_Lr-58fW0yC1vv"
JSON = (b"content-type", b"application/json")
FORM = (b"content-type", b"application/x-www-form-urlencoded")
PEM = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n"
RULES = compile_rules()


def ask(body: bytes, *headers: tuple[bytes, bytes], target: str = "/x") -> Request:
    """Give a request with a body."""
    return Request("POST", "https", "api.test", 443, target, "HTTP/1.1", headers, body)


def answer(body: bytes, *headers: tuple[bytes, bytes], complete: bool = True) -> Response:
    """Give an answer in two pieces."""
    chunks = (Chunk(1, len(body) // 2), Chunk(2, len(body) - len(body) // 2))
    return Response(200, b"", "HTTP/1.1", headers, body, 1, chunks, complete=complete)


def knowing(key: str = KEY, store: bytes = b"k" * 32) -> Redactor:
    """Give a redactor that has seen a key in a header field."""
    made = Redactor(store)
    made.request(ask(b"", (b"authorization", b"Bearer " + key.encode())))
    return made


def hidden(text: str, *headers: tuple[bytes, bytes]) -> str:
    """Give a request's body as it is stored, under a redactor that knows nothing."""
    return Redactor(b"k" * 32).request(ask(text.encode(), *headers))[0].body.decode()


TOKEN = "v7Qm2pZ9xAb3LrfW0yC1kT5d"
HEX = "9f3c07ab6d41e8527b0cd9e3461fa85d"
LONG = "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eXo"
HIDDEN = [
    # Fields by their names; %s is what must go, all else is kept
    ('{"password": "%s", "n": 1}', "hunter2"),
    ('{"Password":"%s"}', "tr0ub4dor"),
    ('{"apiKey" : "%s"}', TOKEN),
    ('{"client_secret":"%s","scope":"a"}', TOKEN),
    ('{"data":{"accessToken":"%s","expires_in":3600}}', TOKEN),
    ('{"refresh_token":"%s"}', HEX),
    ('{"token":"%s"}', TOKEN),
    ('{"webhook_token":"%s"}', TOKEN),
    ('{"arguments":"{\\"password\\": \\"%s\\"}"}', "hunter2"),
    ('{"a":"{\\"b\\":\\"{\\\\\\"api_key\\\\\\":\\\\\\"%s\\\\\\"}\\"}"}', TOKEN),
    ("password = '%s'\n", TOKEN),
    ('{"content":"export OPENAI_API_KEY=%s\\n"}', TOKEN),
    ("GITHUB_TOKEN: %s\n", TOKEN),
    ('{"authorization":"Bearer %s"}', TOKEN),
    # Formats
    ('{"content":"use\\n%s"}', "sk-" + "ant-api03-" + LONG + LONG + "kT5dv7"),
    ('{"content":"use %s."}', "sk-" + "proj-" + LONG + "k7Qm"),
    ('"%s"', "sk_" + "live_" + TOKEN),
    ("%s", "gh" + "p_" + LONG[:36]),
    ("x=%s ", "AK" + "IA" + "QX3FV7LWZB2KTN5R"),
    ("key %s", "AI" + "za" + LONG[:35]),
    ("%s", "xo" + "xb-684920157304-" + TOKEN),
    ("curl -H 'Authorization: Bearer %s'", TOKEN),
    ("Authorization: Basic %s", base64.b64encode(b"bob:v7Qm2pZ9xAb3").decode()),
    ("postgres://user:%s@db:5432/x", "pa55w0rd"),
    ("git clone https://%s@github.com/a/b", TOKEN),
    ("https://hooks.slack.com/services/%s", "T0AB1CD2EF/B0CD3EF4GH/" + TOKEN),
    ("https://api.telegram.org/bot%s/send", "684920157:" + "AA" + LONG[:33]),
]


@pytest.mark.parametrize(("form", "secret"), HIDDEN)
def test_a_secret_is_hidden_and_nothing_else(form: str, secret: str) -> None:
    """Length and signs stand; so does what is round it."""
    before, after = form.split("%s")
    out = hidden(before + secret + after)
    assert out.startswith(before)
    assert out.endswith(after)
    assert len(out) == len(before + secret + after)
    assert secret not in out
    assert [c.isalnum() for c in out] == [c.isalnum() for c in before + secret + after]


LEFT = [
    '{"model":"gpt-4o","max_tokens":100,"usage":{"total_tokens":12345678901234567890}}',
    '{"password":null,"api_key":12345678,"secret":true,"access_token":""}',
    '{"logprobs":{"content":[{"token":"Hello","logprob":-0.1},{"token":" world42"}]}}',
    '{"next_page_token":"abcdefgh0123456789","sync_token":"abcdefgh0123456789"}',
    '{"properties":{"password":{"type":"string"}},"required":["password"]}',
    '{"api_key":"<your key>","token":"${TOKEN}","password":"****","secret":"string"}',
    '{"idempotency_key":"0123456789abcdef","primary_key":"0123456789abcdef"}',
    '{"content":"task-management-system-0123456789-abcdefgh and disk-0123456789abcdefgh"}',
    '{"content":"Basic understanding of the Bearer of bad news: token= and key=value"}',
    '{"content":"mail me@example.com at https://example.com/a@b?x=1"}',
    "{'password': 'correcthorsebattery'}",
    '{"password":"q","apiKey":"abc","client_secret":"abcdef"}',
    '{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}',
    '{"id":"chatcmpl-0123456789abcdef","key":"value","keys":["a"],"monkey":"abc"}',
    "eyJ is how base64 of JSON begins",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
]


@pytest.mark.parametrize("text", LEFT)
def test_what_is_no_secret_stays(text: str) -> None:
    """A body that is damaged is worse than one that says `password`: it is given back as it is."""
    request = ask(text.encode(), JSON)
    redactor = Redactor(b"k" * 32)
    assert redactor.request(request)[0] == request
    said = answer(text.encode(), JSON)
    assert redactor.response(said)[0] == said


def test_a_message_about_a_password_is_left_alone() -> None:
    """Both ways: words are no secret."""
    text = b'{"errors":{"password":"is too short","token":"required"}}'
    redactor = Redactor(b"k")
    assert redactor.response(answer(text, JSON))[0].body == text
    assert redactor.request(ask(text, JSON))[0].body == text


def test_a_private_key_is_hidden_between_its_lines() -> None:
    """As it is, and in a string of JSON, which stays one."""
    secret = "MIIEpAIBAAKCAQEA0123456789abcdefABCDEF\nzzZZ+/=="
    out = hidden(PEM.format(secret))
    assert out.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert "MIIEp" not in out
    assert "zzZZ" not in out
    inside = json.loads(hidden(json.dumps({"k": PEM.format(secret)}), JSON))["k"]
    assert [len(line) for line in inside.split("\n")] == [
        len(line) for line in PEM.format(secret).split("\n")
    ]
    assert "MIIEp" not in inside


CODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda s: json.dumps(s)[1:-1],
    "slashes": lambda s: s.replace("/", "\\/"),
    "dotnet": lambda s: "".join(c if c.isalnum() else f"\\u{ord(c):04X}" for c in s),
    "all escaped": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "twice": lambda s: json.dumps(json.dumps(s.replace("/", "\\/")))[1:-1],
    "percent": lambda s: quote(s, safe=""),
    "form": quote_plus,
    "percent, small": lambda s: "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in s),
    "all percent": lambda s: "".join(f"%{ord(c):02X}" for c in s),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
}
_keys = st.text("abcXYZ019-_./+=~", min_size=12, max_size=60).filter(
    lambda s: (
        any(c.isdigit() for c in s)
        and any(c.isalpha() for c in s)
        and s[0].isalnum()
        and s[-1].isalnum()
    )
)
_around = st.text("abc XYZ,.:{}[]", max_size=20)


@pytest.mark.parametrize("coding", CODINGS)
@given(_keys, _around, _around)
@example("00000000001X", "", "")
def test_a_known_key_is_found_in_every_coding(
    coding: str, key: str, before: str, after: str
) -> None:
    """Whatever stands round it; the placeholder can be read where the key could."""
    code = CODINGS[coding]
    redactor = knowing(key)
    text = f'"{before} {code(key)} {after}"'
    out = redactor.request(ask(text.encode()))[0].body.decode()
    assert len(out) == len(text)
    assert code(key) not in out
    placeholder = redactor.placeholder("authorization", key.encode()).decode()
    shown = code(placeholder)
    # Digits alone are written alike in both hexadecimal codings.
    assert shown in out or (code(key).isdigit() and shown.lower() in out)


@given(_keys, st.binary(max_size=10), st.binary(max_size=10), st.booleans())
def test_a_known_key_is_found_inside_base64(
    key: str, before: bytes, after: bytes, url: bool
) -> None:
    """At any alignment; what is decoded holds the placeholder, and the neighbours as they were."""
    redactor = knowing(key)
    placeholder = redactor.placeholder("authorization", key.encode())
    code = base64.urlsafe_b64encode if url else base64.b64encode
    text = code(before + key.encode() + after)
    out = redactor.request(ask(b'{"x":"' + text + b'"}'))[0].body[6:-2]
    plain = base64.b64decode(out.translate(bytes.maketrans(b"-_", b"+/")))
    assert plain == before + placeholder + after


_no_text = st.binary(max_size=40).map(lambda data: bytes(code | 0x80 for code in data))
_NEW = (b"sk-" + b"proj-" + LONG.encode() + b"k7Qm", b"password=" + TOKEN.encode())


@given(
    st.sampled_from(_NEW),
    _no_text,
    st.sampled_from((b"\0", b"\1", b"\x02 ", b"\n", b"\xff", b"\x08\x96\1\x128", b"{\0}")),
    _no_text,
    st.booleans(),
)
def test_a_new_secret_is_found_in_base64_of_what_is_no_text(
    secret: bytes, before: bytes, tag: bytes, after: bytes, url: bool
) -> None:
    """A message of a binary format has tags and lengths round it, which may be any bytes."""
    before, after = before + tag, b"\x18" + after
    code = base64.urlsafe_b64encode if url else base64.b64encode
    body = b'{"d":"' + code(before + secret + after) + b'"}'
    out = knowing().request(ask(body))[0].body[6:-2]
    plain = base64.b64decode(out.translate(bytes.maketrans(b"-_", b"+/")))
    assert secret.rpartition(b"=")[2] not in plain
    assert (plain[: len(before)], plain[len(plain) - len(after) :]) == (before, after)


@given(_keys, st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_a_known_key_is_found_over_the_events_of_a_stream(key: str, sizes: list[int]) -> None:
    """A model says it piece by piece; put together, the answer holds the placeholder."""
    pieces, at = [], 0
    while at < len(key):
        for size in sizes:
            if key[at : at + size]:
                pieces.append(key[at : at + size])
            at += size
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in ["It is ", *pieces, "."]]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()
    redactor = knowing(key)
    out = redactor.response(answer(body, (b"content-type", b"text/event-stream")))[0].body
    told = [json.loads(line[6:]) for line in out.decode().split("\n\n") if line]
    said = "".join(one["choices"][0]["delta"]["content"] for one in told)
    assert said == f"It is {redactor.placeholder('authorization', key.encode()).decode()}."


CUT = [
    ('{"access_token":"v7Qm2p', "v7Qm2p"),
    ('data: {"x":"sk-ant-api03-ab', "sk-ant-api03-ab"),
    (f"your key is {KEY[:9]}", KEY[:9]),
    ("-----BEGIN PRIVATE KEY-----\nMIIEpAIB", "MIIEpAIB"),
]


@pytest.mark.parametrize(("text", "part"), CUT)
def test_the_beginning_of_a_secret_is_hidden_where_an_answer_was_cut(text: str, part: str) -> None:
    """What came of it is a part of the secret all the same."""
    redactor = knowing()
    out = redactor.response(answer(text.encode(), complete=False))[0].body.decode()
    assert part not in out
    assert out[: -len(part)] == text[: -len(part)]


@pytest.mark.parametrize("coding", [b"gzip", b"x-gzip"])
def test_a_coded_body_with_a_secret_is_kept_decoded(coding: bytes) -> None:
    """Requests and answers; one without a secret stays coded."""
    plain = json.dumps({"said": KEY, "more": "x" * 200}).encode()
    headers: Headers = (JSON, (b"Content-Encoding", coding), (b"Content-Length", b"1"))
    redactor = knowing()
    response, places, warnings = redactor.response(answer(gzip.compress(plain), *headers))
    assert json.loads(response.body)["more"] == "x" * 200
    assert response.headers == (JSON, (b"Content-Length", str(len(plain)).encode()))
    assert sum(chunk.size for chunk in response.chunks) == len(response.body)
    assert [one.place for one in places] == ["response.body"]
    assert len(warnings) == 1
    request, _ = redactor.request(ask(gzip.compress(plain), *headers))
    assert request.body == response.body
    harmless = answer(gzip.compress(b'{"a":1}'), *headers)
    assert redactor.response(harmless)[0] == harmless


def form_of(redactor: Redactor, request: Request) -> tuple[object, bytes]:
    """Give the canonical form and the raw key of a request, redacted."""
    stored, _ = redactor.request(request)
    secret = redactor.redacted_query(stored)
    kind = RequestClass.EFFECT
    return canonical(stored, kind, RULES, secret), raw_key(stored, kind)


SAME: list[Callable[[str], Request]] = [
    lambda key: ask(json.dumps({"a": f"use {key} now", "n": 1}).encode(), JSON),
    lambda key: ask(f"a=1&client_secret={quote_plus(key)}".encode(), FORM),
    lambda key: ask(f"a=1&note={quote_plus(key)}&b=2".encode(), FORM),
    lambda key: ask(b"\x00\x01" + key.encode() + b"\xff"),
    lambda key: ask(b"", target=f"/hooks/{quote(key, safe='')}/go?x=1"),
    lambda key: ask(b"", target=f"/x?user={quote(key, safe='')}&a=1"),
    lambda key: ask(b"", target=f"/x?a=1;access_token={quote(key, safe='')};b=2"),
    lambda key: ask(
        b'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n' + key.encode() + b"\r\n--b--\r\n",
        (b"content-type", b"multipart/form-data; boundary=b"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("make", SAME)
def test_a_secret_counts_by_its_kind_under_other_keys(make: Callable[[str], Request]) -> None:
    """Under another credential of another length, in a store with another key; anything else still counts."""
    dummy = "dummy-key-1"
    form, raw = form_of(knowing(KEY), make(KEY))
    other, _ = form_of(knowing(dummy, b"another"), make(dummy))
    assert form == other
    changed, _ = form_of(knowing(KEY), make(""))
    assert changed != form
    assert (
        raw == form_of(knowing(dummy, b"another"), make(dummy))[1]
        or b"multipart" in repr(make(KEY)).encode()
    )


def test_messages_lose_their_secrets() -> None:
    """Text and binary; frames stay as long as they were."""
    redactor = knowing()
    for kind, data in (
        (MessageKind.TEXT, json.dumps({"key": KEY}).encode()),
        (MessageKind.BINARY, b"\x00" + KEY.encode()),
    ):
        new = redactor.message(Message(1, True, kind, data, (5, len(data) - 5)))
        assert KEY.encode() not in new.data
        assert sum(new.frames) == len(new.data)
        assert [one.size for one in new.secrets] == [len(KEY)]
    same = Message(1, False, MessageKind.TEXT, b"nothing")
    assert redactor.message(same) is same


def test_undeclared_fields_and_trailers_lose_known_secrets() -> None:
    """An upstream echoes a key wherever it likes."""
    redactor = knowing()
    headers = (
        (b"x-debug", f"key={KEY}".encode()),
        (b"location", f"/x?next=1&u={quote(KEY, safe='')}".encode()),
    )
    response = Response(200, b"", "HTTP/1.1", headers, b"", 1, trailers=((b"x-t", KEY.encode()),))
    new, places, _ = redactor.response(response)
    assert KEY.encode() not in repr(new).encode()
    assert quote(KEY, safe="") not in repr(new)
    assert {one.place for one in places} == {
        "response.header.x-debug",
        "response.header.location",
        "response.trailer.x-t",
    }


def test_rules_add_and_take_away() -> None:
    """Fields, patterns and paths of a configuration; formats and fields it keeps."""
    rules = (
        RedactRule(json="$.pin"),
        RedactRule(form="pin"),
        RedactRule(pattern="acme_([0-9a-f]{8,})"),
        RedactRule(path="^/hooks/([^/]+)"),
    )
    redactor = Redactor(b"k", rules)
    assert redactor.request(ask(b'{"pin":"zq","n":5}', JSON))[0].body != b'{"pin":"zq","n":5}'
    assert redactor.request(ask(b"pin=zq&n=5", FORM))[0].body != b"pin=zq&n=5"
    new, _ = redactor.request(ask(b"see acme_0123456789 there"))
    assert new.body.startswith(b"see acme_")
    assert b"0123456789" not in new.body
    assert redactor.request(ask(b"", target="/hooks/abc/x"))[0].target != "/hooks/abc/x"
    kept = Redactor(
        b"k",
        (),
        (KeepRule(json="password"), KeepRule(format="github"), KeepRule(header="x-api-key")),
    )
    same = ask(
        b'{"password":"hunter2","g":"ghp_kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"}',
        JSON,
        (b"x-api-key", b"abc"),
    )
    assert kept.request(same)[0] == same


def test_a_field_that_is_kept_keeps_no_format_of_its_name() -> None:
    """And a format no field: a key of GitHub in a field `github` is one all the same."""
    secret = "ghp_kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    body = f'{{"github":"{secret}","x":"{secret}"}}'.encode()
    for kept in (KeepRule(json="github"), KeepRule(form="github")):
        new, _ = Redactor(b"k", (), (kept,)).request(ask(body, JSON))
        assert secret.encode() not in new.body
    named = b'{"userinfo":"hunter2-and-more"}'
    rules = (RedactRule(json="userinfo"),)
    new, _ = Redactor(b"k", rules, (KeepRule(format="userinfo"),)).request(ask(named, JSON))
    assert b"hunter2" not in new.body


def test_every_format_can_be_named() -> None:
    """What a configuration may turn off is what there is."""
    rows = {name for one in FORMATS for name in (one.name, one.family) if name}
    assert rows | {"userinfo", "pem", "bearer", "basic", "jwk"} == set(SECRET_FORMATS)


@given(st.binary(max_size=300), st.booleans())
def test_no_body_makes_it_raise(body: bytes, complete: bool) -> None:
    """Hostile bytes keep their length."""
    redactor = knowing()
    for headers in (
        (JSON,),
        (FORM,),
        ((b"content-type", b"text/event-stream"),),
        ((b"content-encoding", b"gzip"),),
    ):
        assert len(redactor.response(answer(body, *headers, complete=complete))[0].body) == len(
            body
        )
        redactor.request(ask(body, *headers))


@given(st.text('abc"\\:=&%{}-_/.u0012 password token sk-ey', max_size=200))
def test_no_text_makes_it_raise(text: str) -> None:
    """Texts made of what the search looks for."""
    redactor = knowing()
    for complete in (True, False):
        new, _, _ = redactor.response(answer(text.encode(), JSON, complete=complete))
        assert len(new.body) == len(text)
        assert sum(one.size for one in new.secrets) <= len(text)


ESCAPE = re.compile(rb"%[2-7][0-9A-Fa-f]|\\+u00[2-7][0-9A-Fa-f]|\\+/")
"""What can stand for a character of a secret, at its plainest."""
WAYS: tuple[Callable[[int], bytes], ...] = (
    lambda code: bytes([code]),
    lambda code: b"%%%02X" % code,
    lambda code: b"\\u00%02x" % code,
    lambda code: b"\\\\\\u00%02X" % code,
)
NOISE = st.lists(
    st.sampled_from([b"\\", b"u00", b"u", b"4", b"1", b"/", b"%", b"%2F", b"\\/", b"a", b" "]),
    max_size=12,
).map(b"".join)


@given(NOISE, st.lists(st.sampled_from(WAYS), min_size=len(KEY), max_size=len(KEY)), NOISE)
def test_a_secret_is_found_among_any_escapes(
    before: bytes, ways: list[Callable[[int], bytes]], after: bytes
) -> None:
    """Undone one after the other, as a plain search would, nothing gives the secret back."""
    written = b"".join(way(code) for way, code in zip(ways, KEY.encode(), strict=True))
    new = knowing().text(before + b" " + written + b" " + after)
    assert len(new) == len(before + written + after) + 2
    plain = ESCAPE.sub(lambda found: unescape(found[0]), new)
    assert KEY.encode() not in plain


def test_a_run_of_backslashes_costs_no_more_than_its_length() -> None:
    """Whoever writes a body cannot have it searched for hours."""
    redactor = knowing()
    for end in (b"x\\/", b'u"} password: ' + b"\\" * 15_000 + b"u"):
        body = b'{"password":"' + b"\\" * 15_000 + end + b"\\" * 1_000_000 + end
        assert len(redactor.text(body)) == len(body)


def _token(draw: Random, size: int) -> bytes:
    return b"EAAB" + "".join(draw.choices(string.ascii_letters + string.digits, k=size)).encode()


def test_base64_of_a_picture_stays() -> None:
    """A letter in it reads like the length of what is behind, which looks like a token; alone or in a binary format it is one."""
    draw = Random(7)
    token = _token(draw, 100)
    picture = base64.b64encode(draw.randbytes(300)).rstrip(b"=")
    letter = bytes([len(token)])
    inside = b'{"data": "' + picture + letter + token + picture + b'"}'
    assert Redactor(b"k").text(inside) == inside
    for before, behind in ((b"\x12", b"\x1a\x02ok"), (b'"', b'"'), (b"\xd9", b"")):
        text = before + letter + token + behind if before != b'"' else before + token + behind
        assert token not in Redactor(b"k").text(text)


@pytest.mark.parametrize(
    "text",
    [
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        b'{"device_code": "short", "x-amz-signature": "v4"}',
        b"$6$ is SHA-512, $2y$ is bcrypt, $apr1$ is Apache's",
        b'$env:APP_MODE = "development-with-a-long-name"',
    ],
)
def test_what_only_has_the_name_of_a_secret_stays(text: bytes) -> None:
    """Nonces, words and prefixes."""
    assert Redactor(b"k").text(text) == text


def test_the_cost_of_a_hash_stays() -> None:
    """Who checks a password against a placeholder takes no other time."""
    draw = Random(3)
    body = "".join(draw.choices(string.ascii_letters + string.digits, k=53))
    long = "".join(draw.choices(string.ascii_letters + string.digits, k=86))
    for begin, rest in (("$2b$12$", body), ("$6$rounds=5000$", f"saltsalt${long}")):
        kept = Redactor(b"k").text(f"bob:{begin}{rest}\n".encode()).decode()
        assert kept.startswith(f"bob:{begin}")
        assert len(kept) == len(f"bob:{begin}{rest}\n")
        assert rest not in kept


def test_the_code_of_a_grant_is_learned_from_where_it_is_sent() -> None:
    """With its `state`; another `code` is no secret."""
    code = "9b1c7e3f5a2d4c6e8f0a1b3c5d7e9f2a4b6c8d0e"
    for state, kept in (("&state=s1", False), ("", True)):
        redactor = Redactor(b"k")
        where = f"https://app.test/cb?code={code}{state}".encode()
        answer = make_response(b"", 302, headers=((b"location", where),))
        new, places, _ = redactor.response(answer)
        assert (code.encode() in new.headers[0][1]) is kept
        assert bool(places) is not kept
        assert (code.encode() in redactor.text(f"got {code}".encode())) is kept


@pytest.mark.parametrize(
    "form",
    [
        '{{"api_keys": ["{}", "{}", "{}"]}}',
        '{{"tokens":[{{"id": 1, "on": true}}, null, "{}", "short", "{}","{}"]}}',
        "api_keys:\n  - {}\n  - '{}'\n  - {}\nother: x\n",
        '{{"args": "{{\\"secrets\\": [\\"{}\\", \\"{}\\", \\"{}\\"]}}"}}',
    ],
)
def test_each_item_of_a_list_of_secrets_is_found(form: str) -> None:
    """Not only the first one."""
    draw = Random(5)
    keys = ["".join(draw.choices(string.ascii_letters + string.digits, k=24)) for _ in range(3)]
    text = form.format(*keys)
    kept = Redactor(b"k").text(text.encode()).decode()
    assert len(kept) == len(text)
    assert not [key for key in keys if key in kept], kept


def test_other_items_of_a_list_stay() -> None:
    """Words, numbers and names beside secrets; a list that has another name."""
    key = "kT5dv7Qm2pZ9xAb3LrfW0yC1"
    text = f'{{"api_keys": ["{key}", "production", 12345678, "eu-west-1"], "ids": ["a1b2c3d4e5f6a7b8c9d0"]}}'
    kept = Redactor(b"k").text(text.encode()).decode()
    assert kept.replace(kept[15:39], key) == text
    assert key not in kept
