"""What a tape's index becomes under other rules, before it is written."""

from pathlib import Path

import lmdb
import pytest

from playhead.config import Config, IgnoreRule, parse_match
from playhead.store import RunInfo, Store
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.recordings import ask, record_run
from playhead.timeline.rules.reindex import Plan, plan, render_plan

MASK = (IgnoreRule(parse_match("*://api.test"), json=("$.id",)),)
TASK = [
    ask({"id": 1, "text": "a"}, {"n": 1}),
    ask({"id": 2, "text": "a"}, {"n": 2}),
    ask({"id": 3, "text": "b"}, {"n": 3}),
    ask({"id": 3, "text": "b"}, {"n": 4}),
]


def planned(store: Store, run: RunInfo, ignore: tuple[IgnoreRule, ...]) -> Plan:
    return plan(store, run, Config(ignore=ignore), Redactor(b"a test"))


def test_a_collision_names_what_the_requests_differ_in(tmp_path: Path) -> None:
    """The place that the new rule hides; two of the same bytes are no collision."""
    with Store.open(tmp_path) as store:
        made = planned(store, record_run(store, "tape", TASK), MASK)
    assert made.change.changed == 4
    assert [one.seqs for one in made.collisions] == [(1, 2)]
    assert [str(one) for one in made.collisions[0].differences] == [
        "body $.id: recorded 1, asked 2"
    ]
    text = render_plan(made, written=False)
    assert "became equal (1):\n  seqs 1, 2" in text
    assert "body $.id: 1 and 2" in text
    assert "nothing was written" in text


def test_an_exchange_that_the_store_lost_is_told(tmp_path: Path) -> None:
    """The log says that it was there: the count alone would hide it."""
    with Store.open(tmp_path) as store:
        run = record_run(store, "tape", TASK)
        assert planned(store, run, ()).missing == ()
    with lmdb.open(str(tmp_path / "log.lmdb"), max_dbs=20) as environment:
        table = environment.open_db(b"exchanges")
        with environment.begin(write=True) as transaction, transaction.cursor(table) as cursor:
            assert cursor.last()
            transaction.delete(cursor.key(), db=table)
    with Store.open(tmp_path, readonly=True) as store:
        made = planned(store, store.runs.get("tape"), ())
    assert made.missing == (4,)
    assert made.to_json(written=False)["missing"] == [4]
    assert "missing (1): seqs 4\n" in render_plan(made, written=False)


def test_under_the_same_rules_nothing_changes(tmp_path: Path) -> None:
    """An index is what it was made from."""
    with Store.open(tmp_path) as store:
        run = record_run(store, "tape", TASK, MASK)
        made = planned(store, run, MASK)
        assert (made.change.changed, made.index.digest) == (0, run.rules)
        assert planned(store, store.index.replace(run, made.index), MASK).change.changed == 0


def test_without_a_rule_its_requests_are_apart_again(tmp_path: Path) -> None:
    """And with it they were equal; a round trip ends where it began."""
    with Store.open(tmp_path) as store:
        run = record_run(store, "tape", TASK, MASK)
        before = store.index.fingerprints(run)
        made = planned(store, run, ())
        assert (made.change.apart, made.change.equal) == (((1, 2),), ())
        run = store.index.replace(run, made.index)
        assert store.index.fingerprints(run) != before
        run = store.index.replace(run, planned(store, run, MASK).index)
        assert store.index.fingerprints(run) == before


def test_progress_goes_up_to_the_end(tmp_path: Path) -> None:
    """One step an exchange."""
    told: list[tuple[int, int]] = []
    with Store.open(tmp_path) as store:
        run = record_run(store, "tape", TASK)
        plan(store, run, Config(), Redactor(b"a test"), lambda *at: told.append(at))
    assert told == [(n, 4) for n in range(1, 5)]


@pytest.mark.parametrize("written", [True, False])
def test_the_plan_as_json(tmp_path: Path, written: bool) -> None:
    """Counts are exact, groups are seqs."""
    with Store.open(tmp_path) as store:
        made = planned(store, record_run(store, "tape", TASK), MASK)
    found = made.to_json(written=written)
    assert found["counts"] == {"equal": 1, "apart": 0, "collisions": 1}
    assert found["collisions"] == [
        {"seqs": [1, 2], "differences": [{"place": "body $.id", "values": ["1", "2"]}]}
    ]
    assert (found["exchanges"], found["changed"], found["written"]) == (4, 4, written)
