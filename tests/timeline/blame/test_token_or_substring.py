"""Values that another place has by chance: in the midst of an id, a time, an address or a count. None of these is called recorded."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import Tape
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.timeline.blame.find_origin import Blame, find_blame
from playhead.timeline.state.calls_before import Exchanges

_UUID = "7d9f1b62-5519-4c1e-9a55-c0ffee123456"


class Case(NamedTuple):
    """Answers in order, each a body or a body with fields, and a value that is sent afterwards."""

    name: str
    answers: list[Any]
    sent: Any
    evidence: str | None
    origin: int | None = 1
    """Seq of the answer that it comes from."""


BY_CHANCE = [
    Case("uuid", [{"request_id": _UUID}], 5519, "inferred"),
    Case("port of a url", [{"next": "https://src.test:8447/n"}], 8447, "inferred"),
    Case("port of a host", ["proxy.corp.test:8447 is up"], 8447, "inferred"),
    Case("port of an address", ["10.2.3.4:8447 is up"], 8447, "inferred"),
    Case("phone", [{"phone": "+49 30 6651 2290"}], 6651, "inferred"),
    Case("phone, its end", [{"phone": "+49 30 6651 2290"}], 2290, "inferred"),
    Case("phone with hyphens", [{"phone": "212-555-6651"}], 6651, "inferred"),
    Case("phone with a bracket", [{"phone": "(0306) 6651 22"}], 6651, "inferred"),
    Case("year of a time", [{"created": "2031-05-06T10:00:00Z"}], 2031, "inferred"),
    Case("year by itself", [{"year": 2027}], 2027, "inferred"),
    Case("year in prose", ["In the year 2027 all was well."], 2027, "inferred"),
    Case("time of day", [{"at": "10:00:4417"}], 4417, "inferred"),
    Case("date of a time", [{"created": "2031-05-06T10:17:33Z"}], "2031-05-06", "inferred"),
    Case("compact date", [{"created": "20310506T101733Z"}], 20310506, "inferred"),
    Case("time without a date", [{"created": "2031-05-06T10:17:33Z"}], "10:17:33", "inferred"),
    Case("minute", [{"created": "2031-05-06T10:17:33.5+02:00"}], "10:17", "inferred"),
    Case(
        "time without a zone", [{"at": "2031-05-06T10:17:33Z"}], "2031-05-06T10:17:33", "inferred"
    ),
    Case("without a fraction", [{"at": "2031-05-06T10:17:33.123Z"}], "10:17:33", "inferred"),
    Case("no time behind it", [{"at": "x2031-05-06Tuesday"}], "2031-05-06", None, None),
    Case("date with slashes", [{"at": "4417/05/06"}], 4417, "inferred"),
    Case("segment of a path", [{"next": "/v1/orders/5517"}], 5517, "inferred"),
    Case("number of an id", [{"id": "INV-2027-5517"}], 5517, "inferred"),
    Case("number before an id", [{"id": "5517-AB"}], 5517, "inferred"),
    Case("sign", ["delta -48217"], 48217, "inferred"),
    Case("hyphen of a number", ["invoice 11-412057 was filed"], -412057, "inferred"),
    Case("hyphen behind a letter", [{"id": "x-412057"}], -412057, "inferred"),
    Case("minus sign", [{"t": "\u2212412057"}], 412057, "inferred"),
    Case("fraction", [{"t": ".412057"}], 412057, "inferred"),
    Case("part of an id", [{"id": "ORD-88XK21/2"}], "ORD-88XK21", "inferred"),
    Case("part of an id with a sign", [{"id": "ORD-88XK21#2"}], "ORD-88XK21", "inferred"),
    Case("row of a csv", ["id,amount,state\n7,5517,open\n"], 5517, "inferred"),
    Case("number at an address", [{"mail": "5517@post.test"}], 5517, "inferred"),
    Case("version", [{"version": "10.1147.3"}], 1147, None, None),
    Case("digits of a number", [{"n": 94412071}], 44120, None, None),
    Case("digits of a fraction", [{"n": 3.773315}], 7733, None, None),
    Case("power of two", [{"size": 4096}], 4096, "inferred"),
    Case("port that many have", [{"n": 8080}], 8080, "inferred"),
    Case("seconds of a year", [{"n": 31536000}], 31536000, "inferred"),
    Case("one digit", [{"n": 9999}], 9999, "inferred"),
    Case("digits in order", [{"n": 12345}], 12345, "inferred"),
    Case("price that many have", [{"n": 19.99}], 19.99, "inferred"),
    Case("a third", [{"n": 0.3333}], 0.3333, "inferred"),
    Case("count in a field", [({"ok": 1}, {"x-response-bytes": "4733"})], 4733, "inferred"),
    Case("piece of a uuid", [{"id": _UUID}], "5519-4c1e", "inferred"),
    Case("piece of an id", [{"id": "pre-YX5513-QQA-7"}], "YX5513-QQA", "inferred"),
    Case("id with more behind", [{"id": "YX5513-QQA7-2"}], "YX5513-QQA7", "inferred"),
    Case("user of an address", [{"mail": "anna.k-5517@post.test"}], "anna.k-5517", "inferred"),
    Case("name of a file", [{"file": "YX5513-QQA7.json"}], "YX5513-QQA7", "inferred"),
    Case("longer url", [{"u": "https://a.test/orders/77"}], "https://a.test/orders", "inferred"),
    Case("url with a query", [{"u": "https://a.test/o?of=7"}], "https://a.test/o", "inferred"),
    Case("media type", [{"t": "application/json"}], "application/json", "inferred"),
    Case(
        "with a charset",
        [{"t": "text/html; charset=utf-8"}],
        "text/html; charset=utf-8",
        "inferred",
    ),
    Case("phrase of http", [{"t": "Internal Server Error"}], "Internal Server Error", "inferred"),
    Case("state in words", [{"t": "awaiting approval"}], "awaiting approval", "inferred"),
    Case("state with a capital", [{"t": "Out for delivery"}], "Out for delivery", "inferred"),
    Case("state in capitals", [{"t": "IN TRANSIT NOW"}], "IN TRANSIT NOW", "inferred"),
    Case("camel case", [{"t": "PaymentSucceeded"}], "PaymentSucceeded", "inferred"),
    Case("zone", [{"t": "America/New_York"}], "America/New_York", "inferred"),
    Case("midnight", [{"t": "2027-11-27T00:00:00Z"}], "2027-11-27T00:00:00Z", "inferred"),
    Case(
        "zeros",
        [{"t": _UUID[:0] + "00000000-0000-0000-0000-000000000000"}],
        "00000000-0000-0000-0000-000000000000",
        "inferred",
    ),
    Case("line", [{"t": "------------"}], "------------", "inferred"),
    # Another answer has it in another place, and neither is a copy of the other.
    Case("two answers", [{"took_ms": 5517}, {"amount": 5517}], 5517, "inferred"),
]
"""The value is there, and says nothing, or nothing certain."""

WHOLE_LATER = [
    Case("uuid", [{"request_id": _UUID}, {"amount": 5519}], 5519, "recorded", 2),
    Case(
        "piece of a uuid",
        [{"request_id": _UUID}, {"code": "5519-4c1e"}],
        "5519-4c1e",
        "recorded",
        2,
    ),
    Case("port", [{"next": "https://src.test:8447/n"}, {"amount": 8447}], 8447, "inferred", 2),
    Case("phone", [{"phone": "+49 30 6651 2290"}, {"amount": 6651}], 6651, "inferred", 2),
    Case("csv", ["id,amount\n7,5517,x\n", {"amount": 5517}], 5517, "inferred", 2),
    Case(
        "longer id", [{"id": "YX5513-QQA7-2"}, {"id": "YX5513-QQA7"}], "YX5513-QQA7", "inferred", 2
    ),
    Case("count in a field", [({"a": 1}, {"x-bytes": "4733"}), {"n": 4733}], 4733, "inferred", 2),
    # What is written in another way is no piece: it stays the first.
    Case("another writing", [{"total": "8,834.21"}, {"total": 8834.21}], 8834.21, "inferred", 1),
]
"""The whole value in a later answer is the origin, not a piece of another value in an earlier one."""

RECORDED = [
    Case("number", [{"amount": 5517}], 5517, "recorded"),
    Case("number as text", [{"amount": "739187"}], 739187, "recorded"),
    Case("number in prose", ["The total is 5517 in all."], 5517, "recorded"),
    Case("number in prose, at its end", ["The total is 5517."], 5517, "recorded"),
    Case("number in brackets", ["refund (5517)"], 5517, "recorded"),
    Case("number in html", ["<td>5517</td>"], 5517, "recorded"),
    Case("number behind a sign", ["It is #5517"], 5517, "recorded"),
    Case("price in prose", ["It costs $4121.57, now"], 4121.57, "recorded"),
    Case("number of a query", [{"next": "https://a.test/?of=5517&b=1"}], 5517, "recorded"),
    Case("row with tabs", ["7\t5517\topen"], 5517, "recorded"),
    Case("long number in a path", [{"next": "/orders/7719043/lines"}], 7719043, "recorded"),
    Case("number in a list", ["orders 1007, 5517 and 6001"], 5517, "recorded"),
    Case("uuid", [{"id": _UUID}], _UUID, "recorded"),
    Case("uuid in a path", [{"next": f"/orders/{_UUID}/lines"}], _UUID, "recorded"),
    Case("id in prose", ["It is YX5513-QQA7."], "YX5513-QQA7", "recorded"),
    Case(
        "id in a field",
        [({"a": 1}, {"location": "/orders/YX5513-QQA7"})],
        "YX5513-QQA7",
        "recorded",
    ),
    Case("id behind its name", ["id:YX5513-QQA7, paid"], "YX5513-QQA7", "recorded"),
    Case("id of a query", [{"u": "https://a.test/?of=YX5513-QQA7"}], "YX5513-QQA7", "recorded"),
    Case("code", [{"t": "ORD-TKBUGBK"}], "ORD-TKBUGBK", "recorded"),
    Case("moment", [{"t": "2027-11-27T10:17:31Z"}], "2027-11-27T10:17:31Z", "recorded"),
    Case(
        "sentence",
        [{"t": "ship it to the harbour at noon"}],
        "ship it to the harbour at noon",
        "recorded",
    ),
    Case("name", [{"t": "Marie Skłodowska"}], "Marie Skłodowska", "inferred"),
    Case("address", [{"t": "anna.k-5517@post.test"}], "anna.k-5517@post.test", "recorded"),
    Case("step", [{"t": "https://a.test/ORD-88XK21/lines"}], "ORD-88XK21", "recorded"),
    Case("behind an escape", [b'{"t": "\\u00a3412057"}'], 412057, "recorded"),
    Case("negative number", ["the sum is -412057 now"], -412057, "recorded"),
    Case("url", [{"t": "see https://a.test/o/77."}], "https://a.test/o/77", "recorded"),
    # The same is read twice: a copy.
    Case("two copies", [{"amount": 5517}, {"amount": 5517}], 5517, "recorded"),
]
"""Controls: nothing else has them by chance."""

WRITTEN = [
    Case("named entities", [{"h": "M&uuml;ller GmbH 4471"}], "Müller GmbH 4471", "inferred"),
    Case("decimal entities", [{"h": "Stra&#223;e 991 Nord"}], "Straße 991 Nord", "inferred"),
    Case("hexadecimal entities", [{"h": "Caf&#xe9; Noir 4711"}], "Café Noir 4711", "inferred"),
    Case("entities in a page", ["<p>Caf&#233; Noir 4711&nbsp;x</p>"], "Café Noir 4711", "inferred"),
    Case("few letters", [{"h": "&Ouml;l &amp; G&auml;s7"}], "Öl & Gäs7", "inferred"),
    Case("quotes", [{"h": "&quot;Joe&quot; &#x27;4a&#39;"}], "\"Joe\" '4a'", "inferred"),
    Case("component", [{"p": "a%20b%2Fc%3Dd-112"}], "a b/c=d-112", "inferred"),
    Case("component in small letters", [{"p": "a%20b%2fc%3dd-112"}], "a b/c=d-112", "inferred"),
    Case(
        "component in a url",
        [{"p": "https://a.test/?q=a%20b%2Fc%3Dd-112&b=1"}],
        "a b/c=d-112",
        "inferred",
    ),
    Case("whole url", [{"p": "https://a.test/a%20b/c=d-112"}], "a b/c=d-112", "inferred"),
    Case("plus", [{"p": "q=a+b%2Fc-112"}], "a b/c-112", "inferred"),
]
"""Other writings, which are found and named."""

ALL = {
    f"{kind}, {case.name}": case
    for kind, cases in (
        ("chance", BY_CHANCE),
        ("later", WHOLE_LATER),
        ("recorded", RECORDED),
        ("written", WRITTEN),
    )
    for case in cases
}


def _tape(name: str, case: Case) -> Tape:
    tape = Tape(name)
    for answer in case.answers:
        body, fields = answer if isinstance(answer, tuple) else (answer, {})
        text = body.encode() if isinstance(body, str) else body
        kind = {"content-type": "text/plain" if isinstance(body, str) else "application/json"}
        asked = make_request(f"https://src.test/{case.answers.index(answer)}", method="GET")
        tape.add(asked, make_response(text, headers=kind | fields), RequestClass.READ)
    tape.post("https://dst.test/use", {"v": case.sent})
    return tape


def _run_name(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "-")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with a run for each case."""
    folder = tmp_path_factory.mktemp("chance") / "store"

    async def write() -> None:
        with Store.open(folder) as opened:
            for name, case in ALL.items():
                run = _run_name(name)
                await write_run(opened, run, _tape(run, case).exchanges)
            await write_run(opened, "places", _places().exchanges)

    asyncio.run(write())
    with Store.open(folder, readonly=True) as opened:
        yield opened


