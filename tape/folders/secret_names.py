"""Names with secrets in them: a manifest is kept with placeholders in their place, as everything that is stored.

A name is found again by what it becomes: the rules give the same placeholder each time, in one store.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from .manifest import Entry, Manifest, Step

Redact = Callable[[bytes], bytes]
"""Takes secrets out of a text."""


def hide_names(paths: Iterable[bytes], redact: Redact) -> dict[bytes, bytes]:
    """Give those of some paths that have secrets, with what they become."""
    paths = list(paths)
    joined = b"\n".join(paths)
    if redact(joined) == joined:  # as it is nearly always: one search for all
        return {}
    return {path: now for path in paths if (now := redact(path)) != path}


def hide_manifest(manifest: Manifest, redact: Redact) -> Manifest:
    """Give a manifest as it is stored."""
    git = manifest.git
    names = hide_names([manifest.folder, *manifest.left_out, *_names_of(manifest.entries)], redact)
    texts = [git.branch, *(git.dirty or ())] if git is not None else []
    hidden = hide_names([one.encode("utf-8", "surrogateescape") for one in texts], redact)
    if git is not None and hidden:

        def plain(text: str) -> str:
            data = text.encode("utf-8", "surrogateescape")
            return hidden.get(data, data).decode("utf-8", "surrogateescape")

        dirty = git.dirty and tuple(map(plain, git.dirty))
        manifest = replace(manifest, git=replace(git, branch=plain(git.branch), dirty=dirty))
    if not names:
        return manifest
    return replace(
        manifest,
        folder=names.get(manifest.folder, manifest.folder),
        left_out={names.get(path, path): why for path, why in manifest.left_out.items()},
        entries=_rename(manifest.entries, names),
    )


def hide_step(step: Step, redact: Redact) -> Step:
    """Give a step as it is stored."""
    names = hide_names([*_names_of(step.written), *step.gone], redact)
    if not names:
        return step
    gone = tuple(names.get(path, path) for path in step.gone)
    return step._replace(written=_rename(step.written, names), gone=gone)


def find_names(manifest: Manifest, paths: Iterable[bytes], redact: Redact) -> Manifest:
    """Give a manifest with the names that are there for those that were hidden.

    paths: what is in the folder now.
    """
    hidden = {now: path for path, now in hide_names(paths, redact).items()}
    names = {path: hidden[path] for path in manifest.entries if path in hidden}
    return replace(manifest, entries=_rename(manifest.entries, names)) if names else manifest


def _names_of(entries: Mapping[bytes, Entry]) -> list[bytes]:
    return [*entries, *{entry.target for entry in entries.values() if entry.target}]


def _rename(entries: Mapping[bytes, Entry], names: Mapping[bytes, bytes]) -> dict[bytes, Entry]:
    """Rename paths, and what links point to."""
    made = {}
    for path, entry in entries.items():
        target = names.get(entry.target, entry.target)
        # With another inode than any it is never taken for the very file that was there.
        entry = entry if target == entry.target else entry._replace(target=target, inode=0)
        made[names.get(path, path)] = entry._replace(inode=0) if path in names else entry
    return made
