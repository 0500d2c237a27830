"""Which times in what a model is asked are those of the request itself."""

from datetime import UTC, datetime

import pytest

from playhead.tape.diff.made_anew import Window
from playhead.timeline.learning.tokens_made_anew import Times, are_proved

BEGUN_S, LATER_S = 1795478400.0, 1795564800.0
"""Of both recordings; a day apart."""
STAMP = r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)"
DAY = r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[^T]|$)"


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _prove(text: str, ago_s: float, asked_s: float = 600.0, regex: str = STAMP) -> bool:
    """Say whether it is proved of a question with the time of some seconds before it, in both recordings."""
    begun = BEGUN_S, LATER_S
    said = [_stamp(at_s + asked_s - ago_s) for at_s in begun]
    texts = [text.replace("TIME", one).replace("DAY", one[:10]) for one in said]
    times = Times(*[Window(at_s, at_s + asked_s) for at_s in begun])
    pairs = [((texts[0], texts[1]), times)]
    return are_proved("body $.messages[*].content", regex, pairs, is_question=True)


@pytest.mark.parametrize(
    "text",
    [
        *("Pay the rent of ada on TIME.", "Refund all orders placed before TIME."),
        *("Wire the salary, execution date TIME.", "The flight departs at TIME."),
        *("Order: execute_at=TIME", "Due date: TIME", "date: TIME", "time: TIME", "TIME"),
        *("Delete what is older than the current time TIME", "Cancel all until now TIME"),
        *("Know: TIME", "Due today: TIME, and", '{"created_at": "TIME"}', '{"date": "TIME"}'),
    ],
)
def test_a_time_in_a_question_is_content(text: str) -> None:
    """It may say when something is due, though it is now."""
    assert not _prove(text, 1)


@pytest.mark.parametrize(
    "text",
    [
        *("Current time: TIME", "You help.\nThe current date and time is TIME.", "now=TIME"),
        *("<current_datetime>TIME</current_datetime>", '{"currentTime": "TIME"}', "Now: TIME\n"),
        *("**current date/time is TIME**", "[timestamp TIME]", "Go. It is now TIME", "Today: TIME"),
    ],
)
def test_a_time_that_is_called_now_and_is_so_is_made_anew(text: str) -> None:
    """In both recordings."""
    assert _prove(text, 1)
    assert not _prove(text, 300)


def test_a_day_that_is_called_today_is_made_anew() -> None:
    """In any zone."""
    assert _prove("Today's date is DAY.", 0, regex=DAY)
    assert _prove("x\nToday is DAY", 0, regex=DAY)
    assert not _prove("Pay on DAY.", 0, regex=DAY)
    assert not _prove("Today's date is DAY.", -3 * 86400, regex=DAY)


def test_a_time_counts_from_the_first_request_that_has_it() -> None:
    """Later ones repeat the conversation."""
    texts = "Now: " + _stamp(BEGUN_S + 1), "Now: " + _stamp(LATER_S + 1)
    pairs = [
        (texts, Times(Window(BEGUN_S, BEGUN_S + after), Window(LATER_S, LATER_S + after)))
        for after in (2.0, 900.0)
    ]
    assert are_proved("body $.messages[*].content", STAMP, pairs, is_question=True)
    assert not are_proved("body $.messages[*].content", STAMP, pairs[1:], is_question=True)
