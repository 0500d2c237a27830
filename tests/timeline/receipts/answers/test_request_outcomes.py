"""What became of the requests of a run, as its receipt says it."""

import pytest

from playhead.tape.exchange import Fault, FaultKind, Phase, RedactedText
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, make_intent, make_outcome
from playhead.timeline.receipts.answers.request_outcomes import Requests
from playhead.timeline.receipts.warnings_and_hints import Advice


@pytest.mark.parametrize(("kind", "is_advised"), [(FaultKind.REFUSED, True), (FaultKind.RESET, False)])  # fmt: skip
def test_what_failed_below_http_names_its_host(kind: FaultKind, *, is_advised: bool) -> None:
    """An agent hears only that its connection was reset."""
    fault = Fault(kind, Phase.CONNECT, RedactedText("[Errno 111] Connection refused"), 5)
    failed = make_exchange(1, request=make_request("https://api.test:9187/v1", {}), response=None, fault=fault)  # fmt: skip
    requests, advice = Requests(), Advice()
    for event in (make_intent(failed), make_outcome(failed)):
        requests.take(event, advice, playing=False)
    (line,) = [one for one in requests.lines() if one.lstrip().startswith("seq 1")]
    assert f"{kind.value} in connect to api.test:9187: [Errno 111]" in line
    assert ("is the address right, and its server up?" in line) is is_advised
