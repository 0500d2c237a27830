"""Judge one model call: whether the cache was read, and if not, why; each verdict with the evidence that it rests on.

1. Nothing is said without counts of the provider: a miss is that it read less than what the call before of the lane had left.
2. `prefix broke`: the prompt does not begin as the one before did. `lifetime ran out`: it does, and the provider's lifetime was over.
   `provider`: it does, in time, with its marks where they were. `unknown`: all else, with the reason.
3. `recorded` says that counts and bytes leave no other cause; else the verdict is `inferred`. All else of the request is the same then,
   and what comes before the part that moved was read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from ...tape.dialects import Usage, bedrock_converse
from ..show.listing import input_tokens
from ..steps.model_call import ModelCall
from ..steps.step import Evidence
from .cache_relevant_settings import Setting, find_field, find_setting
from .compare_prompts import (
    Mark,
    Moved,
    count_kept,
    find_kept_mark,
    find_marks,
    find_moved,
    find_moved_mark,
    find_new_image,
)
from .lifetimes import (
    STEP,
    Lifetime,
    find_least,
    find_lifetime,
    is_marked,
    leaves_out_zero,
    read_ttl,
)

FIRST_OF_LANE = "the first call of its lane"
_SURE = 0.75
"""Part of an estimate of tokens that is sure."""


class Verdict(StrEnum):
    """What became of the prompt cache in one call."""

    FIRST = "first"
    """The first call of its lane with counts."""
    HIT = "hit"
    BROKE = "prefix broke"
    LIFETIME = "lifetime ran out"
    PROVIDER = "provider"
    """Its doing."""
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Sent:
    """A model call as it was sent, with what tells of its cache."""

    call: ModelCall
    lane: int
    host: str
    key: str
    """Of the credentials, as they are kept."""
    started_ns: int
    ended_ns: int
    fields: dict[str, str] = field(default_factory=dict)
    """Of its request, those by which the provider is told how to read it."""
    shared_seq: int = 0
    """A call of another lane, or one that failed, that used the same prompt since the one before of the lane; 0 where none did."""
    shared_ns: int = 0
    """When that was."""
    marks: list[Mark] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marks = find_marks(self.call) if is_marked(self.call) else []

    @property
    def usage(self) -> Usage | None:
        """Tokens, as the answer states them."""
        return self.call.answer.usage if self.call.answer is not None else None

    @property
    def read(self) -> int | None:
        """Tokens read from the cache; None where that is not stated."""
        return self.usage.cached_read_tokens if self.usage is not None else None

    @property
    def written(self) -> int:
        """Tokens written into it."""
        return (self.usage.cached_write_tokens or 0) if self.usage is not None else 0

    @property
    def whole(self) -> int:
        """Tokens of the prompt."""
        return (input_tokens(self.usage) or 0) if self.usage is not None else 0

    @property
    def left(self) -> int:
        """Tokens that it left in the cache."""
        if is_marked(self.call):
            return (self.read or 0) + self.written
        return self.whole // STEP * STEP if self.whole >= find_least(self.model) else 0

    @property
    def model(self) -> str | None:
        """The model that was asked for."""
        return self.call.context.asked.model


@dataclass(slots=True)
class CacheCall:
    """What became of the prompt cache in one call."""

    sent: Sent
    before: Sent | None
    verdict: Verdict
    reason: str
    evidence: Evidence | None = None
    """None where nothing was judged."""
    moved: Moved | None = None
    was_since: int = 0
    """Of what moved: the first request that had the old."""
    kept: float = 1.0
    """Part of the prompt before, by bytes, up to what moved."""
    prompt_size: int = 0
    """Bytes of the prompt before."""
    expected: int = 0
    """Tokens that were to be read."""
    lifetime: Lifetime | None = None
    cost_nano_usd: int | None = None
    """What the miss cost; None where no price is known."""

    @property
    def missed(self) -> int:
        """Tokens that were not read."""
        if self.verdict in (Verdict.FIRST, Verdict.HIT):
            return 0
        return max(0, self.expected - (self.sent.read or 0)) if self.before is not None else 0

    @property
    def gap_s(self) -> tuple[float, float] | None:
        """Seconds since the cache was used: at least, since the answer before ended, and at most, since its request came."""
        if self.before is None:
            return None
        now = self.sent.started_ns
        return max(0, now - self.before.ended_ns) / 1e9, max(0, now - self.before.started_ns) / 1e9


def judge(
    sent: Sent, before: Sent | None, *, stated: bool, earlier: Iterable[Sent] = ()
) -> CacheCall:
    """Judge a call.

    before: the last call of the same lane whose answer came.
    earlier: calls of the lane before that: one may go back to what they had.
    stated: whether an answer of the run has stated a count of this kind; a provider may leave out zero.
    """
    unknown = _find_unknown(sent, before)
    if unknown is not None:
        return unknown
    assert before is not None
    moved = find_moved(before.call, sent.call)
    found = CacheCall(sent, before, Verdict.UNKNOWN, "", Evidence.INFERRED, moved)
    found.kept, found.prompt_size = count_kept(before.call, sent.call, moved)
    found.expected = min(before.left, sent.whole)
    if not is_marked(sent.call):
        found.expected = min(before.left, sent.whole // STEP * STEP)
    if moved is not None and moved.item == len(sent.call.context.items):
        # It goes back: what was ever kept of it is what a call had left that had no more.
        left = [one.left for one in earlier if find_moved(one.call, sent.call) is None]
        found.expected = min(found.expected, max(left, default=found.expected))
    if sent.read is None and moved is None and not stated:
        return CacheCall(sent, before, Verdict.UNKNOWN, "the answer states no count of tokens read")
    read = sent.read or 0
    at_stake, due = _find_at_stake(found, read)
    found.expected = min(found.expected, due)
    found.lifetime = find_lifetime(
        before.call, before.host, at_stake, is_one=len({mark.ttl for mark in before.marks}) == 1
    )
    if _is_hit(found, read):
        found.verdict, found.evidence = Verdict.HIT, Evidence.RECORDED
        found.reason = "what the call before left in the cache was read"
        return found
    if moved is None and before.left == 0:
        found.reason = "the call before left nothing in the cache"
        found.evidence = None
        return found
    if moved is None and is_marked(sent.call):
        found.moved = moved = find_moved_mark(before.marks, sent.marks) or find_new_image(
            before.call, sent.call
        )
    setting = find_setting(before.call, sent.call) or find_field(before.fields, sent.fields)
    if moved is not None:
        return _doubt(_judge_moved(found, moved, read), setting)
    if setting is None:
        return _judge_intact(found, read)
    return _judge_set(found, setting, read)


def _find_at_stake(found: CacheCall, read: int) -> tuple[list[Mark], int]:
    """Give those of a call's marks on whose lifetime a miss rests, each has its own, and the tokens that may be missed for it.

    Where what lives on was read, they are the others; else they are those that live on, and what the others keep is gone anyway.
    """
    before, most = found.before, (found.gap_s or (0.0, 0.0))[1]
    assert before is not None
    alive = [mark for mark in before.marks if (read_ttl(mark.ttl) or 0) > most]
    over = [mark for mark in before.marks if mark not in alive]
    if not alive or not over:
        return before.marks, before.left
    due, is_stated = _count_alive(before, alive, over)
    return (
        (over, before.left) if read >= (due if is_stated else due * _SURE - STEP) else (alive, due)
    )


def _count_alive(before: Sent, alive: list[Mark], over: list[Mark]) -> tuple[int, bool]:
    """Give the tokens that marks which live on keep, and whether the answer stated them; else they are estimated from bytes."""
    last = max(mark.size for mark in before.marks)
    due = round(before.left * max(mark.size for mark in alive) / max(1, last))
    hour = before.usage.cached_write_1h_tokens if before.usage is not None else None
    if (
        hour is None
        or {mark.ttl for mark in alive} != {"1h"}
        or {mark.ttl for mark in over} != {"5m"}
    ):
        return due, False
    # What it read may have been kept for either.
    return min(max(due, hour), hour + (before.read or 0)), not before.read


def _doubt(found: CacheCall, setting: Setting | None) -> CacheCall:
    """Leave nothing certain where another cause is left."""
    if setting is not None and found.evidence is not None:
        found.evidence = Evidence.INFERRED
        found.reason += f"; {setting.name} is another one, too"
    return found


def _judge_set(found: CacheCall, setting: Setting, read: int) -> CacheCall:
    """Judge a call whose prompt begins as the one before did, with something else in the request that is not as it was."""
    judged = _judge_intact(found, read)
    if judged.verdict is Verdict.LIFETIME or judged.evidence is None:
        return _doubt(judged, setting)
    if setting.is_in_prompt:
        found.verdict, found.evidence = Verdict.BROKE, Evidence.INFERRED
        found.moved = setting.as_moved()
        found.reason = found.moved.what
        return found
    found.verdict, found.evidence = Verdict.UNKNOWN, None
    found.reason = f"the prompt begins as before, but {setting.name} is another one: {setting.was[:60] or 'nothing'}, now {setting.now[:60] or 'nothing'}"
    return found


def _find_unknown(sent: Sent, before: Sent | None) -> CacheCall | None:
    """Give the verdict where nothing can be said, or None."""
    call = sent.call
    usage = sent.usage
    reason = ""
    if call.answer is None or call.failed:
        reason = "it has no answer"
    elif usage is None or (usage.cached_read_tokens is None and not leaves_out_zero(call)):
        reason = "the answer states no count of tokens read"
    elif is_marked(call) and not sent.marks and not (sent.read or sent.written):
        if before is None or not before.marks:
            mark = (
                "cachePoint"
                if call.context.asked.dialect == bedrock_converse.DIALECT.name
                else "cache_control"
            )
            reason = f"the request asks for no cache: it has no {mark}"
    elif not sent.read and sent.whole < (least := find_least(sent.model)):
        reason = f"the prompt has less than the {least:,} tokens from which on it is cached"
    if reason:
        return CacheCall(sent, before, Verdict.UNKNOWN, reason)
    if before is None and sent.read is None:
        told = "the answer states no count of tokens read"
        return CacheCall(sent, None, Verdict.UNKNOWN, told)
    if before is None:
        return CacheCall(sent, None, Verdict.FIRST, FIRST_OF_LANE)
    if before.ended_ns > sent.started_ns:
        told = f"it began before the answer to {before.call.seq} had ended"
        return CacheCall(sent, before, Verdict.UNKNOWN, told)
    return None


def _is_hit(found: CacheCall, read: int) -> bool:
    """Say whether all was read that was to be."""
    if found.expected == 0:
        return read > 0
    if is_marked(found.sent.call):
        return read >= found.expected
    # Counts of providers that cache by themselves are rounded, and lag behind by a step.
    return read >= found.expected - STEP if found.moved is None else read >= found.expected


def _judge_moved(found: CacheCall, moved: Moved, read: int) -> CacheCall:
    before, lifetime = found.before, found.lifetime
    assert before is not None
    gap = found.gap_s or (0.0, 0.0)
    found.verdict = Verdict.BROKE
    found.reason = moved.what
    within = found.expected * found.kept * 1.1 + find_least(found.sent.model)
    over = lifetime is not None and lifetime.gone_s is not None and gap[1] >= lifetime.gone_s
    if found.sent.key != before.key or found.sent.host != before.host:
        found.reason += "; it went to another host, or with another key"
    elif over:
        found.reason += ", and the lifetime was over, too"
    elif moved.part == "images" or not found.expected or found.sent.read is None:
        pass
    elif read < _find_due(found, moved):
        found.reason += "; the part before it was not read either"
    elif read <= within:
        found.evidence = Evidence.RECORDED
    return found


def _find_due(found: CacheCall, moved: Moved) -> float:
    """Give the tokens that what moved does not keep from being read: what is before it, as far as it was cached.

    Tokens are known of whole prompts only, so a quarter less is enough. What is smaller than the least size is in no cache.
    """
    before, sent = found.before, found.sent
    assert before is not None
    if moved.part == "model":
        return 0.0
    share = found.kept
    if is_marked(sent.call):
        last = max((mark.size for mark in before.marks), default=0)
        kept = (
            1.0 if moved.part == "cache_control" else found.kept * found.prompt_size / max(1, last)
        )
        share = find_kept_mark(before.marks, sent.marks, kept)
    due = before.left * share
    return due * _SURE - STEP if due >= find_least(sent.model) * _SURE else 0.0


def _judge_intact(found: CacheCall, read: int) -> CacheCall:
    """Judge a call whose prompt begins as the one before did."""
    before, lifetime, sent = found.before, found.lifetime, found.sent
    assert before is not None
    assert lifetime is not None
    least, most = found.gap_s or (0.0, 0.0)
    waited = f"{show_seconds(least)} without use"
    if sent.key != before.key or sent.host != before.host:
        found.reason = "it went to another host, or with another key: caches are not shared there"
        found.evidence = None
    elif lifetime.gone_s is not None and least >= lifetime.gone_s:
        found.verdict = Verdict.LIFETIME
        found.reason = f"{waited}; {lifetime.source}"
        # What is read all the same was kept by another call, or the count has another cause.
        found.evidence = Evidence.INFERRED if read else Evidence.RECORDED
        if sent.shared_seq and (sent.started_ns - sent.shared_ns) / 1e9 < lifetime.gone_s:
            found.evidence = Evidence.INFERRED
            found.reason += f"; {sent.shared_seq} used the same prompt since then"
    elif lifetime.sure_s is None:
        hour = 3600
        found.verdict = Verdict.LIFETIME if least >= hour else Verdict.UNKNOWN
        found.reason = f"the prompt begins as before, after {waited}; {lifetime.source}"
    elif most < lifetime.sure_s:
        found.verdict = Verdict.PROVIDER
        found.reason = f"the prompt begins as before, after {waited}, and {read:,} tokens were read"
        if is_marked(sent.call) and not read:
            found.evidence = Evidence.RECORDED
        if any((read_ttl(mark.ttl) or least + 1) <= least for mark in before.marks):
            gone = max(0, min(before.left, sent.whole) - found.expected)
            found.reason += f"; {gone:,} more, which shorter marks keep, had run out"
    elif least >= lifetime.sure_s:
        found.verdict = Verdict.LIFETIME
        found.reason = f"{waited}; {lifetime.source}"
    else:
        found.reason = f"{waited}, at the end of the lifetime: {lifetime.source}"
    return found


def show_seconds(seconds: float) -> str:
    """Give a time in a few characters."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
