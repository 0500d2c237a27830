"""Addresses: each name of a run has one that a browser leaves as it is, and none has that of another."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from playhead.web.views.addresses import name_of, run_path, segment_of

_NAMES = st.text("~.%2eE/", min_size=1, max_size=6) | st.text(
    st.characters(codec="utf-8"), min_size=1, max_size=6
)


@given(_NAMES)
def test_a_segment_says_which_run_it_is_of(name: str) -> None:
    """Also of names that look like the spelling of others."""
    segment = segment_of(name)
    assert name_of(unquote(segment)) == name
    assert segment.lower().replace("%2e", ".") not in (".", "..")


def test_names_of_dots_have_another_spelling() -> None:
    """A browser takes them out of a path, also percent-encoded."""
    assert [run_path(one) for one in (".", "..", "~.", "...", "~~")] == [
        "/runs/~.",
        "/runs/~..",
        "/runs/~~.",
        "/runs/...",
        "/runs/~~",
    ]
