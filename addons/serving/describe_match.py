"""What the log says of a recorded exchange that is served: how it matched, and how it is another than what was asked."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ...tape.canonical.canonical_request import same_bytes
from ...tape.canonical.json_rpc_client_ids import STDIO_HOST
from ...tape.diff.decisive_ignored_places import Moments, may_decide
from ...tape.diff.divergence_types import (
    ABSENT,
    SERVED_ALL_THE_SAME,
    Difference,
    Divergence,
    DivergenceKind,
)
from ...tape.diff.request_differences import differences
from ...tape.exchange import Exchange, RawAnswer, Request, RequestClass, Seq
from ...tape.matching.header_agreement import Drift
from ...tape.matching.idempotency_keys import KEY_ADDED, KEY_LOST, find_keys
from ...tape.matching.profile_use import ProfileUse, find_profile_use, have_other_conditions
from ...tape.playback.compare_delivery import is_terminal
from ...tape.policy.decide import Decision
from ..run.pending_exchange import PendingExchange, note_divergence
from ..run.playback_state import PlaybackState

_MOST_IGNORED = 100
"""Ignored differences of a request that are looked at."""
_TAIL_BYTES = 4096
"""Where the last event of a stream is looked for."""


def describe_match(
    pending: PendingExchange,
    playback: PlaybackState,
    decision: Decision,
    request: Request,
    exchange: Exchange,
) -> dict[str, Any]:
    """Say in what way a request is the recorded one."""
    more: dict[str, Any] = {"match": "repeated" if decision.repeated else "canonical"}
    if not decision.repeated and _is_exact(playback, request, exchange):
        more["match"] = "exact"
    elif not decision.repeated and (found := _find_profile(pending, request, exchange)):
        more["match"], more["profile"] = found
    if decision.allowed:
        more |= {"match": "drifted", "allowed": [str(one) for one in decision.allowed]}
    if pending.lookup.reordered_results:
        more["reordered_results"] = True
    return more


def _is_exact(playback: PlaybackState, request: Request, exchange: Exchange) -> bool:
    recorded = exchange.request
    # A tunnel that failed fails in the place of this request, and has no bytes of its own.
    return recorded.method == "CONNECT" or (
        same_bytes(recorded, request)
        and recorded.http_version == request.http_version
        and playback.agreement.has_same_secrets(request, exchange)
    )


def notes(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    recorded: Exchange,
    raw: RawAnswer | None = None,
) -> dict[str, Any]:
    """Give what the log says of a recorded exchange that is served: a key that drifted, a client that gave up.

    raw: its answer as it came, where that is what is given.
    """
    found: dict[str, Any] = {}
    drifts: list[Drift] = []
    if pending.request_class is RequestClass.EFFECT:
        asked, had = find_keys(request), find_keys(recorded.request)
        differs = playback.agreement.keys.compare(pending.seq, asked, recorded.seq, had)
        if differs:
            now = (
                ABSENT
                if differs == KEY_LOST
                else "(present)"
                if differs == KEY_ADDED
                else "(another)"
            )
            then = ABSENT if differs == KEY_ADDED else "(present)"
            drifts.append(Drift(differs, Difference("header idempotency-key", then, now)))
    if pending.request_class is not RequestClass.TELEMETRY and recorded.request.method != "CONNECT":
        noted = playback.agreement.note(request, recorded, partial(_alike, pending, playback))
        if noted.headers:
            found["headers"] = list(noted.headers)
        if noted.merged:
            found["merged"] = list(noted.merged)
        if noted.kind_alone:
            found["kind_alone"] = True
        drifts += noted.drifts
    if recorded.has_replaced_answer:
        found["replaced" if raw is None else "as_recorded"] = True
        if raw is None and recorded.has_unloadable_key:
            found["unloadable_key"] = True
        if raw is None and recorded.has_other_digest:
            found["other_digest"] = True
    if _rests_on_ignored(playback, pending, request, recorded):
        found["ignored_content"] = True
    if drifts:
        text = "; ".join(one.what for one in drifts)
        found["drifted"] = text
        drifted = Divergence(
            DivergenceKind.DRIFTED,
            pending.seq,
            request.method,
            request.url,
            recorded.seq,
            tuple(one.difference for one in drifts),
            SERVED_ALL_THE_SAME.format(text),
        )
        note_divergence(pending, drifted)
    if request.http_version != recorded.request.http_version:
        found["protocols"] = [recorded.request.http_version, request.http_version]
    # Said in the receipt: a client that gave up is kept waiting, whatever the pace.
    if is_kept_waiting(recorded) and pending.held.injection is None:
        found["waits"] = True
    return found


def _rests_on_ignored(
    playback: PlaybackState, pending: PendingExchange, request: Request, recorded: Exchange
) -> bool:
    """Say whether a request differs from the tape where only a rule or profile of the configuration has that ignored, and it may decide."""
    rules, kind = playback.identifier.rules, recorded.request_class
    if not playback.has_own_rules or kind is RequestClass.TELEMETRY:
        return False
    if rules.of(request, kind).masks == playback.shipped_rules.of(request, kind).masks:
        return False
    if kind is RequestClass.EFFECT and playback.agreement.have_other_masked(
        request, recorded, playback.shipped_rules
    ):
        return True
    secret = playback.identifier.redacted_query
    hidden = secret(request) | secret(recorded.request)
    found = differences(
        recorded.request, request, playback.shipped_rules, kind, hidden, _MOST_IGNORED
    )
    # Behind so many that are looked at may be any.
    moments = Moments(recorded.started_ns / 1e9, pending.arrival.started_ns / 1e9)
    return len(found) >= _MOST_IGNORED or any(may_decide(one, kind, moments) for one in found)


def _find_profile(
    pending: PendingExchange, request: Request, recorded: Exchange
) -> tuple[str, list[Any]] | None:
    """Say by what of its client's profile a request is the recorded one; None where it is so without."""
    rules, kind = pending.open_run.identifier.rules, pending.request_class
    profile = rules.profiles.find(request)
    if profile is None:
        return None
    use = find_profile_use(recorded.request, request, rules, kind)
    if use is not None:
        return "profile", use.to_row()
    unconditional = rules.of(request, kind).masks.unconditional
    if unconditional and have_other_conditions(recorded.request, request):
        return "unconditional", ProfileUse(profile.name, profile.version, ()).to_row()
    return None


def _alike(pending: PendingExchange, playback: PlaybackState) -> Iterator[Seq]:
    """Give the recorded requests that are the same in all that counts."""
    return iter(()) if pending.fingerprint is None else playback.cursor.uses(pending.fingerprint)


def is_kept_waiting(exchange: Exchange) -> bool:
    """Say whether its client left before it had been sent all; SDKs close a stream after its last event.

    Over a pipe it is Playhead itself that listens to a server while nothing is asked, and leaves when the pipe ends.
    """
    gone, response, request = exchange.gone, exchange.response, exchange.request
    if gone is None or (request.host == STDIO_HOST and request.method == "GET"):
        return False
    if response is None or not gone.head:
        return True
    return len(response.chunks) > gone.chunks or not is_terminal(response.body[-_TAIL_BYTES:])
