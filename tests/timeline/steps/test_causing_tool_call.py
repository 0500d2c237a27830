"""Which tool call made a request, and on what that rests."""

import json
from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.exchange import Exchange, Gone, RequestClass, Response, Seq, VerdictKind
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, use, user
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange
from playhead.tests.support.socket_tapes import refund
from playhead.timeline.steps import Tracer
from playhead.timeline.steps.agent_lanes import PendingCall
from playhead.timeline.steps.before_effects import find_before_effects
from playhead.timeline.steps.causing_tool_call import Found, find_cause

REFUNDS = "https://pay.test/refunds"
ORDER = "https://shop.test/orders/7"


def call(name: str, lane: int = 1, **arguments: Any) -> PendingCall:
    """Make a tool call that the answer LANE asked for."""
    made = PendingCall(Seq(lane), lane, name, f"call_{name}", arguments, json.dumps(arguments))
    return made


def asked(url: str, body: object = b"") -> Exchange:
    """Make a request: a POST if it has a body."""
    request = make_request(url, body, method="POST" if body else "GET")
    kind = RequestClass.EFFECT if body else RequestClass.READ
    return make_exchange(seq=9, request=request, request_class=kind)


def find(exchange: Exchange, *calls: PendingCall) -> Found | None:
    return find_cause(exchange, list(calls), frozenset({0, 1}), frozenset({"api.openai.com"}))


def told(found: Found | None) -> tuple[str, str] | None:
    return None if found is None else (found.name, found.evidence.value)


PAID = asked(REFUNDS, {"order": 7, "amount": 4900})
NOTE = call("note", text=f"next I will POST to {REFUNDS} for the customer")
REFUND = call("refund", order=7, amount=4900)
SHELL = call("Bash", command=f"curl -s '{ORDER}' | jq .total")
READ = call("Read", path="notes.md")

