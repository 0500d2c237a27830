"""How a resource changed: planted histories over several runs, with replicas, refusals, somebody else, and lost updates."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from playhead.store import Store
from playhead.tape.canonical.canonical_url import same_url
from playhead.tape.exchange import Fault, FaultKind, Phase, RedactedText
from playhead.tests.adversary.planted.history import history
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange, write_run
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.history.collect_exchanges import Collector
from playhead.timeline.history.find_resource_history import History, find_history
from playhead.timeline.history.render import history_json, render_history
from playhead.timeline.history.resource_state import (
    Field,
    No,
    State,
    Use,
    find_fields,
    find_state,
    find_use,
    may_be_use,
    merge,
)

CASES = history(60 if FULL else 20)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the runs of all cases, each under its case and number."""
    folder = tmp_path_factory.mktemp("history") / "store"

    async def write() -> None:
        with Store.open(folder) as opened:
            for case in CASES:
                for number, run in enumerate(case["runs"]):
                    await write_run(opened, f"{case['id']}-{number}", make_exchanges(run))

    asyncio.run(write())
    with Store.open(folder, readonly=True) as opened:
        yield opened


def told(found: History) -> dict[str, Any]:
    """Give what was found as the truth is written: runs by their numbers, without times."""

    def numbered(value: Any) -> Any:
        if isinstance(value, list):
            return [numbered(one) for one in value]
        if not isinstance(value, dict):
            return value
        run = value.get("run")
        return {key: numbered(one) for key, one in value.items()} | (
            {"run": int(run.rpartition("-")[2])} if isinstance(run, str) else {}
        )

    page = numbered(history_json(found))
    for change in page["changes"]:
        del change["at_ns"], change["evidence"], change["maybe"]
    old = [
        {
            "run": one["run"],
            "seq": one["seq"],
            "path": one["path"],
            "value": one["old"].get("value"),
        }
        for one in page["old_reads"]
    ]
    return {"changes": page["changes"], "old_reads": old, "stale": page["stale"]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_planted_history_is_found(store: Store, case: dict[str, Any]) -> None:
    """Each change with its fields and its writer, reads of old values, and writes on stale reads with what they lost."""
    collector, uses = Collector(case["url"]), list[Use]()
    for number in range(len(case["runs"])):
        info = store.runs.get(f"{case['id']}-{number}")
        uses += collector.of_store(store, info, named=False)
    assert told(find_history(case["url"], uses)) == case["truth"]


@pytest.mark.parametrize(
    ("method", "sent", "status", "answered", "known", "state"),
    [
        # What a read answers is the state; what it does not find is not there.
        ("GET", None, 200, {"a": 1}, No.UNKNOWN, {"a": 1}),
        ("GET", None, 404, {"error": "none"}, {"a": 1}, No.MISSING),
        ("GET", None, 503, {"error": "busy"}, {"a": 1}, {"a": 1}),
        ("GET", None, 304, None, {"a": 1}, {"a": 1}),
        # A write: its answer where that looks like the state, else what was sent.
        ("PUT", {"a": 2}, 200, {"a": 2, "b": 3}, {"a": 1}, {"a": 2, "b": 3}),
        ("PUT", {"a": 2}, 200, {"ok": True}, {"a": 1}, {"a": 2}),
        ("PUT", {"a": 2}, 204, None, {"a": 1}, {"a": 2}),
        ("PATCH", {"a": None, "c": 3}, 204, None, {"a": 1, "b": 2}, {"b": 2, "c": 3}),
        ("PATCH", {"c": 3}, 204, None, No.UNKNOWN, No.UNKNOWN),
        ("DELETE", None, 204, None, {"a": 1}, No.MISSING),
        ("POST", {"why": "x"}, 200, {"ok": True}, {"a": 1}, No.UNKNOWN),
        # One that failed changes nothing.
        ("PUT", {"a": 2}, 409, {"error": "late"}, {"a": 1}, {"a": 1}),
        ("DELETE", None, 500, None, {"a": 1}, {"a": 1}),
        ("PUT", {"a": 2}, None, None, {"a": 1}, {"a": 1}),
    ],
)
def test_what_an_exchange_says_of_a_resource(
    method: str, sent: Any, status: int | None, answered: Any, known: State, state: State
) -> None:
    """The state after it."""
    asked = make_request(
        "https://shop.test/orders/7", sent if sent is not None else b"", method=method
    )
    body = answered if answered is not None else b""
    response = make_response(body, status) if status is not None else None
    assert (
        find_state(Use("run", make_exchange(1, request=asked, response=response)), known) == state
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://shop.test/orders/7", "HTTPS://Shop.test:443/orders/7", True),
        ("https://shop.test", "https://shop.test/", True),
        ("https://shop.test/a?x=1", "https://shop.test/a", False),
        ("https://shop.test/orders/7", "https://shop.test/orders/70", False),
        ("http://shop.test/a", "https://shop.test/a", False),
        ("https://[broken/a", "https://shop.test/a", False),
        ("https://shop.test/u/~ana", "https://shop.test/u/%7Eana", True),
        ("https://shop.test/u/~ana", "https://shop.test/u/%7eana", True),
        ("https://shop.test/a?q=%c3%a9&p=1", "https://shop.test/a?p=1&q=é", True),
        ("https://shop.test/a?p=1&p=2", "https://shop.test/a?p=2&p=1", False),
        ("https://shop.test/a%2Fb", "https://shop.test/a/b", False),
        ("https://shop.test/a?q=a+b", "https://shop.test/a?q=a%20b", False),
    ],
)
def test_two_urls_of_one_resource(one: str, other: str, same: bool) -> None:
    """What does not count in a URL is left out."""
    assert same_url(one, other) is same


