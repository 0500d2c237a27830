"""The exchange that stands for a step of a playback."""

from pathlib import Path

from playhead.store import Store
from playhead.tape.records.events import EventKind
from playhead.tests.web.cases.kinds_store import PLAYED, write_kinds_store
from playhead.timeline.receipts.exchange_rows import find_shown


def test_what_a_tape_answered_was_not_executed(tmp_path: Path) -> None:
    """It has the verdict, the reason and the time of the playback, not those of the recording."""
    folder = write_kinds_store(tmp_path / "store")
    with Store.open(folder, readonly=True) as store:
        played = store.runs.get(PLAYED)
        verdicts = [
            event
            for event in store.events.all(played)
            if event.kind is EventKind.VERDICT and "tape_seq" in event.data
        ]
        found = {event.seq: find_shown(store, played, event.seq) for event in verdicts}
        checked = 0
        for event in verdicts:
            shown = found[event.seq]
            if shown is None or shown[0].id == PLAYED:
                continue  # it has an exchange of its own
            _, exchange = shown
            assert exchange.verdict.value == event.data["verdict"] != "recorded"
            assert (exchange.reason, exchange.started_ns) == (event.data["reason"], event.at_ns)
            checked += 1
        assert checked
