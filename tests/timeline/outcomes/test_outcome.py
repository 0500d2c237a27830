"""Whether a run did what was wanted: a person's label, the agent's word, the exit code of its command."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.store import RunInfo
from playhead.store.tables.run_info import RunStatus
from playhead.tape.exchange import RunId
from playhead.tape.records.events import Event, EventKind
from playhead.timeline.outcomes.outcome import Outcome, Verdict, find_outcome

RUN = RunInfo(1, RunId("run"), "record", 1, RunStatus.SEALED)
CODE_0, CODE_1 = {"child_exit": 0}, {"child_exit": 1}
SAYS_OK, SAYS_NO = {"outcome": "ok", "why": ""}, {"outcome": "failed", "why": "no stock"}


@pytest.mark.parametrize(
    ("labels", "noted", "expected"),
    [
        ((), [], ("unknown", "", "")),
        (("nightly",), [{"text": "a warning"}], ("unknown", "", "")),
        ((), [CODE_0], ("ok", "exit code", "0")),
        ((), [CODE_1], ("failed", "exit code", "1")),
        # the agent knows better than its code
        ((), [SAYS_NO, CODE_0], ("failed", "agent", "no stock")),
        ((), [SAYS_NO, SAYS_OK, CODE_1], ("ok", "agent", "")),
        # a person knows better than both, and the bad word counts
        (("nightly", "OK"), [SAYS_NO, CODE_1], ("ok", "label", "OK")),
        (("wrong",), [SAYS_OK, CODE_0], ("failed", "label", "wrong")),
        (("ok", "failed"), [], ("failed", "label", "failed")),
    ],
)
def test_the_first_who_says_anything_counts(
    labels: tuple[str, ...], noted: list[dict[str, Any]], expected: tuple[str, str, str]
) -> None:
    """Labels, then the agent's last word, then the exit code."""
    events = [Event(EventKind.NOTED, 1, data) for data in noted]
    found = find_outcome(replace(RUN, labels=labels), events)
    assert (found.verdict.value, found.by, found.text) == expected


def test_a_run_whose_process_died_has_failed() -> None:
    """Nobody lived to say it."""
    died = replace(RUN, status=RunStatus.RECOVERED, end="its process died")
    assert find_outcome(died, []).verdict.value == "failed"


@pytest.mark.parametrize(
    ("by", "has_gap", "words"),
    [("", False, ""), ("", True, "gap"), ("label", False, "ok"), ("label", True, "ok, gap")],
)
def test_a_listing_names_a_gap(by: str, has_gap: bool, words: str) -> None:
    """Beside the outcome, and where nobody says anything of that."""
    assert Outcome(Verdict.OK, by, has_gap=has_gap).words == words
