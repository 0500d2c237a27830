"""The page's data: the same as the commands print, in windows."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.looking_back import output
from playhead.tests.support.process import read_json
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.refund_store import RUN, STEPS

_BASE = f"/data/runs/{RUN}"


class Asked:
    """A page's process, and the store that it serves."""

    def __init__(self, ui: Ui, store: Path) -> None:
        self.ui, self.store, self.cookie = ui, store, ui.cookie

    def data(self, path: str) -> Any:
        """Give the JSON of an address."""
        answer = self.ui.ask(path, self.cookie)
        assert answer.status == 200, answer.text
        return answer.json

    def printed(self, *words: str | int) -> Any:
        """Give the JSON that a command prints."""
        return json.loads(output(self.store, *words, "--json"))


@pytest.fixture(scope="module")
def asked(refund_ui: Ui, refund_store: Path) -> Asked:
    return Asked(refund_ui, refund_store)


def _has(told: dict[str, Any], printed: dict[str, Any]) -> bool:
    """Say whether data has all that a command prints, and says the same."""
    return all(told.get(key) == value for key, value in printed.items())


def test_runs_are_those_of_the_command(asked: Asked) -> None:
    """In windows; a search leaves fewer."""
    told = asked.data("/data/runs?from=0&limit=200")
    printed = {one["id"]: one for one in asked.printed("runs")}
    assert told["total"] == len(printed)
    assert all(_has(one, printed[one["id"]]) for one in told["runs"])
    assert {one["id"] for one in told["runs"]} == set(printed)
    window = asked.data("/data/runs?from=1&limit=2")
    assert [one["id"] for one in window["runs"]] == [one["id"] for one in told["runs"]][1:3]
    assert window["total"] == told["total"]
    assert asked.data("/data/runs?q=night&in=label")["total"] == 5
    assert asked.data("/data/runs?q=nothing-like-it&in=text")["total"] == 0
    assert asked.data("/data/runs?q=v1/refunds&in=url")["total"] >= 5
    grepped = {one["run"] for one in asked.printed("runs", "--grep", "timed out")}
    found = asked.data("/data/runs?q=timed%20out&in=text")["runs"]
    assert {one["id"] for one in found} == grepped


def test_steps_are_those_of_the_command(asked: Asked) -> None:
    """Each window has the steps from a seq on."""
    printed = asked.printed("show", RUN)["steps"]
    told = asked.data(f"{_BASE}/steps?from=1&limit=200")
    assert told["steps"] == printed
    assert told["total"] == len(printed)
    later = asked.data(f"{_BASE}/steps?from=5&limit=3")["steps"]
    assert later == [one for one in printed if one["seq"] >= 5][: len(later)]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_windows_of_steps_join(asked: Asked, limit: int) -> None:
    """Each ends with a whole exchange, or says what of it is left out."""
    printed, found = asked.printed("show", RUN)["steps"], []
    seq, skip = 1, 0
    while True:
        told = asked.data(f"{_BASE}/steps?from={seq}&skip={skip}&limit={limit}")
        if not told["steps"]:
            break
        assert len(told["steps"]) <= limit
        found += told["steps"]
        last = told["steps"][-1]["seq"]
        skip = skip * (last == seq) + len(told["steps"]) if told["left_out"] else 0
        seq = last + (not told["left_out"])
    assert found == printed


@pytest.mark.parametrize("seq", range(1, STEPS + 1))
def test_a_step_is_that_of_the_command(asked: Asked, seq: int) -> None:
    """Without its bodies; these come in windows of bytes that join to what was recorded."""
    told, printed = asked.data(f"{_BASE}/steps/{seq}"), asked.printed("show", RUN, seq)
    assert told["seq"] == seq
    assert "body" not in told["request"]
    for side, key in (("request", "request"), ("answer", "response")):
        whole = printed[key].get("body", "")
        parts = [
            asked.data(f"{_BASE}/steps/{seq}/body?side={side}&from={at}&limit=50")
            for at in range(0, max(len(whole), 1), 50)
        ]
        assert "".join(one.get("body", "") for one in parts) == whole
        assert {one["total"] for one in parts} == {len(whole.encode())}


