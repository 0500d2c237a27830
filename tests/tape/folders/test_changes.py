"""What differs between two manifests: content, kind and mode count, times do not."""

import pytest

from playhead.tape.folders.changes import (
    find_changes,
    find_renamed_folders,
    only_sure,
    say_differences,
)
from playhead.tape.folders.manifest import Entry, GitState, Kind, Manifest

FILE = Entry(Kind.FILE, 0o644, 3, 5, b"d" * 32, inode=1, changed_ns=2)
UNKNOWN = FILE._replace(digest=b"")
FOLDER = Entry(Kind.FOLDER, 0o755, inode=8)
LINK = Entry(Kind.LINK, 0o777, target=b"a")


@pytest.mark.parametrize(
    ("was", "now", "changes"),
    [
        (None, None, []),
        (FILE, FILE, []),
        (None, FILE, ["created x"]),
        (FILE, None, ["deleted x"]),
        # ---- content ----
        (FILE, FILE._replace(digest=b"e" * 32), ["changed x"]),
        (FILE, FILE._replace(size=4), ["changed x"]),
        (FILE, FILE._replace(modified_ns=9, changed_ns=9, inode=4), []),
        (UNKNOWN, UNKNOWN, []),
        (UNKNOWN, UNKNOWN._replace(changed_ns=9), ["changed x"]),
        (FILE, UNKNOWN._replace(changed_ns=9), ["changed x"]),
        (FILE, UNKNOWN, []),
        # ---- mode and kind ----
        (FILE, FILE._replace(mode=0o755), ["changed x"]),
        (FOLDER, FOLDER._replace(mode=0o700), ["changed x/"]),
        (FOLDER, FOLDER._replace(modified_ns=9), []),
        (LINK, LINK._replace(target=b"b"), ["changed x"]),
        (LINK, LINK._replace(mode=0o644), []),
        (LINK, FILE, ["changed x"]),
        (FILE, FOLDER, ["deleted x", "created x/"]),
        (FOLDER, FILE, ["deleted x/", "created x"]),
    ],
)
def test_what_differs_is_told(was: Entry | None, now: Entry | None, changes: list[str]) -> None:
    """One path, then and now."""
    found = find_changes({} if was is None else {b"x": was}, {} if now is None else {b"x": now})
    assert [f"{one.change} {one.text}" for one in found] == changes


def test_who_asks_can_decide_on_contents_that_are_not_known() -> None:
    """They are read, where that is worth it."""
    now = UNKNOWN._replace(changed_ns=9)
    assert not find_changes({b"x": UNKNOWN}, {b"x": now}, lambda *_: False)
    assert find_changes({b"x": UNKNOWN}, {b"x": now}, lambda *_: True)


_TREE = {b"d": FOLDER, b"d/e": FOLDER, b"d/e/x": FILE, b"y": FILE}
_WHOLE = Manifest(b"/w", _TREE)
_CUT = Manifest(
    b"/w", {b"d": FOLDER, b"y": FILE}, omitted=1, unlisted=frozenset([b"d"]), cut_by="it is large"
)
_OLDER = Manifest(b"/w", {b"d": FOLDER, b"y": FILE}, omitted=1)


@pytest.mark.parametrize("cut", [_CUT, _OLDER], ids=["named", "counted alone"])
def test_what_is_in_a_folder_that_was_not_listed_is_neither_new_nor_gone(cut: Manifest) -> None:
    """Nobody knows whether it was there, or is. One that was looked at itself is known."""
    assert only_sure(cut, _WHOLE, find_changes(cut.entries, _TREE)) == []
    gone = find_changes(_TREE, cut.entries)
    assert only_sure(_WHOLE, cut, gone) == []
    assert [one.text for one in only_sure(_WHOLE, cut, gone, [b"d/e/x"])] == ["d/e/x"]


def test_what_is_beside_a_folder_that_was_not_listed_is_known() -> None:
    """What came, and what went; also what is in a folder that came."""
    came = {b"d": FOLDER, b"n": FOLDER, b"n/x": FILE}
    found = only_sure(_CUT, Manifest(b"/w", came), find_changes(_CUT.entries, came))
    assert [f"{one.change} {one.text}" for one in found] == [
        "created n/",
        "created n/x",
        "deleted y",
    ]


def test_a_folder_that_was_renamed_is_counted() -> None:
    """It keeps its inode; one that was made, or only removed, is none."""
    before = Manifest(b"/w", {b"a": FOLDER, b"b": FOLDER._replace(inode=9)})
    renamed = Manifest(b"/w", {b"c": FOLDER, b"b": FOLDER._replace(inode=9), b"d": FILE})
    assert find_renamed_folders(before, renamed) == 1
    assert find_renamed_folders(before, before) == 0
    assert find_renamed_folders(before, Manifest(b"/w", {b"a": FOLDER})) == 0


def test_a_folder_with_the_inode_of_one_that_was_removed_is_not_renamed() -> None:
    """File systems give it again. The time of birth says which it is; else what was in it, or that nothing happened to it."""
    inside = FILE._replace(inode=5)
    before = Manifest(b"/w", {b"a": FOLDER, b"a/x": inside})
    made = FOLDER._replace(modified_ns=9)
    anew = Manifest(b"/w", {b"c": made, b"c/x": FILE._replace(inode=6)})
    moved = Manifest(b"/w", {b"c": made, b"c/x": inside})
    emptied = Manifest(b"/w", {b"c": made})
    assert [find_renamed_folders(before, one) for one in (anew, moved, emptied)] == [0, 1, 0]
    assert find_renamed_folders(before, emptied, lambda _: True) == 1
    assert find_renamed_folders(before, moved, lambda _: False) == 0


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (None, None, []),
        (GitState("a" * 40, "main"), GitState("a" * 40, "main"), []),
        (
            GitState("a" * 40, "main"),
            GitState("b" * 40, "main"),
            ["commit aaaaaaaaaa then, bbbbbbbbbb now"],
        ),
        (GitState("a" * 40, "main"), GitState("a" * 40, ""), ["branch main then, (none) now"]),
        (None, GitState(), ["a repository now, and none then"]),
        (GitState(), None, ["a repository then, and none now"]),
    ],
)
def test_another_commit_is_said(
    then: GitState | None, now: GitState | None, said: list[str]
) -> None:
    """Before the files."""
    found = say_differences(Manifest(b"/w", git=then), Manifest(b"/w", git=now), [])
    assert list(found) == said


def test_the_first_files_are_named_and_the_rest_counted() -> None:
    """Those of the repository's own folder follow from the commit."""
    then = {b"%d" % at: FILE for at in range(9)} | {b".git/index": FILE}
    said = list(say_differences(Manifest(b"/w"), Manifest(b"/w"), find_changes(then, {})))
    assert said == [*(f"gone {at}" for at in range(5)), "and 4 more"]