def test_fields_are_told_apart() -> None:
    """Nested ones by their paths, lists as a whole, true from 1, and what is not there."""
    old: State = {"a": {"b": 1, "c": True}, "l": [1], "gone": None, "odd name": 1}
    new: State = {"a": {"b": 1, "c": 1}, "l": [1, 2], "odd name": 2, "new": None}
    assert [(one.path, one.old, one.new) for one in find_fields(old, new)] == [
        ("$.a.c", True, 1),
        ("$.l", [1], [1, 2]),
        ("$.gone", None, No.MISSING),
        ("$['odd name']", 1, 2),
        ("$.new", No.MISSING, None),
    ]
    assert merge({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}, "e": {"f": None}}) == {
        "b": {"c": 2, "d": 3},
        "e": {},
    }


@pytest.mark.parametrize(
    ("phase", "sent", "read", "by", "maybe", "counts"),
    [
        # Sent, and no answer came: the next read shows that it was made.
        (Phase.HEAD, {"status": "paid"}, {"status": "paid", "at": 9}, 2, None, (0, 1)),
        # The read has something else: nobody knows who wrote it.
        (Phase.HEAD, {"status": "void"}, {"status": "paid"}, None, 2, (0, 1)),
        # It was never sent.
        (Phase.CONNECT, {"status": "paid"}, {"status": "paid"}, None, None, (1, 0)),
    ],
)
def test_a_write_without_an_answer_may_have_been_made(
    phase: Phase, sent: Any, read: Any, by: int | None, maybe: int | None, counts: tuple[int, int]
) -> None:
    """No other party is blamed for what the run itself asked for, and nothing that was sent is called refused."""
    url = "https://shop.test/v1/orders/57"
    asked = [
        make_request(url, b"", {}, "GET"),
        make_request(url, json.dumps(sent).encode(), {}, "PUT"),
    ]
    fault = Fault(FaultKind.TIMEOUT, phase, RedactedText("timed out"), 9)
    exchanges = (
        make_exchange(1, response=make_response({"status": "open"}), request=asked[0]),
        make_exchange(2, response=None, request=asked[1], fault=fault),
        make_exchange(3, response=make_response(read), request=asked[0]),
    )
    found = find_history(url, [Use("r", one) for one in exchanges])
    (change,) = found.changes
    assert (change.by.seq if change.by else None) == by
    assert (change.maybe.seq if change.maybe else None) == maybe
    assert not change.is_recorded
    assert (found.refused, found.unanswered) == counts
    assert ("r 2" in "\n".join(render_history(found))) == (by == 2 or maybe == 2)


URL = "https://shop.test/v1/orders/57"


def _written(status: int, read: Any, sent: Any = "paid") -> History:
    """Read an order that is open, pay it, be answered with a status, and read it again."""
    asked = [
        make_request(URL, b"", {}, "GET"),
        make_request(URL, json.dumps({"status": sent}).encode(), {}, "PUT"),
    ]
    exchanges = (
        make_exchange(1, response=make_response({"status": "open"}), request=asked[0]),
        make_exchange(2, response=make_response(b"<html>", status), request=asked[1]),
        make_exchange(3, response=make_response({"status": read}), request=asked[0]),
    )
    return find_history(URL, [Use("r", one) for one in exchanges])


