"""What effects repeat, by a log in which some turn out not to have been sent."""

from playhead.tape.exchange import Repeat, RepeatKind, Seq
from playhead.tape.records.events import Event, EventKind
from playhead.timeline.reading.settle_repeated_effect import Repeats

_TWICE, _SAFE = RepeatKind.POSSIBLE_DUPLICATE, RepeatKind.SAFE_RETRY


def asked(seq: int, of: int = 0, kind: RepeatKind = _TWICE) -> Event:
    """Give an intent that repeats another one, or none."""
    more = {"repeat": [of, kind.value, True]} if of else {}
    return Event(EventKind.INTENT, 1, {"seq": seq, **more})


def dropped(seq: int) -> Event:
    """Give the outcome of one that was never sent."""
    return Event(EventKind.OUTCOME, 1, {"seq": seq, "fault": ["denied", "connect", "not sent"]})


def settle(*events: Event) -> Repeats:
    """Read a log."""
    repeats = Repeats()
    for event in events:
        repeats.take(event)
    return repeats


def test_what_the_dropped_one_repeats_is_repeated() -> None:
    """The one before it was sent."""
    found = settle(asked(1), asked(2, 1), asked(3, 2, _SAFE), dropped(2)).find(3)
    assert found == Repeat(Seq(1), _TWICE, unseen=True)


def test_nothing_is_repeated_if_none_was_sent() -> None:
    """In whatever order they end."""
    for ends in ((1, 2), (2, 1)):
        log = (asked(1), asked(2, 1), asked(3, 2), *map(dropped, ends))
        assert settle(*log).find(3) is None


def test_one_that_came_first_and_was_never_sent_repeats_no_later_one() -> None:
    """It was delayed while the later one was sent."""
    assert settle(asked(2), asked(1, 2)).find(1) == Repeat(Seq(2), _TWICE, unseen=True)
    assert settle(asked(2), asked(1, 2), dropped(1)).find(1) is None
