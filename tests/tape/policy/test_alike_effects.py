"""Two effects are the same for a gate on duplicates if they may be the same for any server."""

from hashlib import blake2b

import pytest

from playhead.config.targets.host_interpretations import Place
from playhead.config.targets.request_interpretations import NO_MORE, More, find_ways
from playhead.tape.policy.alike_effects import AlikeKeys, find_alike_keys

_BODY = b"b" * 16


def _keys(
    method: str = "POST",
    host: str = "a.example",
    port: int = 443,
    target: str = "/v1/pay",
    more: More = NO_MORE,
    body: bytes = _BODY,
) -> AlikeKeys:
    key = blake2b(f"{method} {host} {port} {target}".encode() + body, digest_size=16).digest()
    return find_alike_keys(key + body, find_ways(method, "https", host, port, target, more))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (_keys(), True),
        (_keys(target="/V1/%70ay/"), True),
        (_keys(target="/v1/%2570ay"), True),
        (_keys(target="/v1/p%C3%A1y"), True),
        (_keys(target="/v1/pay%F0%9F%98%80"), True),
        (_keys(target="/v1/x", more=More(paths=("/v1/pay",))), True),
        (_keys(method="PUT", more=More(methods=("POST",))), True),
        (_keys(method="PUT", more=More(methods=("*",))), True),
        (_keys(host="b.example", more=More(places=(Place("a.example", 1),))), True),
        (_keys(host="b.example", more=More(anywhere=True)), True),
        (_keys(more=More(places=(Place("a.example", 1),))), True),
        (_keys(port=8443), False),
        (_keys(host="b.example"), False),
        (_keys(method="PUT"), False),
        (_keys(target="/v1/paid"), False),
        (_keys(target="/v1/pay?x=1"), False),
        (_keys(body=b"c" * 16), False),
    ],
)
def test_effects_are_compared_by_their_readings(other: AlikeKeys, same: bool) -> None:
    """Whichever of the two comes first."""
    plain = _keys()
    assert bool(plain.leaves & other.asks) is same
    assert bool(other.leaves & plain.asks) is same


def test_a_query_counts_by_its_pairs() -> None:
    """In any order, encoded or not."""
    one, other = _keys(target="/p?a=1&b=x%20y"), _keys(target="/p?b=x+y&a=%2531")
    assert one.leaves & other.asks