def test_the_context_and_the_origin_are_those_of_the_commands(asked: Asked) -> None:
    """What entered at step 5 is what `state` says; the origin is what `blame` says."""
    parts = asked.data(f"{_BASE}/steps/5/context?from=0&limit=200")
    text = json.dumps(parts)
    assert "the request timed out" in text
    assert {"entered"} <= {one["change"] for one in parts["parts"]}
    assert asked.data(f"{_BASE}/steps/6/blame?path=amount") == asked.printed(
        "blame", RUN, 6, "amount"
    )


def test_a_diff_is_that_of_the_command(asked: Asked) -> None:
    """In windows of differences."""
    from click.testing import CliRunner

    from playhead.proxy.cli import cli

    words = ["diff", "refund-fixed", RUN, "--json", "--store", str(asked.store)]
    printed = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    told = asked.data(f"/data/diff/refund-fixed/{RUN}?from=0&limit=200")
    assert told["divergence"] == printed["divergence"]
    assert told["differences"] == printed["differences"]
    assert told["total"] == len(printed["differences"])
    assert (
        asked.data(f"/data/diff/refund-fixed/{RUN}?from=1&limit=1")["differences"]
        == printed["differences"][1:2]
    )


# Of a scrubber: where it is, where it is to go, and where it gets: seq, position among its own, and how many these are.
MOVES = (
    ("time", 1, "next", 2, 2, 7), ("time", 1, "previous", 1, 1, 7), ("time", 3, "last", 7, 7, 7), ("time", 7, "next", 7, 7, 7),
    ("time", 1, "5", 5, 5, 7), ("time", 1, "99", 7, 7, 7), ("kind", 1, "next", 3, 2, 4), ("kind", 3, "last", 7, 4, 4), ("kind", 5, "first", 1, 1, 4),
    ("lane", 1, "next", 2, 2, 7), ("effects", 1, "next", 4, 1, 2), ("effects", 4, "next", 6, 2, 2), ("effects", 6, "next", 6, 2, 2), ("effects", 7, "next", 7, None, 2), ("effects", 1, "previous", 1, None, 2),
    ("effects", 7, "previous", 6, 2, 2), ("effects", 5, "previous", 4, 1, 2), ("effects", 1, "last", 6, 2, 2),
)  # fmt: skip


@pytest.mark.parametrize(("of", "seq", "go", "to", "position", "total"), MOVES)
def test_a_scrubber_moves(
    asked: Asked, of: str, seq: int, go: str, to: int, position: int, total: int
) -> None:
    """It stays where it is at an end."""
    told = asked.data(f"{_BASE}/moves?of={of}&seq={seq}&go={go}")
    assert (told["seq"], told["position"], told["of_total"]) == (to, position, total)


@pytest.mark.parametrize("width", [1, 100, 2000])
def test_the_strip_is_as_wide_as_asked(asked: Asked, width: int) -> None:
    """The counts of its bins are the run's, whatever its width."""
    told = asked.data(f"{_BASE}/strip?width={width}")
    text = json.dumps(told)
    assert len(text) <= 256 * 1024
    assert len(told["lanes"]) == 1
    assert told["gaps"] == []


def test_the_page_says_what_cost_says(kinds_store: Path, kinds_ui: Ui) -> None:
    """Why a sum may be too low: of how many calls no price is known, and how many may be dearer."""
    spoken = 0
    for row in kinds_ui.ask("/data/runs", kinds_ui.cookie).json["runs"]:
        if row["facts"] is None:
            continue
        spent = read_json("cost", row["id"], "--store", kinds_store)["spent"]
        shown = kinds_ui.ask(path_of(row["id"]), kinds_ui.cookie).text
        for key, words in (("unpriced", " without a known price"), ("at_least", " perhaps dearer")):
            count = spent[key]
            assert row["facts"][key] == count
            assert (words in shown) == bool(count), (row["id"], words)
            spoken += bool(count)
        assert row["facts"]["calls"] == spent["calls"]
    assert spoken
