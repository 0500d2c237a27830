"""Conversations as agents have them: each request repeats the whole of it."""

import json
import random
from collections.abc import Iterator
from functools import cache

from playhead.tape.exchange import Exchange, RequestClass
from playhead.tests.support.exchanges import make_exchange, make_response

URL = "POST https://api.test/v1/messages"


@cache
def words(seed: str, size: int) -> str:
    """Text without repetitions, the same for a seed."""
    rng = random.Random(seed)
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=size))


def bodies(
    name: str, steps: int, *, system: str = "agent", system_size: int = 9000, said: int = 300
) -> Iterator[bytes]:
    """Requests of a conversation; `system` and its size are shared by those that have the same agent.

    A marker moves to the newest message with each of them, as that of a prompt cache does.
    """
    messages: list[dict[str, str]] = []
    for step in range(steps):
        messages.append({"role": "user", "content": words(f"{name} asks {step}", said)})
        sent = [*messages[:-1], {**messages[-1], "cache": "here"}]
        yield json.dumps(
            {"model": "m", "messages": sent, "system": words(system, system_size)}
        ).encode()
        messages.append({"role": "assistant", "content": words(f"{name} says {step}", said)})


def step(seq: int, body: bytes) -> Exchange:
    """A request of a conversation, and an answer to it."""
    answer = json.dumps({"id": words(f"id {seq}", 12), "text": words(f"answer {seq}", 80)})
    kind = RequestClass.INFERENCE
    return make_exchange(seq, URL, kind=kind, body=body, response=make_response(answer.encode()))
