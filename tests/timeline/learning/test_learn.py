"""What two recordings of the same task teach."""

import base64
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from playhead.config import IgnoreRule, loads, parse_match
from playhead.config.schema import Classes
from playhead.store import RunInfo, Store
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.diff.request_differences import json_step
from playhead.tape.exchange import Message, MessageKind, Request, RequestClass, Secret
from playhead.tape.playback.websocket import is_same
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.recordings import Asked, ask, record_run
from playhead.timeline.learning.identifying_words import hash_environment
from playhead.timeline.learning.learn import (
    BROUGHT,
    FLOWS,
    LINKS,
    NOT_EVERYWHERE,
    PARTLY_SEARCHED,
    PARTY,
    UNPROVED,
    Lesson,
    learn,
    render_rules,
)
from playhead.timeline.learning.render_text import render_lesson

URL = "https://api.test/v1/runs"
REALTIME = "https://api.test/v1/realtime"
MODEL = Classes(inference=(parse_match("*://api.test/v*/runs*"), parse_match("*://api.test/v2/*")))
"""What is asked there is no effect, so its places outside of the question may be anything."""
Task = Callable[[Random], list[Asked]]
"""Gives what an agent asks; the chance is what differs from time to time."""


def new_id(chance: Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


@pytest.fixture
def study(tmp_path: Path) -> Any:
    """Record a task twice and compare."""

    def compare(task: Task, ignore: tuple[IgnoreRule, ...] = ()) -> Lesson:
        with Store.open(tmp_path / "store") as store:
            first = record_run(store, "one", task(Random(1)))
            second = record_run(store, "two", task(Random(2)))
            return learn(store, first, second, ignore, Redactor(b"a test"), classes=MODEL)

    return compare


def places(lesson: Lesson) -> list[tuple[str, str, bool]]:
    return [(one.place, one.value_class.value, one.proposed) for one in lesson.places]


def task_of_everything(chance: Random) -> list[Asked]:
    """Ids and times in every sort of place, and one change of content."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    return [
        ask({"request_id": new_id(chance), "text": "hello"}),
        ask({"meta": {"odd name's": 1, "request id": new_id(chance)}}),
        ask({"headers": [{"trace_id": new_id(chance), "n": n} for n in range(3)]}),
        (make_request(f"{URL}?page=1&no%20nce={chance.getrandbits(64):016x}"), make_response()),
        (make_request(URL, b"a=1&request+token=" + new_id(chance).encode(), form), make_response()),
        ask({"amount": 49 + chance.randrange(1000)}, url="https://api.test/v1/refunds"),
    ]


def test_rules_are_proposed_for_what_is_made_anew_and_for_nothing_else(study: Any) -> None:
    """Each place with its class; content is listed and left alone."""
    assert places(study(task_of_everything)) == [
        ("body $.amount", "content", False),
        ("body $.request_id", "id", True),
        ("body $.meta['request id']", "id", True),
        ("body $.headers[*].trace_id", "id", True),
        ("query no%20nce", "id", True),
        ("form request+token", "id", True),
    ]


def test_the_snippet_loads_and_makes_everything_match_but_content(
    study: Any, tmp_path: Path
) -> None:
    """Pasted into a configuration it does what was promised."""
    lesson = study(task_of_everything)
    pasted = loads("mode: playback\n" + render_rules(lesson.rules))
    assert pasted.ignore == lesson.rules
    rules = compile_rules(pasted.ignore)
    ones, others = task_of_everything(Random(1)), task_of_everything(Random(2))

    def key(request: Request) -> bytes:
        return fingerprint(canonical(request, RequestClass.INFERENCE, rules))

    matching = [key(one) == key(other) for (one, _), (other, _) in zip(ones, others, strict=True)]
    assert matching == [True] * 5 + [False]
    assert (lesson.aligned, lesson.same, lesson.would_match) == (6, 0, 5)


def test_what_an_earlier_answer_brought_needs_no_rule(study: Any) -> None:
    """A replay brings the recorded one again: in JSON, in a path, in a header of the answer, in a longer text."""

    def task(chance: Random) -> list[Asked]:
        thread, etag = f"thread_{chance.getrandbits(80):020x}", f"{chance.getrandbits(80):020x}"
        first = (
            make_request(URL, {}),
            make_response(
                b'{"text": "see\\n%s"}' % thread.encode(),
                headers=((b"ETag", b'"%s"' % etag.encode()),),
            ),
        )
        return [
            first,
            ask({"thread": thread, "note": f"go on with {thread} now"}),
            ask({}, url=f"https://api.test/v1/threads/{thread}/runs"),
            ask({"etag": etag, "nonce": new_id(chance)}),
        ]

    lesson = study(task)
    assert places(lesson) == [
        ("body $.thread", "id", False),
        ("body $.note", "content", False),
        ("body $.etag", "id", False),
        ("body $.nonce", "id", True),
        ("path", "content", False),
    ]
    told = {one.place: one.why for one in lesson.places}
    assert told == {
        "body $.thread": FLOWS,
        "body $.note": FLOWS,
        "body $.etag": FLOWS,
        "body $.nonce": "",
        "path": FLOWS,
    }
    assert [one.flows for one in lesson.places] == [1, 1, 1, 0, 1]


def test_what_an_earlier_answer_brought_needs_no_rule_with_something_written_beside_it(
    study: Any,
) -> None:
    """`v1-TOKEN` and `TOKEN_new` are no ids that the agent has drawn."""

    def task(chance: Random) -> list[Asked]:
        token = f"{chance.getrandbits(80):020x}"
        uuid = f"{token[:8]}-{token[8:12]}-4{token[12:15]}-8{token[15:18]}-{token[:12]}"
        first = (make_request(URL, {}), make_response(b'{"a": "%s is %s"}' % (token.encode(), uuid.encode())))  # fmt: skip
        return [first, ask({"a": f"v1-{token}", "b": f"{token}_new", "c": f"order_{uuid}"})]

    assert places(study(task)) == [
        ("body $.a", "id", False),
        ("body $.b", "random", False),
        ("body $.c", "id", False),
    ]


def test_what_a_later_answer_brings_does_not_flow(study: Any) -> None:
    """An answer that only repeats what was asked brought nothing."""

    def task(chance: Random) -> list[Asked]:
        own = new_id(chance)
        return [ask({"nonce": own}, {"echo": own})]

    assert places(study(task)) == [("body $.nonce", "id", True)]


def test_a_list_is_named_whole_only_where_all_its_items_are_alike(study: Any) -> None:
    """Else a mask over all messages would hide the messages."""

    def task(chance: Random) -> list[Asked]:
        said = ["be kind", new_id(chance), "refund this", new_id(chance)]
        return [ask({"meta": [{"nonce": text} for text in said]})]

    assert places(study(task)) == [
        ("body $.meta[1].nonce", "id", True),
        ("body $.meta[3].nonce", "id", True),
    ]


def test_content_beside_ids_is_told_apart(study: Any) -> None:
    """The same key in other items of a list."""

    def task(chance: Random) -> list[Asked]:
        said = [new_id(chance), f"word {chance.random() > 0.5} {chance.randrange(99)}"]
        return [ask({"nonce": said})]

    assert places(study(task)) == [
        ("body $.nonce[0]", "id", True),
        ("body $.nonce[1]", "content", False),
    ]


def test_an_index_that_stays_is_kept(study: Any) -> None:
    """`[*]` only where several items differ."""

    def task(chance: Random) -> list[Asked]:
        return [ask({"meta": [{"request": [{"nonce": new_id(chance)}] * 2}, {"request": []}]})]

    assert [one.place for one in study(task).places] == ["body $.meta[0].request[*].nonce"]


def test_a_counter_is_seen_over_several_requests(study: Any) -> None:
    """Numbers that count by one in both recordings, from another start, where the name says that they count."""

    def task(chance: Random) -> list[Asked]:
        start = chance.randrange(50)
        told = [{"seq": start + n, "n": start + n, "nights": start + n} for n in range(4)]
        return [ask({"text": f"step {n}" * 5, **one}) for n, one in enumerate(told)]

    assert places(study(task)) == [
        ("body $.seq", "counter", True),
        ("body $.n", "content", False),
        ("body $.nights", "content", False),
    ]


def test_pages_quantities_and_coordinates_are_content(study: Any) -> None:
    """A rule would serve another page, order or move without a remark; what is printed says why there is none."""

    def task(chance: Random) -> list[Asked]:
        step = chance.randrange(2, 90)
        asked: list[Asked] = []
        for n in range(3):
            items = [{"qty": (n + 1) * step}, {"qty": (n + 1) * step}]
            asked.append(ask(url=f"https://api.test/list?offset={n * step + 1}"))
            asked.append(ask({"items": items}, url="https://api.test/cart"))
            asked.append(ask({"x": n * step + 1}, url="https://api.test/move"))
            asked.append(ask(url=f"https://api.test/items?id={step + n}&page={step + n}"))
        return asked

    lesson = study(task)
    assert {(one.value_class.value, one.proposed) for one in lesson.places} == {("content", False)}
    text = render_lesson(lesson)
    assert "the two ask for something else" in text
    assert "made anew" in text


@pytest.mark.parametrize("path", ["/v1/pay", "/v1/chat/completions"])
def test_who_is_paid_is_content(study: Any, path: str) -> None:
    """However drawn its id looks; ids of the request itself are proposed as ever."""

    def task(chance: Random) -> list[Asked]:
        def account() -> str:
            return f"acct_1A2b3C{chance.randrange(10**6):06}Z"

        body = {"to": account(), "payee": {"id": new_id(chance)}, "request_id": new_id(chance)}
        own = {"model": "m", "messages": [], "meta": {"trace_id": new_id(chance)}}
        return [ask({**body, **own}, url=f"https://api.test{path}")]

    lesson = study(task)
    proposed = {one.place for one in lesson.places if one.proposed}
    assert proposed == {"body $.request_id", "body $.meta.trace_id"}
    assert {one.why for one in lesson.places if not one.proposed} == {PARTY}
    assert PARTY in render_lesson(lesson)


def test_what_says_which_request_is_meant_is_no_throw_away(study: Any) -> None:
    """A release has nothing but the id of one of two holds; an id of a session is in both, and a retry has that of its first."""

    def task(chance: Random) -> list[Asked]:
        one, other, paid, session = (new_id(chance) for _ in range(4))
        meta = {"session_id": session}
        site = "https://api.test/v1/"
        return [
            ask({"request_id": one, "amount": 7, "metadata": meta}, url=f"{site}hold"),
            ask({"request_id": other, "amount": 900, "metadata": meta}, url=f"{site}hold"),
            ask({"request_id": one}, url=f"{site}release"),
            *[ask({"idempotency_key": paid, "amount": 5}, url=f"{site}pay")] * 2,
            (make_request(f"{site}q?nonce={other}"), make_response()),
        ]

    lesson = study(task)
    proposed = {(one.match.rpartition("/")[2], one.place) for one in lesson.places if one.proposed}
    assert proposed == {("hold", "body $.metadata.session_id"), ("pay", "body $.idempotency_key")}
    assert {one.why for one in lesson.places if not one.proposed} == {LINKS}


DRAWN = "6f1c9d3e-2b7a-4c58-9e1f-0a3b5c7d9e1", "cm0gLXJmIC9ob21lL2FsaWNlL29sZC1kb2N1bWVudHM7"


@pytest.mark.parametrize(
    ("path", "place", "values"),
    [
        ("pay", "amount", ("1000000000000000000", "9000000000000000000")),
        ("pay", "sellAmount", (1250000000000000000000, 9875000000000000000000)),
        ("pay", "amount", (int(time.time()) - 60, int(time.time()) - 9)),
        ("pay", "amount_micros", (int(time.time()) + 90_000, int(time.time()) - 90_000)),
        ("pay", "at", (int(time.time()) + 90_000, int(time.time()) - 90_000)),
        ("pay", "pix_key", (f"{DRAWN[0]}1", f"{DRAWN[0]}2")),
        ("pay", "payment_method", ("pm_1PqRsT2eZvKYlo2CAbCd", "pm_1Nx81kQw92LmPq7R1Hg3")),
        ("cancel", "event_id", (f"{DRAWN[0]}1", f"{DRAWN[0]}2")),
        ("cancel", "id", (f"{DRAWN[0]}1", f"{DRAWN[0]}2")),
        ("approve", "payment_request_id", (f"{DRAWN[0]}1", f"{DRAWN[0]}2")),
        ("run", "script", (DRAWN[1], DRAWN[1][::-1])),
        ("chat/completions", "messages", (f"{DRAWN[0]}1", f"{DRAWN[0]}2")),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_how_a_value_looks_proves_nothing_where_it_may_be_content(
    path: str, place: str, values: tuple[object, object], study: Any
) -> None:
    """An amount may look like a time or a drawn number, and a document that is deleted like a drawn id."""

    def task(chance: Random) -> list[Asked]:
        return [
            ask(
                {place: values[chance.random() > 0.5], "model": "m"},
                url=f"https://api.test/v1/{path}",
            )
        ]

    lesson = study(task)
    assert places(lesson) == [(f"body ${json_step(place)}", "content", False)]
    assert lesson.rules == ()


def test_items_that_are_bought_in_turn_are_no_counter(study: Any) -> None:
    """An `id` numbers the messages of JSON-RPC alone."""

    def task(chance: Random) -> list[Asked]:
        start = chance.randrange(40)
        numbers = range(start, start + 3)
        return [ask({"id": n, "qty": 1}, url="https://api.test/v1/buy") for n in numbers]

    assert places(study(task)) == [("body $.id", "content", False)]


def test_a_place_of_an_effect_has_a_rule_where_it_is_proved(study: Any) -> None:
    """By its name, or since it is the time of its recording."""

    def task(chance: Random) -> list[Asked]:
        now = time.time() - chance.random()
        stamp = datetime.fromtimestamp(now, UTC).isoformat()
        own = {"nonce": new_id(chance), "meta": {"requestId": new_id(chance)}}
        return [ask({**own, "at": now, "sent": stamp}, url="https://api.test/v1/pay")]

    assert {(place, proposed) for place, _, proposed in places(study(task))} == {
        ("body $.nonce", True),
        ("body $.meta.requestId", True),
        ("body $.at", True),
        ("body $.sent", True),
    }


def test_a_name_that_is_shown_with_escapes_has_no_rule(study: Any) -> None:
    """A line end or a long name: the place that is shown is not the one that a rule would look for."""

    def task(chance: Random) -> list[Asked]:
        names = ("x\nnonce", f"{'x_' * 150}nonce", "x\\nonce", "\u00fc nonce")
        return [ask({"k": 1, **{name: new_id(chance) for name in names}})]

    lesson = study(task)
    told = {one.place[:15]: one.why for one in lesson.places}
    assert told == {
        "body $['x\\nnonc": UNPROVED,
        "body $.x_x_x_x_": UNPROVED,
        "body $['x\\nonce": "",
        "body $['\u00fc nonce": "",
    }


def test_what_no_rule_can_name_is_told(study: Any) -> None:
    """An id made by the agent in a path, and in the bytes of a body."""

    def task(chance: Random) -> list[Asked]:
        own = new_id(chance)
        raw = make_request("https://api.test/v2/raw", own.encode(), {"content-type": "text/plain"})
        return [ask({}, url=f"https://api.test/v1/runs/{own}"), (raw, make_response())]

    assert [(one.place, one.why) for one in study(task).places] == [
        ("path", "content"),
        ("body byte 0", UNPROVED),
    ]


def test_rules_there_are_already_leave_nothing_to_learn(study: Any) -> None:
    """Under its own proposal a pair is the same question."""
    lesson = study(task_of_everything)
    again = study(task_of_everything, lesson.rules)
    assert places(again) == [("body $.amount", "content", False)]
    assert (again.same, again.rules) == (5, ())


def test_a_pattern_that_takes_too_long_masks_nothing_here_either(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is bounded, as when requests are matched."""

    def task(chance: Random) -> list[Asked]:
        return [ask({"note": f"req-{chance.randrange(10**6)}"})]

    rule = IgnoreRule(parse_match("*://api.test"), regex=("req-[0-9]+",))
    assert study(task, (rule,)).same == 1
    monkeypatch.setattr("playhead.tape.canonical.regex_masks.LIMIT_S", 0.0)
    assert study(task, (rule,)).same == 0


def test_ids_in_paths_become_a_star_in_the_rule(study: Any) -> None:
    """One rule for all orders."""

    def task(chance: Random) -> list[Asked]:
        return [
            ask({"nonce": new_id(chance)}, url=f"https://api.test:8443/v1/orders/{n}/items")
            for n in (17, 18)
        ]

    lesson = study(task)
    assert [(one.match, one.seen) for one in lesson.places] == [
        ("POST https://api.test:8443/v1/orders/*/items", 2)
    ]
    assert (lesson.same, lesson.would_match) == (0, 2)


@pytest.mark.parametrize(
    ("path", "written"),
    [("/a;b=1/c", "/*/c"), ("/p/g%2fn/x", "/p/*/x"), ("/a//b", "/a/*/b"), ("/m/x%3A0", "/m/x%3A0")],
)
def test_a_path_that_no_pattern_may_spell_has_a_star_there(
    study: Any, path: str, written: str
) -> None:
    """So the rule that is proposed loads, and matches."""

    def task(chance: Random) -> list[Asked]:
        return [ask({"nonce": new_id(chance)}, url=f"https://api.test{path}")]

    lesson = study(task)
    assert [one.match for one in lesson.places] == [f"POST https://api.test{written}"]
    assert lesson.would_match == 1


def test_what_has_no_partner_is_listed(tmp_path: Path) -> None:
    """On either side."""
    with Store.open(tmp_path) as store:
        one = record_run(store, "one", [ask({"a": 1}), ask({}, url="https://api.test/only")])
        two = record_run(store, "two", [ask({"a": 1}), ask({}, url="https://other.test/else")])
        lesson = learn(store, one, two, (), Redactor(b"a test"))
    assert [row.seq for row in lesson.only_first] == [2]
    assert [row.url for row in lesson.only_second] == ["https://other.test/else"]
    text = render_lesson(lesson)
    assert "only in two:\n  seq 2  POST https://other.test/else" in text
    assert "No rule is needed" in text


def test_telemetry_and_secrets_are_no_lesson(tmp_path: Path) -> None:
    """What is telemetry by now matches by its path, a redacted query value by its kind."""
    classes = Classes(telemetry=(parse_match("https://api.test/v1/a"),))
    with Store.open(tmp_path) as store:

        def record(name: str, text: str) -> RunInfo:
            asked = [ask({"x": text}, url=f"https://api.test/v1/a?api_key={text}")]
            return record_run(store, name, asked, kind=RequestClass.READ)

        runs = record("one", "a1"), record("two", "b2")
        lesson = learn(store, *runs, (), Redactor(b"a test"), classes=classes)
        assert (lesson.requests, lesson.places) == ((0, 0), ())
        secret = [record_run(store, n, [ask({}, url=f"{URL}?api_key={n * 9}")]) for n in "ab"]
        assert learn(store, secret[0], secret[1], (), Redactor(b"a test")).same == 1


def ask_with_secret(chance: Random, form: str) -> Asked:
    """Ask something whose id redaction has replaced."""
    own = new_id(chance)
    body = json.dumps({"metadata": {"sessionId": form.format(own)}}).encode()
    secret = Secret("body", body.index(own.encode()), len(own), "generic")
    return replace(make_request(URL, body), secrets=(secret,)), make_response()


@pytest.mark.parametrize(
    ("form", "keys", "places_there"),
    [
        ("{}", ("a", "a"), [("body $.metadata.sessionId", "id", True)]),
        ("run as {} now", ("a", "a"), [("body $.metadata.sessionId", "content", False)]),
        ("{}", ("a", "b"), []),
        ("{}", ("", ""), []),
    ],
)
def test_values_that_redaction_replaced_are_compared(
    tmp_path: Path, form: str, keys: tuple[str, str], places_there: list[object]
) -> None:
    """As a playback does, by placeholders of one key; those of two keys cannot be told apart."""
    with Store.open(tmp_path) as store:
        runs = [
            record_run(store, f"run{seed}", [ask_with_secret(Random(seed), form)], placeholders=key)
            for seed, key in enumerate(keys)
        ]
        lesson = learn(store, runs[0], runs[1], (), Redactor(b"a test"), classes=MODEL)
    assert places(lesson) == places_there
    differs = not all(proposed for _, _, proposed in places(lesson))
    assert (lesson.same, lesson.would_match) == (int(not places_there), int(not differs))


def test_what_flows_matches_in_a_replay(study: Any) -> None:
    """It is counted as a match: the recorded answer brings the recorded value."""

    def task(chance: Random) -> list[Asked]:
        thread = f"thread_{chance.getrandbits(80):020x}"
        return [ask({}, {"id": thread}), ask({"thread": thread, "nonce": new_id(chance)})]

    lesson = study(task)
    assert (lesson.aligned, lesson.same, lesson.would_match) == (2, 1, 2)


def event_id(chance: Random) -> str:
    return f"event_{chance.getrandbits(96):024x}"


def sent(*said: Any) -> list[Message]:
    """Give messages: of the client, and in a list of the server; what is no bytes is JSON."""
    made = []
    for number, one in enumerate(said):
        told = one[0] if isinstance(one, list) else one
        kind = MessageKind.BINARY if isinstance(told, bytes) else MessageKind.TEXT
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        made.append(Message(1000 * number, not isinstance(one, list), kind, data, after=1))
    return made


@pytest.fixture
def overhear(tmp_path: Path) -> Any:
    """Record a WebSocket twice, with what else is asked, and compare."""

    def compare(
        says: Callable[[Random], list[Message]], *more: Asked, ignore: tuple[IgnoreRule, ...] = ()
    ) -> Lesson:
        with Store.open(tmp_path / "store") as store:
            first, second = (
                record_run(
                    store,
                    name,
                    [(make_request(REALTIME), make_response(status=101)), *more],
                    websockets={1: says(Random(seed))},
                )
                for name, seed in (("one", 1), ("two", 2))
            )
            return learn(store, first, second, ignore, Redactor(b"a test"))

    return compare


def test_places_in_messages_of_a_websocket_are_proposed(overhear: Any) -> None:
    """By their paths, for all its messages; with these rules the WebSockets are the same."""

    def says(chance: Random) -> list[Message]:
        return sent(
            {"type": "session.update", "request_id": event_id(chance)},
            [{"type": "session.updated", "request_id": event_id(chance)}],
            {
                "type": "go",
                "request_id": event_id(chance),
                "meta": [{"nonce": new_id(chance)}],
            },
            b"\x00\x01",
        )

    lesson = overhear(says, ask({"x": 1}))
    assert places(lesson) == [
        ("body $.request_id", "id", True),
        ("body $.meta[0].nonce", "id", True),
    ]
    assert {one.seen for one in lesson.places} == {1, 2}
    assert (lesson.aligned, lesson.same, lesson.would_match) == (2, 1, 2)
    (rule,) = lesson.rules
    assert rule.json == ("$.request_id", "$.meta[0].nonce")
    masks = compile_rules(lesson.rules).of(make_request(REALTIME)).masks
    for one, other in zip(says(Random(1)), says(Random(2)), strict=True):
        if one.from_client:
            assert is_same(one.kind, one.data, other.data, masks)


def test_all_places_of_a_message_are_found(overhear: Any) -> None:
    """However many there are."""
    names = [f"m{number:02}" for number in range(20)]

    def says(chance: Random) -> list[Message]:
        return sent({"meta": {name: {"nonce": event_id(chance)} for name in names}})

    assert [one.place for one in overhear(says).places] == [
        f"body $.meta.{name}.nonce" for name in names
    ]


def test_rules_there_are_already_make_conversations_the_same(overhear: Any) -> None:
    """Then there is nothing to learn."""
    ignore = (IgnoreRule(parse_match("https://api.test/*"), json=("$.id",)),)
    lesson = overhear(lambda chance: sent({"id": new_id(chance)}), ignore=ignore)
    assert (lesson.aligned, lesson.same, lesson.places) == (1, 1, ())


def test_what_the_server_said_before_needs_no_rule(overhear: Any) -> None:
    """Its value comes back in a replay; what it says afterwards, or only echoes, does not flow."""

    def says(chance: Random) -> list[Message]:
        item, own = event_id(chance), event_id(chance)
        return sent([{"item": item}], {"about": item, "nonce": own}, [{"echo": own}])

    lesson = overhear(says)
    assert [(one.place, one.proposed, one.why) for one in lesson.places] == [
        ("body $.about", False, FLOWS),
        ("body $.nonce", True, ""),
    ]


def test_content_and_kinds_and_numbers_of_messages_are_listed_and_left_alone(overhear: Any) -> None:
    """A message more, one of another kind, other bytes, another word."""

    def says(chance: Random) -> list[Message]:
        first = chance.random() < 0.5
        more = [{"and": "more"}] if first else []
        word, data = ("one", b"\x00") if first else ("two", b"\x01")
        return sent({"word": word}, data, "text" if first else b"text", *more)

    lesson = overhear(says)
    assert {one.place.partition(" byte")[0] for one in lesson.places} == {
        "body $.word",
        "body",
        "message",
    }
    assert {(one.value_class.value, one.proposed) for one in lesson.places} == {("content", False)}
    assert (lesson.same, lesson.would_match) == (0, 0)


def test_the_lesson_is_printed_with_its_rules(study: Any) -> None:
    """For people: the snippet as it is pasted, and what it will do."""
    text = render_lesson(study(task_of_everything))
    assert '  - match: "POST https://api.test/v1/runs"\n' in text
    assert "Nothing was changed." in text
    assert all(line.isprintable() for line in text.splitlines())


def test_progress_is_told_up_to_the_end(tmp_path: Path) -> None:
    """Both tapes are one piece of work."""
    told: list[tuple[int, int]] = []
    with Store.open(tmp_path) as store:
        runs = [record_run(store, name, [ask({"n": n}) for n in range(3)]) for name in "ab"]
        learn(store, runs[0], runs[1], (), Redactor(b"a test"), lambda *at: told.append(at))
    assert told == [(n, 6) for n in range(1, 7)]


# ---- a rule needs two proofs, for each request that it would apply to ------------------------


def test_what_is_read_is_content_whatever_its_id_looks_like(study: Any) -> None:
    """A query, a header field and a body: the name has to say that each request has its own."""

    def task(chance: Random) -> list[Asked]:
        own = new_id(chance)
        body = {"variables": {"payroll_run_id": own, "refund_request_id": own}, "doc": own}
        asked = [ask(url=f"https://api.test/v2/orders?{key}={own}") for key in ("order_id", "q")]
        request, answer = ask(body, url="https://api.test/v2/graphql")
        return [*asked, (replace(request, headers=((b"x-order-id", own.encode()),)), answer)]

    lesson = study(task)
    assert {one.why for one in lesson.places} == {UNPROVED}
    assert lesson.rules == ()


def _with_header(name: bytes, value: str) -> Asked:
    request, answer = ask({}, url="https://api.test/v2/a")
    return replace(request, headers=((name, value.encode()),)), answer


@pytest.mark.parametrize(
    "where", ["command", "environment", "file", "prompt", "answer", "a later prompt"]
)
def test_what_was_there_before_is_not_made_anew(where: str, tmp_path: Path) -> None:
    """Whatever its place is called."""
    with Store.open(tmp_path) as store:
        runs = []
        for seed in (1, 2):
            own = new_id(Random(seed))
            prompt = ask({"messages": [{"content": f"look up {own}"}]})
            before = [prompt]
            if where == "answer":
                before = [ask({}, {"ids": [own.replace("-", "").upper()]})]
            noted = {
                "child_exit": 0,
                "command": ["agent", f"--for={own}" if where == "command" else "x"],
                "environment": hash_environment(
                    [own if where == "environment" else "x"], Redactor(b"a test").hash_word
                ),
                "files": {f"out/{own}.txt": "0"} if where == "file" else {},
            }
            asked = [
                *(before if where in ("prompt", "answer") else ()),
                _with_header(b"x-session-id", own),
                *([prompt] if where == "a later prompt" else ()),
            ]
            runs.append(record_run(store, f"run{seed}", asked, noted=noted))
        redactor = Redactor(b"a test")
        lesson = learn(
            store, runs[0], runs[1], (), redactor, classes=MODEL, hashed=redactor.hash_word
        )
    (place,) = [one for one in lesson.places if one.place == "header x-session-id"]
    assert (place.proposed, place.why) == (False, BROUGHT)


def test_what_an_answer_only_repeats_stays_the_clients_own(study: Any) -> None:
    """A session id is in each request, and an API may repeat it."""

    def task(chance: Random) -> list[Asked]:
        request, _ = _with_header(b"x-session-id", own := new_id(chance))
        return [(request, make_response(own.encode()))] * 2

    (place,) = study(task).places
    assert (place.place, place.proposed) == ("header x-session-id", True)


def test_what_a_model_is_asked_after_an_answer_repeated_it_stays_the_clients_own(
    tmp_path: Path,
) -> None:
    """The result of a tool is in the next prompt."""
    with Store.open(tmp_path) as store:
        runs = []
        for seed in (1, 2):
            own = new_id(Random(seed))
            sent = _with_header(b"x-session-id", own)[0], make_response(own.encode())
            prompt = ask({"messages": [{"content": f"the tool said {own}"}]})
            runs.append(record_run(store, f"run{seed}", [sent, prompt]))
        lesson = learn(store, runs[0], runs[1], (), Redactor(b"a test"), classes=MODEL)
    (place,) = [one for one in lesson.places if one.place == "header x-session-id"]
    assert place.proposed


def test_one_word_of_an_answer_rules_a_place_out(study: Any) -> None:
    """Also if the other requests have values of the client's own there."""

    def task(chance: Random) -> list[Asked]:
        refs = [f"{chance.getrandbits(96):024x}" for _ in range(2)]
        asked = [ask({}, {"refs": refs}, url="https://api.test/v2/list")]
        asked += [ask(url=f"https://api.test/v2/balance?nonce={ref}") for ref in refs]
        return [*asked, ask(url=f"https://api.test/v2/balance?nonce={new_id(chance)}")]

    lesson = study(task)
    assert lesson.rules == ()
    assert {one.why for one in lesson.places} == {BROUGHT}


def test_a_name_with_a_digit_is_another_endpoint(study: Any) -> None:
    """What is proved of `log1` is not proved of `charge2`."""

    def task(chance: Random) -> list[Asked]:
        nonce = f"{chance.getrandbits(96):024x}"
        asked = [ask({}, {"nonce": nonce}, url="https://api.test/v2/vault")]
        asked.append(ask({"nonce": nonce, "amount": 5}, url="https://api.test/charge2"))
        return [*asked, ask({"nonce": new_id(chance)}, url="https://api.test/log1")]

    assert [rule.match.text for rule in study(task).rules] == ["POST https://api.test/log1"]


def test_a_value_that_is_the_same_in_both_recordings_is_not_made_anew(study: Any) -> None:
    """The rule would apply to that request, too."""

    def task(chance: Random) -> list[Asked]:
        own = [new_id(chance), new_id(Random(7))]
        return [ask({"nonce": one, "n": n}) for n, one in enumerate(own)]

    assert [one.why for one in study(task).places] == [NOT_EVERYWHERE]


def test_what_a_model_chose_piece_by_piece_is_not_the_clients_own(study: Any) -> None:
    """The arguments of a tool call come in events of a few characters; another order of the ids is another deed."""

    def task(chance: Random) -> list[Asked]:
        ids = [new_id(chance) for _ in range(2)]
        told = json.dumps(dict(zip(("approve", "deny"), ids, strict=True)))
        calls = ({"function": {"arguments": told[at : at + 5]}} for at in range(0, len(told), 5))
        events = (
            json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0} | call]}}]})
            for call in calls
        )
        body = "".join(f"data: {one}\n\n" for one in events).encode()
        asked = make_request("https://api.openai.com/v1/chat/completions", {"stream": True})
        headers = ((b"content-type", b"text/event-stream"),)
        decisions = [ask({"request_id": one}, url="https://pay.test/decisions") for one in ids]
        return [(asked, make_response(body, headers=headers)), *decisions]

    lesson = study(task)
    assert [(one.flows, one.why) for one in lesson.places] == [(2, FLOWS)]
    assert not lesson.rules


