"""Where a value came from: planted values with copies, escapes, other writings of numbers, parts of texts and several agents."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store, StoreError
from playhead.tape.exchange import IMPORTED, Chunk, RequestClass, Seq
from playhead.tests.adversary.planted.blame import blame
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    claude_code,
    result,
    text,
    use,
    user,
)
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.planted_runs import make_exchanges
from playhead.tests.support.socket_tapes import Refund, refund, write_refund
from playhead.timeline.blame.find_origin import Blame, find_blame
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.step import Evidence

CASES = blame(200 if FULL else 40)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with all planted runs, and some written by hand."""
    folder = tmp_path_factory.mktemp("blame") / "store"

    async def write() -> None:
        with Store.open(folder) as opened:
            for case in CASES:
                await write_run(opened, case["id"], make_exchanges(case["run"]))
            for tape in (claude_code(), odd(), whole()):
                await write_run(opened, tape.name.replace(" ", "-"), tape.exchanges)

    asyncio.run(write())
    with Store.open(folder, readonly=True) as opened:
        yield opened


def odd() -> Tape:
    """Values in a form, in a header, put together of two, in cents, and in bodies that are no JSON."""
    tape = Tape("odd")
    tape.get(
        "https://shop.test/orders/7", {"id": "ord_7Kq2", "customer": "cus_9Xy4", "total": "49.00"}
    )
    tape.get("https://shop.test/raw", b"\xff\xfe\x00 ord_8Zz1 \x00")
    form = b"order=ord_7Kq2&key=cus_9Xy4%3Aord_7Kq2&amount=4900"
    kind = {"content-type": "application/x-www-form-urlencoded"}
    asked = make_request(
        "https://pay.test/refunds?of=ord_8Zz1", form, kind | {"x-customer": "cus_9Xy4"}
    )
    tape.add(asked, make_response({"ok": True}), RequestClass.EFFECT)
    read = use("toolu_1", "Read", file_path="a.md")
    tape.model(anthropic([user("Go.")]), anthropic_stream(read, stop="tool_use"))
    context = [user("Go."), assistant(read), user(result("toolu_1", "token tok_5Rt8Wq is new"))]
    tape.model(anthropic(context), anthropic_stream(text("I use tok_5Rt8Wq.")))
    tape.post("https://pay.test/use", {"token": "tok_5Rt8Wq", "nested": '{"a": ["tok_5Rt8Wq"]}'})
    return tape


_PAID = '{"id": "re_TZB-814141", "status": "succeeded"}'


def whole() -> Tape:
    """Tool results that are JSON answers, byte for byte, in other blanks, in part, and of those that many give."""
    tape = Tape("whole")
    tape.get("https://shop.test/ping", b'{"ok": true, "state": "ready"}')
    pay = use("toolu_1", "Pay", charge="ch_1")
    tape.model(anthropic([user("Pay.")]), anthropic_stream(pay, stop="tool_use"))
    tape.post("https://pay.test/pay", {"charge": "ch_1"}, _PAID.encode())
    given = [
        result("toolu_1", _PAID),
        result("toolu_2", '{"id":"re_TZB-814141","status":"succeeded"}'),
        result("toolu_3", '{"ok": true, "state": "ready"}'),
    ]
    context = [user("Pay."), assistant(pay), user(*given)]
    tape.model(anthropic(context), anthropic_stream(text("Paid."), id="msg_2"))
    more = [*context, assistant(text("Paid.")), user("Thanks.")]
    tape.model(anthropic(more), anthropic_stream(text("Bye."), id="msg_3"))
    return tape


def ask(store: Store, run: str, seq: int, place: str, value: str | None = None) -> Blame:
    return find_blame(Exchanges(store, store.runs.get(run)), seq, place, value)


