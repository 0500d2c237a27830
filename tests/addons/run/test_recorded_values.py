"""The credentials of a tape are read once, before the first new one is taken for one of them."""

import asyncio
from typing import Any

from playhead.addons.run.run_state import OpenRun
from playhead.store import LogCorrupt
from playhead.tape.headers.recorded_values import RecordedValues


class Agreement:
    """Counts what it is given."""

    def __init__(self, *, same_key: bool = True) -> None:
        """Begin with nothing."""
        self.same_key = same_key
        self.taken: list[RecordedValues] = []

    def take_values(self, values: RecordedValues) -> None:
        """Take them."""
        self.taken.append(values)


def _run(tape: Any, agreement: Agreement) -> Any:
    """An open run with nothing but what is asked here."""
    run: Any = OpenRun.__new__(OpenRun)
    run.tape, run.agreement, run._values = tape, agreement, None
    run.read = []

    def read(tape: Any) -> RecordedValues:
        run.read.append(tape)
        return RecordedValues(lambda _: True)

    run._read_values = read
    return run


async def test_the_tape_is_read_once_however_many_ask() -> None:
    """All wait for the one reading."""
    run = _run("tape", Agreement())
    await asyncio.gather(*(run.read_values() for _ in range(3)))
    assert run.read == ["tape"]
    assert len(set(map(id, run.agreement.taken))) == 1


async def test_a_tape_of_another_store_is_not_read() -> None:
    """Its placeholders say nothing of the values of now; nor is there anything to read without a tape."""
    for run in (_run("tape", Agreement(same_key=False)), _run(None, Agreement())):
        await run.read_values()
        assert run.read == run.agreement.taken == []


async def test_who_asks_may_be_gone_before_it_was_read() -> None:
    """The others are given it all the same."""
    run = _run("tape", Agreement())
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

    run: Any = OpenRun.__new__(OpenRun)
    Broken.exchanges = Exchanges
    run.store = Broken
    run.rules = type("Rules", (), {"fields": type("Fields", (), {"account": staticmethod(bool)})})
    assert isinstance(run._read_values("tape"), RecordedValues)
