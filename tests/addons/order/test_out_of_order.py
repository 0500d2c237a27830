"""What stands before a request on the tape and was not served: the same as by looking at every exchange."""

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from playhead.addons.order.out_of_order import _SPAN, _WINDOW, Order
from playhead.config import Classes
from playhead.store import RunInfo, Store
from playhead.tape.exchange import Seq
from playhead.tape.policy.decide import Policy


class _Tape:
    """As much of a store's exchanges as a list of them takes."""

    def __init__(self, seqs: list[Seq]) -> None:
        self._seqs = seqs

    def seqs(self, _: RunInfo) -> list[Seq]:
        return list(self._seqs)


def _order(seqs: list[Seq]) -> Order:
    tape = cast(RunInfo, None)
    policy = Policy((), (), stub=False)
    return Order(
        cast(Store, SimpleNamespace(exchanges=_Tape(seqs))), tape, None, policy, Classes(), {}
    )


def _earlier(seqs: list[Seq], seq: Seq, served: set[Seq]) -> tuple[Seq, ...]:
    """Look at every exchange."""
    places = [place for place, one in enumerate(seqs) if one not in served and one < seq]
    found = tuple(seqs[place] for place in places)
    asked = len([one for one in seqs if one < seq])
    return found if found and len(found) <= _WINDOW and asked - places[0] <= _SPAN else ()


_SEQS = st.sets(st.integers(1, 3 * _SPAN), min_size=1, max_size=90).map(sorted)


@given(_SEQS, st.data())
def test_what_was_not_served_before_a_request_is_found(seqs: list[Seq], data: Any) -> None:
    """Whatever was served, before the tape's list was read and after, in any order, some of it twice."""
    order, served = _order(seqs), set[Seq]()
    asked = data.draw(st.permutations(seqs))
    begun = data.draw(st.integers(0, len(seqs)))
    for seq in asked[:begun]:
        served.add(seq)
        order.take(seq)
    assert order.find_earlier(Seq(2)) is None
    order.read(lambda: served)
    for seq in [*asked[begun:], *asked[:3]]:
        assert order.find_earlier(seq) == _earlier(seqs, seq, served)
        served.add(seq)
        order.take(seq)


@given(_SEQS, st.data())
def test_what_is_given_back_was_not_served(seqs: list[Seq], data: Any) -> None:
    """As if it had never been taken; twice is once."""
    order, other = _order(seqs), _order(seqs)
    back = data.draw(st.sampled_from(seqs))
    for one in (order, other):
        one.read(lambda: ())
    for seq in data.draw(st.sets(st.sampled_from(seqs))):
        order.take(seq)
        if seq != back:
            other.take(seq)
    for _ in range(2):
        order.give_back(back)
    for seq in seqs:
        assert order.find_earlier(seq) == other.find_earlier(seq)
