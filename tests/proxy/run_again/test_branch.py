"""What a branch says before it runs, what it may use up, and its exit code."""

from decimal import Decimal

import pytest

from playhead.config import Limits, LiveRule, parse_match
from playhead.proxy.errors import EngineError
from playhead.proxy.run_again import branch as run_again
from playhead.proxy.run_again.branch import (
    CapNames,
    Caps,
    Spent,
    announce,
    choose_code,
    find_caps,
    limit_run,
)
from playhead.proxy.run_again.branch_price import Price
from playhead.store import RunInfo
from playhead.tape.exchange import RequestClass, RunId, Seq
from playhead.tape.policy.branch import Branch, RequestChange, parse_route
from playhead.timeline.cost.sums import Sum

TAPE = RunInfo(number=1, id=RunId("tape"), mode="record", created_ns=1)
COMMANDS = (("python", "new.py"), ("rm", "-rf", "/"))


def said(branch: Branch, times: int = 1) -> str:
    """What is said before it runs."""
    price = Price(Sum(2, usd=Decimal("0.42")), 2)
    caps = Caps(Decimal(1), 10)
    return "\n".join(announce(TAPE, branch, price, times, caps, COMMANDS))


def test_what_leaves_and_what_it_costs_is_said_first() -> None:
    """With the command that is run, and the one that is not."""
    live = ((LiveRule(parse_match("* *://api.test"), "a fix"), RequestClass.INFERENCE),)
    routes = (parse_route("POST https://pay.test/x=http://127.0.0.1:9/copy", "a copy"),)
    change = RequestChange(system="new")
    text = said(Branch(Seq(3), live, routes, change=change), 3)
    for one in (
        "branch of 'tape' at 3, 3 times",
        "another system prompt (3 characters)",
        "live: inference at api.test (a fix)",
        "sandboxed: POST https://pay.test/x at http://127.0.0.1:9/copy (a copy)",
        "2 calls, 0.42 USD; 3 times: 1.26 USD",
        "cap: 1.00 USD, 10 calls in all",
        "command: python new.py",
        "recorded with, and not run: rm -rf /",
    ):
        assert one in text, text


@pytest.mark.parametrize(
    ("branch", "unchanged"),
    [
        (Branch(Seq(3)), True),
        (Branch(Seq(3), change=RequestChange(system="new")), False),
        (Branch(Seq(3), routes=(parse_route("POST https://pay.test/x=http://127.0.0.1:9/c", "r"),)), False),
    ],
)  # fmt: skip
def test_a_branch_that_changes_nothing_says_so(branch: Branch, unchanged: bool) -> None:
    """With the options that would."""
    told = "  at 3: nothing is changed, so this is a replay; --answer, --edit, --system or --request-change"
    assert (told in said(branch)) == unchanged


def test_a_branch_from_which_nothing_leaves_says_so() -> None:
    """Without a price."""
    text = said(Branch(Seq(3)))
    assert "nothing leaves" in text
    assert "price" not in text


@pytest.mark.parametrize(
    ("limits", "caps", "spent", "usd", "calls"),
    [
        (Limits(), Caps(None, 10), Spent(), None, 10),
        (Limits(), Caps(Decimal(2), 10), Spent(Decimal("0.5"), 4), Decimal("1.5"), 6),
        (Limits(calls=3), Caps(None, 10), Spent(), None, 3),
        (Limits(usd=Decimal("0.1")), Caps(Decimal(2), 10), Spent(), Decimal("0.1"), 10),
        (Limits(), Caps(Decimal(2), 10), Spent(Decimal(3), 11), Decimal(0), 0),
    ],
)
def test_a_run_may_use_what_is_left(
    limits: Limits, caps: Caps, spent: Spent, usd: Decimal | None, calls: int
) -> None:
    """Of the caps, and no more than the configuration allows."""
    found = limit_run(limits, caps, spent)
    assert (found.usd, found.calls) == (usd, calls)


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0], 0), ([0, 3, 0], 3), ([3, 121, 123], 121), ([0, 125, 3], 125), ([], 0)],
)
def test_of_several_codes_ours_comes_first(codes: list[int], code: int) -> None:
    """Then the command's own."""
    assert choose_code(codes) == code


def test_a_cap_is_called_as_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep has keys of a file, and no flags."""
    names = CapNames("cap", "max_calls", "live or routes")
    sends, nothing = (
        Branch(Seq(1), routes=(parse_route("https://x.test=http://127.0.0.1:9", "a copy"),)),
        Branch(Seq(1)),
    )
    price = Price(Sum(), 1)
    with pytest.raises(EngineError, match=r"^cap and max_calls limit live requests") as error:
        find_caps(Caps(None, 5), nothing, price, 1, names)
    assert error.value.hint == "add live or routes, or leave them out"
    monkeypatch.setattr(run_again, "has_prices", lambda: False)
    with pytest.raises(EngineError, match=r"^cap needs the prices") as error:
        find_caps(Caps(Decimal(1)), sends, price, 1, names)
    assert error.value.hint == "install playhead[prices], or give max_calls in the place of cap"
    with pytest.raises(EngineError, match=r"^--cap needs the prices") as error:
        find_caps(Caps(Decimal(1)), sends, price, 1)
    assert "--max-calls" in str(error.value.hint)


@pytest.mark.parametrize(
    ("cap", "spent", "shown", "left"),
    [
        ("0.00025", "0.00021", "0.00025 USD in all", "; left 0.00004 USD"),
        ("0.00025", "0", "0.00025 USD in all", "; left 0.0002 USD"),
        ("1", "0.0012", "1.00 USD in all", "; left 0.99 USD"),
        ("0.125", "1", "0.125 USD in all", "; left 0.00 USD"),
    ],
)
def test_a_cap_is_shown_as_it_is_and_no_more_is_left_than_is(
    cap: str, spent: str, shown: str, left: str
) -> None:
    """Whatever is rounded."""
    caps = Caps(Decimal(cap))
    assert (caps.show(), caps.show_left(Spent(Decimal(spent)))) == (shown, left)
