"""Every attack of sandbox_attacks.py inside a real `playhead replay`, on a machine of its own; prints what came of it as JSON.

`python -m playhead.tests.adversary.sandbox UID [FLAG...]`: of a user, 0 for root, with flags of `replay`. Playhead stands there in an environment that belongs
to that user and that agent and proxy share, as after `pip install playhead` in the agent's own. What an attack does to files
of the system stays on this machine: they are covered by a copy that is gone with it.
"""

import errno
import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import playhead
from playhead.tests.support import machine, prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.escapes import _libc

from .sandbox_attacks import ATTACKS, HEAR, PRELUDE, TODAY, Attack

HOME = Path("/srv/home")
ENV, WORK, DATA, SETTINGS = HOME / "env", HOME / "work", HOME / "data", HOME / "settings"
STORE, CONFIG, RECEIPT = DATA / "store", SETTINGS / "playhead.yaml", WORK / "out" / "receipt.json"
_FLAGS = tuple(sys.argv[2:])
_INTERPRETER = Path(os.path.realpath(sys.executable))
_COVERED = ("/etc", sys.prefix, sys.base_prefix)
_LAYERS = Path("/srv/.covered")
_PRECIOUS = "not to be written over\n"
_PARTS = ("config", "tape", "store", "timeline", "addons", "proxy", "web", "examples")
_ASK = """
import urllib.error, urllib.request
def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
assert ask("http://api.test/known") == 200, "the tape does not answer"
"""
_DIVERGE = 'assert ask("http://api.test/unknown") == 424, "the proxy does not refuse"\n'
_LINE = {
    **{"run": "tape", "request": {"method": "GET", "url": "http://api.test/known"}},
    "response": {"status": 200, "headers": {"content-type": "text/plain"}, "body": "known"},
}


# ---- the machine ------------------------------------------------------------------------------------


def _cover() -> None:
    """Have an empty folder for all that is ours, and a copy in memory in the place of what an attack may write to."""
    _libc("mount", b"tmpfs", b"/srv", b"tmpfs", 0, b"mode=755")
    HOME.mkdir()
    for number, folder in enumerate(_COVERED):
        kept = _LAYERS / str(number) / "kept"
        kept.mkdir(parents=True)
        _libc("mount", os.fsencode(folder), os.fsencode(kept), None, 0x1000, None)
        _cover_one(number)


def _cover_one(number: int) -> None:
    """Put an empty layer over a folder; what was written to it before is gone."""
    layers = _LAYERS / str(number)
    for name in ("upper", "work"):
        shutil.rmtree(layers / name, ignore_errors=True)
        (layers / name).mkdir()
    said = f"lowerdir={layers}/kept,upperdir={layers}/upper,workdir={layers}/work"
    _libc("mount", b"overlay", os.fsencode(_COVERED[number]), b"overlay", 0, said.encode())


def _uncover_and_cover() -> None:
    for number, folder in enumerate(_COVERED):
        _libc("umount2", os.fsencode(folder), 2)
        _cover_one(number)


def _may_mount() -> bool:
    """Say whether this process has CAP_SYS_ADMIN on its machine: as root, or as whoever made the machine's users."""
    status = Path("/proc/self/status").read_text()
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) & 1 << 21)


def _mount_proc() -> None:
    _libc("mount", b"proc", b"/proc", b"proc", 0, None)


def _alone() -> None:
    """Be the first process of a namespace: whatever an attack ends, it ends nothing outside."""
    machine.unshare_as_ourselves(os.CLONE_NEWPID)
    child = os.fork()
    if child:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    os.setsid()


