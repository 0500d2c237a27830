"""Manifests are packed and unpacked without loss, and savepoints add up."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.folders.manifest import (
    Entry,
    GitState,
    Kind,
    Manifest,
    find_step,
    pack_manifest,
    pack_step,
    say_unlisted,
    show_path,
    unpack_manifest,
    unpack_step,
)
from playhead.tape.records.codec import BadRecord

FILE = Entry(Kind.FILE, 0o644, 3, 5, b"d" * 32, inode=1, changed_ns=2, unsaved="secret")
ENTRIES = {
    b"a": FILE,
    b"\xff\n": FILE._replace(size=0, digest=b""),
    b"l": Entry(Kind.LINK, 0o777, target=b"../\xfe"),
    b"d": Entry(Kind.FOLDER, 0o755),
    b"p": Entry(Kind.PIPE, 0o600),
}


@pytest.mark.parametrize(
    "git",
    [None, GitState(), GitState("a" * 40, "main", ("x", "\udcff"), 2), GitState(dirty=None)],
)
def test_a_manifest_comes_back(git: GitState | None) -> None:
    """Names that are not UTF-8 too."""
    made = Manifest(b"/w", ENTRIES, {b"build": "ignored"}, 1, 5, git, saved=True, seq=3)
    assert unpack_manifest(pack_manifest(made)) == made


def test_a_step_leads_from_one_manifest_to_the_next() -> None:
    """What was written, and what is gone."""
    before = Manifest(b"/w", ENTRIES)
    entries = {**ENTRIES, b"a": FILE._replace(size=4), b"new": FILE}
    del entries[b"l"]
    after = Manifest(b"/w", entries, seq=7)
    step = find_step(before, after)
    assert set(step.written) == {b"a", b"new"}
    assert step.gone == (b"l",)
    assert unpack_step(pack_step(step)) == step
    assert step.apply(before) == after


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\x81\xa1v\x02", b"\x81\xa1v\x01", b"\x93\1\2\3"])
def test_what_is_no_manifest_is_told(data: bytes) -> None:
    """A damaged row is no crash."""
    for read in (unpack_manifest, unpack_step):
        with pytest.raises(BadRecord):
            read(data)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (b"a b", "a b"),
        (b"\xff", "\\xff"),
        (b"a\nb", "a\\x0ab"),
        ("ä".encode(), "ä"),
        (b"a\\b", "a\\b"),
        (rb"a\x0a", r"a\x5cx0a"),
    ],
)
def test_a_path_is_shown_on_one_line(path: bytes, shown: str) -> None:
    """Whatever it holds."""
    assert show_path(path) == shown


@given(st.binary(max_size=12) | st.text(r"\x059ad\n\xad\u2028", max_size=12).map(str.encode))
def test_a_path_can_be_found_again_by_its_text(path: bytes) -> None:
    """So no two paths are shown alike."""
    shown = show_path(path)
    assert shown.isprintable()
    parts = re.split(r"\\x([0-9a-f]{2})", shown)
    back = [bytes.fromhex(one) if at % 2 else one.encode() for at, one in enumerate(parts)]
    assert b"".join(back) == path


FOLDER = Entry(Kind.FOLDER, 0o755)


def test_a_manifest_that_is_cut_comes_back() -> None:
    """With the folders that are not listed, and why; a step from it takes nothing for gone that it does not know."""
    entries = {b"d": FOLDER, b"d/x": FOLDER, b"y": FOLDER}
    whole = Manifest(b"/w", entries)
    named = frozenset([b"d"])
    cut = Manifest(b"/w", {b"d": FOLDER}, omitted=1, unlisted=named, cut_by="it is large")
    assert unpack_manifest(pack_manifest(cut)) == cut
    assert [cut.knows(one) for one in (b"d", b"d/x", b"d/x/y", b"y", b"dd")] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert find_step(whole, cut).gone == (b"y",)
    assert find_step(cut, cut).apply(cut).unlisted == named


def test_each_savepoint_says_what_was_not_listed() -> None:
    """Not as at the start; a savepoint of an older version does not say it."""
    whole = Manifest(b"/w", {b"d": FOLDER, b"d/x": FOLDER})
    cut = Manifest(
        b"/w", {b"d": FOLDER}, omitted=1, unlisted=frozenset([b"d"]), cut_by="it is large", seq=4
    )
    step = find_step(whole, cut)
    assert unpack_step(pack_step(step)) == step
    then = step.apply(whole)
    assert then.entries == whole.entries
    assert say_unlisted(then) == say_unlisted(cut) != ""
    assert find_step(then, whole).apply(then) == whole
    older = unpack_step(pack_step(step._replace(unlisted=None)))
    assert say_unlisted(older.apply(whole)) == ""
    assert say_unlisted(older.apply(cut)) == say_unlisted(cut)


@pytest.mark.parametrize(
    ("unlisted", "omitted", "cut_by", "said"),
    [
        ((), 0, "", ""),
        ((b"a",), 1, "it is large", "a/ is not listed, because it is large"),
        ((b"a", b"b"), 2, "", "a/, b/ are not listed"),
        ((b"",), 1, "", "./ is not listed"),
        ((b"a", b"b", b"c", b"d", b"e"), 5, "", "a/, b/, c/ and 2 more folders are not listed"),
        ((), 9, "", "9 folders are not listed"),
    ],
)
def test_what_is_not_listed_is_said(
    unlisted: tuple[bytes, ...], omitted: int, cut_by: str, said: str
) -> None:
    """By name and reason; an older manifest has the number alone."""
    found = Manifest(b"/w", omitted=omitted, unlisted=frozenset(unlisted), cut_by=cut_by)
    assert say_unlisted(found, Manifest(b"/w")) == said
