"""Planted values for blame: which earlier exchange first held a value that is asked for.

`blame(count, seed)` gives cases. A case is a plain dict:

    {"id": "blame-003", "kind": "money from api_json by http", "run": [exchange, ...], "truth": {...}}

The truth:

    "ask"      {"seq", "side": "request", "place": "body" | "url", "path", "value", "whole"}
               `path` is None for a URL. `whole` is False where `value` is only a part of the text at `path`.
    "verdict"  "recorded": the same characters, once JSON is decoded, are in the origin.
               "inferred": the origin has the value in another form; `rule` names the form.
               "none": no earlier answer or request has it. A decoy: saying "recorded" is the error that must not happen.
    "accept"   verdicts that are not wrong. "recorded" or "inferred" still need the right origin.
    "origin"   None, or {"seq", "side", "place", "path", "value"}: where the value was first, and in which form.
               `place` is "body", "url" or the name of a header field; `path` is None in streams, HTML and plain text.
               `side` is "request" where a local tool or the user brought it: no answer on the wire had it before.
    "rule"     "" or how the form changed: "number format", "JSON in JSON", "percent-encoding", "base64", "letter case".
    "lanes"    how many agents the value went through.

Exchanges between origin and question repeat the value: only the first place is the origin. A count of values found
leaves out the cases whose `accept` has "none".
"""

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus

from .paths import find, is_longer
from .run import Agent, Run
from .wire import DIALECTS, Plain, draw, tool

_WORDS = [
    "harbour",
    "lantern",
    "meadow",
    "granite",
    "orchard",
    "saddle",
    "velvet",
    "thistle",
    "compass",
    "ember",
    "willow",
    "copper",
    "falcon",
    "marble",
    "juniper",
    "anchor",
    "saffron",
    "pebble",
    "cinder",
    "bramble",
]
_SYSTEM = "You are an operations agent. Use the tools. Never invent a reference."
_TOOLS = (
    tool("search_docs", "query"),
    tool("get_order", "order"),
    tool("submit_refund", "reference", "note"),
    tool("read_file", "path"),
    tool("delegate", "task"),
)
_COMMON: tuple[Any, ...] = (True, 1, "ok", 0, "pending", False, "EUR", 200, None, "1")


