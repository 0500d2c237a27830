"""Which folders a command works in: with the repository that git would write to, and never a home around it."""

from pathlib import Path

from playhead.proxy.folder.area import Area, find_area


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
