"""A long conversation that crashed is resumed, and both runs take little on disk."""

import asyncio
import json
import random
import signal
from pathlib import Path
from typing import Any

from playhead.config import Config, Mode
from playhead.store.paths import BODIES, LOG
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import running_engine
from playhead.tests.support.process import Serve
from playhead.tests.support.resume_world import CHAT, Asked, Client, Upstream

CALLS, TOKENS = (100, 209_000) if FULL else (20, 41_800)
"""Tool calls, and tokens of the conversation at its end; every request has all of it so far."""
MOST_BYTES = 3_000_000 * CALLS // 100
_CRASH = CALLS * 53 // 100
"""The call with which Temporal's history of this conversation ends, at 50 MB."""
_TOKEN_BYTES = 4
_WORDS = 4000


def converse(calls: int) -> list[list[dict[str, Any]]]:
    """Give the messages of each call: what was said before, and the result of one more tool."""
    chance = random.Random(209)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(chance.choices(letters, k=chance.randrange(2, 11))) for _ in range(_WORDS)]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "mend the tests"}]
    made = []
    for number in range(calls):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{number}.py"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        text = ""
        while len(text) < TOKENS // CALLS * _TOKEN_BYTES:
            text += " ".join(chance.choices(words, k=12)) + "\n"
        messages = [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": text},
        ]
        made.append(messages)
    return made


def ask(client: Client, messages: list[dict[str, Any]]) -> None:
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    assert client.send(Asked("POST", CHAT, body, {})).status == 200


def find_size(store: Path) -> int:
    """Give what runs take on disk: not what each store has once, as certificates and the compiled search for secrets."""
    folders = (store / name for name in (LOG, BODIES))
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in files)


async def test_a_long_conversation_resumes_in_little_room(
    tmp_path: Path, certificates: Certificates
) -> None:
    """209k tokens and 100 tool calls, killed at call 53, take 3 MB at most: the crashed run and the one that goes on."""
    conversation = converse(CALLS)
    config = Config(store=tmp_path / "s", mode=Mode.PLAYBACK, upstream_ca=certificates.root)
    flags = ("--listen", "127.0.0.1:0", "--store", config.store)
    with Upstream(certificates) as upstream:
        with Serve(*flags, "--upstream-ca", certificates.root) as proxy:
            ca = next(config.public_ca_dir.glob("*.pem"))
            client = Client(proxy.address, "long", ca, upstream.url)
            for messages in conversation[:_CRASH]:
                await asyncio.to_thread(ask, client, messages)
            proxy.stop(signal.SIGKILL)
        upstream.sent.clear()
        async with running_engine(config) as running:
            running.registry.resumes = True
            again = Client(str(running.address), "long", running.ca, upstream.url)
            for messages in conversation:
                await asyncio.to_thread(ask, again, messages)
            await running.end("long@1")
    assert sum(upstream.sent.values()) == CALLS - _CRASH
    size = find_size(config.store)
    assert size <= MOST_BYTES, f"{size:,} bytes"
