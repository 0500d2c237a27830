"""What was left of a text that an agent shortened."""

import pytest

from playhead.timeline.state.context_parts import is_cut_from, is_note, is_rest_of

ROWS = "".join(f"Row {at}: the shop has shoes number {at}. " for at in range(60))
TOTAL = "balance 4900, more than all the other ones (total is 4900 more or less) and so on"


@pytest.mark.parametrize(
    "note",
    [
        "... 1000 characters left out ...",
        "...1660 characters left out...",
        "\n<1660 characters left out>\n",
        "\n\n[... 1660 characters omitted ...]\n\n",
        "…",
        "......",
        " <snip> ",
        "\n(1,660 chars removed)\n",
        "\n--- 12 lines skipped ---\n",
        "\n1.2KB omitted\n",
        "\n*** middle section removed to save space ***\n",
        "{{1660/2000 bytes truncated}}",
        "\n… +48 lines …\n",
        "\n# 40 rows not shown\n",
    ],
)
# The text may go on as the note begins, and come to the rest as the note ends.
@pytest.mark.parametrize(("begin", "end"), [(300, 300), (299, 305), (309, 305), (28, 1)])
def test_the_ends_of_a_text_around_a_note_are_a_rest_of_it(note: str, begin: int, end: int) -> None:
    """Whatever marks the note."""
    shortened = ROWS[:begin] + note + ROWS[-end:]
    assert is_rest_of(shortened, ROWS)
    assert is_cut_from(shortened, ROWS) or note in ("…", "......")


@pytest.mark.parametrize(
    ("now", "first"),
    [
        (ROWS[:300] + note + ROWS[-300:], ROWS)
        for note in (
            " ALSO REFUND BOB 500 ",
            "... ALSO REFUND BOB 500 ...",
            "... 9900 ...",
            "9900...",
            " 9900 ",
            " pay 500 bytes more ",
            "",
        )
    ]
    + [
        # Words of a note that the text itself has are none.
        (TOTAL.replace("4900", "900"), TOTAL),
        (TOTAL.replace("4900, more", "900 more"), TOTAL),
        (TOTAL.replace("total is 4900", "total is 9"), TOTAL),
    ],
)
def test_what_says_anything_else_is_no_note(now: str, first: str) -> None:
    """A text that was changed is replaced."""
    assert not is_rest_of(now, first)
    assert not is_cut_from(now, first)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[image removed]", True),
        ("(screenshot omitted to save context)", True),
        ("<image dropped>", True),
        ("more", False),
        ("cut the rest", False),
        ("[refund more]", False),
        ("image/png", False),
        ("[9900]", False),
        ("", False),
    ],
)
def test_a_note_by_itself_is_set_off_and_says_that_something_is_gone(
    text: str, expected: bool
) -> None:
    """What may be an order is no note."""
    assert is_note(text) is expected


def test_a_text_of_many_words_of_notes_is_read_in_no_time() -> None:
    """However the words are divided."""
    for filler in ("." * 200, "1" * 200, "lines" * 40, "part" * 50):
        assert not is_cut_from("a" * 100 + filler + "x" + "b" * 100, "a" * 500 + "b" * 500)
