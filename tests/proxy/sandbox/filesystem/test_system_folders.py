"""Where the root folder is the working folder, or is not the machine's own: nothing is promised that cannot be kept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem.bubblewrap import make_files
from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.recordings import ask, record_run


@pytest.mark.parametrize("home", ["/", "/root", "/home/somebody", ""])
def test_files_are_not_isolated_in_the_root_folder(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It contains every file that the flag hides, whatever the home is."""
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.chdir("/")
    with pytest.raises(EngineError, match=r"expects a working folder .* and found '/'") as caught:
        make_files({"HOME": home}, ["true"], public=tmp_path, shared=[])
    assert caught.value.hint.startswith("change to the agent's own folder")


CHROOT = """
set -e
mount --make-rprivate /
mount --rbind / "$1"
cd "$1"
exec chroot . sh -c 'cd "$0" && exec "$@"' "$2" "$3" -c "$4" replay tape --store store --receipt receipt.json -- touch ran
"""
STARTED = "import sys; from playhead.proxy.cli import main; main(sys.argv[1:])"


def test_in_a_chroot_nothing_is_run(tmp_path: Path) -> None:
    """The kernel makes no user namespace there: one sentence says so, and 125."""
    unshare = need("unshare")
    need("a sandbox")
    if os.geteuid() != 0:
        pytest.skip("only root can change its root folder")
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    root = tmp_path / "root"
    root.mkdir()
    words = [str(root), str(tmp_path), sys.executable, STARTED]
    done = subprocess.run(
        [unshare, "-m", "sh", "-c", CHROOT, "sh", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "Operation not permitted" in done.stderr and "playhead" not in done.stderr:
        pytest.skip("this machine lets nobody mount")
    assert done.returncode == 125, done.stderr
    assert "user namespaces are refused here" in done.stderr
    assert "in a chroot the kernel refuses them" in done.stderr
    assert not (tmp_path / "ran").exists()
