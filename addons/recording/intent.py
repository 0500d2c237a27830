"""The intent of a request: logged before it is forwarded, and for an effect waited for."""

from ...config import Mode
from ...store import StoreUnwritable
from ...tape.exchange import Fingerprint, Request, RequestClass
from ...tape.records.events import Event, EventKind
from ..run.exchange_events import claims_row, intent_row
from ..run.pending_exchange import PendingExchange

HINT = "free space or make the store writable"
_UNBEGUN = "the run could not be begun"


async def log_durably(pending: PendingExchange) -> None:
    """Log the intent of an effect, and wait until it is durable.

    Raises: StoreUnwritable, where nothing may pass unrecorded.
    """
    open_run = pending.open_run
    try:
        await open_run.store.events.append_durably(open_run.number, lambda: _intent(pending))
    except StoreUnwritable as error:
        open_run.miss(error, effects=1)
        pending.progress.pass_unlogged()
    pending.progress.forward()


def log(pending: PendingExchange) -> None:
    """Log the intent of what changes nothing; nobody waits.

    Raises: StoreUnwritable, where nothing may pass unrecorded.
    """
    try:
        append(pending)
    except StoreUnwritable as error:
        pending.open_run.miss(error)
        pending.progress.pass_unlogged()
    pending.progress.forward()


def append(pending: PendingExchange) -> None:
    """Append an intent that nobody waits for.

    Raises: StoreUnwritable.
    """
    pending.open_run.store.events.append_made(pending.open_run.number, lambda: _intent(pending))


def pass_unbegun(pending: PendingExchange) -> None:
    """Count a request of a recording that could not be begun yet.

    Raises: StoreUnwritable, where a contract may refuse its answer: that is checked where it is written.
    """
    if pending.contract_state is not None and pending.contract_state.applicable.refuses_answers:
        raise StoreUnwritable(_UNBEGUN, HINT)
    effect = pending.request_class is RequestClass.EFFECT
    pending.open_run.gap.note(_UNBEGUN, exchanges=1, effects=int(effect))


def _intent(pending: PendingExchange) -> Event:
    """Make the intent event. Runs on the writer's thread."""
    # What is sent on as it comes has no body yet that could be compared.
    request = (pending.request if pending.body.bidirectional else None) or identify(pending)[0]
    data = intent_row(
        pending.seq,
        request,
        pending.request_class,
        pending.fingerprint or b"",
        repeat=pending.account.repeat,
    )
    claims = claims_row(pending.facts.claims, pending.open_run.redactor.redact_text)
    data["rule"] = pending.rule
    if pending.facts.by_body:
        data["by_body"] = True
    data |= claims
    if pending.open_run.mode is Mode.PLAYBACK or pending.held.approval is not None:
        data["reason"] = pending.reason
    if pending.open_run.policy.resume is not None:
        data["resumed"] = True
    if pending.lookup.unknown is not None:
        data["unknown_effect"] = pending.lookup.unknown.row
    if pending.lookup.asked_otherwise:
        data["asked_otherwise"] = True
    if pending.decision is not None and pending.decision.route is not None:
        data["sandbox_place"] = pending.decision.route.place
    pending.account.log(data)
    return Event(EventKind.INTENT, pending.arrival.started_ns, data)


def identify(pending: PendingExchange) -> tuple[Request, Fingerprint]:
    """Give what was asked with its fingerprint, and note what it repeats. Any thread."""
    request = pending.with_body()
    fingerprint, key = pending.fingerprint, pending.effect_key
    if fingerprint is None:
        fingerprint, key = pending.open_run.identifier.identify(request, pending.request_class)
        pending.identify(fingerprint, key)
    if pending.account.effect is None and key is not None:
        pending.note_repeat(request, key)
    return request, fingerprint
