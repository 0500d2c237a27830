"""Steps, edges and lanes as JSON types."""

from dataclasses import asdict
from typing import Any

from ..steps.step import Edge, Lane, Step

TEXT = 2000
"""Characters of a step's text that are given."""


def step_json(step: Step) -> dict[str, Any]:
    """Give a step; `docs/time-travel.md` describes it."""
    timing, usage = step.timing, step.usage
    counted = usage.count() if usage is not None else None
    return {
        "seq": step.seq,
        "part": step.part or None,
        "kind": step.kind.value,
        "lane": step.lane or None,
        "aside": step.aside or None,
        "name": step.name[:TEXT],
        "text": step.text[:TEXT],
        "text_left_out": max(0, len(step.text) - TEXT),
        "call": step.call,
        "cause": list(step.cause) if step.cause is not None else None,
        "failed": step.failed,
        "effect": step.effect,
        "marks": list(step.marks),
        "edges": [edge_json(edge) for edge in step.edges],
        "started_ns": timing.started_ns if timing is not None else None,
        "took_us": timing.took_us if timing is not None else None,
        "first_token_us": timing.first_token_us if timing is not None else None,
        "finish": step.finish,
        "messages": step.messages or None,
        "usage": asdict(usage) if usage is not None else None,
        "input_tokens": counted.asked if counted is not None else None,
        "output_tokens": counted.said if counted is not None else None,
        "at_least": step.at_least,
        "usd": f"{step.usd:f}" if step.usd is not None else None,
    }


def edge_json(edge: Edge) -> dict[str, Any]:
    """Give an edge."""
    return {
        "from": edge.source,
        "to": edge.target,
        "evidence": edge.evidence.value,
        "rule": edge.rule,
        "call": edge.call,
    }


def lane_json(lane: Lane) -> dict[str, Any]:
    """Give a lane."""
    return {
        "lane": lane.number,
        "name": lane.name,
        "of": lane.parent or None,
        "first": lane.first,
        "last": lane.last,
        "calls": lane.calls,
        "input_tokens": lane.input_tokens,
        "output_tokens": lane.output_tokens,
        "at_least": lane.at_least,
        "usd": f"{lane.usd:f}",
        "unpriced": lane.unpriced,
        "models": lane.models,
        "client": lane.client or None,
    }
