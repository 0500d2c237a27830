"""Notes that people attach to a run: events of its log, so nothing is overwritten; also after the run has ended."""

import time
from typing import Any, NamedTuple

from ...store import RunInfo, Store, StoreError
from ...tape.records.events import Event, EventKind
from ...tape.shell_words import shell_word
from .safe_terminal_text import plain

MAX_CHARS = 10_000


class Note(NamedTuple):
    """Somebody's words."""

    at_ns: int
    seq: int
    """The exchange they are about; 0 for the run."""
    text: str
    by: str

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {"at_ns": self.at_ns, "seq": self.seq, "text": self.text, "by": self.by}


def notes_of(store: Store, run: RunInfo) -> list[Note]:
    """Read what was written beside a run, in order.

    Raises: LogCorrupt.
    """
    return [
        Note(event.at_ns, event.seq, str(event.data.get("text", "")), str(event.data.get("by", "")))
        for event in store.events.all(run)
        if event.kind is EventKind.ANNOTATED
    ]


def add_note(store: Store, run: RunInfo, text: str, *, seq: int, by: str, at_ns: int) -> Note:
    """Write something beside a run, or one exchange of it. Blocks.

    Raises: StoreError, where there is no such exchange, or too much or nothing to write.
    """
    if not text.strip() or len(text) > MAX_CHARS:
        raise StoreError(f"a note of {len(text)} characters", f"write 1 to {MAX_CHARS}")
    if seq and not store.exchanges.holds(run, seq):
        raise StoreError(
            f"run {run.id!r} holds no exchange {seq}",
            f"`playhead show {shell_word(run.id)}` lists what it holds",
        )
    note = Note(at_ns, seq, text, by)
    data = {"seq": seq, "text": text, "by": by}
    store.events.append_blocking(run, Event(EventKind.ANNOTATED, at_ns, data))
    return note


def render_notes(notes: list[Note]) -> str:
    """Show notes, one a line."""
    lines = []
    for note in notes:
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(note.at_ns / 1e9))
        about = f"seq {note.seq}" if note.seq else "run"
        lines.append(f"{when}Z  {plain(note.by, 30)}  {about}: {plain(note.text, 1000)}")
    return "\n".join(lines) if lines else "no notes"
