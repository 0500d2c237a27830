"""Compare the idempotency keys of a replay with those of its tape: whether a key is present, and which effects share one.

The values of keys are random and never compared. Two runs agree where each key of the one stands for one key
of the other. What differs is told, and refused by nobody: the effect is the same.
"""

from collections import OrderedDict
from typing import NamedTuple

from ..exchange import Seq

_MOST = 50_000
"""Keys remembered for a run; those seen longest ago go first."""


class _Seen(NamedTuple):
    other: bytes
    """The key that it stands for in the other run."""
    seq: Seq
    """Of the effect that it was last seen with, in its own run."""


class KeyPairs:
    """The keys of the effects that a playback has served so far, each with the one on the tape."""

    def __init__(self) -> None:
        """Begin with none."""
        self._asked: OrderedDict[bytes, _Seen] = OrderedDict()
        self._recorded: OrderedDict[bytes, _Seen] = OrderedDict()

    def compare(self, seq: Seq, asked: bytes | None, tape_seq: Seq, recorded: bytes | None) -> str:
        """Say how the key of an effect differs from the one it was recorded with; empty where it does not.

        seq, asked: of the effect in the playback; a hash of its key, or None without one.
        tape_seq, recorded: the same on the tape.
        """
        if asked is None or recorded is None:
            if asked is not None:
                return "carries an idempotency key, and was recorded without one"
            return "carries no idempotency key, and was recorded with one" if recorded else ""
        one, other = self._asked.get(asked), self._recorded.get(recorded)
        what = ""
        if one is not None and one.other != recorded:
            what = f"shares its idempotency key with seq {one.seq}; on the tape the two have different ones"
        elif other is not None and other.other != asked:
            what = f"has another idempotency key than the effect recorded as seq {other.seq}; on the tape the two share one"
        _note(self._asked, asked, _Seen(recorded, seq))
        _note(self._recorded, recorded, _Seen(asked, tape_seq))
        return what


def _note(seen: OrderedDict[bytes, _Seen], key: bytes, value: _Seen) -> None:
    seen[key] = value
    seen.move_to_end(key)
    if len(seen) > _MOST:
        seen.popitem(last=False)
