"""List the contract violations of a run from its log."""

from collections.abc import Sequence

from ...store import RunInfo, Store
from ...tape.counted import counted
from ...tape.records.events import EventKind
from ..reading.contract_row import ContractRow
from ..receipts.safe_terminal_text import plain

_ROWS = 200


def found_in(store: Store, run: RunInfo, seq: int | None = None) -> list[ContractRow]:
    """Give what was found while a run went on, in all its messages or in those of one seq.

    Raises: LogCorrupt.
    """
    return [
        ContractRow.from_event(event.data)
        for event in store.events.all(run)
        if event.kind is EventKind.CONTRACT and seq in (None, event.seq)
    ]


def began_with_contracts(store: Store, run: RunInfo) -> bool:
    """Say whether a run began with rules of `contracts`; a request may have declared what its model's answer is to be, all the same.

    Raises: LogCorrupt.
    """
    return any(
        event.data.get("rules", {}).get("contracts")
        for event in store.events.all(run)
        if event.kind is EventKind.NOTED
    )


def render_found(run: str, rows: Sequence[ContractRow], unchecked: str = "") -> str:
    """Show what was found; one line where nothing was.

    unchecked: why nothing, or little, was checked.
    """
    if not rows and unchecked:
        return f"{plain(run)}: {plain(unchecked)}"
    count = sum(row.count for row in rows)
    if not rows:
        return f"{plain(run)}: every checked message follows its contract"
    lines = [f"{plain(run)}: {counted(count, 'violation')} in {len(rows)} messages"]
    lines += [plain(f"  seq {row.seq}  {row.text}", 300) for row in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(f"  … and {len(rows) - _ROWS} more messages")
    return "\n".join(lines)
