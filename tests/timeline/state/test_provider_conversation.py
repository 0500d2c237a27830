"""What a provider keeps, as it was when a call was made."""

from collections.abc import Callable

import pytest

from playhead.tests.support.provider_tapes import Kept, called, result, said, words
from playhead.timeline.state.find_state import find_state
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.render import estimate_tokens, render_lost, render_state


def _cut(run: Kept) -> None:
    run.ask("One.", ends=False)


def _cut_and_read(run: Kept) -> None:
    _cut(run)
    run.read("r1", "completed", said("Answer of r1.", "m_r1"))


def _cut_and_read_as_a_stream(run: Kept) -> None:
    _cut(run)
    run.read("r1", "completed", said("Answer of r1.", "m_r1"), stream=True)


def _queued(run: Kept) -> None:
    run.ask("One.", output=[], status="queued", background=True)


def _read_before_its_end(run: Kept) -> None:
    _queued(run)
    run.read("r1", "in_progress")


def _read_at_last(run: Kept) -> None:
    _read_before_its_end(run)
    run.read("r1", "completed", said("Answer of r1.", "m_r1"))


def _read_twice(run: Kept) -> None:
    _read_at_last(run)
    run.read("r1", "completed", said("Answer of r1.", "m_r1"))


def _read_failed(run: Kept) -> None:
    _queued(run)
    run.read("r1", "failed")


def _cancelled(run: Kept) -> None:
    _queued(run)
    run.tape.post(
        "https://api.openai.com/v1/responses/r1/cancel", {}, run.answer([], "cancelled", "r1")
    )


def _incomplete(run: Kept) -> None:
    run.ask("One.", status="incomplete")


def _failed(run: Kept) -> None:
    run.ask("One.", output=[], status="failed")


def _refused(run: Kept) -> None:
    run.ask("One.", error=429)


def _whole(run: Kept) -> None:
    run.ask("One.")


WHOLE = ["One.", "Answer of r1."]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("begin", "by_id", "in_conversation", "doubtful"),
    [
        (_whole, WHOLE, WHOLE, False),
        (_cut, ["One.", "Answer"], [], True),
        (_cut_and_read, WHOLE, WHOLE, False),
        (_cut_and_read_as_a_stream, WHOLE, WHOLE, False),
        (_queued, ["One."], [], True),
        (_read_before_its_end, ["One."], [], True),
        (_read_at_last, WHOLE, WHOLE, False),
        (_read_twice, WHOLE, WHOLE, False),
        (_incomplete, WHOLE, [], True),
    ],
)
def test_an_answer_is_kept_as_it_ended(
    begin: Callable[[Kept], None],
    by_id: list[str],
    in_conversation: list[str],
    *,
    stream: bool,
    doubtful: bool,
) -> None:
    """Whether its id is named or its conversation is; of one without an end it is said that it may have another."""
    for named, texts in (("previous_response_id", by_id), ("conversation", in_conversation)):
        run = Kept(stream=stream)
        run.always = {"conversation": "conv_1"} if named == "conversation" else {}
        begin(run)
        run.always = run.always or {named: "r1"}
        run.ask("Two.")
        last = run.next - 1
        state = find_state(run.exchanges, last)
        assert state.before is not None
        assert [one.text for _, parts in state.held for one in parts] == texts
        assert state.doubtful == ([1] if doubtful else [])
        shown = [line for line in render_state(state, full=False) if "to its end" in line]
        told = "may have kept more of its answer" if named != "conversation" else "kept it, too"
        assert [told in line for line in shown if "not known" not in line] == [True] * doubtful
        assert bool(estimate_tokens(state)) is False  # no tokens are stated


@pytest.mark.parametrize("begin", [_read_failed, _cancelled, _failed])
@pytest.mark.parametrize("error", [0, 400])
def test_a_call_that_failed_adds_nothing_to_what_its_id_leads_to(
    begin: Callable[[Kept], None], error: int
) -> None:
    """Who names it goes on from what came before; one that is answered goes on from something, and that is said."""
    run = Kept()
    begin(run)
    run.ask("Two.", previous_response_id="r1", error=error)
    state = find_state(run.exchanges, run.next - 1)
    assert state.held == []
    assert state.doubtful == ([] if error else [1])
    assert state.broken == 0


def test_a_call_that_failed_is_left_out_of_a_longer_chain() -> None:
    """What came before it is kept."""
    run = Kept()
    run.ask("One.")
    run.ask("Two.", previous_response_id="r1", status="failed", output=[])
    run.ask("Three.", previous_response_id="r2", error=400)
    state = find_state(run.exchanges, 3)
    assert [(seq, [one.text for one in parts]) for seq, parts in state.held] == [(1, WHOLE)]
    assert state.doubtful == []


def test_what_the_provider_had_before_has_not_entered() -> None:
    """A history that is sent whole once, behind ids, is nothing new but for what is new in it."""
    run = Kept()
    run.ask([words("One."), words("Yes.")], output=[called("call_1", "look", key=1)])
    run.ask([result("call_1", "a long result"), words("Yes.")], previous_response_id="r1")
    history = [words("One."), words("Yes."), called("call_1", "look", key=1)]
    history += [result("call_1", "a long result"), words("Yes."), said("Answer of r2.", "m_r2")]
    run.ask([*history, words("Yes."), words("So?")])
    state = find_state(run.exchanges, 3)
    entered = [(one.seq, one.part.text) for one in state.entered]
    assert entered == [(2, "Answer of r2."), (3, "Yes."), (3, "So?")]
    assert state.left == []


def test_calls_of_a_websocket_are_kept_by_their_ids() -> None:
    """The prompt and the tools are those of each call; a first one that only prepares is kept, too."""
    run = Kept()
    rules = {"instructions": "Be kind.\nNever refund twice."}
    run.ask_on_websocket(
        {"input": [words("Be ready.")], "generate": False, **rules},
        {"input": [words("One.")], "previous_response_id": "r1.1", **rules},
        {"input": [words("Two.")], "previous_response_id": "r1.2", **rules},
        {"input": [words("Three.")], "previous_response_id": "r1.3", "instructions": "Be kind."},
        {"input": [words("Four.")], "previous_response_id": "r1.2", "instructions": "Be kind."},
    )
    found = {one.call_part: one for one in look_at(run.exchanges, None)}
    assert [(one.lost, one.system, one.unknown) for one in (found[2], found[3])] == [
        ([], [], [])
    ] * 2
    assert found[4].system == ["Never refund twice."]
    assert [one.part.text for one in found[5].lost] == ["Two.", "Answer of r1.3.", "Three."]
    state = find_state(run.exchanges, 1, 3)
    texts = [one.text for _, parts in state.held for one in parts]
    assert texts == ["Be ready.", "Answer of r1.1.", "One.", "Answer of r1.2."]
    assert state.broken == 0
    assert "Never refund twice." in "\n".join(render_lost([found[4]], full=False))


def test_a_chain_is_read_as_far_as_its_answers_lead() -> None:
    """Though hundreds of other exchanges came between."""
    run = Kept()
    run.ask("One.")
    for _ in range(200):
        run.tape.get("https://shop.test/", {})
    run.ask("Two.", previous_response_id="r1")
    for _ in range(200):
        run.tape.get("https://shop.test/", {})
    run.ask("Three.", previous_response_id="r202")
    state = find_state(run.exchanges, run.next - 1)
    assert [seq for seq, _ in state.held] == [1, 202]
    assert state.broken == 0
