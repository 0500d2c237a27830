"""Bills that were planted by somebody who has not read the code: some each day, 1,000 requests under PLAYHEAD_FULL=1."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from playhead.tape.exchange import (
    Exchange,
    Fault,
    FaultKind,
    Phase,
    RedactedText,
    VerdictKind,
)
from playhead.tests.adversary.planted.cost import cost, dollars
from playhead.tests.support.counts import FULL
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.cost.ledger import Entry, read_ledger
from playhead.timeline.reading.request_fate import Fate

CASES = cost(50 if FULL else 4)


def ended(exchange: Exchange, planted: dict[str, Any]) -> Exchange:
    """Give an exchange the end that it has: refused, or cut inside its answer."""
    if planted.get("refused"):
        return replace(exchange, verdict=VerdictKind.REFUSED, response=None)
    if planted.get("cut") and exchange.response is not None:
        fault = Fault(FaultKind.CUT, Phase.BODY, RedactedText("cut"), exchange.end_us)
        return replace(exchange, fault=fault, response=replace(exchange.response, complete=False))
    return exchange


def entries(case: dict[str, Any], *, lanes: bool = True) -> list[Entry]:
    """Read the ledger of a planted run."""
    made = make_exchanges(case["run"])
    exchanges = [ended(one, planted) for one, planted in zip(made, case["run"], strict=True)]
    return list(read_ledger(InMemory(exchanges), lanes=lanes))


@pytest.mark.parametrize("case", CASES, ids=[one["id"] for one in CASES])
@pytest.mark.parametrize("lanes", [True, False], ids=["with lanes", "without"])
def test_each_request_is_billed_once_as_planted(case: dict[str, Any], lanes: bool) -> None:
    """Each request has its model, its tokens, its money to the cent, and whether it was sent at all."""
    found = entries(case, lanes=lanes)
    assert [one.seq for one in found] == [one["seq"] for one in case["truth"]["requests"]]
    pytest.importorskip("genai_prices")
    for one, truth in zip(found, case["truth"]["requests"], strict=True):
        tokens = one.tokens
        assert (one.seq, one.model or None) == (truth["seq"], truth["model"])
        assert (one.fate is Fate.SENT) == truth["sent"]
        assert (tokens.input, tokens.read, tokens.written) == (
            *(truth["input"], truth["read"], truth["written"]),
        )
        assert (tokens.output, tokens.thought) == (truth["output"], truth["reasoning"])
        assert one.at_least == truth["at_least"]
        assert one.usd == dollars(truth)


@pytest.mark.parametrize("case", CASES, ids=[one["id"] for one in CASES])
def test_sums_are_those_that_were_planted(case: dict[str, Any]) -> None:
    """By model the sums are those of what was sent, and an unknown price is no zero."""
    found = entries(case, lanes=False)
    assert sum(one.fate is Fate.SENT for one in found) == case["truth"]["sent"]
    models: dict[str, Counter[str]] = {}
    for one in found:
        if one.is_call and one.fate is Fate.SENT:
            models.setdefault(one.model, Counter()).update(
                input=one.tokens.input, output=one.tokens.output, requests=1
            )
    truth = case["truth"]["models"]
    assert models == {
        name: {key: one[key] for key in ("input", "output", "requests")}
        for name, one in truth.items()
    }
    unknown = [one for one in found if one.model == "acme-reasoner-9" and one.tokens.input]
    assert all(one.usd is None for one in unknown)
    assert sum((one.usd or Decimal(0) for one in found), Decimal(0)) >= 0
