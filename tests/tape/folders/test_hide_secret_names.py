"""Secrets in the names of files: hidden where they are stored, and found again in the folder."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.folders.hide_secret_names import (
    find_branch,
    find_names,
    hide_manifest,
    hide_names,
    hide_step,
)
from playhead.tape.folders.manifest import Entry, GitState, Kind, Manifest, Step

SECRET, HIDDEN = b"sk_live_4eC39", b"sk_live_aaaaa"
_FILE = Entry(Kind.FILE, 0o644, 3, digest=b"d" * 32, inode=7)


def redact(text: bytes) -> bytes:
    """Replace the one secret."""
    return text.replace(SECRET, HIDDEN)


def test_a_manifest_has_no_secret_in_any_name() -> None:
    """Paths, targets of links, what was left out, the folder, and the names that git has; a renamed file is another one."""
    link = Entry(Kind.LINK, 0o777, target=b"a/" + SECRET, inode=8)
    git = GitState("c0ffee", f"fix/{SECRET.decode()}", (SECRET.decode(), "b"), 2)
    manifest = Manifest(
        b"/home/" + SECRET,
        {b"a/" + SECRET: _FILE, b"link": link, b"plain": _FILE},
        {SECRET + b".big": "large"},
        git=git,
    )
    hidden = hide_manifest(manifest, redact)
    assert SECRET not in repr(hidden).encode()
    assert hidden.entries[b"plain"] is _FILE
    assert hidden.entries[b"a/" + HIDDEN].inode == 0
    assert hidden.entries[b"link"].target == b"a/" + HIDDEN
    step = hide_step(Step(3, {SECRET: _FILE}, (b"x" + SECRET,), frozenset([b"d" + SECRET])), redact)
    assert (list(step.written), step.gone) == ([HIDDEN], (b"x" + HIDDEN,))
    assert step.unlisted == frozenset([b"d" + HIDDEN])


@given(st.dictionaries(st.binary(min_size=1, max_size=9), st.just(_FILE), max_size=6))
def test_names_without_secrets_stay(entries: dict[bytes, Entry]) -> None:
    """Nothing is copied or renamed."""
    manifest = Manifest(b"/f", entries)
    assert hide_manifest(manifest, redact) is manifest
    assert hide_names(entries, redact) == {}


def test_an_unchanged_folder_is_as_it_was() -> None:
    """A name that was hidden stands for the file that has it now; where none has, it stays hidden."""
    hidden = hide_manifest(Manifest(b"/f", {SECRET: _FILE, b"gone" + SECRET: _FILE}), redact)
    found = find_names(hidden, {SECRET: _FILE, b"new": _FILE}, redact)
    assert set(found.entries) == {SECRET, b"gone" + HIDDEN}


def test_a_branch_that_was_hidden_is_the_one_that_is_checked_out() -> None:
    """Another one is another, and one that had no secret stays."""
    git = GitState("c0ffee", f"fix-{SECRET.decode()}")
    hidden = hide_manifest(Manifest(b"/f", {}, git=git), redact)
    found = find_branch(hidden, git, redact)
    assert found.git == git
    for other in (GitState("c0ffee", "main"), GitState("c0ffee", ""), None):
        assert find_branch(hidden, other, redact) is hidden
    plain = Manifest(b"/f", {}, git=GitState("c0ffee", "main"))
    assert find_branch(plain, git, redact) is plain


def test_a_link_that_points_to_where_it_did_is_the_same() -> None:
    """Its target was hidden; one that points elsewhere by now is another one, with or without a secret."""

    def link(target: bytes) -> Entry:
        return Entry(Kind.LINK, 0o777, target=target)

    then = {name: link(b"to/" + SECRET) for name in (b"same", b"other", b"gone")}
    hidden = hide_manifest(Manifest(b"/f", then), redact)
    present = {b"same": link(b"to/" + SECRET), b"other": link(b"elsewhere")}
    found = find_names(hidden, present, redact)
    assert found.entries[b"same"].target == b"to/" + SECRET
    assert found.entries[b"gone"].target == b"to/" + HIDDEN
    assert found.entries[b"other"].target in (b"to/" + SECRET, b"to/" + HIDDEN)
    assert found.entries[b"other"].target != b"elsewhere"
