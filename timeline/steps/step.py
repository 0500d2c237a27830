"""What a step is, and what ties one to another: values."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from ...tape.dialects import Usage
from ...tape.exchange import Seq


class StepKind(StrEnum):
    """What a step was to the agent."""

    MODEL_CALL = "model call"
    THOUGHT = "thought"
    TOOL_CALL = "tool call"
    """The model wants a tool called."""
    TOOL_RESULT = "tool result"
    """A request has the result of a tool call for the first time."""
    RETRIEVAL = "retrieval"
    """Embeddings: something is looked up by its likeness."""
    MCP = "mcp"
    HTTP = "http"
    """Any other exchange: what a tool did, or the agent by itself."""
    DECISION = "decision"
    """A person or a rule ruled on a request that a gate held."""
    OUTPUT = "output"
    """What the model said where it wanted no tool."""
    POLICY = "policy"
    """A verdict that is not to let pass: refused, stubbed, held, discarded."""
    ERROR = "error"
    SNAPSHOT = "snapshot"
    """The agent had its state kept, by the control host."""


class Evidence(StrEnum):
    """On what an edge rests."""

    RECORDED = "recorded"
    """The same bytes are in both exchanges."""
    INFERRED = "inferred"
    """A rule says so, which is named."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Why an exchange followed from another."""

    source: Seq
    target: Seq
    evidence: Evidence
    rule: str
    """What was found in both, or the rule that was applied."""
    call: str | None = None
    """Id of the tool call that it goes through."""
    number: int = 0
    """Of that tool call among those of its exchange, from 1: many have no id, or one that comes again. 0 where there is none."""


@dataclass(slots=True)
class Timing:
    """When an exchange was, and how long it took."""

    started_ns: int
    took_us: int
    first_token_us: int | None = None
    """None where the answer was no stream."""


@dataclass(slots=True)
class Step:
    """One step of a run."""

    kind: StepKind
    seq: Seq
    name: str = ""
    """Of a model call the model, of a tool call or result the tool, of an exchange its method and URL."""
    text: str = ""
    """What was said, asked or answered, whole."""
    lane: int = 0
    """Number of the lane; 0 for what belongs to none."""
    aside: str = ""
    """Of a model call beside the conversation what it was for: `title`, `quota`, `warm-up`."""
    call: str | None = None
    """Id of a tool call."""
    cause: tuple[Seq, str] | None = None
    """Of an exchange that a tool made: the answer with the tool call, and the tool's name."""
    failed: bool = False
    effect: bool = False
    part: int = 0
    """Place of a model call among those of one WebSocket; 0 elsewhere."""
    edges: tuple[Edge, ...] = ()
    """Why it followed."""
    marks: tuple[str, ...] = ()
    """`retry of 3`, `loop of Read, 3 times`, `idle for 300 s` ..."""
    timing: Timing | None = None
    """Of model calls and other exchanges."""
    usage: Usage | None = None
    at_least: bool = False
    """Of a model call whether more may have been billed than its answer states."""
    finish: str | None = None
    """Of a model call why it ended."""
    messages: int = 0
    """Of a model call how many messages its context had."""
    beside: tuple[str, ...] = ()
    """What was sent and answered, if that was asked for: texts that `text` does not have."""
    usd: Decimal | None = None
    """Of a model call what it cost; None where that is not known, or nobody asked for it."""


@dataclass(slots=True)
class Lane:
    """One agent or sub-agent of a run."""

    number: int
    """From 1, in the order in which they appeared."""
    name: str
    """What is known of it: what it was asked by, or how its system prompt begins."""
    first: Seq
    last: Seq
    parent: int = 0
    """Number of the lane that asked for it; 0 where none is known."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    at_least: int = 0
    """For how many calls more tokens may have been billed than are stated."""
    usd: Decimal = Decimal(0)
    """Of those of its calls whose price is known."""
    unpriced: int = 0
    """How many calls with tokens have no price that is known."""
    models: list[str] = field(default_factory=list)
    """In the order in which they were first asked."""
    client: str = ""
    """The user agent of its first call: its SDK, with the version."""
