"""What a request's head says of its host, method and path beside."""

import gzip
import json
from dataclasses import replace
from urllib.parse import quote

import pytest

from playhead.config import Classes, parse_match
from playhead.config.targets.host_interpretations import Place
from playhead.config.targets.request_interpretations import ANY_PATH, More
from playhead.tape.canonical.canonical_request import (
    canonical,
    compile_rules,
    effect_key,
    fingerprint,
    raw_key,
)
from playhead.tape.canonical.json_rpc_client_ids import STDIO_HOST
from playhead.tape.canonical.target_overrides import (
    Claim,
    ClaimKind,
    claimed,
    claims_of,
    find_body_claims,
    find_claims,
    names_of,
    read_claims,
    without_claims,
)
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import Headers, Request, RequestClass
from playhead.tape.policy.decide import Facts

RULES = compile_rules()


def _claims(*headers: tuple[bytes, bytes], target: str = "/", method: str = "POST") -> list[str]:
    found = find_claims(method, "https", "a.example", 443, target, headers, named=True)
    return [f"{kind} {text}" for kind, text in found]


@pytest.mark.parametrize(
    "host", [b"a.example", b"A.Example", b"a.example.", b"a.example:443", b"a.example:0443"]
)
def test_a_name_in_other_writing_agrees(host: bytes) -> None:
    """Case, a trailing dot and the scheme's own port say nothing else."""
    assert _claims((b"Host", host)) == []


def test_the_command_of_a_server_over_pipes_is_no_address() -> None:
    """It says how a program was started; at any other host nobody knows the field."""
    started = (
        b"playhead-stdio-command",
        b"server.py https://mcp.example/sse postgres://u@db.example/x",
    )
    here = find_claims("POST", "http", STDIO_HOST, 80, "/server.py", (started,), named=True)
    assert here == ()
    assert _claims(started) == ["url mcp.example", "url u@db.example"]


@pytest.mark.parametrize(
    ("headers", "target", "said"),
    [
        ([(b"Host", b"b.example")], "/", ["host b.example"]),
        ([(b"Host", b"a.example:80")], "/", ["host a.example:80"]),
        ([(b"Host", b"")], "/", ["host "]),
        ([(b"host", b"a.example, b.example")], "/", ["host a.example, b.example"]),
        ([(b"X-Forwarded-Host", b"b.example")], "/", ["forwarded b.example"]),
        ([(b"X-Forwarded-Host", b"a.example")], "/", []),
        ([(b"Forwarded", b'for=1;host="b.example"')], "/", ["forwarded b.example"]),
        ([(b"X-HTTP-Method-Override", b"delete")], "/", ["method DELETE"]),
        ([(b"x_http_method_override", b"PUT")], "/", ["method PUT"]),
        ([(b"X-Method-Override", b"PUT, DELETE")], "/", ["method PUT", "method DELETE"]),
        ([(b"X-Original-URL", b"/admin")], "/", ["path /admin"]),
        ([], "/?a=1&_method=delete", ["method DELETE"]),
        ([], "/?%5fMethod=%44ELETE", ["method DELETE"]),
        ([], "/?a=1;_method=PUT", ["method PUT"]),
        ([], "/?method=flickr.photos", []),
        ([], "https://b.example/x", ["target b.example"]),
        ([], "https://a.example/x", []),
        ([(b"Accept", b"x"), (b"X-Api-Key", b"y")], "/?q=%20", []),
    ],
)
def test_what_says_something_else_is_a_claim(
    headers: list[tuple[bytes, bytes]], target: str, said: list[str]
) -> None:
    """Names, methods and paths that servers and frameworks obey."""
    assert _claims(*headers, target=target) == said


def test_a_request_that_names_no_host_agrees_with_nothing() -> None:
    """A server takes its default one; over HTTP/2 `:authority` names it, and an SNI may be absent."""
    bare = _ask()
    assert claims_of(bare) == (Claim(ClaimKind.UNNAMED, ""),)
    assert len(Facts.of_request(bare, Classes())[0].ways.places) == 2
    assert claims_of(replace(bare, http_version="HTTP/2.0")) == ()
    assert claims_of(_ask(((b"host", b"a.example"),))) == ()


