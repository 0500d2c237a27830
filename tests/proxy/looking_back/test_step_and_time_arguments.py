"""Steps and times as they are written on a command line."""

import time

import pytest

from playhead.proxy.looking_back.step_and_time_arguments import (
    parse_moment,
    parse_seq,
    parse_since,
    parse_step,
)

S = 1_000_000_000
BEGAN = int(time.mktime((2026, 11, 24, 23, 50, 0, 0, 0, -1))) * S
"""Ten minutes to midnight, by the clock of this machine."""


def at(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Give a time of this machine's clock."""
    return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1))) * S


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("7", (7, 0)),
        ("0", (0, 0)),
        ("7.2", (7, 2)),
        ("9" * 40, (10**40 - 1, 0)),
    ],
)
def test_a_step_is_a_seq_with_a_part_or_without(text: str, step: tuple[int, int]) -> None:
    """Whether a run has it is asked of the run."""
    assert parse_step(text) == step


@pytest.mark.parametrize(
    "text", ["", "seven", "-1", "+1", "1.", ".7", "1.7.2", "1e3", " 1", "1_0", "١", "²", "9" * 41]
)
def test_what_is_no_step_is_told(text: str) -> None:
    """With what would be right, and not all of what was written."""
    with pytest.raises(ValueError, match=r"is no step of a run: expected its SEQ, as 7") as told:
        parse_step(text)
    assert len(str(told.value)) < 140


def test_a_part_is_told_where_there_are_none() -> None:
    """As of a savepoint."""
    with pytest.raises(ValueError, match=r"'7\.2' names a part: expected a SEQ alone, as 7"):
        parse_seq("7.2")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("+12s", BEGAN + 12 * S),
        ("+1.5s", BEGAN + 3 * S // 2),
        ("+20m", BEGAN + 1200 * S),
        ("+1d", BEGAN + 86_400 * S),
        ("23:55", at(2026, 11, 24, 23, 55, 0) + S - 1),
        ("23:50:00", BEGAN + S - 1),
        ("00:05:07", at(2026, 11, 25, 0, 5, 7) + S - 1),
        ("2026-11-24", at(2026, 11, 24, 0, 0, 0)),
        ("2026-11-25T00:05:07", at(2026, 11, 25, 0, 5, 7)),
        ("2026-11-25 00:05:07", at(2026, 11, 25, 0, 5, 7)),
        ("1970-01-01T00:00:10+00:00", 10 * S),
    ],
)
def test_a_moment_of_a_run(text: str, moment: int) -> None:
    """A time of the clock is the first one since the run began, though that was yesterday."""
    assert parse_moment(text, BEGAN) == moment


@pytest.mark.parametrize(
    "text",
    [
        *("", "noon", "+", "+soon", "-5s", "12s", "25:61:00", "2026-02-31"),
        *("+" + "9" * 400 + "s", "+36501d"),
    ],
)
def test_what_is_no_moment_is_told(text: str) -> None:
    """With what would be right, and not all of what was written."""
    with pytest.raises(ValueError, match=r"is no time: expected \+12s since the run began") as told:
        parse_moment(text, BEGAN)
    assert len(str(told.value)) < 170


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30d", BEGAN - 30 * 86_400 * S),
        ("12h", BEGAN - 43_200 * S),
        ("2026-11-24", at(2026, 11, 24, 0, 0, 0)),
        ("20261124", at(2026, 11, 24, 0, 0, 0)),
    ],
)
def test_a_time_since_when(text: str, moment: int) -> None:
    """So much before now, or a date."""
    assert parse_since(text, BEGAN) == moment


@pytest.mark.parametrize(
    "text", ["", "yesterdayish", "-3d", "25:61:00", "2026-02-31", "9" * 400 + "d"]
)
def test_what_is_no_time_since_when_is_told(text: str) -> None:
    """With what would be right."""
    with pytest.raises(ValueError, match=r"is no time: expected 30d or 12h before now"):
        parse_since(text, BEGAN)


@pytest.mark.parametrize("text", ["30", "2026", "1.5", "0", "9" * 400])
def test_a_number_alone_is_no_time(text: str) -> None:
    """It may mean days, seconds or a year."""
    with pytest.raises(
        ValueError, match=r"'[0-9.]+…?' has no unit: expected 30d or 12h before now"
    ):
        parse_since(text, BEGAN)
    with pytest.raises(ValueError, match=r"has no unit: expected \+12s since the run began"):
        parse_moment(f"+{text}", BEGAN)


@pytest.mark.parametrize("text", ["seven", "-1", "why did it refund?"])
def test_a_seq_without_parts_is_asked_for_alone(text: str) -> None:
    """Parts are not spoken of where there are none."""
    with pytest.raises(ValueError, match=r"is no step of a run: expected its SEQ, as 7\Z"):
        parse_seq(text)
