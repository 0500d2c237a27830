"""What of a request's fields of unknown names reads as an address, and what live rules make of it."""

import json

import pytest

from playhead.config import Classes, ClassLive, Config, LiveRule, Playback, parse_match
from playhead.tape.canonical.address_fields import find_address_fields
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.branch import Branch
from playhead.tape.policy.decide import Facts, Policy

_PLACE = ("https", "api.example.test", 443, "/v1/emit?x=1")
_SPELLINGS = (
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.1",
    "0x7f.1:8080",
    "127\u30020\u30020\u30021",
    "evil\u3002test",
    "evil\uff0etest",
    "evil\uff61test/admin",
    "evil%E3%80%82test",
    "\uff45\uff56\uff49\uff4c.test",
    "\uff11\uff12\uff17.0.0.1",
    "\uff0fadmin",
    "https\uff1a\uff0f\uff0fevil.test",
    "%EF%BC%8Fadmin",
    "\uff052Fadmin",
)
"""Addresses as some server or resolver reads them."""
LEADING = (
    *(
        f"X-Foo: {value}".encode().decode("latin-1")
        for spelling in _SPELLINGS
        for value in (
            spelling,
            f"a, {spelling}",
            json.dumps({"a": spelling}),
            json.dumps({"a": spelling}, ensure_ascii=False),
        )
    ),
    # paths, under whatever name
    *(
        f"{name}: /v1/admin"
        for name in (
            "X-Invoke-Path",
            "X-Matched-Path",
            "X-Middleware-Rewrite",
            "X-Script-Name",
            "Foo",
        )
    ),
    "X-Foo: /",
    "X-Foo: \\v1\\admin",
    "X-Foo: ../v1/admin",
    "X-Foo: ./admin",
    "X-Foo: %2Fv1%2Fadmin",
    "X-Foo: %252Fv1%252Fadmin",
    "X-Foo: go=/v1/admin",
    "X-Foo: a, /v1/admin",
    "X-Foo: path:/v1/admin",
    "X-Foo: POST /v1/admin HTTP/1.1",
    'X-Foo: {"path": "\\/v1\\/admin"}',
    'X-Foo: {"path": "\\u002fv1\\u002fadmin"}',
    "X-Foo: /v1/emit/../admin",
    # hosts
    *(
        f"{name}: evil.test"
        for name in (
            *(
                "X-Authority",
                "X-Next-Hop",
                "X-Dest",
                "X-Domain",
                "X-Server",
                "X-Origin",
                "X-Relay",
                "X-Service",
            ),
            *("X-Cluster", "X-Node", "X-Peer", "X-Site", "X-Backend-Config", "X-Resource-Name"),
        )
    ),
    "X-Foo: evil.test.",
    "X-Foo: EVIL.test:8443",
    "X-Foo: evil.test/v1/emit",
    "X-Foo: bob@evil.test",
    "X-Foo: host=evil.test; q=1",
    "X-Foo: host:evil.test",
    "X-Foo: b\xfccher.test",
    "X-Foo: xn--bcher-kva.xn--p1ai",
    "X-Foo: localhost",
    "X-Foo: localhost:8080",
    "X-Foo: db:5432",
    "X-Foo: 10.0.0.1",
    "X-Foo: 127.1",
    "X-Foo: 0x7f000001",
    "X-Foo: [::1]:80",
    "X-Foo: ::ffff:10.0.0.1",
    "X-Foo: api.example.test:8443",
    'X-Portkey-Config: {"provider": "x", "custom_host": "evil.test"}',
    # URLs
    "X-Foo: https://evil.test",
    "X-Foo: //evil.test/v1/emit",
    "X-Foo: https://api.example.test/v1/admin",
    'X-Portkey-Config: {"targets": [{"custom_host": "https:\\/\\/evil.test"}]}',
    "X-Signature: https://evil.test/",
)
HARMLESS = (
    "X-Date: 01.02.2024",
    "X-Foo: 0.10.3",
    "X-Foo: 1.08",
    *(
        f"X-Foo: {value}".encode().decode("latin-1")
        for value in ("caf\u00e9", "\u4eca\u65e5\u3002", "api\u3002example\u3002test", "50\uff05")
    ),
    # what the request is anyway
    "X-Foo: /v1/emit",
    "X-Foo: /v1/emit?x=1",
    "X-Foo: api.example.test",
    "X-Foo: API.example.test:443",
    "X-Foo: https://api.example.test/v1/emit",
    "X-Foo: https://api.example.test",
    # words, numbers, versions, times, types, ids, tokens
    "X-Foo: blue",
    "X-Foo: 1.2.3",
    "X-Foo: 0.25",
    "X-Foo: gpt-4.1-mini",
    "X-Foo: OpenAI/Python 3.57.0",
    "X-Foo: text/html; q=0.8, */*",
    "X-Foo: 2026-11-24T12:30:00Z",
    "X-Foo: Tue, 24 Nov 2026 12:30:00 GMT",
    "X-Foo: 24/11/2026",
    "X-Foo: org/repo.git",
    "X-Foo: 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "X-Foo: a8f5f167:44f4964e:6c998dee:1",
    "X-Foo: eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2lnbmF0dXJl0",
    "X-Foo: YWJjL2RlZg==",
    'X-Foo: {"a": 1, "b": ["x", "y"]}',
    # credentials and digests by their names
    "X-Signature: /9j4AAQSkZJRgABAQAAAQABAAD/2wBD=",
    "X-Hub-Signature: sha256=/abc+def=",
    "X-Acme-Token: abc.def.ghi",
    # what is known
    "Referer: https://evil.test/x",
    "Origin: https://evil.test",
    "User-Agent: x (+https://evil.test)",
    "Accept: text/html",
    "Cookie: a=/v1/admin",
    "Authorization: Bearer /abc.def",
    "Content-Disposition: attachment; filename=/a.txt",
    "If: <https://evil.test/lock> (x)",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "baggage: sentry-release=a.b.c,path=/x",
    "X-Forwarded-For: 10.0.0.1, 10.0.0.2",
    "X-Requested-With: com.example.app",
    "X-Amz-Target: DynamoDB_20120810.ListTables",
    "x-amz-copy-source: /bucket/key.txt",
    "x-goog-request-params: parent=projects/x",
    "x-stainless-package-version: 3.57.0",
    'X-Stripe-Client-User-Agent: {"lang": "python", "platform": "Linux/x.y"}',
    "anthropic-version: 2023-06-01",
    # of which the claims of a head have everything
    "Host: evil.test",
    "X-Forwarded-Host: evil.test",
    "X-Original-URL: /v1/admin",
)


