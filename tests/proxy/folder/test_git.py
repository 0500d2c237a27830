"""Git is asked where a repository stands, and no program is run that the repository names."""

import subprocess
from pathlib import Path

import pytest

from playhead.proxy.folder.git import find_git_state
from playhead.tape.folders.manifest import GitState
from playhead.tests.support.needs import need


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit, a changed file and a new one."""
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a").write_text("1")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "1")
    (folder / "a").write_text("22")
    (folder / "b c").write_text("2")
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
    words = (need("git"), *who, *words)
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_state_has_commit_branch_and_dirty_files(repository: Path) -> None:
    """As git says; the index is not written."""
    before = (repository / ".git/index").read_bytes()
    state = find_git_state(str(repository))
    head = git(repository, "rev-parse", "HEAD").strip()
    assert state == GitState(head, "main", ("a", "b c"), 2)
    assert (repository / ".git/index").read_bytes() == before
    git(repository, "pack-refs", "--all")
    assert find_git_state(str(repository)) == state
    git(repository, "checkout", "-q", "--detach")
    assert find_git_state(str(repository)) == GitState(head, "", ("a", "b c"), 2)


def test_a_folder_without_a_repository_has_no_state(tmp_path: Path) -> None:
    """Nor has a repository without a commit a head."""
    assert find_git_state(str(tmp_path)) is None
    git(tmp_path, "init", "-q")
    state = find_git_state(str(tmp_path))
    assert state is not None
    assert (state.head, state.branch) == ("", "main")


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = {}\n",
        "[CORE]\n fsMonitor={}\n",
        '[filter "x"]\n\tclean = {}\n',
        "[include]\n\tpath = {}\n",
        "[core]\n\thooksPath = {}\n",
    ],
)
def test_no_program_that_a_repository_names_is_run(
    repository: Path, tmp_path: Path, settings: str
) -> None:
    """A command in a sandbox may have written it; commit and branch are read from files."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    with (repository / ".git/config").open("a") as file:
        file.write(settings.format(program))
    (repository / ".gitattributes").write_text("* filter=x\n")
    state = find_git_state(str(repository))
    assert state is not None
    assert state.branch == "main"
    assert state.dirty is None
    assert not (tmp_path / "ran").exists()
