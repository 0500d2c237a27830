"""Steps, lanes, edges and marks of the tapes of agents."""

from dataclasses import replace

import pytest

from playhead.tape.dialects import read_response
from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import TAPES, Tape
from playhead.tests.support.dialects import cut, load_sample, sample_names
from playhead.tests.support.provider_tapes import Kept, called, result, words
from playhead.timeline.show.listing import Counts, list_steps
from playhead.timeline.steps import Step, StepKind, Tracer
from playhead.timeline.steps.before_effects import find_before_effects

_NAMED = (StepKind.THOUGHT, StepKind.OUTPUT)
_TOLD = (StepKind.ERROR, StepKind.POLICY)


def trace(tape: Tape) -> tuple[list[Step], Tracer]:
    """Give the steps of a tape, and who traced them."""
    tracer = Tracer()
    return [step for exchange in tape.exchanges for step in tracer.add(exchange)], tracer


def in_words(step: Step) -> str:
    """Give a step as the tapes have it."""
    told = step.text if step.kind in _TOLD else "" if step.kind in _NAMED else step.name
    return f"{step.seq} {step.kind.value} {told}".strip()


def those_with(word: str) -> list[Tape]:
    """Give the tapes that say what is expected of something."""
    return [tape for make in TAPES if getattr(tape := make(), word)]


def named(tapes: list[Tape]) -> list[str]:
    return [tape.name for tape in tapes]


@pytest.mark.parametrize("tape", [make() for make in TAPES], ids=lambda tape: tape.name)
def test_each_agent_is_a_lane(tape: Tape) -> None:
    """Model calls are told apart by the agent that made them; calls beside the conversation belong to none."""
    steps, tracer = trace(tape)
    calls = [step for step in steps if step.kind is StepKind.MODEL_CALL]
    lanes = [
        [step.seq for step in calls if step.lane == lane.number and not step.aside]
        for lane in tracer.lanes
    ]
    assert lanes == tape.lanes
    assert {step.seq: step.aside for step in calls if step.aside} == tape.asides


@pytest.mark.parametrize("tape", those_with("steps"), ids=lambda tape: tape.name)
def test_each_exchange_is_read_as_steps(tape: Tape) -> None:
    """What a model was asked, thought, said and wants called are steps of their own, and what tools did."""
    steps, _ = trace(tape)
    assert [in_words(step) for step in steps] == tape.steps


@pytest.mark.parametrize("tape", those_with("edges"), ids=lambda tape: tape.name)
def test_edges_say_on_what_they_rest(tape: Tape) -> None:
    """What follows from what is known with its evidence, and nothing that was only inferred is called recorded."""
    steps, _ = trace(tape)
    edges = {
        f"{edge.source} -> {edge.target} {edge.evidence.value}"
        for step in steps
        for edge in step.edges
    }
    assert set(tape.edges) <= edges


@pytest.mark.parametrize("tape", those_with("marks"), ids=lambda tape: tape.name)
def test_what_stands_out_is_marked(tape: Tape) -> None:
    """Retries, loops, possible duplicates and pauses are marked, and nothing else."""
    steps, _ = trace(tape)
    assert [f"{step.seq} {mark}" for step in steps for mark in step.marks] == tape.marks


def test_no_edge_comes_from_a_request_without_an_answer() -> None:
    """An edge leads from an exchange to a later one, whatever the tape."""
    for make in TAPES:
        tape = make()
        asked = {one.seq: one.request_class for one in tape.exchanges}
        for step in trace(tape)[0]:
            for edge in step.edges:
                assert edge.source < edge.target == step.seq
                assert asked[edge.source] is not RequestClass.TELEMETRY


