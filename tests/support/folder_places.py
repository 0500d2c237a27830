"""Where a working folder can be (`folder_cases.PLACES`): each is made, and a command is run on it; a process in mounts of its own.

folder_places FOLDER      prints JSON: of each place `mode`, what was `said`, the `effects`, and whether all is `untouched`
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from playhead.proxy.folder import execution_folder as module
from playhead.proxy.folder.command_folders import find_area
from playhead.proxy.folder.execution_folder import AUTO, OVERLAY, Wanted, prepare
from playhead.proxy.folder.overlay_support import command_words
from playhead.proxy.sandbox.kernel.syscalls import MS_BIND, MS_RDONLY, MS_REMOUNT, mount
from playhead.store import RunInfo, Store
from playhead.tests.support.folder_cases import PLACES
from playhead.tests.support.folders import make_case, snapshot

_WRITES = "open('new.txt', 'w').write('x'); os.unlink('keep.txt')"


class Case:
    """One place, in a folder of its own."""

    def __init__(self, top: Path) -> None:
        """Make a working folder on the disk."""
        self.top = top
        self.work = self.working = top / "work"
        self.home = Path("/nobody")
        self.store = top / "store"
        self.mode = OVERLAY
        self.program = _WRITES
        self.watched = [self.work]
        make_case(self.work)

    def run(self) -> dict[str, object]:
        """Run a command on it; give what came of it."""
        before = [snapshot(one) for one in self.watched]
        area = find_area(str(self.working), str(self.home))
        with Store.open(self.store) as store:
            info = asyncio.run(_make_run(store))
            with closing(prepare(store, info, area, Wanted(self.mode))) as made:
                program = f"import os\n{self.program}" if made.mounts else ""
                words = command_words(made.mounts, made.hidden, of_user=True)
                done = subprocess.run(
                    [*words, sys.executable, "-S", "-c", program],
                    cwd=self.working,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
                # What the whole machine does meanwhile is nobody's.
                written = made.find_written().effects if made.mounts else []
                effects = [f"{one.change} {one.text}" for one in written]
                said, mode = made.said, made.mode
        return {
            "mode": mode,
            "said": said,
            "effects": effects,
            "untouched": before == [snapshot(one) for one in self.watched],
        }


async def _make_run(store: Store) -> RunInfo:
    info = await store.runs.create("r", mode="record", at_ns=1)
    return await store.runs.seal(info, reason="it ended", at_ns=2)


def _on_tmpfs(case: Case) -> None:
    mount("tmpfs", str(case.work), "tmpfs")
    make_case(case.work / "w")
    case.work = case.working = case.work / "w"


def _as_in_a_container(case: Case) -> None:
    """The root of a container: an overlay, on which no upper layer can be."""
    for name in ("lower", "upper", "tmp", "root"):
        (case.top / name).mkdir()
    layers = f"lowerdir={case.top}/lower,upperdir={case.top}/upper,workdir={case.top}/tmp,userxattr"
    mount("overlay", str(case.top / "root"), "overlay", 0, layers)
    case.work = case.working = case.top / "root/work"
    case.store = case.top / "root/store"
    make_case(case.work)
    case.watched = [case.work]


def _everything_on_overlayfs(case: Case) -> None:
    _as_in_a_container(case)
    inside = case.top / "root/inside"
    inside.mkdir()
    os.environ.pop("XDG_RUNTIME_DIR", None)
    os.environ["XDG_CACHE_HOME"] = tempfile.tempdir = str(inside)
    mount(str(inside), "/var/tmp", flags=MS_BIND)


def _nothing_but_overlayfs(case: Case) -> None:
    _everything_on_overlayfs(case)
    mount(str(case.top / "root/inside"), "/dev/shm", flags=MS_BIND)
    case.mode = AUTO
    module.SMALL_ENTRIES = 3


def _below_its_repository(case: Case) -> None:
    (case.work / ".git").mkdir()
    case.working = case.work / "sub"
    case.program = "open('../.git/x', 'w'); os.unlink('../edit.txt')"


def _repository_elsewhere(case: Case) -> None:
    tree = case.top / "repository/.git/worktrees/w"
    tree.mkdir(parents=True)
    (tree / "commondir").write_text("../..\n")
    (case.work / ".git").write_text(f"gitdir: {tree}\n")
    case.watched.append(case.top / "repository")
    case.program = f"{_WRITES}; open({str(tree.parent.parent / 'x')!r}, 'w').write('x')"


def _another_mounted_in_it(case: Case) -> None:
    case.mode = AUTO
    module.SMALL_ENTRIES = 3
    mount("tmpfs", str(case.work / "empty"), "tmpfs")
    (case.work / "empty/there").write_text("x")
    case.program = f"{_WRITES}; os.unlink('empty/there'); open('empty/x', 'w')"


def _at_a_second_place(case: Case) -> None:
    second = case.top / "second"
    second.mkdir()
    mount(str(case.work), str(second), flags=MS_BIND)
    case.program = f"os.unlink('keep.txt'); open({str(second / 'new.txt')!r}, 'w').write('x')"


def _read_only(case: Case) -> None:
    mount(str(case.work), str(case.work), flags=MS_BIND)
    mount("none", str(case.work), flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def _comma_and_colon(case: Case) -> None:
    case.work = case.working = case.work.rename(case.top / "a,b:c")
    case.watched = [case.work]


def _home(case: Case) -> None:
    case.home = case.work


def _below_a_home_that_is_a_repository(case: Case) -> None:
    (case.top / ".git").mkdir()
    case.home = case.top
    case.watched.append(case.top / ".git")
    case.program = f"{_WRITES}; open('../.git/x', 'w')"


def _root(case: Case) -> None:
    case.working, case.mode = Path("/"), AUTO


_MADE: tuple[Callable[[Case], None], ...] = (
    lambda _: None,
    _on_tmpfs,
    _as_in_a_container,
    _everything_on_overlayfs,
    _nothing_but_overlayfs,
    _below_its_repository,
    _repository_elsewhere,
    _another_mounted_in_it,
    _at_a_second_place,
    _read_only,
    _comma_and_colon,
    _home,
    _below_a_home_that_is_a_repository,
    _root,
)


def main(folder: Path) -> None:
    """Go through the places; those that change the machine for the ones after them are in a process of their own."""
    # Its modules are loaded by now: the places below may cover the disk that they lie on.
    with Store.open(folder / "first") as store:
        assert store.runs.owner.pid == os.getpid()
    for at, (place, make) in enumerate(zip(PLACES, _MADE, strict=True)):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.unshare(os.CLONE_NEWNS)
                case = Case(folder / str(at))
                make(case)
                print(json.dumps([place.name, case.run()]), flush=True)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
