"""What other rules would change in many runs: counts by rule, coverage, the first change, samples, rules that match nothing."""

from pathlib import Path

from playhead.config import loads
from playhead.store import Store
from playhead.tests.support.agent_tapes import Tape
from playhead.tests.support.replays import write_recording
from playhead.timeline.rules.policy_summary import PolicySummary
from playhead.timeline.rules.render_dry_run import render_summary

RULES = """
effects:
  - {match: "POST https://shop.test/refunds", gate: true}
  - {match: "POST https://nowhere.test/*", gate: true}
live:
  - {match: "GET https://shop.test/*", reason: fresh}
"""


def shop(refunds: int) -> Tape:
    """A read, and some effects."""
    tape = Tape("shop")
    tape.get("https://shop.test/orders/7")
    for number in range(refunds):
        tape.post("https://shop.test/refunds", {"order": number})
    tape.get("https://other.test/weather")
    return tape


async def summarise(folder: Path, rules: str) -> PolicySummary:
    """Decide on five runs again."""
    summary = PolicySummary(loads(rules))
    with Store.open(folder / "store") as store:
        for number in range(5):
            await write_recording(store, f"run-{number}", shop(number).exchanges)
        for run in store.runs.all():
            summary.add(store, run)
    return summary


async def test_changes_are_counted_by_the_rule_that_makes_them(tmp_path: Path) -> None:
    """Each request once by the rule that decides on it, with the runs and a few samples."""
    told = (await summarise(tmp_path, RULES)).to_json()
    assert (told["runs"], told["requests"], told["changed"]) == (5, 20, 15)
    assert (told["changed_runs"], told["covered"]) == (5, 15)
    counts = {one["rule"]: (one["requests"], one["changed"], one["runs"]) for one in told["rules"]}
    assert counts == {
        "effects POST https://shop.test/refunds": (10, 10, 4),
        "live GET https://shop.test/*": (5, 5, 5),
        "mode": (5, 0, 0),
    }
    assert [one["of_the_file"] for one in told["rules"]] == [True, True, False]
    assert [len(one["samples"]) for one in told["rules"]] == [3, 3, 0]
    assert (told["first"]["run"], told["first"]["seq"]) == ("run-0", 1)
    assert told["idle"] == ["effects POST https://nowhere.test/*"]


async def test_the_page_names_the_first_change_and_what_matched_nothing(tmp_path: Path) -> None:
    """A person reads what a rule would do before it is switched on."""
    page = render_summary(await summarise(tmp_path, RULES)).splitlines()
    assert page[0] == "5 runs, 20 requests: 15 would be decided otherwise, in 5 runs"
    assert page[1] == "rules of the file decide on 15 requests (75 %)"
    assert "  run-0 seq 1  GET https://shop.test/orders/7" in page
    assert page[-1] == "matched nothing: effects POST https://nowhere.test/*"


async def test_without_rules_nothing_changes(tmp_path: Path) -> None:
    """And nothing is covered."""
    told = (await summarise(tmp_path, "mode: record")).to_json()
    assert (told["changed"], told["covered"], told["first"], told["idle"]) == (0, 0, None, [])