def _ask(store: Store, run: str, seq: int, place: str) -> Blame:
    return find_blame(Exchanges(store, store.runs.get(run)), seq, place)


@pytest.mark.parametrize("name", ALL)
def test_what_is_there_by_chance_is_not_called_recorded(store: Store, name: str) -> None:
    """The evidence, and the answer that is named; controls stay recorded."""
    case = ALL[name]
    found = _ask(store, _run_name(name), len(case.answers) + 1, "$.v")
    evidence = found.evidence.value if found.evidence is not None else None
    origin = found.origin.seq if found.origin is not None else None
    assert (evidence, origin) == (case.evidence, case.origin), (found.rule, found.origin)


def test_a_piece_before_the_origin_is_told(store: Store) -> None:
    """It is named with its place, and the origin stays the whole value."""
    found = _ask(store, _run_name("later, port"), 3, "$.v")
    assert found.hints == [
        "1 answer $.next has it inside of a longer value: https://src.test:8447/n"
    ]


def _places() -> Tape:
    tape = Tape("places")
    tape.get("https://src.test/d", {"slug": "blue-heron-1192", "path": "/v1/orders/two%20words"})
    tape.get("https://dst.test/v1/orders/blue-heron-1192?a=1", {})
    tape.get("https://dst.test/v1/orders/two%20words", {})
    return tape


def test_the_path_is_all_of_the_path(store: Store) -> None:
    """`path` is the whole path, and `path N` one of its segments."""
    whole = _ask(store, "places", 2, "path")
    assert whole.value == "/v1/orders/blue-heron-1192"
    assert whole.origin is not None
    assert (whole.origin.seq, whole.origin.place) == (1, "$.slug")
    segment = _ask(store, "places", 2, "path 3")
    assert (segment.value, segment.evidence and segment.evidence.value) == (
        "blue-heron-1192",
        "recorded",
    )
    assert _ask(store, "places", 3, "path").value == "/v1/orders/two words"
