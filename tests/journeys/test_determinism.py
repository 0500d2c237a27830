"""`record --determinism` and `replay`: an agent that puts time and chance into its requests is replayed exactly."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from playhead.proxy.command_line.json_key_meanings import RECEIPT
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead

CLOCK_READING = Path(__file__).parents[1] / "support" / "clock_reading"
AGENT = [sys.executable, "-W", "ignore", str(CLOCK_READING / "clock_reads.py")]
DOCUMENTED = set(", ".join(RECEIPT["determinism"][1]).replace("[]", "").split(", "))
"""Keys, as `playhead schema receipt` explains them."""
KEY = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Told:
    """A command of ours that has ended."""

    code: int
    said: Any
    """By the agent, on stdout."""
    err: str
    receipt: dict[str, Any]

    @property
    def determinism(self) -> dict[str, Any]:
        """As in the receipt, but for why there is no library: that of a replay says that the recording had none."""
        told: dict[str, Any] = self.receipt["determinism"]
        return {**told, "libc": bool(told["libc"])}


@pytest.fixture(scope="module")
def origin(certificates: Certificates) -> Iterator[Origin]:
    """Answers with what it is told."""

    async def say(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    with Origin({"/say": say}, certificates) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("determinism")


@dataclass(frozen=True)
class Launcher:
    """Runs the agent, with an encrypted store."""

    url: str
    folder: Path
    roots: Path

    def __call__(self, *words: str, agent: Sequence[str] = AGENT) -> Told:
        file = self.folder / "receipt.json"
        flags = ["--store", str(self.folder / "store"), "--receipt", str(file)]
        flags += ["--upstream-ca", str(self.roots)]
        environ = {"ORIGIN": self.url, "PLAYHEAD_ENCRYPTION_KEY": KEY}
        environ["TMPDIR"] = str(self.folder)
        done = playhead(words[0], *flags, *words[1:], "--", *agent, env=environ)
        said = json.loads(done.stdout) if done.stdout.startswith("[") else None
        return Told(done.returncode, said, done.stderr, json.loads(file.read_text()))


@pytest.fixture(scope="module")
def launcher(origin: Origin, folder: Path, certificates: Certificates) -> Launcher:
    return Launcher(origin.url, folder, certificates.root)


@pytest.fixture(scope="module")
def recorded(launcher: Launcher) -> Told:
    """The recording of all tests."""
    return launcher("record", "--run", "tape", "--determinism", "full")


def test_the_receipt_of_a_recording_tells_what_ran_with_the_preload(recorded: Told) -> None:
    """All five processes of the agent; keys as documented; never the seed."""
    told = recorded.receipt["determinism"]
    assert recorded.code == 0, recorded.err
    assert (told["level"], told["processes"], told["preloaded"]) == ("full", 5, 5)
    assert (told["uncovered"], told["exhausted"], told["problems"]) == ([], [], [])
    assert told["libc"] == "it is switched off; libc_preload: auto loads it", "nobody asked for it"
    assert set(told) <= DOCUMENTED
    assert "seed" not in json.dumps(recorded.receipt)
    assert "determinism full: 5 of 5 processes with the preload" in recorded.err


NEEDED = {
    "--no-sandbox": (),
    "--sandbox=contained": ("a sandbox",),
    "--sandbox-files": ("a sandbox", "bubblewrap"),
}


@pytest.mark.parametrize("where", NEEDED)
def test_a_replay_asks_the_same_byte_for_byte(
    recorded: Told, launcher: Launcher, where: str
) -> None:
    """As it was recorded without a flag, in the sandbox and outside; that is fidelity level 4."""
    need(*NEEDED[where])
    replayed = launcher("replay", where, "tape")
    assert replayed.code == 0, replayed.err
    assert replayed.said == recorded.said
    assert replayed.receipt["matched"] == {"exact": recorded.receipt["requests"]}
    assert replayed.receipt["level"] == "4: everything from the tape, the clock too"
    assert replayed.determinism == recorded.determinism


def test_without_it_the_replay_diverges(recorded: Told, launcher: Launcher) -> None:
    """The control: the first request that holds the time is not on the tape."""
    replayed = launcher("replay", "--no-sandbox", "--determinism", "off", "tape")
    assert (replayed.code, replayed.receipt["determinism"]) == (121, None)
    assert replayed.receipt["level"].startswith("3:")


WORKER = """
import json, os, sys, threading, urllib.request, uuid
def work(number):
    if number == sys.argv[1]:
        body = json.dumps({"id": str(uuid.uuid4())}).encode()
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(os.environ["ORIGIN"] + "/say", body, headers)
        try:
            urllib.request.urlopen(asked).read()
        except OSError:
            pass
