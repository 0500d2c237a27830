"""What a model call can cost, before it is sent: by the size of what it asks, and by what calls like it have used."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.exchange import Request
from playhead.tape.policy.branch import ModelUse
from playhead.tests.support.exchanges import make_request
from playhead.timeline.reading.estimate_cost import (
    Estimate,
    count_pieces,
    estimate_cost,
    find_unreadable,
)

CHAT = "POST https://api.openai.com/v1/chat/completions"
NOW = 1_760_000_000_000_000_000  # October 2025: prices change
OUT = 10_000  # billionths of a dollar a token of gpt-4o's output; of its input a quarter


def _ask(what: str = CHAT, text: str = "hi", **more: Any) -> Request:
    messages = [{"role": "user", "content": text}]
    return make_request(what, json.dumps({"model": "gpt-4o", "messages": messages} | more).encode())


@pytest.mark.parametrize(
    ("request_", "known", "output"),
    [
        # Nothing is known of the model, and nothing is said.
        (_ask(), {}, 4096),
        (_ask(), {"gpt-4o-mini": ModelUse(9, 9)}, 4096),
        # The request allows fewer, or more.
        (_ask(max_tokens=100), {}, 100),
        (_ask(max_completion_tokens=100), {}, 100),
        (_ask(max_tokens=64_000), {}, 4096),
        # Twice what was seen; not above what is allowed.
        (_ask(), {"gpt-4o": ModelUse(1, 50)}, 100),
        (_ask(max_tokens=64_000), {"gpt-4o": ModelUse(1, 30_000)}, 60_000),
        (_ask(max_tokens=70), {"gpt-4o": ModelUse(1, 50)}, 70),
    ],
)
def test_the_output_is_what_may_come(
    request_: Request, known: dict[str, ModelUse], output: int
) -> None:
    """Behind a token of input for three bytes."""
    found = estimate_cost(request_, NOW, known)
    asked = len(request_.body) // 3 * OUT // 4
    assert found == Estimate("gpt-4o", asked + output * OUT)


def test_it_is_never_less_than_the_dearest_call_so_far() -> None:
    """As where the input is known by an id alone."""
    assert estimate_cost(_ask(), NOW, {"gpt-4o": ModelUse(10**9, 5)}) == Estimate("gpt-4o", 10**9)
    unpriced = _ask(model="acme-1")
    assert estimate_cost(unpriced, NOW, {}) is None
    assert estimate_cost(unpriced, NOW, {"acme-1": ModelUse(7, 0)}) == Estimate("acme-1", 7)


def _coded(body: bytes, coding: bytes) -> Request:
    return replace(make_request(CHAT, body), headers=((b"content-encoding", coding),))


def test_a_coded_body_counts_by_what_comes_out() -> None:
    """And one that cannot be undone is said not to be readable: its size says nothing."""
    plain = _ask(text="word " * 80_000)
    packed = gzip.compress(plain.body)
    assert estimate_cost(_coded(packed, b"gzip"), NOW, {}) == estimate_cost(plain, NOW, {})
    assert find_unreadable(_coded(packed, b"gzip")) == find_unreadable(plain) == ""
    # A body with a secret is kept with its coding undone.
    assert find_unreadable(_coded(plain.body, b"gzip")) == ""
    assert "no whole gzip" in find_unreadable(_coded(packed[:-9], b"gzip"))
    assert "no whole rot13" in find_unreadable(_coded(packed, b"rot13"))
    bomb = gzip.compress(b'{"model":"gpt-4o","a":"' + bytes(65 * 1024 * 1024) + b'"}')
    assert "no whole gzip" in find_unreadable(_coded(bomb, b"gzip"))
    assert "no JSON" in find_unreadable(make_request(CHAT, plain.body[:-1]))
    assert find_unreadable(make_request(CHAT, b"--b\r\nsound")) == ""
    counted = "POST https://api.anthropic.com/v1/messages/count_tokens"
    assert find_unreadable(make_request(counted, plain.body[:-1])) == ""


def test_an_image_is_no_text() -> None:
    """A megabyte of it is some thousand tokens."""
    found = estimate_cost(_ask(text="data:image/png;base64," + "iVBOR" * 200_000), NOW, {})
    assert found is not None
    assert found.nano_usd < 10**8  # 10 cents


@pytest.mark.parametrize(
    "request_",
    [
        make_request("GET https://api.openai.com/v1/models"),
        make_request("POST https://api.test/refunds", b'{"order": 7}'),
        _ask("POST https://api.anthropic.com/v1/messages/count_tokens", max_tokens=9),
    ],
)
def test_what_costs_nothing_has_no_estimate(request_: Request) -> None:
    """Neither has what nobody can read."""
    assert estimate_cost(request_, NOW, {}) is None


def test_what_has_come_counts() -> None:
    """Each piece of a stream is a token or more."""
    body = b"data: {}\n\n" * 9000
    found = estimate_cost(_ask(), NOW, {}, least_output=count_pieces(body))
    assert found is not None
    assert found.nano_usd > 9000 * OUT


def test_a_call_is_known_in_any_way_that_it_can_be_taken() -> None:
    """A path in capitals, as servers may take it."""
    odd = _ask("POST https://api.openai.com/V1/CHAT/COMPLETIONS")
    otherwise = make_request(CHAT, odd.body)
    assert estimate_cost(odd, NOW, {}, otherwise=[otherwise]) == estimate_cost(otherwise, NOW, {})
