"""Find which links, and other entries without a content, no run has: what a restore would lose for good. Blocking.

A link is kept if some manifest has its target, as a file is if the store has its content. A pipe, a socket, a device and an empty folder
are nothing but their kind at their path, and are kept if some manifest has that. Modes and times are not looked at: neither are they of
a file whose content is kept.
"""

from collections.abc import Iterable, Iterator, Mapping

from ...store import RunInfo, Store
from ...tape.folders.manifest import Entry, Kind

_Trait = tuple[Kind, bytes]
"""Its kind, and the target of a link or the path of any other."""


def find_unknown(
    kept: Iterable[Mapping[bytes, Entry]], entries: Mapping[bytes, Entry]
) -> frozenset[bytes]:
    """Give the paths of those that nothing that was kept has.

    kept: what manifests hold, as `list_kept` gives it; read only as far as it is needed.
    entries: none of them a file.
    """
    left = {path: _trait(path, entry) for path, entry in entries.items()}
    for listed in kept:
        wanted = set(left.values())
        found = {
            trait for path, entry in listed.items() if (trait := _trait(path, entry)) in wanted
        }
        left = {path: trait for path, trait in left.items() if trait not in found}
        if not left:
            break
    return frozenset(left)


def find_paths(store: Store, info: RunInfo) -> frozenset[bytes]:
    """Give all paths that the manifest and the savepoints of a run have. Raises: LogCorrupt."""
    manifest = store.folders.find(info)
    paths = set(manifest.entries if manifest is not None else ())
    for step in store.folders.list_savepoints(info):
        paths.update(step.written)
    return frozenset(paths)


def _trait(path: bytes, entry: Entry) -> _Trait:
    return entry.kind, entry.target if entry.kind is Kind.LINK else path


def list_kept(store: Store) -> Iterator[Mapping[bytes, Entry]]:
    """Give what the manifests and savepoints of all runs hold. Raises: LogCorrupt."""
    for info in store.runs.all():
        manifest = store.folders.find(info)
        if manifest is None:
            continue
        yield manifest.entries
        for step in store.folders.list_savepoints(info):
            yield step.written
