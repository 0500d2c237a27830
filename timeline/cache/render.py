"""What became of the prompt cache, as text in 80 columns and as JSON types."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from ...tape.counted import counted
from ...tape.diff.request_differences import common_prefix
from ...tape.policy.limits import NANO
from ..show.fit import fit
from ..show.listing import WIDTH
from .judge_model_call import FIRST_OF_LANE, CacheCall, Verdict

_MISSES = (Verdict.BROKE, Verdict.LIFETIME, Verdict.PROVIDER)
_BEFORE = 20
"""Characters that are shown before what is another one."""
_PAD = " " * 11
_LINES = 4
_NOWHERE = {
    "model": "the model",
    "images": "the images",
    "cache_control": "the request has no mark",
}
"""Of what moved and is at no place of the request: how that is said."""
_WORDS = {Verdict.PROVIDER: "provider's doing"}


def render_misses(calls: list[CacheCall], run: str) -> Iterator[str]:
    """Give the lines of a report: a line a call, hits one after the other in one, and each miss with its cause."""
    yield fit(f"prompt cache of run {run}", WIDTH)
    yield "    SEQ L  VERDICT" + "READ   WRITTEN    PROMPT".rjust(WIDTH - 18)
    group: list[CacheCall] = []
    for call in calls:
        if group and _key(call) != _key(group[0]):
            yield from _render_group(group)
            group = []
        group.append(call)
    yield from _render_group(group)
    yield ""
    yield from _render_sum(calls)


def _key(call: CacheCall) -> tuple[object, ...]:
    """Say what calls that are one line have in common."""
    alone = call.sent.call.seq if call.verdict in _MISSES else 0
    reason = call.reason if call.verdict is Verdict.UNKNOWN else ""
    return call.verdict, call.sent.lane, reason, alone


def _render_group(group: list[CacheCall]) -> Iterator[str]:
    if len(group) < 3:
        for call in group:
            yield _line(call)
            yield from _render_cause(call)
        return
    first, last = group[0], group[-1]
    seqs = f"{first.sent.call.seq}-{last.sent.call.seq}"
    read = [one.sent.read for one in group if one.sent.read is not None]
    written, whole = (
        sum(values)
        for values in zip(*((one.sent.written, one.sent.whole) for one in group), strict=True)
    )
    told = f"{first.verdict.value}, {len(group)} times"
    yield _row(seqs, first.sent.lane, told, sum(read) if read else None, written, whole)
    if first.verdict is not Verdict.HIT:
        yield f"{_PAD}{fit(first.reason, WIDTH - len(_PAD))}"


def _line(call: CacheCall) -> str:
    sent = call.sent
    seq = f"{sent.call.seq}.{sent.call.part}" if sent.call.part else str(sent.call.seq)
    word = _WORDS.get(call.verdict, call.verdict.value)
    sign = "! " if call.verdict in _MISSES else ""
    evidence = f" ({call.evidence.value})" if call.verdict in _MISSES and call.evidence else ""
    return _row(seq, sent.lane, f"{sign}{word}{evidence}", sent.read, sent.written, sent.whole)


def _row(seq: str, lane: int, text: str, read: int | None, written: int, whole: int) -> str:
    counts = f"{'?' if read is None else f'{read:,}':>9} {written:>9,} {f'{whole:,}' if whole else '?':>9}"
    left = f"{seq:>7} {lane:<2} "
    return f"{left}{fit(text, WIDTH - len(left) - len(counts) - 1):<{WIDTH - len(left) - len(counts) - 1}} {counts}"


def _render_cause(call: CacheCall) -> Iterator[str]:
    if call.verdict is Verdict.HIT or call.reason == FIRST_OF_LANE:
        return
    moved = call.moved if call.verdict is Verdict.BROKE else None
    # A verdict's reason is told whole: its end says what else there is.
    for line in wrap(call.reason, WIDTH - 11)[:_LINES]:
        yield f"{_PAD}{fit(line, WIDTH - 11)}"
    if moved is not None and call.before is not None:
        yield f"{_PAD}{fit(_where(call), WIDTH - 11)}"
        if moved.part != "cache_control":
            at = common_prefix(moved.was, moved.now)
            since = call.was_since or call.before.call.seq
            yield f"{_PAD}{fit(f'was, since {since}: {_from(moved.was, at)}', WIDTH - 11)}"
            yield f"{_PAD}{fit(f'now, since {call.sent.call.seq}: {_from(moved.now, at)}', WIDTH - 11)}"
    if call.missed:
        cost = f", {show_cost(call.cost_nano_usd)} more" if call.cost_nano_usd is not None else ""
        told = f"{call.missed:,} of {call.expected:,} tokens not read{cost}"
        yield f"{_PAD}{fit(told, WIDTH - 11)}"


def _from(text: str, at: int) -> str:
    """Give a text from a little before the first character that is another one."""
    begin = max(0, at - _BEFORE)
    return f"…{text[begin : begin + 2 * WIDTH]}" if begin else text[: 2 * WIDTH] or "(nothing)"


def _where(call: CacheCall) -> str:
    """Name what moved: which message, tool or line, and how much of the prompt came before it."""
    moved = call.moved
    assert moved is not None
    place = moved.path or _NOWHERE.get(moved.part, moved.part)
    if moved.part == "cache_control":
        place = f"{place}; it was at {moved.was.rpartition('.')[0]}"
    who = who_sent(call)
    share = f"; {int(call.kept * 100)}% of the prompt is before it" if call.kept < 1 else ""
    return f"{place}{f', {who}' if who else ''}{share}"


def who_sent(call: CacheCall) -> str:
    """Say what it is that moved: a line of the system prompt, a message of the user, the result of a tool."""
    moved, before = call.moved, call.before
    if moved is None or before is None:
        return ""
    if moved.part == "system":
        line = moved.was[: common_prefix(moved.was, moved.now)].count("\n") + 1
        return f"line {line} of the system prompt"
    if moved.part != "messages" or moved.item is None:
        return ""
    item = before.call.context.items[moved.item]
    for message in item.messages:
        if message.tool_results:
            name = message.tool_results[0].name or ""
            return f"message {moved.item + 1}, tool result {name}".rstrip()
        return f"message {moved.item + 1}, {message.role}"
    return f"message {moved.item + 1}"


def _render_sum(calls: list[CacheCall]) -> Iterator[str]:
    misses = [one for one in calls if one.verdict in _MISSES]
    read = sum(one.sent.read or 0 for one in calls)
    whole = sum(one.sent.whole for one in calls)
    if not any(one.verdict is not Verdict.UNKNOWN for one in calls):
        yield f"{counted(len(calls), 'model call')}, of none of which anything can be said"
        return
    share = f"{read / whole:.0%}" if whole else "none"
    yield f"{counted(len(calls), 'model call')}; {share} of {whole:,} tokens were read from the cache"
    if not misses:
        yield "no miss was found"
        return
    missed = sum(one.missed for one in misses)
    costs = [one.cost_nano_usd for one in misses if one.missed]
    known = [cost for cost in costs if cost is not None]
    told = f"{len(misses)} {'miss' if len(misses) == 1 else 'misses'}, {missed:,} tokens"
    if known:
        told += f", {show_cost(sum(known))} more"
    if len(known) < len(costs):
        told += (
            f" and {len(costs) - len(known)} at an unknown price"
            if known
            else ", at an unknown price"
        )
    yield told
    numbers: dict[str, int] = {}
    for one in misses:
        name = _WORDS.get(one.verdict, one.verdict.value)
        part = f": {one.moved.part}" if one.moved and one.verdict is Verdict.BROKE else ""
        numbers[name + part] = numbers.get(name + part, 0) + 1
    for name, count in sorted(numbers.items(), key=lambda pair: -pair[1]):
        yield f"  {count} × {name}"


def show_cost(nano_usd: int) -> str:
    """Give an amount of money."""
    usd = nano_usd / NANO
    return f"${usd:.4f}" if abs(usd) < 1 else f"${usd:,.2f}"


def miss_json(call: CacheCall) -> dict[str, Any]:
    """Give what became of the cache in one call; `docs/cache.md` describes it."""
    sent, moved, gap = call.sent, call.moved, call.gap_s
    judged = call.verdict in (*_MISSES, Verdict.UNKNOWN)
    return {
        "seq": sent.call.seq,
        "part": sent.call.part or None,
        "lane": sent.lane,
        "before": call.before.call.seq if call.before is not None else None,
        "verdict": call.verdict.value,
        "evidence": call.evidence.value if call.evidence is not None and judged else None,
        "reason": call.reason,
        "read": sent.read,
        "written": sent.written,
        "prompt": sent.whole,
        "expected": call.expected,
        "missed": call.missed,
        "cost_usd": call.cost_nano_usd / NANO if call.cost_nano_usd is not None else None,
        "moved": None
        if moved is None or call.verdict is not Verdict.BROKE
        else {
            "part": moved.part,
            "path": moved.path,
            "who": who_sent(call) or None,
            "was": moved.was,
            "was_since": call.was_since or None,
            "now": moved.now,
            "now_since": sent.call.seq,
            "share_before": round(call.kept, 4),
        },
        "idle_s": [round(one, 3) for one in gap] if gap is not None else None,
        "lifetime": call.lifetime.source if call.lifetime is not None else None,
    }
