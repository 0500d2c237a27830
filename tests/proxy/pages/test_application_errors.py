"""What another process said of a ruling is passed on by its four texts, and not as one within another."""

from playhead.proxy.errors import NotAnswered
from playhead.proxy.pages.application import _as_wrong


def test_the_texts_of_another_process_are_passed_on() -> None:
    """Without its number; one that did not answer has no texts of its own."""
    error = NotAnswered(
        "process 7 answered 409: held no more (expected a digest, found none)",
        "ask again",
        error="held no more",
        expected="a digest",
        found="none",
    )
    told = _as_wrong(error)
    assert (told.status, told.to_json()) == (
        409,
        {"error": "held no more", "expected": "a digest", "found": "none", "hint": "ask again"},
    )
    told = _as_wrong(NotAnswered("process 7 did not answer", "is it stopped?"))
    assert told.to_json()["error"] == "process 7 did not answer"
