"""What an agent was given in a playback in which the answer of the tape was not given to it as it is.

A fault on purpose takes the place of the answer, or cuts it; a contract withholds it. Whoever asks why the agent went on as it did has to
see what it got; what the tape has is named beside it, as not given. And what was never sent is not shown as if it had been.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...config import Inject
from ...store import RunInfo
from ...tape.exchange import Exchange, RedactedText, VerdictKind
from ...tape.faults.kinds import KINDS
from ...tape.faults.none import give_nothing
from ...tape.records.events import Event, EventKind

CHANGES = (EventKind.INJECTED, EventKind.CONTRACT)
"""Events that may say that an answer was not given as it is on the tape."""
NEVER_SENT = "never sent"
"""Mark of what `explore` kept: it says what an agent would be answered."""
FROM_TAPE = "from the tape, not sent"
"""Mark of what a run that goes on with a crashed one was served of it."""


def find_given(found: Exchange, tape: str, changes: Sequence[Event]) -> Exchange:
    """Give the exchange as the agent saw it.

    found: what the tape has, with the seq and the verdict of the playback.
    tape: name of the tape, and the seq there.
    changes: events of the exchange whose kind is in `CHANGES`.
    """
    for event in changes:
        if event.kind is EventKind.INJECTED:  # then no contract withholds it
            return _inject(found, tape, event.data)
    for event in changes:
        if event.data["refused"] and not found.withheld:
            text = f"the answer of {tape} violates its contract, rule {event.data['rule']}"
            found = replace(found, withheld=RedactedText(text))
    return found


def find_played(
    info: RunInfo, own: Exchange, verdict: Event | None, changes: Sequence[Event] = ()
) -> Exchange:
    """Give an exchange of a run's own as the agent saw it, with the time at which it was in that run.

    verdict: on its request, where the tape answered it: a run that goes on with a crashed one keeps a copy, which has the time of that one.
    changes: events of the exchange whose kind is in `CHANGES`.
    """
    if verdict is None or "tape_seq" not in verdict.data or not is_from_tape(info, own):
        return own
    played = replace(own, started_ns=verdict.at_ns)
    return find_given(played, f"{info.parent} seq {verdict.data['tape_seq']}", changes)


def is_from_tape(info: RunInfo, own: Exchange) -> bool:
    """Say whether an exchange of a run's own is a copy of what the crashed run had, so that nothing was sent."""
    return info.has_resumed and own.verdict is VerdictKind.SERVED


def tell_unsent(info: RunInfo, own: Exchange) -> str:
    """Say of an exchange that looks like one that was sent that it was not; empty where it was."""
    if info.is_explored:
        return NEVER_SENT
    return FROM_TAPE if is_from_tape(info, own) else ""


def _inject(found: Exchange, tape: str, data: Mapping[str, Any]) -> Exchange:
    inject, name = Inject(data["inject"]), f"injected: {data['rule']}"
    kind = KINDS[inject]
    has = str(found.response.status) if found.response is not None else "no answer"
    given = kind.give(found, data, name, tape)
    warning = f"{name} ({inject.value})"
    if given is None:
        given = give_nothing(found)
        warning += f"; not known: what was given of {has}, the answer of {tape}"
    elif kind.replaces:
        warning += f"; not given: {has}, the answer of {tape}"
    return replace(given, warnings=(warning, *found.warnings))
