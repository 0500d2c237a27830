"""The tapes of agents that the tests of steps read are in the forms that the dialects know."""

import pytest

from playhead.tape.dialects import read_request, read_response
from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import TAPES, Tape


@pytest.mark.parametrize("tape", [make() for make in TAPES], ids=lambda tape: tape.name)
def test_every_model_call_of_the_tapes_is_read(tape: Tape) -> None:
    """A dialect reads each model call, and each belongs to a lane or stands aside."""
    for exchange in tape.exchanges:
        if exchange.request_class is not RequestClass.INFERENCE:
            continue
        asked = read_request(exchange.request)
        assert asked is not None
        if exchange.response is not None:
            assert read_response(exchange.request, exchange.response) is not None
        placed = {seq for lane in tape.lanes for seq in lane} | set(tape.asides)
        assert exchange.seq in placed or asked.dialect == "openai-embeddings"
