"""The rows of a run's listing: recordings from their exchanges, playbacks from their verdicts."""

from dataclasses import replace
from typing import Any

from ...store import RunInfo, Store
from ...tape.exchange import Exchange, Gone, VerdictKind
from ...tape.records.events import Event, EventKind
from ..reading.settle_repeated_effect import find_settled
from ..reading.substituted_answer import CHANGES, find_given, find_played, is_from_tape
from .effects import describe_close


def rows(store: Store, info: RunInfo) -> list[dict[str, Any]]:
    """Give one row an exchange, by seq; from events alone, so bodies are not read."""
    found: dict[int, dict[str, Any]] = {}
    for event in store.events.all(info):
        data = event.data
        if event.kind is EventKind.INTENT:
            went = "live" if info.mode == "playback" else "recorded"
            went = "sandboxed" if "sandbox_place" in data else went
            found[event.seq] = _row(data, went, "unknown")
        elif event.kind is EventKind.VERDICT:
            outcome = f"tape seq {data['tape_seq']}" if "tape_seq" in data else data["reason"]
            found[event.seq] = _row(data, data["verdict"], outcome)
        elif event.kind is EventKind.OUTCOME and event.seq in found and "status" in data:
            found[event.seq]["outcome"] = _outcome(data)
    return [found[seq] for seq in sorted(found)]


def find_shown(store: Store, info: RunInfo, seq: int) -> tuple[RunInfo, Exchange] | None:
    """Find the exchange that stands for a seq of a run, and whose it is: its own, or its tape's.

    Its fingerprint is the one under which a playback finds it. One of the tape has its own seq, and the verdict and time that the
    playback gave it: nothing was executed there. What the agent was given in the place of its answer is there instead.
    """
    if not 0 < seq < 1 << 63:
        return None
    own = find_settled(store, info, seq)
    if own is not None and not is_from_tape(info, own):
        return info, store.index.indexed(info, own)
    if info.parent is None:
        return None
    verdict, changes = None, list[Event]()
    for event in store.events.all(info):
        if event.seq != seq:
            continue
        if event.kind is EventKind.VERDICT and "tape_seq" in event.data:
            verdict = verdict or event
        elif event.kind in CHANGES:
            changes.append(event)
    if own is not None:
        return info, find_played(info, store.index.indexed(info, own), verdict, changes)
    tape = store.runs.find_tape(info)
    if verdict is None or tape is None:
        return None
    found = find_settled(store, tape, verdict.data["tape_seq"])
    if found is None:
        return None
    served = replace(
        store.index.indexed(tape, found),
        verdict=VerdictKind(verdict.data["verdict"]),
        reason=verdict.data["reason"],
        started_ns=verdict.at_ns,
    )
    return tape, find_given(served, f"{tape.id} seq {found.seq}", changes)


def _row(data: Any, verdict: str, outcome: str) -> dict[str, Any]:
    return {
        "seq": data["seq"],
        "class": data["request_class"],
        "verdict": verdict,
        "method": data["method"],
        "url": data["url"],
        "outcome": outcome,
    }


def _outcome(data: Any) -> str:
    parts = [str(data["status"])] if data["status"] else []
    if "conversation" in data:
        messages, size, code, by_client = data["conversation"]
        parts.append(f"{messages} messages of {size} bytes")
        parts.append(describe_close(code, by_client=by_client))
        return ", ".join(parts)
    if "fault" in data:
        kind, phase, _ = data["fault"]
        parts.append(f"{kind} in {phase}")
    if "gone_us" in data:
        parts.append(Gone(data["gone_us"], 0, head=False, aborted="aborted" in data).text)
    parts.append(f"{data['bytes_in']} bytes")
    return ", ".join(parts)
