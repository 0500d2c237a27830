"""What a command might do to the proxy that answers it: tried in a sandbox, on a machine of its own.

`python -m playhead.tests.support.tampering UID` replays a command that tries everything, with and without bubblewrap;
prints what it was told, what of it is there outside afterwards, and how the replay ended.
"""

import json
import os
import shutil
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any

MARK = "playhead-tampered"

AGENT = """
import ctypes, json, os, socket, subprocess, sys, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
given = json.loads(sys.argv[1])
MARK = given["mark"]

def write(folder):
    path = os.path.join(folder, MARK + ".py")
    with open(path, "w") as file:
        file.write("raise SystemExit(0)")
    return path

def touch(path):
    os.utime(path, (1, 1))

def replace(path):
    with open(path + MARK, "w") as file:
        file.write("")
    os.replace(path + MARK, path)

def append(path):
    with open(path, "a") as file:
        file.write("# " + MARK)

def move(path):
    os.rename(path, path + MARK)

def link(path):
    os.unlink(path)
    os.symlink("/tmp/" + MARK, path)

def hard_link(path):
    os.link(path, os.path.join(os.getcwd(), MARK))
    append(os.path.join(os.getcwd(), MARK))

def exchange(path):
    # RENAME_EXCHANGE
    os.mkdir(path + MARK)
    if ctypes.CDLL(None, use_errno=True).renameat2(-100, path.encode(), -100, (path + MARK).encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")

def unmount(path):
    if ctypes.CDLL(None, use_errno=True).umount2(path.encode(), 2):
        raise OSError(ctypes.get_errno(), "umount2")

def install(folder):
    # What pip does: it has to work, on a copy.
    path = os.path.join(folder, MARK + "-installed.py")
    with open(path, "w") as file:
        file.write("ANSWER = 42")
    return subprocess.run([sys.executable, "-S", "-c", f"import runpy; print(runpy.run_path({path!r})['ANSWER'])"],
                          capture_output=True, text=True, check=True).stdout.strip()

def signal_all():
    os.kill(given["launcher"], 0)

told = {}
for name, act, path in given["tries"]:
    try:
        told[name] = str(globals()[act](path) if path else globals()[act]())
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


def tries(folder: Path, receipt: Path) -> list[tuple[str, str, str]]:
    """List what is tried: name, function of the agent, path."""
    from playhead import __path__ as package

    store, file = folder / "task" / "store", folder / "task" / "playhead.yaml"
    libraries, own = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
    return [
        ("package: a module more", "write", str(Path(package[0]) / "proxy")),
        ("package: a module touched", "touch", str(Path(package[0]) / "timeline" / "__init__.py")),
        ("package: moved", "move", str(Path(package[0]) / "timeline")),
        ("environment: a module more", "write", own),
        ("environment: a file of paths", "write", own),
        ("environment: moved", "move", own),
        ("environment: installed into", "install", own),
        ("interpreter: a module more", "write", libraries),
        ("interpreter: a module touched", "touch", os.path.realpath(os.__file__)),
        ("interpreter: itself touched", "touch", os.path.realpath(sys.executable)),
        ("interpreter: programs beside it", "write", sysconfig.get_path("scripts")),
        ("interpreter: modules of this user", "write", site.getusersitepackages()),
        ("system: preloaded libraries", "append", "/etc/ld.so.preload"),
        ("system: hosts", "append", "/etc/hosts"),
        ("system: programs", "write", "/usr/local/bin"),
        ("system: what cron runs", "write", "/etc/cron.d"),
        ("configuration: written", "append", str(file)),
        ("configuration: replaced", "replace", str(file)),
        ("configuration: moved", "move", str(file)),
        ("configuration: a link", "link", str(file)),
        ("configuration: written by another name", "hard_link", str(file)),
        ("configuration: its folder moved", "move", str(file.parent)),
        ("configuration: its folder exchanged", "exchange", str(file.parent)),
        ("configuration: the folder above moved", "move", str(folder)),
        ("store: moved", "move", str(store)),
        ("store: exchanged", "exchange", str(store)),
        ("store: shown", "unmount", str(store)),
        ("store: its log written", "append", str(store / "log.lmdb" / "data.mdb")),
        ("store: its keys read", "append", str(store / "private" / "receipt.key")),
        ("store: the certificate replaced", "replace", str(store / "ca" / "playhead-ca-cert.pem")),
        ("receipt: a link", "link", str(receipt)),
        ("receipt: its folder moved", "move", str(receipt.parent)),
        ("launcher: a signal", "signal_all", ""),
    ]


def left(folder: Path) -> list[str]:
    """List what of it is there outside; and take it away."""
    from playhead import __path__ as package

    places = [
        *(Path(package[0]), Path(package[0], "proxy"), Path(package[0], "timeline")),
        *map(Path, (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))),
        *map(Path, (sysconfig.get_path("scripts"), site.getusersitepackages())),
        *map(Path, ("/etc", "/etc/cron.d", "/usr/local/bin", "/tmp", str(folder.parent))),
        *(folder, folder / "task", folder / "receipts"),
    ]
    found = [str(path) for place in places for path in place.glob(f"*{MARK}*")]
    for name in found:
        path = Path(name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found


def _times() -> list[int]:
    from playhead import __path__ as package

    files = (os.__file__, sys.executable, str(Path(package[0]) / "timeline" / "__init__.py"))
    return [os.stat(os.path.realpath(path)).st_mtime_ns for path in files]


def _main(uid: int) -> None:
    from playhead.proxy.sandbox.kernel.syscalls import mount

    from . import machine, prepared
    from .counts import FULL

    is_root = os.geteuid() == 0

    folder = Path("/srv/machine")

    def furnish() -> None:
        mount("tmpfs", "/srv", "tmpfs")  # the program of that name is for root alone
        owner = os.geteuid() or uid
        for place in ("", "task", "receipts", "home", "tmp"):
            (folder / place).mkdir()
            os.chown(folder / place, owner, os.getegid() or uid)

    machine.enter_or_exit(uid, prepare=furnish)
    prepared.stay_ready()
    os.chdir(folder / "task")
    os.environ |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    from playhead.store import Store

    from . import needs
    from .process import COMMAND
    from .recordings import ask, record_run

    store, receipt = folder / "task" / "store", folder / "receipts" / "receipt.json"
    with Store.open(store) as opened:
        record_run(opened, "tape", [ask()])
    (folder / "task" / "playhead.yaml").write_text("store: store\n")
    flags: dict[str, list[str]] = {"contained": []} | (
        {"with files": ["--sandbox-files"]} if needs.has("bubblewrap") else {}
    )
    if is_root and len(flags) == 2 and not FULL:
        # One of the two for each of two users: each is a whole replay, and its check.
        del flags["contained" if uid else "with files"]
    found: dict[str, Any] = {
        "owns the environment": os.access(sysconfig.get_path("purelib"), os.W_OK)
    }
    for kind, more in flags.items():
        receipt.write_text("{}")
        before = _times()
        given = {"mark": MARK, "launcher": os.getpid(), "tries": tries(folder, receipt)}
        words = [*COMMAND, "replay", "tape", "--receipt", str(receipt), *more, "--"]
        agent = (sys.executable, "-S", "-c", AGENT, json.dumps(given))
        done = prepared.run([*words, *agent], text=True, timeout=60)
        verify = (*COMMAND, "verify", "--receipt", str(receipt))
        checked = prepared.run(verify, text=True, timeout=60)
        found[kind] = {
            "code": done.returncode,
            "told": json.loads(done.stdout or "null"),
            "stderr": done.stderr,
            "left": left(folder),
            "same": before == _times(),
            "configuration": (folder / "task" / "playhead.yaml").read_text(),
            "verified": checked.returncode,
            "receipt": json.loads(receipt.read_text()),
            "mode": receipt.stat().st_mode & 0o777,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
