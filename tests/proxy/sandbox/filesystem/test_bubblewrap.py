"""What a command sees of the file system with bubblewrap: its working folder, the system, and nothing of a home."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem import bubblewrap
from playhead.proxy.sandbox.filesystem.bubblewrap import Files, make_files
from playhead.store import Store
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

NEEDS_BWRAP = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture(name="bubblewrap")
def need_bubblewrap() -> None:
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


def test_a_folder_around_the_working_folder_is_one_mount_with_it(home: Path) -> None:
    """Else nothing could be renamed from one into the other."""
    given = {"HOME": str(home), "PATH": "/usr/bin"}
    (home / "agent/in").mkdir()
    os.chdir(home / "agent/in")
    made = make_files(given, ["true"], public=home / "ca", shared=[home / "agent"])
    assert (made.writable, made.working) == ((str(home / "agent"),), str(home / "agent/in"))


def test_places_that_are_named_from_the_working_folder_do_not_empty_it(home: Path) -> None:
    """As a store beside it; what leads through another folder does empty that one."""
    (home / "other").mkdir()
    for public in ("../store/ca", "../agent/../store/ca", "../other/../store/ca"):
        given = {"HOME": str(home / "none"), "PATH": "/usr/bin"}
        made = make_files(given, ["true"], public=Path(public), shared=[])
        assert all(os.path.isabs(one) for one in made.empty)
        assert str(home / "agent") not in made.empty


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


@pytest.fixture
def root(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a system, programs and other files, and a folder in it in which we are."""
    made = tmp_path / "root"
    for name in ("usr/bin", "etc", "var/lib", "var/www", "srv", "disk/py/bin", "data/bin", "opt"):
        (made / name).mkdir(parents=True)
    for name in ("work", "data/home", "data/tmp"):
        (made / name).mkdir()
    (made / "disk/py/bin/python").write_text("")
    (made / "data/bin/agent").write_text(f"#!{made}/disk/py/bin/python\n")
    (made / "data/bin/agent").chmod(0o755)
    (made / "data/secret").write_text("")
    (made / "bin").symlink_to("usr/bin")
    (made / "mine").symlink_to("data")
    monkeypatch.setattr(bubblewrap, "_ROOT", made)
    for name in ("_TEMPORARY", "_HOMES", "_OFTEN_LINKS"):
        monkeypatch.setattr(bubblewrap, name, ())
    monkeypatch.setattr(bubblewrap, "_of_ours", lambda public: [public])
    monkeypatch.chdir(made / "work")
    return made


def in_root(root: Path, *command: str, **environ: str) -> Files:
    """What such a command sees, whose home and temporary folder are in one with other files."""
    given = {
        "HOME": f"{root}/data/home",
        "TMPDIR": f"{root}/data/tmp",
        "PATH": f"{root}/usr/bin",
        **environ,
    }
    sockets = [f"{root}/srv/socket"] if (root / "srv/socket").exists() else []
    words = [word.format(root) for word in command or ("true",)]
    return make_files(given, words, public=root / "none", shared=[], sockets=sockets)


def test_what_is_in_the_root_folder_is_the_systems_or_not_there(root: Path) -> None:
    """Elsewhere what the command needs is seen; the receipt lists each of these, and no other."""
    (root / "srv/socket").touch()
    made = in_root(root, "{}/data/bin/agent")
    assert made.system == tuple(f"{root}/{name}" for name in ("etc", "usr", "var/lib"))
    assert set(made.visible) == {
        f"{root}/{name}" for name in ("data/bin", "disk/py/bin", "opt", "srv/socket")
    }
    seen = ("usr/a", "var/lib/a", "opt/a", "data/bin/agent", "disk/py/bin/python", "work/a")
    hidden = ("data/secret", "data/home/a", "disk/py/lib", "srv/a", "var/www/a", "file", "new/a")
    assert [name for name in seen if not made.sees(f"{root}/{name}")] == []
    assert [name for name in hidden if made.sees(f"{root}/{name}")] == []


def test_links_in_the_root_folder_stay(root: Path) -> None:
    """By them programs and libraries are found; what is named by one is where it leads."""
    made = in_root(root, "{}/mine/bin/agent")
    words = " ".join(made.words())
    for name, target in (("bin", "usr/bin"), ("mine", "data")):
        assert f"--symlink {target} {root}/{name}" in words
    assert f"{root}/data/bin" in made.visible
    assert not any(one.startswith(f"{root}/mine") for one in made.visible)


