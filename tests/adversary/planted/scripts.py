"""Scripts of what an agent does, and their performance: the same script gives the same run, but for ids, dates and times.

A script is a dict: `dialect`, `streams`, `system`, `tools`, `task`, `ops`. An op has a `key` that names it and is one of

    {"turn": text, "calls": [fetch, ...]}   the model says this and calls these tools, all at once;
    {"fetches": [fetch, ...]}               the agent's code asks these, all at once where there are several;
    {"said": text}                          the model's last word, or the user's next with `user`.

A fetch has `key`, `tool`, `method`, `url`, `body`, `answer`, `status`; `told` has its answer go into the context where
no tool call asked for it. `order` of a script says for a key how the fetches of that op arrive: a list of positions.
"""

import json
from copy import deepcopy
from random import Random
from typing import Any

from .run import START_MS, Agent, Run
from .streams import hex_id
from .wire import DIALECTS, MODELS, Plain, tool

_WORDS = [
    "north",
    "south",
    "east",
    "west",
    "river",
    "ridge",
    "canyon",
    "delta",
    "summit",
    "valley",
    "forest",
    "island",
]
_TOOLS = ("lookup", "price", "stock", "contact")


def fetch(rng: Random, key: str, method: str = "GET") -> Plain:
    """Make up a request to a tool's API and its answer."""
    name, word = rng.choice(_TOOLS), rng.choice(_WORDS)
    number = rng.randrange(100, 10_000)
    answer = {
        "object": name,
        "data": {"place": word, "total": rng.randrange(1_000, 99_000), "open": True},
        "tags": rng.sample(_WORDS, 3),
    }
    body = None
    if method == "POST":
        body = {"kind": name, "amount": number, "note": f"to {word}", "lines": [{"n": 1}, {"n": 2}]}
    return {
        "key": key,
        "tool": name,
        "method": method,
        "url": f"https://{name}.test/v1/{word}/{number}",
        "body": body,
        "answer": answer,
        "status": 200,
        "told": False,
    }


def script(rng: Random, length: int = 8) -> Plain:
    """Make up a script of turns and fetches; a turn in three calls several tools at once."""
    ops: list[Plain] = []
    for index in range(length):
        key = f"op{index}"
        if index % 3 == 2:
            method = rng.choice(("GET", "POST"))
            ops.append({"key": key, "fetches": [fetch(rng, f"{key}.0", method)]})
            continue
        count = rng.choice((1, 1, 3))
        calls = [fetch(rng, f"{key}.{number}") for number in range(count)]
        text = f"Next I look at {rng.choice(_WORDS)} {index}."
        ops.append({"key": key, "turn": text, "calls": calls})
    ops.append({"key": "end", "said": f"All {length} are done: {rng.choice(_WORDS)}."})
    return {
        "dialect": rng.choice(DIALECTS),
        "streams": rng.random() < 0.5,
        "system": "You compare places.\nBe exact.\nUse every tool once.",
        "tools": [tool(name, "place", "number") for name in _TOOLS],
        "task": f"Compare {rng.choice(_WORDS)} with {rng.choice(_WORDS)} for {rng.randrange(10_000)}.",
        "ops": ops,
        "order": {},
        "stamped": False,
    }


class Played:
    """A script that was performed: its run, and the seq of each key."""

    def __init__(self, written: Plain, seed: str, start_ms: int = START_MS) -> None:
        self.run, self.where, self._script = Run(Random(seed), start_ms), {}, written
        dialect = written["dialect"]
        self.agent = Agent(
            self.run,
            dialect,
            written["system"],
            written["tools"],
            streams=written["streams"],
            first=written["task"],
            model=written.get("model", MODELS[dialect]),
        )
        for op in written["ops"]:
            self._play(op)

    where: dict[str, int]

    def _play(self, op: Plain) -> None:
        if "user" in op:
            self.agent.hear(op["user"])
        elif "said" in op:
            self.where[op["key"]] = self.agent.turn(op["said"])
        elif "turn" in op:
            calls = [self.agent.call(one["tool"], _arguments(one)) for one in op["calls"]]
            self.where[op["key"]] = self.agent.turn(op["turn"], *calls)
            answers = self._ask(op["key"], op["calls"])
            for call, answer in zip(calls, answers, strict=True):
                self.agent.result(call, answer)
        else:
            answers = self._ask(op["key"], op["fetches"])
            for one, answer in zip(op["fetches"], answers, strict=True):
                if one["told"]:
                    self.agent.hear(f"Context: {json.dumps(answer)}")

    def _ask(self, key: str, fetches: list[Plain]) -> list[Any]:
        """Send requests, all at once where there are several; give what is told of the answers, in the order of `fetches`."""
        rng, told = self.run.rng, [deepcopy(one["answer"]) for one in fetches]
        order = self._script["order"].get(key, range(len(fetches)))
        for number, index in enumerate(order):
            one, last = fetches[index], number == len(fetches) - 1
            answer = deepcopy(one["answer"])
            if isinstance(answer, dict):
                answer |= {
                    "request_id": hex_id(rng, "", 32),
                    "generated_at": _date(self.run.now_ms),
                }
            if self._script["stamped"]:
                told[index] = answer
            self.where[one["key"]] = self.run.add(
                one["method"],
                one["url"],
                one["body"],
                answer,
                one["status"],
                request_headers={
                    "content-type": "application/json",
                    "traceparent": f"00-{hex_id(rng, '', 32)}-{hex_id(rng)}-01",
                },
                response_headers={"x-request-id": hex_id(rng, "", 32)},
                process=self.agent.process,
                took_ms=500 if last else rng.randint(200, 400),
                beside=not last,
            )
        return told


def _arguments(one: Plain) -> Plain:
    _, place, number = one["url"].rsplit("/", 2)
    changed: Plain = one.get("arguments", {})
    return {"place": place, "number": number} | changed


def _date(now_ms: int) -> str:
    seconds = now_ms // 1000
    days, rest = divmod(seconds - 1_788_220_800, 86_400)
    return f"2026-{9 + days // 30:02}-{1 + days % 30:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"
