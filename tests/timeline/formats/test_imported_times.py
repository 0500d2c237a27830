"""Times of imported lines: what came while an answer was on its way, and what is said where none are stated."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config
from playhead.proxy.operations.tape_files import import_jsonl
from playhead.store import Store
from playhead.tape.exchange import Exchange, Lane, RequestClass, Seq
from playhead.tape.matching.lane_order import place
from playhead.timeline.blame.find_origin import Blame, find_blame
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.step import Evidence

_START = 1_795_500_000_000_000_000
_S = 1_000_000


def line(
    url: str, answer: str, start_s: float | None, took_s: float | None, **more: Any
) -> dict[str, Any]:
    """Write a read with its answer."""
    made: dict[str, Any] = {"request": {"method": "GET", "url": url}}
    made["response"] = {"status": 200, "body": answer}
    if start_s is not None:
        made["started_ns"] = _START + int(start_s * 1_000_000_000)
    if took_s is not None:
        made["end_us"] = int(took_s * _S)
    return made | more


def load(folder: Path, lines: list[dict[str, Any]]) -> Config:
    """Import lines into a store of their own."""
    file = folder / "run.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    config = Config(store=folder / "store")
    import_jsonl(config, file, None)
    return config


def exchanges_of(folder: Path, lines: list[dict[str, Any]]) -> list[Exchange]:
    """Give the exchanges that lines become."""
    load(folder, lines)
    with Store.open(folder / "store", readonly=True) as store:
        return list(store.exchanges.all(store.runs.get("run")))


def blame(folder: Path, lines: list[dict[str, Any]]) -> Blame:
    """Look where the id in the second line's body comes from."""
    load(folder, lines)
    with Store.open(folder / "store", readonly=True) as store:
        return find_blame(Exchanges(store, store.runs.get("run")), 2, "$.id")


def test_requests_that_were_on_their_way_overlap(tmp_path: Path) -> None:
    """As in a recording: a request has those that had come before it and were not answered; order in playback is not compared."""
    found = exchanges_of(
        tmp_path,
        [
            line("https://a.test/1", "one", 0, 1),
            line("https://a.test/2", "two", 0.5, 2),
            line("https://a.test/3", "three", 1, 0.1),
            line("https://a.test/4", "four", 3, 1),
            line("https://a.test/5", "five", None, None),
        ],
    )
    lanes = [Lane(0, ()), Lane(0, (Seq(1),)), Lane(0, (Seq(2),)), Lane(0, ()), None]
    assert [one.lane for one in found] == lanes
    assert all(place(one, RequestClass.READ) is None for one in found)


def test_a_piece_has_what_had_come_by_then(tmp_path: Path) -> None:
    """Also in lines that are not in the order of time; what a line states itself is kept."""
    chunks = [[100, 2], [2 * _S, 1]]
    late = line("https://a.test/1", "abc", 0, 3)
    late["response"]["chunks"] = chunks
    told = line("https://a.test/2", "abc", 0.1, 3)
    told["response"]["chunks"] = [[100, 2, 9], [2 * _S, 1, 9]]
    found = exchanges_of(
        tmp_path,
        [
            line("https://a.test/4", "x", 1.5, 0.1, seq=4),
            late | {"seq": 1},
            told | {"seq": 2},
            line("https://a.test/3", "y", 1, 9, seq=3),
            line("https://a.test/5", "z", 5, 0.1, seq=5),
        ],
    )
    after = {
        one.seq: [chunk.after for chunk in one.response.chunks]
        for one in found
        if one.response is not None
    }
    assert after[Seq(1)] == [1, 4]
    assert after[Seq(2)] == [9, 9]
    assert after[Seq(3)] == [5]
    assert not any(after[Seq(4)])


@pytest.mark.parametrize(
    ("first", "second", "evidence"),
    [
        ((0, 1), (2, 1), Evidence.RECORDED),
        # The answer had not ended when the request was sent.
        ((0, 5), (2, 1), None),
        # Nobody says when it was.
        ((None, None), (None, None), Evidence.INFERRED),
        ((0, None), (2, 1), Evidence.INFERRED),
    ],
    ids=["before", "after", "no times", "no end"],
)
def test_blame_goes_by_the_times(
    tmp_path: Path,
    first: tuple[float | None, float | None],
    second: tuple[float | None, float | None],
    evidence: Evidence | None,
) -> None:
    """An answer that came after the request was sent is no origin; of one without a time nothing is recorded."""
    asked = line("https://a.test/2", "", *second)
    asked["request"] |= {"method": "POST", "body": '{"id": "ord_8k2m9x7q4w"}'}
    found = blame(tmp_path, [line("https://a.test/1", '{"id": "ord_8k2m9x7q4w"}', *first), asked])
    assert found.evidence is evidence
    assert [one.seq for one in found.unseen] == ([] if evidence else [1])
