"""The places at which two requests differ: all that decide, and no others."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Exchange
from playhead.tests.support.agent_tapes import Tape
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import Change, compare_acts
from playhead.timeline.diff.differing_json_paths import find_places

CHARGE = "ch_9Zk3Qp77"
PAID = {"charge": CHARGE, "amount": 50}


def run(body: Any, *, given: Any = None, answer: Any = None, tenant: str = "") -> list[Exchange]:
    """Write a run: it reads what is to be paid, and pays with a body."""
    tape = Tape("pay")
    tape.get("https://shop.test/order", PAID if given is None else given)
    tape.post("https://pay.test/pay", body, {"ok": True} if answer is None else answer)
    last = tape.exchanges[-1]
    headers = (*last.request.headers, (b"x-tenant", tenant.encode()))
    tape.exchanges[-1] = replace(last, request=replace(last.request, headers=headers))
    return tape.exchanges


def places(first: list[Exchange], second: list[Exchange]) -> list[str]:
    """Name the places of the first divergence, by their names."""
    sides = InMemory(first), InMemory(second)
    divergence = compare_acts(*map(read_acts, sides)).divergence
    assert divergence is not None
    assert divergence.row.change in (Change.ASKED, Change.ANSWERED)
    listed = find_places(divergence.row, *sides, compile_rules()).listed
    return sorted(one.place for one in listed)


def test_an_id_that_no_answer_gave_is_listed_beside_another_difference() -> None:
    """Another amount takes the other charge along."""
    other = {"charge": "ch_0000AAAA", "amount": 60}
    assert places(run(PAID), run(other)) == ["body $.amount", "body $.charge"]


def test_an_id_is_listed_that_the_answer_repeats() -> None:
    """An answer that says which charge was paid does not make it the same charge."""
    other = {"charge": "ch_0000AAAA", "amount": 60}
    found = places(run(PAID, answer=PAID), run(other, answer=other))
    assert {"body $.amount", "body $.charge", "answer body $.charge"} <= {*found}


def test_a_header_field_is_never_listed() -> None:
    """It does not count, so it cannot be why two requests differ."""
    other = {**PAID, "charge": "ch_0000AAAA"}
    assert places(run(PAID, tenant="a"), run(other, tenant="b")) == ["body $.charge"]


@pytest.mark.parametrize("ids", [("ch_9Zk3Qp77", "ch_8YY2Qp71"), ("inv_0000AAAA", "inv_9090BBBB")])
def test_an_id_that_answers_gave_is_not_listed(ids: tuple[str, str]) -> None:
    """The server made it anew: what differs is the amount."""
    paid = [{"charge": one, "amount": amount} for one, amount in zip(ids, (50, 60), strict=True)]
    given = [{"charge": one} for one in ids]
    sides = [run(body, given=gave) for body, gave in zip(paid, given, strict=True)]
    assert places(*sides) == ["body $.amount"]


def test_another_number_of_few_digits_is_listed() -> None:
    """No answer to an effect made it."""
    one, other = ({"order_id": at, "amount": at * 10} for at in (5, 6))
    assert places(run(one), run(other)) == ["body $.amount", "body $.order_id"]


def test_an_answer_that_names_another_known_id_is_listed() -> None:
    """The id was known in both runs, so it is no new one."""
    one, other = ({"charge": id, "left": left} for id, left in ((CHARGE, 1), ("ch_0000AAAA", 2)))
    assert places(run(PAID, answer=one), run(PAID, answer=other)) == [
        "answer body $.charge",
        "answer body $.left",
    ]


def made(id: str, used: str, amount: int) -> list[Exchange]:
    """Write a run whose shop makes a refund, and which pays one."""
    tape = Tape("made")
    tape.post("https://shop.test/refunds", {"item": "shoe"}, {"id": id})
    tape.post("https://pay.test/pay", {"refund": used, "amount": amount})
    return tape.exchanges


def test_a_short_id_is_listed_only_if_it_is_another_one() -> None:
    """What the shop made is not, whatever form it has."""
    assert places(made("re_1", "re_1", 50), made("re_2", "re_2", 60)) == ["body $.amount"]
    found = places(made("re_1", "re_1", 50), made("re_2", "re_1", 60))
    assert "body $.amount" in found
    assert places(made("re_1", "re_1", 50), made("re_2", "re_7", 60)) == [
        "body $.amount",
        "body $.refund",
    ]
