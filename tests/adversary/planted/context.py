"""Planted compactions: what a context lost, and where each part of it was said first.

`context(count, seed)` gives cases `{"id", "kind", "run", "truth"}`. The truth has `compactions`:

    "seq", "before"   the first request with less, and the request of the lane that was sent before it. Where the agent
                      asked for a summary, `summary` is the seq of that call, and may be taken as the one before, too.
    "items"           what is gone from `before` to `seq`, in the order in which it stood:
        "kind"        "message", "tool call", "tool result", "system line" or "tool".
        "text"        its text: of a tool call its arguments as JSON, of a tool its name.
        "name"        of calls and results the tool; else "".
        "origin"      seq that had it first: of what the model said its answer, of anything else a request.
        "origins"     other seqs that may be named: the tool's own exchange, which gave the result.
        "fate"        "dropped": nothing of it is left. "shortened": the result is there with another text; `size` and
                      `left` are its bytes before and after. "summarised": the text is gone, but the summary names its
                      key. To say "dropped" of what is summarised is coarse, not wrong.
        "optional"    whether it need not be named: the request for the summary.
    "kept"            texts that are still there, word for word: as parts, or inside the summary. None of them is lost.

In all other requests nothing is lost.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from .run import Agent, Run
from .wire import DIALECTS, Plain, draw, tool

_WORDS = [
    "module",
    "schema",
    "parser",
    "queue",
    "index",
    "driver",
    "bucket",
    "session",
    "router",
    "worker",
    "ticket",
    "report",
]
_TOOLS = ("read_file", "run_tests", "edit_file", "web_fetch", "list_files")
_CLEARED = "[Old tool result content cleared]"
_ASK = "Summarise the conversation so far, so that it can be continued."
_LEFT_OUT = "[Earlier messages were left out to save context.]"
_CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context.\n"
)


class _Talk:
    """A conversation that notes each part of it, and the seq that had it first."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.run = rng, Run(rng)
        self.lines = ["You are a coding agent.", *(self._prose("Rule") for _ in range(4))]
        self.items: list[Plain] = []
        self.compactions: list[Plain] = []
        self._new: list[Plain] = []
        self.agent = Agent(
            self.run,
            rng.choice(DIALECTS),
            "\n".join(self.lines),
            [tool(name, "path", "reason") for name in _TOOLS],
            streams=rng.random() < 0.5,
        )

    def _prose(self, about: str, size: int = 8) -> str:
        key = draw(self.rng, "", 6).upper()
        return f"{about} {key}: " + " ".join(self.rng.choices(_WORDS, k=size)) + "."

    def _note(self, kind: str, text: str, message: Plain, name: str = "", origin: int = 0) -> None:
        item = {"kind": kind, "text": text, "name": name, "origin": origin, "origins": []}
        self.items.append(item | {"fate": "dropped", "optional": False, "message": message})
        if not origin:
            self._new.append(self.items[-1])

    def hear(self, text: str = "") -> None:
        """Have the user say something."""
        text = text or self._prose("Do not forget", 12)
        self.agent.hear(text)
        self._note("message", text, self.agent.messages[-1])

    def step(self, calls: int = 1) -> int:
        """Have the model say something and call tools; give the seq."""
        rng, agent, text = self.rng, self.agent, self._prose("I found")
        made = [
            agent.call(
                rng.choice(_TOOLS),
                {"path": f"src/{rng.choice(_WORDS)}.py", "reason": self._prose("for", 3)},
            )
            for _ in range(calls)
        ]
        seq = self.turn(text, *made)
        for call in made:
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            self._note("tool call", arguments, agent.messages[-1], call["name"], seq)
        for call in made:
            given, seen = self._prose("Output", rng.choice((10, 60))), []
            if call["name"] == "web_fetch":
                seen = [
                    self.run.add(
                        "GET", f"https://docs.test/{call['arguments']['path']}", response=given
                    )
                ]
            agent.result(call, given)
            self._note("tool result", given, agent.messages[-1], call["name"])
            self.items[-1]["origins"] = seen
        return seq

    def turn(self, text: str, *calls: Plain) -> int:
        """Ask the model, which says this; give the seq."""
        seq = self.agent.turn(text, *calls)
        for item in self._new:
            item["origin"] = seq
        self._new = []
        self._note("message", text, self.agent.messages[-1], "", seq)
        return seq

    def sent(self, summary: int) -> None:
        """Note that the call for a summary had all parts; what came after the last call before need not be named."""
        last = max(one["origin"] for one in self.items if one["text"] and one["origin"] < summary)
        for item in self.items:
            item["optional"] = item["origin"] in (0, last)
            item["origin"] = item["origin"] or summary
        self._new = []

    def fresh(self) -> list[Plain]:
        """Give the parts that no request had yet."""
        return self._new

    def compact(self, messages: list[Plain], lost: list[Plain], summary: int | None = None) -> None:
        """Go on with these messages; note what is lost."""
        before = max(
            one["seq"] for one in self.run.exchanges if "process" in one and one["seq"] != summary
        )
        gone = {id(one) for one in lost}
        text = "\n".join(one["text"] for one in messages if isinstance(one.get("text"), str))
        items = [_plain(one, text) for one in self.items if id(one) in gone]
        self.items = [
            one for one in self.items if id(one) not in gone or one["fate"] == "shortened"
        ]
        kept = [one["text"] for one in self.items if one["fate"] != "shortened"]
        self.agent.messages = messages
        seq = self.step()
        found = {"seq": seq, "before": before, "summary": summary, "items": items, "kept": kept}
        self.compactions.append(found)


def _plain(item: Plain, summary: str) -> Plain:
    plain = {key: value for key, value in item.items() if key != "message"}
    key = item["text"].split(":")[0]
    if item["fate"] == "dropped" and item["kind"] == "message" and key in summary:
        plain["fate"] = "summarised"
    return plain


