"""Whether values were there before the client sent them."""

import json
import time
from typing import Any

import pytest

from playhead.tape.exchange import RequestClass
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.timeline.learning.freshness import Known, find_words, is_told

OWN = "6f1c9d3e-2b7a-4c58-9e1f-0a3b5c7d9e11"


@pytest.mark.parametrize("text", [OWN, OWN.upper(), OWN.replace("-", ""), f"order_{OWN}, please"])
def test_a_uuid_is_known_in_all_its_spellings(text: str) -> None:
    """With and without hyphens, in either case."""
    assert find_words(OWN.encode()) <= find_words(text.encode())


def test_words_without_digits_say_nothing() -> None:
    """They are in every answer."""
    assert find_words(b"session complete: 12") == set()


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [((3, -1), (2, -1), False), ((3, -1), (3, -1), False), ((2, -1), (3, -1), True)],
)
def test_what_was_told_before_is_held(
    before: tuple[int, int], after: tuple[int, int], held: bool
) -> None:
    """Not what is told by the answer to the same request, or later."""
    known = Known(dict.fromkeys(find_words(OWN.encode()), before))
    assert known.holds(OWN, after, is_time=False) is held


def test_a_value_without_a_word_may_have_been_told() -> None:
    """`deadbeef` may be in every answer; a short time is in none but by chance."""
    assert Known({}).holds("deadbeef", (2, -1), is_time=False)
    assert not Known({}).holds("12:30", (2, -1), is_time=True)


def test_of_a_time_all_words_have_to_be_told() -> None:
    """An answer may be of the same second."""
    known = Known({b"1795478409": (1, -1)})
    assert not known.holds("1795478409.123456", (2, -1), is_time=True)
    assert known.holds("1795478409", (2, -1), is_time=True)


@pytest.mark.parametrize(
    ("told", "command", "is_it"),
    [
        ({}, (), False),
        ({"response": make_response(f'{{"id": "{OWN}"}}'.encode())}, (), True),
        ({"response": make_response(b"x", headers=((b"x-id", OWN.encode()),))}, (), True),
        ({"kind": RequestClass.INFERENCE, "asks": OWN}, (), True),
        ({"kind": RequestClass.READ, "asks": OWN}, (), False),
        ({}, ("agent", f"--order={OWN}"), True),
    ],
    ids=["nothing", "answer", "header", "question", "read", "command"],
)
def test_a_rule_is_shown_only_for_what_nobody_has_told(
    told: dict[str, Any], command: tuple[str, ...], is_it: bool
) -> None:
    """As `learn` has it."""
    asks = {"messages": [{"content": f"look up {told.pop('asks', '')}"}]}
    request = make_request("https://api.test/v1/chat/completions", json.dumps(asks).encode())
    exchange = make_exchange(
        1, "POST https://api.test/v1/chat/completions", request=request, **told
    )
    until_s = time.monotonic() + 60
    assert is_told([OWN], command, [exchange], until_s) is is_it
    assert is_told([OWN], command, [exchange], 0.0)
