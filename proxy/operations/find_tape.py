"""Find the tape that a command works on: by name, ended, and not a playback."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...config import Config
from ...config.value_types import LATEST
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError, UnknownRun
from ...tape.exchange import RunId
from ...tape.shell_words import shell_word

if TYPE_CHECKING:
    from ...tape.redaction.redactor import Redactor

_MOST_NAMED = 4
"""Recordings of one name that are listed."""


def get_recording(store: Store, name: str) -> RunInfo:
    """Get a recording that has ended.

    Raises: UnknownRun, RunOpen; StoreError for a playback.
    """
    info = store.runs.get(name)
    if info.parent is not None and not info.has_resumed:
        raise StoreError(
            f"{name!r} is a playback of {info.parent!r}, which holds no answers of its own",
            f"name a recording, as {info.parent!r}",
        )
    if info.status is RunStatus.OPEN:
        raise RunOpen(
            f"run {name!r} is still being recorded",
            f"end it with: playhead seal {shell_word(name)}",
        )
    return info


def choose_recording(store: Store, name: str) -> tuple[str, tuple[RunId, ...]]:
    """Choose the run that is replayed under a name: the newest recording of that name with an exchange; give the others, too.

    `NAME~1` is the run NAME itself.
    """
    named = store.runs.find_recordings(name)
    if named:
        return named[0].id, tuple(one.id for one in named[1:])
    base, _, number = name.rpartition("~")
    if number == "1" and base and store.runs.find(name) is None:
        return base, ()
    return name, ()


def find_tape_problem(store: Store, name: str) -> str:
    """Say why nothing can be played under a name by now; empty where it can."""
    if name == LATEST:
        return "" if store.runs.find_latest() else "there is no recording yet to play as 'latest'"
    try:
        tape = store.runs.get(name)
    except UnknownRun as error:
        return f"{error}; {error.hint}"
    if not tape.is_tape:
        return f"{name!r} is a playback of {str(tape.parent)!r}; play {str(tape.parent)!r} instead"
    return ""


def say_which_is_played(name: str, played: str, others: Sequence[str]) -> str:
    """Say which run is played for a name; empty where it is the only one."""
    if others:
        listed = ", ".join(repr(str(one)) for one in others[:_MOST_NAMED])
        more = " ..." if len(others) > _MOST_NAMED else ""
        return (
            f"playhead: playing {played!r}, the newest recording of {name!r} with an exchange; others:"
            f" {listed}{more}"
        )
    return f"playhead: playing {played!r} for {name!r}" if played != name else ""


def say_tape_is_empty(info: RunInfo) -> str:
    """Say that a tape has no answer to give; empty where it has one."""
    if info.exchanges:
        return ""
    return (
        f"playhead: the tape of {str(info.id)!r} holds no exchange, so no request can be answered: record it again;"
        f" its receipt says why: playhead receipt {shell_word(info.id)}"
    )


def say_which_is_meant(name: str, played: str) -> str:
    """Say that a name is the run itself where `replay` plays a newer one for it; empty where it plays this one."""
    if played == name:
        return ""
    word = shell_word(name)
    return (
        f"playhead: this is the run {name!r} itself; the newest recording of that name, which `replay {word}`"
        f" plays, is {played!r}"
    )


def say_name_was_taken(wanted: str, info: RunInfo) -> str:
    """Say under which name a run was recorded instead of one that was taken, and what either name now stands for."""
    word = shell_word(wanted)
    text = f"playhead: the name {wanted!r} was taken; recorded as {str(info.id)!r}"
    if not info.exchanges:
        return text
    return (
        f"{text}: `replay {word}` plays it, `show {word}` shows the older one"
        " (record --replace deletes that first)"
    )


def say_what_was_there(store: Store, wanted: str, info: RunInfo) -> str:
    """Say that the name of an imported run was taken, and whether the store has the same recording already; empty where neither is so."""
    same = next(
        (one for one in store.runs.all() if one != info and _is_same(store, one, info)), None
    )
    word = shell_word(wanted)
    if same is not None:
        text = f"playhead: the recording {str(same.id)!r} of this store is the same; it was imported again, as {str(info.id)!r}"
    elif info.id != wanted:
        text = f"playhead: the name {wanted!r} was taken; imported as {str(info.id)!r}"
    else:
        return ""
    played, _ = choose_recording(store, wanted)
    plays = f", which `replay {word}` plays now" if played == info.id else ""
    return f"{text}{plays} (playhead erase {shell_word(info.id)} removes it)"


def _is_same(store: Store, one: RunInfo, other: RunInfo) -> bool:
    """Say whether two runs are the same recording. Lines that somebody wrote may begin and end at one time, and differ."""
    times = one.created_ns, one.sealed_ns, one.mode, one.exchanges
    if times != (other.created_ns, other.sealed_ns, other.mode, other.exchanges):
        return False
    seqs = store.exchanges.seqs(one)
    return seqs == store.exchanges.seqs(other) and all(
        store.exchanges.find(one, seq) == store.exchanges.find(other, seq) for seq in seqs
    )


def redactor_of(config: Config, key: bytes = b"makes none") -> "Redactor":
    """Give what knows which places hold secrets.

    key: of the store; where it is to make no placeholders, any does.
    """
    from ...tape.redaction.redactor import Redactor  # here: what finds a tape needs none

    return Redactor(key, config.redact, config.redact_off)
