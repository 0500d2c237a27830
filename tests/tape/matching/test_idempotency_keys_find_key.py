"""Which fields and members of a request are its idempotency key."""

from dataclasses import replace

import pytest

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import (
    canonical,
    compile_rules,
    effect_key,
    fingerprint,
)
from playhead.tape.exchange import Headers, Request, RequestClass
from playhead.tape.matching.idempotency_keys import find_key
from playhead.tests.support.exchanges import make_request

ONE = (b"Idempotency-Key", b"k1")


@pytest.mark.parametrize("name", [b"Idempotency-Key", b"PayPal-Request-Id"])
@pytest.mark.parametrize("value", [b"", b" \t", b'""', b"''"])
def test_an_empty_idempotency_key_is_none(name: bytes, value: bytes) -> None:
    """No server protects a retry by it."""
    assert find_key(replace(make_request(), headers=((name, value),))) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((ONE,), (ONE,), True),
        ((ONE,), ((b"idempotency-key", b" k1 "),), True),
        ((ONE,), (ONE, (b"X-Idempotency-Key", b"")), True),
        ((ONE, (b"X-Idempotency-Key", b"a")), ((b"X-Idempotency-Key", b"a"), ONE), True),
        ((ONE,), ((b"Idempotency-Key", b"k2"),), False),
        ((ONE,), ((b"PayPal-Request-Id", b"k1"),), False),
        ((ONE, (b"X-Idempotency-Key", b"a")), (ONE, (b"X-Idempotency-Key", b"b")), False),
        ((ONE, (b"Idempotency-Key", b"k2")), (ONE, (b"Idempotency-Key", b"k3")), False),
        ((ONE, (b"Idempotency-Key", b"k2")), (ONE,), False),
    ],
)
def test_an_idempotency_key_is_all_fields_that_are_one(
    one: Headers, other: Headers, same: bool
) -> None:
    """Nobody knows which of them a server reads."""
    found = [find_key(replace(make_request(), headers=headers)) for headers in (one, other)]
    assert None not in found
    assert (found[0] == found[1]) is same


AWS = "https://ec2.eu-west-1.amazonaws.com"
JSON, FORM = b"application/json", b"application/x-www-form-urlencoded"


def _ask(text: str, value: str, url: str = f"{AWS}/") -> Request:
    """Give a request with a key in its query, a form, JSON or a header field."""
    kind, _, name = text.partition(" ")
    if kind == "query":
        return make_request(f"POST {url}?{name}={value}&a=1")
    request = make_request(f"POST {url}")
    if kind == "header":
        return replace(request, headers=((name.encode(), value.encode()),))
    body, media = (
        (f'{{"a": 1, "{name}": "{value}"}}', JSON)
        if kind == "json"
        else (f"Action=Run&{name}={value}", FORM)
    )
    return replace(request, headers=((b"Content-Type", media),), body=body.encode())


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("json ClientToken", f"{AWS}/"),
        ("json clientToken", f"{AWS}/"),
        ("json ClientRequestToken", f"{AWS}/"),
        ("json clientRequestToken", "https://codecommit.cn-north-1.amazonaws.com.cn/"),
        ("json IdempotencyToken", "https://acm.eu-west-1.api.aws/"),
        ("json CreatorRequestId", f"{AWS}/"),
        ("json idempotency_key", "https://connect.squareup.com/v2/payments"),
        ("json idempotency_key", "https://sandbox.plaid.com/transfer/create"),
        ("form ClientToken", f"{AWS}/"),
        ("form ClientRequestToken", f"{AWS}/"),
        ("query clientToken", f"{AWS}/"),
        ("query client-token", f"{AWS}/"),
        ("header X-Amz-Client-Token", f"{AWS}/"),
        ("header x-amzn-client-token", f"{AWS}/"),
        ("header x-amz-pay-idempotency-key", "https://pay-api.amazon.eu/"),
    ],
)
def test_a_providers_member_is_an_idempotency_key(place: str, url: str) -> None:
    """Its value does not count, which requests share it does, and an empty one is none."""
    one, other = (_ask(place, f"550e8400-e29b-41d4-a716-44665544000{n}", url) for n in (1, 2))
    keys = [find_key(one), find_key(other)]
    assert None not in keys
    assert keys[0] != keys[1]
    assert find_key(_ask(place, "", url)) is None
    prints = [
        fingerprint(canonical(request, RequestClass.EFFECT, compile_rules()))
        for request in (one, other, _ask(place.replace(" ", " x"), "a", url))
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    "place",
    [
        *(
            "json idempotency_key",
            "json idempotencyKey",
            "json Idempotency-Key",
            "json ClientToken",
        ),
        *("json \\u0069dempotency_key", "form idempotency_key", "form %69dempotency_key"),
        *("query idempotency_key", "query client-token", "query Idempotency%2DKey"),
    ],
)
def test_a_key_counts_nothing_for_the_effect_key_at_any_host(place: str) -> None:
    """With another key, or with none, it is the same effect; anything else beside makes it another one."""
    url = "https://pay.test/refunds"
    one, other = (_ask(place, f"550e8400-e29b-41d4-a716-44665544000{n}", url) for n in (1, 2))
    without = {
        "json": replace(one, body=b'{"a": 1}'),
        "form": replace(one, body=b"Action=Run"),
        "query": make_request(f"POST {url}?a=1"),
    }[place.partition(" ")[0]]
    another = (
        replace(one, body=one.body + b" ")
        if not one.body
        else replace(one, body=one.body.replace(b"1", b"7", 1).replace(b"Run", b"Stop"))
    )
    rules = compile_rules()
    keys = [
        effect_key(canonical(request, RequestClass.EFFECT, rules))
        for request in (one, other, without, another)
    ]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert find_key(one) != find_key(other) != find_key(without)


def test_a_key_that_a_pattern_masks_is_left_out_all_the_same() -> None:
    """Two rules name one place."""
    rules = compile_rules((IgnoreRule(parse_match("*://*"), regex=("[0-9a-f]{8}-[0-9a-f-]{27}",)),))
    one, other = (
        _ask("json idempotency_key", value, "https://pay.test/")
        for value in ("550e8400-e29b-41d4-a716-446655440001", "order-7")
    )
    keys = {effect_key(canonical(each, RequestClass.EFFECT, rules)) for each in (one, other)}
    assert len(keys) == 1


def test_what_reads_like_such_a_member_is_none() -> None:
    """A nested one, one in a text, one in a body that is no JSON, a number, and a setting of a model."""
    for body in (
        b'{"a": {"ClientToken": "x"}}',
        b'{"a": "\\"ClientToken\\": 1"}',
        b'{"ClientToken": "x"',
        b'{"ClientToken": 1}',
        b'["ClientToken"]',
        b'{"max_tokens": 1, "requestId": "x"}',
    ):
        request = replace(make_request("POST https://api.test/"), body=body)
        assert find_key(replace(request, headers=((b"content-type", JSON),))) is None
    assert find_key(make_request("GET https://api.test/?xclientToken=1&a=clientToken=1")) is None
