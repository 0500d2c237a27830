"""What looking back costs: the state at a step of a long run, the origin of a value, and the page of steps, against the bars.

A run of an agent with two sub-agents by turns is written into a store made for it: each request repeats its conversation, which is
compacted every 120 messages. State and origin are measured in process, from an open store, as CPU milliseconds at steps drawn at random;
the origin at the last step, too, whose value nothing has before it. A comparison of two runs is measured in process as well, the page as a
command, in CPU seconds of its process.

uv run python benchmarks/looking_back.py [EXCHANGES] [STORE [RUN]]
"""

import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from playhead.store import Record, Store
from playhead.tape.exchange import Fingerprint, Lane, RequestClass, Response
from playhead.tests.support.dialects import make_request, make_stream
from playhead.tests.support.exchanges import fingerprint_of, make_exchange, make_record
from playhead.timeline.blame.find_origin import find_blame
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.state.find_state import find_state

EXCHANGES = 10_000
STATE_BAR_MS = 20.0
BLAME_BAR_MS = 100.0
SHOW_STEPS = 1000
SHOW_BAR_S = 1.0
DIFF_BAR_S = 1.0
_COMPACTED = 120
_STATES = 60
_BLAMES = 20


def say(rng: random.Random, words: int) -> str:
    """Text without repetitions."""
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(words))


