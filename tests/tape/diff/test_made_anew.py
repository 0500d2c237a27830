"""Which values are proved to be made anew."""

import pytest

from playhead.tape.diff.made_anew import Window, is_day_of, is_time_of

NOW_S = 1_795_521_324.5
"""2026-11-24T11:55:24.5Z."""
WINDOW = Window(NOW_S - 100, NOW_S)


@pytest.mark.parametrize(
    ("text", "is_of"),
    [
        ("1795521324", True),
        ("1795521324.499", True),
        ("1795521324499", True),
        ("1795521324499000", True),
        ("1795521324499000123", True),
        ("2026-11-24T11:55:24Z", True),
        ("2026-11-24T12:55:24.123+01:00", True),
        ("2026-11-24T06:25:24-0530", True),
        ("2026-11-24 11:55 UTC", True),
        ("2026-11-24 11:55", True),
        ("20261124T115524Z", True),
        ("2026-11-24T13:55:24.123456", True),
        ("Tue, 24 Nov 2026 11:55:24 GMT", True),
        # before the recording began, after the request, and nothing of the sort
        ("1795520000", False),
        ("1795521400", False),
        ("2026-11-24T11:55:24+01:00", False),
        ("2026-11-24T13:55:24", False),
        ("2026-11-24T13:55:24.000", False),
        ("2026-11-24T13:50:24.123456Z", False),
        ("2026-11-24", False),
        ("2026-13-24T11:55:24Z", False),
        ("2026-99-99", False),
        ("656", False),
        ("1000000000000000000", False),
        ("9" * 400, False),
        ("Tuesday", False),
        ("", False),
    ],
)
def test_a_time_is_of_a_recording_between_its_beginning_and_the_request(
    text: str, is_of: bool
) -> None:
    """A time without a zone is one of UTC, unless it has fractions of a second."""
    assert is_time_of(text, WINDOW) is is_of


@pytest.mark.parametrize(
    ("text", "is_of"),
    [
        *(("2026-11-24", True), ("2026-11-25", True), ("2026-11-23", True), ("2026-11-20", False)),
        *(("2026-11-26", False), ("2026-99-99", False), ("1795521324", False)),
    ],
)
def test_a_day_is_of_a_recording_in_any_zone(text: str, is_of: bool) -> None:
    """A time is none."""
    assert is_day_of(text, WINDOW) is is_of
