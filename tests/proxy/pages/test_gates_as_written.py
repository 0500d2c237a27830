"""A held request is shown so that whoever approves its bytes has seen them: nothing that another reader takes is left out."""

import re
from typing import Any

import pytest

from playhead.proxy.pages.gates import view_gate
from playhead.timeline.receipts.render_text import show_text
from playhead.web.render import render

_FORM = "application/x-www-form-urlencoded"


def _view(body: bytes, *kinds: str, headers: int = 0) -> dict[str, Any]:
    fields = [["content-type", kind] for kind in kinds]
    row = {
        "id": "r:1",
        "run": "r",
        "seq": 1,
        "method": "POST",
        "url": "http://api.test/wire",
        "reason": "held",
        "rule": "wire",
        "repeats": None,
        "headers": [*fields, *([f"x-{at}", "v" * 500] for at in range(headers))],
        "body": show_text(body),
        "replaced": [],
        "body_bytes": len(body),
        "whole": True,
        "since_ns": 0,
        "deadline_ns": 10**10,
        "now_ns": 0,
        "digest": "00",
        "pid": 1,
    }
    return view_gate(row)


def _page(gate: dict[str, Any]) -> str:
    given = {"held_gates": [gate], "held": 1, "more": 0, "silent": [], "can_rule": True}
    given |= {"breaks": [], "at_breaks": 0, "open_runs": [], "rulings": [], "can_run": False}
    text = render("part_gates", **given)
    return re.sub(r"<[^>]+>", "", text).replace("&#34;", '"').replace("&lt;", "<")


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b'{"to":"mallory","to":"alice"}', "application/json", "comes 2 times"),
        (b'{"fee":NaN,"to":"mallory"}', "application/json", "NaN is no JSON"),
        (b'{"a":' * 45 + b'"mallory"' + b"}" * 45, "application/json", "deeper than 40"),
        (b"to=alice;to=mallory", _FORM, "some programs take for &"),
        (b"to=mallory%ff", _FORM, "is no UTF-8"),
    ],
)
def test_what_values_do_not_say_is_shown_as_it_was_sent(body: bytes, kind: str, why: str) -> None:
    """With the reason; the values of another reader would be approved unseen."""
    gate = _view(body, kind)
    page = _page(gate)
    assert gate["lines"] == []
    assert "Shown as it was sent" in page
    assert why in page
    assert show_text(body).strip("\n") in page.replace("&#39;", "'").replace("&amp;", "&")


def test_two_content_types_are_read_as_neither() -> None:
    """The receiver takes one of them."""
    gate = _view(b"a=1&a=2", _FORM, "application/json")
    assert (gate["lines"], gate["kind"]) == ([], f"{_FORM} and application/json")
    assert "several content types" in _page(gate)


@pytest.mark.parametrize("number", ["0.1000000000000000055511", "49.00", "1E400", "1e2", "-0"])
def test_numbers_are_as_they_were_written(number: str) -> None:
    """And the bytes are beside the values."""
    body = f'{{"amount":{number}}}'
    gate = _view(body.encode(), "application/json")
    assert [(one.name, one.text, one.kind) for one in gate["lines"]] == [
        ("amount", number, "number")
    ]
    page = _page(gate)
    assert body in page[page.index("As it was sent") :]


def test_all_pairs_of_a_form_are_counted() -> None:
    """Those that come twice are there in their order, and no number of them is too much for the page."""
    gate = _view(b"to=alice&to=mallory", _FORM)
    assert [(one.name, one.text) for one in gate["lines"]] == [("to", "alice"), ("to", "mallory")]
    gate = _view(b"&".join(b"a=%d" % at for at in range(3000)), _FORM)
    assert gate["lines"][-1].more == 2600
    assert "a=2999" in _page(gate)


@pytest.mark.parametrize("name", ["to ", " to", "t\u200bo", "", "to" * 60, "t o  x"])
def test_a_name_that_looks_like_another_is_in_quotes(name: str) -> None:
    """White space that is folded, and what is not printed."""
    import json

    gate = _view(json.dumps({name: 1, "to": 2}, ensure_ascii=False).encode(), "application/json")
    odd, plain = (one.name for one in gate["lines"])
    assert plain == "to"
    assert odd.startswith('"')
    assert odd.endswith('"')


def test_a_head_that_is_cut_says_so() -> None:
    """Forty fields, and 500 bytes of each value."""
    page = _page(_view(b"", headers=40))
    assert "the first 40 header fields" in page
    assert page.count("cut behind 500 bytes") == 40
