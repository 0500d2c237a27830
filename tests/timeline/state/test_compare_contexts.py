"""What the earlier of two calls had and the later has not, whoever keeps it."""

from collections.abc import Callable
from typing import Any

import pytest

from playhead.tests.support.agent_tapes import Tape, chat, chat_answer
from playhead.tests.support.agent_tapes import said as message
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.provider_tapes import Kept, called, function, result, said, words
from playhead.timeline.state.find_state import find_state
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.render import looked_json, render_lost, render_state, state_json
from playhead.timeline.state.watch_contexts import Looked

CODE = "My code is ZEBRA-4471."
RULES = "You are a shop agent.\nNever refund twice.\nBe kind."
FEWER = "You are a shop agent.\nBe kind."
TOOLS = [function("refund"), function("look")]


def _chain(run: Kept, how: str, *calls: dict[str, Any]) -> None:
    """Make calls of one conversation that is kept by the ids of answers, under an id, or in each request."""
    history: list[Any] = []
    for call in calls:
        more, at = dict(call), run.next
        asked = more.pop("asked", None) or words(f"Question {at}.")
        if how == "inline":
            history.append(asked)
            run.ask([*history], **more)
            history.append(said(f"Answer of r{at}.", f"m_r{at}"))
        elif how == "conversation":
            run.ask([asked], conversation="conv_1", **more)
        else:
            if at > 1:
                more["previous_response_id"] = f"r{at - 1}"
            run.ask([asked], **more)


def _told(looked: Looked) -> list[str]:
    told = [f"- {one.part.text or one.part.name}" for one in looked.lost]
    told += [f"? {one.part.text or one.part.name}" for one in looked.unsure]
    told += [f"- line {one}" for one in looked.system] + [f"- tool {one}" for one in looked.tools]
    return told


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("how", ["inline", "conversation", "ids"])
@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([{"instructions": RULES}, {"instructions": FEWER}], ["- line Never refund twice."]),
        ([{"instructions": RULES}, {"instructions": RULES}], []),
        ([{"tools": TOOLS}, {"tools": TOOLS[1:]}], ["- tool refund"]),
        ([{"tools": TOOLS}, {"tools": TOOLS[::-1]}], []),
        (
            [
                {"instructions": RULES, "tools": TOOLS},
                {"instructions": RULES, "tools": TOOLS},
                {"instructions": FEWER, "tools": TOOLS[1:]},
            ],
            ["- line Never refund twice.", "- tool refund"],
        ),
        # What is said by an item goes on to be kept.
        ([{"asked": words("Never refund twice.", "developer")}, {}, {}], []),
    ],
)
def test_prompts_and_tools_are_those_of_each_request(
    how: str, calls: list[dict[str, Any]], told: list[str], *, stream: bool
) -> None:
    """No provider keeps them: one that is given no more is lost, wherever the conversation is."""
    run = Kept(stream=stream)
    _chain(run, how, *calls)
    *_, last = look_at(run.exchanges, None)
    assert last.before == last.seq - 1
    assert (_told(last), last.unknown) == (told, [])
    shown = "\n".join(render_lost([last], full=False))
    assert ("nothing was dropped" in shown) is not bool(told)


@pytest.mark.parametrize("how", ["conversation", "ids"])
def test_a_prompt_that_is_gone_whole_is_lost_where_the_conversation_is_named(how: str) -> None:
    """Who is given none has no other role."""
    run = Kept()
    _chain(run, how, {"instructions": FEWER, "tools": TOOLS}, {"tools": TOOLS[1:]}, {})
    *_, second, third = look_at(run.exchanges, None)
    assert _told(second) == ["- line You are a shop agent.", "- line Be kind.", "- tool refund"]
    assert _told(third) == ["- tool look"]


