"""The parts of a run's page: what of two values is marked."""

import pytest

from playhead.web.views.run_page_sections import Split, split_values


@pytest.mark.parametrize(
    ("one", "other", "split"),
    [
        # numbers
        ("4900", "1900", ("", "4900", "1900", "")),
        ("200", "500", ("", "200", "500", "")),
        ("49.00", "49.10", ("", "49.00", "49.10", "")),
        ("1,200", "1,300", ("", "1,200", "1,300", "")),
        ("-5", "-15", ("", "-5", "-15", "")),
        ("5", "-5", ("", "5", "-5", "")),
        ('{"a": 10}', '{"a": 100}', ('{"a": ', "10", "100", "}")),
        # names and words
        ("ch_1007", "ch_1008", ("", "ch_1007", "ch_1008", "")),
        ("refund charge", "refund change", ("refund ", "charge", "change", "")),
        ("pay 5 now", "pay 7 now", ("pay ", "5", "7", " now")),
        # longer than any word
        ("A" * 300, "A" * 299 + "B", ("A" * 200, "A", "B", "")),
        # one is the beginning of the other
        ("yes", "yes please", ("yes", "", " please", "")),
        ("yes", "yesterday", ("", "yes", "yesterday", "")),
        ("same", "same", ("same", "", "", "")),
        ("", "new", ("", "", "new", "")),
    ],
)
def test_whole_numbers_and_words_are_marked(
    one: str, other: str, split: tuple[str, str, str, str]
) -> None:
    """Whoever reads, hears or copies the two marks has both values."""
    assert split_values(one, other) == Split(*split)
