"""What the next start of Playhead would load is known, found or missing."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead
from playhead.proxy.sandbox.filesystem import playhead_startup_paths
from playhead.proxy.sandbox.filesystem.playhead_startup_paths import find_startup_places
from playhead.proxy.sandbox.filesystem.protection import SYSTEM
from playhead.store import Store
from playhead.tests.support.bytecode import copy_bytecode
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead_anew
from playhead.tests.support.recordings import ask, record_run

_CALL = re.compile(r'^\d* *(\w+)\((?:AT_FDCWD, )?"(/[^"]+)".* = (-1 ENOENT|\d+)')
_OF_NOBODY = ("/proc", "/sys", "/dev", "/tmp")


def test_it_agrees_with_what_a_start_looks_for(tmp_path: Path) -> None:
    """Each file that the kernel was asked for, there or not, is a known place, or in a folder that is protected as a whole."""
    program = need("strace")
    trace = tmp_path / "trace"
    code = "import playhead.proxy.cli, playhead.proxy.run.launcher, playhead.proxy.run.sandboxed"
    words = [program, "-f", "-e", "trace=%file", "-o", str(trace)]
    environ = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    subprocess.run([*words, sys.executable, "-c", code], check=True, env=environ, cwd="/")
    own = (sys.prefix, sys.base_prefix, *playhead.__path__, sysconfig.get_path("stdlib"))
    folders = {*own, *map(os.path.realpath, own), *SYSTEM, *_OF_NOBODY}
    places = find_startup_places(environ)
    seen = [found for line in trace.read_text().splitlines() if (found := _CALL.match(line))]
    asked = {os.path.normpath(found[2]) for found in seen}
    strange = {
        path
        for path in asked - places
        if not any(f"{path}/".startswith(f"{folder}/") for folder in folders)
        and not os.path.isdir(path)
    }
    assert len(asked) > 500
    assert strange == set()


def test_landmarks_of_the_interpreter_are_in_every_folder_above_it() -> None:
    """A prefix is taken from the first of them that is there."""
    places = find_startup_places(os.environ)
    folder = Path(sys.executable).resolve().parent
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    for above in (folder, *folder.parents):
        assert str(above / "lib" / f"python{version}.zip") in places
    assert str(Path(sys.executable).parent / "pyvenv.cfg") in places


def test_other_places_are_those_of_their_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules that are imported before ours, libraries, programs, configuration: not what else is there."""
    monkeypatch.setattr(playhead_startup_paths, "SEARCHED", (str(tmp_path), f"{tmp_path}/missing"))
    (tmp_path / "encodings").mkdir()
    (tmp_path / "__pycache__").mkdir()
    for name in ("encodings/utf_8.py", "sitecustomize.py", "__pycache__/os.x.pyc", "agent.py"):
        (tmp_path / name).write_text("")
    environ = {
        "LD_LIBRARY_PATH": f"{tmp_path}/libraries",
        "OPENSSL_CONF": f"{tmp_path}/ssl.cnf",
        "PATH": f"{tmp_path}/bin:/usr/bin",
    }
    places = find_startup_places(environ)
    names = {path.removeprefix(f"{tmp_path}/") for path in places if path.startswith(str(tmp_path))}
    assert {"encodings/utf_8.py", "sitecustomize.py", "__pycache__/os.x.pyc", "missing"} <= names
    assert {"libraries/glibc-hwcaps", "ssl.cnf", "bin/playhead", "bin/bwrap"} <= names
    assert {"bin/cc", "bin/clang", "bin/as", "bin/ld"} <= names
    assert "agent.py" not in names
    assert f"{playhead_startup_paths._ask_openssl(4)}/openssl.cnf" in places


WITH_USER_SITE = """
import os, site
site.ENABLE_USER_SITE, site.USER_SITE = True, os.environ["HOME"] + "/.local/lib/packages"
"""
INSTALL = """
import os, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
folder = os.environ["HOME"] + "/.local/lib/packages"
os.makedirs(folder, exist_ok=True)
open(folder + "/installed.py", "w").close()
print(os.listdir(folder))
"""


def test_what_is_installed_for_the_user_is_written_to_a_copy(tmp_path: Path) -> None:
    """Where the user had no folder of packages, too: it is nothing that changed, and it is gone afterwards."""
    need("a sandbox")
    home = tmp_path / "home"
    home.mkdir()
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    words = [
        "replay",
        "tape",
        "--in-place",
        "--store",
        "store",
        "--",
        sys.executable,
        "-c",
        INSTALL,
    ]
    environ = {**os.environ, "HOME": str(home)}
    done = playhead_anew(*words, cwd=tmp_path, env=environ, first=WITH_USER_SITE)
    assert (done.returncode, done.stdout) == (0, "['installed.py']\n"), done.stderr
    assert list((home / ".local/lib/packages").iterdir()) == []


REWRITE = """
import glob, importlib.util, json, os, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
(library,) = glob.glob(os.environ["HOME"] + "/.cache/playhead/clock-kept.so")
bytecode = importlib.util.cache_from_source(json.__file__)
for path in (library, bytecode):
    content = open(path, "rb").read()
    os.unlink(path)
    open(path, "wb").write(content + b"more")
try:
    os.rename(os.environ["HOME"] + "/.cache", os.environ["HOME"] + "/other")
except OSError as error:
    print(error.strerror)
"""


@pytest.fixture
def rewriting(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Replay, in a process of its own, a command that rewrites what Playhead made and loads again."""
    (tmp_path / "home/.cache/playhead").mkdir(parents=True)
    (tmp_path / "home/.cache/playhead/clock-kept.so").write_bytes(b"library")
    copy_bytecode(tmp_path / "bytecode")
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    environ = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"),
    }
    for name in ("XDG_CACHE_HOME", "PYTHONDONTWRITEBYTECODE"):
        environ.pop(name, None)
    subprocess.run([sys.executable, "-c", "import json"], check=True, env=environ)

    def replay(*flags: str) -> subprocess.CompletedProcess[str]:
        words = [
            "replay",
            "tape",
            "--in-place",
            "--store",
            "store",
            *flags,
            "--",
            sys.executable,
            "-c",
            REWRITE,
        ]
        return playhead_anew(*words, cwd=tmp_path, env=environ, first=WITH_USER_SITE)

    return replay


def _made(folder: Path) -> dict[str, bytes]:
    found = [folder / "home/.cache/playhead/clock-kept.so"]
    found += (folder / "bytecode" / Path(json.__file__).parent.relative_to("/")).glob(
        "__init__.*.pyc"
    )
    return {str(path): path.read_bytes() for path in found}


def test_bytecode_and_libraries_are_rewritten_as_copies(
    tmp_path: Path, rewriting: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The folder of PYTHONPYCACHEPREFIX and that of preload libraries, which nobody can rename either."""
    need("a sandbox")
    before = _made(tmp_path)
    done = rewriting()
    assert (done.returncode, done.stdout) == (0, "Device or resource busy\n"), done.stderr
    assert len(before) == 2
    assert _made(tmp_path) == before


def test_bytecode_and_libraries_that_were_changed_are_said(
    tmp_path: Path, rewriting: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Outside of a sandbox it is 125; a library that is gone would be made anew."""
    (path,) = (path for path in _made(tmp_path) if path.endswith(".pyc"))
    done = rewriting("--no-sandbox", "--receipt", "receipt.json")
    assert done.returncode == 125, done.stderr
    changed = json.loads((tmp_path / "receipt.json").read_text())["changed"]
    assert path in {row["path"] for row in changed}