CASES: dict[str, tuple[Exchange, tuple[PendingCall, ...], tuple[str, str] | None]] = {
    # A URL is not the beginning of a longer one.
    "a longer URL, last": (asked(ORDER), (call("a", url=ORDER), call("b", url=f"{ORDER}7")), ("a", "recorded")),
    "a longer URL, first": (asked(ORDER), (call("b", url=f"{ORDER}7"), call("a", url=ORDER)), ("a", "recorded")),
    "a longer URL, in commands": (
        asked(ORDER),
        (call("a", command=f"curl {ORDER} -s"), call("b", command=f"curl {ORDER}7 -s")),
        ("a", "recorded"),
    ),
    "a longer URL alone": (asked(ORDER), (call("b", url=f"{ORDER}7"), READ), None),
    "a URL inside of another": (
        asked(ORDER),
        (call("a", url=f"https://cache.test/get?u={ORDER}"), READ),
        None,
    ),
    "the end of a sentence": (asked(ORDER), (call("a", text=f"look at {ORDER}."),), ("a", "recorded")),
    "the nearer beginning": (
        asked(f"{ORDER}/lines"),
        (call("a", url=ORDER), call("b", url="https://shop.test/")),
        ("a", "inferred"),
    ),
    # Who is told of a URL is not who asks it.
    "a note of a URL, and the call": (PAID, (NOTE, REFUND), ("note or refund", "inferred")),
    "a bookmark of a URL, and the call": (
        PAID,
        (call("bookmark", url=REFUNDS), REFUND),
        ("bookmark or refund", "inferred"),
    ),
    "a note in one agent, the call in another": (PAID, (NOTE, call("refund", 2, amount=4900)), None),
    "a note, and a call that says nothing": (PAID, (NOTE, call("go")), ("note or go", "inferred")),
    "a note, and another agent's call that says nothing": (
        PAID,
        (NOTE, call("go", 2)),
        ("note", "inferred"),
    ),
    "a note alone": (PAID, (NOTE,), ("note", "recorded")),
    "a command beside a read": (asked(ORDER), (SHELL, READ), ("Bash", "inferred")),
    "a command beside another": (
        asked(ORDER),
        (SHELL, call("Bash2", command="curl https://shop.test/stock/1")),
        ("Bash", "recorded"),
    ),
    "a URL by itself beside a read": (asked(ORDER), (call("Get", url=ORDER), READ), ("Get", "recorded")),
    "a command with the body": (
        PAID,
        (call("Bash", command=f"curl {REFUNDS} -d '{{\"order\": 7, \"amount\": 4900}}'"), READ),
        ("Bash", "recorded"),
    ),
    "two commands of one URL": (
        PAID,
        (
            call("a", command=f"curl {REFUNDS} -d '{{\"order\": 8, \"amount\": 4900}}'"),
            call("b", command=f"curl {REFUNDS} -d '{{\"order\": 7, \"amount\": 4900}}'"),
        ),
        ("b", "recorded"),
    ),
    "one URL in two agents": (asked(ORDER), (call("a", url=ORDER), call("b", 2, url=ORDER)), None),
    # A value of one call alone decides.
    "a shared value, and one of its own": (
        asked(REFUNDS, {"order": "ORD-5531-X", "amount": 100}),
        (call("x", order="ORD-5531-X", amount=100), call("y", 2, order="ORD-8812-Y", amount=100)),
        ("x", "inferred"),
    ),
    "a short value of its own": (
        PAID,
        (call("x", order=8, amount=4900), call("y", order=7, amount=4900)),
        ("y", "inferred"),
    ),
    "short values alone": (
        asked(REFUNDS, {"i": 2}),
        (call("x", i=1), call("y", 2, i=2)),
        ("y", "inferred"),
    ),
    "a short value of an agent's own request": (
        asked("https://api.openai.com/v1/files", {"i": 2}),
        (call("x", i=1), call("y", i=2)),
        None,
    ),
    "the same values": (
        PAID,
        (call("x", amount=4900), call("y", amount=4900)),
        ("x or y", "inferred"),
    ),
    "the same values in two agents": (PAID, (call("x", amount=4900), call("y", 2, amount=4900)), None),
    "the beginning of a value": (
        asked(REFUNDS, {"order": "ORD-12"}),
        (call("x", order="ORD-1"), call("y", order="ORD-12")),
        ("y", "inferred"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_request_has_its_tool_call_or_none(name: str) -> None:
    """Recorded is a call that fits exactly, or alone; several of one answer are all named, and of several answers none is."""
    exchange, calls, expected = CASES[name]
    assert told(find(exchange, *calls)) == expected


def test_several_calls_are_named_in_the_rule() -> None:
    """A reader sees which calls could have made a request, with their ids."""
    found = find(PAID, NOTE, REFUND)
    assert found is not None
    assert [one.id for one in found.calls] == ["call_note", "call_refund"]
    assert "note, refund" in found.rule


def test_an_effect_names_each_call_that_may_have_asked_for_it() -> None:
    """The step before an effect is no note that states its URL, if another call has its values."""
    tape = Tape("shop")
    wanted = (
        use("toolu_note", "note", text=f"they post to {REFUNDS}"),
        use("toolu_refund", "refund", order=7, amount=4900),
    )
    answer = anthropic_stream(*wanted, stop="tool_use", id="msg_1")
    tape.model(anthropic([user("Refund it.")], system="You pay."), answer)
    tape.post(REFUNDS, {"order": 7, "amount": 4900})
    tracer = Tracer()
    steps = [step for exchange in tape.exchanges for step in tracer.add(exchange)]
    (effect,) = find_before_effects(steps)
    assert effect.seq == 1
    assert effect.tool == "note or refund"
    assert effect.evidence.startswith("inferred")
    assert '"amount": 4900' in effect.said


@pytest.mark.parametrize("ids", [(None, None), ("call_0", "call_0"), ("toolu_1", "toolu_2")])
def test_an_effect_names_its_own_call_whatever_ids_calls_have(
    ids: tuple[str | None, str | None],
) -> None:
    """Tool calls without ids, as Ollama and Gemini have them, are told apart."""
    tape = Tape("shop")
    orders = ("ord_A1zz", "ord_B2zz")
    calls = [
        {"function": {"name": "refund", "arguments": {"id": order}}} | ({"id": id} if id else {})
        for order, id in zip(orders, ids, strict=True)
    ]
    asked = {
        "model": "llama3",
        "stream": False,
        "messages": [{"role": "user", "content": "Refund."}],
    }
    said = {"role": "assistant", "content": "", "tool_calls": calls}
    tape.model(
        make_request("http://127.0.0.1:11434/api/chat", asked),
        make_response({"model": "llama3", "message": said, "done": True}),
    )
    for order in orders:
        tape.post(REFUNDS, {"id": order})
    tracer = Tracer()
    steps = [step for exchange in tape.exchanges for step in tracer.add(exchange)]
    effects = find_before_effects(steps)
    assert [one.said for one in effects] == [f'refund {{"id": "{order}"}}' for order in orders]


def _paid_while_answered(answer: Response, verdict: VerdictKind = VerdictKind.RECORDED) -> Tape:
    """A model is asked in 1, and a refund is sent in 2, at two seconds; the answer is of five."""
    tape = Tape("run")
    tape.model(anthropic([user("pay")], stream=False), answer, took_us=5_000_000, verdict=verdict)
    tape.now_us -= 3_000_000
    tape.post(REFUNDS, {"order": "ORD-88121"})
    return tape


def _asked_for(tape: Tape) -> tuple[bool, str]:
    """Say whether the refund is of the tool call, and what the model said before it."""
    tracer = Tracer()
    steps = [step for exchange in tape.exchanges for step in tracer.add(exchange)]
    (effect,) = find_before_effects(steps)
    assert (steps[-1].cause is not None) == bool(steps[-1].edges) == bool(effect.tool)
    return bool(effect.tool), effect.said


REFUNDED = use("r", "refund", order="ORD-88121")


@pytest.mark.parametrize(
    ("afters", "verdict", "is_caused"),
    [
        ((1, 1), VerdictKind.RECORDED, True),
        ((1, 2), VerdictKind.RECORDED, True),  # whole, but for what comes behind it
        ((2, 2), VerdictKind.RECORDED, False),
        ((3, 3), VerdictKind.RECORDED, False),
        ((2, 2), VerdictKind.SERVED, True),  # the tape had it
    ],
)
def test_an_answer_that_had_not_come_asked_for_nothing(
    afters: tuple[int, int], verdict: VerdictKind, is_caused: bool
) -> None:
    """As blame has it: a piece of an answer that came when a request had arrived is not what caused that."""
    stream = anthropic_stream(REFUNDED, use("n", "note", text="later"), stop="tool_use")
    of_first = sum(
        b'"index": 0' in piece or b"message_start" in piece for piece in stream.body.split(b"\n\n")
    )
    chunks = tuple(
        one._replace(after=afters[at >= of_first]) for at, one in enumerate(stream.chunks)
    )
    found = _asked_for(_paid_while_answered(replace(stream, chunks=chunks), verdict))
    assert found == (is_caused, 'refund {"order": "ORD-88121"}' if is_caused else "")


@pytest.mark.parametrize(("chunks", "is_caused"), [(0, False), (3, False), (99, True)])
def test_an_answer_that_the_client_left_asked_for_nothing(chunks: int, is_caused: bool) -> None:
    """What was read on after that is not what the agent knows."""
    stream = anthropic_stream(REFUNDED, stop="tool_use")
    tape = _paid_while_answered(stream)
    tape.exchanges[0] = replace(tape.exchanges[0], gone=Gone(1_000_000, chunks, chunks > 0))
    assert _asked_for(tape)[0] is is_caused


@pytest.mark.parametrize("stream", [True, False])
def test_a_retry_is_the_same_request(stream: bool) -> None:
    """One that asks for no stream, after a stream that failed, is another."""
    tape = Tape("run")
    tape.model(anthropic([user("pay")]), None)
    tape.model(anthropic([user("pay")], stream=stream), anthropic_stream(REFUNDED))
    tracer = Tracer()
    first, *_ = [tracer.add(exchange) for exchange in tape.exchanges][1]
    assert first.marks == (("retry of 1",) if stream else ())


def test_a_request_is_of_the_sub_agent_that_was_handed_its_value() -> None:
    """What an agent is given it hands on to its tool: the request is the tool's, not that of who asked the agent."""
    asks = call("ask_payer", charge="ch_12345678")
    pays = call("refund", lane=2, charge="ch_12345678")
    request = asked(REFUNDS, {"charge": "ch_12345678"})
    assert find(request, asks, pays) is None
    asks.lanes.add(2)
    assert told(find(request, asks, pays)) == ("refund", "inferred")


def test_the_step_before_an_effect_may_be_a_call_of_a_websocket() -> None:
    """It is named with its part, in JSON too."""
    exchanges, messages = refund(times=2)
    tracer, steps = Tracer(), []
    for one in exchanges:
        steps += tracer.add(one, messages if one.websocket else ())
    found = find_before_effects(steps + tracer.end())
    told = [(one.effect, one.step, one.to_json()["part"]) for one in found]
    assert [one for one in told if one[0] > 1] == [(3, "1.2", 2), (4, "1.2", 2)]
