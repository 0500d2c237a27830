"""`playhead completion SHELL` prints what a shell reads, and shells then ask for commands, flags and runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.recordings import ask, record_run

SHELLS = ("bash", "zsh", "fish")


def _script(shell: str, capfd: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["completion", shell])
    assert ended.value.code == 0
    said = capfd.readouterr()
    assert said.err == ""
    return said.out


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_of_the_shell(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It asks the command `playhead`, and says so on no other stream."""
    text = _script(shell, capfd)
    assert f"_PLAYHEAD_COMPLETE={shell}_complete" in text


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_can_read_the_script(
    shell: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where it is installed."""
    need(shell)
    file = tmp_path / "script"
    file.write_text(_script(shell, capfd))
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_shell_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    """With those that are known."""
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "'bash', 'zsh', 'fish'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("playhead com", {"completion"}),
        ("playhead inl", set()),
        ("playhead show mi", {"mine", "mint"}),
        ("playhead show la", {"latest"}),
        ("playhead replay mine", {"mine"}),
        ("playhead diff mine m", {"mine", "mint"}),
        ("playhead show --gra", {"--graph"}),
    ],
)
def test_words_are_completed(words: str, expected: set[str], tmp_path: Path) -> None:
    """As bash asks for them; names of runs come from the store."""
    with Store.open(tmp_path / ".playhead") as opened:
        for name in ("mine", "mint"):
            record_run(opened, name, [ask()])
    given = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
        "_PLAYHEAD_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-m", "playhead.proxy.cli"],
        env={**os.environ, **given},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = filter(None, done.stdout.splitlines())
    assert {line.partition(",")[2] for line in lines} == expected
