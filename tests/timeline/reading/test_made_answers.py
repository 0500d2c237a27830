"""Answers that nobody gave are known by the log."""

from playhead.tape.records.events import Event, EventKind
from playhead.timeline.reading.made_answers import find_made


def test_answers_that_nobody_gave_are_found() -> None:
    """Supposed ones and stubs; what the tape or the service answered is none."""
    verdicts = ("served", "hypothetical", "stubbed", "refused")
    events = [
        Event(EventKind.VERDICT, 0, {"seq": seq, "verdict": verdict})
        for seq, verdict in enumerate(verdicts, 1)
    ]
    events.append(Event(EventKind.INTENT, 0, {"seq": 5}))
    assert find_made(events) == {2: "hypothetical", 3: "stubbed"}
