"""The constraints on one request: limits, contract state, and repeats of an effect.

An effect is noted as soon as it is decided on, before it is sent, so that two at the same time see each other. One
that is known not to have happened is repeated by nobody: it was never sent, or its server refused it.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from ...config.targets.path_interpretations import normal_path, without_trailing
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Exchange, Fingerprint, RawRequest, Request, RequestClass
from ...tape.matching.idempotency_keys import find_key
from ...tape.policy.alike_effects import find_alike_keys, find_form_keys
from ...tape.policy.approval_decision import is_undone
from ...tape.policy.decide import (
    LIMITS,
    UNCONSTRAINED,
    Action,
    Constraints,
    Decision,
    Found,
    Policy,
    decide,
)
from ...tape.policy.limits import Forms
from ...tape.policy.resume import UnknownEffect
from ...tape.shell_words import shell_word
from ..wire.convert_http_messages import read_request
from .exchange_events import hash_key, idempotency_key
from .pending_exchange import PendingExchange
from .playback_state import PlaybackState
from .repeated_effects import Effect


def asks_for_repeats(pending: PendingExchange) -> bool:
    """Say whether a gate has to know what a request repeats."""
    effect = pending.request_class is RequestClass.EFFECT
    return effect and pending.open_run.policy.find_gate(pending.facts) is not None


def find_forms(pending: PendingExchange, request: Request, found: Fingerprint) -> Forms:
    """Give all that a request can be taken for, by which a limit on repeats counts it. May run on any thread."""
    rest = pending.open_run.identifier.head_and_body_key(request, pending.request_class)
    path, mark, query = request.target.partition("?")
    normal = without_trailing(normal_path(path))
    own = {bytes(found)}
    if normal != path:
        spelled = replace(request, target=f"{normal}{mark}{query}")
        own.add(bytes(pending.open_run.identifier.fingerprint(spelled, pending.request_class)))
    return frozenset(own) | find_form_keys(rest, pending.facts.ways)


_MOST_SHOWN = 400
"""Characters of what is said of an effect without an outcome."""
_LEAVING = frozenset({Action.FORWARD, Action.LIVE, Action.HOLD})


def decide_on(
    pending: PendingExchange, policy: Policy, found: Found | None, now: Constraints = UNCONSTRAINED
) -> Decision:
    """Decide on a request; what the reason quotes of it is without its secrets."""
    open_run = pending.open_run
    if pending.lookup.given is not None:
        now = replace(now, given=_describe_given(pending))
    if open_run.playback is not None and policy.leaves_tape:
        now = _add_departure(pending, open_run.playback, now)
    decision = decide(pending.facts, open_run.mode, policy, found, now)
    if pending.facts.ways.plain:
        return decision
    return replace(decision, reason=open_run.redactor.redact_text(decision.reason))


def _add_departure(
    pending: PendingExchange, playback: PlaybackState, now: Constraints
) -> Constraints:
    """Add how far a playback has come that leaves its tape."""
    unknown, text = pending.lookup.unknown, ""
    if unknown is not None:
        asked = read_request(pending.flow, pending.arrival.fields)
        keys = find_key_forms(asked, pending.open_run.redactor.stands_for)
        text = describe_unknown(unknown, pending.request, keys)
    return replace(
        now,
        awaited=playback.find_awaited(is_unknown=unknown is not None),
        diverged=playback.resumption.diverged,
        unknown=text,
        retried=_describe_retried(pending),
    )


def _describe_retried(pending: PendingExchange) -> str:
    """Say that a resumed run's tape has the same effect, and that nobody saw it answered but by an error; empty where that is not so."""
    open_run, asked = pending.open_run, pending.asked
    if open_run.policy.resume is None or asked is None or asked.effect_key is None:
        return ""
    key = idempotency_key(asked.request)
    seq = open_run.effects.find_unseen(asked.effect_key, key)
    if seq is None:
        return ""
    how = "no idempotency key" if key is None else "another idempotency key"
    return f"a retry of exchange {seq}, which failed or was not seen answered, and may have happened; it carries {how}"


def _describe_given(pending: PendingExchange) -> str:
    """Say that another process of the run asked for the same before; empty where none did."""
    given, info = pending.lookup.given, pending.open_run.info
    if given is None or info is None:
        return ""
    return (
        f"asked for as seq {given} of {info.id} before, by another process: it may have been started again, and do all of it"
        f" once more; a new run begins once this one is ended with: playhead seal {shell_word(info.id)}"
    )


