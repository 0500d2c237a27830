"""Where two runs first differ, and what follows from that."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from playhead.addons.run.exchange_events import intent_row
from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Exchange, Fingerprint, Spilled
from playhead.tape.records.events import Event, EventKind
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
from playhead.tests.support.dialects import make_request, make_response, make_stream
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import Compared, compare_acts
from playhead.timeline.diff.differing_json_paths import Places, find_places
from playhead.timeline.diff.render import Names, render_diff
from playhead.timeline.diff.row import Change
from playhead.timeline.show.fit import columns

SHOP = "https://shop.test"


@dataclass(frozen=True)
class Turn:
    """What the model says: a GET of a path, or several at once; and what the shop answers to each."""

    paths: tuple[str, ...]
    answers: tuple[Any, ...]
    together: bool = False
    """Whether the requests are under way at one time."""
    swapped: bool = False
    """Whether they come in the other order."""


def turn(*pairs: tuple[str, Any], **more: bool) -> Turn:
    return Turn(tuple(path for path, _ in pairs), tuple(answer for _, answer in pairs), **more)


ORDER = turn(("/orders/7", {"total": "40.00", "customer": "ana"}))
CUSTOMER = turn(("/customers/ana", {"name": "Ana", "vip": False}))
STOCK = turn(("/stock/1", {"left": 3}))
BOTH = turn(("/stock/1", {"left": 3}), ("/stock/2", {"left": 9}), together=True)
BASE = (ORDER, CUSTOMER, BOTH, STOCK)


def play(
    turns: Sequence[Turn], *, ids: str = "a", end: str = "Done.", system: str = "You sell."
) -> list[Exchange]:
    """Write a run: each turn is a model call and the requests that its tools make."""
    tape = Tape("shop")
    asked = [user("Serve order 7.")]
    for number, one in enumerate(turns):
        calls = [
            use(f"toolu_{ids}{number}{at}0", "Get", url=f"{SHOP}{path}")
            for at, path in enumerate(one.paths)
        ]
        answer = anthropic_stream(*calls, stop="tool_use", id=f"msg_{ids}{number}")
        tape.model(anthropic(asked, system=system, tools=("Get",)), answer)
        order = range(len(calls))
        first = len(tape.exchanges) + 1
        for count, at in enumerate(reversed(order) if one.swapped else order):
            under_way = [first] if one.together and count else []
            tape.get(f"{SHOP}{one.paths[at]}", one.answers[at], overlaps=under_way)
        results = [
            result(call["id"], str(answer)) for call, answer in zip(calls, one.answers, strict=True)
        ]
        asked = [*asked, assistant(*calls), user(*results)]
    tape.model(
        anthropic(asked, system=system, tools=("Get",)),
        anthropic_stream(text(end), id=f"msg_{ids}end"),
    )
    return tape.exchanges


def compare(first: list[Exchange], second: list[Exchange]) -> Compared:
    """Compare two runs."""
    return compare_acts(*(read_acts(InMemory(one)) for one in (first, second)))


def told(compared: Compared) -> tuple[str, str, str] | None:
    """Give the first divergence in words: what it is, and both places."""
    found = compared.divergence
    if found is None:
        return None
    first, second = found.first, found.second
    return (
        found.row.change.value,
        first.place if first is not None else "",
        second.place if second is not None else "",
    )


CASES: dict[str, tuple[list[Exchange], tuple[str, str, str] | None]] = {
    "the same": (play(BASE), None),
    "other ids": (play(BASE, ids="b"), None),
    "in parallel, the other way": (
        play((ORDER, CUSTOMER, replace(BOTH, swapped=True), STOCK)),
        None,
    ),
    "another last word": (play(BASE, end="I am done."), ("answered otherwise", "10", "10")),
    "another tool call": (
        play((ORDER, turn(("/customers/bob", {"name": "Bob"})), BOTH, STOCK)),
        ("answered otherwise", "3", "3"),
    ),
    "the shop answers otherwise": (
        play((turn(("/orders/7", {"total": "41.00", "customer": "ana"})), CUSTOMER, BOTH, STOCK)),
        ("answered otherwise", "2", "2"),
    ),
    "another system prompt": (
        play(BASE, system="You sell, politely."),
        ("asked otherwise", "1", "1"),
    ),
    "another day in the system prompt": (
        play(BASE, system="You sell.\nToday is Friday 2026-11-27."),
        None,
    ),
    "one turn less": (play((ORDER, BOTH, STOCK)), ("answered otherwise", "3", "3")),
    "one turn more": (
        play((ORDER, STOCK, CUSTOMER, BOTH, STOCK)),
        ("answered otherwise", "3", "3"),
    ),
}


ON_MONDAY = play(BASE, system="You sell.\nToday is Monday 2026-11-23.")


@pytest.mark.parametrize("name", CASES)
def test_the_first_divergence_is_found(name: str) -> None:
    """What was put in, left out or changed is named where it begins; ids made anew and parallel requests are no divergence."""
    other, expected = CASES[name]
    first = ON_MONDAY if "day" in name else play(BASE)
    assert told(compare(first, other)) == expected


def test_a_clock_in_one_prompt_is_one_root() -> None:
    """A prompt that tells the time of each call, beside one that does not, differs once; the rest follows."""
    clock = [
        replace(
            one,
            request=replace(
                one.request,
                body=one.request.body.replace(b"You sell.", b"You sell. 10:%02d" % one.seq),
            ),
            fingerprint=Fingerprint(b"clock %d" % one.seq),
        )
        for one in play(BASE)
    ]
    compared = compare(play(BASE), clock)
    assert told(compared) == ("asked otherwise", "1", "1")
    assert len([row for row in compared.rows if row.is_root]) == 1


@pytest.mark.parametrize("at", range(len(play(BASE))))
def test_an_exchange_that_is_missing_is_named(at: int) -> None:
    """An exchange that one run lacks is named, whichever it is."""
    whole = play(BASE)
    short = whole[:at] + whole[at + 1 :]
    found = told(compare(whole, short))
    assert found is not None
    assert found[1] == str(at + 1)


def test_what_follows_is_told_apart_from_the_root() -> None:
    """One other answer is the one root; the tool's request, its result and all later answers follow from it."""
    other = play((ORDER, turn(("/customers/bob", {"name": "Bob"})), BOTH, STOCK))
    compared = compare(play(BASE), other)
    roots = [row.first.place for row in compared.rows if row.is_root and row.first is not None]
    assert roots == ["3"]
    follows = {
        row.first.place: row.cause.evidence.value
        for row in compared.rows
        if row.first is not None and row.cause is not None
    }
    assert follows == {"4": "recorded", "5": "recorded"}


