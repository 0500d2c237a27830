"""A run of several agents, with a note of who sent which model call; agents that work at the same time."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from .run import Agent, Run
from .wire import Plain, draw, tool

_WORDS = [
    "sales",
    "margin",
    "customs",
    "freight",
    "rebate",
    "refund",
    "payroll",
    "lease",
    "tender",
    "quota",
    "grant",
    "bonus",
]
SEARCH = tool("web_search", "query")
TOOLS = (SEARCH, tool("calculate", "expression"))


class Scene:
    """A run on its way, and the truth about its model calls."""

    def __init__(self, rng: Random, dialect: str) -> None:
        self.rng, self.run, self.dialect = rng, Run(rng), dialect
        self.calls: list[Plain] = []
        self.streams = rng.random() < 0.5
        self.parents: dict[str, list[str | None]] = {}

    def task(self, verb: str = "Find out") -> str:
        """Make up a task that no other agent has."""
        words = " ".join(self.rng.sample(_WORDS, 4))
        return f"{verb} all about {words} in region {draw(self.rng, '', 5).upper()}."

    def agent(
        self, lane: str, system: str, tools: Sequence[Plain], first: str, *parents: str | None
    ) -> Agent:
        """Make an agent; the first of its parents is the truth, the others are not wrong."""
        self.parents.setdefault(lane, list(parents) or [None])
        return Agent(self.run, self.dialect, system, tools, streams=self.streams, first=first)

    def turn(self, lane: str, agent: Agent, text: str, *calls: Plain, **more: Any) -> int:
        """Ask the model, and note who did."""
        seq = agent.turn(text, *calls, **more)
        self.note(seq, lane)
        return seq

    def note(self, seq: int, lane: str | None, aside: str | None = None) -> None:
        """Note whose call this is."""
        parents = self.parents[lane] if lane else [None]
        self.calls.append(
            {"seq": seq, "lane": lane, "aside": aside} | {"parent": parents[0], "parents": parents}
        )

    def look_up(self, lane: str, agent: Agent, count: int = 1) -> None:
        """Have an agent call a tool, or several at once, that ask the network."""
        self.together([self.working(lane, agent, 1, count)])

    def working(self, lane: str, agent: Agent, turns: int, parallel: int = 2) -> Iterator[int]:
        """Have an agent work; give each time when it can go on, while others work in between."""
        rng, run = self.rng, self.run
        for _ in range(turns):
            queries = [
                f"{rng.choice(_WORDS)} {draw(rng, '', 4)}" for _ in range(rng.randint(1, parallel))
            ]
            calls = [agent.call("web_search", {"query": one}) for one in queries]
            took = rng.randint(700, 3000)
            began = run.now_ms
            self.turn(lane, agent, "I search.", *calls, beside=True, took_ms=took)
            yield began + took + 5
            began, took = run.now_ms, 10
            for call in calls:
                found = {"hits": [{"title": f"About {call['arguments']['query']}", "rank": 1}]}
                word = call["arguments"]["query"].replace(" ", "+")
                took = rng.randint(200, 500)
                run.add(
                    "GET",
                    f"https://search.test/?q={word}",
                    response=found,
                    process=agent.process,
                    took_ms=took,
                    beside=True,
                )
                agent.result(call, found)
            yield run.now_ms + 510

    def saying(self, lane: str, agent: Agent, text: str) -> Iterator[int]:
        """Have an agent say its last word."""
        began, took = self.run.now_ms, self.rng.randint(700, 3000)
        self.turn(lane, agent, text, beside=True, took_ms=took)
        yield began + took + 5

    def together(self, workers: Sequence[Iterator[int]]) -> None:
        """Have agents work at the same time, each as soon as it can go on."""
        ready = [(self.run.now_ms + index, index) for index in range(len(workers))]
        end = self.run.now_ms
        while ready:
            ready.sort()
            at, index = ready.pop(0)
            self.run.now_ms = max(self.run.now_ms, at)
            following = next(workers[index], None)
            if following is not None:
                ready.append((following, index))
                end = max(end, following)
        self.run.now_ms = max(self.run.now_ms, end)

    def sub(self, lane: str, agent: Agent, text: str, turns: int = 1) -> Iterator[int]:
        """Have a sub-agent work and answer."""
        yield from self.working(lane, agent, turns)
        yield from self.saying(lane, agent, text)