def is_right(found: Blame, truth: dict[str, Any]) -> bool:
    """Compare with the truth: its verdict, and where there is an origin its exchange, side and path."""
    verdict = found.evidence.value if found.evidence is not None else "none"
    origin, expected = found.origin, truth["origin"]
    if verdict not in truth["accept"] or verdict == "none" or expected is None:
        return verdict in truth["accept"]
    assert origin is not None
    side = expected["side"].replace("response", "answer")
    path = expected["path"] if origin.place.startswith("$") else None
    return (origin.seq, origin.side) == (expected["seq"], side) and (
        path is None or origin.place.startswith(path)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_planted_value_is_traced_to_its_origin(store: Store, case: dict[str, Any]) -> None:
    """The first exchange that had it, recorded only where the same characters are there by no chance."""
    wanted = case["truth"]["ask"]
    value = None if wanted["whole"] else wanted["value"]
    found = ask(store, case["id"], wanted["seq"], wanted["path"] or "url", value)
    assert is_right(found, case["truth"]), (case["kind"], found.origin, case["truth"])


@pytest.mark.parametrize(
    ("seq", "place", "evidence", "origin"),
    [
        (3, "form order", "recorded", (1, "answer", "$.id")),
        (3, "header x-customer", "recorded", (1, "answer", "$.customer")),
        (3, "query of", "recorded", (2, "answer", "body")),
        # Put together: each telling part by itself.
        (3, "form key", "inferred", (1, "answer", "$.customer")),
        # A hundredth of it is there: a hint, no evidence.
        (3, "form amount", None, None),
        # What a tool of the agent's own gave is in no answer.
        (6, "$.token", "recorded", (5, "request", "$.messages[2].content[0].content")),
        (6, "token", "recorded", (5, "request", "$.messages[2].content[0].content")),
        (6, "$.nested.a[0]", "recorded", (5, "request", "$.messages[2].content[0].content")),
        # What a model said: a part of it was in its own request.
        (5, "answer text", "inferred", (5, "request", "$.messages[2].content[0].content")),
    ],
)
def test_a_value_in_any_place_of_a_request(
    store: Store,
    seq: int,
    place: str,
    evidence: str | None,
    origin: tuple[int, str, str] | None,
) -> None:
    """Its URL, fields, form and body, texts that are JSON, and what a model said."""
    found = ask(store, "odd", seq, place)
    assert (found.evidence.value if found.evidence else None) == evidence
    got = found.origin
    assert (None if got is None else (got.seq, got.side, got.place)) == origin


@pytest.mark.parametrize(
    ("seq", "result", "evidence", "origin"),
    [
        (4, 0, "recorded", (3, "answer", "body")),
        (5, 0, "recorded", (3, "answer", "body")),
        (4, 1, "inferred", (3, "answer", "body")),
        # Others may answer that by chance.
        (4, 2, "inferred", (1, "answer", "body")),
    ],
)
def test_a_result_that_is_an_answer_of_json_as_a_whole(
    store: Store, seq: int, result: int, evidence: str, origin: tuple[int, str, str]
) -> None:
    """What a tool got and the agent handed on as it is comes from the answer, and from no tool of the agent's own."""
    found = ask(store, "whole", seq, f"$.messages[2].content[{result}].content")
    assert found.evidence is not None
    assert found.evidence.value == evidence
    assert found.origin is not None
    assert (found.origin.seq, found.origin.side, found.origin.place) == origin
    assert found.answer is not None


def test_a_body_of_json_can_be_asked_for_as_a_whole(store: Store) -> None:
    """`answer body` is a place; a member of that name is meant where there is one."""
    found = ask(store, "whole", 3, "answer body")
    assert found.value == _PAID


def test_a_hundredth_of_an_amount_is_a_hint(store: Store) -> None:
    """Cents may have been read in dollars; that is said, and is no verdict."""
    assert ask(store, "odd", 3, "form amount").hints == [
        "1 answer $.total has a hundredth of it: 49.00"
    ]


def test_digits_that_many_numbers_have_do_not_end_the_search(tmp_path: Path) -> None:
    """A number is found behind hundreds that begin as it does, and an empty text nowhere."""
    tape = Tape("digits")
    for number in range(40):
        tape.get("https://shop.test/counts", {"count": int(f"7{'0' * (1 + number % 9)}")})
    tape.get("https://shop.test/last", {"count": 7, "empty": ""})
    tape.post("https://pay.test/use", {"count": 7, "empty": ""})

    async def write() -> None:
        with Store.open(tmp_path / "store") as opened:
            await write_run(opened, "digits", tape.exchanges)

    asyncio.run(write())
    with Store.open(tmp_path / "store", readonly=True) as opened:
        found = ask(opened, "digits", 42, "$.count")
        assert found.origin is not None
        assert (found.origin.seq, found.evidence, found.looked_until) == (41, Evidence.INFERRED, 0)
        assert ask(opened, "digits", 42, "$.empty").origin is None


def test_the_way_of_a_value_leads_through_both_agents(store: Store) -> None:
    """From the answer of the sub-agent to the one that asked for it."""
    found = ask(store, "claude-code-with-a-sub-agent", 8, "$.messages[4].content[0].content")
    assert [(one.seq, one.side) for one in found.sightings] == [(7, "request"), (7, "answer")]


@pytest.mark.parametrize(
    ("seq", "place", "value", "told", "hint"),
    [
        (99, "$.a", None, "the nearest is 6", "lists what it holds"),
        (6, "$.tokens", None, "it has no $.tokens", "$ has $.token, $.nested"),
        (6, "$.token.a", None, "it has no $.token.a", "$.token is a single value"),
        (6, "$", None, "$ is no single value", "$ has $.token, $.nested"),
        (6, "$.nested.a[4]", None, "it has no $.nested.a[4]", "$.nested.a has $.nested.a[0]"),
        (6, "$.nested..a", None, "is no step", "a path is"),
        (1, "$.a", None, "it has no place '$.a'", "its places are url, path"),
        (6, "$.token", "other", "exchange 6 has no 'other' at $.token", "there is 'tok_5Rt8Wq'"),
    ],
)
def test_a_place_that_is_not_there_is_told_what_is(
    store: Store, seq: int, place: str, value: str | None, told: str, hint: str
) -> None:
    """The range and the nearest seq, and the places or members that there are."""
    with pytest.raises(StoreError) as error:
        ask(store, "odd", seq, place, value)
    assert told in str(error.value)
    assert hint in str(error.value.hint)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("body", "order=ord_7Kq2&key=cus_9Xy4%3Aord_7Kq2&amount=4900"),
        ("header content-type", "application/x-www-form-urlencoded"),
        ("header Content-Type", "application/x-www-form-urlencoded"),
        ("header x-customer", "cus_9Xy4"),
        ("answer header content-type", "application/json"),
    ],
)
def test_every_field_and_body_can_be_asked_about(store: Store, place: str, value: str) -> None:
    """Also a form as a whole, and fields in which no value is looked for."""
    assert ask(store, "odd", 3, place).value == value


