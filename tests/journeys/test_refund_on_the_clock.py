"""The double refund by an agent that asks with the time and with lots: recorded once, replayed in the sandbox."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from playhead.tests.support.process import playhead
from playhead.tests.support.refunds import run_fakes

REPLAYS = 3 if os.environ.get("PLAYHEAD_FULL") == "1" else 1


@dataclass(frozen=True)
class Ran:
    """One run of the agent."""

    done: subprocess.CompletedProcess[str]
    log: bytes
    """Its requests, byte for byte."""
    receipt: dict[str, Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """The recording, and replays of it with both services switched off."""
    folder = tmp_path_factory.mktemp("clock")
    environ: dict[str, str] = {}

    def run(name: str, *words: str) -> Ran:
        place = folder / name
        place.mkdir()
        flags = ("--store", folder / "store", "--receipt", place / "receipt.json")
        agent = (sys.executable, "-m", "playhead.tests.support.punctual", str(place / "log"))
        done = playhead(words[0], *flags, *words[1:], "--", *agent, env=environ, timeout_s=120)
        assert (place / "log").exists(), done.stderr
        receipt = json.loads((place / "receipt.json").read_text())
        return Ran(done, (place / "log").read_bytes(), receipt)

    with run_fakes("0.8") as ((_, provider), (_, payments)):
        environ |= {
            "OPENAI_BASE_URL": f"{provider}/v1",
            "OPENAI_API_KEY": "any",
            "PAYMENTS_URL": payments,
            "REFUND_TIMEOUT_S": "0.3",
        }
        recorded = run("recorded", "record", "--run", "tape", "--determinism", "full")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        again = [
            pool.submit(run, f"replay-{number}", "replay", "--sleeps", "short", "tape")
            for number in range(REPLAYS)
        ]
        return [recorded, *(one.result() for one in again)]


def test_each_replay_asks_the_same_byte_for_byte(runs: list[Ran]) -> None:
    """The logs of all requests are equal; without the clock each would hold another time, and other lots."""
    recorded, *replayed = runs
    assert recorded.done.returncode == 0, recorded.done.stderr
    assert recorded.log.count(b"/chat/completions") > recorded.log.count(b"POST http") / 2
    assert recorded.receipt["requests"] == 7
    for one in replayed:
        assert one.done.returncode == 0, one.done.stderr
        assert one.log == recorded.log
        assert one.done.stdout == recorded.done.stdout
        assert one.receipt["matched"] == {"exact": recorded.receipt["requests"]}
        assert (one.receipt["faithful"], one.receipt["contained"]) == (True, True)
        told = one.receipt["determinism"]
        assert (told["exhausted"], told["problems"]) == ([], [])


def test_sleeps_are_short_where_that_is_declared(runs: list[Ran]) -> None:
    """The recording slept for real; replays did not, as they were told to, and went on at the recorded time."""
    recorded, *replayed = runs
    assert recorded.receipt["determinism"]["sleeps"] == "real"
    assert {one.receipt["determinism"]["sleeps"] for one in replayed} == {"short"}