@pytest.mark.parametrize(
    ("results", "error"),
    [
        (
            [{"content": [{"type": "text", "text": "card declined"}], "isError": True}],
            "card declined",
        ),
        ([{"content": [], "isError": True}], "the tool failed"),
        ([{"content": [{"type": "text", "text": "paid"}], "isError": False}], None),
        (
            [
                {"content": [{"type": "text", "text": "paid"}]},
                {"content": [{"type": "text", "text": "declined"}], "isError": True},
            ],
            "declined",
        ),
    ],
    ids=["failed", "without a text", "not failed", "the second of a batch"],
)
def test_a_tool_of_a_server_that_failed_is_an_error(
    results: list[dict[str, object]], error: str | None
) -> None:
    """The server answers with success: the page counts it among the errors, and its line says what was answered."""
    tape = Tape("mcp")
    rpc = [{"jsonrpc": "2.0", "id": at} for at in range(len(results))]
    asked = [
        one | {"method": "tools/call", "params": {"name": "pay", "arguments": {}}} for one in rpc
    ]
    given = [one | {"result": result} for one, result in zip(rpc, results, strict=True)]
    tape.post(
        "https://mcp.shop.test/mcp",
        asked if len(asked) > 1 else asked[0],
        given if len(given) > 1 else given[0],
    )
    steps, _ = trace(tape)
    assert [one.text for one in steps if one.kind is StepKind.ERROR] == [error] * (
        error is not None
    )
    assert steps[0].failed is (error is not None)
    counts = Counts()
    (line,) = list_steps(steps, counts)
    assert ("! MCP" in line) is (error is not None)
    assert len(counts.errors) == (error is not None)


STREAMS = [
    name
    for name in sample_names()
    if "stream" in name and not name.startswith(("bedrock_invoke", "mcp"))
]
"""Samples of streams whose requests are told apart by more than their answers."""


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_request_after_a_cut_stream_is_a_retry(name: str, part: float) -> None:
    """A stream that was cut has failed, whatever it said before, and half a tool call is none."""
    request, response = load_sample(name)
    broken = cut(response, int(len(response.body) * part))
    tape = Tape(name)
    tape.model(request, broken)
    tape.model(request, response)
    steps, tracer = trace(tape)
    first, second = (
        [step for step in steps if step.seq == seq and step.kind is not StepKind.ERROR]
        for seq in (1, 2)
    )
    again = next(step for step in second if step.kind is StepKind.MODEL_CALL)
    assert "retry of 1" in again.marks
    assert len(tracer.lanes) <= 1
    calls = [step.text for step in first if step.kind is StepKind.TOOL_CALL]
    whole = read_response(request, replace(response, chunks=()))
    assert whole is not None
    assert all(text in {step.text for step in second} for text in calls)
    assert len(calls) <= len(whole.tool_calls)


def test_a_read_after_one_that_was_cut_is_a_retry() -> None:
    """An answer without its end has failed as one with an error has."""
    tape = Tape("cut")
    tape.get("https://shop.test/orders", "some words")
    first = tape.exchanges[0]
    assert first.response is not None
    tape.exchanges[0] = replace(first, response=cut(first.response, 4))
    tape.get("https://shop.test/orders", "some words")
    steps, _ = trace(tape)
    assert [step.marks for step in steps if step.kind is StepKind.HTTP] == [(), ("retry of 1",)]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_the_background_is_that_of_its_call(*, stream: bool) -> None:
    """Its tool call is there once it is read by its id, and has made the effect."""
    run = Kept()
    run.ask([words("Refund it.")], output=[], status="queued", background=True)
    run.read("r1", "in_progress", called("call_1", "refund", order="ORD-77"))
    run.read("r1", "completed", called("call_1", "refund", order="ORD-77"), stream=stream)
    run.read("r1", "completed", called("call_1", "refund", order="ORD-77"))
    run.tape.post("https://shop.test/refunds", {"order": "ORD-77"})
    run.ask([result("call_1", "refunded")], previous_response_id="r1")
    tracer = Tracer()
    steps = [step for one in run.tape.exchanges for step in tracer.add(one)] + tracer.end()
    (call,) = [one for one in steps if one.kind is StepKind.TOOL_CALL]
    assert (call.seq, call.name, call.lane) == (1, "refund", 1)
    (effect,) = find_before_effects(steps)
    assert (effect.seq, effect.tool) == (1, "refund")
    (given,) = [one for one in steps if one.kind is StepKind.TOOL_RESULT]
    assert given.name == "refund"
    page = "\n".join(list_steps(steps, Counts()))
    assert "(in the background)" in page
    assert "(no answer)" not in page


def test_what_is_not_there_yet_is_no_answer() -> None:
    """Nor is one that no call of the run asked for, one of another id, or what could not be read."""
    run = Kept()
    run.ask([words("Refund it.")], output=[], status="queued", background=True)
    for id, status in (("r1", "queued"), ("r1", "in_progress"), ("r9", "completed")):
        run.read(id, status, called("call_1", "refund", order="ORD-77"))
    tracer = Tracer()
    steps = [step for one in run.tape.exchanges for step in tracer.add(one)]
    assert [one.kind for one in steps] == [StepKind.MODEL_CALL, *[StepKind.HTTP] * 3]
