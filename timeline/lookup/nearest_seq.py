"""Say what a run holds to whoever asks for what it does not hold."""

from collections.abc import Sequence

from ...store import StoreError


def no_exchange(run: str, seq: int, seqs: Sequence[int]) -> StoreError:
    """Give the error for a seq that a run does not hold: its range, and the nearest.

    seqs: those that it holds, in order.
    """
    hint = f"`playhead show {run}` lists what it holds"
    if not seqs:
        return StoreError(f"run {run!r} holds no exchange {seq}: it holds none at all", hint)
    nearest = min(seqs, key=lambda one: (abs(one - seq), one))
    return StoreError(
        f"run {run!r} holds no exchange {seq}: it has {seqs[0]} to {seqs[-1]}, and the nearest is {nearest}",
        hint,
    )