def test_a_method_in_small_letters_is_one_of_its_own() -> None:
    """Methods are told apart by case: RFC 9110 section 9.1."""
    assert _claims(method="post") == ["method post"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"application/x-www-form-urlencoded", b"a=1&_method=delete"),
        (b"application/x-www-form-urlencoded; charset=utf-8", b"_%6Dethod=DELETE"),
        (
            b"multipart/form-data; boundary=x",
            b'--x\r\ncontent-disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--x--\r\n',
        ),
    ],
)
def test_a_form_may_claim_a_method(kind: bytes, body: bytes) -> None:
    """Rails, Laravel and Symfony obey it."""
    headers = ((b"host", b"a.example"), (b"content-type", kind))
    assert claims_of(_ask(headers, body=body)) == (Claim(ClaimKind.METHOD, "DELETE"),)


UNREAD_METHODS = [
    b"%44ELETE",
    b"%2544ELETE",
    b"\xef\xbb\xbfDELETE",
    b'"DELETE"',
    b"'DELETE'",
    b"DELETE;q=1",
    b"DELETE /v1",
    b"DELETE\xc2\xa0",
    b"POST DELETE",
    b"POST\tDELETE",
    b"=DELETE",
    b"method=DELETE",
    b"D\xc4\x93LETE",
    b"BREW",
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("value", UNREAD_METHODS)
def test_an_override_that_is_no_method_may_be_any(method: str, value: bytes) -> None:
    """In a field, a query, a form, its parts and JSON alike: a gate takes it, no live rule does, and it is an effect."""
    named, form = (b"host", b"a.example"), (b"content-type", b"application/x-www-form-urlencoded")
    parts = (b"content-type", b"multipart/form-data; boundary=x")
    part = b'--x\r\ncontent-disposition: form-data; name="_method"\r\n\r\n%b\r\n--x--\r\n' % value
    told = json.dumps({"_method": value.decode("latin-1")}).encode()
    for request in (
        _ask((named, (b"X-HTTP-Method-Override", value))),
        _ask((named, (b"X-Method", value))),
        _ask((named, form), body=b"a=1&_method=" + value.replace(b";", b"%3B")),
        _ask((named, parts), body=part),
        _ask((named, (b"content-type", b"application/json")), body=told),
        replace(_ask((named,)), target="/v1/x?_method=" + quote(value)),
    ):
        facts = Facts.of_request(replace(request, method=method), Classes())[0]
        assert parse_match("DELETE https://a.example/*").maybe(facts.ways)
        assert not parse_match(f"{method} https://a.example/*").clearly(facts.ways)
        assert not parse_match(f"{method} https://a.example/*").surely(facts.ways)
        assert facts.request_class is RequestClass.EFFECT


@pytest.mark.parametrize("value", [b"%44ELETE", b'"delete"', b"\xef\xbb\xbfDELETE", b" DELETE;"])
def test_a_field_that_may_hold_another_method_is_read_in_normal_form(value: bytes) -> None:
    """Its name says that it is some method; ordinary words in it, as MCP's, are none."""
    assert _claims((b"X-Original-Method", value)) == ["method DELETE"]
    assert _claims((b"Mcp-Method", b"prompts/get"), (b"X-Payment-Method", b"delete_card")) == []


@pytest.mark.parametrize(
    ("fields", "body", "claims"),
    [
        ([b"application/json"], b'{"a": {"_method": "DELETE"}}', []),
        ([b"application/json"], b'{"method": "DELETE", "text": "\\"_method\\": 1"}', []),
        ([b"application/json"], b'{"\\u005fMethod": "delete"}', ["DELETE"]),
        ([b"application/json"], '{"_method": "PUT"}'.encode("utf-16"), ["PUT"]),
        ([b"application/json"], b'{"_method": "PUT",}', ["*"]),
        ([b"application/vnd.api+json"], b'[{"_method": "PUT"}]', ["PUT"]),
        ([b"application/connect+json"], None, []),
        ([b"application/json"], None, ["*"]),
        ([b"application/x-www-form-urlencoded"], b"method=card&b=%5fx", []),
        ([b"application/x-www-form-urlencoded"], b"method=delete", ["DELETE"]),
        ([b"application/x-www-form-urlencoded"], b"%255Fmethod=x", ["X", "*"]),
        ([b"application/x-www-form-urlencoded"], b"&".join([b"a=%"] * 20_002), ["*"]),
        ([b"application/x-www-form-urlencoded"], None, ["*"]),
        ([b"text/plain", b"application/x-www-form-urlencoded"], b"_method=PUT", ["PUT"]),
        ([], b"_method=PUT", ["PUT"]),
        ([], None, ["*"]),
        ([b"text/plain"], None, []),
        ([b"application/octet-stream"], b"_method=PUT", []),
    ],
)
def test_a_body_claims_what_some_framework_reads_in_it(
    fields: list[bytes], body: bytes | None, claims: list[str]
) -> None:
    """What cannot be read claims any method; a nested field, or a name that is no override, claims none."""
    headers = tuple((b"content-type", value) for value in fields)
    assert [one.text for one in find_body_claims("POST", headers, body)] == claims


@pytest.mark.parametrize(
    ("coding", "claims"), [(b"gzip", ["PUT"]), (b"x-own", ["*"]), (b"gzip, x-own", ["*"])]
)
def test_a_coded_form_is_read_or_claims_anything(coding: bytes, claims: list[str]) -> None:
    """A coding that cannot be undone hides whatever it likes."""
    headers = (
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-encoding", coding),
    )
    found = find_body_claims("POST", headers, gzip.compress(b"_method=PUT"))
    assert [one.text for one in found] == claims


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        (b"X-HTTP-Method-Override", b"PUT", "method"),
        (b"X_Http_Method", b"DELETE", "method"),
        (b"X-Original-Method", b"DELETE", "method"),
        (b"X-Stainless-Helper-Method", b"stream", None),
        (b"Access-Control-Request-Method", b"DELETE", None),
        (b"X-Verbose", b"DELETE", None),
        (b"X-Envoy-Original-Path", b"/y", "path"),
        (b"X-Forwarded-Uri", b"/y", "path"),
        (b"X-Rewrite", b"/y", "path"),
        (b"X-Tunnel-Host", b"b.example", "forwarded"),
        (b"X-Forwarded-Prefix", b"/y", "path"),
        (b"HTTP-Referer", b"https://b.example/y", None),
        (b"X-Callback-Url", b"https://b.example/y", "url"),
        (b"X-Callback-Url", b"https://a.example/y", None),
        (b"X-Any", b'see "wss:\\/\\/b.example\\/y"', "url"),
        (b"X-Any", b"//b.example/y", "url"),
        (b"X-Any", b"a//b/c", None),
        (b"Origin", b"https://b.example", None),
        (b"User-Agent", b"x (+https://b.example)", None),
        (b"SOAPAction", b'"https://b.example/y"', None),
        (b"Accept", b'a/b; profile="https://b.example/y"', None),
        (b"Helicone-Target-URL", b"https://b.example", "gateway"),
        (b"Helicone-Target-URL", b"https://a.example", None),
        (b"X-Portkey-Custom-Host", b"b.example:8080", "gateway"),
        (b"X-Portkey-Provider", b"openai", None),
        (b"X-LiteLLM-Api-Base", b"https://b.example", "gateway"),
        (b"Proxy-Target", b"10.0.0.1", "gateway"),
        (b"X-Upstream-Host", b"b.example", "gateway"),
        (b"X-Backend", b"localhost", "gateway"),
        (b"X-Envoy-Upstream-Rq-Timeout-Ms", b"1500", None),
        (b"X-Amz-Target", b"DynamoDB_20120810.ListTables", None),
        (b"X-Amz-Copy-Source", b"/y", None),
        (b"X-Forwarded-Server", b"b.example", "forwarded"),
        (b"X-Forwarded-Port", b"8443", "forwarded"),
        (b"X-Forwarded-Host", b"a.example", None),
        (b"X-Forwarded-For", b"10.0.0.1", None),
        (b"X-Datadog-Hostname", b"laptop", None),
        (b"X-Forwarded-Proto", b"http", "scheme"),
        (b"X-Forwarded-Proto", b"https", None),
        (b"Sec-WebSocket-Protocol", b"http", None),
        (b"Upgrade", b"WebSocket", "websocket"),
        (b"Upgrade", b"h2c", None),
    ],
)
def test_a_field_is_known_by_the_words_in_its_name(
    name: bytes, value: bytes, kind: str | None
) -> None:
    """No list of names is complete; fields that clients send for other things claim nothing."""
    request = _ask(((b"host", b"a.example"), (name, value)))
    assert [str(one.kind) for one in claims_of(request)] == ([kind] if kind else [])
    counted = kind not in (None, "websocket", "url")
    assert bool(names_of(request)) is counted
    # In trailers they say the same.
    late = replace(request, headers=request.headers[:1], trailers=request.headers[1:])
    assert claims_of(late) == claims_of(request)
    assert names_of(late) == names_of(request)


