"""Ids and times of two runs: which are the same, and which are another question."""

import time
from typing import Any

import pytest

from playhead.tape.exchange import Exchange
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    result,
    text,
    use,
    user,
)
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import Compared, compare_acts
from playhead.timeline.diff.made_anew import Told, find_anew
from playhead.timeline.diff.row import Change

PAY = "https://pay.test/pay"
UUIDS = ("0b3f8c1e-7a52-4d7e-9c3b-2f6a1d4e8b90", "77aa01c2-9d14-4f0b-8e21-5c3d9b7f6a44")
SKUS = ("SKU-AB12CD34", "SKU-ZZ98YY76")
IBANS = ("DE89370400440532013000", "DE02120300000000202051")
CATALOG = f"Catalog: {SKUS[0]} is a pen for 1 EUR, {SKUS[1]} is a car for 30000 EUR."


def run(
    ids: str,
    body: object,
    *,
    given: object = None,
    system: str = "You pay.",
    wanted: dict[str, Any] | None = None,
    task: str = "Pay it.",
    told: str | None = None,
) -> list[Exchange]:
    """Write a run: the model looks up the order, has GIVEN from it, and pays with a body.

    told: what the model is told that tools gave; else what they were answered.
    """
    tape = Tape("pay")
    asked = [user(task)]
    calls = use(f"toolu_{ids}10000", "Get"), use(f"toolu_{ids}20000", "pay", **(wanted or {}))
    answers = given if given is not None else {"ok": True}, {"ok": True}
    for at, call in enumerate(calls):
        answer = anthropic_stream(call, stop="tool_use", id=f"msg_{ids}{at}")
        tape.model(anthropic(asked, system=system), answer)
        if at:
            tape.post(PAY, body)
        else:
            tape.get("https://shop.test/order", answers[0])
        asked = [*asked, assistant(call), user(result(call["id"], told or str(answers[at])))]
    tape.model(anthropic(asked, system=system), anthropic_stream(text("Done."), id=f"msg_{ids}end"))
    return tape.exchanges


def compare(first: list[Exchange], second: list[Exchange]) -> Compared:
    return compare_acts(*(read_acts(InMemory(one)) for one in (first, second)))


def first_change(first: list[Exchange], second: list[Exchange]) -> Change | None:
    divergence = compare(first, second).divergence
    return divergence.row.change if divergence is not None else None


BODIES: dict[str, tuple[object, object]] = {
    "an amount": ({"amount": 1234567890}, {"amount": 1234567899}),
    "an amount in wei": ({"amount_wei": 15 * 10**17}, {"amount_wei": 95 * 10**17}),
    "an amount as text": ({"amount": "1500000000000000000"}, {"amount": "9500000000000000000"}),
    "a large negative amount": ({"amount": -12345678}, {"amount": -12345679}),
    "the fraction of a rate": ({"rate": 0.12345678901}, {"rate": 0.12345678909}),
    "the number of an account": ({"account": 1790000001}, {"account": 1790000002}),
    "a phone number": ({"to": "4915112345678"}, {"to": "4915112345679"}),
    "the id of a customer": ({"customer_id": 1790000001}, {"customer_id": 1790000002}),
    "a UUID that the agent was given": ({"customer": UUIDS[0]}, {"customer": UUIDS[1]}),
    "an IBAN": ({"iban": IBANS[0]}, {"iban": IBANS[1]}),
    "a departure": ({"departure": "2026-12-24T08:00"}, {"departure": "2026-12-25T08:00"}),
    "a meeting": ({"at": "2026-12-01T10:00:00Z"}, {"at": "2026-12-01T15:00:00Z"}),
    **{
        f"a date that somebody chose: {name}": (
            {name: "2026-12-01T10:00:00Z"},
            {name: "2026-12-24T18:30:00Z"},
        )
        for name in (
            "scheduled_at",
            "remind_at",
            "reservation_time",
            "transfer_at",
            "pay_at",
            "publish_at",
            "cancel_at",
            "startsAt",
            "event_time",
            "effective_date",
            "expires_at",
            "when",
            "note",
            "visit",
        )
    },
    "a date in an object": (
        {"start": {"dateTime": "2026-12-01T10:00:00Z"}},
        {"start": {"dateTime": "2026-12-24T18:30:00Z"}},
    ),
    "a date in a list": (["2026-12-01T10:00:00Z"], ["2026-12-24T18:30:00Z"]),
    "a date in a text": ("On 2026-12-01T10:00:00Z.", "On 2026-12-24T18:30:00Z."),
    "a number that is a date": ({"publish_at": 1790000001}, {"publish_at": 1790009001}),
    "an amount in a time's clothes": ({"paid_total": 1790000001}, {"paid_total": 1790000002}),
}


