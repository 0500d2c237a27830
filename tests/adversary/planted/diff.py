"""Planted pairs of runs: where two runs diverge first, and at what.

`diff(count, seed)` gives cases `{"id", "kind", "a": run, "b": run, "truth"}`. The truth:

    "first"   None where the runs do not diverge, or
              {"a", "b"}: seqs of the first divergence in A and in B. Of an exchange that only one run has, the other
              seq is that of the exchange that stands in its place; it may be one more than the last.
              "root": "inserted" (only B has it), "deleted" (only A), "swapped" (one after the other, in another order),
              "changed request" (the agent's code or prompt), "changed answer" (same request, another answer).
              "side", "path": where the first difference is, in A's exchange, or in B's where A has no such member;
              `path` is None for exchanges that only one run has and for streams; "status" is the status.
    "roots"   names of the root that are not wrong: a swap is also an insertion, to an aligner.
    "later"   whether later differences follow from the first one; they are not roots.

No divergence: ids, dates, times and the cutting of streams differ between all pairs; answers of parallel requests that
arrive in another order; a run and its replay. In pairs of the kind "volatile in the context" the ids and dates of tools'
answers went into the context, too.
"""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from .paths import first_difference
from .run import START_MS
from .scripts import Played, fetch, script
from .wire import Plain, tool

_VOLATILE = {
    *("id", "created", "created_at", "responseId", "usage", "usageMetadata", "tool_use_id"),
    *("call_id", "tool_call_id", "request_id", "generated_at"),
}

type Pair = tuple[Plain, Plain | None]
"""Script of B, and its truth without seqs: `key` in A and in B, `root`, `side`, `path`."""


def stripped(body: Any) -> Any:
    """Give a body without what differs each time; paths stay."""
    if isinstance(body, dict):
        return {key: stripped(one) for key, one in body.items() if key not in _VOLATILE}
    return [stripped(one) for one in body] if isinstance(body, list) else body


def _single(rng: Random, written: Plain) -> int:
    """Choose an op in which the agent's code sends one request."""
    return rng.choice([i for i, op in enumerate(written["ops"]) if "fetches" in op])


def _turn(rng: Random, written: Plain) -> int:
    return rng.choice([i for i, op in enumerate(written["ops"]) if "turn" in op])


def _first_key(op: Plain) -> str:
    return str(op["fetches"][0]["key"] if "fetches" in op else op["key"])


def _truth(
    a: str, b: str, root: str, side: str = "", path: str | None = None, **more: Any
) -> Plain:
    found = {"a": a, "b": b, "root": root, "side": side, "path": path, "later": True}
    return found | {"roots": [root]} | more


def _inserted(rng: Random, b: Plain) -> Pair:
    at = rng.randrange(1, len(b["ops"]))
    new = fetch(rng, "new", rng.choice(("GET", "POST")))
    new["told"] = rng.random() < 0.5
    follows = _first_key(b["ops"][at])
    b["ops"].insert(at, {"key": "new op", "fetches": [new]})
    return b, _truth(follows, "new", "inserted", later=new["told"])


def _deleted(rng: Random, b: Plain) -> Pair:
    at = _single(rng, b)
    gone = b["ops"].pop(at)
    return b, _truth(gone["fetches"][0]["key"], _first_key(b["ops"][at]), "deleted", later=False)


def _turn_inserted(rng: Random, b: Plain) -> Pair:
    at = _turn(rng, b)
    new = {"key": "new", "turn": "I look twice.", "calls": [fetch(rng, "new.0")]}
    b["ops"].insert(at, new)
    return b, _truth(b["ops"][at + 1]["key"], "new", "changed answer", "response", "?")


def _turn_deleted(rng: Random, b: Plain) -> Pair:
    at = rng.choice(
        [
            i
            for i, op in enumerate(b["ops"][:-1])
            if "turn" in op and "fetches" not in b["ops"][i + 1]
        ]
    )
    gone = b["ops"].pop(at)
    return b, _truth(gone["key"], b["ops"][at]["key"], "changed answer", "response", "?")


def _swapped(rng: Random, b: Plain) -> Pair:
    at = _single(rng, b)
    one, other = b["ops"][at], {"key": "second", "fetches": [fetch(rng, "second.0")]}
    b["ops"][at : at + 1] = [other, one]
    roots = ["swapped", "inserted", "deleted"]
    return b, _truth(one["fetches"][0]["key"], "second.0", "swapped", later=False, roots=roots)


