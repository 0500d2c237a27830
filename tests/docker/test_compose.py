"""compose.yaml: what is recorded, replayed and let out, with nothing of it written for these tests."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support.docker import Compose, composed

STORY = "python -m playhead.examples.double_refund"
DEMO = (
    "env OPENAI_BASE_URL=http://127.0.0.1:9001/v1 OPENAI_API_KEY=sk-demo"
    f" PAYMENTS_URL=http://127.0.0.1:9002 {STORY}"
)
ORIGIN = """
services:
  origin:
    image: playhead
    user: "0:0"
    profiles: [origin]
    healthcheck: {disable: true}
    stop_grace_period: 0s
    networks: {egress: {aliases: [api.test, other.test]}}
    entrypoint: [python, -m, http.server, "80", --directory, /etc]
"""
ASK = """
import os, sys, urllib.request
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]
for url in sys.argv[2:]:
    try:
        print("told", url, urllib.request.urlopen(url, timeout=20).status, flush=True)
    except Exception as error:
        print("error", url, error, flush=True)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """One project for all; each test has a run of its own."""
    folder = tmp_path_factory.mktemp("compose")
    folder.chmod(0o755)
    (folder / "ask.py").write_text(ASK)
    with composed("playhead-test", folder) as made:
        made.env["PLAYHEAD_TEST"] = str(folder)
        made.add(ORIGIN)
        mount = "{volumes: ['${PLAYHEAD_TEST}/ask.py:/ask.py:ro']}"
        agents = "".join(f"  agent-{name}: {mount}\n" for name in ("record", "replay", "live"))
        made.add(f"services:\n{agents}")
        made("--profile", "origin", "up", "--detach", check=True)
        yield made


def test_the_demo_is_replayed_out_of_the_box(compose: Compose) -> None:
    """Nothing is configured; the exit code is 0 and the receipt faithful."""
    done = compose.up("replay")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "contained: 0 packets left the machine" in done.stdout


def test_an_unfaithful_replay_is_seen_in_the_exit_code(
    compose: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent itself is content, and the replay is 121."""
    monkeypatch.setenv("AGENT_COMMAND", f"{DEMO}.agent_fixed")
    done = compose.up("replay")
    assert done.returncode == 121, done.stdout + done.stderr
    assert re.search(r"agent-replay-1 exited with code 0", done.stdout + done.stderr)


def test_what_knows_no_proxy_is_recorded_and_replayed(
    compose: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the agent's own exit code comes out, of the recording and of a faithful replay."""
    monkeypatch.setenv("PLAYHEAD_RUN", "mine")
    monkeypatch.setenv("AGENT_COMMAND", "python /ask.py 7 http://api.test/hostname")
    recorded = compose.up("record")
    assert recorded.returncode == 7, recorded.stdout + recorded.stderr
    assert "told http://api.test/hostname 200" in recorded.stdout
    replayed = compose.up("replay")
    assert replayed.returncode == 7, replayed.stdout + replayed.stderr
    assert "told http://api.test/hostname 200" in replayed.stdout


def test_what_is_not_on_the_tape_does_not_leave(
    compose: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as a request nor as a connection; the origin is there all the time."""
    monkeypatch.setenv("PLAYHEAD_RUN", "hostname")
    monkeypatch.setenv("AGENT_COMMAND", "python /ask.py 0 http://api.test/hostname")
    assert compose.up("record").returncode == 0
    monkeypatch.setenv(
        "AGENT_COMMAND",
        "python /ask.py 0 http://api.test/hostname http://other.test/hostname http://api.test:81/",
    )
    done = compose.up("replay")
    assert done.returncode == 123, done.stdout + done.stderr
    assert "told http://other.test" not in done.stdout
    assert "error http://api.test:81/" in done.stdout


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration in which one host may be asked."""
    file = tmp_path / "playhead.yaml"
    file.write_text("live:\n  - {match: 'GET http://other.test/*', reason: the test}\n")
    for folder in (file, *file.parents[:3]):
        folder.chmod(0o755)
    monkeypatch.setenv("PLAYHEAD_CONFIG", str(file))


@pytest.mark.usefixtures("live")
def test_one_live_rule_reaches_its_host_and_nothing_else(
    compose: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the profile where Playhead has a way out, and the agent none."""
    monkeypatch.setenv("PLAYHEAD_RUN", "partly-live")
    monkeypatch.setenv("AGENT_COMMAND", "python /ask.py 0 http://api.test/hostname")
    assert compose.up("record").returncode == 0
    monkeypatch.setenv(
        "AGENT_COMMAND",
        "python /ask.py 0 http://api.test/hostname http://other.test/hostname http://api.test/passwd",
    )
    done = compose.up("live")
    told = set(re.findall(r"told (\S+) 200", done.stdout))
    assert told == {"http://api.test/hostname", "http://other.test/hostname"}, done.stdout
    assert done.returncode == 121, done.stdout


@pytest.mark.usefixtures("live")
def test_a_live_rule_without_a_way_out_is_a_mistake(compose: Compose) -> None:
    """The replay says so, and the agent is not started."""
    done = compose.up("replay")
    assert done.returncode == 125, done.stdout + done.stderr
    assert "there are live rules, but this container is on network `none`" in done.stdout
    assert "the profile `live`" in done.stdout