@pytest.mark.parametrize("status", [301, 302, 303, 408, 499, 500, 502, 503, 504, 524])
def test_a_write_of_unknown_outcome_is_made_where_a_read_shows_it(status: int) -> None:
    """A gateway that waited in vain and a redirect say neither that it was made nor that it was not."""
    made = _written(status, "paid")
    (change,) = made.changes
    assert change.by is not None
    assert (change.by.seq, change.is_recorded) == (2, False)
    assert (made.refused, made.unanswered, made.old_reads) == (0, 1, [])
    other = _written(status, "void")
    assert [(one.by, one.maybe and one.maybe.seq) for one in other.changes] == [(None, 2)]
    none = _written(status, "open")
    assert (none.changes, none.old_reads, none.stale) == ([], [], [])


@pytest.mark.parametrize("status", [304, 307, 308, 400, 401, 409, 412, 422, 429, 501])
def test_a_write_that_was_refused_changes_nothing(status: int) -> None:
    """Who has the new value then is somebody else."""
    found = _written(status, "paid")
    assert [(one.by, one.maybe) for one in found.changes] == [(None, None)]
    assert (found.refused, found.unanswered) == (1, 0)
    none = _written(status, "open")
    assert (none.changes, none.old_reads, none.stale) == ([], [], [])


def test_a_body_that_is_no_json_is_not_said_to_be_the_same() -> None:
    """What was written is not known, and may be another."""
    xml = {"content-type": "application/xml"}
    exchanges = [
        make_exchange(
            at,
            request=make_request(URL, b"<o>paid</o>" if method == "PUT" else b"", xml, method),
            response=make_response(b"<o>open</o>", 200, xml),
        )
        for at, method in enumerate(("GET", "PUT", "GET"), 1)
    ]
    found = find_history(URL, [Use("r", one) for one in exchanges])
    assert [one.fields for one in found.changes] == [[Field("$", No.UNKNOWN, No.UNKNOWN)]]
    assert "nothing is another" not in "\n".join(render_history(found))


def _done(url: str, *asked: tuple[str, str, Any, Any]) -> list[Use]:
    """Give exchanges one after the other, each by its run, method, what was sent and what was answered."""
    found: list[Use] = []
    for at, (run, method, sent, answered) in enumerate(asked, 1):
        body = json.dumps(sent).encode() if sent is not None else b""
        exchange = make_exchange(
            at,
            request=make_request(url, body, {}, method),
            response=make_response(answered),
            started_ns=at * 1_000_000_000,
        )
        found.append(Use(run, exchange))
    return found


@pytest.mark.parametrize("written", ["/u/%7Eana/plan", "/u/%7eana/plan", "/u/~ana/plan"])
@pytest.mark.parametrize("asked", ["/u/%7Eana/plan", "/u/~ana/plan"])
def test_a_write_by_another_spelling_of_the_url_is_one_of_the_resource(
    written: str, asked: str
) -> None:
    """Nobody else is blamed for it; so it is with the collection that a POST made it in."""
    url = f"https://shop.test{asked}"
    put = make_exchange(
        1,
        request=make_request(f"https://shop.test{written}", b'{"a": 1}', {}, "PUT"),
        response=make_response({"a": 1}),
    )
    use = find_use("r", put, url)
    assert use is not None
    assert not use.makes
    assert may_be_use("PUT", put.request.url, url)
    above, _, last = written.rpartition("/")
    post = make_exchange(
        1,
        request=make_request(f"https://shop.test{above}", b'{"a": 1}', {}, "POST"),
        response=make_response({"id": last, "a": 1}, 201),
    )
    made = find_use("r", post, url)
    assert made is not None
    assert made.makes
    assert may_be_use("POST", post.request.url, url)


def test_an_old_value_is_new_since_the_write_that_made_it_so() -> None:
    """Of several writes since, each field has its own."""
    states = [
        {"status": "paid", "city": "Oslo"},
        {"status": "open", "city": "Oslo"},
        {"status": "open", "city": "Lima"},
        {"status": "void", "city": "Lima"},
    ]
    writes = [(run, "PUT", one, one) for run, one in zip("pqrs", states, strict=True)]
    found = find_history(URL, _done(URL, *writes, ("t", "GET", None, states[0])))
    since = {one.field.path: one.change.by and one.change.by.run for one in found.old_reads}
    assert since == {"$.status": "s", "$.city": "r"}
    assert '"void" since s 4' in "\n".join(render_history(found))