@pytest.mark.parametrize("name", BODIES)
def test_another_value_of_the_agent_is_another_question(name: str) -> None:
    """Money, quantities, accounts and dates that somebody chose are neither ids nor times, whatever they look like."""
    one, other = BODIES[name]
    assert first_change(run("a", one), run("b", other)) is Change.ASKED


SAME: dict[str, tuple[object, object]] = {
    "a time": ({"created_at": 1790000001}, {"created_at": 1790000900}),
    "a time in milliseconds": ({"timestamp": 1790000001123}, {"timestamp": 1790000900456}),
    "a time with a fraction": ({"ts": 1790000001.25}, {"ts": 1790000900.75}),
    "a date with a time": ({"sent_at": "2026-11-26T10:00:00Z"}, {"sent_at": "2026-11-27T10:00:01Z"}),
    "an id of the request": ({"request_id": UUIDS[0]}, {"request_id": UUIDS[1]}),
    "a key of the request": ({"idempotencyKey": UUIDS[0]}, {"idempotencyKey": UUIDS[1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_each_request_has_of_its_own_is_no_difference(name: str) -> None:
    """The name of a place says that it has a time, or an id that each request has of its own."""
    one, other = SAME[name]
    assert first_change(run("a", one), run("b", other)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"id": UUIDS[0]}, {"id": UUIDS[1]}),
        ({"id": "ch_3Pab12cd34"}, {"id": "ch_3Qxy98zw76"}),
        ({"id": 1790000001}, {"id": 1790000002}),
        ({"order_id": "8f3a9c2b1d0e4f56"}, {"order_id": "1c2d3e4f5a6b7c8d"}),
    ],
)
def test_an_id_of_an_answer_stands_for_another(one: dict[str, Any], other: dict[str, Any]) -> None:
    """A run that was recorded again has other ids; where an answer had both at one place, they are the same in what follows."""
    (value,), (there,) = one.values(), other.values()
    first = run("a", {"order": value}, given=one, wanted={"order": value})
    second = run("b", {"order": there}, given=other, wanted={"order": there})
    assert first_change(first, second) is None


def test_a_time_of_an_answer_stands_for_others() -> None:
    """Two times of one run may be one of another; what the agent was given of them it may send."""
    one, other = "2026-12-01T10:00:00Z", "2026-12-03T11:30:00Z"
    first = run("a", {"at": one}, given={"seen": one, "created_at": one, "timestamp": one})
    second = run(
        "b",
        {"at": other},
        given={"seen": one[:-3] + "05Z", "created_at": other, "timestamp": other},
    )
    third = run(
        "c",
        {"at": "2026-12-04T11:30:00Z"},
        given={"seen": one, "created_at": one, "timestamp": one},
    )
    assert first_change(first, second) is None
    assert first_change(first, third) is Change.ASKED


@pytest.mark.parametrize("name", ["ts", "created_at", "timestamp", "last_seen"])
@pytest.mark.parametrize("is_number", [True, False])
def test_another_one_of_two_times_of_an_answer_is_a_difference(name: str, is_number: bool) -> None:
    """What a run was given it has not made anew, whatever its place is called: messages are named by their times."""
    times: list[object] = ["2026-12-01T10:00:00Z", "2026-12-03T11:30:00Z"]
    later: list[object] = ["2026-12-05T10:00:00Z", "2026-12-07T11:30:00Z"]
    if is_number:
        times, later = [1790000001.125, 1780000002.5], [1790900001.125, 1780900002.5]
    given, other = ([{name: one} for one in some] for some in (times, later))
    first = run("a", {name: times[0]}, given=given)
    assert first_change(first, run("b", {name: times[0]}, given=given)) is None
    assert first_change(first, run("b", {name: times[1]}, given=given)) is Change.ASKED
    assert first_change(first, run("b", {name: later[0]}, given=other)) is None
    assert first_change(first, run("b", {name: later[1]}, given=other)) is Change.ASKED


@pytest.mark.parametrize("name", ["departure", "scheduled_at", "restore_time", "expires_at"])
@pytest.mark.parametrize("is_nested", [True, False])
def test_another_time_of_an_answer_is_a_difference(name: str, is_nested: bool) -> None:
    """Unless it is as long after the request in both runs, as what a server makes anew is."""

    def given(ids: str, later_s: float) -> list[Exchange]:
        made = run(ids, {})[1]
        at_s = made.started_ns // 10**9 + later_s
        value = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
        return run(ids, {}, given={"orders": [{name: value}]} if is_nested else {name: value})

    day = 86400
    assert first_change(given("a", day), given("b", day + 2)) is None
    assert first_change(given("a", day), given("b", 20 * day)) is Change.ANSWERED


def test_a_time_of_the_run_itself_is_no_difference() -> None:
    """To the second, and in both runs; what people write to the minute they have chosen."""
    seconds = [one.started_ns // 10**9 for one in (run("a", {})[1], run("b", {})[1])]
    shown = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at + 1)) for at in seconds]
    moved = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds[1] + 2))
    assert first_change(run("a", {"x": shown[0]}), run("b", {"x": moved})) is None
    chosen = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds[1] + 86400))
    assert first_change(run("a", {"x": shown[0]}), run("b", {"x": chosen})) is Change.ASKED
    minutes = [shown[0][:16], time.strftime("%Y-%m-%dT%H:%M", time.gmtime(seconds[1] - 60))]
    assert first_change(run("a", {"x": minutes[0]}), run("b", {"x": minutes[1]})) is Change.ASKED


