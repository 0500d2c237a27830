"""The guides of docs/: every block of commands is run as it is shown, on an agent and an API of this machine.

docs/s3.md is run by tests/proxy/operations/test_archive_bucket.py, which has a bucket.
"""

import http.server
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import playhead as package
from playhead.proxy.sandbox.preflight import works
from playhead.tests.support.needs import need
from playhead.tests.support.process import Serve, playhead

DOCS = Path(package.__file__).parent / "docs"
AGENT = "import os, urllib.request; print(urllib.request.urlopen(os.environ['SHOP'] + '/orders/7').read().decode())\n"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> list[str]:
    """Give the blocks of a page that are written in a language."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return [block for found, block in _FENCE.findall(text) if found == kind]


def commands(page: str) -> list[str]:
    """Give the lines of the page's blocks of commands."""
    return [line for block in blocks(page, "sh") for line in block.splitlines()]


class _Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"mugs")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Answer every GET, at the address that the agents of the guides read."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Shop) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("SHOP", f"http://127.0.0.1:{server.server_address[1]}")
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `agent.py`."""
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def run(line: str, folder: Path) -> str:
    """Run a command of ours as it is shown; give what it printed. Where no sandbox can be made, it is left out."""
    words = shlex.split(line)
    assert words[0] == "playhead"
    if words[1] == "replay" and not works():
        words.insert(3, "--no-sandbox")
    at = words.index("--") + 1 if "--" in words else 0
    if at and words[at] == "python":
        words[at] = sys.executable
    done = playhead(*words[1:], cwd=folder)
    assert done.returncode == 0, (line, done.stdout + done.stderr)
    return done.stdout + done.stderr


@pytest.mark.usefixtures("shop")
def test_node(tmp_path: Path) -> None:
    """The block for this machine's Node, and the one for older ones, which serves newer ones too."""
    need("node")
    (tmp_path / "agent.mjs").write_text(*blocks("node", "js"))
    newer, older = blocks("node", "sh")
    version = subprocess.check_output(["node", "--version"], text=True)
    for block in [older] if version.startswith("v20.") else [newer, older]:
        recorded, replayed = (run(line, tmp_path) for line in block.splitlines())
        assert "sealed: 1 exchange recorded" in recorded
        assert "FAITHFUL: replay of" in replayed


@pytest.mark.usefixtures("shop")
def test_java(tmp_path: Path) -> None:
    """Its own client follows and trusts without a change."""
    need("java", "javac")
    (tmp_path / "Agent.java").write_text(*blocks("java", "java"))
    recorded, replayed = (run(line, tmp_path) for line in commands("java"))
    assert "sealed: 1 exchange recorded" in recorded
    assert "FAITHFUL: replay of" in replayed


@pytest.mark.usefixtures("shop")
def test_ci(folder: Path) -> None:
    """What is committed on one machine is replayed on another, by the steps of the workflow."""
    for line in commands("ci"):
        run(line, folder)
    elsewhere = folder / "checkout"
    elsewhere.mkdir()
    for name in ("agent.py", "mine.tape"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    (workflow,) = blocks("ci", "yaml")
    steps = yaml.safe_load(workflow)["jobs"]["replay"]["steps"]
    typed = [step["run"] for step in steps if "run" in step]
    assert [line.split()[0] for line in typed] == ["pip", "sudo", "playhead", "playhead"]
    printed = [run(line, elsewhere) for line in typed[2:]]
    assert "FAITHFUL: replay of mine" in printed[-1]
    assert (elsewhere / "receipt.json").exists()
    named = re.findall(r"^\| .+? \| `(playhead .+?)`", (DOCS / "ci.md").read_text(), re.MULTILINE)
    compared, asserted, written = named
    assert "FAITHFUL" in run(compared, elsewhere)
    assert run(asserted, elsewhere).startswith("[")
    assert "SSL_CERT_FILE=" in run(written.partition(" >>")[0], elsewhere)


@pytest.mark.usefixtures("shop")
def test_kubernetes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sidecar's own words and the agent's own variables, with folders of here in the place of volumes."""
    (text,) = blocks("kubernetes", "yaml")
    pod: dict[str, Any] = yaml.safe_load(text)["spec"]
    (sidecar,), (agent,) = pod["initContainers"], pod["containers"]
    mounted = {one["name"]: one["mountPath"] for one in sidecar["volumeMounts"]}
    assert {one["name"] for one in pod["volumes"]} == set(mounted)
    assert [one["name"] for one in agent["volumeMounts"]] == ["ca"]

    def here(word: str) -> str:
        place = next((one for one in mounted.values() if f"{word}/".startswith(f"{one}/")), "")
        return f"{folder}{word}" if place else word

    (folder / "data").mkdir(mode=0o700)
    variables, configmap = blocks("kubernetes", "sh")[0].splitlines()
    assert configmap.endswith("--from-env-file=agent.env")
    assert variables.endswith(" > agent.env")
    assert sidecar["args"][0] == "serve"
    flags = [here(word) for word in sidecar["args"][1:]]
    flags[flags.index("127.0.0.1:8080")] = "127.0.0.1:0"
    with Serve(*flags) as proxy:
        line = variables.removesuffix(" > agent.env").replace("127.0.0.1:8080", proxy.address)
        printed = run(line, folder)
        pairs = dict(one.split("=", 1) for one in printed.splitlines() if "=" in one)
        environment = {name: here(value) for name, value in pairs.items()}
        subprocess.run(
            [sys.executable, folder / "agent.py"], env=os.environ | environment, check=True
        )
        for typed in blocks("kubernetes", "sh")[1].splitlines()[:2]:
            inside = typed.partition(" -- ")[2]
            run(shlex.join(here(word) for word in shlex.split(inside)), folder)
    (folder / "data/mine.tape").rename(folder / "mine.tape")
    replayed = [run(line, folder) for line in blocks("kubernetes", "sh")[2].splitlines()]
    assert "FAITHFUL: replay of mine" in replayed[-1]
