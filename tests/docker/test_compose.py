"""compose.yaml: what is recorded, replayed and let out, with nothing of it written for these tests."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support.docker import IMAGE, Compose, composed, docker

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
    entrypoint: [sh, -c, "python -m http.server 81 --directory /etc & exec python -m http.server 80 --directory /etc"]
"""
TAPED, OTHER, PAST = "http://api.test/hostname", "http://other.test/hostname", "tcp://api.test:81"
ASK = """
import os, socket, sys, time, urllib.request
print("clock", time.time(), flush=True)
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]
for url in sys.argv[2:]:
    try:
        if url.startswith("tcp:"):
            socket.create_connection((url[6:-3], int(url[-2:])), 20).close()
            print("told", url, 200, flush=True)
            continue
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
    done = compose("--profile", "replay", "up", "--no-color")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "contained: 0 packets left the machine" in done.stderr


def test_an_unfaithful_replay_is_seen_in_the_exit_code(compose: Compose) -> None:
    """The agent itself is content, and the replay is 121; without a word about exit codes it is 1."""
    fixed = {"AGENT_COMMAND": f"{DEMO}.agent_fixed"}
    done = compose.up("replay", **fixed)
    assert done.returncode == 121, done.stdout + done.stderr
    assert "agent-replay-1 exited with code 0" in done.stdout + done.stderr
    done = compose("--profile", "replay", "up", "--no-color", env=fixed)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "didn't complete successfully: exit 121" in done.stderr


@pytest.fixture(scope="module")
def recorded(
    compose: Compose, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """A recording called `mine`, of an agent that ends with 7, with its clock."""
    file = tmp_path_factory.mktemp("recorded") / "playhead.yaml"
    file.write_text("determinism: full\n")
    file.chmod(0o644)
    agent = f"python /ask.py 7 {TAPED} {PAST}"
    return compose.up("record", PLAYHEAD_RUN="mine", PLAYHEAD_CONFIG=str(file), AGENT_COMMAND=agent)


def test_what_knows_no_proxy_is_recorded_and_replayed(
    compose: Compose, recorded: subprocess.CompletedProcess[str]
) -> None:
    """And the agent's own exit code comes out, of the recording and of a faithful replay, which has its clock."""
    assert recorded.returncode == 7, recorded.stdout + recorded.stderr
    assert f"told {TAPED} 200" in recorded.stdout
    assert f"error {PAST}" in recorded.stdout
    agent = f"python /ask.py 7 {TAPED}"
    replayed = compose.up("replay", PLAYHEAD_RUN="mine", AGENT_COMMAND=agent)
    assert replayed.returncode == 7, replayed.stdout + replayed.stderr
    assert f"told {TAPED} 200" in replayed.stdout
    clocks = [re.findall(r"clock ([\d.]+)", done.stdout) for done in (recorded, replayed)]
    assert len(clocks[0]) == 1
    assert clocks[0] == clocks[1]


def test_the_same_tries_reach_the_origin_without_compose(compose: Compose) -> None:
    """Or what is held back above and below would say nothing."""
    script = f"{compose.env['PLAYHEAD_TEST']}/ask.py:/ask.py:ro"
    words = ("--network", "playhead-test_egress", "--volume", script, "--entrypoint", "python")
    done = docker("run", "--rm", *words, IMAGE, "/ask.py", "0", TAPED, OTHER, PAST)
    assert set(re.findall(r"told (\S+) 200", done.stdout)) == {TAPED, OTHER, PAST}, done.stdout


@pytest.mark.usefixtures("recorded")
def test_what_is_not_on_the_tape_does_not_leave(compose: Compose) -> None:
    """Neither as a request nor as a connection; the origin is there all the time."""
    agent = f"python /ask.py 0 {TAPED} {OTHER} {PAST}"
    done = compose.up("replay", PLAYHEAD_RUN="mine", AGENT_COMMAND=agent)
    assert done.returncode == 123, done.stdout + done.stderr
    assert f"told {OTHER}" not in done.stdout
    assert f"error {PAST}" in done.stdout


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration in which one host may be asked."""
    file = tmp_path / "playhead.yaml"
    file.write_text("live:\n  - {match: 'GET http://other.test/*', reason: the test}\n")
    file.chmod(0o644)
    monkeypatch.setenv("PLAYHEAD_CONFIG", str(file))


@pytest.mark.usefixtures("recorded", "live")
def test_one_live_rule_reaches_its_host_and_nothing_else(compose: Compose) -> None:
    """In the profile where Playhead has a way out, and the agent none."""
    agent = f"python /ask.py 0 {TAPED} {OTHER} http://api.test/passwd"
    done = compose.up("live", PLAYHEAD_RUN="mine", AGENT_COMMAND=agent)
    assert set(re.findall(r"told (\S+) 200", done.stdout)) == {TAPED, OTHER}, done.stdout
    assert done.returncode == 121, done.stdout + done.stderr


@pytest.mark.usefixtures("live")
def test_a_live_rule_without_a_way_out_is_a_mistake(compose: Compose) -> None:
    """The replay says so with its code, and the agent is not started."""
    done = compose.up("replay")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "there are live rules, but this container is on network `none`" in done.stderr
    assert "the profile `live`" in done.stderr
    assert "replay-1 exited (125)" in done.stderr