def test_the_time_of_a_prompt_may_be_sent() -> None:
    """Also at a place whose name says nothing."""
    sides = [
        run(ids, {"at": at}, system=f"now: {at}")
        for ids, at in zip("ab", ("2026-12-01T10:00:00Z", "2026-12-24T18:30:00Z"), strict=True)
    ]
    assert first_change(*sides) is None


def test_another_one_of_two_ids_of_an_answer_is_a_difference() -> None:
    """An agent that takes the other one of two ids differs, although both were made anew."""
    first = run("a", {"order": UUIDS[0]}, given={"ids": list(UUIDS)})
    others = [one[::-1] for one in UUIDS]
    second = run("b", {"order": UUIDS[1]}, given={"ids": list(UUIDS)})
    third = run("c", {"order": UUIDS[1]}, given={"ids": others})
    assert first_change(first, second) is Change.ASKED
    assert first_change(first, third) is not None


@pytest.mark.parametrize("system", [CATALOG, "You buy what the user says."])
def test_another_one_of_two_ids_of_the_prompt_is_a_difference(system: str) -> None:
    """No id that the prompt or the user gave stands for another one."""
    runs = [
        run(ids, {"sku": sku}, system=system, task=CATALOG, wanted={"sku": sku})
        for ids, sku in zip("ab", SKUS, strict=True)
    ]
    assert first_change(*runs) is Change.ANSWERED


def test_another_account_of_the_prompt_is_a_difference() -> None:
    """A payment to another account that the prompt names is another payment, also if a model chose it."""
    system = f"Ann has {IBANS[0]}, Bob has {IBANS[1]}. Pay Ann."
    runs = [
        run(ids, {"iban": iban}, system=system, wanted={"iban": iban})
        for ids, iban in zip("ab", IBANS, strict=True)
    ]
    assert first_change(*runs) is Change.ANSWERED


LINES = [
    ("Today is 2026-11-26, the limit is 50 EUR.", "Today is 2026-11-27, the limit is 5000 EUR."),
    ("On Friday, pay 50 EUR.", "On Monday, pay 60 EUR."),
    ("It is 10:02, pay account 12.", "It is 10:03, pay account 13."),
    ("On May 5 pay 1,000 EUR", "On May 6 pay 2,000 EUR"),
    ("Nov 27, 2026: 3 retries", "Nov 28, 2026: 4 retries"),
    (f"The user is {UUIDS[0]}.", f"The user is {UUIDS[1]}."),
    ("The limit is 1790000001 EUR.", "The limit is 1790000002 EUR."),
]