@pytest.mark.parametrize(
    ("name", "value", "paths"),
    [
        (b"X-Upstream-Url", b"https://a.example/pay", ["/pay", "/pay/v1/x"]),
        (b"Helicone-Target-URL", b"https://a.example/pay/", ["/pay/", "/pay/v1/x"]),
        (b"X-Target-Url", b"HTTPS:\\/\\/a.example/pay?a=b", ["/pay?a=b", "/pay/v1/x"]),
        (b"X-Backend", b"a.example/pay", ["/pay", "/pay/v1/x"]),
        (b"X-Portkey-Custom-Host", b"https://b.example/v1", ["/v1", "/v1/v1/x"]),
        (b"X-Target", b"/pay", ["/pay"]),
        (b"X-Upstream-Url", b"https://a.example/v1/x", []),
        (b"X-Upstream-Url", b"https://a.example", []),
    ],
)
def test_an_address_for_a_gateway_is_the_path_or_its_beginning(
    name: bytes, value: bytes, paths: list[str]
) -> None:
    """Some gateways ask for just what it names, others put the path of the request behind it."""
    claims = claims_of(_ask(((b"host", b"a.example"), (name, value))))
    assert [one.text for one in claims if one.kind == "path" and one.text != ANY_PATH] == paths


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"X-Virtual-Host", b"b.example"),
        (b"X-Vhost", b"b.example"),
        (b"X-Proxied-Host", b"b.example"),
        (b"X-Backend", b"2130706434"),
        (b"X-Upstream", b"0x7f000002"),
        (b"X-Url-Path", b"/pay"),
        (b"X-Path-Info", b"/pay"),
        (b"X-Api-Path", b"/pay"),
        (b"X-Base-Path", b"/pay"),
        (b"X-Full-Url", b"/pay"),
        (b"X-Proxied-Url", b"https:h"),
        (b"X-Connect-To", b"https:h"),
        (b"X-Forwarded-To", b"/pay"),
        (b"X-Upstream-Url2", b"%2fpay"),
        (b"X-Upstream-Urls", b"%2fpay"),
        (b"X-Target-Url-Encoded", b"%2fpay"),
        (b"X-Upstream-Url", b"http://a.example:443/v1/x"),
        (b"X-Upstream-Url", b"https://a.example/v1/x;/pay"),
        (b"X-Scheme", b"https://b.example/v1/x"),
        (b"X-Original-Method", b"https://b.example/v1/x"),
        (b"X-Whatever", b"https:///b.example"),
        (b"X-Whatever", b"https:\\\\b.example"),
        (b"X-Whatever", b"https%3a%2f%2fb.example"),
    ],
)
def test_a_field_of_many_a_name_is_a_claim(name: bytes, value: bytes) -> None:
    """However the field is called, and however the URL in it is written."""
    assert claims_of(_ask(((b"host", b"a.example"), (name, value)))) != ()