def _words(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def _value(shape: str, rng: Random) -> Any:
    """Draw a value that nothing else in a run has."""
    code = draw(rng, "", 7).upper()
    return {
        "id": f"ORD-{code}",
        "text": f"the {_words(rng, 4)} {code.lower()}",
        "name": f'{rng.choice(("Müller", "Núñez", "Ørsted"))} "{code}" & Söhne\n{rng.choice(_WORDS)}',
        "money": rng.randrange(1_000, 90_000) + rng.choice((0.5, 0.2, 0.7)),
        "round": float(rng.randrange(10_000, 900_000)),
        "int": rng.randrange(1_000_000, 9_000_000),
    }[shape]


# How a value changes between its origin and the place that is asked for: form -> (function, rule, verdicts to accept).
_FORMS: dict[str, tuple[Callable[[Any], Any], str, tuple[str, ...]]] = {
    "same": (lambda value: value, "", ("recorded",)),
    "as text": (str, "", ("recorded", "inferred")),
    "thousands": (lambda value: f"{value:,.2f}", "number format", ("inferred",)),
    "dollars": (lambda value: f"${value:,.2f}", "number format", ("inferred",)),
    "integer": (int, "number format", ("inferred",)),
    "nested": (lambda value: value, "JSON in JSON", ("inferred", "recorded")),
    "quoted": (quote, "percent-encoding", ("inferred",)),
    "plus": (quote_plus, "percent-encoding", ("inferred",)),
    "base64": (
        lambda value: base64.b64encode(str(value).encode()).decode(),
        "base64",
        ("inferred", "none"),
    ),
    "lower": (lambda value: value.lower(), "letter case", ("inferred", "none")),
}

# shape of the value, origin, form, use: five different draws of each make 200.
_FOUND = (
    ("id", "model_text", "same", "http"),
    ("id", "tool_argument", "same", "http"),
    ("id", "local_result", "same", "http"),
    ("id", "api_json", "same", "http"),
    ("id", "html", "same", "http"),
    ("id", "text", "same", "history"),
    ("id", "header", "same", "http"),
    ("id", "user", "same", "http"),
    ("id", "api_json", "same", "url"),
    ("id", "header", "same", "lane"),
    ("text", "model_text", "same", "lane"),
    ("text", "api_json", "same", "history"),
    ("name", "api_json", "same", "http"),
    ("name", "local_result", "same", "http"),
    ("name", "api_nested", "nested", "http"),
    ("name", "api_json", "quoted", "url"),
    ("name", "tool_argument", "plus", "embedded"),
    ("name", "api_json", "base64", "http"),
    ("money", "api_json", "thousands", "http"),
    ("money", "api_json", "dollars", "embedded"),
    ("money", "api_json", "same", "http"),
    ("money", "api_json", "as text", "http"),
    ("money", "api_json", "thousands", "lane"),
    ("round", "api_json", "integer", "http"),
    ("int", "api_json", "same", "http"),
    ("int", "api_json", "as text", "embedded"),
    ("int", "text", "same", "http"),
    ("int", "html", "as text", "lane2"),
    ("id", "api_json", "same", "lane2"),
    ("id", "api_json", "same", "embedded"),
    ("id", "api_json", "lower", "http"),
    ("id", "api_list", "same", "history"),
)
_LANES = {"lane": 1, "lane2": 2}
"""How many sub-agents a value goes through."""
_DECOYS = ("made up", "common", "common", "near", "inside", "cents", "later", "in flight")


class _Scene:
    """A run on its way: the main agent, and what it does beside the value."""

    def __init__(self, rng: Random, first: str = "") -> None:
        self.rng = rng
        self.run = Run(rng)
        self.dialect = rng.choice(DIALECTS)
        self.agent = self.agent_of(_SYSTEM, first or f"Look into the {_words(rng, 3)} case.")

    def agent_of(self, system: str, first: str) -> Agent:
        streams = self.rng.random() < 0.5
        return Agent(self.run, self.dialect, system, _TOOLS, streams=streams, first=first)

    def fill(self, count: int, agent: Agent | None = None) -> None:
        """Do something else; answers have many common values."""
        agent = agent or self.agent
        for _ in range(count):
            call = agent.call("search_docs", {"query": _words(self.rng, 2)})
            agent.turn(self.rng.choice(("", "Let me look that up.")), call)
            word = self.rng.choice(_WORDS)
            hits = [
                {"title": _words(self.rng, 2), "score": 0.5, "page": 1},
                {"title": word, "score": 0},
            ]
            found = {"ok": True, "status": "ok", "count": 1, "more": False, "hits": hits}
            found |= {"state": "pending", "currency": "EUR", "code": 200, "next": None, "v": "1"}
            self.run.add("GET", f"https://docs.test/search?q={word}", response=found, process=4100)
            agent.result(call, found)

    def fetch(self, answer: Any, told: Any = None, headers: dict[str, str] | None = None) -> int:
        """Have the agent call a tool that asks an API; give the seq of the API's answer."""
        call = self.agent.call("get_order", {"order": str(self.rng.randrange(100, 999))})
        self.agent.turn("", call)
        order = call["arguments"]["order"]
        seq = self.run.add(
            "GET",
            f"https://shop.test/orders/{order}",
            response=answer,
            response_headers=headers,
            process=4100,
        )
        self.agent.result(call, answer if told is None else told)
        return seq

    def post(self, body: Plain, process: int = 4100) -> int:
        """Send what the agent's code put together."""
        return self.run.add(
            "POST",
            "https://pay.test/refunds",
            body,
            {"id": draw(self.rng, "re_"), "ok": True},
            201,
            process=process,
        )


def _order(value: Any, rng: Random) -> Plain:
    deep = {"reference": value, "open": True, "lines": [{"sku": _words(rng, 1), "count": 1}]}
    return {"object": "order", "status": "ok", "data": deep, "currency": "EUR"}


def _plant(scene: _Scene, origin: str, value: Any) -> Plain:
    """Have a value come up for the first time; give where."""
    rng, agent = scene.rng, scene.agent
    found: Plain = {"side": "response", "place": "body", "path": None, "value": value}
    if origin == "user":
        return found | {"seq": 1, "side": "request", "path": find(scene.run[1]["request"], value)}
    if origin == "model_text":
        call = agent.call("search_docs", {"query": _words(rng, 2)})
        seq = agent.turn(f"I note {value} for the next steps.", call)
        agent.result(call, {"ok": True})
    elif origin == "tool_argument":
        call = agent.call("get_order", {"order": value, "strict": True})
        seq = agent.turn("", call)
        agent.result(call, {"ok": True, "count": 1})
    elif origin == "local_result":
        call = agent.call("read_file", {"path": f"notes/{rng.choice(_WORDS)}.md"})
        agent.turn("", call)
        agent.result(call, f"# Notes\n\nReference: {value}\nStatus: ok\n")
        call = agent.call("search_docs", {"query": _words(rng, 2)})
        seq = agent.turn("", call)
        agent.result(call, {"ok": True})
        return found | {
            "seq": seq,
            "side": "request",
            "path": find(scene.run[seq]["request"], _first(value)),
        }
    elif origin == "html":
        page = f"<!doctype html><html><body><h1>Order</h1><td>{value}</td></body></html>"
        seq = scene.fetch(page, f"Order {value}")
    elif origin == "text":
        seq = scene.fetch(f"order: {value}\nstatus: ok\n")
    elif origin == "header":
        fields = {"x-order-reference": value, "location": f"/orders/{value}/lines"}
        seq = scene.fetch({"ok": True}, f"Created as {value}.", fields)
        found["place"] = "x-order-reference"
    else:
        body = _order(value, rng)
        if origin == "api_nested":
            body["data"]["reference"] = 1
            body["payload"] = json.dumps({"customer": {"name": value}})
            seq = scene.fetch(body)
            return found | {"seq": seq, "path": "$.payload"}
        if origin == "api_list":
            body = {"items": [_order(_value("id", rng), rng), body], "ok": True}
        seq = scene.fetch(body)
    answer = scene.run[seq]["response"]
    if found["place"] == "body" and isinstance(answer, dict):
        found["path"] = _path(answer, value)
    return found | {"seq": seq}


def _first(value: Any) -> Any:
    """A text of several lines stands as it is in a tool's result; a number as its digits."""
    return value if isinstance(value, str) else str(value)


def _path(body: Any, value: Any) -> str:
    """Find a value, or the JSON text or escaped text that has it."""
    for form in (value, _first(value), json.dumps(value, ensure_ascii=False)[1:-1]):
        try:
            return find(body, form)
        except LookupError:
            continue
    raise LookupError(value)


def _use(scene: _Scene, use: str, form: Any) -> tuple[int, str, Any, str | None]:
    """Have the model pass the value on; give seq, place, the value as asked for, and its path."""
    rng, agent = scene.rng, scene.agent
    open_calls = []
    for depth in range(_LANES.get(use, 0)):
        task = f"Refund the order with the reference {form} now."
        call = agent.call("delegate", {"task": task})
        agent.turn("I hand this over.", call)
        open_calls.append((agent, call))
        agent = scene.agent_of(
            f"You are specialist {depth + 1}. Do the one task you are given.", task
        )
        scene.fill(1, agent)
    if use == "embedded":
        given: Plain = {"note": f"See https://shop.test/find?ref={form}&v=1 for more"}
    else:
        given = {"reference": form, "urgent": True}
    call = agent.call("submit_refund", given)
    agent.turn(rng.choice(("", "I submit it.")), call)
    if use == "url":
        text = form if "%" in str(form) else quote(str(form))
        seq = scene.run.add("GET", f"https://pay.test/find?v=1&ref={text}", response={"ok": True})
        agent.result(call, {"ok": True})
        return seq, "url", text, None
    if use == "history":
        agent.result(call, {"ok": True})
        seq = agent.turn("Done.")
        return seq, "body", form, find(scene.run[seq]["request"], form, last=True)
    seq = scene.post(given | {"kind": "refund", "ok": True})
    for waiting, done in reversed([*open_calls, (agent, call)]):
        waiting.result(done, {"ok": True})
    return seq, "body", form, "$.note" if use == "embedded" else "$.reference"


def _found(rng: Random, recipe: tuple[str, str, str, str]) -> Plain:
    shape, origin, form, use = recipe
    value = _value(shape, rng)
    change, rule, accept = _FORMS[form]
    scene = _Scene(rng, f"Please deal with {value}." if origin == "user" else "")
    scene.fill(rng.randint(1, 3))
    place = _plant(scene, origin, value)
    scene.fill(rng.randint(0, 4))
    if rng.random() < 0.3 and origin.startswith("api"):
        scene.fetch({"again": scene.run[place["seq"]]["response"]})
    seq, where, asked, path = _use(scene, use, change(value))
    scene.agent.hear("Thanks. Say it once more.")
    scene.agent.turn(f"It was {value}.")
    whole = path is not None and not is_longer(scene.run[seq]["request"], path, asked)
    ask: Plain = {"seq": seq, "side": "request", "place": where, "path": path, "value": asked}
    truth = {
        "ask": ask | {"whole": whole},
        "verdict": accept[0],
        "accept": list(accept),
        "origin": place,
        "rule": rule,
        "lanes": 1 + _LANES.get(use, 0),
    }
    return {"kind": f"{shape} from {origin} as {form} by {use}", "run": scene.run.exchanges} | {
        "truth": truth
    }


def _decoy(rng: Random, kind: str) -> Plain:
    """Have the agent's code send what nobody gave it."""
    scene = _Scene(rng)
    scene.fill(rng.randint(2, 4))
    accept, value = ["none"], _value("id", rng)
    late = None
    if kind == "common":
        value, accept = rng.choice(_COMMON), ["none", "inferred"]
    elif kind == "near":
        other = value[:-1] + ("A" if value[-1] != "A" else "B")
        scene.fetch(_order(other, rng))
    elif kind == "inside":
        scene.fetch(_order(f"{value}7Q", rng))
        accept = ["none", "inferred"]
    elif kind == "cents":
        money = _value("money", rng)
        scene.fetch(_order(money, rng))
        value = round(money * 100)
    elif kind == "in flight":
        late = scene.run.add(
            "GET",
            "https://shop.test/slow",
            response=_order(value, rng),
            took_ms=90_000,
            beside=True,
        )
    scene.fill(rng.randint(0, 2))
    call = scene.agent.call("submit_refund", {"note": _words(rng, 3)})
    scene.agent.turn("", call)
    seq = scene.post({"reference": value, "note": call["arguments"]["note"]})
    scene.agent.result(call, {"ok": True})
    if kind == "later":
        scene.fetch(_order(value, rng))
    if late:
        scene.run.wait(100)
    scene.agent.turn("Done.")
    ask: Plain = {
        "seq": seq,
        "side": "request",
        "place": "body",
        "path": "$.reference",
        "value": value,
    }
    ask["whole"] = True
    truth = {
        "ask": ask,
        "verdict": "none",
        "accept": accept,
        "origin": None,
        "rule": "",
        "lanes": 1,
    }
    return {"kind": f"decoy: {kind}", "run": scene.run.exchanges, "truth": truth}


def blame(count: int = 200, seed: int = 22) -> list[Plain]:
    """Give planted values; one in five is a decoy."""
    cases = []
    for index in range(count):
        rng = Random(f"blame {seed} {index}")
        if index % 5 == 4:
            case = _decoy(rng, _DECOYS[index // 5 % len(_DECOYS)])
        else:
            case = _found(rng, _FOUND[(index - index // 5) % len(_FOUND)])
        cases.append({"id": f"blame-{index:03}"} | case)
    return cases