def _furnish() -> None:
    """Install Playhead into an environment of its own, and make a tape."""
    for folder in (RECEIPT.parent, SETTINGS, DATA, ENV / "bin", HOME / "elsewhere"):
        folder.mkdir(parents=True, exist_ok=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = ENV / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    base = Path(sys.base_prefix, "bin", version)
    for name in ("python", "python3", version):
        (ENV / "bin" / name).symlink_to(base)
    (ENV / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    dependencies = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "_dependencies.pth").write_text(f"{dependencies}\n")
    ours = Path(playhead.__file__).parent
    for part in _PARTS:
        shutil.copytree(ours / part, site / "playhead" / part)
    for name in ("__init__.py", "py.typed"):
        shutil.copy(ours / name, site / "playhead" / name)
    script = ENV / "bin" / "playhead"
    script.write_text(
        f"#!{ENV}/bin/python\nimport sys\nfrom playhead.proxy.cli import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    CONFIG.write_text("store: ../data/store\nsandbox: {pipe_search: 0.02s}\n")
    (WORK / "tape.jsonl").write_text(json.dumps(_LINE) + "\n")
    (HOME / "precious").write_text(_PRECIOUS)
    (HOME / "precious.d").mkdir()
    done = _beside("import", "--jsonl", str(WORK / "tape.jsonl"), "-c", str(CONFIG))
    assert done.returncode == 0, done.stderr
    # The first one makes what later ones find.
    first = _replay(_ASK)
    assert first["code"] == 0, first["err"]
    RECEIPT.unlink()


def _beside(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours that is none of those that are attacked: forked, unless everything is counted."""
    return prepared.run([*prepared.OURS, *words], cwd=WORK, text=True, timeout=60)


def _playhead(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ENV / "bin" / "playhead", *words],
        env=_environ(),
        cwd=WORK,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _environ() -> dict[str, str]:
    there = HOME / "there"
    return {
        **{"HOME": str(HOME), "PATH": f"{ENV}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
        **{"SSH_AUTH_SOCK": f"{there}/ssh", "SSH_AUTH_SOCK_THERE": f"{there}/ssh"},
        **{"DBUS_SESSION_BUS_ADDRESS": f"unix:path={there}/bus", "BUS_THERE": f"{there}/bus"},
        **{"XDG_RUNTIME_DIR": f"{there}/runtime", "RUNTIME_THERE": f"{there}/runtime"},
    }


def _listen() -> dict[str, bool]:
    """Have programs outside listen at path sockets; say of each whether it could be made."""
    there, heard = HOME / "there", {}
    (there / "runtime").mkdir(parents=True)
    (HOME / ".docker" / "run").mkdir(parents=True)
    places = [
        *(str(there / name) for name in ("ssh", "bus", "runtime/anything")),
        *(str(HOME / name) for name in (".docker/run/docker.sock", "elsewhere/socket")),
        *("/var/run/docker.sock", "/run/dbus/system_bus_socket", "\0playhead-attack"),
    ]
    for place in places:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.bind(place)
        except OSError as error:
            heard[place] = error.errno == errno.EADDRINUSE  # since an earlier attack
            continue
        sock.listen(16)
        threading.Thread(target=_say_outside, args=(sock,), daemon=True).start()
        heard[place] = True
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(str(HOME / "elsewhere" / "datagrams"))
    _KEPT.append(datagrams)
    return heard


_KEPT: list[socket.socket] = []


def _say_outside(listening: socket.socket) -> None:
    while True:
        with listening.accept()[0] as sock:
            sock.recv(100)
            sock.sendall(b"outside")


# ---- what stands there ------------------------------------------------------------------------------


def _snapshot() -> dict[str, str]:
    """Give device, inode, mode and hash of everything that nothing may change, by path."""
    site = next((ENV / "lib").glob("python3*")) / "site-packages"
    found = {}
    dependencies = Path((site / "_dependencies.pth").read_text().strip())
    trees = [ENV, SETTINGS, STORE / "private", STORE / "ca"]
    trees += [dependencies / name for name in ("mitmproxy", "aiohttp", "msgspec", "yaml", "lmdb")]
    for tree in trees:
        found[str(tree)] = _state(str(tree))
        for folder, folders, files in os.walk(tree):
            if _passing(folder):
                folders.clear()
                continue
            for name in (*folders, *files):
                path = f"{folder}/{name}"
                if not _passing(path):
                    found[path] = _state(path)
    for one in (DATA, STORE, STORE / "log.lmdb", HOME / "precious", HOME / "precious.d"):
        found[str(one)] = _state(str(one))
    for one in (Path("/etc/ld.so.preload"), _INTERPRETER):
        found[str(one)] = _state(str(one))
    found["what stands in the folder of the store's folder"] = repr(sorted(os.listdir(DATA)))
    found["what stands in precious.d"] = repr(sorted(os.listdir(HOME / "precious.d")))
    return found


def _passing(path: str) -> bool:
    """Say whether a file comes and goes: a proxy's address, and what is compiled of modules that are not ours."""
    if f"{path}/".startswith(f"{STORE}/private/control/"):
        return True
    return "/__pycache__" in path and "/site-packages/playhead/" not in path


def _state(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError as error:
        return type(error).__name__
    said = f"{found.st_dev}:{found.st_ino} {stat.filemode(found.st_mode)}"
    if stat.S_ISLNK(found.st_mode):
        return f"{said} -> {os.readlink(path)}"
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            return f"{said} {hashlib.blake2b(file.read(), digest_size=12).hexdigest()}"
    return said


# ---- the attacks ------------------------------------------------------------------------------------


def _replay(code: str, timeout_s: float = 60, *flags: str) -> dict[str, Any]:
    """Run an agent in a replay; give the exit code, what was said, and the receipt as it stands there.

    flags: further ones of the replay.
    """
    (WORK / "agent.py").write_text(code)
    command = [
        *(str(ENV / "bin" / "playhead"), "replay", "tape", "-c", str(CONFIG), *_FLAGS, *flags),
        *("--receipt", str(RECEIPT), "--", str(ENV / "bin" / "python"), str(WORK / "agent.py")),
    ]
    began = ["/bin/sh", "-c", 'export OUTER_PID=$$; exec "$@"', "sh", *command]
    process = subprocess.Popen(
        began, env=_environ(), cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "\nit did not end"
    written = None
    if RECEIPT.is_file():
        try:
            written = json.loads(RECEIPT.read_text())
        except ValueError:
            written = {"broken": RECEIPT.read_text(errors="replace")[:200]}
    return {"code": process.returncode, "out": out, "err": err, "receipt": written}


def _agent(attacks: list[Attack]) -> str:
    """Give the program of an agent that diverges, unless what it does is enough to fail for, then attacks."""
    diverges = any(attack.kind != "used" for attack in attacks)
    code = [_ASK, _DIVERGE if diverges else "", PRELUDE, HEAR, "told = {}\n"]
    for attack in attacks:
        code.append(
            f"try:\n    exec({attack.code!r}, globals())\n    told[{attack.id!r}] = 'done'\n"
            f"except BaseException as error:\n    told[{attack.id!r}] = f'{{type(error).__name__}}: {{error}}'\n"
        )
    code.append("print(json.dumps(told), flush=True)\n")
    return "".join(code)


def _fresh() -> None:
    """Have the environment, store and settings as they were made, and the system as it was."""
    if _may_mount():
        _uncover_and_cover()
    subprocess.run(["rm", "-rf", *map(str, HOME.iterdir())], check=True)
    subprocess.run(["cp", "-a", f"{_KEPT_COPY}/.", str(HOME)], check=True)


_KEPT_COPY = Path("/srv/kept")


def _try(attacks: list[Attack]) -> dict[str, Any]:
    """Try some of them in one replay; say what differs afterwards, and whether anything of it ran outside."""
    _fresh()
    heard = _listen()
    before = _snapshot()
    told = _replay(_agent(attacks))
    after = _snapshot()
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    ran = _flag()
    if changed and (ENV / "bin" / "playhead").exists():
        _playhead("runs", "-c", str(CONFIG))
    late = _flag()
    try:
        found = json.loads(told["out"].splitlines()[-1])
    except (ValueError, IndexError):
        found = {}
    return {
        **told,
        **{"attacks": [attack.id for attack in attacks], "told": found, "heard": heard},
        **{"changed": changed, "ran_outside": ran, "ran_later": late[len(ran) :]},
    }


def _flag() -> str:
    """Give what an attack left where its code ran outside of the sandbox."""
    flag = WORK / "flag"
    return flag.read_text() if flag.exists() else ""


def _install() -> dict[str, Any]:
    """Replay an agent that installs a package into its environment, and uses it there."""
    _fresh()
    _listen()
    wheel = WORK / "tiny_tool-1.0-py3-none-any.whl"
    meta = "tiny_tool-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("tiny_tool.py", "ANSWER = 42\n")
        made.writestr(f"{meta}/METADATA", "Metadata-Version: 2.1\nName: tiny-tool\nVersion: 1.0\n")
        made.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        made.writestr(f"{meta}/RECORD", "")
    code = (
        f"{_ASK}\nimport subprocess, sys\n"
        f"done = subprocess.run([sys.executable, {_pip()!r}, 'install', '--no-index', "
        f"'--no-cache-dir', '--disable-pip-version-check', {str(wheel)!r}], capture_output=True, text=True)\n"
        "assert done.returncode == 0, done.stdout + done.stderr\n"
        "print(subprocess.run([sys.executable, '-c', 'import tiny_tool; print(tiny_tool.ANSWER)'], "
        "capture_output=True, text=True).stdout)\n"
    )
    before = _snapshot()
    told = _replay(code)
    after = _snapshot()
    ours = [
        name for name in before if "site-packages/playhead" in name or not name.startswith(str(ENV))
    ]
    return {**told, "changed": sorted(name for name in ours if before[name] != after.get(name))}


def _pip() -> str:
    """Give the folder of some pip: one that is compiled already, or the one in the standard library."""
    import ensurepip

    installed = Path(sysconfig.get_path("purelib", vars={"base": sys.base_prefix}), "pip")
    bundled = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")) / "pip"
    return str(installed if installed.is_dir() else bundled)


def _linked() -> dict[str, Any]:
    """Replay an agent that writes to second names of Playhead's modules, as installers make them."""
    _fresh()
    package = next((ENV / "lib").glob("python3*")) / "site-packages" / "playhead"
    folder = WORK / "linked"
    folder.mkdir()
    modules = [
        *(package / "timeline").rglob("*.py"),
        *(package / "proxy" / "sandbox").rglob("*.py"),
    ]
    for number, path in enumerate(modules):
        os.link(path, folder / f"{number}.py")
    before = [path.read_bytes() for path in modules]
    told = _replay(
        f"{_ASK}{PRELUDE}\nfor path in (WORK / 'linked').iterdir():\n    path.write_text(PAYLOAD)\n",
        60,
        "--in-place",
    )
    written = [path.read_text() for path in folder.iterdir()]
    _playhead("runs", "-c", str(CONFIG))
    return {
        **told,
        "links": len(modules),
        "written": sum("_os._exit" in text for text in written),
        "changed": [
            str(path)
            for path, was in zip(modules, before, strict=True)
            if path.read_bytes() != was or path.stat().st_nlink > 1
        ],
        "ran": _flag(),
    }


def _forged() -> dict[str, Any]:
    """Check a true receipt, and the same with its verdict turned, as anybody can check it."""
    _fresh()
    told = _replay(_ASK + _DIVERGE)
    found: dict[str, Any] = {"replay": told}
    found["true"] = _checked(RECEIPT)
    receipt = json.loads(RECEIPT.read_text())
    turned: dict[str, dict[str, Any]] = {"verdict": {"faithful": True, "exit_code": 0}}
    if FULL:
        turned |= {"divergences": {"divergences": [], "root": None}, "run": {"run": "another"}}
    for name, changes in turned.items():
        path = WORK / f"{name}.json"
        path.write_text(json.dumps({**receipt, **changes}))
        found[name] = _checked(path)
    return found


def _checked(path: Path) -> dict[str, Any]:
    done = _beside("verify", "-c", str(CONFIG), "--receipt", str(path))
    return {"code": done.returncode, "out": done.stdout[-500:], "err": done.stderr[-500:]}


def _main(uid: int) -> None:
    is_root = os.geteuid() == 0
    try:
        _alone()
    except OSError as error:
        print(f"no machine of one's own: {error}", file=sys.stderr)
        sys.exit(machine.NONE)
    os.environ["HOME"] = str(HOME)

    def prepare() -> None:
        _cover()
        _mount_proc()
        Path("/srv/kept").mkdir()
        for folder in (HOME, Path("/srv/kept")):
            os.chown(folder, os.geteuid() or uid, -1)
        # What root has there to listen at, whoever the agent is.
        _libc("mount", b"tmpfs", b"/run", b"tmpfs", 0, b"mode=777")
        Path("/run/dbus").mkdir(mode=0o777)

    machine.enter_or_exit(uid, prepare=prepare)
    prepared.stay_ready()
    _furnish()
    subprocess.run(["cp", "-a", f"{HOME}/.", str(_KEPT_COPY)], check=True)
    who = "somebody" if uid else "root"
    # Where nobody may be root, somebody tries them all.
    replays = TODAY[who] if is_root else [each for part in TODAY.values() for each in part]
    today = {kind: "+".join(kinds) for kinds in replays for kind in kinds}
    order = list(today)
    groups: dict[str, list[Attack]] = defaultdict(list)
    for attack in ATTACKS:
        if (uid and attack.root) or (attack.needs and not os.path.exists(attack.needs)):
            continue
        if FULL:
            groups[attack.together if attack.kind == "closed" else attack.id].append(attack)
        elif attack.together in today:
            groups[today[attack.together]].append(attack)
    if not FULL:
        for attacks in groups.values():
            attacks.sort(key=lambda attack: order.index(attack.together))
    told: dict[str, Any] = {"groups": [_try(attacks) for attacks in groups.values()]}
    if FULL or uid:
        told["install"] = _install()
        told["linked"] = _linked()
    if FULL or not uid or not is_root:
        told["forged"] = _forged()
    print(json.dumps(told))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