@pytest.mark.parametrize(
    ("name", "value"), [(b"X-Forwarded-Ssl", b"off"), (b"Front-End-Https", b"0")]
)
def test_a_field_may_deny_that_a_request_was_encrypted(name: bytes, value: bytes) -> None:
    """Servers behind a proxy take the scheme from it, either way."""
    claims = claims_of(_ask(((b"host", b"a.example"), (name, value))))
    assert [(one.kind, one.text) for one in claims] == [("scheme", "http")]


_KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
_WHOLE = {
    b"Upgrade": b"websocket",
    b"Connection": b"keep-alive, Upgrade",
    b"Sec-WebSocket-Version": b"13",
    b"Sec-WebSocket-Key": _KEY,
}


@pytest.mark.parametrize(
    ("changed", "whole"),
    [
        ({}, True),
        ({b"Upgrade": b"WebSocket"}, True),
        ({b"Upgrade": b"websocket, h2c"}, False),
        ({b"Connection": b"keep-alive"}, False),
        ({b"Connection": b""}, False),
        ({b"Sec-WebSocket-Version": b"8"}, False),
        ({b"Sec-WebSocket-Key": b"short"}, False),
        ({b"Sec-WebSocket-Key": _KEY + b", " + _KEY}, False),
    ],
)
def test_a_handshake_is_whole_or_may_be_taken_for_a_plain_request(
    changed: dict[bytes, bytes], whole: bool
) -> None:
    """Either way it asks for a WebSocket; what lets one out needs all of it."""
    request = _ask(((b"host", b"a.example"), *(_WHOLE | changed).items()))
    more = claimed(claims_of(request), "https", 443)
    assert (more.websocket, more.handshake) == (True, whole)