def test_an_agent_in_the_conversation_of_another_is_compared_with_none() -> None:
    """That is said, and not that nothing is gone."""
    run = Kept()
    _chain(
        run, "conversation", {"instructions": "You plan trips."}, {"instructions": "You pay bills."}
    )
    found = look_at(run.exchanges, None)
    assert [(one.lane, one.taken_from) for one in found] == [(1, 0), (2, 1)]
    assert "nothing was dropped" not in "\n".join(render_lost(found, full=False))
    # Each goes on for itself.
    _chain(
        run, "conversation", {"instructions": "You plan trips."}, {"instructions": "You pay bills."}
    )
    found = look_at(run.exchanges, None)
    assert [(one.before, one.taken_from) for one in found] == [(0, 0), (0, 1), (1, 0), (2, 0)]


def _item_deleted(run: Kept) -> None:
    _chain(run, "conversation", {"asked": words(CODE)}, {})
    run.delete("conversations/conv_1/items/m_r1")
    _chain(run, "conversation", {})


def _last_answer_deleted(run: Kept) -> None:
    _chain(run, "conversation", {}, {})
    run.delete("conversations/conv_1/items/m_r2")
    _chain(run, "conversation", {})


def _listed_deleted(run: Kept) -> None:
    run.create("conv_1")
    run.ask([words(CODE), words("Say it.")], conversation="conv_1")
    run.list("conv_1", words(CODE, id="m0"))
    run.delete("conversations/conv_1/items/m0")
    run.ask("What is it?", conversation="conv_1")


def _unplaced(run: Kept) -> None:
    _chain(run, "conversation", {"asked": words(CODE)})
    run.delete("conversations/conv_1/items/elsewhere")
    _chain(run, "conversation", {})


def _added_and_deleted(run: Kept) -> None:
    run.create("conv_1", words("Begin here, please."))
    run.add("conv_1", words(CODE), words(CODE))
    _chain(run, "conversation", {})
    run.delete("conversations/conv_1/items/added1")
    _chain(run, "conversation", {})


def _deleted_and_repeated(run: Kept) -> None:
    run.create("conv_1", words("Begin here, please."))
    run.add("conv_1", words(CODE))
    _chain(run, "conversation", {})
    run.delete("conversations/conv_1/items/added1")
    run.ask([words(CODE), words("Go on.")], conversation="conv_1")


def _refused_deletion(run: Kept) -> None:
    _chain(run, "conversation", {}, {})
    run.delete("conversations/conv_1/items/m_r1", 404)
    _chain(run, "conversation", {})


