"""Heads that come again: what was clean is not searched again, and nothing is missed for it."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from playhead.config import RedactRule
from playhead.tape.exchange import BODY, TARGET, Headers, Request, Secret
from playhead.tape.redaction.redact_heads import find_apart
from playhead.tape.redaction.redactor import Redactor

KEY = b"tk7Qm2Zp9xAb3Lr58fW0yC1vv"
OTHER = b"uX4nB8eR2sJ6dK0gT5hY9wQ3zM"
TEXTS = [
    *(KEY, OTHER, base64.b64encode(b"a:" + KEY), b"see " + OTHER.hex().encode(), b"plain/1.0"),
    *(b"12345", b"123456", b"://:x@", b"a", b"", b"use sk-proj-abcdefgh0123456789 for it"),
    *(b'{"password":"', b'x","n":1}', b"api_token=", b"\\u0074" + KEY[1:], b"%74" + KEY[1:]),
]
REMEMBERED = ((b"referer", b'x","n":1}'),)
NAME_AT_AN_END = (
    *((b"accept", b"api_token="), *REMEMBERED, (b"authorization", TEXTS[3])),
    (b"accept", b"\\u0074" + KEY[1:]),
)
"""The name at the end of a field said that a field behind it is a secret once what is between was remembered."""
fields = st.tuples(
    st.sampled_from([b"x-a", b"X-B", b"accept", b"referer", b"content-length", b"authorization"]),
    st.sampled_from(TEXTS),
)
heads = st.lists(fields, max_size=5).map(tuple)
targets = st.sampled_from(["/", "/a/" + KEY.decode(), "/b?q=1", "/c?token=" + OTHER.decode()])


def ask(headers: Headers, target: str = "/") -> Request:
    """Give a request without a body."""
    return Request("GET", "https", "api.test", 443, target, "HTTP/1.1", headers)


@given(st.lists(st.tuples(heads, targets), min_size=1, max_size=6))
@example([(REMEMBERED, "/"), (NAME_AT_AN_END, "/")])
def test_a_head_that_comes_again_is_redacted_as_if_it_were_new(
    asked: list[tuple[Headers, str]],
) -> None:
    """Field by field a plain search of what it holds says the same, whatever was remembered."""
    redactor = Redactor(b"k" * 32)
    for headers, target in asked:
        redactor.head(ask(headers, target))  # what one of its fields teaches holds for the others
    for headers, target in asked:
        new, _ = redactor.head(ask(headers, target))
        answered, _ = redactor.response_headers(headers)
        for before, after, back in zip(headers, new.headers, answered, strict=True):
            if before[0] not in (b"authorization", b"referer"):
                assert after == back == (before[0], redactor.text(before[1]))
        if "?" not in target:
            assert new.target == redactor.text(target.encode()).decode()


def test_a_known_secret_is_found_among_subprotocols() -> None:
    """Of a request and of its answer, also where nothing else says that it is one."""
    redactor = Redactor(b"k" * 32)
    redactor.head(ask(((b"authorization", b"Bearer " + KEY),)))
    offered = ((b"sec-websocket-protocol", b"chat, " + KEY),)
    new, found = redactor.head(ask(offered))
    assert (KEY not in new.headers[0][1], len(found)) == (True, 1)
    assert new.headers[0][1].startswith(b"chat, ")
    assert KEY not in redactor.response_headers(offered)[0][0][1]


@given(st.lists(heads, min_size=2, max_size=6))
def test_what_is_learned_later_is_found_in_a_field_that_was_clean(asked: list[Headers]) -> None:
    """A credential counts from the moment it is seen, also in what came before it."""
    redactor = Redactor(b"k" * 32)
    for headers in asked:
        redactor.head(ask((*headers, (b"x-echo", b"say " + KEY + b" again"))))
    redactor.head(ask(((b"authorization", b"Bearer " + KEY),)))
    for headers in asked:
        new, _ = redactor.head(ask((*headers, (b"x-echo", b"say " + KEY + b" again"))))
        assert KEY not in new.headers[-1][1]


@pytest.mark.parametrize("pattern", [r"^[0-9]{4}$", r"\Aacme\z"])
def test_a_pattern_sees_each_field_by_itself(pattern: str) -> None:
    """Its ends are the ends of the field, however short."""
    redactor = Redactor(b"k" * 32, (RedactRule(pattern=pattern),))
    headers = ((b"x-a", b"long enough"), (b"x-pin", b"1234"), (b"x-b", b"acme"), (b"x-c", b"z"))
    for _ in range(2):
        new, found = redactor.head(ask(headers))
        assert len(found) == 1
        assert sum(a != b for a, b in zip(headers, new.headers, strict=True)) == 1


def test_more_fields_than_are_remembered() -> None:
    """Memory is bounded, and what is forgotten is looked at again."""
    redactor = Redactor(b"k" * 32)
    for number in range(3000):
        redactor.head(ask(((b"x-id", b"request number %d" % number),), f"/items/{number}"))
    new, _ = redactor.head(ask(((b"x-id", b"token=v7Qm2pZ9xAb3LrfW0yC1kT5d"),)))
    assert b"v7Qm2pZ9" not in new.headers[0][1]


places = st.builds(
    Secret,
    st.sampled_from([TARGET, BODY]),
    st.integers(0, 20),
    st.integers(0, 6),
    st.just("secret"),
)


@given(st.lists(places), st.lists(places))
@example(
    [Secret(BODY, 5, 1, "secret")], [Secret(BODY, 0, 9, "secret"), Secret(BODY, 1, 1, "secret")]
)
def test_secrets_apart_share_no_place_with_others(one: list[Secret], other: list[Secret]) -> None:
    """Of the same part, not even where an earlier one of the others ends last."""

    def share(first: Secret, second: Secret) -> bool:
        return (
            first.part == second.part
            and first.at < second.at + second.size
            and second.at < first.at + first.size
        )

    apart = [secret for secret in one if not any(share(secret, each) for each in other)]
    assert find_apart(one, other) == apart
