"""The places at which two requests differ: all that decide, and no others."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Exchange, Request, RequestClass, Response
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    chat,
    said,
    text,
    thinking,
    use,
    user,
)
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.diff.differing_json_paths import find_places
from playhead.timeline.diff.render import Names, render_diff
from playhead.timeline.diff.row import Change

CHARGE = "ch_9Zk3Qp77"
PAID = {"charge": CHARGE, "amount": 50}


def run(body: Any, *, given: Any = None, answer: Any = None, tenant: str = "") -> list[Exchange]:
    """Write a run: it reads what is to be paid, and pays with a body."""
    tape = Tape("pay")
    tape.get("https://shop.test/order", PAID if given is None else given)
    tape.post("https://pay.test/pay", body, {"ok": True} if answer is None else answer)
    last = tape.exchanges[-1]
    headers = (*last.request.headers, (b"x-tenant", tenant.encode()))
    tape.exchanges[-1] = replace(last, request=replace(last.request, headers=headers))
    return tape.exchanges


def shown(first: list[Exchange], second: list[Exchange]) -> list[tuple[str, str, str]]:
    """Give the places of the first divergence with both values, and that in the second run if it is another one."""
    sides = InMemory(first), InMemory(second)
    divergence = compare_acts(*map(read_acts, sides)).divergence
    assert divergence is not None
    listed = find_places(divergence.row, *sides, compile_rules()).listed
    return [(one.name_in("B"), one.recorded, one.asked) for one in listed]


def places(first: list[Exchange], second: list[Exchange]) -> list[str]:
    """Name the places of the first divergence, by their names."""
    sides = InMemory(first), InMemory(second)
    divergence = compare_acts(*map(read_acts, sides)).divergence
    assert divergence is not None
    assert divergence.row.change in (Change.ASKED, Change.ANSWERED)
    listed = find_places(divergence.row, *sides, compile_rules()).listed
    return sorted(one.place for one in listed)


def test_an_id_that_no_answer_gave_is_listed_beside_another_difference() -> None:
    """Another amount takes the other charge along."""
    other = {"charge": "ch_0000AAAA", "amount": 60}
    assert places(run(PAID), run(other)) == ["body $.amount", "body $.charge"]


def test_an_id_is_listed_that_the_answer_repeats() -> None:
    """An answer that says which charge was paid does not make it the same charge."""
    other = {"charge": "ch_0000AAAA", "amount": 60}
    found = places(run(PAID, answer=PAID), run(other, answer=other))
    assert {"body $.amount", "body $.charge", "answer body $.charge"} <= {*found}


def test_a_header_field_is_never_listed() -> None:
    """It does not count, so it cannot be why two requests differ."""
    other = {**PAID, "charge": "ch_0000AAAA"}
    assert places(run(PAID, tenant="a"), run(other, tenant="b")) == ["body $.charge"]


@pytest.mark.parametrize("ids", [("ch_9Zk3Qp77", "ch_8YY2Qp71"), ("inv_0000AAAA", "inv_9090BBBB")])
def test_an_id_that_answers_gave_is_not_listed(ids: tuple[str, str]) -> None:
    """The server made it anew: what differs is the amount."""
    paid = [{"charge": one, "amount": amount} for one, amount in zip(ids, (50, 60), strict=True)]
    given = [{"charge": one} for one in ids]
    sides = [run(body, given=gave) for body, gave in zip(paid, given, strict=True)]
    assert places(*sides) == ["body $.amount"]


def test_another_number_of_few_digits_is_listed() -> None:
    """No answer to an effect made it."""
    one, other = ({"order_id": at, "amount": at * 10} for at in (5, 6))
    assert places(run(one), run(other)) == ["body $.amount", "body $.order_id"]


def test_an_answer_that_names_another_known_id_is_listed() -> None:
    """The id was known in both runs, so it is no new one."""
    one, other = ({"charge": id, "left": left} for id, left in ((CHARGE, 1), ("ch_0000AAAA", 2)))
    assert places(run(PAID, answer=one), run(PAID, answer=other)) == [
        "answer body $.charge",
        "answer body $.left",
    ]


def made(id: str, used: str, amount: int) -> list[Exchange]:
    """Write a run whose shop makes a refund, and which pays one."""
    tape = Tape("made")
    tape.post("https://shop.test/refunds", {"item": "shoe"}, {"id": id})
    tape.post("https://pay.test/pay", {"refund": used, "amount": amount})
    return tape.exchanges


def test_a_short_id_is_listed_only_if_it_is_another_one() -> None:
    """What the shop made is not, whatever form it has."""
    assert places(made("re_1", "re_1", 50), made("re_2", "re_2", 60)) == ["body $.amount"]
    found = places(made("re_1", "re_1", 50), made("re_2", "re_1", 60))
    assert "body $.amount" in found
    assert places(made("re_1", "re_1", 50), made("re_2", "re_7", 60)) == [
        "body $.amount",
        "body $.refund",
    ]


# Model calls

ASK, ANSWER, GO = (
    user("Refund the mug of order 7."),
    assistant(text("Which charge?")),
    user("The one of May."),
)


def calls(*asked: list[dict[str, Any]], process: int = 1) -> list[Exchange]:
    """Write a run of model calls with such messages, the last one in a process of its own if asked for."""
    tape = Tape("calls")
    for number, messages in enumerate(asked):
        last = number == len(asked) - 1
        reply = anthropic_stream(text("Done." if last else "Which charge?"))
        tape.model(anthropic(messages), reply, process=process if last else 1)
    return tape.exchanges


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([user("Refund the cup of order 7."), ANSWER, GO], ["body $.messages[0].content[0].text"]),
        ([ASK, GO], ["body $.messages[1]"]),
        ([GO], ["body $.messages[0]", "body $.messages[1]"]),
        ([user("Be kind."), ASK, ANSWER, GO], ["body $.messages[0]"]),
        (
            [user("Be kind."), ASK, ANSWER, user("The one of June.")],
            [
                "body $.messages[0]",
                "body $.messages[2].content[0].text, in B body $.messages[3].content[0].text",
            ],
        ),
    ],
    ids=["edited", "dropped", "forgotten", "put in", "put in and edited"],
)
def test_earlier_messages_have_their_true_places(
    messages: list[dict[str, Any]], found: list[str], is_first: bool
) -> None:
    """Whatever of the lane's earlier calls each request goes on from."""
    runs = [calls([ASK], [ASK, ANSWER, GO]), calls([ASK], messages)]
    if is_first:
        named = [one[0] for one in shown(*runs[::-1])]
        turned = [one.split(", in B ") for one in found]
        assert named == [", in B ".join(reversed(one)) for one in turned]
    else:
        assert [one[0] for one in shown(*runs)] == found


