"""Say what a run holds to whoever asks for what it does not hold."""

from collections.abc import Sequence

from ...store import StoreError
from ...tape.shell_words import shell_word

_SHOWN = 24
"""Digits of a number that are repeated."""


def no_exchange(run: str, seq: int, seqs: Sequence[int]) -> StoreError:
    """Give the error for a seq that a run does not hold: its range, and the nearest.

    seqs: those that it holds, in order.
    """
    hint = f"`playhead show {shell_word(run)}` lists what it holds"
    asked = str(seq)
    asked = asked if len(asked) <= _SHOWN else f"{asked[:_SHOWN]}…"
    if not seqs:
        return StoreError(f"run {run!r} holds no exchange {asked}: it holds none at all", hint)
    nearest = min(seqs, key=lambda one: (abs(one - seq), one))
    return StoreError(
        f"run {run!r} holds no exchange {asked}: it has {seqs[0]} to {seqs[-1]}, and the nearest is {nearest}",
        hint,
    )


def no_part(run: str, seq: int, part: int, parts: int) -> StoreError:
    """Give the error for a part that an exchange does not have.

    parts: how many it has; 0 for what is no WebSocket with model calls.
    """
    hint = f"`playhead show {shell_word(run)} {seq}` shows all of it"
    if not parts:
        why = f"exchange {seq} is no WebSocket with model calls, so it has no parts"
    else:
        why = f"exchange {seq} has {seq}.1 to {seq}.{parts}, and the nearest is {seq}.{parts}"
    return StoreError(f"run {run!r} has no {seq}.{part}: {why}", hint)
