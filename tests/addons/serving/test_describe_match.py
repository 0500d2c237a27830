"""What the log says of a recorded exchange that is served."""

import pytest

from playhead.addons.serving.describe_match import is_kept_waiting
from playhead.tape.canonical.json_rpc_client_ids import STDIO_HOST
from playhead.tape.exchange import Gone
from playhead.tests.support.exchanges import make_exchange

_LEFT = Gone(900, 0, head=True)


@pytest.mark.parametrize(
    ("what", "gone", "waits"),
    [
        ("GET https://api.test/events", _LEFT, True),
        ("GET https://api.test/events", None, False),
        (f"POST http://{STDIO_HOST}/server.py", _LEFT, True),
        (f"GET http://{STDIO_HOST}/server.py", _LEFT, False),
    ],
    ids=["gave up", "had it whole", "a call over a pipe", "listening over a pipe"],
)
def test_a_client_that_gave_up_is_kept_waiting(what: str, gone: Gone | None, waits: bool) -> None:
    """The receipt warns of it; not of what Playhead itself asks for."""
    assert is_kept_waiting(make_exchange(what=what, gone=gone)) is waits