def test_nothing_is_proposed_after_an_answer_that_was_not_searched(study: Any) -> None:
    """It may have had the value."""
    unknown = make_response(b"\x80\x81", headers=((b"content-encoding", b"aes128gcm"),))

    def task(chance: Random) -> list[Asked]:
        return [(make_request(URL, {}), unknown), ask({"request_id": new_id(chance)})]

    assert [one.why for one in study(task).places] == [PARTLY_SEARCHED]


def test_values_of_queries_and_forms_are_judged_decoded(study: Any) -> None:
    """As clients send them: percent-encoded, with a plus for a blank."""

    def task(chance: Random) -> list[Asked]:
        now = datetime.now(UTC)
        nonce = {"nonce": base64.b64encode(chance.randbytes(16)).decode()}
        form = {"content-type": "application/x-www-form-urlencoded"}
        stamp = urlencode({"timestamp": now.isoformat(), "a": 1})
        return [
            (make_request(f"{URL}/1?{stamp}"), make_response()),
            (make_request(f"{URL}/2", urlencode(nonce).encode(), form), make_response()),
            (make_request(f"{URL}/3?order={quote(new_id(chance))}"), make_response()),
        ]

    found = study(task)
    proposed = {one.place for one in found.places if one.proposed}
    assert proposed == {"query timestamp", "form nonce"}
    assert [(rule.query, rule.form) for rule in found.rules] == [
        (("timestamp",), ()),
        ((), ("nonce",)),
    ]
