"""What a command sees of the file system with bubblewrap: its working folder, the system, and nothing of a home."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem.bubblewrap import Files, make_files
from playhead.store import Store
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

NEEDS_BWRAP = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture
def bubblewrap() -> None:
    """Skip a test where bubblewrap is missing."""
    need("bubblewrap")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with secrets, programs, and an agent's folder, in which we are."""
    made = tmp_path / "home"
    for name in (
        "agent",
        ".ssh",
        "bin",
        ".local/bin",
        ".local/share",
        "tool/bin",
        "tool/lib",
        "lib",
    ):
        (made / name).mkdir(parents=True)
    (made / "lib" / "helper.py").write_text("")
    (made / "tool" / "bin" / "run").write_text("#!/bin/sh\n")
    (made / "tool" / "bin" / "run").chmod(0o755)
    (made / "bin" / "run").symlink_to("../tool/bin/run")
    monkeypatch.chdir(made / "agent")
    monkeypatch.setattr(shutil, "which", _pretend(shutil.which))
    return made


def _pretend(real: object) -> object:
    def which(name: str, **more: object) -> object:
        return "/usr/bin/bwrap" if name == "bwrap" else real(name, **more)  # type: ignore[operator]

    return which


def files(home: Path, *command: str, **environ: str) -> Files:
    """What such a command sees."""
    given = {"HOME": str(home), "PATH": "/usr/bin", **environ}
    return make_files(given, command or ("true",), public=home / "ca", shared=[])


def test_a_home_is_empty_but_for_what_is_needed(home: Path) -> None:
    """The working folder is the real one, the rest is not there."""
    made = files(home)
    assert made.writable == (str(home / "agent"),)
    for name, seen in (("agent/code.py", True), (".ssh/id", False), ("tool/bin/run", False)):
        assert made.sees(str(home / name)) is seen
    assert made.sees("/usr/bin/env")
    assert made.sees(sys.executable)


@pytest.mark.parametrize(
    ("command", "environ", "seen", "hidden"),
    [
        ("run", {"PATH": "{}/bin"}, ("bin", "tool/lib"), (".ssh", ".local/share")),
        ("true", {"PATH": "{}/.local/bin"}, (".local/bin",), (".local/share",)),
        ("true", {"PATH": "{}/tool/bin"}, ("tool/lib",), ("lib",)),
        ("true", {"VIRTUAL_ENV": "{}/tool"}, ("tool/lib",), ("bin",)),
        ("true", {"PYTHONPATH": "{0}/lib:{0}/none"}, ("lib/helper.py",), ("bin",)),
        ("python {}/lib/helper.py", {}, ("lib/helper.py",), ("bin",)),
        ("true {}/.ssh", {}, (), (".ssh",)),
        ("true", {"PATH": "{0}:{0}/bin"}, ("bin",), (".ssh",)),
    ],
)
def test_what_a_program_needs_stands_in_the_home(
    home: Path, command: str, environ: dict[str, str], seen: tuple[str], hidden: tuple[str]
) -> None:
    """Where links lead, what a program is installed with, and what stands beside a script."""
    given = {name: value.format(home) for name, value in environ.items()}
    made = files(home, *command.format(home).split(), **given)
    assert [name for name in seen if not made.sees(str(home / name))] == []
    assert [name for name in hidden if made.sees(str(home / name))] == []
    inside = [one for one in made.visible for it in made.visible if one.startswith(f"{it}/")]
    assert inside == []


