"""A secret in the name of a file or a branch is nowhere at rest, and an unchanged agent is faithful all the same."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from playhead.tape.records.zstd import ZstdDecompressor
from playhead.tests.journeys.test_folder import _Answers
from playhead.tests.support.folders import require_overlay
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead

SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"
OWN = "acme_0123456789abcdef99887766"
"""A secret that no rule knows yet when it is recorded."""
_AGENT = """
import os, sys, urllib.request
os.remove("old-{0}.txt"); open("new-{0}.txt", "w").write("x"); open("{1}.txt", "w").write("y")
asked = urllib.request.Request(sys.argv[1] + "/effect", b"{{}}", {{"content-type": "application/json"}})
urllib.request.urlopen(asked).read()
print(sorted(os.listdir()))
"""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _at_rest(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_names_are_stored_without_their_secrets(tmp_path: Path, url: str) -> None:
    """In the log, in the folder's manifest with its savepoints, in a tape file; the replay finds the names again."""
    work, store, receipt, tape = (tmp_path / name for name in ("work", "store", "r.json", "r.tape"))
    require_overlay(tmp_path, tmp_path)
    work.mkdir()
    (work / "agent.py").write_text(_AGENT.format(SECRET, OWN))
    (work / f"old-{SECRET}.txt").write_text("old")
    git = [need("git"), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q", "-b", f"fix/{SECRET}"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=work, check=True)
    flags = ["--store", str(store), "-q", "--receipt", str(receipt)]
    agent = [sys.executable, "-B", "agent.py", url]
    done = playhead("record", "--run", "r", "--transaction", *flags, "--", *agent, cwd=work)
    assert done.returncode == 0, done.stderr
    assert SECRET not in receipt.read_text()
    subprocess.run([*git, "clean", "-fdq"], cwd=work, check=True)
    subprocess.run([*git, "checkout", "-q", "."], cwd=work, check=True)
    words = ["--sandbox", "none", "--compare", "files", *flags, "--", *agent]
    done = playhead("replay", "r", *words, cwd=work)
    told = json.loads(receipt.read_text())
    assert (told["faithful"], done.returncode) == (True, 0), done.stderr
    assert not any(SECRET in one or "old-" in one for one in told["folder"]["differs"])
    done = playhead("export", "r", "--store", store, "--tape", tape)
    assert done.returncode == 0, done.stderr
    packed = tape.read_bytes()
    told_there = ZstdDecompressor().decompress(packed[packed.index(b"\x28\xb5\x2f\xfd") :])
    assert b"agent.py" in told_there
    assert SECRET.encode() not in _at_rest(store) + told_there
    # A rule that comes later.
    (work / "playhead.yaml").write_text('redact:\n  - {pattern: "acme_[0-9a-f]{24}"}\n')
    for _ in range(2):
        done = playhead("redact", "--rewrite", "r", "--store", store, cwd=work)
        assert done.returncode == 0, done.stderr
    assert OWN not in playhead("receipt", "r", "--json", "--store", store, cwd=work).stdout
