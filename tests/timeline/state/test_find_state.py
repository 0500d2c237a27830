"""The state of agents at steps of their tapes."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store, StoreError
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import (
    Tape,
    chat,
    chat_answer,
    claude_code,
    compacted,
    responses_by_id,
    said,
)
from playhead.tests.support.dialects import (
    cut,
    load_sample,
    make_request,
    make_response,
    make_stream,
)
from playhead.tests.support.exchanges import make_intent, make_record, write_run
from playhead.tests.support.socket_tapes import BEGAN_NS, STEP_US, in_memory, refund, write_refund
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.state.context_parts import ContextPart
from playhead.timeline.state.find_state import Origin, State, find_pending, find_state, find_step_at
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.render import estimate_tokens, render_lost, render_state, state_json
from playhead.timeline.steps import Evidence, StepKind, Tracer

_ANSWERED = ("tool call", "thought")


async def state_at(folder: Path, tape: Tape, seq: int) -> State:
    """Write a tape into a store and find a state."""
    with Store.open(folder / "store") as store:
        info = await write_run(store, "tape", tape.exchanges)
        return find_state(Exchanges(store, info), seq)


def in_words(origins: list[Origin]) -> list[str]:
    """Give what entered or left as the tapes have it: what a model said counts once."""
    told = []
    for one in origins:
        part = one.part
        what = "assistant" if part.what in _ANSWERED else f"{part.what} {part.name}".strip()
        told.append(f"{one.seq} {what}")
    return list(dict.fromkeys(told))


def planned(state: State) -> list[str]:
    """Give what the answer says is next."""
    calls = [f"tool call {one.name}" for one in state.call.calls]
    return calls or (["output"] if state.call.said else [])


@pytest.mark.parametrize("seq", claude_code().state)
async def test_a_state_says_what_changed_and_what_is_next(tmp_path: Path, seq: int) -> None:
    """What entered and left since the call before of the same lane, the pending calls, and what comes next."""
    tape = claude_code()
    state = await state_at(tmp_path, tape, seq)
    assert {
        "entered": in_words(state.entered),
        "left": in_words(state.left),
        "pending": [one.name for one in state.pending],
        "planned": planned(state),
    } == tape.state[seq]


async def test_a_state_between_model_calls_is_that_of_the_last(tmp_path: Path) -> None:
    """At a request of a tool the context is that of the model call that came before."""
    assert (await state_at(tmp_path, claude_code(), 9)).call.seq == 8


async def test_what_a_provider_keeps_is_rebuilt(tmp_path: Path) -> None:
    """A request that names an answer goes on from all that led to it."""
    state = await state_at(tmp_path, responses_by_id(), 2)
    told = [(seq, [one.what for one in parts]) for seq, parts in state.held]
    assert told == [(1, ["user", "tool call"])]
    assert [one.name for one in state.parts] == ["lookup"]


@pytest.mark.parametrize("named", ["conv_1", {"id": "conv_1"}], ids=["id", "object"])
async def test_turns_of_a_conversation_at_the_provider_have_not_left(
    tmp_path: Path, named: object
) -> None:
    """A request that names a stored conversation has its earlier turns, though it repeats none: nothing is lost, and that is said."""
    tape = Tape("stored")
    for at, text in enumerate(("One!", "Two!"), 1):
        asked = {"model": "gpt-5.1", "conversation": named, "input": text}
        part = {"type": "output_text", "text": f"Answer {at}", "annotations": []}
        item = {"type": "message", "id": f"m{at}", "role": "assistant", "content": [part]}
        answer = {"id": f"resp_{at}", "object": "response", "status": "completed"}
        tape.model(
            make_request("https://api.openai.com/v1/responses", asked),
            make_response(answer | {"model": "gpt-5.1", "output": [item]}),
        )
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        state, (_, looked) = find_state(exchanges, 2), look_at(exchanges, None)
        (step,) = (one for one in Tracer().add(tape.exchanges[0]) if one.kind is StepKind.OUTPUT)
    assert (state.left, looked.lost, looked.lane) == ([], [], step.lane)
    assert [[one.text for one in parts] for _, parts in state.held] == [["One!", "Answer 1"]]
    assert state.edge is not None
    assert state.edge.evidence is Evidence.RECORDED
    for lines in (render_state(state, full=False), render_lost([looked], full=False)):
        assert any("the provider keeps all" in line and "conv_1" in line for line in lines)


CONVERSATIONS = "https://api.openai.com/v1/conversations"
ITEMS = f"{CONVERSATIONS}/conv_1/items"


def _words(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, **more}


def _asked(tape: Tape, text: str) -> None:
    at = len(tape.exchanges) + 1
    asked = {"model": "gpt-5.1", "conversation": "conv_1", "input": text}
    part = {"type": "output_text", "text": f"Answer {at}", "annotations": []}
    item = {"type": "message", "id": f"m{at}", "role": "assistant", "content": [part]}
    answer = {"id": f"resp_{at}", "object": "response", "status": "completed"}
    tape.model(
        make_request("https://api.openai.com/v1/responses", asked),
        make_response(answer | {"model": "gpt-5.1", "output": [item]}),
    )


def _delete(tape: Tape, url: str, response: Any = None) -> None:
    asked = make_request(url, b"", method="DELETE")
    tape.add(asked, response or make_response({"id": "conv_1"}), RequestClass.EFFECT)


@pytest.mark.parametrize(
    ("case", "held", "unplaced"),
    [
        ("answer", ["Begin.", "One!"], []),
        ("refused", ["Begin.", "One!", "Answer 2"], []),
        ("other conversation", ["Begin.", "One!", "Answer 2"], []),
        ("added", ["Begin.", "One!", "Answer 2", "Mine is 77."], []),
        ("added and deleted", ["Begin.", "One!", "Answer 2"], []),
        ("listed", ["Begin.", "Answer 2"], []),
        ("first", ["One!", "Answer 2"], []),
        # What the user said has an id that no exchange shows.
        ("not known", ["Begin.", "One!", "Answer 2"], [3]),
        ("late", ["Begin.", "One!", "Answer 2"], []),
    ],
)
async def test_what_a_run_changes_of_a_conversation_at_the_provider_counts(
    tmp_path: Path, case: str, held: list[str], unplaced: list[int]
) -> None:
    """Items that it added are in the context of the next call, and those that it deleted are not."""
    tape = Tape("stored")
    tape.post(CONVERSATIONS, {"items": [_words("Begin.")]}, {"id": "conv_1"})
    _asked(tape, "One!")
    match case:
        case "answer":
            _delete(tape, f"{ITEMS}/m2")
        case "refused":
            _delete(tape, f"{ITEMS}/m2", make_response({"error": {}}, status=404))
        case "other conversation":
            _delete(tape, f"{CONVERSATIONS}/conv_2/items/m2")
        case "added" | "added and deleted":
            tape.post(ITEMS, {"items": [_words("Mine is 77.")]}, {"data": [{"id": "m9"}]})
            if case != "added":
                _delete(tape, f"{ITEMS}/m9")
        case "listed" | "first":
            listed = [_words("Begin.", id="m0"), _words("One!", id="m1")]
            tape.get(ITEMS, {"object": "list", "data": listed})
            _delete(tape, f"{ITEMS}/{'m1' if case == 'listed' else 'm0'}")
        case "not known":
            _delete(tape, f"{ITEMS}/m1")
    _asked(tape, "Two!")
    last = len(tape.exchanges)
    if case == "late":
        _delete(tape, f"{ITEMS}/m2")
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        state = find_state(exchanges, last)
    assert [one.text for _, parts in state.held for one in parts] == held
    assert state.unplaced == unplaced
    assert any("deleted an item" in line for line in render_state(state, full=False)) is bool(
        unplaced
    )


def _respond(status: str | None, *, ends: bool = True, text: str = "Answer", id: str = "r2") -> Any:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "m2", "role": "assistant", "content": [part]}
    whole: dict[str, Any] = {"id": id, "object": "response", "model": "gpt-5.1"}
    begun = {"type": "response.created", "response": {**whole, "status": "in_progress"}}
    events: list[dict[str, Any]] = [begun]
    if status == "error":
        events.append({"type": "error", "code": "server_error", "message": "no"})
    elif status is not None:
        whole |= {"status": status, "output": [item]}
        events.append({"type": f"response.{status}", "response": whole})
    return make_stream(*events, named=True) if ends else whole


@pytest.mark.parametrize(
    ("answer", "held", "doubtful"),
    [
        (_respond("completed"), ["Two!", "Answer"], []),
        (make_response(_respond("completed", ends=False)), ["Two!", "Answer"], []),
        # An imitation that states no status.
        (make_response({"id": "r2", "output": []}), ["Two!"], []),
        (make_response({"error": {"message": "slow down"}}, status=429), [], []),
        (make_response({"error": {"message": "no"}}, status=400), [], []),
        (make_response({"error": {"message": "no"}}, status=500), [], []),
        (make_response(b"<html>bad gateway</html>", status=502), [], []),
        (_respond("failed"), [], []),
        (_respond("cancelled"), [], []),
        (_respond("error"), [], []),
        (make_response(_respond("failed", ends=False)), [], []),
        (_respond("incomplete"), [], [2]),
        (make_response(_respond("queued", ends=False)), [], [2]),
        (_respond(None), [], [2]),
        (cut(_respond("completed"), 100), [], [2]),
        (None, [], [2]),
    ],
    ids=str,
)
async def test_a_call_that_failed_adds_nothing_to_a_conversation_at_the_provider(
    tmp_path: Path, answer: Any, held: list[str], doubtful: list[int]
) -> None:
    """Neither what it was asked nor what it answered; of one without an end nobody knows, and that is said."""
    tape = Tape("stored")
    _asked(tape, "One!")
    asked = {"model": "gpt-5.1", "conversation": "conv_1", "input": "Two!"}
    tape.model(make_request("https://api.openai.com/v1/responses", asked), answer)
    _asked(tape, "Three!")
    state = await state_at(tmp_path, tape, 3)
    assert [one.text for _, parts in state.held for one in parts] == ["One!", "Answer 1", *held]
    assert (state.doubtful, state_json(state)["doubtful"]) == (doubtful, doubtful)
    told = [line for line in render_state(state, full=False) if "may have kept it, too" in line]
    assert len(told) == len(doubtful)


@pytest.mark.parametrize(
    ("read", "held", "doubtful"),
    [
        ("completed", ["Two!", "Late."], []),
        ("failed", [], []),
        ("cancelled", [], []),
        ("in_progress", [], [2]),
    ],
)
async def test_an_answer_in_the_background_is_known_from_where_it_was_read(
    tmp_path: Path, read: str, held: list[str], doubtful: list[int]
) -> None:
    """The call itself is answered before it has begun."""
    tape = Tape("stored")
    _asked(tape, "One!")
    asked = {"model": "gpt-5.1", "conversation": "conv_1", "input": "Two!", "background": True}
    queued = _respond("queued", ends=False) | {"output": []}
    tape.model(make_request("https://api.openai.com/v1/responses", asked), make_response(queued))
    tape.get("https://api.openai.com/v1/responses/r2", _respond(read, ends=False, text="Late."))
    _asked(tape, "Three!")
    state = await state_at(tmp_path, tape, 4)
    assert [one.text for _, parts in state.held for one in parts] == ["One!", "Answer 1", *held]
    assert state.doubtful == doubtful


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("kept", ["previous", "conversation"])
async def test_what_the_run_itself_deleted_at_the_provider_is_marked(
    tmp_path: Path, kept: str, status: int
) -> None:
    """A response, or the whole conversation; a deletion that was refused deleted nothing."""
    tape = Tape("deleted")
    base = {"model": "gpt-5.1", "conversation": "conv_1"} if kept != "previous" else {"model": "m"}
    url = "https://api.openai.com/v1/responses"
    answer = make_response(_respond("completed", ends=False, id="r1"))
    tape.model(make_request(url, base | {"input": "The word is MANGO."}), answer)
    gone = f"{url}/r1" if kept == "previous" else f"{CONVERSATIONS}/conv_1"
    _delete(tape, gone, make_response({"id": "r1", "deleted": True}, status=status))
    later = (
        base | {"input": "Which?"} | ({"previous_response_id": "r1"} if kept == "previous" else {})
    )
    tape.model(make_request(url, later), make_response(_respond("completed", ends=False)))
    state = await state_at(tmp_path, tape, 3)
    by = 2 if status == 200 else None
    assert [one["deleted_by"] for one in state_json(state)["held"]] == [by]
    assert any("exchange 2 deleted it" in line for line in render_state(state, full=False)) == bool(
        by
    )


async def test_a_seq_outside_the_run_names_its_range_and_the_nearest(tmp_path: Path) -> None:
    """Whoever asks for what is not there is told what is."""
    with pytest.raises(StoreError, match="it has 1 to 10, and the nearest is 10"):
        await state_at(tmp_path, claude_code(), 99)


async def test_snapshots_stand_between_the_requests_that_they_came_between(tmp_path: Path) -> None:
    """A state has those since the call before of its lane; the log is searched by halves, whatever its length."""
    tape = claude_code()
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("tape", mode="record", at_ns=1)
        for exchange in tape.exchanges:
            store.events.append(run.number, make_intent(exchange))
            for number in range(40 if exchange.seq == 6 else 1):
                snapshot = {"snapshot": f'{{"at": {exchange.seq}, "number": {number}}}'}
                store.events.append(run.number, Event(EventKind.NOTED, 2, snapshot))
            await store.exchanges.save(run.number, partial(make_record, exchange))
        run = await store.runs.seal(run, reason="enough", at_ns=9)
        exchanges = Exchanges(store, run)
        found = {
            seq: [(one.after, one.value) for one in find_state(exchanges, seq).snapshots]
            for seq in (3, 5, 8)
        }
    one = {"number": 0}
    assert found == {
        3: [(1, {"at": 1, **one}), (2, {"at": 2, **one})],
        5: [(3, {"at": 3, **one}), (4, {"at": 4, **one})],
        8: [
            (5, {"at": 5, **one}),
            *((6, {"at": 6, "number": number}) for number in range(40)),
            (7, {"at": 7, **one}),
        ],
    }


async def test_a_log_without_requests_has_no_snapshots(tmp_path: Path) -> None:
    """As that of some imports; nor has a run of which nothing was kept."""
    assert (await state_at(tmp_path, claude_code(), 8)).snapshots == []


def test_a_call_whose_id_comes_again_waits_for_its_own_result() -> None:
    """A server that counts its tool calls anew in each answer has a `call_0` in each: the result of the first is of the first."""
    parts = [
        ContextPart("tool call", "first", "look", "call_0"),
        ContextPart("tool result", "seen", "look", "call_0"),
        ContextPart("tool call", "second", "look", "call_0"),
    ]
    assert [one.text for one in find_pending(parts)] == ["second"]


async def test_an_answer_that_nobody_gave_entered_with_its_request(tmp_path: Path) -> None:
    """What an agent says that the model has said, and it has not, is of the request."""
    tape = Tape("invented")
    asked = [said("user", "Please look at the order.")]
    tape.model(chat(asked), chat_answer("I see an order.", id="a"))
    asked += [said("assistant", "I see an order."), said("user", "Go on.")]
    asked += [said("assistant", "I have paid it."), said("user", "What is next?")]
    tape.model(chat(asked), chat_answer("Nothing.", id="b"))
    state = await state_at(tmp_path, tape, 2)
    assert [(one.seq, one.part.text) for one in state.entered] == [
        (1, "I see an order."),
        (2, "Go on."),
        (2, "I have paid it."),
        (2, "What is next?"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "anthropic_stream_tools",
        "openai_chat_stream_parallel_tools",
        "openai_responses_stream",
        "gemini_stream_tools",
        "bedrock_converse_stream_tools",
    ],
)
async def test_a_cut_answer_is_called_cut_and_tells_nothing(tmp_path: Path, name: str) -> None:
    """The half of a tool call that came is no next step."""
    request, response = load_sample(name)
    tape = Tape(name)
    tape.model(request, cut(response, len(response.body) * 2 // 3))
    tape.model(request, response)
    state = await state_at(tmp_path, tape, 1)
    lines = list(render_state(state, full=True))
    answer = next(line for line in lines if line.startswith("answer: "))
    assert "cut after" in answer
    assert "whole" not in answer
    assert [line for line in lines if line.startswith("next: ")] == [
        "next: the answer was cut, so it tells nothing"
    ]
    found = state_json(state)
    assert (found["complete"], found["planned"]) == (False, [])
    with Store.open(tmp_path / "store") as store:
        again = find_state(Exchanges(store, store.runs.get("tape")), 2)
    assert state_json(again)["complete"]
    assert again.edge is not None
    assert again.edge.evidence is Evidence.RECORDED


async def test_a_state_of_a_part_is_headed_by_the_part(tmp_path: Path) -> None:
    """What was asked for is named as it was asked for."""
    state = await state_at(tmp_path, claude_code(), 3)
    state.asked_part = state.call.part = 2
    assert next(render_state(state, full=False)).startswith("state at 3.2: the context of")


@pytest.mark.parametrize("make", [compacted, claude_code])
async def test_what_left_has_the_seq_that_first_had_it(tmp_path: Path, make: Any) -> None:
    """It is the same that the list of what compaction dropped says."""
    tape = make()
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        for looked in look_at(exchanges, None):
            state = find_state(exchanges, looked.seq)
            first = {one.part.key: one.seq for one in state.left}
            lost = {one.part.key: one.origin for one in looked.lost}
            assert lost.items() <= first.items()


async def test_tokens_are_shared_with_what_the_provider_keeps(tmp_path: Path) -> None:
    """A kept text has most of the tokens; where not all that is kept is known, nothing is said."""
    tape = Tape("kept")
    base = {"model": "gpt-5.1", "instructions": "Be brief."}
    kept = "Read this: " + "long text of the customer " * 400
    for at, (text, previous) in enumerate([(kept, None), ("And now?", "resp_1")], 1):
        asked = base | {"input": text} | ({"previous_response_id": previous} if previous else {})
        part = {"type": "output_text", "text": f"Answer {at}", "annotations": []}
        item = {"type": "message", "id": f"m{at}", "role": "assistant", "content": [part]}
        answer = {"id": f"resp_{at}", "object": "response", "status": "completed"}
        usage = {"input_tokens": 2500, "output_tokens": 5, "total_tokens": 2505}
        tape.model(
            make_request("https://api.openai.com/v1/responses", asked),
            make_response(answer | {"model": "gpt-5.1", "output": [item], "usage": usage}),
        )
    shares = estimate_tokens(await state_at(tmp_path / "whole", tape, 2))
    assert (sum(shares.values()), shares["user"] > 2450, shares["system"] < 10) == (
        2500,
        True,
        True,
    )
    tape.exchanges = [replace(tape.exchanges[1], seq=Seq(1))]
    broken = await state_at(tmp_path / "broken", tape, 1)
    assert estimate_tokens(broken) == {}
    assert not any("by part" in line for line in render_state(broken, full=False))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("step", "call"),
    [((1, 1), "1.1"), ((2, 0), "1.1"), ((1, 2), "1.2"), ((3, 0), "1.2"), ((1, 0), "1.3")],
)
async def test_the_call_of_a_websocket_before_a_step_was_asked_before_it(
    tmp_path: Path, step: tuple[int, int], call: str, known: bool
) -> None:
    """Calls of a WebSocket come when they were asked, not with its handshake."""
    with Store.open(tmp_path / "store") as store:
        state = find_state(await write_refund(store, refund(known=known)), *step)
    assert f"{state.call.seq}.{state.call.part}" == call


@pytest.mark.parametrize(
    ("steps", "place"),
    [(1, (1, 1)), (2, (2, 0)), (3, (1, 2)), (4, (3, 0)), (9, (1, 3))],
)
def test_at_a_time_the_call_of_a_websocket_is_the_step(steps: int, place: tuple[int, int]) -> None:
    """Which was asked last."""
    found = find_step_at(in_memory(refund()), BEGAN_NS + steps * STEP_US * 1000)
    assert (found.seq, found.part) == place


def test_the_last_step_may_be_a_call_of_a_websocket() -> None:
    """Whatever the seqs of other exchanges are."""
    assert in_memory(refund()).last_place[2:] == (1, 3)


def test_at_the_handshake_of_a_websocket_no_model_was_asked() -> None:
    """The error names the first call."""
    with pytest.raises(StoreError, match="had asked no model at that time") as error:
        find_step_at(in_memory(refund()), BEGAN_NS)
    assert error.value.hint == "the first model call is 1.1"
