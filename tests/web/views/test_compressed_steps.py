"""Steps in pages: what went in comes out, whatever was packed meanwhile, and a long run keeps short texts."""

from typing import Any

import pytest

from playhead.web.views import compressed_steps
from playhead.web.views.compressed_steps import PAGE, StepPages


def _step(number: int, size: int = 5) -> dict[str, Any]:
    return {"seq": number, "name": "n", "text": "x" * size, "text_left_out": 0}


def test_steps_come_out_as_they_went_in() -> None:
    """Also across pages, out of order, and where there are none."""
    pages = StepPages()
    for number in range(3 * PAGE + 7):
        pages.append([_step(number)])
    assert len(pages) == 3 * PAGE + 7
    for number in (3 * PAGE, 0, PAGE, PAGE - 1, 2 * PAGE + 5, 1, 3 * PAGE + 6):
        assert pages.get(number) == [_step(number)]
    assert pages.get(3 * PAGE + 7) == []
    assert pages.get(10 * PAGE) == []


@pytest.mark.parametrize("position", [0, PAGE - 1, PAGE, 2 * PAGE + 1])
def test_what_came_behind_is_added(position: int) -> None:
    """In a packed page as in the open one; its neighbours stay."""
    pages = StepPages()
    for number in range(2 * PAGE + 3):
        pages.append([_step(number)])
    pages.extend(position, [_step(999)])
    assert pages.get(position) == [_step(position), _step(999)]
    assert pages.get(position + 1) == [_step(position + 1)]


def test_texts_of_a_long_run_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as much is kept as has room for whole ones."""
    monkeypatch.setattr(compressed_steps, "_ROOMY_BYTES", 10)
    pages = StepPages()
    for number in range(PAGE + 1):
        pages.append([_step(number, 300)])
    assert pages.get(0)[0]["text"] == "x" * 300
    late = pages.get(PAGE)[0]
    assert (late["text"], late["text_left_out"]) == ("x" * 200, 100)
