"""What a run did that its tape does not hold."""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.diff import request_differences
from playhead.tape.diff.divergence_types import ABSENT, MAX_SHOWN, Difference
from playhead.tape.diff.nearest import distance, nearest
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import BODY, Headers, Request, RequestClass, Secret, Seq, Spilled
from playhead.tests.support.mutations import is_within

RULES = compile_rules((IgnoreRule(parse_match("*://*"), json=("$.ts",), form=("nonce",)),))
FORM = (b"content-type", b"application/x-www-form-urlencoded")


def ask(
    body: object = b"",
    target: str = "/v1/chat/completions",
    headers: Headers = ((b"content-type", b"application/json"),),
    **fields: Any,
) -> Request:
    """Give a request; a body that is no bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request("POST", "https", "api.example.com", 443, target, "HTTP/1.1", headers, raw)
    return replace(request, **fields)


CHAT: dict[str, Any] = {
    "model": "m-1",
    "temperature": 0.5,
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "refund ch_1"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "refund"}]},
        {"role": "tool", "content": '{"ok": true}', "tool_call_id": "c1"},
    ],
    "tools": [{"name": "refund", "parameters": {"amount": {"type": "integer"}}}],
    "ts": 1,
}


def chat(change: Callable[[dict[str, Any]], object] = lambda body: None) -> Request:
    """Give the conversation with one change."""
    body = copy.deepcopy(CHAT)
    change(body)
    return ask(body)


PLACES = [
    # The head
    (ask(), ask(method="PUT"), "method", "POST", "PUT"),
    (ask(), ask(scheme="http"), "scheme", "https", "http"),
    (ask(), ask(port=1), "host", "api.example.com:443", "api.example.com:1"),
    (ask(target="/v1/a"), ask(target="/v1/b"), "path", "/v1/a", "/v1/b"),
    (ask(target="/?limit=1&a=2"), ask(target="/?a=2&limit=5"), "query limit", "1", "5"),
    (ask(target="/?a=2"), ask(target="/?a=2&limit=5"), "query limit", ABSENT, "5"),
    (ask(target="/?a=2&a=1"), ask(target="/?a=1"), "query a", "2", ABSENT),
    (ask(target="/?a=1&a=2"), ask(target="/?a=1&a=3&a=2"), "query a", ABSENT, "3"),
    (ask(target="/?a="), ask(target="/?a"), "query a", "", "(no value)"),
    (ask(target="/?token=a"), ask(target="/"), "query token", "(token)", ABSENT),
    (
        replace(ask(), trailers=((b"X-State", b"complete"),)),
        replace(ask(), trailers=((b"x-state", b"aborted"),)),
        "trailer x-state",
        "complete",
        "aborted",
    ),
    (
        ask(headers=((b"Accept", b"a/b"),)),
        ask(headers=((b"accept", b"c/d"),)),
        "header accept",
        "a/b",
        "c/d",
    ),
    # JSON
    (chat(), chat(lambda b: b.update(model="m-2")), "body $.model", '"m-1"', '"m-2"'),
    (chat(), chat(lambda b: b.update(temperature=1)), "body $.temperature", "0.5", "1"),
    (chat(), chat(lambda b: b.pop("temperature")), "body $.temperature", "0.5", ABSENT),
    (chat(), chat(lambda b: b.update(seed=7)), "body $.seed", ABSENT, "7"),
    (
        chat(),
        chat(lambda b: b["messages"][1].update(content="refund ch_2")),
        "body $.messages[1].content",
        '"refund ch_1"',
        '"refund ch_2"',
    ),
    (
        chat(),
        chat(lambda b: b["tools"][0]["parameters"]["amount"].update(type="number")),
        "body $.tools[0].parameters.amount.type",
        '"integer"',
        '"number"',
    ),
    (
        chat(),
        chat(lambda b: b["messages"].pop(0)),
        "body $.messages[0]",
        '{"role": "system", "content": "be kind"}',
        ABSENT,
    ),
    (
        chat(),
        chat(lambda b: b["messages"].insert(2, "x")),
        "body $.messages[2]",
        ABSENT,
        '"x"',
    ),
    (chat(), chat(lambda b: b["messages"].append(1)), "body $.messages[4]", ABSENT, "1"),
    (chat(), chat(lambda b: b.pop("ts")), "body $.ts", "(masked)", ABSENT),
    (ask({"a b": 1}), ask({"a b": 2}), "body $['a b']", "1", "2"),
    (ask({"a": [1, {"b": 1.0}]}), ask({"a": [1, {"b": 2}]}), "body $.a[1].b", "1.0", "2"),
    (ask(b'{"a": 1, "a": 2}'), ask(b'{"a": 2}'), "body $.a", "[1, 2]", "2"),
    (ask(b"1"), ask(b"2"), "body $", "1", "2"),
    (ask(b'{"a": "\x7f\\u001b[2J"}'), ask(b'{"a": ""}'), "body $.a", '"\\x7f\\u001b[2J"', '""'),
    # Other bodies
    (
        ask(b"amount=1&to=x", headers=(FORM,)),
        ask(b"amount=2&to=x", headers=(FORM,)),
        "form amount",
        "1",
        "2",
    ),
    (
        ask(b"nonce=1&to=x", headers=(FORM,)),
        ask(b"to=x", headers=(FORM,)),
        "form nonce",
        "(masked)",
        ABSENT,
    ),
    (ask(b"a=1&b=2", headers=(FORM,)), ask(b"b=2&a=1", headers=(FORM,)), "form", "a&b", "b&a"),
    (
        ask(b"\x00abc", headers=()),
        ask(b"\x00abd", headers=()),
        "body byte 3",
        "\\x00abc",
        "\\x00abd",
    ),
    (
        replace(ask({"a": "HIDDENabcd"}), secrets=(Secret(BODY, 7, 6, "secret"),)),
        replace(ask({"a": "HIDDENabce"}), secrets=(Secret(BODY, 7, 6, "secret"),)),
        "body $.a",
        '"(secret)abcd"',
        '"(secret)abce"',
    ),
    (ask({"a": 1}), ask(b""), "body", '{"a": 1}', ABSENT),
    (ask(b"{a"), ask(b"{b"), "body byte 1", "{a", "{b"),
    (ask(b'{"a"}'), ask(b'{"a":1}'), "body byte 4", '{"a"}', '{"a":1}'),
    (
        ask(b"--b--", headers=((b"content-type", b"multipart/mixed"),)),
        ask(b"--b--", headers=((b"content-type", b"multipart/mixed; boundary=b"),)),
        "body",
        "(as bytes)",
        "(as multipart)",
    ),
]


@pytest.mark.parametrize(("recorded", "asked", "place", "old", "new"), PLACES)
def test_the_first_difference_is_named(
    recorded: Request, asked: Request, place: str, old: str, new: str
) -> None:
    """A single change is one difference, at its place, with both values."""
    names = frozenset({"token"})
    assert differences(recorded, asked, RULES, redacted_query=names) == (
        Difference(place, old, new),
    )


def test_a_part_of_an_upload_is_named() -> None:
    """Which part of a multipart body differs is said, whatever the boundaries."""

    def upload(boundary: bytes, content: bytes) -> Request:
        part = b"--%b\r\nContent-Disposition: form-data; name=a\r\n\r\n" % boundary
        body = part + b"same\r\n" + part + content + b"\r\n--" + boundary + b"--\r\n"
        return ask(body, headers=((b"content-type", b"multipart/form-data; boundary=" + boundary),))

    (found,) = differences(upload(b"one", b"old"), upload(b"another", b"new"), RULES)
    assert found.place == "body part 2"
    assert "old" in found.recorded
    assert "new" in found.asked


def test_differences_stand_in_the_order_of_the_request() -> None:
    """First what comes first: head, then body as it was recorded; no more than asked for."""
    recorded = ask({"z": 1, "a": 1, "m": [1, 2]}, "/a?x=1")
    asked = ask({"b": 1, "a": 2, "z": 2, "m": [3, 4]}, "/b?x=2", method="PUT")
    found = [one.place for one in differences(recorded, asked, RULES)]
    expected = ["method", "path", "query x", "body $.z", "body $.a", "body $.m[0]", "body $.m[1]"]
    assert found == [*expected, "body $.b"]
    assert [one.place for one in differences(recorded, asked, RULES, limit=2)] == expected[:2]


def test_the_same_question_has_no_differences() -> None:
    """What does not count is not reported."""
    other = replace(chat(lambda b: b.update(ts=2)), http_version="HTTP/2.0", headers=())
    assert differences(chat(), replace(other, headers=chat().headers), RULES) == ()
    telemetry = RequestClass.TELEMETRY
    assert differences(ask(b"1"), ask(b"2"), RULES, telemetry) == ()


def test_a_long_value_is_shown_where_it_differs() -> None:
    """The first character that differs is among the two hundred shown."""
    one, other = ("x" * 5000 + word + "y" * 5000 for word in ("OLD", "NEW"))
    (found,) = differences(ask({"a": one}), ask({"a": other}), RULES)
    assert "OLD" in found.recorded
    assert "NEW" in found.asked
    assert max(len(found.recorded), len(found.asked)) <= MAX_SHOWN


def test_bodies_that_lie_in_files_are_told_apart_by_size_and_hash() -> None:
    """Neither is at hand to be compared, but neither is absent."""
    one, other = (
        ask(b"", spilled=Spilled(b"?" * 32, 9_000_000 + number, bytes([number]) * 32))
        for number in (1, 2)
    )
    (found,) = differences(one, other, RULES)
    assert found.place == "body"
    assert found.recorded == "(9000001 bytes, BLAKE3 0101010101010101)"
    assert found.asked == "(9000002 bytes, BLAKE3 0202020202020202)"
    (found,) = differences(one, ask(b""), RULES)
    assert (found.place, found.asked) == ("body", ABSENT)
    (found,) = differences(ask({"a": 1}), one, RULES)
    assert found.recorded.startswith("(8 bytes, BLAKE3 ")


@pytest.mark.parametrize("depth", [300, 5000, 200_000])
def test_a_deep_body_still_has_a_difference(depth: int) -> None:
    """Depth costs precision and nothing else."""
    one, other = (b"[" * depth + value + b"]" * depth for value in (b"1", b"2"))
    assert len(differences(ask(one), ask(other), RULES)) == 1
    assert distance(ask(one), ask(other)) > 0


def test_a_query_of_many_names_is_compared_name_by_name_once() -> None:
    """The last of 60,000 parameters is found before a client would give up: the work grows with their number alone."""
    query = "/?" + "&".join(f"p{number}=1" for number in range(60_000))
    (found,) = differences(ask(b"", query), ask(b"", query + "2"), RULES)
    assert found == Difference("query p59999", "1", "12")


def test_paths_are_written_for_what_differs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may be megabytes long, and stand above thousands of values that are the same."""
    written: list[str] = []

    def step(name: str) -> str:
        written.append(name)
        return f".{name}"

    monkeypatch.setattr(request_differences, "json_step", step)
    one, other = ({"all": {**dict.fromkeys(map(str, range(50)), 1), "x": x}} for x in (1, 2))
    (found,) = differences(ask(one), ask(other), RULES)
    assert found.place == "body $.all.x"
    assert written == ["all", "x"]