class Agent:
    """One agent, whose conversation grows."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self._rng = rng
        self._system = f"You are {name}.\n" + say(rng, 800)
        self._messages: list[Any] = [{"role": "user", "content": say(rng, 60)}]
        self._calls = 0

    def step(self, seq: int) -> Record:
        """Ask, be answered with a tool call, and note both."""
        if len(self._messages) > _COMPACTED:
            kept = self._messages[-8:]
            self._messages = [{"role": "user", "content": say(self._rng, 200)}, *kept[1:]]
        self._calls += 1
        call = f"toolu_{seq}_{self._calls}"
        given = {"command": f"cat {say(self._rng, 4)}"}
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": given}
        body: dict[str, Any] = {
            "model": "claude-opus-4-5",
            "messages": self._messages,
            "max_tokens": 32000,
            "stream": True,
            "system": [{"type": "text", "text": self._system}],
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        }
        request = make_request(
            "https://api.anthropic.com/v1/messages", body, {"anthropic-version": "2023-06-01"}
        )
        record = make_record(
            make_exchange(
                seq,
                kind=RequestClass.INFERENCE,
                request=request,
                response=_stream(call, use, given),
                started_ns=1_700_000_000_000_000_000 + seq * 1_000_000_000,
                end_us=900_000,
                lane=Lane(1),
                fingerprint=fingerprint_of(request.url, request.body),
            )
        )
        result = {"type": "tool_result", "tool_use_id": call, "content": say(self._rng, 60)}
        self._messages = [
            *self._messages,
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
        return record


def _stream(call: str, use: dict[str, Any], given: object) -> Response:
    text = json.dumps(given)
    size = max(1, len(text) // 10)
    usage = {"input_tokens": 10, "cache_read_input_tokens": 9000, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"msg_{call}",
        "model": "claude-opus-4-5",
        "role": "assistant",
        "usage": usage,
    }
    return make_stream(
        {"type": "message_start", "message": message | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": use | {"input": {}}},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": text[at : at + size]},
            }
            for at in range(0, len(text), size)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 40},
        },
        {"type": "message_stop"},
        named=True,
    )


async def fill(folder: Path, exchanges: int) -> None:
    """Write the run."""
    rng = random.Random(22)
    agents = [Agent(name, rng) for name in ("the lead", "a reader", "a writer")]
    with Store.open(folder) as store:
        for name, steps in (("long", exchanges), ("thousand", SHOW_STEPS)):
            run = await store.runs.create(name, mode="record", at_ns=1)
            for seq in range(1, steps + 1):
                agent = agents[0 if seq % 100 < 60 else 1 if seq % 100 < 80 else 2]
                await store.exchanges.save(run.number, partial(agent.step, seq))
            await store.runs.seal(run, reason="done", at_ns=9)


def measure_states(folder: Path, run: str) -> tuple[float, float, int]:
    """Give the median and the longest state in CPU milliseconds, and the largest request in bytes."""
    rng, took, largest = random.Random(7), [], 0
    with Store.open(folder, readonly=True) as store:
        exchanges = Exchanges(store, store.runs.get(run))
        find_state(exchanges, exchanges.seqs[-1])  # what is read once a process
        for _ in range(_STATES):
            seq = rng.choice(exchanges.seqs)
            began = time.process_time()
            state = find_state(exchanges, seq)
            took.append((time.process_time() - began) * 1000)
            largest = max(largest, len(state.exchange.request.body))
    return median(took), max(took), largest


def measure_blames(folder: Path, run: str) -> tuple[float, float]:
    """Give the median of origins at random steps, and the longest of those at the last step, in CPU milliseconds."""
    rng, took, last = random.Random(7), [], []
    with Store.open(folder, readonly=True) as store:
        exchanges = Exchanges(store, store.runs.get(run))
        seqs = exchanges.seqs
        for number in range(_BLAMES):
            seq = seqs[-1] if number % 4 == 0 else rng.choice(seqs[len(seqs) // 10 :])
            exchange = exchanges.find(seq)
            assert exchange is not None
            count = len(json.loads(exchange.request.body)["messages"])
            began = time.process_time()
            find_blame(exchanges, seq, f"$.messages[{count - 1}].content[0].content")
            (last if number % 4 == 0 else took).append((time.process_time() - began) * 1000)
    return median(took), max(last)


def measure_show(folder: Path, run: str) -> float:
    """Give the CPU seconds of `playhead show`, the least of three."""
    command = [sys.executable, "-m", "playhead.proxy.cli", "show", run, "--store", str(folder)]
    took = []
    for _ in range(3):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    return min(took)


def measure_diff(folder: Path, run: str) -> float:
    """Give the CPU seconds that reading and comparing two runs take in process, the least of three."""
    took = []
    with Store.open(folder, readonly=True) as store:
        info = store.runs.get(run)
        for _ in range(3):
            began = time.process_time()
            first, second = (read_acts(Exchanges(store, info)) for _ in range(2))
            for act in second[
                len(second) // 2 :
            ]:  # the second half is asked and answered otherwise
                act.fingerprint = Fingerprint(b"")
                act.asked_key += b"other"
                act.answered_key += b"other"
                for said in act.answered:
                    said.form += b"other"
            compare_acts(first, second)
            took.append(time.process_time() - began)
    return min(took)


def report(folder: Path, states: str, page: str) -> None:
    """Measure, and print what the bars ask for."""
    middle, longest, largest = measure_states(folder, states)
    print(
        f"state: median {middle:.1f} ms, longest {longest:.1f} ms of {_STATES}; bar {STATE_BAR_MS} ms"
    )
    print(f"       largest request {largest} bytes")
    print(f"diff of two {page}: {measure_diff(folder, page):.2f} s; bar {DIFF_BAR_S} s")
    drawn, last = measure_blames(folder, page)
    print(
        f"blame {page}: median {drawn:.1f} ms, at its last step {last:.1f} ms; bar for {SHOW_STEPS} steps {BLAME_BAR_MS} ms"
    )
    print(
        f"show {page}: {measure_show(folder, page):.2f} s; bar for {SHOW_STEPS} steps {SHOW_BAR_S} s"
    )


def main() -> None:
    """Measure a run of one's own, or one that is made."""
    words = sys.argv[1:]
    count = int(words[0]) if words else EXCHANGES
    if len(words) > 1:
        run = words[2] if len(words) > 2 else "long"
        report(Path(words[1]), run, "thousand" if len(words) == 2 else run)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        asyncio.run(fill(folder, count))
        report(folder, "long", "thousand")


if __name__ == "__main__":
    main()