def _argument(rng: Random, b: Plain) -> Pair:
    at = _single(rng, b)
    one = b["ops"][at]["fetches"][0]
    one |= {"method": "POST", "body": fetch(rng, "x", "POST")["body"]}
    path, value = rng.choice((("$.amount", -5), ("$.note", "to nobody"), ("$.lines[1].n", 7)))
    truth = _truth(one["key"], one["key"], "changed request", "request", path, later=False)
    return b, truth | {"edit": (at, path, value)}


def _answer(rng: Random, b: Plain) -> Pair:
    op = b["ops"][_turn(rng, b)]
    one = rng.choice(op["calls"])
    path = rng.choice(("$.data.total", "$.data.place", "$.tags[2]", "$.data.open"))
    _set(one["answer"], path, {"$.data.total": -1, "$.data.open": False}.get(path, "elsewhere"))
    return b, _truth(one["key"], one["key"], "changed answer", "response", path)


def _set(body: Any, path: str, value: Any) -> None:
    if path == "$.tags[2]":
        body["tags"][2] = value
    elif path == "$.lines[1].n":
        body["lines"][1]["n"] = value
    elif path.startswith("$.data."):
        body["data"][path[7:]] = value
    else:
        body[path[2:]] = value


def _status(rng: Random, b: Plain) -> Pair:
    one = rng.choice(b["ops"][_turn(rng, b)]["calls"])
    one |= {"status": rng.choice((404, 500, 503)), "answer": {"error": "no"}}
    return b, _truth(one["key"], one["key"], "changed answer", "response", "status")


def _retried(rng: Random, b: Plain) -> Pair:
    at = _single(rng, b)
    failed = b["ops"][at]["fetches"][0]
    again = {"key": "again", "fetches": [failed | {"key": "again.0"}]}
    b["ops"][at]["fetches"] = [failed | {"status": 503, "answer": {"error": "busy"}}]
    b["ops"].insert(at + 1, again)
    roots = ["changed answer", "inserted"]
    key = failed["key"]
    return b, _truth(key, key, "changed answer", "response", "status", later=False, roots=roots)


def _system(rng: Random, b: Plain) -> Pair:
    old = b["system"]
    b["system"] = old.replace("Be exact.", rng.choice(("Be quick.", "Be exact!", "")))
    return b, _truth("op0", "op0", "changed request", "request", "?")


def _task(rng: Random, b: Plain) -> Pair:
    b["task"] += " Today."
    return b, _truth("op0", "op0", "changed request", "request", "?")


def _tool_list(rng: Random, b: Plain) -> Pair:
    b["tools"] = [*b["tools"], tool("weather", "place")]
    return b, _truth("op0", "op0", "changed request", "request", "?")


def _model_text(rng: Random, b: Plain) -> Pair:
    op = rng.choice([one for one in b["ops"] if "turn" in one or "said" in one])
    name = "turn" if "turn" in op else "said"
    op[name] = op[name].replace(".", ", I think.")
    return b, _truth(op["key"], op["key"], "changed answer", "response", "?", later=name == "turn")


def _model_argument(rng: Random, b: Plain) -> Pair:
    op = b["ops"][_turn(rng, b)]
    op["calls"][-1]["arguments"] = {"place": "nowhere"}
    return b, _truth(op["key"], op["key"], "changed answer", "response", "?")


def _several(rng: Random, b: Plain) -> Plain:
    op: Plain = b["ops"][_turn(rng, b)]
    op["calls"] = [fetch(rng, f"{op['key']}.{number}") for number in range(4)]
    return op


def _shuffled(rng: Random, count: int) -> list[int]:
    order = list(range(count))
    while order == sorted(order):
        rng.shuffle(order)
    return order


def _reordered(rng: Random, b: Plain) -> Pair:
    return b, None


def _reordered_then(rng: Random, b: Plain) -> Pair:
    return _answer(rng, b)


def _polled(rng: Random, b: Plain) -> Pair:
    roots = ["changed answer", "inserted"]
    truth = _truth("poll3", "poll3", "changed answer", "response", "$.state", roots=roots)
    return b, truth | {"later": False}


def _nothing(rng: Random, b: Plain) -> Pair:
    return b, None


