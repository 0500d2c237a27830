"""How the header fields of a playback agree with those of its tape."""

from dataclasses import replace

import pytest

from playhead.tape.exchange import Headers
from playhead.tape.matching.agreement import find_key
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