def _fields(line: str) -> tuple[tuple[bytes, bytes], ...]:
    name, _, value = line.partition(": ")
    return ((name.encode(), value.encode("latin-1")),)


def _facts(line: str) -> Facts:
    found = find_address_fields(_fields(line), *_PLACE)
    return Facts("POST", *_PLACE, RequestClass.EFFECT, address_fields=found)


def _policy(match: str, *allowed: str) -> Policy:
    return Policy(((LiveRule(parse_match(match), "x", allowed), None),), (), stub=False)


@pytest.mark.parametrize("line", LEADING)
def test_no_live_rule_lets_out_what_may_go_elsewhere(line: str) -> None:
    """A field of an unknown name that reads as another host or path: unless it is allowed, and the refusal names it."""
    rule, facts = "POST https://api.example.test/v1/emit", _facts(line)
    name = line.partition(":")[0].lower()
    assert _policy(rule).find_live(facts) is None
    strange = _policy(rule).find_strange(facts)
    assert strange is not None
    assert strange[1].name == name
    assert _policy(rule, name).find_live(facts) is not None
    assert _policy(rule, name).find_strange(facts) is None


@pytest.mark.parametrize("line", HARMLESS)
def test_a_live_rule_lets_out_what_says_nothing(line: str) -> None:
    """What is known, what reads as no address, and what reads as the request's own."""
    assert find_address_fields(_fields(line), *_PLACE) == ()