def _lost_but(talk: _Talk, kept: list[Plain]) -> list[Plain]:
    held = {id(one) for one in kept}
    return [one for one in talk.items if id(one["message"]) not in held]


def _starts(talk: _Talk) -> list[int]:
    """Give where a conversation can be cut: before a user's message or an assistant's."""
    return [i for i, one in enumerate(talk.agent.messages) if one["role"] != "tool" and i > 0]


def _summary(talk: _Talk, keep: int = 0, quotes: bool = False) -> None:
    agent, rng = talk.agent, talk.rng
    cut = len(agent.messages) if not keep else _starts(talk)[-keep]
    recent, old = agent.messages[cut:], agent.messages[:cut]
    points = []
    for item in talk.items:
        said = item["kind"] == "message" and any(item["message"] is one for one in old)
        if said and (quotes or rng.random() < 0.4):
            whole = quotes and item["message"]["role"] == "user"
            points.append(item["text"] if whole else f"{item['text'].split(':')[0]} (in short)")
    text = "Summary:\n" + "\n".join(points)
    asked = Agent(talk.run, agent.dialect, agent.system, agent.tools, streams=agent.streams)
    if rng.random() < 0.5:
        asked.system, asked.tools = "You summarise conversations of agents.", []
    asked.messages = [*agent.messages]
    asked.hear(_ASK)
    seq = asked.turn(text)
    talk.sent(seq)
    head = {"role": "user", "text": _CONTINUED + text}
    lost = [one for one in _lost_but(talk, recent) if not (quotes and one["text"] in text)]
    talk.compact([head, *recent], lost, seq)
    request = {"kind": "message", "text": _ASK, "name": "", "origin": seq, "origins": []}
    talk.compactions[-1]["items"].append(request | {"fate": "dropped", "optional": True})


def _summarised(talk: _Talk) -> None:
    _summary(talk)


def _summarised_but_recent(talk: _Talk) -> None:
    _summary(talk, keep=2)


def _quoted(talk: _Talk) -> None:
    _summary(talk, quotes=True)


def _window(talk: _Talk) -> None:
    messages, starts = talk.agent.messages, _starts(talk)
    cut = talk.rng.choice(starts[1:-1])
    kept = [{"role": "user", "text": _LEFT_OUT}, *messages[cut:]]
    talk.compact(kept, _lost_but(talk, kept))


def _middle(talk: _Talk) -> None:
    messages, starts = talk.agent.messages, _starts(talk)
    kept = [messages[0], *messages[talk.rng.choice(starts[1:-1]) :]]
    talk.compact(kept, _lost_but(talk, kept))


def _shorten(talk: _Talk, change: Callable[[str], str]) -> None:
    results = [
        one for one in talk.items if one["kind"] == "tool result" and one not in talk.fresh()
    ]
    chosen = results[: max(1, len(results) - talk.rng.randint(1, 2))]
    for item in chosen:
        left = change(item["text"])
        sizes = {"size": len(item["text"].encode()), "left": len(left.encode())}
        item |= {"fate": "shortened"} | sizes
        item["message"]["text"] = left
    talk.compact(talk.agent.messages, chosen)


def _cleared(talk: _Talk) -> None:
    _shorten(talk, lambda text: _CLEARED)


def _truncated(talk: _Talk) -> None:
    _shorten(talk, lambda text: f"{text[:20]}… [{len(text) - 20} characters truncated]")


def _system_lines(talk: _Talk) -> None:
    gone = talk.rng.sample(talk.lines[1:], talk.rng.randint(1, 2))
    talk.agent.system = "\n".join(one for one in talk.lines if one not in gone)
    _beside(talk, [("system line", one) for one in talk.lines if one in gone])


def _tools(talk: _Talk) -> None:
    gone = talk.rng.sample(_TOOLS, talk.rng.randint(1, 2))
    talk.agent.tools = [one for one in talk.agent.tools if one["name"] not in gone]
    _beside(talk, [("tool", one) for one in _TOOLS if one in gone])


def _beside(talk: _Talk, gone: list[tuple[str, str]]) -> None:
    talk.compact(talk.agent.messages, [])
    talk.compactions[-1]["items"] = [
        {
            "kind": kind,
            "text": text,
            "name": "",
            "origin": 1,
            "origins": [],
            "fate": "dropped",
            "optional": False,
        }
        for kind, text in gone
    ]


def _twice(talk: _Talk) -> None:
    _window(talk)
    for _ in range(4):
        talk.step()
    _window(talk)


_KINDS: tuple[tuple[str, Callable[[_Talk], Any]], ...] = (
    ("summary", _summarised),
    ("sliding window", _window),
    ("old results cleared", _cleared),
    ("middle dropped", _middle),
    ("results truncated", _truncated),
    ("summary and recent messages", _summarised_but_recent),
    ("users' words quoted", _quoted),
    ("lines of the system prompt", _system_lines),
    ("tools", _tools),
    ("two compactions", _twice),
)


def context(count: int = 60, seed: int = 22) -> list[Plain]:
    """Give runs with a compaction or two."""
    cases = []
    for index in range(count):
        rng = Random(f"context {seed} {index}")
        kind, plant = _KINDS[index % len(_KINDS)]
        talk = _Talk(rng)
        talk.hear()
        for number in range(rng.randint(5, 8)):
            if number == 3:
                talk.hear()
            talk.step(rng.choice((1, 1, 2)))
        plant(talk)
        talk.step()
        talk.turn("That is all.")
        truth = {"compactions": talk.compactions}
        cases.append(
            {"id": f"context-{index:03}", "kind": kind, "run": talk.run.exchanges, "truth": truth}
        )
    return cases
