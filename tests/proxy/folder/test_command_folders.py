"""Which folders a command works in: with the repository that git would write to, and never a home around it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from playhead.proxy.folder.command_folders import Area, Around, find_area, find_around, find_linked
from playhead.tests.support.needs import need


def _area(working: Path, home: Path) -> Area:
    return find_area(str(working), str(home))


def test_a_folder_in_no_repository_is_alone(tmp_path: Path) -> None:
    """The working folder, and nothing else."""
    assert _area(tmp_path, tmp_path.parent) == Area(str(tmp_path))


def test_below_the_root_of_a_repository_it_is_the_whole_work_tree(tmp_path: Path) -> None:
    """A commit writes above the working folder."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "a/b").mkdir(parents=True)
    assert _area(tmp_path / "a/b", tmp_path / "home") == Area(str(tmp_path))


def test_a_work_tree_whose_repository_is_elsewhere_has_that_too(tmp_path: Path) -> None:
    """`git worktree`: what it shares with others, and its own folder in there."""
    own = tmp_path / "main/.git/worktrees/w"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "w"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own}\n")
    assert _area(tree, tmp_path / "home") == Area(str(tree), (str(tmp_path / "main/.git"),))


def test_a_submodule_has_its_repository_in_the_one_around_it(tmp_path: Path) -> None:
    """Its `.git` is a file with a relative path."""
    (tmp_path / ".git/modules/sub").mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    area = _area(tmp_path / "sub", tmp_path / "home")
    assert area == Area(str(tmp_path / "sub"), (str(tmp_path / ".git/modules/sub"),))


def test_a_home_that_is_a_repository_is_not_taken_for_the_folder(tmp_path: Path) -> None:
    """Only its repository is."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    assert _area(tmp_path / "work", tmp_path) == Area(
        str(tmp_path / "work"), (str(tmp_path / ".git"),)
    )
    assert _area(tmp_path, tmp_path) == Area(str(tmp_path))


def test_a_git_file_that_leads_nowhere_is_no_matter(tmp_path: Path) -> None:
    """Whatever it says."""
    for text in ("", "gitdir: /nowhere\n", "gitdir:\n", "\0" * 9):
        (tmp_path / ".git").write_text(text)
        assert _area(tmp_path, tmp_path / "home").folder == str(tmp_path)


def _init(folder: Path) -> None:
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")


def test_a_command_that_sees_little_sees_the_work_tree_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is a repository of the same user, and holds no home or folder for temporary files."""
    home, top, working = tmp_path / "home", tmp_path / "top", tmp_path / "top/a/b"
    working.mkdir(parents=True)

    def around(home: Path = home) -> Around:
        return find_around(_area(working, home), str(working), str(home))

    assert around() == Around()
    (top / ".git").mkdir()
    assert "no repository" in around().why_not
    shutil.rmtree(top / ".git")
    _init(top)
    assert around() == Around(str(top))
    assert find_around(_area(top, home), str(top), str(home)) == Around()
    assert "contains the home folder" in around(top / "home").why_not
    monkeypatch.setenv("TMPDIR", str(top / "a"))
    assert "for temporary files" in around().why_not
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in around().why_not


def test_the_work_tree_of_a_repository_elsewhere_is_seen_too(made: Path) -> None:
    """If that names it."""
    for name, seen in (("tree", True), ("main/sub", True), ("fake", False)):
        working = made / name / "in"
        working.mkdir(parents=True)
        if name == "fake":
            (made / name / ".git").write_text(f"gitdir: {made}/other/.git\n")
        home = made / "home"
        found = find_around(_area(working, home), str(working), str(home))
        assert bool(found.folder) is seen is not bool(found.why_not)


MADE = (
    'cd "$1"; g() { git -c user.name=a -c user.email=a@example.com -c protocol.file.allow=always "$@"; };'
    " g init -q main; cd main; g commit -q --allow-empty -m i; g worktree add -q ../tree;"
    " g init -q ../other; cd ../other; g commit -q --allow-empty -m i; cd ../main;"
    " g submodule --quiet add ../other sub"
)


@pytest.fixture(name="made")
def make_repositories(tmp_path: Path) -> Path:
    """A repository `main` with a submodule `sub`, its second work tree `tree`, and another repository, `other`."""
    need("git")
    subprocess.run(["sh", "-ec", MADE, "sh", str(tmp_path)], check=True, capture_output=True)
    return tmp_path


def _linked(folder: Path) -> tuple[str, ...]:
    return find_linked(_area(folder, folder.parent / "home"))


def test_a_repository_elsewhere_that_names_the_work_tree_is_its_own(made: Path) -> None:
    """As git writes it; one that is in the folder itself is not elsewhere."""
    assert _linked(made / "tree") == (str(made / "main/.git"),)
    assert _linked(made / "main/sub") == (str(made / "main/.git/modules/sub"),)
    assert _linked(made / "main") == ()


def test_a_git_file_alone_opens_no_folder(made: Path) -> None:
    """A command can write any path into it, and files of git's beside it: it does not see what is there for that."""
    secret, tree, fake = made / "secret", made / "tree", made / "tree/fake"
    secret.mkdir()
    fake.mkdir()
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "gitdir").write_text(f"{tree}/.git\n")
    (fake / "config").write_text(f"[core]\n\tworktree = {tree}\n")
    for text in (f"{secret}", f"{made}/other/.git", f"{made}/main/.git/modules/sub"):
        (tree / ".git").write_text(f"gitdir: {text}\n")
        assert _linked(tree) == ()
        (tree / ".git").write_text(f"gitdir: {fake}\n")
        (fake / "commondir").write_text(f"{text}\n")
        assert _linked(tree) == ()


def test_the_git_file_of_another_work_tree_opens_no_folder(made: Path) -> None:
    """Neither by a link nor by a second name."""
    (made / "work").mkdir()
    (made / "work/.git").symlink_to(made / "tree/.git")
    assert _linked(made / "work") == ()
    (made / "work/.git").unlink()
    (made / "work/.git").hardlink_to(made / "tree/.git")
    assert _linked(made / "work") == ()


def test_a_repository_around_the_folder_is_not_one_of_its_own(tmp_path: Path) -> None:
    """As a home's."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    assert find_linked(_area(tmp_path / "work", tmp_path)) == ()
