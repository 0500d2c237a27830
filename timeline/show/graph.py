"""A run as a graph, for Mermaid or Graphviz: lanes side by side, solid edges recorded, dashed ones inferred.

Labels are recorded text, so what means something in the two languages is left out of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..reading.made_answers import MADE
from ..steps.step import Edge, Evidence, Step, StepKind
from .fit import fit

MOST = 1000
"""Exchanges that are drawn; a graph of more is no picture."""
_LABEL = 48
_DRAWN = (StepKind.MODEL_CALL, StepKind.HTTP, StepKind.MCP, StepKind.RETRIEVAL)


@dataclass(slots=True)
class _Node:
    seq: int
    lane: int
    label: str
    effect: bool
    edges: tuple[Edge, ...]


def draw_graph(steps: Iterable[Step], language: str) -> Iterator[str]:
    """Give the lines of a graph.

    language: `mermaid` or `dot`.
    """
    nodes, more = _nodes(steps)
    lanes: dict[int, list[_Node]] = {}
    for node in nodes:
        lanes.setdefault(node.lane, []).append(node)
    yield from _mermaid(lanes) if language == "mermaid" else _dot(lanes)
    if more:
        sign = "%%" if language == "mermaid" else "//"
        yield f"{sign} {more} more exchanges are not drawn: {MOST} are the most"


def _nodes(steps: Iterable[Step]) -> tuple[list[_Node], int]:
    nodes: dict[int, _Node] = {}
    more = 0
    for step in steps:
        if step.kind in _DRAWN and step.seq not in nodes:
            if len(nodes) == MOST:
                more += 1
                continue
            label = step.name.partition("://")[2] or step.name
            if step.kind is StepKind.HTTP:
                label = f"{step.name.partition(' ')[0]} {label}"
            label = f"{step.seq} {label}{f' ({step.aside})' if step.aside else ''}"
            nodes[step.seq] = _Node(step.seq, step.lane, label, step.effect, step.edges)
        elif step.kind is StepKind.POLICY and step.seq in nodes:
            word = MADE.get(step.text.partition(":")[0])
            if word is not None:  # nobody gave its answer
                number, _, name = nodes[step.seq].label.partition(" ")
                nodes[step.seq].label = f"{number} {word}: {name}"
        elif step.kind is StepKind.TOOL_CALL and step.seq in nodes:
            node = nodes[step.seq]
            if len(node.label) < 2 * _LABEL:
                node.label += f" {step.name}"
    return list(nodes.values()), more


def _mermaid(lanes: dict[int, list[_Node]]) -> Iterator[str]:
    yield "flowchart TD"
    for lane, nodes in lanes.items():
        yield f"  subgraph lane{lane}[{_quoted(_title(lane))}]"
        for node in nodes:
            left, right = ("[[", "]]") if node.effect else ("[", "]")
            yield f"    n{node.seq}{left}{_quoted(node.label)}{right}"
        yield "  end"
    drawn = {node.seq for nodes in lanes.values() for node in nodes}
    for edge in _edges(lanes, drawn):
        arrow = "-->" if edge.evidence is Evidence.RECORDED else "-.->"
        yield f"  n{edge.source} {arrow} n{edge.target}"


def _dot(lanes: dict[int, list[_Node]]) -> Iterator[str]:
    yield "digraph run {"
    yield "  node [shape=box];"
    for lane, nodes in lanes.items():
        yield f"  subgraph cluster_{lane} {{"
        yield f"    label={_quoted(_title(lane))};"
        for node in nodes:
            shape = ", peripheries=2" if node.effect else ""
            yield f"    n{node.seq} [label={_quoted(node.label)}{shape}];"
        yield "  }"
    drawn = {node.seq for nodes in lanes.values() for node in nodes}
    for edge in _edges(lanes, drawn):
        style = "" if edge.evidence is Evidence.RECORDED else " [style=dashed]"
        yield f"  n{edge.source} -> n{edge.target}{style};"
    yield "}"


def _edges(lanes: dict[int, list[_Node]], drawn: set[int]) -> list[Edge]:
    """Give one edge for each pair of exchanges: the one with the better evidence."""
    best: dict[tuple[int, int], Edge] = {}
    for nodes in lanes.values():
        for node in nodes:
            for edge in node.edges:
                pair = edge.source, edge.target
                known = best.get(pair)
                if edge.source not in drawn or edge.source == edge.target:
                    continue
                if known is None or known.evidence is Evidence.INFERRED:
                    best[pair] = edge
    return [best[pair] for pair in sorted(best)]


def _title(lane: int) -> str:
    return f"lane {lane}" if lane else "no lane"


def _quoted(text: str) -> str:
    shown = fit(text, _LABEL)
    for char in '"\\<>&#;`[]{}|':
        shown = shown.replace(char, " " if char in "\\`" else "'" if char == '"' else "·")
    return f'"{shown}"'
