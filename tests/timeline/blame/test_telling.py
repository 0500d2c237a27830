"""Which values two places have by no chance, and how one number in two answers is told."""

import pytest

from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import Tape
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.blame.find_origin import find_blame
from playhead.timeline.blame.telling import is_telling, may_be_an_amount


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        *[
            (one, True)
            for one in ("ORD-5531-X", "SKU-AB12CD34", "re_8Zk29", "4120.57", "5531000123")
        ],
        *[
            (one, True)
            for one in ("claude-opus-4-5-20251101", "tok_5Rt8Wq", "ORD-TKBUGBK", "3.7119")
        ],
        # Places, departments, regions, models and machines are named so in many places.
        *[
            (one, False)
            for one in ("United States", "San Francisco", "Customer Service", "New York City")
        ],
        *[
            (one, False)
            for one in ("us-east-1", "eu-west-2b", "gpt-4o-mini", "claude-opus-4-5", "x86_64")
        ],
        *[(one, False) for one in ("Windows 11", "requires_action", "3.1415", "2.71828", "v1.2.3")],
    ],
)
def test_a_value_tells_where_it_comes_from(text: str, telling: bool) -> None:
    """Only what no other place has by chance."""
    assert is_telling(text) is telling


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4120.57", True),
        ("3226109", True),
        ("5531000123", False),
        ("ORD-7", False),
        ("-12.5", True),
    ],
)
def test_an_amount_is_a_number_that_two_things_may_have(text: str, amount: bool) -> None:
    """With a fraction, or of fewer digits than an id has."""
    assert may_be_an_amount(text) is amount


def _refund(*reads: tuple[str, dict[str, object]], amount: object) -> str:
    """Give the evidence and the doubt of an amount that is paid behind some reads."""
    tape = Tape("refund")
    for url, answered in reads:
        tape.get(url, answered)
    tape.post("https://pay.test/refunds", {"amount": amount}, {"ok": True})
    found = find_blame(InMemory(tape.exchanges), len(tape.exchanges), "$.amount")
    assert tape.exchanges[-1].request_class is RequestClass.EFFECT
    return f"{found.evidence} {found.doubt}".strip()


def test_a_number_that_two_answers_have_is_inferred() -> None:
    """The shipping costs as much as the order: no bytes say which of the two was paid."""
    quote = ("https://shop.test/quotes/1", {"quote": 4120.57})
    total = ("https://shop.test/orders/7", {"total": 4120.57})
    assert _refund(quote, total, amount=4120.57).startswith("inferred 2 answer")
    assert _refund(quote, amount=4120.57) == "recorded"
    # Read again, it is the same.
    assert _refund(quote, quote, amount=4120.57) == "recorded"
    again = ("https://shop.test/v2/orders/7", {"order": {"total": 4120.57}})
    assert (
        _refund(again, ("https://shop.test/all", {"order": {"total": 4120.57}}), amount=4120.57)
        == "recorded"
    )
