"""Find with which key, and in which way, the placeholders of a run were made."""

from ...store import LogCorrupt, RunInfo, Store


def find_key(store: Store, run: RunInfo) -> str:
    """Give what tells the key of a run's placeholders, as `Redactor.key_id`; empty where nobody knows."""
    try:
        opened = next(iter(store.events.read(run)), None)
    except LogCorrupt:
        return ""
    return str(opened.data.get("placeholders", "")) if opened is not None else ""