def test_a_field_that_is_not_there_says_nothing_of_the_body(store: Store) -> None:
    """The message names what was asked for."""
    with pytest.raises(StoreError, match="has no place 'header x-none': it has no such field"):
        ask(store, "odd", 3, "header x-none")


async def test_digits_of_a_header_field_are_no_origin(tmp_path: Path) -> None:
    """The 1 of a version or a date is not where a 1 comes from."""
    tape = Tape("digits")
    tape.model(anthropic([user("go")]), anthropic_stream(text("ok")))
    tape.post("https://shop.test/x", {"n": 1})
    with Store.open(tmp_path / "store") as opened:
        info = await write_run(opened, "digits", tape.exchanges)
        found = find_blame(Exchanges(opened, info), 2, "n")
    assert not [one for one in found.sightings if one.place.startswith("header ")]


def late(*pieces: tuple[float, bytes], took_s: float) -> dict[str, Any]:
    """Give an answer whose pieces came after as many seconds."""
    body = b"".join(piece for _, piece in pieces)
    chunks = tuple(Chunk(int(at_s * 1e6), len(piece), Seq(2)) for at_s, piece in pieces)
    response = replace(make_response(body), chunks=chunks)
    return {"response": response, "took_us": int(took_s * 1e6)}


MADE = b'{"id": "ord_8KQ2ZX71"}'
POLLED = b'{"events": [{"created": "ord_8KQ2ZX71"}]}'


def polled(*pieces: tuple[float, bytes]) -> Tape:
    """Write a run with a read that was sent before the effect that made a value, and answered after it."""
    tape = Tape("polled")
    began_us = tape.now_us
    read = make_request("https://shop.test/events", b"", method="GET")
    tape.add(read, kind=RequestClass.READ, **late(*pieces, took_s=1))
    tape.now_us = began_us + 200_000
    order = make_request("https://shop.test/orders", {"sku": "A"})
    tape.add(order, kind=RequestClass.EFFECT, overlaps=[1], **late((0.1, MADE), took_s=0.1))
    tape.now_us = began_us + 2_000_000
    tape.post("https://pay.test/pay", {"order": "ord_8KQ2ZX71"})
    return tape


def blame_polled(folder: Path, tape: Tape) -> Blame:
    async def write() -> None:
        with Store.open(folder / "store") as opened:
            await write_run(opened, "polled", tape.exchanges)

    asyncio.run(write())
    with Store.open(folder / "store", readonly=True) as opened:
        return ask(opened, "polled", 3, "$.order")


@pytest.mark.parametrize(
    ("pieces", "first"),
    [
        # A long poll: the whole answer came after the one that made the value.
        ([(1.0, POLLED)], 2),
        # A stream: its beginning came before, the value after.
        ([(0.1, b'{"events": ['), (0.9, b'{"created": "ord_8KQ2ZX71"}'), (1.0, b"]}")], 2),
        ([(0.1, b'{"events": [{"created": "ord_8KQ2ZX71"}'), (1.0, b"]}")], 1),
        ([(0.2, POLLED)], 1),
    ],
)
def test_the_origin_is_the_answer_that_came_first(
    tmp_path: Path, pieces: list[tuple[float, bytes]], first: int
) -> None:
    """An answer counts when the piece with the value has come, not when it was asked for."""
    found = blame_polled(tmp_path, polled(*pieces))
    assert [one.seq for one in found.sightings] == [first, 3 - first]
    assert found.evidence is Evidence.RECORDED


