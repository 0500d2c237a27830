"""What came of a rehearsal as plain text for a terminal."""

from ...timeline.receipts.safe_terminal_text import plain
from .rehearse import Rehearsal

_PLACES = 3
_VALUE = 60


def render_rehearsal(rehearsal: Rehearsal, first: str, second: str, by: str) -> str:
    """Say how many requests of the second recording the tape of the first answers, and which is the first that it does not.

    by: what was tried.
    """
    one, other = plain(first, 60), plain(second, 60)
    lines = [
        f"Tried with {by}: the tape of {one} answers {len(rehearsal.served)} of the {rehearsal.asked} requests of {other}."
    ]
    if rehearsal.moved:
        lines.append(
            f"{rehearsal.moved} of these come in another order than on the tape, or under another idempotency key."
        )
    refused = rehearsal.first
    if refused is not None:
        asked = plain(f"{refused.method} {refused.url}", 120)
        lines.append(f"The first that it does not answer: seq {refused.seq}  {asked}")
        lines.append(f"  {plain(refused.reason, 200)}")
        for found in refused.differences[:_PLACES]:
            values = " | ".join(plain(text, _VALUE) for text in (found.recorded, found.asked))
            lines.append(f"  {plain(found.place, 80)}: {values}")
    return "\n".join(lines)
