"""Agents that are hard to tell apart: the lane of a call is that of the answer it has, whatever else it repeats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tape.exchange import Seq
from playhead.tests.support.agent_tapes import Tape, call, chat, chat_answer, said
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.lane_tapes import (
    LANE_TAPES,
    compacted_after_a_result,
    counted_ids,
    helper_with_the_same_prompt,
    same_task,
    same_task_in_one_process,
)
from playhead.timeline.cost.ledger import read_ledger
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.steps import Step, StepKind, Tracer
from playhead.timeline.steps.read_run import RunReader

_MADE = [make() for make in LANE_TAPES]


def trace(tape: Tape) -> tuple[list[Step], Tracer]:
    """Give the steps of a tape, and who traced them."""
    tracer = Tracer()
    return [step for exchange in tape.exchanges for step in tracer.add(exchange)], tracer


def lanes_of(steps: list[Step]) -> list[list[int]]:
    """Give the model calls of each lane, by the first."""
    found: dict[int, list[int]] = {}
    for step in steps:
        if step.kind is StepKind.MODEL_CALL:
            found.setdefault(step.lane, []).append(step.seq)
    return sorted(found.values())


@pytest.mark.parametrize("tape", _MADE, ids=lambda tape: tape.name)
def test_each_agent_is_a_lane(tape: Tape) -> None:
    """The calls of one agent are one lane, and its counts are those of its calls."""
    steps, tracer = trace(tape)
    assert lanes_of(steps) == tape.lanes
    by_first = sorted(tracer.lanes, key=lambda lane: lane.first)
    assert [(lane.first, lane.last, lane.calls) for lane in by_first] == [
        (calls[0], calls[-1], len(calls)) for calls in tape.lanes
    ]
    assert [(lane.input_tokens, lane.output_tokens) for lane in by_first] == [
        (50 * len(calls), 10 * len(calls)) for calls in tape.lanes
    ]


@pytest.mark.parametrize("tape", _MADE, ids=lambda tape: tape.name)
def test_no_edge_between_two_lanes_is_made_by_what_both_repeat(tape: Tape) -> None:
    """Two agents that were given the same have nothing of each other."""
    steps, _ = trace(tape)
    lane_of = {seq: at for at, calls in enumerate(tape.lanes) for seq in calls}
    edges = [edge for step in steps if step.kind is StepKind.MODEL_CALL for edge in step.edges]
    told = {f"{one.source} -> {one.target} {one.evidence.value}" for one in edges}
    assert set(tape.edges) - {"5 -> 6 inferred"} <= told
    for edge in edges:
        if edge.source in lane_of and lane_of[edge.source] != lane_of[edge.target]:
            assert edge.rule == "the answer is in the request"


@pytest.mark.parametrize(
    ("tape", "seq"),
    [(tape, seq) for tape in _MADE for seq in tape.lost],
    ids=lambda one: getattr(one, "name", one),
)
async def test_nothing_is_said_to_be_dropped_that_was_not(
    tmp_path: Path, tape: Tape, seq: int
) -> None:
    """What a request has no more was in the one before of the same agent; asked for alone, or with all of the run."""
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        alone, *_ = look_at(exchanges, seq)
        among = next(one for one in look_at(exchanges, None) if one.seq == seq)
    for found in (alone, among):
        told = [
            f"{one.origin} {one.part.what} {one.part.name}".strip()
            + ("" if one.part.what == "tool call" else f": {one.part.text}")
            for one in found.lost
        ]
        assert told == tape.lost[seq]


@pytest.mark.parametrize(
    "make",
    [same_task, same_task_in_one_process, helper_with_the_same_prompt],
    ids=lambda make: make.__name__,
)
async def test_the_page_and_the_bill_have_the_lanes_that_the_whole_run_shows(
    tmp_path: Path, make: Callable[[], Tape]
) -> None:
    """What a later call shows is in the steps as they are read, in the rows of the cost, and in what is compared."""
    tape = make()
    with Store.open(tmp_path / "store") as store:
        info = await write_run(store, "tape", tape.exchanges)
        steps = [(step.kind, step.seq, step.lane) for step in RunReader(store, info).read()]
        bill = {one.seq: one.lane for one in read_ledger(Exchanges(store, info)) if one.is_call}
        acts = {one.seq: one.lane for one in read_acts(Exchanges(store, info)) if one.is_call}
    called = {seq: lane for kind, seq, lane in steps if kind is StepKind.MODEL_CALL}
    assert [[seq for seq in called if called[seq] == lane] for lane in (1, 2)] == tape.lanes
    assert bill == acts == called
    assert [seq for _, seq, _ in steps] == sorted(seq for _, seq, _ in steps)


def test_what_a_tool_asked_is_of_the_lane_that_called_it() -> None:
    """A request that a tool made moves with the lane; one of a compacted lane is its own."""
    steps, _ = trace(helper_with_the_same_prompt())
    assert {step.seq: step.lane for step in steps if step.kind is StepKind.HTTP} == {4: 2}
    steps, _ = trace(compacted_after_a_result())
    asked = [step for step in steps if step.kind is StepKind.HTTP]
    assert [(step.seq, step.cause and step.cause[0]) for step in asked] == [(2, 1), (4, 3), (6, 5)]


def test_an_id_that_each_agent_has_ties_nothing_of_two_agents() -> None:
    """A tool call whose id is counted, not drawn, is that of its agent, and so is what the tool asks for."""
    steps, _ = trace(counted_ids())
    edges = [
        (edge.source, edge.target)
        for step in steps
        for edge in step.edges
        if edge.rule == "the id of the tool call"
    ]
    assert edges == [(2, 3), (1, 4), (3, 6), (4, 7)]
    assert [step.cause for step in steps if step.kind is StepKind.HTTP] == [(3, "weigh")]


def test_a_result_is_new_once_though_the_prompt_is_new_each_turn() -> None:
    """What a prompt says anew does not make the conversation behind it new."""
    tape = Tape("clock")
    wants = [call(f"call_{at}xk2p9qr7", "look", q=f"what of {at}") for at in range(3)]
    asked = [said("user", "Look at all of it.")]
    for at, one in enumerate(wants):
        tape.model(
            chat([said("system", f"Step {at}. You are a clerk."), *asked], tools=("look",)),
            chat_answer(None, one, id=f"answer {at}"),
        )
        asked += [
            said("assistant", None, tool_calls=[one]),
            said("tool", f"it is {at}", tool_call_id=one["id"]),
        ]
    steps, _ = trace(tape)
    results = [(step.seq, step.text) for step in steps if step.kind is StepKind.TOOL_RESULT]
    assert results == [(2, "it is 0"), (3, "it is 1")]


_GUIDE = "You keep the shop.\nNever pay twice.\nBe kind."


@pytest.mark.parametrize(
    ("prompts", "tools", "lanes"),
    [
        # Lines and tools that both go at once, or both come.
        ((_GUIDE, _GUIDE.removesuffix("\nBe kind.")), ("abcd", "abc"), [[1, 2]]),
        ((_GUIDE.removesuffix("\nBe kind."), _GUIDE), ("abc", "abcd"), [[1, 2]]),
        ((_GUIDE, _GUIDE.removesuffix("\nBe kind.")), ("abc", "abcd"), [[1, 2]]),
        # A prompt that begins with what time it is.
        ((_GUIDE, f"At 12:01. {_GUIDE}"), ("abcd", "abcd"), [[1, 2]]),
        ((f"Now: 2026-11-24 12:00. {_GUIDE}", _GUIDE), ("abcd", "abcd"), [[1, 2]]),
        # An agent of its own has something of its own.
        (
            (f"{_GUIDE}\nYou are Ana, the clerk.", f"{_GUIDE}\nYou are Ben, a cook and waiter."),
            ("abcd", "abce"),
            [[1], [2]],
        ),
        (("At 12:00. You are a cook.", "At 12:01. You are a judge."), ("ab", "ab"), [[1], [2]]),
    ],
)
def test_what_is_given_less_is_no_other_agent(
    prompts: tuple[str, str], tools: tuple[str, str], lanes: list[list[int]]
) -> None:
    """Who has the whole conversation goes on with it, though its prompt and its tools change at once."""
    tape, asked = Tape("less"), [said("user", "Please begin the work.")]
    for at, (prompt, names) in enumerate(zip(prompts, tools, strict=True)):
        used = call(f"call_1x9y8z7w{at}", "a", number=at)
        tape.model(
            chat([said("system", prompt), *asked], tools=list(names)),
            chat_answer(None, used, id=f"chatcmpl-{at}"),
        )
        told = said("tool", "done", tool_call_id=used["id"])
        asked += [said("assistant", None, tool_calls=[used]), told]
    steps, _ = trace(tape)
    assert lanes_of(steps) == lanes


def test_three_agents_with_one_task_are_three_lanes() -> None:
    """A lane that was told apart from another is not moved when a third one is told apart from it."""
    tape = Tape("three")
    asked = {name: [said("system", "You work."), said("user", "Do the work.")] for name in "abc"}
    for at, name in enumerate("aababcbccc"):
        used = call(f"call_{name}4x9y8z7w{at}", "get", number=at * 1111)
        answer = chat_answer(None, used, id=f"chatcmpl-{at}")
        tape.model(chat(asked[name], tools=["get"]), answer)
        told = said("tool", f"it is {at * 77777}", tool_call_id=used["id"])
        asked[name] = [*asked[name], said("assistant", None, tool_calls=[used]), told]
    steps, tracer = trace(tape)
    assert lanes_of(steps) == [[1, 2, 4], [3, 5, 7], [6, 8, 9, 10]]
    assert tracer.open_since is None or tracer.open_since > 4


def _team(tasks: list[dict[str, str]], first: list[str]) -> list[tuple[str | None, str]]:
    """Have tasks given to sub-agents, which begin with other texts; give the call and the evidence of each."""
    tape = Tape("team")
    wants = [call(f"call_{at}", "Task", **task) for at, task in enumerate(tasks)]
    tape.model(
        chat([said("system", "You lead."), said("user", "Get it all.")], tools=("Task",)),
        chat_answer(None, *wants, id="lead"),
    )
    for at, text in enumerate(first):
        tape.model(
            chat([said("system", "You are a sub-agent."), said("user", text)]),
            chat_answer(f"The part {at} is done now.", id=f"sub {at}"),
            overlaps=tuple(range(2, at + 2)),
        )
    steps, _ = trace(tape)
    found = [step.edges for step in steps if step.kind is StepKind.MODEL_CALL][1:]
    return [(edge.call, edge.evidence.value) for (edge,) in found]


_SALES = "Write the report about sales"
_FRAME = "Task for you:\n{}\nAnswer shortly."


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("tasks", "first", "evidence"),
    [
        # The text of one task is in that of the other.
        (
            [{"prompt": f"{_SALES} in the south"}, {"prompt": _SALES}],
            [_FRAME.format(f"{_SALES} in the south"), _FRAME.format(_SALES)],
            "recorded",
        ),
        # Both were given the same beside.
        (
            [
                {"task": f"Sell to the {where}.", "context": "We have many pears."}
                for where in ("south", "north")
            ],
            [f"We have many pears. Sell to the {where}. Go." for where in ("south", "north")],
            "recorded",
        ),
        # Each is told of the other's task.
        (
            [{"prompt": "Look after the pears."}, {"prompt": "Look after the plums."}],
            ["Look after the pears. Someone else will: Look after the plums."],
            "inferred",
        ),
        # The same task twice: one for each.
        ([{"prompt": _SALES}, {"prompt": _SALES}], [_SALES, _SALES], "inferred"),
    ],
    ids=["one in the other", "the same beside", "both told", "twice the same"],
)
def test_a_sub_agent_is_of_the_call_that_explains_most_of_its_task(
    tasks: list[dict[str, str]], first: list[str], evidence: str, *, turned: bool
) -> None:
    """The longest of what was given counts; where two calls explain as much, nothing is said to be recorded."""
    order = -1 if turned else 1
    found = _team(tasks[::order], first[::order])
    assert [told for _, told in found] == [evidence] * len(first)
    if len(first) > 1:
        assert [id for id, _ in found] == ["call_0", "call_1"]


@pytest.mark.parametrize("turned", [False, True])
def test_two_sub_agents_with_one_task_are_both_of_the_agent_that_gave_it(*, turned: bool) -> None:
    """The second begins as the first did, and is told apart once both go on: it is a sub-agent, too, by an edge of its own."""
    tape = Tape("twins")
    tape.model(
        chat([said("system", "You lead."), said("user", "Get it all.")], tools=("Task",)),
        chat_answer(None, *(call(f"t{at}", "Task", prompt=_SALES) for at in (1, 2)), id="lead"),
    )
    begin = [said("system", "You are a sub-agent."), said("user", _SALES)]
    looks = [call(f"look{at}", "look", file=f"{at}.md") for at in (1, 2)]
    for at, look in enumerate(looks, 1):
        tape.model(chat(begin), chat_answer(None, look, id=f"begin {at}"))
    for at in (2, 1) if turned else (1, 2):
        turn = {"role": "assistant", "content": None, "tool_calls": [looks[at - 1]]}
        more = {"role": "tool", "tool_call_id": f"look{at}", "content": f"It is {at} there."}
        tape.model(chat([*begin, turn, more]), chat_answer(f"Done with {at}.", id=f"end {at}"))
    steps, tracer = trace(tape)
    assert [(one.parent, one.name) for one in tracer.lanes] == [
        (0, "You lead."),
        *[(1, "Task")] * 2,
    ]
    firsts = {int(one.seq): one for one in steps if one.kind is StepKind.MODEL_CALL}
    found = [[(e.source, e.call, e.evidence.value) for e in firsts[seq].edges] for seq in (2, 3)]
    assert found == [[(1, "t1", "inferred")], [(1, "t2", "inferred")]]


def _ask(lead: list[dict[str, Any]], tape: Tape, *ids: str) -> list[dict[str, Any]]:
    """Have the lead ask for a sub-agent with each of these calls; give what it has then."""
    calls = [call(id, "Task", prompt=_SALES) for id in ids]
    tape.model(chat(lead, tools=("Task",)), chat_answer(None, *calls, id=f"lead {ids}"))
    return [*lead, {"role": "assistant", "content": None, "tool_calls": calls}]


@pytest.mark.parametrize("together", [False, True])
def test_a_sub_agent_that_is_given_the_same_task_again_is_another(*, together: bool) -> None:
    """Each tool call asks for an agent of its own, whether the first was done by then or both were asked for at once."""
    tape = Tape("twice the same task")
    begin = [said("system", "You are a sub-agent."), said("user", _SALES)]
    lead = [said("system", "You lead."), said("user", "Get it all, twice.")]
    rounds = [("t1", "t2")] if together else [("t1",), ("t2",)]
    for ids in rounds:
        lead = _ask(lead, tape, *ids)
        for id in ids:
            look = call(f"look_{id}", "look", file=f"{id}.md")
            tape.model(chat(begin), chat_answer(None, look, id=f"begin {id}"))
            # Told in words, as smolagents does: the answer is not in the request.
            more = [said("assistant", f"Called look_{id}."), said("user", f"It is {id} there.")]
            tape.model(chat([*begin, *more]), chat_answer(f"Done with {id}.", id=f"end {id}"))
        for id in ids:
            lead.append({"role": "tool", "tool_call_id": id, "content": f"Done with {id}."})
    steps, tracer = trace(tape)
    firsts = (2, 4) if together else (2, 5)
    assert lanes_of(steps)[1:] == [[first, first + 1] for first in firsts]
    assert [one.parent for one in tracer.lanes] == [0, 1, 1]
    edges = {edge.target: edge for step in steps for edge in step.edges if edge.call}
    assert [edges[Seq(first)].call for first in firsts] == ["t1", "t2"]


def test_a_call_is_a_retry_of_what_failed_not_of_what_was_answered() -> None:
    """Two agents with one task both fail; the first had its answer when the second tries again."""
    tape = Tape("both fail")
    _ask([said("system", "You lead."), said("user", "Get it all, twice.")], tape, "t1", "t2")
    begin = chat([said("system", "You are a sub-agent."), said("user", _SALES)])
    refused = make_response(b'{"error": {"message": "overloaded"}}', 500)
    tape.model(begin, refused)
    tape.model(begin, refused, overlaps=(2,))
    for at in (1, 2):
        look = call(f"call_lo0k{at}lo0k{at}", "look", file=f"{at}.md")
        tape.model(begin, chat_answer(None, look, id=f"begin {at}"))
    steps, _ = trace(tape)
    lanes = lanes_of(steps)
    assert lanes in ([[1], [2, 4], [3, 5]], [[1], [2, 5], [3, 4]])
    marks = {int(one.seq): one.marks for one in steps if one.kind is StepKind.MODEL_CALL}
    assert {marks[4], marks[5]} == {("retry of 2",), ("retry of 3",)}


def test_an_agent_that_is_transferred_to_in_words_is_of_who_transferred() -> None:
    """A conversation that is handed over, told in words as Google ADK does: each agent is of the one whose call is told of."""
    tape = Tape("transferred")
    hand = "[lead] called tool `transfer_to_agent` with parameters: {'agent_name': '%s'}"
    turns = [said("user", "Compare the regions.")]
    for name in ("analyst", "checker", "analyst"):
        tape.model(
            chat([said("system", "You lead a desk."), *turns], tools=("transfer_to_agent",)),
            chat_answer(None, call(f"to_{name}", "transfer_to_agent", agent_name=name)),
        )
        turns.append(said("user", hand % name))
        told = [said("system", f"You are the {name}, and nobody else."), *turns]
        tape.model(chat(told), chat_answer(f"The {name} has seen {len(turns)}."))
        turns.append(said("user", f"[{name}] said: The {name} has seen {len(turns)}."))
    steps, tracer = trace(tape)
    assert [(one.parent, one.name) for one in tracer.lanes][1:] == [
        (1, "transfer_to_agent: analyst"),
        (1, "transfer_to_agent: checker"),
    ]
    edges = {edge.target: edge for step in steps for edge in step.edges if "transfer" in edge.rule}
    assert {(edge.source, edge.target, edge.evidence.value) for edge in edges.values()} >= {
        (1, 2, "inferred"),
        (3, 4, "inferred"),
    }


def forked() -> Tape:
    """Two requests go on from one answer that the provider keeps; the first asked for an effect, which comes after the second."""
    tape = Tape("forked")
    url = "https://api.openai.com/v1/responses"

    def ask(id: str, sent: Any, previous: str | None, *output: dict[str, Any]) -> None:
        asked = {"model": "gpt-5", "input": sent}
        asked |= {"previous_response_id": previous} if previous else {}
        answer = {"id": id, "object": "response", "status": "completed", "model": "gpt-5"}
        tape.model(make_request(url, asked), make_response(answer | {"output": list(output)}))

    def wants(id: str, name: str, **given: str) -> dict[str, Any]:
        arguments = json.dumps(given)
        return {"type": "function_call", "id": f"f{id}", "call_id": id, "name": name, "arguments": arguments}  # fmt: skip

    def gave(id: str, output: str) -> list[dict[str, Any]]:
        return [{"type": "function_call_output", "call_id": id, "output": output}]

    part = {"type": "output_text", "text": "The other branch.", "annotations": []}
    said_there = {"type": "message", "id": "m1", "role": "assistant", "content": [part]}
    ask("resp_f1", "Find order 7.", None, wants("call_1", "get", o="ORD-7AB"))
    ask("resp_f2", gave("call_1", "VAL7XY"), "resp_f1", wants("call_2", "pay", r="VAL7XY"))
    ask("resp_g2", gave("call_1", "OTHER1"), "resp_f1", said_there)
    tape.post("https://pay.test/p", {"r": "VAL7XY"})
    ask("resp_f3", gave("call_2", "ok"), "resp_f2", said_there)
    return tape


def test_a_tool_call_of_a_branch_that_was_left_is_still_open() -> None:
    """Who goes on from an earlier answer takes no tool call of another branch away."""
    steps, _ = trace(forked())
    (effect,) = (step for step in steps if step.seq == 4)
    assert [edge.source for edge in effect.edges] == [2]
    (after,) = (step for step in steps if step.seq == 5 and step.kind is StepKind.MODEL_CALL)
    assert {edge.source for edge in after.edges} == {2, 4}
    assert lanes_of(steps) == [[1, 2, 3, 5]]


SYSTEM = "You are Coder, an agent that edits files.\nRule one: never delete.\nRule two: ask first."
READ = "def charge(c):\n" + "\n".join(f"    step_{number}(c)" for number in range(60))
WANTS = [call("call_AA11", "read", path="pay.py"), call("call_BB22", "list", at="src")]
ASKED = [
    said("user", "Fix the bug in pay.py, they are charged twice."),
    said("assistant", None, tool_calls=WANTS),
    said("tool", READ, tool_call_id="call_AA11"),
    said("tool", "pay.py", tool_call_id="call_BB22"),
    said("assistant", "The function charge calls step_3 twice; shall I fix it?"),
    said("user", "Yes, and keep the logs."),
    said("assistant", "Done, and the logs are kept."),
    said("user", "Go on."),
]
CHANGES: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "shortened": lambda said_: [
        {**one, "content": (one["content"] or "")[:300] + "…"} if one["role"] == "tool" else one
        for one in said_
    ],
    "begun with a summary": lambda said_: [said("user", "So far: the bug was found."), *said_[4:]],
    "last answer altered": lambda said_: [*said_[:6], said("assistant", "It is done."), *said_[7:]],
    "last answer left out": lambda said_: [*said_[:6], said_[7]],
}


def edited(*, line: bool, tool: bool, changes: tuple[str, ...], system: str = "") -> Tape:
    """One agent, whose fourth request has less of what the third had."""
    tape = Tape("edited")
    tools = ["read", "write", "list"]
    head = said("system", SYSTEM)
    for upto, answer in ((1, chat_answer(None, *WANTS, id="a")), (4, None), (6, None)):
        given = answer or chat_answer(str(ASKED[upto]["content"]), id=f"b{upto}")
        tape.model(chat([head, *ASKED[:upto]], tools=tools), given)
    last = ASKED
    for name in changes:
        last = CHANGES[name](last)
    less = SYSTEM.rpartition("\n")[0] if line else SYSTEM
    asked = chat([said("system", system or less), *last], tools=tools[: 2 if tool else 3])
    tape.model(asked, chat_answer("Going on.", id="d"))
    return tape


@pytest.mark.parametrize("line", [False, True])
@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("shortened",),
        ("begun with a summary",),
        ("last answer altered",),
        ("last answer left out",),
        ("shortened", "last answer altered"),
        ("shortened", "last answer left out"),
        ("last answer altered", "begun with a summary"),
    ],
    ids=" and ".join,
)
def test_recorded_answers_in_a_request_prove_its_lane(
    *, line: bool, tool: bool, changes: tuple[str, ...]
) -> None:
    """A line of the prompt, a tool and a part of the conversation may go at once: what is gone is told."""
    tape = edited(line=line, tool=tool, changes=changes)
    steps, _ = trace(tape)
    assert lanes_of(steps) == [[1, 2, 3, 4]]
    *_, found = look_at(InMemory(tape.exchanges), None)
    assert (found.before, found.tools) == (3, ["list"] if tool else [])
    assert found.system == (["Rule two: ask first."] if line else [])
    results = [(one.origin, one.part.name) for one in found.lost if one.part.what == "tool result"]
    gone = "begun with a summary" in changes or "shortened" in changes
    assert results[:1] == ([(2, "read")] if gone else [])


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize("changes", [(), ("shortened",), ("last answer altered",)])
def test_another_role_is_another_lane(*, tool: bool, changes: tuple[str, ...]) -> None:
    """Who hands a conversation over gives its answers to another agent."""
    tape = edited(line=False, tool=tool, changes=changes, system="You are Tester, who runs tests.")
    steps, _ = trace(tape)
    assert lanes_of(steps) == [[1, 2, 3], [4]]