def _places(value: Any, path: str = "$") -> list[tuple[Any, Any, str]]:
    found: list[tuple[Any, Any, str]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        place = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
        found.append((value, key, place))
        if isinstance(item, dict | list):
            found += _places(item, place)
    return found


def test_every_mutation_is_seen_and_named() -> None:
    """A change of one place is never the same question, and its path is the one named."""
    rng = random.Random(4)
    wrong = 0
    for _ in range(1000):
        body = copy.deepcopy(CHAT)
        del body["ts"]
        recorded = ask(body)
        changed = copy.deepcopy(body)
        holder, key, place = rng.choice(_places(changed))
        if rng.random() < 0.3:
            del holder[key]
        elif isinstance(holder[key], str):
            at = rng.randrange(len(holder[key]) + 1)
            holder[key] = holder[key][:at] + "~" + holder[key][at:]
        else:
            holder[key] = {"changed": rng.random()}
        asked = ask(changed)
        old, new = (
            fingerprint(canonical(one, RequestClass.EFFECT, RULES)) for one in (recorded, asked)
        )
        assert old != new
        first = differences(recorded, asked, RULES)[0].place
        wrong += not is_within(first, f"body {place}")
    assert wrong <= 10


_bodies = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["a", "b", "\x00", "'\x1b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab'"), inner),
    max_leaves=8,
)
_requests = st.builds(
    ask,
    _bodies | st.binary(max_size=9),
    st.sampled_from(["/", "/a", "/a?x=1", "/a?x=2&y", "/b/1", "/b/2", "/?a=1&b=2"]),
    st.sampled_from([(), (FORM,), ((b"content-type", b"application/json"),)]),
    method=st.sampled_from(["GET", "POST"]),
    host=st.sampled_from(["a", "b"]),
)