def test_a_post_to_the_resource_may_have_changed_it() -> None:
    """Its answer does not say so; who has the new value then is not only somebody else."""
    uses = _done(
        URL,
        ("r", "GET", None, {"status": "open"}),
        ("r", "POST", {"pay": 1}, {"ok": True}),
        ("r", "GET", None, {"status": "paid"}),
        ("r", "GET", None, {"status": "void"}),
    )
    found = find_history(URL, uses)
    assert [(one.by, one.maybe and one.maybe.seq) for one in found.changes] == [
        (None, 2),
        (None, None),
    ]
    told = "\n".join(render_history(found))
    assert "posted to it" in told
    assert "or by r 2" in told


ITEMS = [{"id": 1, "amount": 5}, {"id": 2, "amount": 7}, {"id": 3, "amount": 9}]
COLLECTIONS: dict[str, Any] = {
    "a list": lambda items: items,
    "an envelope": lambda items: {"object": "list", "data": items},
    "a list that is counted": lambda items: {"items": items, "total": len(items)},
    "one with an id": lambda items: {"id": "orders", "data": items, "total": len(items)},
}


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("object", [{}, {"object": "refund"}])
def test_a_post_to_a_collection_adds_an_item(name: str, object: dict[str, str]) -> None:
    """It does not become the item, and nobody else makes it a collection again."""
    make = COLLECTIONS[name]
    url = "https://shop.test/v1/orders"
    uses = _done(
        url,
        ("r", "GET", None, make(ITEMS[:1])),
        ("r", "POST", {"amount": 7}, {**object, **ITEMS[1]}),
        ("r", "GET", None, make(ITEMS[:2])),
    )
    found = find_history(url, uses)
    (change,) = found.changes
    assert (change.by and change.by.seq, change.is_recorded) == (2, False)
    assert {one.path for one in change.fields} <= {"$", "$.data", "$.items", "$.total"}
    assert [(one.place.seq, one.made) for one in found.posts] == [(2, "2")]


def test_items_of_others_are_not_those_of_a_post() -> None:
    """Somebody may have made both: the POST is named as one who may."""
    url = "https://shop.test/v1/orders"
    uses = _done(
        url,
        ("r", "GET", None, ITEMS[:1]),
        ("r", "POST", {"amount": 7}, ITEMS[1]),
        ("r", "GET", None, ITEMS),
    )
    (change,) = find_history(url, uses).changes
    assert (change.by, change.maybe and change.maybe.seq) == (None, 2)


def test_a_post_whose_answer_shows_the_resource_changed_it() -> None:
    """It is the same by its `id`, or by its URL."""
    one, other = ({"id": "57", "status": state} for state in ("open", "paid"))
    for first in [("r", "GET", None, one)], []:
        uses = _done(URL, *first, ("r", "POST", {"pay": 1}, other), ("r", "GET", None, other))
        (change,) = find_history(URL, uses).changes
        assert (change.by and change.by.seq, change.is_recorded) == (len(first) + 1, True)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("answered", [b"", {"status": "paid"}, {"ok": True}])
def test_what_a_server_keeps_is_not_taken_away(method: str, answered: Any) -> None:
    """An id and a version that a write did not send are as they were; a new version may be of the write."""
    order = {"id": 9, "version": 1, "status": "open", "total": 7, "city": "Oslo"}
    uses = _done(
        URL,
        ("r", "GET", None, order),
        ("r", method, {"status": "paid"}, answered),
        ("r", "GET", None, {**order, "status": "paid", "version": 2}),
        ("r", "GET", None, {**order, "status": "paid", "version": 3}),
    )
    write, version, later = find_history(URL, uses).changes
    assert write.fields == [Field("$.status", "open", "paid")]
    assert (version.by, version.maybe and version.maybe.seq) == (None, 2)
    assert version.fields == [Field("$.version", 1, 2)]
    assert (later.by, later.maybe) == (None, None)


def test_a_put_takes_away_what_a_read_lacks_then() -> None:
    """Its answer did not say so: that is inferred."""
    uses = _done(
        URL,
        ("r", "GET", None, {"status": "open", "note": "x"}),
        ("r", "PUT", {"status": "paid"}, b""),
        ("r", "GET", None, {"status": "paid"}),
    )
    write, gone = find_history(URL, uses).changes
    assert write.is_recorded
    assert (gone.by and gone.by.seq, gone.is_recorded) == (2, False)
    assert gone.fields == [Field("$.note", "x", No.MISSING)]


