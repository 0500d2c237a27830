"""The lines of a run's page."""

from decimal import Decimal

import pytest

from playhead.tape.dialects import Usage
from playhead.tape.exchange import Seq
from playhead.timeline.cost.render import say_money
from playhead.timeline.cost.sums import Sum
from playhead.timeline.show.listing import Counts, list_lanes, list_steps
from playhead.timeline.steps.step import Lane, Step, StepKind


@pytest.mark.parametrize("host", ["shop.test", "[::1]", "['shop.test']", "[", "]", "", "a b", "é"])
def test_a_request_is_a_line_whatever_its_host(host: str) -> None:
    """A recorded name may be one that no URL has."""
    step = Step(StepKind.HTTP, Seq(1), f"GET https://{host}/things", "200")
    (line,) = list_steps([step], Counts())
    assert f"GET {host}/things" in line


def test_requests_to_one_host_share_a_line() -> None:
    """Those to another one begin the next."""
    urls = ("https://a.test/1", "https://a.test/2", "https://b.test/1")
    steps = [Step(StepKind.HTTP, Seq(at), f"GET {url}", "200") for at, url in enumerate(urls, 1)]
    first, second = list_steps(steps, Counts())
    assert first.split()[0] == "1-2"
    assert "b.test" in second


@pytest.mark.parametrize(
    ("usage", "at_least", "shown"),
    [
        (Usage(10, 5), False, "10+5"),
        (Usage(10, 5), True, "≥ 10+5"),
        (Usage(10), True, "≥ 10+?"),
        (None, True, "?"),
        (Usage(0, 0), True, "?"),
        (Usage(), True, "?"),
        (Usage(10, 5, 20, 30, cached_in_input=False), False, "60+5"),
        (Usage(10, 5, beside=(Usage(100, 50, model="advisor"),)), False, "110+55"),
        (None, False, ""),
    ],
)
def test_tokens_that_are_not_stated_are_not_none(
    usage: Usage | None, at_least: bool, shown: str
) -> None:
    """A call that may have used more says so; one that was refused has none."""
    step = Step(StepKind.MODEL_CALL, Seq(1), "m", lane=1, usage=usage, at_least=at_least)
    (line,) = list_steps([step], Counts())
    assert line.partition("(no answer)")[2].strip() == shown


def test_a_lane_does_not_say_that_it_used_nothing() -> None:
    """Of calls that state no tokens it is not known what they used."""
    lane = Lane(1, "", Seq(1), Seq(2), calls=2, at_least=1, input_tokens=10, output_tokens=5)
    blind = Lane(2, "", Seq(1), Seq(2), calls=2, at_least=2)
    refused = Lane(3, "", Seq(1), Seq(2), calls=2)
    told = [line.split(", ")[1] for line in list_lanes([lane, blind, refused])]
    assert told == ["≥ 10+5 tokens", "? tokens", "0+0 tokens"]


@pytest.mark.parametrize(
    ("total", "said"),
    [
        (Sum(1, usd=Decimal("0.41")), "$0.41"),
        (Sum(2, at_least=1, usd=Decimal("0.41")), "≥ $0.41"),
        (Sum(2, unpriced=1, usd=Decimal("0.41")), "≥ $0.41"),
        (Sum(1, at_least=1), "≥ $0.00"),
        (Sum(1, unpriced=1), "?"),
        (Sum(1, failed=1), "$0.00"),
        (Sum(1, usd=Decimal("0.0123")), "$0.0123"),
    ],
)
def test_money_that_is_not_known_is_not_said_to_be_nothing(total: Sum, said: str) -> None:
    """The end of a page, and the pages in a browser, say it as `playhead cost` does."""
    assert say_money(total) == said
