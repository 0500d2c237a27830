"""The credentials of a tape are read once, before the first new one is taken for one of them."""

import asyncio
from typing import Any

from playhead.addons.run.playback_state import PlaybackState
from playhead.store import LogCorrupt
from playhead.tape.headers.swapped_values import RecordedValues


class Agreement:
    """Counts what it is given."""

    def __init__(self, *, same_key: bool = True) -> None:
        """Begin with nothing."""
        self.same_key = same_key
        self.taken: list[RecordedValues] = []

    def take_values(self, values: RecordedValues) -> None:
        """Take them."""
        self.taken.append(values)


def _run(agreement: Agreement) -> Any:
    """A playback with nothing but what is asked here."""
    run: Any = PlaybackState.__new__(PlaybackState)
    run.agreement, run._values = agreement, None
    run.read = []

    def read() -> RecordedValues:
        run.read.append("tape")
        return RecordedValues(lambda _: True)

    run._read_values = read
    return run


async def test_the_tape_is_read_once_however_many_ask() -> None:
    """All wait for the one reading."""
    run = _run(Agreement())
    await asyncio.gather(*(run.read_values() for _ in range(3)))
    assert run.read == ["tape"]
    assert len(set(map(id, run.agreement.taken))) == 1


async def test_a_tape_of_another_store_is_not_read() -> None:
    """Its placeholders say nothing of the values of now."""
    run = _run(Agreement(same_key=False))
    await run.read_values()
    assert run.read == run.agreement.taken == []


async def test_who_asks_may_be_gone_before_it_was_read() -> None:
    """The others are given it all the same."""
    run = _run(Agreement())
    first, second = (asyncio.ensure_future(run.read_values()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert run.agreement.taken


def test_what_cannot_be_read_ends_the_reading() -> None:
    """Whoever is answered with it is told."""

    class Broken:
        """A store whose tape breaks off."""

        exchanges: Any = None

    class Exchanges:
        """Its exchanges."""

        @staticmethod
        def all(_tape: Any) -> Any:
            """Break."""
            raise LogCorrupt("broken")

    run: Any = PlaybackState.__new__(PlaybackState)
    Broken.exchanges = Exchanges
    run.store, run.tape = Broken, "tape"
    account = type("Fields", (), {"account": staticmethod(bool)})
    run.identifier = type("Identifier", (), {"rules": type("Rules", (), {"fields": account})})
    assert isinstance(run._read_values(), RecordedValues)