def _switched(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    _chain(run, "conversation", {})
    run.create("conv_2")
    run.ask("And here?", conversation="conv_2")


def _switched_elsewhere(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    _chain(run, "conversation", {})
    run.ask("And here?", conversation="conv_2")


def _switched_from_elsewhere(run: Kept) -> None:
    run.ask(CODE, conversation="conv_1")
    run.create("conv_2")
    run.ask("And here?", conversation="conv_2")


def _back_and_forth(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    run.create("conv_2", words("The other one."))
    run.ask("One.", conversation="conv_1")
    run.ask("Two.", conversation="conv_2")
    run.ask("Three.", conversation="conv_1")


def _conversation_to_inline(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    _chain(run, "conversation", {"asked": words("Look it up.")}, {})
    run.ask([words("Look it up."), said("Answer of r2.", "m_r2"), words("Go on.")])


def _last_answer_deleted_then_inline(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    _chain(run, "conversation", {})
    run.delete("conversations/conv_1/items/m_r2")
    run.ask([words(CODE), words("Question 2."), words("Go on.")])


def _ids_behind_a_failed_call_of_a_conversation(run: Kept) -> None:
    run.create("conv_1", words("Begin here, please."))
    _chain(run, "conversation", {})
    run.ask(CODE, conversation="conv_1", error=500)
    run.ask("Go on.", previous_response_id="r2")


def _conversation_to_ids(run: Kept) -> None:
    run.create("conv_1", words(CODE))
    _chain(run, "conversation", {})
    run.ask("Go on.", previous_response_id="r2")


def _ids_to_conversation(run: Kept) -> None:
    _chain(run, "ids", {"asked": words(CODE)}, {})
    run.create("conv_1", words(CODE))
    run.ask("Go on.", conversation="conv_1")


def _inline_to_conversation(run: Kept) -> None:
    run.ask([words(CODE), words("Say it.")])
    run.create("conv_1", words("Say it."))
    run.ask("Go on.", conversation="conv_1")


def _back_to_an_earlier_answer(run: Kept) -> None:
    _chain(run, "ids", {}, {"asked": words(CODE)}, {})
    run.ask("Once more.", previous_response_id="r1")


def _ids_to_inline_with_a_shorter_result(run: Kept) -> None:
    run.ask([words(CODE)], output=[called("call_1", "look", key=1)])
    run.ask([result("call_1", "a long result of the look")], previous_response_id="r1")
    run.ask(
        [words(CODE), called("call_1", "look", key=1), result("call_1", "a long ..."), words("So?")]
    )


def _failed(run: Kept) -> None:
    _chain(run, "conversation", {})
    run.ask(CODE, conversation="conv_1", error=500)
    _chain(run, "conversation", {})


def _failed_and_asked_again(run: Kept) -> None:
    _chain(run, "conversation", {})
    run.ask([words(CODE)], conversation="conv_1", error=500)
    run.ask([words(CODE)], conversation="conv_1")


def _cut(run: Kept) -> None:
    _chain(run, "conversation", {})
    run.ask(CODE, conversation="conv_1", ends=False)
    _chain(run, "conversation", {})


def _failed_by_id(run: Kept) -> None:
    _chain(run, "ids", {})
    run.ask(CODE, previous_response_id="r1", status="failed", output=[])
    run.ask("Go on.", previous_response_id="r2")


def _failed_by_id_and_refused(run: Kept) -> None:
    _chain(run, "ids", {})
    run.ask(CODE, previous_response_id="r1", status="failed", output=[])
    run.ask("Go on.", previous_response_id="r2", error=400)


def _response_deleted(run: Kept) -> None:
    _chain(run, "ids", {"asked": words(CODE)}, {})
    run.delete("responses/r1")
    run.ask("Go on.", previous_response_id="r2")


def _conversation_deleted(run: Kept) -> None:
    _chain(run, "conversation", {"asked": words(CODE)})
    run.delete("conversations/conv_1")
    _chain(run, "conversation", {})


def _system_item_deleted(run: Kept) -> None:
    run.create("conv_1", words("Begin."))
    run.add("conv_1", words("Never refund twice.", "developer"))
    _chain(run, "conversation", {})
    run.delete("conversations/conv_1/items/added1")
    _chain(run, "conversation", {})


def _prompt_dropped(run: Kept) -> None:
    run.ask(CODE, prompt={"id": "pmpt_1"})
    run.ask("Go on.", previous_response_id="r1")


def _prompt_for_instructions(run: Kept) -> None:
    run.ask(CODE, instructions="Never refund twice.", tools=TOOLS)
    run.ask("Go on.", previous_response_id="r1", prompt={"id": "pmpt_1"})


@pytest.mark.parametrize(
    ("write", "told", "unknown"),
    [
        (_item_deleted, ["- Answer of r1."], []),
        (_last_answer_deleted, ["- Answer of r2."], []),
        (_listed_deleted, [f"- {CODE}"], []),
        (_unplaced, [], ["deleted an item that no exchange has"]),
        # The same is still there.
        (_added_and_deleted, [], []),
        (_deleted_and_repeated, [], []),
        (_refused_deletion, [], []),
        (_switched, [f"- {CODE}", "- Question 2."], []),
        (_switched_elsewhere, [f"? {CODE}", "? Question 2."], ["what conv_2 had"]),
        (_switched_from_elsewhere, [f"- {CODE}"], ["what conv_1 had"]),
        (_back_and_forth, ["- The other one.", "- Two."], []),
        (_conversation_to_inline, [f"- {CODE}", "- Question 3."], []),
        (_last_answer_deleted_then_inline, ["- Answer of r2."], []),
        (_conversation_to_ids, [], []),
        (_ids_behind_a_failed_call_of_a_conversation, [f"- {CODE}"], []),
        (_ids_to_conversation, ["- Answer of r1.", "- Question 2."], []),
        (_inline_to_conversation, [f"- {CODE}"], []),
        (_back_to_an_earlier_answer, [f"- {CODE}", "- Answer of r2.", "- Question 3."], []),
        (_ids_to_inline_with_a_shorter_result, ["- a long result of the look"], []),
        (_failed, [f"- {CODE}"], []),
        (_failed_and_asked_again, [], []),
        (_cut, [f"? {CODE}"], ["exchange 2 was not answered"]),
        (_failed_by_id, [f"? {CODE}"], ["exchange 2 was not answered"]),
        (_failed_by_id_and_refused, [f"- {CODE}"], []),
        (_response_deleted, [f"? {CODE}", "? Answer of r1."], ["exchange 3 deleted it"]),
        (_conversation_deleted, [f"? {CODE}"], ["exchange 2 deleted it"]),
        (_system_item_deleted, ["- line Never refund twice."], []),
        (_prompt_dropped, [], ["call 1 has prompt pmpt_1"]),
        (
            _prompt_for_instructions,
            ["? look", "? refund", "? Never refund twice."],
            ["call 2 has prompt pmpt_1"],
        ),
    ],
)
def test_what_a_provider_keeps_is_compared_as_what_is_sent(
    write: Callable[[Kept], None], told: list[str], unknown: list[str]
) -> None:
    """What is gone is told, and what is not known is told to be unknown: never that nothing is gone."""
    run = Kept()
    write(run)
    exchanges = run.exchanges
    *_, last = look_at(exchanges, None)
    assert last.before
    assert _told(last) == told
    for one, wanted in zip(last.unknown, unknown, strict=True):
        assert wanted in one
    shown = "\n".join(render_lost([last], full=False))
    assert ("nothing was dropped" in shown) is not bool(told or unknown)
    assert looked_json(last)["unknown"] == last.unknown
    # The state at the call says the same.
    state = find_state(exchanges, last.seq, last.call_part)
    left = [one.part.text for one in state.left]
    assert [
        one for one in told if one[0] == "-" and "line" not in one and one[2:] not in left
    ] == []
    assert state.unknown == state_json(state)["unknown"] == last.unknown
    assert state.before is not None
    assert "\n".join(render_state(state, full=False)).count("not known: ") == len(unknown)


@pytest.mark.parametrize(
    "more",
    [
        {"truncation": "auto"},
        {"context_management": [{"type": "compaction"}]},
        {"transforms": ["middle-out"]},
    ],
    ids=str,
)
def test_what_the_provider_may_drop_by_itself_is_not_said_to_be_kept(more: dict[str, Any]) -> None:
    """No exchange shows what it dropped."""
    for how in ("inline", "conversation", "ids"):
        run = Kept()
        _chain(run, how, more, more)
        shown = "\n".join(render_lost(look_at(run.exchanges, None), full=False))
        assert "nothing was dropped" not in shown
        assert next(iter(more)) in shown
    run = Kept()
    _chain(run, "ids", {"truncation": "disabled"}, {"transforms": []})
    assert list(render_lost(look_at(run.exchanges, None), full=False)) == ["nothing was dropped"]


def test_a_message_of_the_system_in_a_conversation_is_a_line_of_the_prompt() -> None:
    """It may stand anywhere in the conversation."""
    tape = Tape("reminded")
    asked = [message("system", "You are an agent."), message("user", "Look at the order.")]
    tape.model(chat(asked), chat_answer("I see the order.", id="a"))
    asked += [message("assistant", "I see the order.")]
    later = [*asked, message("system", "Never refund twice."), message("user", "Go on.")]
    tape.model(chat(later), chat_answer("Done.", id="b"))
    fewer = [
        *asked,
        message("user", "Go on."),
        message("assistant", "Done."),
        message("user", "So?"),
    ]
    tape.model(chat(fewer), chat_answer("Yes.", id="c"))
    *_, last = look_at(InMemory(tape.exchanges), None)
    assert _told(last) == ["- line Never refund twice."]


def test_a_prompt_that_is_gone_whole_is_of_another_agent_and_that_is_said() -> None:
    """Who hands a conversation over has another prompt: the two are not compared, and nobody says that nothing is gone."""
    tape = Tape("handed over")
    asked = [message("system", "Never refund twice."), message("user", "Look at the order.")]
    tape.model(chat(asked), chat_answer("I see the order now.", id="a"))
    later = [asked[1], message("assistant", "I see the order now."), message("user", "Go on.")]
    tape.model(chat(later), chat_answer("Done.", id="b"))
    found = look_at(InMemory(tape.exchanges), None)
    assert [one.taken_from for one in found] == [0, 1]
    shown = "\n".join(render_lost(found, full=False))
    assert "nothing was dropped" not in shown
    assert "2 begins lane 2 with the conversation of 1" in shown


def _gemini(tape: Tape, cache: str | None, *said: str) -> None:
    roles = ("user", "model")
    contents = [{"role": roles[at % 2], "parts": [{"text": one}]} for at, one in enumerate(said)]
    answer = {"content": {"role": "model", "parts": [{"text": "I see it now."}]}}
    host = "https://generativelanguage.googleapis.com"
    tape.model(
        make_request(
            f"{host}/v1beta/models/gemini-2.5-pro:generateContent",
            {"contents": contents, "cachedContent": cache},
        ),
        make_response({"candidates": [answer | {"finishReason": "STOP"}]}),
    )


@pytest.mark.parametrize(
    ("first", "second", "told", "unknown"),
    [
        ("cachedContents/a", "cachedContents/a", "- Look at it.", []),
        ("cachedContents/a", None, "- Look at it.", ["call 1 has cachedContent"]),
        (
            "cachedContents/a",
            "cachedContents/b",
            "? Look at it.",
            ["call 1 has cachedContent", "call 2 has cachedContent"],
        ),
        (None, "cachedContents/b", "? Look at it.", ["call 2 has cachedContent"]),
    ],
)
def test_what_a_cache_with_a_name_has_is_not_known(
    first: str | None, second: str | None, told: str, unknown: list[str]
) -> None:
    """A prompt and messages may be in it."""
    tape = Tape("cached")
    _gemini(tape, first, "Look at it.")
    _gemini(tape, second, "Go on.", "I see it now.", "And?")
    *_, last = look_at(InMemory(tape.exchanges), None)
    assert _told(last) == [told]
    assert [one.partition(" cachedContents/")[0] for one in last.unknown] == unknown


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_was_said_in_the_background_is_no_orphan(*, is_kept: bool) -> None:
    """It came by a later read of the answer: the tool call of a result, and a message that is sent along."""
    run, output = Kept(), [said("I look.", "m1"), called("call_1", "look", order="7")]
    run.ask([words("Refund it.")], output=[], status="queued", background=True)
    run.read("r1", "completed", *output)
    given = result("call_1", "paid")
    if is_kept:
        run.ask([given], previous_response_id="r1")
    else:
        run.ask([words("Refund it."), *output, given])
    assert [one.orphans for one in look_at(run.exchanges, None)] == [[], []]
    run.ask([words("Refund it."), said("I look away.", "m1"), *output[1:], given])
    *_, last = look_at(run.exchanges, None)
    assert "I look away." in [one.text for one in last.orphans]