def _asked(method: str, url: str, sent: Any, status: int, answered: Any) -> tuple[Any, Any]:
    body = json.dumps(sent).encode() if sent is not None else b""
    answer = make_response(answered if answered is not None else b"", status)
    return make_request(url, body, {}, method), answer


def _history(*rows: tuple[str, str, str, Any, int, Any], url: str = URL) -> History:
    """Find the history of what runs did in turn: each a run, a method, what is behind the URL, body, status and answer."""
    uses, counts = [], dict[str, int]()
    for at, (run, method, behind, sent, status, answered) in enumerate(rows):
        counts[run] = counts.get(run, 0) + 1
        request, answer = _asked(method, URL + behind, sent, status, answered)
        seen = make_exchange(
            counts[run], request=request, response=answer, started_ns=(at + 1) * 10**9
        )
        use = find_use(run, seen, url)
        assert may_be_use(method, URL + behind, url) or use is None
        uses += [use] if use is not None else []
    return find_history(url, uses)


_OPEN = {"id": 57, "status": "open"}
_PAID = {"id": 57, "status": "paid"}


@pytest.mark.parametrize(("status", "answered"), [(204, None), (200, {"deleted": True})])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_write_that_brings_back_what_another_run_deleted_is_stale(
    method: str, status: int, answered: Any
) -> None:
    """What is lost is that it was gone."""
    found = _history(
        ("x", "GET", "", None, 200, _OPEN),
        ("y", "DELETE", "", None, status, answered),
        ("x", method, "", _PAID, 200, _PAID),
    )
    (stale,) = found.stale
    assert (stale.place.run, stale.change.method, stale.lost) == ("x", "DELETE", ("$",))
    assert "    since then it was deleted by y 1" in list(render_history(found))


@pytest.mark.parametrize(
    "rows",
    [
        # Both delete it; it knows that it was gone; it deleted it itself.
        [("y", "DELETE", "", None, 204, None), ("x", "DELETE", "", None, 204, None)],
        [
            ("y", "DELETE", "", None, 204, None),
            ("x", "GET", "", None, 404, {"error": "none"}),
            ("x", "PUT", "", _PAID, 201, _PAID),
        ],
        [("x", "DELETE", "", None, 204, None), ("x", "PUT", "", _PAID, 201, _PAID)],
    ],
)
def test_a_write_that_knows_of_the_deletion_is_not_stale(rows: list[Any]) -> None:
    """Nor is one that changes nothing."""
    assert _history(("x", "GET", "", None, 200, _OPEN), *rows).stale == []


@pytest.mark.parametrize(
    ("method", "status", "answered", "by", "maybe"),
    [
        ("POST", 200, _PAID, 2, None),
        ("PUT", 200, _PAID, 2, None),
        # Its answer shows something else, or nothing, or came from a gateway.
        ("POST", 200, {"id": 9, "status": "paid"}, None, 2),
        ("POST", 204, None, None, 2),
        ("POST", 504, None, None, 2),
        ("POST", 409, {"error": "late"}, None, None),
    ],
)
def test_a_write_to_what_is_inside_may_change_the_resource(
    method: str, status: int, answered: Any, by: int | None, maybe: int | None
) -> None:
    """`/orders/57/pay` is not somebody whom no run recorded."""
    found = _history(
        ("x", "GET", "", None, 200, _OPEN),
        ("x", method, "/pay", {}, status, answered),
        ("x", "GET", "", None, 200, _PAID),
    )
    (change,) = found.changes
    got = (change.by and change.by.seq, change.maybe and change.maybe.seq)
    assert (got, found.writes, found.stale) == ((by, maybe), 0, [])


def test_a_write_to_what_is_inside_is_no_cause_of_what_came_after_a_read() -> None:
    """A read that still has the old state says that it changed nothing; nor is a write on a whole site one to its first page."""
    found = _history(
        ("x", "GET", "", None, 200, _OPEN),
        ("y", "POST", "/notes", {}, 201, {"id": 1}),
        ("x", "GET", "", None, 200, _OPEN),
        ("x", "GET", "", None, 200, _PAID),
    )
    assert [(one.by, one.maybe) for one in found.changes] == [(None, None)]
    assert found.runs == ["x"]
    assert not may_be_use("PUT", URL, "https://shop.test/")