@pytest.mark.parametrize(
    ("rule", "line", "leaves"),
    [
        # a path has to fit the rule as the request's own does
        ("POST https://api.example.test/v1/*", "X-Foo: /v1/other", True),
        ("POST https://api.example.test/v1/*", "X-Foo: /v1/../admin", False),
        ("POST https://api.example.test/v1/*", "X-Foo: /v2/other", False),
        ("* https://api.example.test", "X-Foo: /v2/other", True),
        ("* https://api.example.test", "X-Foo: evil.test", False),
        ("* *://*", "X-Foo: evil.test", False),
    ],
)
def test_a_path_may_be_any_that_the_rule_names(rule: str, line: str, leaves: bool) -> None:
    """A host may not: a rule with `*` names many, and a request goes to one."""
    assert (_policy(rule).find_live(_facts(line)) is not None) is leaves


_CHAT = ("https", "api.example.test", 443, "/v1/chat/completions")
_LIVE = ClassLive(("api.example.test",), "x")
_REPORTS = Classes(inference=(parse_match("POST https://api.example.test/v1/reports"),))


@pytest.mark.parametrize(
    ("line", "leaves"),
    [
        # another path is another class, at the same host too
        ("X-Invoke-Path: /v1/refunds", False),
        ("X-Next-Hop: https://api.example.test/v1/refunds", False),
        ("X-Foo: /v1/chat/completions/../../refunds", False),
        ("X-Foo: evil.test", False),
        # or the same class
        ("X-Foo: /v1/chat/completions", True),
        ("X-Foo: /v1/reports", True),
        ("X-Foo: a word", True),
    ],
)
@pytest.mark.parametrize("branch", [False, True])
def test_a_live_class_asks_for_the_class_of_every_reading(
    line: str, *, leaves: bool, branch: bool
) -> None:
    """A live class names hosts; what a server does there goes by the path that it takes."""
    config = Config(classes=_REPORTS, playback=Playback(inference=_LIVE))
    policy = Policy.of(config)
    if branch:
        live = ((LiveRule(parse_match("* *://api.example.test"), "x"), RequestClass.INFERENCE),)
        policy = Policy.of(Config(classes=_REPORTS), Branch(Seq(1), live))
    facts, _ = Facts.of(("POST", *_CHAT), (), config.classes)
    facts = facts._replace(address_fields=find_address_fields(_fields(line), *_CHAT))
    assert (policy.find_live(facts) is not None) is leaves
    strange = policy.find_strange(facts)
    assert (None if strange is None else strange[1].name) == (
        None if leaves else line.partition(":")[0].lower()
    )


def test_a_live_class_lets_out_a_field_that_it_allows() -> None:
    """`allow_fields` says that a field leads nowhere."""
    live = ClassLive(("api.example.test",), "x", ("x-invoke-path",))
    facts, _ = Facts.of(("POST", *_CHAT), (), Classes())
    found = find_address_fields(_fields("X-Invoke-Path: /v1/refunds"), *_CHAT)
    policy = Policy.of(Config(playback=Playback(inference=live)))
    assert policy.find_live(facts._replace(address_fields=found)) is not None


def test_a_field_that_is_no_longer_allowed_lets_nothing_out() -> None:
    """Where a configuration is read again, a rule is kept if it lets out no more than the new one."""
    rule = "POST https://api.example.test/v1/emit"
    before = _policy(rule, "x-foo")
    assert before.without_live(_policy(rule)).live == ()
    assert before.without_live(_policy(rule, "x-foo", "x-bar")) is before
    assert _policy(rule).without_live(before).live == _policy(rule).live