def test_what_is_needed_around_an_empty_folder_leaves_that_empty(root: Path) -> None:
    """A home in a folder of programs, and programs in that home: each is mounted after what it is in."""
    (root / "data/lib").mkdir()
    (root / "data/home/bin").mkdir()
    made = in_root(root, "{}/data/bin/agent", PATH=f"{root}/data/home/bin")
    assert {f"{root}/data", f"{root}/data/home/bin"} <= set(made.visible)
    assert [made.sees(f"{root}/data/{name}") for name in ("a", "home/a", "home/bin/a")] == [
        True,
        False,
        True,
    ]
    words = made.words()
    places = [f"{root}/data/home/bin", f"{root}/data/home", f"{root}/data"]
    ends = [len(words) - 1 - words[::-1].index(place) for place in places]
    assert ends == sorted(ends, reverse=True)


def test_a_path_with_a_detour_leads_to_the_same_place(root: Path) -> None:
    """Of `conf/../lib` the first folder is there, and empty; nothing is mounted over what it leads back to."""
    for name in ("data/home/conf", "data/home/lib"):
        (root / name).mkdir()
    made = in_root(root, PYTHONPATH=f"{root}/data/home/conf/../lib")
    assert f"{root}/data/home/lib" in made.visible
    assert f"{root}/data/home/conf" in made.empty
    assert not any(".." in Path(word).parts for word in made.words())


def test_an_empty_folder_in_the_working_folder_is_real(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written in the working folder stays, in its temporary folder too; the receipt calls neither empty."""
    temporary = root / "work" / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    made = in_root(root, TMPDIR=str(temporary))
    assert made.sees(str(temporary / "a"))
    assert made.empty == (f"{root}/data/home",)


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

MOVE = """
import json, os
told = {}
for path in PATHS:
    try:
        os.rename(path, path + "-moved")
        told[path] = "moved"
    except OSError as error:
        told[path] = error.strerror
print(json.dumps({"moved": told, "root": sorted(os.listdir("/"))}))
"""


@NEEDS_BWRAP
def test_no_folder_above_what_is_seen_can_be_moved(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those above the working folder nor those above a program: they are made in memory, and would be the command's."""
    need("a sandbox")
    agent = place / "home/tools/deep/bin"
    agent.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{agent}:{os.environ['PATH']}")
    above = [agent, *agent.parents, place / "work", *place.parents]
    paths = sorted({str(one) for one in above if str(one) != "/"})
    code = f"{ASK}PATHS = {paths}\n{MOVE}"
    flags = ("--store", place / "store", "--receipt", place / "receipt.json", "--sandbox-files")
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [path for path, said in told["moved"].items() if said == "moved"] == []
    receipt = json.loads((place / "receipt.json").read_text())["sandbox"]["files"]
    assert str(agent) in receipt["visible"]
    shown = [one for name in ("system", "visible", "writable", "empty") for one in receipt[name]]
    tops = {one.split("/")[1] for one in shown} | {"dev", "proc", "run", "var"}
    assert [
        name for name in told["root"] if name not in tops and not os.path.islink(f"/{name}")
    ] == []


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
    done = playhead(
        "replay", "tape", "--in-place", *flags, "--", sys.executable, "-S", "-c", ASK + LOOK
    )
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
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", ASK + code)
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


COMMIT = """
import subprocess
git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
print(subprocess.run([*git, "log", "--format=%s"], check=True, stdout=subprocess.PIPE, text=True).stdout)
"""


@NEEDS_BWRAP
def test_a_repository_that_git_keeps_elsewhere_is_there_as_a_copy(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command commits to it; the real one stays as it is."""
    need("a sandbox")
    need("git")
    git = "git -c user.name=a -c user.email=a@example.com"
    made = f"{git} init -q main; cd main; {git} commit -q --allow-empty -m one; {git} worktree add -q ../tree"
    subprocess.run(["sh", "-ec", made], cwd=place, check=True, capture_output=True)
    monkeypatch.chdir(place / "tree")
    flags = ("--store", "../store", "--receipt", place / "receipt.json", "--sandbox-files")
    done = playhead("replay", "tape", *flags, "--", sys.executable, "-S", "-c", f"{ASK}{COMMIT}")
    assert (done.returncode, done.stdout.split()) == (0, ["two", "one"]), done.stderr
    told = json.loads((place / "receipt.json").read_text())
    assert told["folder"]["elsewhere"] == [str(place / "main/.git")]
    assert str(place / "main/.git") in told["sandbox"]["files"]["writable"]
    assert str(place / "tree") not in told["sandbox"]["files"]["empty"]
    assert "." not in told["sandbox"]["files"]["empty"]
    seen = subprocess.run(["git", "log", "--format=%s"], check=True, capture_output=True, text=True)
    assert seen.stdout.split() == ["one"]
