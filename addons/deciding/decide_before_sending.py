"""Decide on what is about to leave: it is compared with others first where a gate or a limit counts repeats, or processes share a run."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from ...config import Mode
from ...tape.exchange import Fingerprint, Request
from ...tape.policy.decide import Found
from ..run.pending_exchange import HELD_BYTES, PendingExchange
from ..run.request_constraints import asks_for_repeats, decide_leaving, find_forms
from ..run.usage_meter import UsageMeter
from ..wire.convert_http_messages import announced_length
from .given_to_another_process import asks_for_given, find_given, find_given_to_another, note_given

LARGE_BYTES = 64 * 1024
"""Bodies above this are brought into canonical form on a thread."""


def let_out(pending: PendingExchange, found: Found | None = None) -> None:
    """Decide on a request that leaves unless a gate or a limit is in its way.

    found: what the tape has, where that matters.
    """
    pending.decide(decide_leaving(pending, pending.open_run.policy, found))


def let_out_compared(pending: PendingExchange) -> Awaitable[None] | None:
    """Do so while recording, once what is compared with others is known."""
    meter = find_repeats_meter(pending)
    gated = pending.open_run.policy.find_gate(pending.facts) is not None
    compared = gated or meter is not None or asks_for_given(pending)
    if pending.open_run.mode is Mode.RECORD and compared:
        if len(pending.body.came) > LARGE_BYTES:
            return _let_out_off_loop(pending, meter)
        _identify_for_comparison(pending, meter)
        return _let_out_unless_given(pending)
    let_out(pending)
    return None


async def _let_out_off_loop(pending: PendingExchange, meter: UsageMeter | None) -> None:
    await asyncio.to_thread(_identify_for_comparison, pending, meter)
    waiting = _let_out_unless_given(pending)
    if waiting is not None:
        await waiting


def _let_out_unless_given(pending: PendingExchange) -> Awaitable[None] | None:
    """Let out what the run was not given before; else that is compared with who asks now."""
    if find_given(pending) is not None:
        return _let_out_compared_with_given(pending)
    note_given(pending)
    let_out(pending)
    return None


async def _let_out_compared_with_given(pending: PendingExchange) -> None:
    """Let out what this process was given before; another may have been started again, and is held."""
    given = await find_given_to_another(pending)
    pending.find(replace(pending.lookup, given=given))
    let_out(pending)


def let_out_live(
    pending: PendingExchange,
    request: Request,
    fingerprint: Fingerprint,
    found: Found | None = None,
) -> Awaitable[None] | None:
    """Do so in a playback, by a live rule or by what a branch declares.

    found: what the tape has, which matters in a branch.
    """
    meter = find_repeats_meter(pending)
    if meter is not None or _find_reserving_meter(pending) is not None:
        return _let_out_counted(pending, meter, request, fingerprint, found)
    let_out(pending, found)
    return None


async def _let_out_counted(
    pending: PendingExchange,
    meter: UsageMeter | None,
    request: Request,
    fingerprint: Fingerprint,
    found: Found | None,
) -> None:
    if meter is not None:
        meter.note_forms(
            pending, await asyncio.to_thread(find_forms, pending, request, fingerprint)
        )
    reserving = _find_reserving_meter(pending)
    if reserving is not None:
        await asyncio.to_thread(reserving.estimate, pending, request)
    let_out(pending, found)


def _find_reserving_meter(pending: PendingExchange) -> UsageMeter | None:
    """Find what reserves the cost of a model call; None where that is nothing."""
    meter = pending.open_run.usage_meter
    return meter if meter is not None and meter.reserves and meter.asks_model(pending) else None


def find_repeats_meter(pending: PendingExchange) -> UsageMeter | None:
    """Find what counts how often a request comes in a row; None where no limit asks for that."""
    meter = pending.open_run.usage_meter
    return meter if meter is not None and meter.asks_for_repeats(pending) else None


def _identify_for_comparison(pending: PendingExchange, meter: UsageMeter | None) -> None:
    """Make what a gate or a limit needs: the request as it is shown to people, and its keys. Any thread."""
    request = pending.with_body()
    if meter is not None or asks_for_repeats(pending) or asks_for_given(pending):
        found = pending.open_run.identifier.identify(request, pending.request_class)
        pending.identify(*found)
        if meter is not None:
            meter.note_forms(pending, find_forms(pending, request, found[0]))


def has_no_room(pending: PendingExchange) -> bool:
    """Say whether a request is too large to be held, cannot be kept, and may pass all the same."""
    open_run = pending.open_run
    if open_run.mode is not Mode.RECORD or not open_run.passes:
        return False
    full = open_run.store.writer.failed is not None
    return full and announced_length(pending.arrival.fields) > HELD_BYTES
