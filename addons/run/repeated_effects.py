"""Repeated effects of a run: possible duplicates and safe retries.

A second effect with the same effect key is a possible duplicate when it carries another idempotency key or
none; with the same idempotency key it is a safe retry. Most of all when the client saw no completed answer
to the first: that is how customers are refunded twice.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ...tape.exchange import Repeat, RepeatKind, Seq
from ...tape.policy.alike_effects import AlikeKeys

_MOST_KEYS = 50_000
"""Effect keys remembered for a run, about 15 MB; those asked for longest ago go first."""
_MOST_ALIKE = 200_000
"""The same where an effect has several, as a plain one has four."""
_MOST_SAME = 64
"""Effects remembered for one effect key."""


@dataclass(slots=True)
class Effect:
    """One effect that was asked for."""

    seq: Seq
    key: bytes | None
    """Its idempotency key's hash, or None."""
    seen: bool = False
    """Whether its client has seen a completed answer."""
    undone: bool = False
    """Whether it is known not to have happened."""
    is_injected: bool = False
    """Whether a fault on purpose answered it, so that it was not sent; gates take that for a real fault."""
    is_recorded: bool = False
    """Whether the tape answered it."""
    is_doubtful: bool = False
    """Whether that answer was an error after which it may have happened all the same."""


class AlikeEffects:
    """The effects of one run, by all that each can be taken for: two are alike if they may be the same for any server."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: OrderedDict[bytes, list[Effect]] = OrderedDict()

    def note(self, keys: AlikeKeys, effect: Effect) -> Repeat | None:
        """Note an effect; say what it repeats. Loop."""
        earlier = {
            other.seq: other
            for key in keys.asks
            for other in self._found.get(key, ())
            if not other.undone
        }
        for key in keys.leaves:
            same = self._found.setdefault(key, [])
            self._found.move_to_end(key)
            same.append(effect)
            del same[:-_MOST_SAME]
        while len(self._found) > _MOST_ALIKE:
            self._found.popitem(last=False)
        return _compare([earlier[seq] for seq in sorted(earlier)], effect)


class Effects:
    """The effects of one run, by effect key. Any thread: the loop notes what is served, the writer what is sent."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: OrderedDict[bytes, list[Effect]] = OrderedDict()
        self._lock = threading.Lock()
        self.gated = AlikeEffects()
        """Those that left, or are about to, where a gate asks what they repeat; used on the loop alone."""

    def note(self, effect_key: bytes, effect: Effect) -> Repeat | None:
        """Note an effect; say what it repeats."""
        with self._lock:
            return self._note(effect_key, effect)

    def find_unseen(self, effect_key: bytes, key: bytes | None) -> Seq | None:
        """Find the effect of a tape that one asks for again which is not sent yet: nobody saw it answered but by an error, and it may have happened.

        key: its idempotency key's hash; with that of the earlier one it is a safe retry.
        """
        with self._lock:
            earlier = [one for one in self._found.get(effect_key, ()) if not one.undone]
        if not earlier or (key is not None and any(one.key == key for one in earlier)):
            return None
        last = earlier[-1]
        is_open = not last.seen or last.is_doubtful
        return last.seq if last.is_recorded and is_open else None

    def _note(self, effect_key: bytes, effect: Effect) -> Repeat | None:
        earlier = self._found.setdefault(effect_key, [])
        self._found.move_to_end(effect_key)
        repeat = _compare(
            [other for other in earlier if not (other.undone or other.is_injected)], effect
        )
        earlier.append(effect)
        del earlier[:-_MOST_SAME]
        if len(self._found) > _MOST_KEYS:
            self._found.popitem(last=False)
        return repeat


def _compare(earlier: list[Effect], effect: Effect) -> Repeat | None:
    if not earlier:
        return None
    if effect.key is not None:
        for other in earlier:
            if other.key == effect.key:
                return Repeat(other.seq, RepeatKind.SAFE_RETRY, not other.seen)
    unseen = next((other for other in reversed(earlier) if not other.seen), None)
    other = unseen or earlier[-1]
    return Repeat(other.seq, RepeatKind.POSSIBLE_DUPLICATE, unseen is not None)
