"""The effects of a command are read from its upper layer, and a layer makes a folder what a manifest says."""

import os
from pathlib import Path

import pytest

from playhead.proxy.folder.list_folder import look
from playhead.proxy.folder.overlay_layers import list_written, make_base
from playhead.tape.folders.changes import find_changes
from playhead.tests.support.folder_cases import WRITES
from playhead.tests.support.folders import (
    make_case,
    make_room,
    require_overlay,
    snapshot,
    write_cases,
)


@pytest.mark.parametrize("of_user", [True, False])
def test_each_write_is_listed_and_the_folder_is_as_before(tmp_path: Path, of_user: bool) -> None:
    """As an ordinary user sees an overlay, and as root does, which can rename folders."""
    work = tmp_path / "work"
    for at in range(len(WRITES)):
        make_case(work / f"c{at}")
    require_overlay(work, tmp_path, of_user=of_user)
    before = snapshot(work)
    with make_room(str(tmp_path)) as room:
        rows = write_cases(work, room, of_user=of_user, by_copy=not of_user)
        written = list_written(rows[0]["upper"], rows[0]["layers"])  # type: ignore[arg-type]
    assert snapshot(work) == before
    found: dict[str, list[str]] = {f"c{at}": [] for at in range(len(WRITES))}
    for one in written.effects:
        case, _, path = one.text.partition("/")
        found[case].append(f"{one.change} {path}")
    for at, row in enumerate(WRITES):
        if not (row.by_copy and of_user):
            assert sorted(found[f"c{at}"]) == sorted(row.effects), row.name


def test_a_layer_makes_a_folder_what_it_was(tmp_path: Path) -> None:
    """Whatever was done to it since: the command sees it as it was, and it stays as it is."""
    work, base = tmp_path / "work", tmp_path / "base"
    base.mkdir()
    for at in range(len(WRITES)):
        make_case(work / f"c{at}")
    require_overlay(work, tmp_path)
    target = look(str(work))
    contents = {
        path: (work / os.fsdecode(path)).read_bytes()
        for path, entry in target.entries.items()
        if entry.kind == "file"
    }
    then = snapshot(work)
    with make_room(str(tmp_path)) as room:
        rows = write_cases(work, room, of_user=True, by_copy=False)
        # What the command has left becomes the folder.
        _apply(str(work), str(rows[0]["upper"]))
    now = snapshot(work)
    assert now != then
    present = look(str(work))
    entries = {
        path: entry._replace(digest=path.ljust(32)) if path in contents else entry
        for path, entry in target.entries.items()
    }
    changes = find_changes(present.entries, entries)
    made = make_base(
        str(base),
        target,
        changes,
        lambda digest: contents[digest.rstrip()],
    )
    assert made.missing == []
    assert _seen(work, base, tmp_path) == then
    assert snapshot(work) == now


def _apply(work: str, upper: str) -> None:
    """Do to a folder what an upper layer says, as far as the cases need it."""
    import shutil

    for place, folders, names in os.walk(upper):
        there = os.path.join(work, os.path.relpath(place, upper))
        if os.path.lexists(there) and not os.path.isdir(there):
            os.unlink(there)
        opaque = place != upper and _is_opaque(place)
        if opaque and os.path.isdir(there):
            shutil.rmtree(there)
        os.makedirs(there, exist_ok=True)
        for name in (*names, *(one for one in folders if os.path.islink(f"{place}/{one}"))):
            path, to = os.path.join(place, name), os.path.join(there, name)
            if os.path.isdir(to) and not os.path.islink(to):
                shutil.rmtree(to)
            elif os.path.lexists(to):
                os.unlink(to)
            if os.path.islink(path):
                os.symlink(os.readlink(path), to)
            elif os.path.isfile(path):
                shutil.copy2(path, to)


def _is_opaque(place: str) -> bool:
    try:
        return os.getxattr(place, "user.overlay.opaque") == b"y"
    except OSError:
        return False


def _seen(work: Path, base: Path, tmp_path: Path) -> dict[str, str]:
    """Give what a command sees with a layer over a folder."""
    import json
    import subprocess
    import sys

    from playhead.proxy.folder.overlay_support import command_words, overlay_rows

    code = (
        "import json, sys; from playhead.tests.support.folders import snapshot;"
        "print(json.dumps(snapshot(sys.argv[1])))"
    )
    with make_room(str(tmp_path)) as room:
        rows = overlay_rows(str(work), room, [str(base)])
        words = command_words(rows, [], of_user=True)
        done = subprocess.run(
            [*words, sys.executable, "-c", code, str(work)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found
