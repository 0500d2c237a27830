"""Lanes of real frameworks with sub-agents: recorded from scripted agents, each of whose prompts names its agent."""

import gzip
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.tape.exchange import Chunk, Exchange, Lane, RequestClass, Seq
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange
from playhead.timeline.steps import Step, StepKind, Tracer

_FILE = Path(__file__).with_name("frameworks.jsonl.gz")
ROWS = [json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).splitlines()]
RUNS = {run: list(rows) for run, rows in itertools.groupby(ROWS, lambda one: one["run"])}
"""By scenario: openai-agents plain and streamed, LangGraph and with summaries, Pydantic AI, smolagents, CrewAI, google-genai,
AutoGen, and twins of the openai SDK that have one prompt and one tool id."""
_AGENT, _TASK = re.compile(r"AGENT:(\w+)"), re.compile(r"TASK:(\w+)")


def _exchange(row: dict[str, Any]) -> Exchange:
    asked = make_request(row["url"], row["body"].encode(), dict(row["headers"]), row["method"])
    headers = tuple((name.encode(), value.encode()) for name, value in row["answer_headers"])
    chunks = tuple(Chunk(*one) for one in row["chunks"])
    answered = replace(
        make_response(row["answer"].encode(), row["status"]), headers=headers, chunks=chunks
    )
    return make_exchange(
        row["seq"],
        request=asked,
        response=answered,
        started_ns=row["at_us"] * 1000,
        end_us=row["took_us"],
        lane=Lane(row["process"], tuple(map(Seq, row["overlaps"]))),
        kind=RequestClass(row["class"]),
    )


def _agent(row: dict[str, Any]) -> str:
    """Name the agent of a model call, by its prompt; of several with one prompt by the task that it was given."""
    found = _AGENT.search(row["body"])
    if found is None:  # of the one framework that summarises with a prompt of its own
        assert row["run"] == "lg_sum"
        return "summary"
    if found[1] == "lead":
        return "lead"
    first = next(m for m in _messages(json.loads(row["body"])) if m.get("role") == "user")
    task = _TASK.search(json.dumps(first))
    return f"{found[1]}:{task[1]}" if task else found[1]


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("messages") or body.get("input") or body.get("contents")
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())


@pytest.mark.parametrize("run", RUNS)
def test_each_agent_is_a_lane(run: str) -> None:
    """All calls of an agent are in one lane, and no two agents share one."""
    tracer, steps = Tracer(), list[Step]()
    for row in RUNS[run]:
        steps += tracer.add(_exchange(row))
    steps += tracer.end()
    calls = {one.seq: one.lane for one in steps if one.kind is StepKind.MODEL_CALL}
    agents = {row["seq"]: _agent(row) for row in RUNS[run] if row["seq"] in calls}
    asked = [row for row in RUNS[run] if row["class"] == "inference"]
    assert len(calls) == sum("/input_tokens" not in row["url"] for row in asked) >= 4
    pairs = {(agents[seq], lane) for seq, lane in calls.items()}
    assert len(pairs) == len(set(agents.values())) == len(set(calls.values()))
    assert len(pairs) > 1