@given(_requests, _requests)
def test_there_is_a_difference_exactly_where_fingerprints_differ(
    recorded: Request, asked: Request
) -> None:
    """Every refusal has a reason to give, and what is shown is one printable line."""
    of = RequestClass.EFFECT
    same = canonical(recorded, of, RULES) == canonical(asked, of, RULES)
    found = differences(recorded, asked, RULES)
    assert (found == ()) is same
    assert (distance(recorded, asked) == 0) or not same
    for one in found:
        shown = one.place + one.recorded + one.asked
        assert shown.isprintable()


def history(length: int, **fields: Any) -> Request:
    """Give a conversation that has come so far."""
    messages = [{"role": "user", "content": f"turn {n} " + "word " * n} for n in range(length)]
    return ask({"model": "m", "messages": messages, **fields})


TAPE = [
    ask(b"", "/v1/models", (), method="GET"),
    history(2),
    history(4),
    history(6),
    ask({"amount": 5}, "/v1/refunds/re_1", host="pay.example.com"),
    ask({"amount": 5, "to": "x"}, "/v1/refunds", host="pay.example.com"),
    ask({"amount": 9, "to": "x"}, "/v1/refunds", host="pay.example.com"),
    ask(b"", "/v1/items?limit=10&after=a", (), method="GET"),
    ask(b"", "/v1/items?limit=10&after=b", (), method="GET"),
]