UNREAD = [
    b"http:evil.test",
    b"https:\\\\evil.test",
    b"https:/evil.test/v1",
    b"ht\ttps://evil.test/v1",
    b"https://ev\til.test/v1",
    b"https%3A%2F%2Fevil.test%2Fv1",
    b"https://evil%252etest",
    b'"evil.test"',
    b"u:p@evil.test",
    b"to=evil.test",
    b"evil.test;q=1",
    b"a.example,http:evil.test",
    b'{"url":"https:evil.test"}',
    b"dns:///evil.test:443",
    b"unix:/run/x",
    b"aHR0cHM6Ly9ldmlsLnRlc3QvdjE=",
]


def _assert_any_host(request: Request) -> None:
    """Have every gate hold a request, and no live rule let it out."""
    ways = Facts.of_request(request, Classes())[0].ways
    assert ways.anywhere
    assert parse_match("POST https://evil.test/*").maybe(ways)
    assert not parse_match("POST https://a.example/*").clearly(ways)
    assert not parse_match("POST https://a.example/*").surely(ways)


@pytest.mark.parametrize("name", [b"Helicone-Target-URL", b"X-Upstream-Host", b"X-Original-URL"])
@pytest.mark.parametrize("value", UNREAD)
def test_an_address_that_cannot_be_read_is_any(name: bytes, value: bytes) -> None:
    """A gate on any host holds it, and no live rule lets it out."""
    _assert_any_host(_ask(((b"host", b"a.example"), (name, value))))


@pytest.mark.parametrize("name", [b"X-Forwarded-Host", b"X-Host", b"X-Forwarded-Server"])
@pytest.mark.parametrize("value", [one for one in UNREAD if one[:1] != b'"'])
def test_a_forwarded_host_that_is_no_name_is_any(name: bytes, value: bytes) -> None:
    """Two of them are two requests, whatever a server makes of them."""
    request = _ask(((b"host", b"a.example"), (name, value)))
    _assert_any_host(request)
    other = replace(request, headers=((b"host", b"a.example"), (name, value.swapcase())))
    prints = [fingerprint(canonical(one, RequestClass.EFFECT, RULES)) for one in (request, other)]
    assert prints[0] != prints[1]


@pytest.mark.parametrize(
    "value",
    [
        b"b.example",
        b"b.example:8443",
        b"b\xc3\xbccher.example",
        b"[::1]:80",
        b"backend",
        b'"b.example"',
    ],
)
def test_a_forwarded_host_that_is_a_name_is_that_name(value: bytes) -> None:
    """In whatever script, with a port, as an address, quoted."""
    (found,) = _claims((b"X-Forwarded-Host", value))
    assert found.startswith("forwarded ")


@pytest.mark.parametrize(
    "name",
    [
        b"X-HTTP-Path-Override",
        b"X-URL-Override",
        b"X-Override-Path",
        b"X-Target-Path",
        b"X-Upstream-Path",
        b"X-Proxy-Path",
        b"X-Path",
        b"X-Url",
        b"X-Uri",
        b"X-Route",
        b"X-Upstream-Url",
        b"X-Target-Url",
        b"X-Proxy-Url",
        b"X-Waws-Unencoded-Url",
    ],
)
@pytest.mark.parametrize(
    "value", [b"/v2/refunds", b"/v1/x, /v2/refunds", b"path=/v2/refunds", b"%2Fv2%2Frefunds"]
)
def test_a_path_in_a_field_is_a_path(name: bytes, value: bytes) -> None:
    """Whatever order the words of the name are in, and however the value is spelled."""
    ways = Facts.of_request(_ask(((b"host", b"a.example"), (name, value))), Classes())[0].ways
    assert parse_match("POST https://a.example/v2/refunds").maybe(ways)
    assert not parse_match("POST https://a.example/v1/*").clearly(ways)
    assert not parse_match("POST https://a.example/v1/*").surely(ways)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"X-Ms-Copy-Source", b"/account/container/blob"),
        (b"X-Amz-Copy-Source", b"bucket/a%20b"),
        (b"X-Ms-Rename-Source", b"/a/b"),
        (b"Dropbox-Api-Path-Root", b'{".tag": "root", "root": "1"}'),
        (b"Dropbox-Api-Arg", b'{"path": "/a"}'),
        (b"X-Goog-Request-Params", b"database=projects%2Fp%2Fdatabases%2F(default)"),
        (b"Google-Cloud-Resource-Prefix", b"projects/p/databases/(default)"),
        (b"HTTP-Referer", b"https://b.example/"),
        (b"Mcp-Method", b"tools/call"),
        (b"X-Clickhouse-Database", b"default"),
        (b"X-Api-Database", b"a b"),
        (b"X-Ms-Documentdb-Partitionkey", b'["a"]'),
        (b"X-Weaviate-Cluster-Url", b"a.example"),
        (b"X-Portkey-Config", b'{"provider": "openai"}'),
        (b"X-Portkey-Provider", b"@openai-prod"),
        (b"X-Envoy-Upstream-Rq-Timeout-Ms", b"1500"),
        (b"X-Security-Override", b"a b"),
        (b"X-Backend", b"blue"),
        (b"Destination", b"/dav/a%20b"),
        (b"Destination", b"https://a.example/dav/b"),
        (b"Helicone-Target-URL", b"https://a.example/"),
    ],
)
def test_fields_of_ordinary_clients_claim_nothing(name: bytes, value: bytes) -> None:
    """They are compared by their values, and name no other host or path."""
    assert claims_of(_ask(((b"host", b"a.example"), (name, value)))) == ()


