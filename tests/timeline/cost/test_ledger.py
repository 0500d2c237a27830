"""What a run is billed for that its exchanges do not show."""

from collections.abc import Iterator

from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, chat, chat_answer, said
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.cost.ledger import Entry, Fate, read_ledger
from playhead.timeline.state.calls_before import NO_OUTCOME


class _Crashed(InMemory):
    """A run with a log."""

    log: tuple[Event, ...] = ()

    def events(self) -> Iterator[Event]:
        """Give its events."""
        return iter(self.log)


def _event(seq: int, of: RequestClass, kind: EventKind = EventKind.INTENT) -> Event:
    data = {
        "seq": seq,
        "method": "POST",
        "url": "https://api.openai.com/v1/x",
        "request_class": of.value,
    }
    return Event(kind, seq, data)


def test_a_request_without_an_outcome_may_be_billed() -> None:
    """It was let go before the proxy died: a call of it costs what is known at least, and a refused one nothing."""
    tape = Tape("run")
    tape.model(chat([said("user", "one")]), chat_answer("one"))
    run = _Crashed(tape.exchanges)
    run.log = (
        _event(1, RequestClass.INFERENCE),
        _event(2, RequestClass.INFERENCE),
        _event(3, RequestClass.EFFECT),
        _event(4, RequestClass.INFERENCE),
        _event(4, RequestClass.INFERENCE, EventKind.VERDICT),
    )
    for lanes in (True, False):
        found = list(read_ledger(run, lanes=lanes))
        assert [(one.seq, one.fate) for one in found] == [
            (1, Fate.SENT),
            (2, Fate.SENT),
            (3, Fate.SENT),
        ]
        assert found[1] == Entry(Seq(2), 0, 2, Fate.SENT, NO_OUTCOME, at_least=True)
        assert not found[2].is_call
