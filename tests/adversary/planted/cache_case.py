"""Agents whose provider has a prompt cache, and runs that note what is true of each call; see cache.py."""

from collections.abc import Callable
from random import Random
from typing import Any

from .paths import first_difference
from .providers import Provider
from .run import Agent, Run
from .wire import Plain, tool

_WORDS = [
    "audit",
    "ledger",
    "invoice",
    "shipment",
    "claim",
    "policy",
    "tariff",
    "carrier",
    "voucher",
    "branch",
    "depot",
    "manifest",
]

type Change = Callable[[Plain], None]


def prose(rng: Random, count: int) -> str:
    lines = [
        " ".join(rng.choices(_WORDS, k=9)) + f" {rng.randrange(10_000)}." for _ in range(count)
    ]
    return "\n".join(lines)


class Cached(Agent):
    """An agent whose provider has a cache; `changes` are made to each request before it is sent."""

    name = "main"
    provider: Provider
    marks: tuple[str, ...] = ("system", "last")
    life: Plain
    bare = False
    """The provider gives no counts of its cache."""

    def __init__(
        self, run: Run, dialect: str, system: str, provider: Provider, **more: Any
    ) -> None:
        tools = [
            tool("find", "text"),
            tool("open", "id", "view"),
            tool("file", "id"),
            tool("sum", "of"),
        ]
        super().__init__(run, dialect, system, tools, **more)
        self.provider, self.life = provider, {}
        self.changes: list[Change] = []

    def body(self) -> Plain:
        """Write the request, with marks where the provider wants them."""
        body = super().body()
        for change in self.changes:
            change(body)
        if self.dialect == "anthropic":
            mark = {"cache_control": {"type": "ephemeral"} | self.life}
            if "system" in self.marks:
                body["system"][-1] |= mark
            if "last" in self.marks:
                body["messages"][-1]["content"][-1] |= mark
            if "first" in self.marks:
                body["messages"][0]["content"][-1] |= mark
        return body

    def step(self, size: int = 6) -> int:
        """Ask once, call a tool, and take in its result; give the seq."""
        rng, body = self.run.rng, self.body()
        counts = self.provider.count(self.dialect, body, self.model, self.run.now_ms)
        call = self.call("find", {"text": prose(rng, 1)})
        seq = self.turn("I look.", call, counts=counts)
        self.result(call, prose(rng, size))
        if self.bare:
            _forget_counts(self.run[seq]["response"])
        return seq


def _forget_counts(body: Plain) -> None:
    given: Plain = body.get("usage") or body["usageMetadata"]
    names = ("prompt_tokens_details", "input_tokens_details", "cachedContentTokenCount")
    for name in (*names, "cache_read_input_tokens", "cache_creation_input_tokens"):
        given.pop(name, None)


def stated(exchange: Plain) -> int | None:
    """Give the tokens read from the cache, as the answer states them."""
    body = exchange["response"]
    found: int | None = None
    for event in body if isinstance(body, list) else [{"data": body}]:
        data = event["data"]
        if isinstance(data, str):
            continue
        for holder in (data, data.get("message") or {}, data.get("response") or {}):
            usage = holder.get("usage") or {}
            details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
            found = usage.get("cache_read_input_tokens", details.get("cached_tokens", found))
            found = holder.get("usageMetadata", {}).get("cachedContentTokenCount", found)
    return found


class Case:
    """A run on its way, and the truth about its calls."""

    def __init__(self, rng: Random, dialect: str, lines: int = 420, **more: Any) -> None:
        self.rng, self.run, self.provider = rng, Run(rng), Provider()
        self.calls: list[Plain] = []
        self._last: dict[str, int] = {}
        self.main = self.agent("main", dialect, lines, **more)

    def agent(self, name: str, dialect: str, lines: int = 420, **more: Any) -> Cached:
        system = f"You are {name}. Answer briefly.\n{prose(self.rng, lines)}"
        more = {"streams": self.rng.random() < 0.5, "first": f"Task: {prose(self.rng, 3)}"} | more
        agent = Cached(self.run, dialect, system, self.provider, **more)
        agent.name = name
        return agent

    def step(self, agent: Cached, verdict: str, *accept: str, part: str | None = None) -> None:
        """Send a call of which this is true."""
        seq, was = agent.step(), self._last.get(agent.name)
        if was is None:
            verdict, accept = ("unknown", ()) if verdict == "unknown" else ("first", ("unknown",))
            part = None
        self._last[agent.name] = seq
        path = None
        if part is not None and was is not None:
            path = moved(part, self.run[was]["request"], self.run[seq]["request"])
        truth = {"seq": seq, "lane": agent.name, "verdict": verdict, "accept": [verdict, *accept]}
        truth |= {"part": part, "path": path, "read": stated(self.run[seq])}
        self.calls.append(truth | {"sent_by": seq if part else None, "was": was if part else None})

    def hits(self, count: int, agent: Cached | None = None) -> None:
        """Send calls as usual; the first one of a lane is its first."""
        for _ in range(count):
            self.step(agent or self.main, "hit")
            self.run.wait(self.rng.randint(1, 40))


def moved(part: str, old: Plain, new: Plain) -> str | None:
    """Give the path in the new request of the first difference in a part."""
    if part == "model" and "model" not in new:
        return None
    if part == "cache_control":
        return _marks(new)
    if part == "system":
        for key in ("system", "instructions", "systemInstruction"):
            if key in new:
                return first_difference(old[key], new[key], f"$.{key}", ordered=True)
        return first_difference(old["messages"][0], new["messages"][0], "$.messages[0]")
    key = part
    if part == "messages":
        key = next(one for one in ("messages", "input", "contents") if one in new)
    elif part == "thinking":
        key = next(one for one in ("thinking", "reasoning") if one in new)
    if key not in old or key not in new:
        return f"$.{key}"
    return first_difference(old[key], new[key], f"$.{key}", ordered=True)


def _marks(new: Plain) -> str:
    index = next(
        i for i, one in enumerate(new["messages"]) if "cache_control" in one["content"][-1]
    )
    return (
        f"$.messages[{index}].content[{len(new['messages'][index]['content']) - 1}].cache_control"
    )
