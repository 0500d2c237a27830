"""Every case of files.yaml, by commands that are run with a mask of nothing; prints what came of each as JSON.

`python -m playhead.tests.adversary.files`
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playhead.tests.support import prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.raw import Conversation, RawOrigin

from .place import configured, in_memory, read_cases

CASES: dict[str, Any] = read_cases(Path(__file__))
_PRECIOUS = b"not to be written over\n"
_LARGE = 9 << 20
_NOBODY = 65534
_POST = """
import os, socket, sys
url = sys.argv[1]
host, _, port = os.environ["http_proxy"].rstrip("/").rpartition("/")[2].rpartition("@")[2].rpartition(":")
with socket.create_connection((host, int(port)), 20) as sock:
    head = f"POST {url} HTTP/1.1\\r\\nHost: {url.split('/')[2]}\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
    sock.sendall(head.encode())
    while sock.recv(1 << 20):
        pass
"""


async def _answer(conversation: Conversation) -> None:
    body = b"x" * (_LARGE if conversation.path.endswith("/large") else 2)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    await conversation.say(head + body)


class Place:
    """A folder with a configuration, a store that holds a tape, and commands that are run there."""

    def __init__(self, folder: Path, origin: str) -> None:
        self.folder, self._origin = folder, origin

    def config(self, **more: Any) -> Path:
        """Write the configuration."""
        given = {"store": "store", "ballast_mib": 0, **more}
        return configured(self.folder / "playhead.yaml", given)

    def run(self, *words: str | Path, timeout_s: float = 8) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = [*prepared.OURS, *map(str, words)]
        environ = {**os.environ, "HOME": str(self.folder)}
        return prepared.run(command, text=True, timeout=timeout_s, env=environ, cwd=self.folder)

    def record(self, name: str, path: str = "/small", *flags: str) -> Any:
        """Record one request."""
        agent = (sys.executable, "-S", "-E", "-c", _POST, self._origin + path)
        return self.run("record", "--run", name, *flags, "--", *agent)

    def replay(self, *flags: str) -> Any:
        """Play the tape."""
        agent = (sys.executable, "-S", "-E", "-c", _POST, self._origin + "/small")
        return self.run("replay", "tape", "--no-sandbox", *flags, "--", *agent)

    def serve(self) -> Any:
        """Start a proxy and end it; give how it ended."""
        command = [*prepared.OURS, "serve", "--listen", "127.0.0.1:0"]
        process = prepared.start(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.3)
        if process.returncode is None:
            process.terminate()
        out, err = process.communicate(timeout=20)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def do(self, what: str) -> Any:
        """Do what a case asks for."""
        private = self.folder / "store" / "private"
        match what:
            case "record":
                return self.record("again")
            case "record-new":
                if not (private / "redaction.key").is_symlink():
                    (private / "redaction.key").unlink()
                return self.record("again")
            case "record-large":
                return self.record("again", "/large")
            case "record-receipt":
                return self.record("again", "/small", "--receipt", "out/receipt.json")
            case "record-ballast":
                self.config(ballast_mib=16)
                return self.record("again")
            case "record-sink":
                self.config(sink={"file": "out/effects.jsonl"})
                return self.record("again")
            case "replay":
                return self.replay()
            case "replay-receipt":
                return self.replay("--receipt", "out/receipt.json")
            case "serve-token":
                self.config(control={"token_file": "out/control.token"})
                return self.serve()
            case "serve":
                return self.serve()
            case "export":
                return self.run("export", "tape", "--tape", "out/tape")
            case "new-key":
                return self.run("rekey", "--new-key", "out/key")
            case "ca" | "ca-new":
                return self.run("ca")
            case _:
                return self.run(what)


def _everything(place: Place) -> dict[str, Any]:
    """Do everything once that writes files; say which stand there, and how."""
    place.config(
        sink={"file": "out/effects.jsonl"},
        control={"token_file": "out/control.token"},
        retention={"archive": "archive"},
        ballast_mib=1,
    )
    (place.folder / "out").mkdir()
    done = [
        place.record("tape", "/small", "--receipt", "out/receipt.json"),
        place.record("large", "/large"),
        place.replay("--receipt", "out/replayed.json"),
        place.run("export", "tape", "--tape", "out/tape.playhead"),
        place.run("rekey", "--new-key", "out/new.key"),
        place.run("env"),
        place.serve(),
        place.run("archive", "tape", "large", timeout_s=60),
        place.run("gc"),
    ]
    place.config(encrypt={"key_file": "out/new.key"}, store="encrypted")
    done.append(place.record("sealed", "/large"))
    failed = [(one.args[3:6], one.returncode, one.stderr[-500:]) for one in done if one.returncode]
    found = {}
    for path in sorted(place.folder.rglob("*")):
        said = path.lstat()
        found[str(path.relative_to(place.folder))] = {
            "mode": stat.S_IMODE(said.st_mode),
            "folder": stat.S_ISDIR(said.st_mode),
            "certificates": stat.S_ISREG(said.st_mode) and _is_public(path),
        }
    return {"failed": failed, "found": found}


def _is_public(path: Path) -> bool:
    """Say whether a file holds certificates, or says where they are, and nothing else."""
    data = path.read_bytes()
    held = b"BEGIN CERTIFICATE" in data or path.suffix == ".p12"
    named = data.startswith(b"ca_certificate = ") and data.count(b"\n") == 1
    return path.parent.name == "ca" and (held or named) and b"PRIVATE KEY" not in data


# ---- links ------------------------------------------------------------------------------------------


def _plant(place: Place, where: str, to: str) -> Path:
    """Put a link where Playhead writes; give what it leads to."""
    path, aim = place.folder / where, place.folder / "precious" / "aim"
    aim.parent.mkdir()
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.exists()
    if to == "folder":
        # As it was: only that it stands elsewhere.
        shutil.copytree(path, aim) if there else aim.mkdir()
        aim.chmod(0o700)
    elif to in ("file", "hard"):
        aim.write_bytes(path.read_bytes() if there and "log.lmdb" in where else _PRECIOUS)
        aim.chmod(0o600)
    if there:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if to == "pipe":
        os.mkfifo(path)
    elif to == "open":
        path.write_bytes(_PRECIOUS)
        path.chmod(0o644)
    elif to == "hard":
        os.link(aim, path)
    else:
        path.symlink_to(aim)
    return aim


def _state(path: Path) -> str:
    """Give what stands somewhere, files in folders too; not what a reader of LMDB notes."""
    if not path.exists():
        return "nothing"
    if path.is_dir():
        return repr([f"{one.name} {_state(one)}" for one in sorted(path.iterdir())])
    if path.name == "lock.mdb":
        return "a lock"
    said = path.lstat()
    return f"{said.st_ino} {oct(said.st_mode)} {hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()}"


def _said(done: Any) -> dict[str, Any]:
    return {"code": done.returncode, "err": done.stderr[-1500:], "out": done.stdout[-300:]}


def _linked(place: Place, case: dict[str, Any]) -> dict[str, Any]:
    aim = _plant(place, case["place"], case["to"])
    before = _state(aim)
    try:
        told = _said(place.do(case["do"]))
    except subprocess.TimeoutExpired:
        told = {"code": None, "err": "it did not end", "out": ""}
    path = place.folder / case["place"]
    mode = stat.S_IMODE(path.lstat().st_mode) if path.is_file() and not path.is_symlink() else None
    after = _state(aim)
    link = path.is_symlink() or path.is_fifo() or (case["to"] == "hard" and path.samefile(aim))
    return {**told, "before": before, "after": after, "link": link, "mode": mode}


def _fresh(kept: Path, folder: Path, origin: str) -> Place:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder, symlinks=True)
    return Place(folder, origin)


def _main() -> None:
    os.umask(0)
    prepared.stay_ready()
    with in_memory() as folder, RawOrigin(_answer) as origin:
        (folder / "all").mkdir()
        told: dict[str, Any] = {"all": _everything(Place(folder / "all", origin.url))}
        kept = folder / "kept"
        (kept / "out").mkdir(parents=True)
        place = Place(kept, origin.url)
        place.config()
        assert place.record("tape").returncode == 0
        told["links"] = {
            case["id"]: _linked(_fresh(kept, folder / "link", origin.url), case)
            for case in CASES["links"]
            if FULL or not case.get("full")
        }
        told["others"] = dict(_others(kept, folder, origin.url))
        told["allowed"] = dict(_allowed(kept, folder, origin.url))
        told["clean"] = {
            what: _said(_fresh(kept, folder / "clean", origin.url).do(what))
            for what in sorted({case["do"] for case in CASES["links"]} if FULL else ["replay"])
        }
    json.dump(told, sys.stdout)


def _others(kept: Path, folder: Path, origin: str) -> Iterator[tuple[str, Any]]:
    if os.geteuid() != 0:
        return
    for case in CASES["others"]:
        for what in case["do"]:
            place = _fresh(kept, folder / "other", origin)
            for path in (place.folder / case["place"]).rglob("*"):
                os.chown(path, _NOBODY, _NOBODY)
            os.chown(place.folder / case["place"], _NOBODY, _NOBODY)
            yield f"{case['id']}-{what}", _said(place.do(what))


def _allowed(kept: Path, folder: Path, origin: str) -> Iterator[tuple[str, Any]]:
    for case in CASES["allowed"]:
        place = _fresh(kept, folder / "allowed", origin)
        path = place.folder / case["link"]
        path.rename(place.folder / "elsewhere")
        path.symlink_to("elsewhere")
        yield case["id"], _said(place.do("record-receipt"))


if __name__ == "__main__":
    _main()
