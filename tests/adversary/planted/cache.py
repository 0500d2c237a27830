"""Planted causes of prompt cache misses, with the counts that the providers would state.

`cache(count, seed)` gives cases `{"id", "kind", "run", "truth"}`. The truth has `calls`, one for each model call:

    "seq", "lane"   the call, and the name of the agent that sent it.
    "verdict"       "first": the first call of its lane, so that nothing can be said of a miss.
                    "hit": what could be read was read.
                    "prefix broke": the request does not begin as the one before of the lane did.
                    "lifetime ran out": it does, but the provider's lifetime was over.
                    "provider": it does, in time, and the provider read nothing all the same.
                    "unknown": no counts were given, or the prompt is below the least size that is cached.
    "accept"        verdicts that are not wrong; anything else said with certainty is.
    "part"          of a broken prefix what moved first, in the order in which the provider reads: "model", "tools",
                    "system", "thinking", "tool_choice", "cache_control", "messages"; else None.
    "path"          where that is in this call's request; None for the others.
    "sent_by"       seq of the call that sent the changed part for the first time, "was" the last one that sent the old.
    "read"          the provider's count of tokens read, None where it gave none.

A mark `cache_control` that goes along with the last message is the usual way and breaks nothing.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from .cache_case import Cached, Case, Change
from .run import Agent
from .wire import Plain, tool

_OTHERS = ("openai-chat", "openai-responses", "gemini")
_OPUS = "claude-opus-4-5-20251101"


def _system(body: Plain, change: Callable[[str], str]) -> None:
    if "instructions" in body:
        body["instructions"] = change(body["instructions"])
        return
    for holder, key in (
        (body.get("system", [{}])[0], "text"),
        (body.get("systemInstruction", {"parts": [{}]})["parts"][0], "text"),
        (body.get("messages", [{}])[0], "content"),
    ):
        if isinstance(holder.get(key), str):
            holder[key] = change(holder[key])
            return


def _tools(body: Plain) -> list[Plain]:
    found: list[Plain] = body["tools"]
    return next(
        (one["functionDeclarations"] for one in found if "functionDeclarations" in one), found
    )


def _schema(one: Plain) -> None:
    """Write the keys of a schema in another order: the same to JSON, not to a cache."""
    holder = one.get("function", one)
    key = "input_schema" if "input_schema" in holder else "parameters"
    holder[key] = dict(reversed(holder[key].items()))


def _broken(case: Case, part: str, change: Change, *accept: str) -> None:
    case.hits(case.rng.randint(2, 3))
    case.main.changes.append(change)
    case.step(case.main, "prefix broke", *accept, part=part)
    case.hits(2)


def _system_changed(case: Case) -> None:
    _broken(
        case,
        "system",
        lambda body: _system(body, lambda text: text.replace("briefly", "at length")),
    )


def _system_grown(case: Case) -> None:
    _broken(
        case, "system", lambda body: _system(body, lambda text: text + "\nMemory: prefers tables.")
    )


def _clock(case: Case) -> None:
    def stamp(body: Plain) -> None:
        seconds = case.run.now_ms // 1000 % 86_400
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        _system(body, lambda text: f"Now: 2026-09-21T{clock}Z\n{text}")

    case.main.changes.append(stamp)
    for _ in range(4):
        case.step(case.main, "prefix broke", part="system")
        case.run.wait(30)


def _tools_reordered(case: Case) -> None:
    _broken(case, "tools", lambda body: _tools(body).reverse())


def _tool_added(case: Case) -> None:
    def add(body: Plain) -> None:
        new = [*case.main.tools, tool("mcp__jira__search", "jql")]
        body["tools"] = _with_tools(case.main, new)

    _broken(case, "tools", add)


def _with_tools(agent: Cached, tools: list[Plain]) -> Any:
    other = Agent(agent.run, agent.dialect, "", tools, first="x")
    return other.body()["tools"]


def _schema_reordered(case: Case) -> None:
    _broken(case, "tools", lambda body: _schema(_tools(body)[1]))


def _early_edit(case: Case) -> None:
    case.hits(3)
    case.main.messages[0]["text"] += " (edited)"
    case.step(case.main, "prefix broke", part="messages")
    case.hits(2)


def _result_cleared(case: Case) -> None:
    case.hits(4)
    cleared = next(one for one in case.main.messages if one["role"] == "tool")
    cleared["text"] = "[Old tool result content cleared]"
    case.step(case.main, "prefix broke", part="messages")
    case.hits(2)


def _model_changed(case: Case) -> None:
    case.hits(3)
    case.main.model = {
        "anthropic": "claude-opus-4-1-20250805",
        "gemini": "gemini-2.5-flash",
    }.get(case.main.dialect, "gpt-5-mini-2025-08-07")
    case.step(case.main, "prefix broke", part="model")
    case.hits(2)


def _thinking(case: Case) -> None:
    _broken(
        case,
        "thinking",
        lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 4096}),
    )


def _tool_choice(case: Case) -> None:
    _broken(case, "tool_choice", lambda body: body.update(tool_choice={"type": "any"}))


def _mark_moved(case: Case) -> None:
    case.hits(3)
    case.main.marks = ("first",)
    case.step(case.main, "prefix broke", part="cache_control")


def _lifetime(case: Case) -> None:
    case.hits(3)
    case.run.wait(case.rng.randint(400, 3000) if case.main.dialect == "anthropic" else 9_000)
    others = () if case.main.dialect != "gemini" else ("unknown", "provider")
    case.step(case.main, "lifetime ran out", *others)
    case.hits(2)


def _hour(case: Case) -> None:
    case.main.life = {"ttl": "1h"}
    case.hits(2)
    case.run.wait(case.rng.randint(1_000, 3_000))
    case.hits(1)
    case.run.wait(case.rng.randint(4_000, 9_000))
    case.step(case.main, "lifetime ran out")
    case.hits(1)


def _refreshed(case: Case) -> None:
    for _ in range(5):
        case.hits(1)
        case.run.wait(200)


def _between(case: Case) -> None:
    case.hits(3)
    case.run.wait(case.rng.randint(900, 2_400))
    case.step(case.main, "lifetime ran out", "unknown")
    case.hits(1)


def _provider(case: Case) -> None:
    case.hits(3)
    case.provider.forgets = True
    case.step(case.main, "provider", *(() if case.main.dialect == "anthropic" else ("unknown",)))
    case.hits(2)


def _no_counts(case: Case) -> None:
    case.main.bare, case.main.streams = True, False
    for _ in range(4):
        case.step(case.main, "unknown")


def _two_lanes(case: Case) -> None:
    other = case.agent("helper", case.main.dialect)
    case.hits(2)
    for _ in range(3):
        case.hits(1, other)
        case.hits(1)


def _both(case: Case) -> None:
    case.hits(3)
    case.run.wait(9_000)
    case.main.changes.append(lambda body: _system(body, lambda text: f"v2\n{text}"))
    case.step(case.main, "prefix broke", "lifetime ran out", part="system")
    case.hits(1)


def _small(case: Case) -> None:
    for _ in range(4):
        case.step(case.main, "unknown")


_A = ("anthropic",)
_CAUSES: tuple[tuple[str, Callable[[Case], None], tuple[str, ...]], ...] = (
    ("system prompt changed", _system_changed, _A),
    ("tools reordered", _tools_reordered, _A),
    ("time in the system prompt", _clock, _A),
    ("lifetime of 5 minutes ran out", _lifetime, _A),
    ("provider read nothing", _provider, _A),
    ("counts not given", _no_counts, ("openai-chat",)),
    ("tool added", _tool_added, _A),
    ("early message edited", _early_edit, _A),
    ("below the least size", _small, _A),
    ("lifetime of 1 hour ran out", _hour, _A),
    ("model changed", _model_changed, _A),
    ("thinking changed", _thinking, _A),
    ("mark moved", _mark_moved, _A),
    ("two lanes by turns", _two_lanes, _A),
    ("keys of a schema reordered", _schema_reordered, _A),
    ("result cleared", _result_cleared, _A),
    ("tool choice changed", _tool_choice, _A),
    ("kept alive by use", _refreshed, _A),
    ("prefix and lifetime", _both, _A),
    ("system prompt grown", _system_grown, _A),
    ("system prompt changed", _system_changed, _OTHERS),
    ("tools reordered", _tools_reordered, _OTHERS),
    ("provider read nothing", _provider, _OTHERS),
    ("time in the system prompt", _clock, _OTHERS),
    ("early message edited", _early_edit, _OTHERS),
    ("lifetime ran out", _lifetime, _OTHERS),
    ("model changed", _model_changed, _OTHERS),
    ("lifetime may have run out", _between, _OTHERS[:2]),
    ("below the least size", _small, _OTHERS),
    ("counts not given", _no_counts, _OTHERS),
)


def cache(count: int = 60, seed: int = 22) -> list[Plain]:
    """Give planted causes."""
    cases = []
    for index in range(count):
        rng = Random(f"cache {seed} {index}")
        name, plant, dialects = _CAUSES[index % len(_CAUSES)]
        dialect = dialects[(index // len(_CAUSES) + index) % len(dialects)]
        model = _OPUS if dialect == "anthropic" and rng.random() < 0.3 else ""
        case = Case(rng, dialect, 3 if plant is _small else 420, model=model)
        plant(case)
        cases.append(
            {"id": f"cache-{index:03}", "kind": f"{name}, {dialect}", "run": case.run.exchanges}
            | {"truth": {"calls": case.calls}}
        )
    return cases