def test_the_answer_of_the_world_is_a_root() -> None:
    """The same request that is answered otherwise is a root; what the agent makes of it follows."""
    other = play((turn(("/orders/7", {"total": "41.00", "customer": "bob"})), CUSTOMER, BOTH))
    compared = compare(play((ORDER, CUSTOMER, BOTH)), other)
    roots = [row.first.place for row in compared.rows if row.is_root and row.first is not None]
    assert roots == ["2"]


class Ended(InMemory):
    """A run that ended while its last request was under way: the log has it, and no exchange."""

    def events(self) -> Iterator[Event]:
        last = self.last
        row = intent_row(last.seq, last.request, last.request_class, last.fingerprint)
        yield Event(EventKind.INTENT, last.started_ns, row)

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        super().__init__(exchanges)
        self.__dict__["seqs"] = self.seqs[:-1]
        self.last = exchanges[-1]

    def find(self, seq: int) -> Exchange | None:
        return None if seq == self.last.seq else super().find(seq)


@pytest.mark.parametrize("ids", ["a", "b"])
@pytest.mark.parametrize("count", range(2, len(play(BASE)) + 1))
def test_a_request_under_way_at_the_end_was_asked(ids: str, count: int) -> None:
    """A run that was killed before an answer came had asked: it is not the other run alone that did."""
    ended = Ended(play(BASE, ids=ids)[:count])
    compared = compare_acts(read_acts(InMemory(play(BASE))), read_acts(ended))
    assert told(compared) == ("answered otherwise", str(count), str(count))
    assert Change.ONLY_SECOND.value not in compared.counts


def test_places_are_json_paths() -> None:
    """Each difference is a JSON path with both values, and the page keeps to 80 columns."""
    other = play(
        (turn(("/orders/7", {"total": "41.00", "customer": "ana"})), CUSTOMER, BOTH, STOCK)
    )
    sides = InMemory(play(BASE)), InMemory(other)
    compared = compare_acts(*map(read_acts, sides))
    rows = [row for row in compared.rows if row.change is not Change.SAME]
    rules = compile_rules()
    told = [
        [(one.place, one.recorded, one.asked) for one in find_places(row, *sides, rules).listed]
        for row in rows
    ]
    page = list(render_diff(Names("a", "b"), compared, lambda row: find_places(row, *sides, rules)))
    assert told[0] == [("answer body $.total", '"40.00"', '"41.00"')]
    assert told[1][0][0] == "body $.messages[2].content[0].content"
    assert all(columns(line) <= 80 for line in page)
    assert page[5].startswith("first divergence: answered otherwise, A 2, B 2")


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), ([1], [True])])
def test_a_value_of_another_kind_has_a_place(one: object, other: object) -> None:
    """What is told apart is shown: `1` is not `true`."""
    sides = []
    for value in (one, other):
        tape = Tape("kinds")
        call = use("toolu_100000001", "pay", urgent=value)
        tape.model(anthropic([user("Pay.")]), anthropic_stream(call, stop="tool_use"))
        sides.append(InMemory(tape.exchanges))
    compared = compare_acts(*map(read_acts, sides))
    assert compared.divergence is not None
    places = find_places(compared.divergence.row, sides[0], sides[1], compile_rules()).listed
    assert places[0].place.startswith("answer tool call 1 pay $.urgent")