NEAREST = [
    # Changed
    (history(4, temperature=1), 3),
    (replace(history(4), body=history(4).body.replace(b"turn 1", b"turn one")), 3),
    (replace(history(6), body=history(6).body.replace(b"turn 0", b"turn zero")), 4),
    (history(40), 4),
    (ask({"amount": 9, "to": "y"}, "/v1/refunds", host="pay.example.com"), 7),
    (ask(b"", "/v1/items?limit=20&after=b", (), method="GET"), 9),
    # Another id, another host, another method
    (ask({"amount": 5}, "/v1/refunds/re_22", host="pay.example.com"), 5),
    (replace(history(4), host="other.example.com"), 3),
    (ask({"amount": 9, "to": "x"}, "/v1/refunds", host="pay.example.com", method="PUT"), 7),
    # Not near
    (ask(b"", "/nothing/like/it", (), host="elsewhere.example.com"), None),
]


@pytest.mark.parametrize(("asked", "seq"), NEAREST)
def test_the_nearest_is_what_a_person_would_say(asked: Request, seq: int | None) -> None:
    """Same endpoint first, then the least changed; a stranger is near to nothing."""
    found = nearest(asked, [(Seq(n + 1), one) for n, one in enumerate(TAPE)])
    assert (found and found[0]) == seq


def test_of_equally_near_ones_the_first_is_taken() -> None:
    """Repeated requests are told by the first of them."""
    tape = [(Seq(n), history(3)) for n in (4, 5, 6)]
    assert nearest(history(3, seed=1), tape) == tape[0]
    assert nearest(history(3), []) is None


def test_distance_orders_by_endpoint_first() -> None:
    """A changed body on the same endpoint is nearer than the same body elsewhere."""
    asked = history(4)
    near = [
        history(4),
        history(4, seed=1),
        history(3),
        ask({"x": 1}),
        replace(asked, host="other.example.com"),
        replace(asked, target="/v1/other"),
        replace(asked, host="other.example.com", target="/x", method="GET"),
    ]
    found = [distance(one, asked) for one in near]
    assert found[0] == 0
    assert found == sorted(found)
    assert len(set(found)) == len(found)
