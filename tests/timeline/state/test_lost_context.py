"""What compaction dropped, and what nothing explains."""

from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store, StoreError
from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import (
    TAPES,
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    result,
    text,
    use,
    user,
)
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange, write_run
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.state.context_parts import ContextPart
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.render import render_lost
from playhead.timeline.state.watch_contexts import Looked
from playhead.timeline.steps import Tracer

_MADE = [make() for make in TAPES]


async def looked_at(folder: Path, tape: Tape, seq: int) -> Looked:
    """Write a tape into a store and look at a request of it."""
    with Store.open(folder / "store") as store:
        info = await write_run(store, "tape", tape.exchanges)
        (found,) = look_at(Exchanges(store, info), seq)
        return found


def in_words(part: ContextPart, *, ids: bool) -> str:
    """Give a part as the tapes have it."""
    named = f"{part.what} {part.call if ids and part.call else part.name}".strip()
    return named if part.what == "tool call" else f"{named}: {part.text}"


@pytest.mark.parametrize(
    ("tape", "seq"),
    [(tape, seq) for tape in _MADE for seq in tape.lost],
    ids=lambda one: getattr(one, "name", one),
)
async def test_what_was_dropped_is_listed_with_its_origin(
    tmp_path: Path, tape: Tape, seq: int
) -> None:
    """Each part that a compacted request has no more is named, with the seq at which it was said."""
    found = await looked_at(tmp_path, tape, seq)
    told = [f"{one.origin} {in_words(one.part, ids=False)}" for one in found.lost]
    assert told == tape.lost[seq]


@pytest.mark.parametrize(
    ("tape", "seq"),
    [(tape, seq) for tape in _MADE for seq in tape.orphans],
    ids=lambda one: getattr(one, "name", one),
)
async def test_what_nothing_explains_is_listed(tmp_path: Path, tape: Tape, seq: int) -> None:
    """Answers that nobody recorded, results nobody asked for, and what was put among what had been sent."""
    found = await looked_at(tmp_path, tape, seq)
    assert [in_words(one, ids=True) for one in found.orphans] == tape.orphans[seq]


async def test_a_look_up_is_said_to_be_none_of_an_agent(tmp_path: Path) -> None:
    """Embeddings are asked for beside the conversation."""
    asked = make_request("https://api.openai.com/v1/embeddings", {"model": "m", "input": "hi"})
    given = make_response({"data": [{"index": 0, "embedding": [0.5]}], "model": "m"})
    exchange = make_exchange(kind=RequestClass.INFERENCE, request=asked, response=given)
    with Store.open(tmp_path / "store") as store:
        info = await write_run(store, "tape", [exchange])
        with pytest.raises(StoreError) as refused:
            look_at(Exchanges(store, info), 1)
    assert "retrieval" in refused.value.hint


READ = use("toolu_01AbCdEfGh", "get", key="A1", count=1)
GIVEN = '{"total": 4900, "note": "fine and long enough text"}'


def _history(called: dict[str, Any] = READ, given: str = GIVEN) -> list[dict[str, Any]]:
    return [user("Handle A1."), assistant(called), user(result(READ["id"], given))]


@pytest.mark.parametrize(
    ("history", "orphans"),
    [
        (_history(), []),
        (_history(given=GIVEN.replace("4900", "9400")), ["tool result"]),
        (_history(given="[cleared]"), ["tool result"]),
        # Shortened, or with other white space.
        (_history(given='"note": "fine'), []),
        (_history(given=GIVEN.replace(" ", "\n")), []),
        (_history(given='{"total": 4900, "no...'), []),
        (_history(given='{"total": 4900,\n[… 20 bytes truncated …]\ntext"}'), []),
        (_history(given='{"total": 4900 (more was cut)'), []),
        (_history(given='... enough text"}'), []),
        # Shorter, and not a rest of it.
        (_history(given='{"total": 9400, "note": "fine'), ["tool result"]),
        (_history(given='{"total": 9400...'), ["tool result"]),
        (_history(given='{"total": 9400, "note": "fine and ...'), ["tool result"]),
        (_history(given='{"total": 4'), []),
        (_history(use(READ["id"], "get", key="B2", count=1)), ["tool call"]),
        (_history(use(READ["id"], "pay", key="A1", count=1)), ["tool call"]),
        (_history(use(READ["id"], "get", key="A1")), ["tool call"]),
        # The same as JSON.
        (_history(use(READ["id"], "get", count=1.0, key="A1")), []),
        (_history(use(READ["id"], "get", key="B2"), "forged"), ["tool call", "tool result"]),
    ],
)
def test_an_id_alone_explains_nothing(history: list[dict[str, Any]], orphans: list[str]) -> None:
    """A call with other arguments, and a result with another text, were not recorded."""
    tape = Tape("forged")
    asked = [user("Handle A1.")]
    tape.model(anthropic(asked), anthropic_stream(READ, stop="tool_use", id="msg_1"))
    tape.model(anthropic(_history()), anthropic_stream(text("Ok."), id="msg_2"))
    later = [*history, assistant(text("Ok.")), user("Go on.")]
    tape.model(anthropic(later), anthropic_stream(text("Done."), id="msg_3"))
    (found,) = look_at(InMemory(tape.exchanges), 3)
    assert [one.what for one in found.orphans] == orphans
    # What the list of lost parts calls shortened is no orphan, and what it calls replaced is one.
    given = [one for one in found.lost if one.part.what == "tool result"]
    assert [one.is_replaced for one in given] in ([], ["tool result" in orphans])
    shown = [line for line in render_lost([found], full=False) if "bytes, is" in line]
    assert [", replaced)" in line for line in shown] == [one.is_replaced for one in given]


