"""Names with secrets in them: a manifest is kept with placeholders in their place, as everything that is stored.

A name is found again by what it becomes: the rules give the same placeholder each time, in one store.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from .manifest import Entry, GitState, Manifest, Step

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
    texts = [git.branch, *(git.dirty or ())] if git is not None else []
    paths = [
        manifest.folder,
        *manifest.left_out,
        *manifest.unlisted,
        *_names_of(manifest.entries),
    ]
    names = hide_names([*paths, *map(_encode, texts)], redact)
    if not names:
        return manifest

    def rename(text: str) -> str:
        return names.get(_encode(text), _encode(text)).decode("utf-8", "surrogateescape")

    made = rename_head(manifest, names, rename)
    return replace(made, entries=_rename(manifest.entries, names))


def rename_head(
    manifest: Manifest, names: Mapping[bytes, bytes], rename: Callable[[str], str]
) -> Manifest:
    """Rename what a manifest has beside its entries: the folder, what was left out, and what git says.

    names: what paths become.
    rename: gives what a text of git becomes.
    """
    git = manifest.git
    if git is not None:
        dirty = git.dirty and tuple(map(rename, git.dirty))
        git = replace(git, branch=rename(git.branch), dirty=dirty)
    return replace(
        manifest,
        folder=names.get(manifest.folder, manifest.folder),
        left_out={names.get(path, path): why for path, why in manifest.left_out.items()},
        unlisted=frozenset(names.get(path, path) for path in manifest.unlisted),
        git=git,
    )


def hide_step(step: Step, redact: Redact) -> Step:
    """Give a step as it is stored."""
    names = hide_names([*_names_of(step.written), *step.gone, *(step.unlisted or ())], redact)
    if not names:
        return step
    made = rename_step(step, names)
    return made._replace(written=_rename(step.written, names))


def rename_step(step: Step, names: Mapping[bytes, bytes]) -> Step:
    """Rename what a step has beside its entries.

    names: what paths become.
    """
    gone = tuple(names.get(path, path) for path in step.gone)
    if step.unlisted is None:
        return step._replace(gone=gone)
    return step._replace(
        gone=gone, unlisted=frozenset(names.get(path, path) for path in step.unlisted)
    )


def find_branch(manifest: Manifest, present: GitState | None, redact: Redact) -> Manifest:
    """Give a manifest with the branch that is checked out now, where that is the one that was hidden.

    present: what git says now.
    """
    git = manifest.git
    if git is None or present is None or not git.branch or git.branch == present.branch:
        return manifest
    if redact(_encode(present.branch)) != _encode(git.branch):
        return manifest
    return replace(manifest, git=replace(git, branch=present.branch))


def find_names(manifest: Manifest, present: Mapping[bytes, Entry], redact: Redact) -> Manifest:
    """Give a manifest with the names that are there for those that were hidden: of paths, and of what links point to.

    present: what is in the folder now.
    """
    manifest = _find_paths(manifest, present.keys(), redact)
    # A link that still points to where it did is the link that it was.
    targets = {
        entry.target: now.target
        for path, entry in manifest.entries.items()
        if entry.target
        and (now := present.get(path)) is not None
        and now.target
        and now.target != entry.target
        and redact(now.target) == entry.target
    }
    if not targets:
        return manifest
    entries = {
        path: entry._replace(target=targets.get(entry.target, entry.target))
        if entry.target and path in present
        else entry
        for path, entry in manifest.entries.items()
    }
    return replace(manifest, entries=entries)


def _find_paths(manifest: Manifest, paths: Collection[bytes], redact: Redact) -> Manifest:
    new = [path for path in paths if path not in manifest.entries]
    if not new or manifest.entries.keys() <= {*paths}:
        return manifest  # nothing was renamed: nobody need search for secrets
    hidden = {now: path for path, now in hide_names(new, redact).items()}
    names = {path: hidden[path] for path in manifest.entries if path in hidden}
    if not names:
        return manifest
    unlisted = frozenset(names.get(path, path) for path in manifest.unlisted)
    return replace(manifest, entries=_rename(manifest.entries, names), unlisted=unlisted)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


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
