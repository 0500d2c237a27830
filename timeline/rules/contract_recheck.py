"""Check a recorded run against the current contracts.

What is checked is what is stored: secrets are replaced, which a schema that looks at them may notice. Of what a
playback was served the tape's exchange is checked, and what Playhead itself answered is not.
"""

from collections.abc import Iterator

from ...config import Config
from ...store import RunInfo, Store
from ...tape.classify.by_body import class_now
from ...tape.contracts.applicable_contracts import MODELS, Contracts
from ...tape.contracts.check import check_request, check_response
from ...tape.contracts.check_model_output import check_answer
from ...tape.exchange import Exchange, Seq, VerdictKind
from ...tape.policy.decide import Facts
from ...tape.records.events import EventKind
from ..reading.contract_row import ContractRow

_MADE = frozenset(
    {
        *(VerdictKind.REFUSED, VerdictKind.STUBBED, VerdictKind.HYPOTHETICAL),
        VerdictKind.DISCARDED,
    }
)


def recheck_contracts(store: Store, run: RunInfo, config: Config) -> Iterator[ContractRow]:
    """Check each exchange of a run under the contracts of a configuration, by seq.

    Raises: LogCorrupt.
    """
    contracts = Contracts.of(config)
    if contracts is None:
        return
    for seq, exchange in _exchanges(store, run):
        yield from _check(seq, exchange, contracts, config)


def _exchanges(store: Store, run: RunInfo) -> Iterator[tuple[Seq, Exchange]]:
    """Give the exchanges of a run, and of its tape what it was served, by seq of the run."""
    tape = store.runs.find_tape(run)
    served = {
        event.seq: Seq(event.data["tape_seq"])
        for event in store.events.all(run)
        if event.kind is EventKind.VERDICT and "tape_seq" in event.data
    }
    own = dict.fromkeys(store.exchanges.seqs(run))
    for seq in sorted({*own, *served}):
        if seq in own:
            found = store.exchanges.find(run, seq)
        else:
            found = store.exchanges.find(tape, served[seq]) if tape is not None else None
        if found is not None:
            yield seq, found


def _check(
    seq: Seq, exchange: Exchange, contracts: Contracts, config: Config
) -> Iterator[ContractRow]:
    request, response = exchange.request, exchange.response
    facts, _ = Facts.of_request(request, config.classes)
    applicable = contracts.find(facts._replace(request_class=class_now(request, config.classes)))
    if applicable is None:
        return
    found = []
    if applicable.request is not None:
        checked = check_request(applicable.request.request, request, request)
        found.append(("request", applicable.request.match.text, checked))
    if response is not None and exchange.verdict not in _MADE and exchange.fault is None:
        if applicable.response is not None:
            checked = check_response(applicable.response.response, response, response)
            found.append(("response", applicable.response.match.text, checked))
        if applicable.model is not None:
            found.append(("model", MODELS, check_answer(request, response, response)))
    for of, rule, checked in found:
        if checked.violations or checked.unchecked:
            yield ContractRow.of_check(seq, of, rule, checked)