_KINDS: tuple[tuple[str, Callable[[Random, Plain], Pair]], ...] = (
    ("request inserted", _inserted),
    ("request deleted", _deleted),
    ("requests swapped", _swapped),
    ("argument changed", _argument),
    ("answer changed", _answer),
    ("parallel tools reordered", _reordered),
    ("polled more often", _polled),
    ("volatile only", _nothing),
    ("replay", _nothing),
    ("status changed", _status),
    ("turn inserted", _turn_inserted),
    ("turn deleted", _turn_deleted),
    ("system prompt changed", _system),
    ("task changed", _task),
    ("tool added", _tool_list),
    ("model said otherwise", _model_text),
    ("model called otherwise", _model_argument),
    ("parallel requests reordered", _reordered),
    ("reordered, then changed", _reordered_then),
    ("polled as often", _nothing),
    ("volatile in the context", _nothing),
    ("retried", _retried),
    ("reordered and changed within", _reordered_then),
    ("repeated, one answer changed", _polled),
)


def _prepared(rng: Random, kind: str) -> tuple[Plain, Plain]:
    """Give the script of A and a copy for B, with what the kind needs in both."""
    a = script(rng, rng.randint(6, 11))
    order: dict[str, list[int]] = {}
    if "reordered" in kind:
        op = _several(rng, a)
        if kind == "parallel requests reordered":
            position = a["ops"].index(op)
            batch = [fetch(rng, f"batch.{number}") for number in range(5)]
            a["ops"].insert(position, {"key": "batch", "fetches": batch})
            order["batch"] = _shuffled(rng, 5)
        order[op["key"]] = _shuffled(rng, 4)
        if kind == "reordered and changed within":
            a["ops"] = [one for one in a["ops"] if one is op or "turn" not in one]
    polls = [fetch(rng, "poll0") | {"key": f"poll{number}"} for number in range(5)]
    if kind.startswith(("polled", "repeated")):
        at = rng.randrange(1, len(a["ops"]))
        polls = [one | {"url": polls[0]["url"], "answer": {"state": "pending"}} for one in polls]
        polls[-1]["answer"] = {"state": "done"}
        a["ops"][at:at] = [{"key": f"{one['key']} op", "fetches": [one]} for one in polls]
    a["stamped"] = kind == "volatile in the context"
    b = deepcopy(a)
    b["order"] = order
    if kind == "polled more often":
        gone = [one["key"] for one in a["ops"]].index("poll3 op")
        del a["ops"][gone]
        a["ops"][gone]["fetches"][0]["key"] = "poll3"
    elif kind.startswith("repeated"):
        b["ops"][[one["key"] for one in b["ops"]].index("poll3 op")]["fetches"][0]["answer"] = {
            "state": "failing"
        }
    return a, b


def _pair(index: int, seed: int) -> Plain:
    rng = Random(f"diff {seed} {index}")
    kind, plant = _KINDS[index % len(_KINDS)]
    a, b = _prepared(rng, kind)
    b, truth = plant(rng, b)
    if kind == "requests swapped":
        at = next(i for i, op in enumerate(b["ops"]) if op["key"] == "second")
        a["ops"].insert(at + 1, deepcopy(b["ops"][at]))
    if truth and "edit" in truth:
        at, path, value = truth.pop("edit")
        a["ops"][at] = deepcopy(b["ops"][at])
        _set(b["ops"][at]["fetches"][0]["body"], path, value)
    one = Played(a, f"a {seed} {index}")
    same = kind == "replay"
    other = Played(b, f"{'a' if same else 'b'} {seed} {index}", START_MS + 86_400_000 * 3)
    if same:
        for played, recorded in zip(other.run.exchanges, one.run.exchanges, strict=True):
            times = {"started_ms": played["started_ms"], "took_ms": max(1, played["took_ms"] // 50)}
            played.update(deepcopy(recorded) | times)
    first, roots, later = None, [], False
    if truth:
        roots, later = truth.pop("roots"), truth.pop("later")
        first = truth | {"a": one.where[truth["a"]], "b": other.where[truth["b"]]}
        if first["path"] == "?":
            sides = [one.run[first["a"]][first["side"]], other.run[first["b"]][first["side"]]]
            is_stream = isinstance(sides[0], list)
            first["path"] = None if is_stream else first_difference(*map(stripped, sides))
    return {
        "id": f"diff-{index:03}",
        "kind": kind,
        "a": one.run.exchanges,
        "b": other.run.exchanges,
        "truth": {"first": first, "roots": roots, "later": later},
    }


def diff(count: int = 200, seed: int = 22) -> list[Plain]:
    """Give pairs of runs; in a third of them nothing diverges."""
    return [_pair(index, seed) for index in range(count)]