@pytest.mark.parametrize("make", TAPES, ids=lambda make: make.__name__)
def test_a_run_is_the_same_as_itself(make: Any) -> None:
    """Two recordings of one tape have no divergence, whatever agent made it."""
    tape = make()
    assert told(compare(tape.exchanges, tape.exchanges)) is None


def gemini(
    parts: list[list[dict[str, Any]]], *, plain: bool = False, swapped: bool = False
) -> list[Exchange]:
    """Write a run in which one answer, of a stream in pieces, has two tool calls without ids."""
    tape = Tape("gemini")
    named = "generateContent" if plain else "streamGenerateContent?alt=sse"
    url = f"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:{named}"
    asked: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Look both up."}]}]
    pieces: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": one}}]} for one in parts
    ]
    pieces[-1]["candidates"][0] |= {"finishReason": "STOP"}
    said = [part for one in parts for part in one if part.get("text") != "" or plain]
    tape.model(
        make_request(url, {"contents": asked}),
        make_response(pieces[0]) if plain else make_stream(*pieces),
    )
    order = (2, 1) if swapped else (1, 2)
    for number in order:
        tape.get(f"{SHOP}/stock/{number}", {"left": number * 1111})
    given = [
        {"functionResponse": {"name": "get", "response": {"result": str({"left": number * 1111})}}}
        for number in (1, 2)
    ]
    asked += [{"role": "model", "parts": said}, {"role": "user", "parts": given}]
    end = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}
        ]
    }
    tape.model(
        make_request(url, {"contents": asked}), make_response(end) if plain else make_stream(end)
    )
    return tape.exchanges


CALLS = [
    {"functionCall": {"name": "get", "args": {"url": f"{SHOP}/stock/{number}"}}}
    for number in (1, 2)
]


def test_tool_calls_without_ids_may_be_made_in_any_order() -> None:
    """They are told apart by their places in the answer."""
    compared = compare(gemini([CALLS]), gemini([CALLS], swapped=True))
    assert told(compared) is None
    assert compared.reordered


def test_an_empty_text_at_the_end_of_a_stream_says_nothing() -> None:
    """A plain answer with the same calls is the same."""
    stream = gemini([CALLS[:1], CALLS[1:], [{"text": ""}]])
    assert told(compare(gemini([CALLS], plain=True), stream)) is None
    assert told(compare(stream, gemini([CALLS], plain=True))) is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"a": 1, "b": {"c": 2, "d": "x"}}', '{"b":{"d":"\\u0078","c":2},"a":1}', True),
        ('{"id": "ord_1a2b3c4d5e6f", "a": 1}', '{"a": 1, "id": "ord_9z8y7x6w5v4u"}', True),
        ('{"a": 1, "b": 2}', '{"b": 1, "a": 2}', False),
        ("[1, 2]", "[2, 1]", False),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 1.50}', '{"a": 1.5}', False),
        ('{"a": 1, "a": 2}', '{"a": 2}', False),
        ('{"a": 1}, {"b": 2}', '{"b": 2}, {"a": 1}', False),
    ],
)
def test_json_is_compared_by_its_values(one: str, other: str, is_same: bool) -> None:
    """Keys in another order are no difference, in what is sent and in what is answered; each difference has a place."""
    for sends in (False, True):
        runs = []
        for body in (one, other):
            tape = Tape("json")
            if sends:
                tape.post(f"{SHOP}/orders", body.encode())
            else:
                tape.get(f"{SHOP}/orders", body.encode())
            runs.append(tape.exchanges)
        compared = compare(*runs)
        if is_same and not (sends and "id" in one):
            assert told(compared) is None
            continue
        if compared.divergence is None:
            assert sends, "a rule of matching calls numbers the same"
            continue
        assert find_places(
            compared.divergence.row, InMemory(runs[0]), InMemory(runs[1]), compile_rules()
        ).listed