@pytest.mark.parametrize("working", ["", ".."])
def test_a_home_cannot_be_the_working_folder(
    home: Path, working: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would be hidden; nor can what the home stands in."""
    monkeypatch.chdir(home / working)
    with pytest.raises(EngineError, match="hides the home folder, and the command would run in"):
        files(home)


def test_a_working_folder_that_was_removed_is_said(home: Path) -> None:
    """There is nothing to be shown."""
    (home / "agent").rmdir()
    with pytest.raises(EngineError, match="the working folder, which was removed"):
        files(home)


def test_the_root_is_no_home(home: Path) -> None:
    """Though some containers say so: the system is still there."""
    made = make_files({"HOME": "/"}, ["true"], public=home / "ca", shared=[])
    assert "/" not in made.empty
    assert made.sees("/usr/bin/env")


def test_what_the_user_cannot_look_into_is_not_shown(home: Path) -> None:
    """An empty HOME means that of root; a program or a script in a closed folder is no traceback either."""
    need("root")
    closed = home / "closed"
    closed.mkdir(0o700)
    words = [f"{closed}/bin/run", f"{closed}/script.py"]
    os.seteuid(SOMEBODY)
    try:
        made = make_files(
            {"HOME": "", "PATH": f"{closed}/bin:/usr/bin"}, words, public=home / "ca", shared=[]
        )
    finally:
        os.seteuid(0)
    assert not any(place.startswith(str(closed)) for place in made.visible)


def test_without_bubblewrap_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says what is missing, and how it is installed."""
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(EngineError, match=r"\(bwrap\), which is not installed") as caught:
        files(tmp_path)
    assert "apt install bubblewrap" in caught.value.hint


# ---- for real ----------------------------------------------------------------------------------------

ASK = """
import urllib.request
asked = urllib.request.Request(
    "https://api.test/v1/runs", b"", {"content-type": "application/json"}
)
urllib.request.urlopen(asked).read()
"""
LOOK = """
import json, os, tempfile
def tried(path):
    try:
        open(path, "w").close()
        return True
    except OSError:
        return False
home = os.path.expanduser("~")
print(json.dumps({
    "home": sorted(os.listdir(home)),
    "wrote": [name for name in ("here", "/usr/x", f"{home}/x", "/run/x", "/etc/x") if tried(name)],
    "temporary": bool(tempfile.mkdtemp()),
    "devices": sorted(set(os.listdir("/dev")) - {"mqueue", "ptmx", "pts", "shm", "core", "fd", "console",
        "stdin", "stdout", "stderr", "tty", "null", "zero", "full", "random", "urandom"}),
}))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's folder beside a tape, in which we are."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    for name in ("work", "home", "home/.ssh"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@NEEDS_BWRAP
@pytest.mark.parametrize("more", [(), ("--sandbox", "strict")])
def test_a_replay_sees_its_folder_and_the_system(place: Path, more: tuple[str, ...]) -> None:
    """What it writes in its folder stays, elsewhere nothing does; the receipt tells what was seen."""
    flags: tuple[str | Path, ...] = (
        "--store",
        place / "store",
        "--receipt",
        place / "receipt.json",
        "--sandbox-files",
        *more,
    )
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-c", ASK + LOOK)
    assert done.returncode == 0, done.stderr
    home = str(place / "home")
    assert json.loads(done.stdout) == {
        "home": [],
        "wrote": ["here", f"{home}/x"],
        "temporary": True,
        "devices": [],
    }
    assert os.listdir(place / "work") == ["here"]
    assert set(os.listdir(home)) - {".cache"} == {".ssh"}  # of these the first is ours
    told = json.loads((place / "receipt.json").read_text())["sandbox"]["files"]
    assert told["writable"] == [told["working"]] == [str(place / "work")]
    assert home in told["empty"]
    assert ("contained, strict, files too: 0" if more else "contained, files too: 0") in done.stderr


@NEEDS_BWRAP
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 120),  # of a signal
        # The launcher passes it on to the command's group, of which bubblewrap is none.
        (
            "import os, signal, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
            "os.killpg(0, signal.SIGTERM)",
            9,
        ),
    ],
)
def test_the_code_is_the_commands(place: Path, code: str, expected: int) -> None:
    """Through bubblewrap, too."""
    flags = ("--store", place / "store", "--sandbox-files")
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-c", ASK + code)
    assert done.returncode == expected, done.stderr


@NEEDS_BWRAP
def test_bubblewrap_that_fails_is_said(place: Path) -> None:
    """With its own words; nothing is run."""
    (place / "bin").mkdir()
    (place / "bin" / "bwrap").write_text("#!/bin/sh\necho cannot >&2; exit 1\n")
    (place / "bin" / "bwrap").chmod(0o755)
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    flags = ("--store", place / "store", "--sandbox-files")
    done = playhead("replay", "tape", *flags, "--", "touch", "made", env={"PATH": path})
    assert (done.returncode, os.listdir(place / "work")) == (125, [])
    assert "cannot\n" in done.stderr
    assert "bubblewrap ended before the command began" in done.stderr


def test_files_need_a_sandbox(place: Path) -> None:
    """Asked for without one, it is refused: nobody is to believe that they were hidden."""
    flags = ("--store", place / "store", "--sandbox-files")
    for words in (("replay", "tape", "--no-sandbox"), ("record",)):
        done = playhead(*words, *flags, "--", "touch", "made")
        assert done.returncode in (2, 125)
        assert "--sandbox-files needs a sandbox" in done.stderr
    assert os.listdir(place / "work") == []