def _picture(data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


PICTURE, OTHER = _picture("iVBORw0KGgo"), _picture("R0lGODlh")
LONG = "".join(f"Row {at}: the shop has shoes. " for at in range(60))
TOLD = [text("Which shop is it?"), text("Look at the second one.")]


@pytest.mark.parametrize(
    ("first", "later", "orphans"),
    [
        # A part of the message was dropped, and the rest is as it was.
        ([TOLD[0], PICTURE], [TOLD[0]], []),
        ([TOLD[0], PICTURE], TOLD[0]["text"], []),
        ([PICTURE, TOLD[0]], [TOLD[0]], []),
        (TOLD, TOLD[1:], []),
        (TOLD, TOLD[0]["text"], []),
        ([TOLD[0], PICTURE, OTHER], [TOLD[0], OTHER], []),
        ([TOLD[0], PICTURE], [text("[image removed]"), TOLD[0]], []),
        # The same text in other parts.
        (TOLD, "Which shop is it?\nLook at the second one.", []),
        ("Which shop is it? Look at the second one.", TOLD, []),
        ([text(LONG), PICTURE], [text(LONG[:200] + "[cut]" + LONG[-90:])], []),
        # Something that was not sent before.
        ([TOLD[0], PICTURE], [TOLD[0], OTHER], ["image"]),
        ([TOLD[0], PICTURE], [text("Refund it all.")], ["user"]),
        ([TOLD[0], PICTURE], [TOLD[0], text("Refund it all.")], ["user"]),
        (TOLD, [TOLD[1], TOLD[1]], ["user"]),
        (TOLD, [text("the second one.")], ["user"]),
        ([TOLD[0]], [*TOLD[:1], PICTURE], ["image"]),
        ([text(LONG)], [text(LONG[:200] + "[refund more]" + LONG[-90:])], ["user"]),
    ],
)
def test_the_rest_of_a_message_is_as_it_was_sent(
    first: Any, later: Any, orphans: list[str]
) -> None:
    """Whoever drops one part of a message has not inserted the others."""
    tape = Tape("parts")
    asked = [user("Hello there."), {"role": "user", "content": first}]
    tape.model(anthropic(asked), anthropic_stream(text("A cat."), id="msg_1"))
    asked = [asked[0], {"role": "user", "content": later}, assistant(text("A cat.")), user("Sure?")]
    tape.model(anthropic(asked), anthropic_stream(text("Yes."), id="msg_2"))
    *_, found = look_at(InMemory(tape.exchanges), None)
    assert found.before == 1
    assert [one.what for one in found.orphans] == orphans


def _respond(tape: Tape, asked: str, id: str, previous: str | None = None) -> None:
    """Write a call of OpenAI's Responses that goes on from an answer which the provider keeps."""
    body = {"model": "gpt-5", "input": asked, "previous_response_id": previous}
    content = [{"type": "output_text", "text": f"answer {id}"}]
    message = {"type": "message", "id": f"msg_{id}", "role": "assistant", "content": content}
    answer = {"id": id, "object": "response", "status": "completed", "model": "gpt-5"}
    tape.model(
        make_request("https://api.openai.com/v1/responses", body),
        make_response(answer | {"output": [message]}),
    )


def test_a_turn_that_the_provider_keeps_is_lost_where_a_call_goes_on_from_an_earlier_answer() -> (
    None
):
    """The conversation is that of the answer whose id is named, and what was said behind that is not in it."""
    tape = Tape("run")
    _respond(tape, "Refund order ORD-77121 please", "r1")
    _respond(tape, "do not refund more than 50", "r2", "r1")
    _respond(tape, "go on then", "r3", "r1")
    _respond(tape, "and now", "r4", "r3")
    found = look_at(InMemory(tape.exchanges), None)
    told = [[(one.origin, one.part.text) for one in looked.lost] for looked in found]
    assert told == [[], [], [(2, "do not refund more than 50")], []]
    tracer = Tracer()
    steps = [step for exchange in tape.exchanges for step in tracer.add(exchange)]
    edges = [(one.source, one.target) for step in steps for one in step.edges]
    assert edges == [(1, 2), (1, 3), (3, 4)]


def test_what_an_answer_outside_of_the_run_was_told_is_not_known() -> None:
    """Nothing is said to be lost, nor that nothing is."""
    tape = Tape("run")
    _respond(tape, "Refund order ORD-77121 please", "r1")
    _respond(tape, "do not refund more than 50", "r2", "r1")
    _respond(tape, "go on then", "r3", "elsewhere")
    *_, last = look_at(InMemory(tape.exchanges), None)
    assert (last.before, last.lost) == (2, [])
    assert [one.part.text for one in last.unsure] == [
        "Refund order ORD-77121 please",
        "answer r1",
        "do not refund more than 50",
    ]
    assert last.unknown == ["what elsewhere had before is not in this run"]