for number in "12":
    thread = threading.Thread(target=work, args=(number,))
    thread.start()
    thread.join()
"""


def test_a_job_that_another_worker_takes_is_told_of_as_such(launcher: Launcher) -> None:
    """Full determinism is advised only to who has it not: with it a worker draws its own lots, not those of a job."""
    agent = [sys.executable, "-c", WORKER]
    launcher("record", "--run", "workers", "--determinism", "full", agent=[*agent, "1"])
    stolen = launcher("replay", "--no-sandbox", "workers", agent=[*agent, "2"])
    assert "another worker may have taken the job" in stolen.err
    assert "recorded and replayed with" not in stolen.err
    off = launcher("replay", "--no-sandbox", "--determinism=off", "workers", agent=[*agent, "1"])
    assert "recorded and replayed with `--determinism full`" in off.err
    assert "another worker" not in off.err


def test_sleeps_are_kept_short_where_declared(recorded: Told, launcher: Launcher) -> None:
    """As the receipt says; without the recorded clock it is an error, and nothing is run."""
    replayed = launcher("replay", "--no-sandbox", "--sleeps", "short", "tape")
    assert (replayed.code, replayed.said) == (0, recorded.said)
    assert replayed.determinism == {**recorded.determinism, "sleeps": "short"}
    assert "with the preload, their sleeps kept short" in replayed.err
    clockless = launcher(
        "replay", "--no-sandbox", "--sleeps", "short", "--determinism", "off", "tape"
    )
    assert (clockless.code, clockless.said) == (125, None)
    assert "sleeps are kept short on a recorded clock only" in clockless.err


def test_a_level_that_was_not_recorded_is_told_of(launcher: Launcher) -> None:
    """The replay goes on with a clock of its own, and the receipt says that this is not what was asked for."""
    asks = "import os, urllib.request; urllib.request.urlopen(os.environ['ORIGIN'] + '/say', b'x').read()"
    agent = [sys.executable, "-c", asks]
    launcher("record", "--run", "plain", agent=agent)
    replayed = launcher("replay", "--no-sandbox", "--determinism", "full", "plain", agent=agent)
    told = replayed.receipt["determinism"]
    assert (replayed.code, told["level"]) == (0, "off")
    assert told["missing"] == "full was asked for, but the tape was recorded with off"
    assert f"determinism off: {told['missing']}" in replayed.err
    assert replayed.receipt["level"].endswith("the clock live")


def test_node_asks_the_same_byte_for_byte(launcher: Launcher) -> None:
    """With its `fetch`, which before version 24 knows no proxy."""
    agent = [need("node"), str(CLOCK_READING / "clock_reads.mjs")]
    recorded = launcher("record", "--run", "node", "--determinism", "full", agent=agent)
    replayed = launcher("replay", "--no-sandbox", "node", agent=agent)
    assert recorded.receipt["requests"] == len(recorded.said) > 0
    assert replayed.said == recorded.said
    assert replayed.receipt["matched"] == {"exact": len(recorded.said)}
    assert replayed.receipt["level"].startswith("4:")


def test_a_shell_asks_the_same_byte_for_byte(launcher: Launcher) -> None:
    """In the sandbox too: every program finds the recorded time by the C library's clock, which only the recording names."""
    need("a C compiler", "curl", "a sandbox")
    configuration = launcher.folder / "libc.yaml"
    configuration.write_text("libc_preload: auto\n")
    script = 'for i in 1 2; do curl -sS -d "$(date +%s.%N) $(mktemp -u)" "$ORIGIN/say"; done'
    agent = ["sh", "-c", script]
    flags = ["-c", str(configuration), "--run", "shell", "--determinism", "full"]
    recorded = launcher("record", *flags, agent=agent)
    configuration.unlink()
    assert (recorded.code, recorded.receipt["requests"]) == (0, 2)
    replayed = launcher("replay", "--sandbox=contained", "shell", agent=agent)
    assert replayed.code == 0, replayed.err
    assert replayed.receipt["matched"] == {"exact": 2}
    assert replayed.receipt["determinism"] == recorded.receipt["determinism"]
    assert replayed.receipt["determinism"]["preloaded"] == 7


def test_nothing_of_it_is_left_behind_in_the_clear(recorded: Told, folder: Path) -> None:
    """The journal is in the log, which is sealed; the folder it was written to is gone."""
    # The working folder of a replay may still have been in use at its end: the next one removes it.
    left = [path.name for path in folder.iterdir() if not path.name.startswith("playhead-folder-")]
    assert sorted(left) == ["receipt.json", "store"]
    kept = b"".join(path.read_bytes() for path in folder.rglob("*.mdb"))
    assert kept
    assert not any(word in kept for word in (b"hash_seed", b"looks"))
