"""The lines of a run's page."""

import pytest

from playhead.tape.exchange import Seq
from playhead.timeline.show.listing import Counts, list_steps
from playhead.timeline.steps.step import Step, StepKind


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