@pytest.mark.parametrize(("one", "other"), LINES)
def test_a_date_takes_nothing_else_of_its_line_along(one: str, other: str) -> None:
    """Of a line of the prompt with a date the date alone does not count."""
    assert first_change(run("a", {}, system=one), run("b", {}, system=other)) is Change.ASKED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Today is Thursday, 26 November 2026, 10:02 am UTC.", "Today is Monday, 2 March 2027, 9:15 pm UTC."),
        ("Today is 2026-11-26, the limit is 50 EUR.", "Today is 2026-11-27, the limit is 50 EUR."),
        ("now: 2026-11-26T10:02:11Z", "now: 2026-12-01T23:02:12Z"),
        (f"Session ID: {UUIDS[0]}", f"Session ID: {UUIDS[1]}"),
    ],
)  # fmt: skip
def test_a_clock_in_a_prompt_is_no_difference(one: str, other: str) -> None:
    """A prompt says what day it is, and has an id of the session."""
    assert first_change(run("a", {}, system=one), run("b", {}, system=other)) is None


@pytest.mark.parametrize(
    ("had", "sent", "roots"),
    [((4120, 4137), (900, 4137), 2), ((412099, 413777), (9001, 413777), 1)],
)
def test_a_short_number_proves_no_consequence(
    had: tuple[int, int], sent: tuple[int, int], roots: int
) -> None:
    """An answer that has the same few digits by chance is not why a payment differs."""
    sides = [
        run(ids, {"order": 7, "amount": paid}, given={"visibility_m": seen}, told="fine")
        for ids, seen, paid in zip("ab", had, sent, strict=True)
    ]
    found = [row for row in compare(*sides).rows if row.is_root]
    assert len(found) == roots


def test_a_word_that_many_answers_have_is_inferred() -> None:
    """A common word of an earlier answer is no proof that it was taken from there."""
    sides = [
        run(ids, {"state": state}, given={"state": state}, told="fine")
        for ids, state in zip("ab", ("open", "paid"), strict=True)
    ]
    rows = [row for row in compare(*sides).rows if row.first is not None and row.first.effect]
    assert rows[0].cause is not None
    assert rows[0].cause.evidence.value == "inferred"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"id": 1790000001}', '{"id": 0}'),
        ('{\\"created\\": 1790000001}', '{\\"created\\": 0}'),
        ("created=1790000001&x=1", "created=0&x=1"),
        ('{"total": 1790000001}', '{"total": 1790000001}'),
        ("tracking number 1234567890", "tracking number 1234567890"),
        ('{"uid": 883662984795}', '{"uid": 0}'),
        ("ord_12345678", "ord_0"),
        ("-12345678", "-12345678"),
        ("no digits here", "no digits here"),
        # Chance may give no digit.
        ('{"id": "ord_kbhdigingmtkjsap"}', '{"id": "ord_0"}'),
        ('{"id": "VstGXRZiBmyTHqsjFyKwQ"}', '{"id": "0"}'),
        ('{"name": "ord_kbhdigingmtkjsap"}', '{"name": "ord_kbhdigingmtkjsap"}'),
        ('{"id": "customer_international"}', '{"id": "customer_international"}'),
        ('{"id": "ord_short"}', '{"id": "ord_short"}'),
    ],
)
def test_the_name_of_a_place_makes_a_number_an_id(said: str, shown: str) -> None:
    """A number is an id or a time where its place is named so, and nowhere else."""
    assert find_anew(said)[0] == shown


def orders(
    made: int,
    *,
    used: int | None = None,
    steps: int | None = None,
    told: str = "",
    amount: int = 4900,
    answer: dict[str, Any] | None = None,
    first: str = "POST",
) -> list[Exchange]:
    """Write a run: a shop makes an order with a number, which the agent reads and pays."""
    tape = Tape("orders")
    said = answer if answer is not None else {"order_id": made, "item": "shoe", "amount": amount}
    if first == "POST":
        tape.post("https://shop.test/orders", {"item": "shoe"}, said)
    else:
        tape.get("https://shop.test/orders?item=shoe", said)
    tape.get(f"https://shop.test/orders/{made if steps is None else steps}", {"ok": True})
    tape.post(PAY, {"order_id": made if used is None else used, "note": told, "amount": amount})
    return tape.exchanges


@pytest.mark.parametrize(("one", "other"), [(771001, 881001), (41, 57), (999, 1000), (5, 5)])
def test_a_counted_id_of_an_answer_stands_for_another(one: int, other: int) -> None:
    """Servers count: what the answer to an effect made in each run is the same in what follows, also in a path and in a text."""
    told = [f"Paid order {number}." if number > 99999 else "" for number in (one, other)]
    sides = [orders(number, told=text) for number, text in zip((one, other), told, strict=True)]
    assert first_change(*sides) is None


