"""A value is found however deep it is written, in all ways that JSON, URLs and HTML have."""

import html
import json
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from playhead.store import Store
from playhead.tests.support.agent_tapes import Tape
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.looking_back import write_store
from playhead.timeline.blame.find_origin import find_blame
from playhead.timeline.blame.sought_value import INSIDE, make_wanted
from playhead.timeline.blame.token_or_substring import Standing
from playhead.timeline.state.calls_before import Exchanges

VALUES = (
    *("東京都渋谷区神南一丁目", "Größe ✓ 😀 lang", "Müller", "😀😀😀😀"),
    *('He said "9ZX81Q now" ok', 'a"b', "x\ty", "C:\\dir\\9Z", "A&B <9ZX81Q>"),
)


def nest(value: str, depth: int, *, is_ascii: bool) -> str:
    """Write a value in JSON that is a text in JSON, and so on."""
    tree: object = {"k": value}
    for _ in range(depth):
        tree = {"w": json.dumps(tree, ensure_ascii=is_ascii)}
    return json.dumps(tree, ensure_ascii=is_ascii)


@pytest.mark.parametrize("value", VALUES)
def test_bytes_that_have_a_value_may_have_it(value: str) -> None:
    """A no would be wrong."""
    wanted = make_wanted(value)
    for depth in range(6):
        for is_ascii in (True, False):
            assert wanted.may_be_in(nest(value, depth, is_ascii=is_ascii).encode())
    coded = quote(value)
    assert wanted.may_be_in(coded.encode())
    assert wanted.may_be_in(coded.replace("%C3%BC", "%c3%bc").encode())
    for shown in (html.escape(value), value.encode("ascii", "xmlcharrefreplace").decode()):
        assert wanted.may_be_in(shown.encode())


@pytest.mark.parametrize("value", VALUES[:3])
@pytest.mark.parametrize("depth", [0, 2, 4])
def test_the_origin_of_a_deep_value_is_found(tmp_path: Path, value: str, depth: int) -> None:
    """It was answered as JSON in JSON, with escapes of escapes."""
    tape = Tape("deep")
    tape.get("https://n.test/x", nest(value, depth, is_ascii=True).encode())
    tape.post("https://n.test/y", {"t": value}, {"ok": True})
    store = write_store(tmp_path / "store", partial(write_run, name="r", exchanges=tape.exchanges))
    with Store.open(store, readonly=True) as opened:
        found = find_blame(Exchanges(opened, opened.runs.get("r")), 2, "$.t")
    assert found.origin is not None
    assert found.origin.seq == 1


def test_a_piece_is_called_that_whatever_else_fits() -> None:
    """The same characters say more than the same in another letter case."""
    found = make_wanted("ORD-88XK21").match("ORD-88XK21/2")
    assert found is not None
    assert (found.rule, found.standing) == (INSIDE, Standing.PIECE)


@pytest.mark.parametrize(
    "text", ['{"a":1,"é":[2,"b"]}', '["x y"]', "[1,2]", '{"id":"ORD-88XK21","n":[1]}']
)
def test_bytes_that_have_an_object_in_other_blanks_may_have_it(text: str) -> None:
    """Its blanks are those of whoever wrote it; of numbers alone only the same characters are found."""
    wanted = make_wanted(text)
    for is_ascii in (True, False):
        data = json.dumps({"k": json.loads(text)}, indent=1, ensure_ascii=is_ascii).encode()
        assert wanted.may_be_in(data) is (text != "[1,2]")


@pytest.mark.parametrize("size", [1_000, 70_001, 1_200_003])
def test_a_long_value_is_found_whole(size: int) -> None:
    """Also where the beginning, whose other writings are looked for, ends inside of a word."""
    text = " ".join(f"word{number * 7919 % 1_000_003}" for number in range(size // 8))
    wanted = make_wanted(text)
    assert wanted.may_be_in(json.dumps({"said": text}).encode())
    found = wanted.match(text)
    assert found is not None
    assert found.rule == ""
    assert wanted.match(text[:-1] + "x") is None
