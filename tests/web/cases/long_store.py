"""Long runs, written by the store's own API: an agent that asks, reads and pays, and whose context is compacted now and then.

A request repeats its conversation, so that 100,000 exchanges say about 1 GB. `python -m playhead.tests.web.cases.long_store FOLDER
COUNT` writes a store.
"""

import asyncio
import itertools
import json
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from playhead.store import Record, Store
from playhead.tape.exchange import Exchange, Lane, RedactedText, Request, RequestClass, Response
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import (
    fingerprint_of,
    make_exchange,
    make_intent,
    make_record,
)
from playhead.tests.support.looking_back import write_store

RUN = "long"
EFFECT_EVERY = 100
"""Exchanges from one effect to the next."""
_COMPACTED, _BATCH = 60, 500
_BEGAN_NS, _STEP_NS = 1_700_000_000_000_000_000, 1_000_000_000
_IDLE_EVERY, _IDLE_NS = 10_000, 600 * 1_000_000_000


def make_exchanges(count: int) -> Iterator[Exchange]:
    """Give the exchanges of a run, in order; the same each time."""
    talk = _Talk(random.Random(7))
    for seq in range(1, count + 1):
        kind, request, response = talk.step(seq)
        idle_ns = seq // _IDLE_EVERY * _IDLE_NS
        yield make_exchange(
            seq,
            kind=kind,
            request=request,
            response=response,
            started_ns=_BEGAN_NS + seq * _STEP_NS + idle_ns,
            end_us=400_000,
            lane=Lane(1),
            fingerprint=fingerprint_of(f"{request.method} {request.url}", request.body),
        )


class _Talk:
    """An agent by turns: a model call that wants a tool, and the request of that tool."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": self._say(400)}]

    def step(self, seq: int) -> tuple[RequestClass, Request, Response]:
        """Give the next exchange."""
        if seq % EFFECT_EVERY == 0:
            paid = {"order": seq, "amount": seq * 100}
            return (
                RequestClass.EFFECT,
                make_request("https://pay.test/v1/refunds", paid),
                make_response({"id": f"re_{seq}", "amount": seq * 100}),
            )
        if seq % 2 == 0:
            asked = make_request(f"https://shop.test/orders/{seq}", b"", method="GET")
            return RequestClass.READ, asked, make_response({"order": seq, "note": self._say(60)})
        return RequestClass.INFERENCE, *self._ask(seq)

    def _ask(self, seq: int) -> tuple[Request, Response]:
        if len(self._messages) > _COMPACTED:
            summary = {"role": "user", "content": f"Summary at {seq}: {self._say(100)}"}
            self._messages = [self._messages[0], summary]
        arguments = json.dumps({"order": seq + 1})
        call = {
            "id": f"call_{seq}",
            "type": "function",
            "function": {"name": "order", "arguments": arguments},
        }
        said: dict[str, Any] = {"role": "assistant", "content": self._say(20), "tool_calls": [call]}
        body = {
            "model": "gpt-5.1",
            "messages": self._messages,
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "order", "parameters": {"type": "object"}},
                }
            ],
        }
        usage = {"prompt_tokens": 2000, "completion_tokens": 30, "total_tokens": 2030}
        answer = {
            "id": f"chatcmpl-{seq}",
            "model": "gpt-5.1",
            "usage": usage,
            "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}],
        }
        made = (
            make_request("https://api.openai.com/v1/chat/completions", body),
            make_response(answer),
        )
        result = {"role": "tool", "tool_call_id": call["id"], "content": self._say(60)}
        self._messages = [*self._messages, said, result]
        return made

    def _say(self, words: int) -> str:
        return " ".join("".join(self._rng.choices("abcdefghij", k=6)) for _ in range(words))


def write_long_store(folder: Path, count: int) -> Path:
    """Write a store with one run of so many exchanges; give its folder."""
    return write_store(folder, partial(_write, count=count))


async def _write(store: Store, count: int) -> None:
    run = await store.runs.create(
        RUN, mode="record", at_ns=_BEGAN_NS, agent=RedactedText("python agent.py")
    )
    for batch in itertools.batched(make_exchanges(count), _BATCH):
        saved = []
        for exchange in batch:
            store.events.append_made(run.number, partial(make_intent, exchange))
            saved.append(store.exchanges.save(run.number, partial(_same, make_record(exchange))))
        await asyncio.gather(*saved)
    await store.runs.seal(
        run, reason="the command ended with 0", at_ns=_BEGAN_NS + count * 2 * _STEP_NS
    )


def _same(record: Record) -> Record:
    return record


if __name__ == "__main__":
    print(write_long_store(Path(sys.argv[1]), int(sys.argv[2])))