KEYS = [f"request_id={one}" for one in UUIDS]
COUNTED: dict[str, tuple[list[Exchange], list[Exchange], Change]] = {
    "an order that no answer made": (orders(771001, used=12), orders(881001, used=13), Change.ASKED),
    "the other run's order": (orders(771001, told=KEYS[0]), orders(881001, used=771001, told=KEYS[1]), Change.ASKED),
    "the same of few digits": (orders(41, told=KEYS[0]), orders(57, used=41, told=KEYS[1]), Change.ASKED),
    "another path": (orders(41, steps=7), orders(57, steps=8), Change.ASKED),
    "an amount": (orders(771001, amount=771001), orders(881001, amount=881001), Change.ANSWERED),
    "what was looked up": (orders(771001, first="GET"), orders(881001, first="GET"), Change.ANSWERED),
    "a number without a name": (orders(7, answer={"points": 700123}), orders(7, answer={"points": 700456}), Change.ANSWERED),
    "what an id's name ends like": (orders(7, answer={"paid": 4900}), orders(7, answer={"paid": 5900}), Change.ANSWERED),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_a_counted_number_is_renamed_only_as_the_id_that_was_made(name: str) -> None:
    """An amount never is, nor a number that was looked up, nor one that no answer gave."""
    one, other, change = COUNTED[name]
    assert first_change(one, other) is change
    assert first_change(one, one) is None


def test_small_numbers_of_two_kinds_may_be_the_same() -> None:
    """Order 5 is order 6 in the other run; item 5 is item 5 in both."""
    sides = []
    for made in (5, 6):
        tape = Tape("kinds")
        tape.post("https://shop.test/orders", {"item_id": 5}, {"order_id": made})
        tape.get("https://shop.test/items/5", {"ok": True})
        tape.post(PAY, {"order_id": made, "item_id": 5})
        sides.append(tape.exchanges)
    assert first_change(*sides) is None


def test_a_number_that_is_in_a_path_is_an_id() -> None:
    """A run that has a number in a path has it as an id everywhere."""
    assert find_anew('{"order": 1790000001}', Told(frozenset({"1790000001"})))[0] == '{"order": 0}'


def refunds(made: str, *, used: str | None = None, told: str = "", **more: Any) -> list[Exchange]:
    """Write a run: a shop makes a refund under a text, which the agent reads and sends."""
    tape = Tape("refunds")
    if more.pop("looked_up", False):
        tape.get("https://shop.test/refunds", {"id": made, **more})
    else:
        tape.post("https://shop.test/refunds", {"item": "shoe"}, {"id": made, **more})
    tape.get(f"https://shop.test/refunds/{made}/lines", {"of": made})
    tape.post(PAY, {"refund": made if used is None else used, "note": told})
    return tape.exchanges


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ord_1", "ord_2"),
        ("A-17", "A-18"),
        ("re_77XYZ1", "re_88ABC2"),
        ("k3j2h4", "p9o8i7"),
        ("aaabbbccc", "dddeeefff"),
        ("ord_9", "ord_10"),
        ("shop:1.a", "shop:1.b"),
    ],
)
def test_an_id_of_any_form_that_an_effect_made_stands_for_another(one: str, other: str) -> None:
    """Also in a path, in a text, and where no name says so."""
    sides = [refunds(id, told=f"Refund {id} (of today).") for id in (one, other)]
    assert first_change(*sides) is None


SHORT: dict[str, tuple[list[Exchange], list[Exchange], Change]] = {
    "the other run's": (refunds("re_1", told=KEYS[0]), refunds("re_2", used="re_1", told=KEYS[1]), Change.ASKED),
    "one that no answer made": (refunds("re_1", used="re_7"), refunds("re_2", used="re_8"), Change.ASKED),
    "what was looked up": (refunds("re_1", looked_up=True), refunds("re_2", looked_up=True), Change.ANSWERED),
    "what is called otherwise": (refunds("re_1", state="open"), refunds("re_2", state="paid"), Change.ANSWERED),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
def test_a_short_id_is_renamed_only_as_the_one_that_was_made(name: str) -> None:
    """Nothing else that looks like it is."""
    one, other, change = SHORT[name]
    assert first_change(one, other) is change
    assert first_change(one, one) is None