def test_the_same_words_behind_no_conversation_are_another_question() -> None:
    """A new process has nothing of what was said before."""
    first, second = calls([ASK], [ASK, GO]), calls([ASK], [GO], process=2)
    assert [one[0] for one in shown(first, second)] == ["body $.messages[0]"]


def one_call(request: Request, response: Response | None = None) -> list[Exchange]:
    """Write a run of one model call."""
    tape = Tape("one")
    tape.model(request, response or anthropic_stream(text("Done.")))
    return tape.exchanges


def test_a_finish_is_named_and_not_a_text_whose_id_stands_for_another() -> None:
    """A stream has it in no body."""
    runs = [
        one_call(anthropic([ASK]), anthropic_stream(text(f"Refunded as {id}."), stop=stop))
        for id, stop in (("re_7Ex15JAwXt1CQEW4", "end_turn"), ("re_7fF3TAewxfCLGZG9", "max_tokens"))
    ]
    assert shown(*runs) == [("answer ends", "stop (end_turn)", "length (max_tokens)")]


def test_what_a_failed_call_ended_with_is_named_first() -> None:
    """Its body has another form."""
    failed = make_response({"error": {"type": "rate_limit_error", "message": "slow"}}, 429)
    good = make_response({"role": "assistant", "content": [text("a")], "stop_reason": "end_turn"})
    found = shown(one_call(anthropic([ASK]), good), one_call(anthropic([ASK]), failed))
    assert found[0] == ("answer ends", "stop (end_turn)", "error 429: slow")


def test_parts_of_a_stream_are_paired_by_what_they_are() -> None:
    """A thought that one alone has moves no text; each part has its number."""
    streams = (
        anthropic_stream(thinking("hm"), text("a"), text("b"), use("toolu_1", "go", n=1)),
        anthropic_stream(
            text("a"), text("c"), use("toolu_0", "go", n=0), use("toolu_1", "go", n=2)
        ),
    )
    found = [one[0] for one in shown(*(one_call(anthropic([ASK]), one) for one in streams))]
    assert found[:2] == ["answer thought", "answer assistant 2"]
    assert "answer tool call 1 go $.n" in found


def test_a_date_in_a_prompt_is_not_named() -> None:
    """It is no difference, so it is not where two requests differ; a rule of the prompt is."""
    prompts = [f"You sell mugs. Today is May {day} 2026." for day in (3, 14)]
    words = list(zip(prompts, ("a", "b"), strict=True))
    for requests in (
        [anthropic([user(word)], system=system) for system, word in words],
        [chat([said("system", system), said("user", word)]) for system, word in words],
    ):
        found = shown(*map(one_call, requests))
        assert [one[1:] for one in found] == [('"a"', '"b"')]
    runs = [
        one_call(anthropic([ASK], system=one + last))
        for one, last in zip(prompts, (" Be kind.", " Be short."), strict=True)
    ]
    ((place, first, second),) = shown(*runs)
    assert place == "body $.system[0].text"
    assert ("kind" in first, "short" in second) == (True, True)


def test_members_that_may_vary_are_not_named() -> None:
    """In no form of request."""
    cohere = [
        make_request(
            "https://api.cohere.com/v1/chat",
            {"model": "command-r", "message": word, "chat_history": [], "stream": is_stream},
        )
        for word, is_stream in (("a", True), ("b", False))
    ]
    assert shown(*map(one_call, cohere)) == [("body $.message", '"a"', '"b"')]


