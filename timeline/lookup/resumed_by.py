"""What became of runs that crashed: by which others they were gone on with, and whether these sent anything. Blocking."""

from ...store import RunInfo, RunStatus, Store
from ...tape.records.events import EventKind


def was_gone_on(store: Store, info: RunInfo) -> bool:
    """Say whether a run that crashed was resumed, and something was sent then, as far as the store knows. Raises: LogCorrupt."""
    if info.status is RunStatus.OPEN:
        return False
    resumed = (one for one in find_children(store, info) if one.has_resumed)
    return store.runs.is_gone_on_elsewhere(info) or any(has_sent(store, one) for one in resumed)


def find_children(store: Store, info: RunInfo) -> list[RunInfo]:
    """Give the runs that play or resume a run, oldest first."""
    return [one for one in store.runs.all() if one.parent_number == info.number]


def has_ended_well(store: Store, info: RunInfo) -> bool:
    """Say whether all processes of a run that its proxy's death left had ended with 0 before, as far as its log has it. Raises: LogCorrupt."""
    if info.status is not RunStatus.RECOVERED or info.is_only_in_archive:
        return False
    noted = [
        event.data["ended_well"]
        for event in store.events.of_kind(info, EventKind.NOTED)
        if "ended_well" in event.data
    ]
    # Whoever asked for more after that went on with it.
    return bool(noted) and all(event.seq <= noted[-1] for event in store.events.all(info))


def has_sent(store: Store, info: RunInfo) -> bool:
    """Say whether a run has sent something; of one that only an archive has it is taken to have. Raises: LogCorrupt."""
    return info.is_only_in_archive or any(
        event.kind is EventKind.INTENT for event in store.events.all(info)
    )