def find_key_forms(asked: RawRequest, stands_for: Callable[[bytes], bytes]) -> frozenset[bytes]:
    """Give what logs have of the idempotency key of a request that is sent: with a rule of `redact` that names it, and without.

    Such a rule may have come or gone since the crash.
    stands_for: gives the placeholder of a value.
    """
    shown = (find_key(asked), find_key(asked, stands_for))
    return frozenset(hash_key(key) for key in shown if key is not None)


def describe_unknown(
    unknown: UnknownEffect, request: Request | None, forms: Collection[bytes] = ()
) -> str:
    """Say that nobody knows whether an effect has happened, and with which idempotency key it is asked for now.

    request: as it is shown, without its secrets.
    forms: other forms of its key, as logs have them.
    """
    key = None if request is None else find_key(request)
    attempts = (*unknown.earlier, unknown)
    places = [f"{one.run} sent it as seq {one.seq}" for one in attempts]
    which = "any of them" if unknown.earlier else "it"
    sent = f"{', '.join(places)}, and {which} may have happened"
    if request is None or key is None:
        lost = ", but sent with one then" if any(one.key is not None for one in attempts) else ""
        return f"an effect without an outcome, with no idempotency key{lost}: {sent}"
    shown = ", ".join(key.decode("utf-8", "backslashreplace").split("\n"))
    if any(one.key is None for one in attempts):
        compared = "with an idempotency key, but sent without one then"
    else:
        now = {idempotency_key(request), *forms}
        same = all(one.key in now for one in attempts)
        one_of = "each idempotency key" if unknown.earlier else "the idempotency key"
        compared = f"{'' if same else 'NOT '}with {one_of} it was sent with"
    # What decides comes first: names of runs, URLs and keys may be long, and lists cut what is long.
    return one_line(f"an effect without an outcome, {compared}: {sent}; {shown}", _MOST_SHOWN)


def note_served_effect(pending: PendingExchange, recorded: Exchange) -> None:
    """Have a gate on duplicates know of an effect that the crashed run has sent."""
    asked = pending.asked
    if asked is None or asked.effect_key is None or not asks_for_repeats(pending):
        return
    gated = pending.account.note_gated(Effect(pending.seq, idempotency_key(asked.request)))
    status = recorded.response.status if recorded.response is not None else 0
    phase = recorded.fault.phase if recorded.fault is not None else None
    gated.undone = is_undone(status, phase)
    pending.open_run.effects.gated.note(
        find_alike_keys(asked.effect_key, pending.facts.ways), gated
    )


def decide_leaving(pending: PendingExchange, policy: Policy, found: Found | None) -> Decision:
    """Decide on a request that leaves unless a gate or a limit is in its way; count it where it may. Once a request."""
    open_run = pending.open_run
    usage_meter = open_run.usage_meter
    if usage_meter is None:
        return decide_on(pending, policy, found, _find_constraints(pending))
    spent = usage_meter.find_spent(pending)
    now = _find_constraints(pending) if spent is None else Constraints(spent=spent.text)
    decision = decide_on(pending, policy, found, now)
    if decision.action in _LEAVING:
        usage_meter.count(pending)
    elif decision.rule == LIMITS and spent is not None:
        open_run.counters.limited[spent.limit] += 1
        usage_meter.report(pending, spent)
    return decision


def add_violation(pending: PendingExchange, now: Constraints) -> Constraints:
    """Add how a request breaks a contract that says refuse, if it does."""
    contract_state = pending.contract_state
    if (
        contract_state is None
        or contract_state.applicable.request is None
        or not contract_state.violation
    ):
        return now
    return replace(
        now,
        violation=contract_state.violation,
        contract=contract_state.applicable.request.match.text,
    )


def _find_constraints(pending: PendingExchange) -> Constraints:
    """Give what a contract or a gate has to know; notes the effect where a gate asks for that, and it may leave."""
    now = add_violation(pending, UNCONSTRAINED)
    if now.violation:
        return now
    asked = pending.asked
    if asked is None or asked.effect_key is None or not asks_for_repeats(pending):
        return UNCONSTRAINED
    gated = pending.account.note_gated(Effect(pending.seq, idempotency_key(asked.request)))
    keys = find_alike_keys(asked.effect_key, pending.facts.ways)
    return Constraints(repeat=pending.open_run.effects.gated.note(keys, gated))


def settle_gated(pending: PendingExchange, status: int) -> None:
    """Note whether an effect can have happened, now that its outcome is known.

    status: of the answer, or 0.
    """
    if pending.account.gated is None:
        return
    phase = pending.progress.fault.phase if pending.progress.fault is not None else None
    pending.account.gated.undone = is_undone(status, phase)