def test_answers_that_came_in_an_unknown_order_are_doubted(tmp_path: Path) -> None:
    """Imported lines without times do not say which of two that were under way together came first."""
    tape = polled((1.0, POLLED))
    imported = [replace(one, reason=IMPORTED) for one in tape.exchanges]
    imported[2] = replace(imported[2], lane=None)
    tape.exchanges = imported
    found = blame_polled(tmp_path, tape)
    assert found.evidence is Evidence.INFERRED
    assert found.rule == "the same, but 2 answer $.id may have come before"


NAMES = b'{"accounts": {"ACC-998877-K": {"name": "Ann"}, "4913377": 1, "open": true}}'


def named() -> Tape:
    """Answers that have values as the names of members, which are then sent on."""
    tape = Tape("named")
    tape.get("https://shop.test/accounts", NAMES)
    tape.model(
        anthropic([user("Go.")]), anthropic_stream(use("toolu_1", "pay", **{"ACC-556677-Q": 1}))
    )
    tape.get("https://shop.test/states", {"at": {"state": "open"}})
    tape.post(
        "https://pay.test/pay",
        {
            "to": "ACC-998877-K",
            "number": 4913377,
            "url": "https://shop.test/accounts/ACC-998877-K?all",
            "call": "ACC-556677-Q",
            "state": "open",
            "limits": {"ACC-998877-K": 5},
            "at": json.dumps({"state": "open"}, separators=(",", ":")),
            "whole": json.dumps(json.loads(NAMES)["accounts"], separators=(",", ":")),
        },
    )
    form = {"content-type": "application/x-www-form-urlencoded"}
    asked = make_request("https://pay.test/limits", b"ACC-998877-K=5", form)
    tape.add(asked, make_response({"ok": True}), RequestClass.EFFECT)
    return tape


@pytest.mark.parametrize(
    ("seq", "place", "rule", "origin"),
    [
        (4, "$.to", "the same characters", (1, "answer", "$.accounts['ACC-998877-K']~")),
        (4, "$.number", "the same characters", (1, "answer", "$.accounts['4913377']~")),
        (4, "$.call", "the same characters", (2, "answer", "tool call pay $['ACC-556677-Q']~")),
        # A name that says little is in many places: a value alone is before it.
        (4, "$.state", "the same, but others may have it by chance", (3, "answer", "$.at.state")),
        # A name is a place that can be asked about, too.
        (
            4,
            "limits.ACC-998877-K~",
            "the same characters",
            (1, "answer", "$.accounts['ACC-998877-K']~"),
        ),
        (
            5,
            "form ACC-998877-K~",
            "the same characters",
            (1, "answer", "$.accounts['ACC-998877-K']~"),
        ),
        # An object of an answer that is sent on as a text.
        (4, "$.whole", "JSON format", (1, "answer", "$.accounts")),
        (4, "$.at", "JSON format", (3, "answer", "$.at")),
    ],
)
def test_a_value_that_is_a_name_or_an_object_of_an_answer(
    tmp_path: Path, seq: int, place: str, rule: str, origin: tuple[int, str, str]
) -> None:
    """It came from the answer, and neither from a tool of the agent's own nor from the agent."""

    async def write() -> None:
        with Store.open(tmp_path / "store") as opened:
            await write_run(opened, "named", named().exchanges)

    asyncio.run(write())
    with Store.open(tmp_path / "store", readonly=True) as opened:
        found = ask(opened, "named", seq, place)
    assert found.origin is not None
    got = (found.origin.seq, found.origin.side, found.origin.place)
    assert (found.rule, got) == (rule, origin)
    assert not found.hints


@pytest.mark.parametrize(
    ("part", "place", "origin"),
    [
        (3, "$.input[0].output.id", (3, "answer", "$.id")),
        (2, "$.input[0].output.iban", (2, "answer", "$.iban")),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_call_of_a_websocket_has_it_from_an_exchange_behind_its_handshake(
    tmp_path: Path, part: int, place: str, origin: tuple[int, str, str], known: bool
) -> None:
    """What was answered before the call was asked counts, whatever the seqs say."""
    found = asyncio.run(_blame_part(tmp_path, refund(known=known), part, place)).origin
    assert found is not None
    assert (found.seq, found.side, found.place) == origin


def test_a_call_of_a_websocket_has_nothing_from_an_answer_still_under_way(tmp_path: Path) -> None:
    """Its request came before, and its answer after the call was asked."""
    exchanges, messages = refund()
    exchanges[1] = replace(exchanges[1], end_us=9 * 1_000_000)
    run = exchanges, messages
    found = asyncio.run(_blame_part(tmp_path, run, 2, "$.input[0].output.iban"))
    assert not found.sightings
    assert [one.seq for one in found.unseen] == [2]


async def _blame_part(folder: Path, run: Refund, part: int, place: str) -> Blame:
    with Store.open(folder / "store") as store:
        return find_blame(await write_refund(store, run), 1, place, part=part)