def test_a_list_of_hosts_names_each() -> None:
    """A gateway may take any of them."""
    assert _claims((b"X-Upstream-Host", b"a.example, b.example,c.example")) == [
        "gateway b.example",
        "gateway c.example",
    ]


def test_claims_are_read_as_rules_look_at_them() -> None:
    """A name of TLS has no port of its own."""
    rows = [
        ("sni", "B.example"),
        ("host", "c.example:80"),
        ("method", "PUT"),
        ("path", "/x"),
        ("?", ""),
    ]
    assert claimed(read_claims(rows), "https", 8443) == More(
        ("PUT",), (Place("b.example", 8443), Place("c.example", 80)), ("/x",)
    )


def _ask(
    headers: Headers = (),
    names: tuple[tuple[str, str], ...] = (),
    target: str = "/v1/x",
    body: bytes = b"",
) -> Request:
    return Request(
        "POST", "https", "a.example", 443, target, "HTTP/1.1", headers, body, names=names
    )


def test_names_that_do_not_agree_count_in_matching() -> None:
    """Two tenants behind one address are two; where all names agree nothing is different."""
    bare = _ask()
    same = _ask(((b"Host", b"A.example:443"),))
    tenants = [_ask(((b"Host", host),)) for host in (b"one.example", b"two.example")]
    fronted = _ask(names=(("sni", "one.example"),))
    asked = _ask(names=(("authority", "one.example"),))
    prints = [fingerprint(canonical(one, RequestClass.READ, RULES)) for one in (bare, same)]
    assert prints[0] == prints[1]
    assert raw_key(bare, RequestClass.READ) == raw_key(same, RequestClass.READ)
    every = [bare, *tenants, fronted, asked]
    assert len({fingerprint(canonical(one, RequestClass.READ, RULES)) for one in every}) == 5
    assert len({raw_key(one, RequestClass.READ) for one in every}) == 5
    assert len({effect_key(canonical(one, RequestClass.EFFECT, RULES)) for one in every}) == 5
    assert names_of(tenants[0]) == ("host=one.example:443",)


def test_a_refusal_names_the_name_that_differs() -> None:
    """Not the body, not a header field that does not count."""
    one, other = (_ask(((b"Host", host),)) for host in (b"one.example", b"two.example"))
    (found,) = differences(one, other, RULES)
    assert (found.place, found.recorded, found.asked) == (
        "names",
        "host=one.example:443",
        "host=two.example:443",
    )


@pytest.mark.parametrize("target", ["/v1//x", "/v1/%78", "/v1/y/../x", "/v1/x/", "/v1/x;a"])
def test_another_spelling_of_an_effect_is_that_effect(target: str) -> None:
    """So a gate on duplicates holds it; on a tape it is another request."""
    first, second = (
        canonical(_ask(target=one), RequestClass.EFFECT, RULES) for one in ("/v1/x", target)
    )
    assert effect_key(first) == effect_key(second)


def test_trailers_are_left_without_what_they_claim() -> None:
    """Of a request that was decided before they came; those that claim nothing stay, in their order."""
    kept = ((b"x-checksum", b"1"), (b"Referer", b"https://b.example/"))
    claiming = ((b"X-Original-URL", b"/admin"), (b"host", b"b.example"))
    trailers = (kept[0], *claiming, kept[1])
    assert without_claims(trailers, "https", "a.example", 443, "/x") == kept
    assert without_claims((), "https", "a.example", 443, "/x") == ()