def test_what_another_run_did_inside_makes_a_later_write_stale() -> None:
    """It was read before."""
    found = _history(
        ("x", "GET", "", None, 200, _OPEN),
        ("y", "POST", "/pay", {}, 200, _PAID),
        ("x", "PUT", "", _OPEN, 200, _OPEN),
    )
    (stale,) = found.stale
    assert (stale.change.by, stale.lost) == (stale.change.seen, ("$.status",))


@pytest.mark.parametrize("is_first_missing", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_deletion_that_was_only_accepted_is_made_where_a_read_shows_it(
    *, is_first_missing: bool, is_known: bool
) -> None:
    """Who reads it before did not read an old value; who finds it gone knows who deleted it."""
    rows: list[tuple[str, str, str, Any, int, Any]] = []
    if is_first_missing:
        rows += [("x", "GET", "", None, 404, {}), ("x", "PUT", "", _OPEN, 201, _OPEN)]
    if is_known:
        rows.append(("x", "GET", "", None, 200, _OPEN))
    found = _history(
        *rows,
        ("y", "DELETE", "", None, 202, {"job": 1}),
        ("x", "GET", "", None, 200, _OPEN),
        ("x", "GET", "", None, 200, _OPEN),
        ("x", "GET", "", None, 404, {}),
    )
    assert not found.changes[-1].is_recorded
    writers = [one.by.run for one in found.changes if one.by]
    assert (writers, found.state) == ([*(["x"] if is_first_missing else []), "y"], No.MISSING)
    assert (found.old_reads, found.stale, found.unanswered) == ([], [], 1)


def test_a_write_that_was_only_accepted_is_made_where_a_read_shows_it() -> None:
    """Its answer names a job, not what was written; a change of another comes between."""
    sent = {"id": 57, "status": "void"}
    found = _history(
        ("x", "GET", "", None, 200, _OPEN),
        ("y", "PUT", "", sent, 202, {"job": 1}),
        ("x", "PUT", "", _PAID, 200, _PAID),
        ("x", "GET", "", None, 200, sent),
    )
    assert [one.by.run if one.by else None for one in found.changes] == ["x", "y"]
    assert (found.old_reads, found.stale) == ([], [])


@pytest.mark.parametrize(
    ("known", "sent", "answered", "is_it"),
    [
        # An order of customer 57 that has number 57, too.
        ({"name": "Ann"}, {"sku": "A"}, {"sku": "A"}, False),
        ({"name": "Ann", "made": 1}, {"sku": "A"}, {"sku": "A", "name": "cup", "made": 2}, False),
        ({"status": "new"}, {"sku": "A"}, {"sku": "A", "status": "open"}, False),
        ({}, {"sku": "A"}, {"sku": "A"}, False),
        # What was asked for is noted in the resource.
        (
            {"total": 5, "status": "new"},
            {"why": "x"},
            {"total": 5, "status": "off", "why": "x"},
            True,
        ),
        ({"status": "new"}, {}, {"status": "off", "ended": 2}, True),
    ],
)
def test_what_is_made_inside_may_have_the_same_id(
    known: dict[str, Any], sent: Any, answered: dict[str, Any], *, is_it: bool
) -> None:
    """Collections count for themselves."""
    before = {"id": 57, **known}
    found = _history(
        ("x", "GET", "", None, 200, before),
        ("y", "POST", "/orders", sent, 201, {"id": 57, **answered}),
        ("x", "GET", "", None, 200, {"id": 57, **answered} if is_it else before),
        ("x", "PUT", "", before, 200, before),
    )
    assert [one.by.run for one in found.changes if one.by] == (["y", "x"] if is_it else ["x"])
    assert (found.old_reads, found.stale) == ([], [])


@pytest.mark.parametrize(("where", "is_it"), [("/orders/57", False), ("", True)])
def test_the_location_says_whether_something_was_made_inside(where: str, *, is_it: bool) -> None:
    """An answer that is like the resource may be another one."""
    asked = make_request(f"{URL}/orders", b"{}", {}, "POST")
    told = make_response({**_PAID}, 201, {"location": f"{URL}{where}"})
    exchanges = (
        make_exchange(1, request=make_request(URL, b"", {}, "GET"), response=make_response(_OPEN)),
        make_exchange(2, request=asked, response=told),
    )
    uses = [use for one in exchanges if (use := find_use("r", one, URL)) is not None]
    assert bool(find_history(URL, uses).changes) is is_it