def test_a_model_in_the_path_is_named() -> None:
    """Its name is in no member."""
    host = "https://generativelanguage.googleapis.com/v1beta/models"
    body = {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}
    runs = [
        one_call(make_request(f"{host}/{name}:generateContent", body))
        for name in ("gemini-2.5-pro", "gemini-2.5-flash")
    ]
    assert [one[0] for one in shown(*runs)] == ["path"]


# Other requests

LONG = "one thing after the other " * 20
PAIR = "re_7Ex15JAwXt1CQEW4", "re_7fF3TAewxfCLGZG9"


@pytest.mark.parametrize("kind", ["json", "text", "form"])
def test_what_differs_behind_an_id_is_named_and_shown(kind: str) -> None:
    """However far behind; the id was made by an answer."""
    bodies: list[Any] = []
    for id, euros in zip(PAIR, (40, 41), strict=True):
        note = f"{id} {LONG} of {euros}"
        plain = note.encode() if kind == "text" else f"note={note.replace(' ', '+')}&a=1".encode()
        bodies.append({"note": note, "a": 1} if kind == "json" else plain)
    runs = []
    headers = {"text": {"content-type": "text/plain"}}
    headers["form"] = {"content-type": "application/x-www-form-urlencoded"}
    for id, body in zip(PAIR, bodies, strict=True):
        tape = Tape("behind")
        tape.post("https://shop.test/refunds", {"item": "shoe"}, {"id": id})
        request = make_request("https://pay.test/pay", body, headers.get(kind))
        tape.add(request, make_response({"ok": True}), RequestClass.EFFECT)
        runs.append(tape.exchanges)
    ((_, first, second),) = shown(*runs)
    assert first.rstrip('"').endswith(" of 40")
    assert second.rstrip('"').endswith(" of 41")


def test_a_line_of_the_page_shows_what_differs_behind_an_id() -> None:
    """It has 72 columns of the value."""
    note = ", which was made for the customer who had the mug of"
    runs = [
        made(id, f"{id}{note} {euros} euros", 1) for id, euros in zip(PAIR, (40, 41), strict=True)
    ]
    sides = InMemory(runs[0]), InMemory(runs[1])
    compared = compare_acts(*map(read_acts, sides))
    rules = compile_rules()
    page = list(render_diff(Names("a", "b"), compared, lambda row: find_places(row, *sides, rules)))
    assert any("mug of 40" in line for line in page)
    assert any("mug of 41" in line for line in page)


def test_usage_is_what_it_is_outside_of_a_model_call() -> None:
    """There it is no count of tokens."""
    runs = []
    for used in (1, 2):
        tape = Tape("usage")
        tape.get("https://power.test/meter", {"usage": {"kwh": used}})
        runs.append(tape.exchanges)
    assert shown(*runs) == [("answer body $.usage.kwh", "1", "2")]


@pytest.mark.parametrize(
    ("made", "sent", "place"),
    [
        ((100231, 100232), {"order_id": 100231}, "body $.order_id"),
        (("ord_8f2a91bc44", "ord_1a1b2c3d4e"), {"order": "ord_8f2a91bc44"}, "body $.order"),
        (("ord_8f2a91bc44", "ord_1a1b2c3d4e"), None, "path"),
        (("ord_test_8f2a91bc44", "ord_test_1a1b2c3d4e"), None, "path"),
    ],
)
def test_the_id_of_the_other_run_is_told_of(made: tuple[Any, Any], sent: Any, place: str) -> None:
    """Both send the same bytes, where one was given another id for it: it pays another order."""
    sides = []
    for one in made:
        tape = Tape("orders")
        tape.post("https://shop.test/orders", {"n": 1}, {"id": one})
        url = "https://shop.test/pay" if sent else f"https://shop.test/orders/{made[0]}/pay"
        tape.post(url, sent or {"amount": 3})
        sides.append(tape.exchanges)
    exchanges = InMemory(sides[0]), InMemory(sides[1])
    compared = compare_acts(*map(read_acts, exchanges))
    assert compared.divergence is not None
    assert compared.divergence.row.change is Change.ASKED
    (found,) = find_places(compared.divergence.row, *exchanges, compile_rules()).listed
    assert (found.place, found.stands_for) == (place, str(made[1]))
    assert found.recorded == found.asked


@pytest.mark.parametrize("number", [7, 41])
def test_a_few_digits_are_the_same_by_chance(number: int) -> None:
    """Both ask for product 7, whatever number their orders had."""
    sides = []
    for one in (7, 41):
        tape = Tape("orders")
        tape.post("https://shop.test/orders", {"n": 1}, {"id": one})
        tape.post("https://shop.test/products", {"id": number})
        sides.append(tape.exchanges)
    compared = compare_acts(*(read_acts(InMemory(one)) for one in sides))
    assert compared.divergence is None
