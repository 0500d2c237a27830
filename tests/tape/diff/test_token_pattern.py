"""The tokens in which texts differ that are otherwise equal."""

import pytest

from playhead.tape.diff.token_pattern import find_durations, find_token_patterns

ONE = "7bb22549-2900-4bfe-a7c5-3019f4a5ee4f"
OTHER = "044cdc4f-70b0-4117-a452-e6c518ae13cb"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

FOUND = [
    ([(ONE, OTHER)], (f"^({UUID})$",)),
    ([(f"msg_{ONE}", f"msg_{OTHER}")], (rf"msg_({UUID})$",)),
    (
        [(f"x: v=1; cch=3de0a; id={ONE};", f"x: v=1; cch=00000; id={OTHER};")],
        ("cch=([0-9a-f]{5});", f"id=({UUID});"),
    ),
    ([("1795519786.755067", "1795519788.8571904")], ("^(1[0-9]{9}\\.[0-9]+)$",)),
    (
        [
            (
                f'{{"a_id":"{"3de0a" * 4}","b_id":"{ONE}"}}',
                f'{{"a_id":"{"00000" * 4}","b_id":"{OTHER}"}}',
            )
        ],
        ('id":"([0-9a-f]{20})"', f'b_id":"({UUID})"'),
    ),
    (
        [("run_shell_1795519911043_0", "run_shell_1795519922573_0")],
        ("shell_([0-9]{13})_",),
    ),
    (
        [("Output: x\nProcess PGID: 30316\n</c>", "Output: x\nProcess PGID: 31302\n</c>")],
        (r"Process\ PGID:\ ([0-9]+(?:\.[0-9]+)?)\n",),
    ),
    (
        [("Wall time 0.1 seconds", "Wall time 12 seconds")],
        (r"Wall\ time\ ([0-9]+(?:\.[0-9]+)?)\ ",),
    ),
    (
        [("ses_df2a1c9a6ffeucV11kG1opkaH7", "ses_df2a17531ffeIosfLEP9Ev2PCy")],
        ("ses_([0-9A-Za-z]{26})$",),
    ),
    (
        [("Read=71;Bash=147", "Read=18;Bash=86")],
        ("Read=([0-9]+(?:\\.[0-9]+)?);", ";Bash=([0-9]+(?:\\.[0-9]+)?)$"),
    ),
    (
        [("<at>2026-11-24T11:55:24.123Z</at>", "<at>2026-11-25T09:00:01.000+01:00</at>")],
        (
            "at>([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
            r"\.[0-9]{3}(?:Z|[+-][0-9]{2}:[0-9]{2}))<",
        ),
    ),
    (
        [("2026-11-24T11:55:24", "2026-11-25T09:00:01")],
        ("^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})$",),
    ),
    (
        [("it is 2026-11-24 18:36 UTC", "it is 2026-11-25 09:05 UTC")],
        (r"is\ ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})\ ",),
    ),
    ([("Today:2026-11-24<", "Today:2026-11-25<")], ("Today:([0-9]{4}-[0-9]{2}-[0-9]{2})<",)),
    (
        [("Tabs:\nTab A234: a\n", "Tabs:\nTab E6D0: a\n")],
        (r"Tab\ ([0-9A-Fa-f]{4}):",),
    ),
]

CONTENT = [
    [("refund 40 EUR now", "refund the order now")],
    [("apple", "pear")],
    [("40", "45")],
    [("a b", "a b c")],
    [("id=facade;", "id=decade;")],
    [(ONE, "alice")],
    [("true", "false")],
    [("x", "x")],
    [("2026-11-24T11:55:24", "2026-11-25T09:00:01Z")],
    [("2026-11-24 11:55", "2026-11-25T09:00")],
    [("2026-11-24", "2026-11-25")],
    [("Tab FACE: a", "Tab DEAD: a")],
    [("Tab A234: a", "Tab 4711: a")],
    [],
    # of one place the forms have to be the same
    [("id=3de0a;", "id=00000;"), ("id=alice;", "id=bobby;")],
]  # fmt: skip


@pytest.mark.parametrize(("pairs", "patterns"), FOUND)
def test_a_token_is_left_out(pairs: list[tuple[str, str]], patterns: tuple[str, ...]) -> None:
    """By its form, with the text beside it."""
    assert find_token_patterns(pairs) == patterns


DURATIONS = [
    (
        "Script completed\nWall time 0.2 seconds\nOutput:",
        (r"Wall\ time\ ([0-9]+(?:\.[0-9]+)?)\ seconds",),
    ),
    ("took: 12ms", (r"took:\ ([0-9]+(?:\.[0-9]+)?)ms",)),
    ("it took 3 eggs, and 12 seconds", ()),
    ("wait 5 seconds", ()),
    ("the duration\n5 s", ()),
]


@pytest.mark.parametrize(("text", "patterns"), DURATIONS)
def test_a_duration_is_found_by_its_name(text: str, patterns: tuple[str, ...]) -> None:
    """Numbers that nothing calls a duration are content; what is left out already needs no further pattern."""
    assert find_durations([text]) == patterns
    assert find_durations([text], patterns) == ()


@pytest.mark.parametrize("pairs", CONTENT)
def test_content_is_no_token(pairs: list[tuple[str, str]]) -> None:
    """Words, short numbers alone, and what is longer on one side."""
    assert find_token_patterns(pairs) == ()