def test_an_id_beside_what_differs_stands_for_the_one_at_its_place() -> None:
    """Another account in the same item moves no id: what asks by it later is no difference of its own."""

    def run(order: str, account: object) -> list[Exchange]:
        orders = [
            {"account": "none", "id": f"ord_{order}0"},
            {"account": account, "id": f"ord_{order}1"},
        ]
        items = turn((f"/orders/ord_{order}1/items", {"items": 2}))
        return play((turn(("/orders", {"orders": orders})), items))

    compared = compare(run("5f2a9c81d4", "acc_77aa01bb22"), run("8b41ee07c3", "none"))
    assert Change.ONLY_FIRST.value not in compared.counts
    assert Change.ONLY_SECOND.value not in compared.counts
    differing = [
        row.first.place for row in compared.rows if row.change is not Change.SAME and row.first
    ]
    assert differing == ["2", "3"]


def test_a_body_in_a_file_is_shown_by_size_and_hash() -> None:
    """Not as a value of the program."""
    sides: list[InMemory] = []
    for digest in (b"a", b"b"):
        tape = Tape("large")
        tape.get(f"{SHOP}/large")
        spilled = Spilled(digest * 32, 9_000_000, digest * 32)
        exchange = tape.exchanges[0]
        assert exchange.response is not None
        response = replace(exchange.response, body=b"", spilled=spilled)
        sides.append(InMemory([replace(exchange, response=response)]))
    first, second = sides
    compared = compare_acts(read_acts(first), read_acts(second))
    assert compared.divergence is not None
    (place,) = find_places(compared.divergence.row, first, second, compile_rules()).listed
    assert place.recorded.startswith("(9000000 bytes, BLAKE3 6161")
    assert place.asked.startswith("(9000000 bytes, BLAKE3 6262")


def effects(*names: str) -> list[Exchange]:
    """Write a run that says the same each time and does effects in an order."""
    tape = Tape("effects")
    calls = [use(f"toolu_a{at}00000", "Do", step=at) for at in range(len(names))]
    asked = [user("Do all.")]
    for call, name in zip(calls, names, strict=True):
        tape.model(anthropic(asked), anthropic_stream(call, stop="tool_use"))
        tape.post(f"https://{name}.test/do", {"name": name})
        asked = [*asked, assistant(call), user(result(call["id"], "done"))]
    tape.model(anthropic(asked), anthropic_stream(text("Done.")))
    return tape.exchanges


def test_two_effects_that_changed_places_are_what_moved() -> None:
    """Not the model call between them; the first divergence is the first of them, and no line counts them as the same."""
    sides = effects("pay", "mail"), effects("mail", "pay")
    compared = compare(*sides)
    moved = [row for row in compared.rows if row.change is Change.MOVED]
    places = [(row.first.seq, row.second.seq) for row in moved if row.first and row.second]
    assert places == [(2, 4), (4, 2)]
    assert compared.divergence is not None
    assert compared.divergence.row is moved[0]
    page = list(render_diff(Names("a", "b"), compared, lambda _: Places([])))
    assert "first divergence: moved, A 2, B 4" in page
    assert not any("to 4" in line for line in page)


def test_what_is_the_same_around_what_moved_is_counted_apart() -> None:
    """A range of seqs has no act in it that is listed by itself."""
    first, second = effects("a", "b", "c", "d"), effects("d", "a", "b", "c")
    page = list(render_diff(Names("a", "b"), compare(first, second), lambda _: Places([])))
    ranges = [line for line in page if "the same  " in line]
    for line in ranges:
        left, right = re.findall(r"([0-9]+) to ([0-9]+)", line)
        count = int(re.findall(r"([0-9]+) the same", line)[0])
        assert [int(end) - int(begin) + 1 for begin, end in (left, right)] == [count, count]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("http://PAY.test:80/x", "http://pay.test/x", True),
        ("https://pay.test/x", "https://pay.test:443/x", True),
        ("http://pay.test/x", "http://pay.test:8080/x", False),
        ("http://pay.test/x", "http://pays.test/x", False),
    ],
)
def test_an_origin_is_compared_by_what_it_is(one: str, other: str, is_same: bool) -> None:
    """The case of a host and a port that is the scheme's own do not count."""
    sides = []
    for url in (one, other):
        tape = Tape("origins")
        tape.post(url, {"a": 1})
        host = url.split("/")[2].partition(":")[0]
        tape.exchanges = [
            replace(exchange, request=replace(exchange.request, host=host))
            for exchange in tape.exchanges
        ]
        sides.append(tape.exchanges)
    assert (compare(*sides).divergence is None) is is_same
