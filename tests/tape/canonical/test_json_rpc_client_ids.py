"""JSON-RPC: what counts of a request, and where ids stand in answers."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.canonical.json_rpc_client_ids import find_names, find_places
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import Request, RequestClass

RULES = compile_rules()


def post(body: str, content_type: bytes = b"application/json") -> Request:
    """Give a POST of a body."""
    headers = ((b"content-type", content_type),)
    return Request("POST", "https", "mcp.test", 443, "/mcp", "HTTP/1.1", headers, body.encode())


def print_of(body: str, content_type: bytes = b"application/json") -> bytes:
    return fingerprint(canonical(post(body, content_type), RequestClass.EFFECT, RULES))


def call(id: str, more: str = "") -> str:  # Its name in JSON-RPC.
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": "m"{more}}}'


SAME = [
    (call("1"), call("2")),
    (call("1"), call('"a"')),
    (call('"a:-b"'), call("-17")),
    (call("1.5e3"), call("2")),
    (call(f'"{"a" * 256}"'), call(f'"{"\\u00e9" * 256}"')),
    (call("1" * 256), call(f"-{'1' * 255}")),
    # Written with repeated keys, which only the exact reader takes
    (call("1", ', "x": 1, "x": 1'), call("2", ', "x": 1, "x": 1')),
    (call("1", ', "x": NaN'), call('"b"', ', "x": NaN')),
    # Progress
    (
        call("1", ', "params": {"_meta": {"progressToken": 1}, "x": 1}'),
        call("2", ', "params": {"_meta": {"progressToken": "t"}, "x": 1}'),
    ),
    (
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}',
    ),
    # Batches
    (f"[{call('1')}, {call('2')}]", f"[{call('2')},{call('1')}]"),
]

TOKEN = ', "params": {"_meta": {"progressToken": %d}}'

DIFFERENT = [
    (call("1"), call("1", ', "params": {}')),
    (call("1").replace('"m"', '"n"'), call("1")),
    # That there is an id, or a token, counts: a notification is no request
    (call("1"), '{"jsonrpc": "2.0", "method": "m"}'),
    (call("1"), call("null")),
    (call("1", ', "params": {"_meta": {"progressToken": 1}}'), call("1", ', "params": {"_meta": {}}')),
    # What only looks like an id
    (call("[1]"), call("[2]")),
    (call("true"), call("false")),
    (call(f'"{"a" * 257}"'), call(f'"{"b" * 257}"')),
    (call("1" * 257), call("2" * 257)),
    (call("1" * 5000), call("2" * 5000)),
    (call("1", ', "params": {"id": 1}'), call("1", ', "params": {"id": 2}')),
    (call("1", ', "params": {"requestId": 1}'), call("1", ', "params": {"requestId": 2}')),
    (call("1", ', "params": {"_meta": 1}'), call("1", ', "params": {"_meta": 2}')),
    # What only looks like JSON-RPC
    (call("1").replace("2.0", "1.0"), call("2").replace("2.0", "1.0")),
    (call("1").replace('"2.0"', "2.0"), call("2").replace('"2.0"', "2.0")),
    ('{"id": 1, "method": "m"}', '{"id": 2, "method": "m"}'),
    (f"[{call('1')}, 1]", f"[{call('2')}, 1]"),
    (f"[[{call('1')}]]", f"[[{call('2')}]]"),
    # An answer to the server names an id that the server made
    ('{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":2,"result":{}}'),
    # The order and number of a batch
    (f"[{call('1')}]", call("1")),
    (f"[{call('1')}]", f"[{call('1')}, {call('2')}]"),
    # Two calls of a batch that share an id, or a progress token
    (f"[{call('1')}, {call('2')}]", f"[{call('1')}, {call('1')}]"),
    (f"[{call('1')}, {call('1')}]", f"[{call('2')}, {call('2')}]"),
    (f"[{call('1', TOKEN % 1)}, {call('2', TOKEN % 2)}]", f"[{call('1', TOKEN % 1)}, {call('2', TOKEN % 1)}]"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_an_id_that_the_client_gives_does_not_count(one: str, other: str) -> None:
    """Calls may be numbered as they come."""
    assert print_of(one) == print_of(other)
    assert print_of(one, b"text/plain") != print_of(other, b"text/plain")
    assert not differences(post(one), post(other), RULES)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_everything_else_of_a_message_counts(one: str, other: str) -> None:
    """When in doubt they are two questions."""
    assert print_of(one) != print_of(other)
    assert differences(post(one), post(other), RULES)


def test_a_difference_is_never_that_of_the_id() -> None:
    """A person is told what counts."""
    found = differences(
        post(call("1", ', "params": {"a": 1}')), post(call("2", ', "params": {"a": 2}')), RULES
    )
    assert [one.place for one in found] == ["body $.params.a"]


_literals = st.integers().map(str) | st.text(max_size=8).map(json.dumps)


@given(_literals, _literals, _literals, _literals)
def test_names_are_found_as_they_are_written(one: str, two: str, three: str, four: str) -> None:
    """By the recorded id as a value, the bytes that the client sent."""
    more = ', "params": {"_meta": {"progressToken": %s}}'
    names = find_names(call(one, more % two).encode(), call(three, more % four).encode())
    assert names is not None
    assert list(names.ids.values()) == [three.encode()]
    assert list(names.tokens.values()) == [four.encode()]


@pytest.mark.parametrize("body", ["", "{", "1", "[]", "[1]", '{"id": 1}', "[" * 100_000])
def test_what_is_no_json_rpc_has_no_names(body: str) -> None:
    """Nothing raises, and nothing is rewritten."""
    assert not any(find_names(body.encode(), body.encode()) or ())


ANSWERS = [
    ('{"jsonrpc":"2.0","id":7,"result":{"id":7}}', ["7"]),
    (' { "result" : 1 , "id" : "a" , "jsonrpc" : "2.0" } ', ['"a"']),
    ('{"jsonrpc":"2.0","error":{},"id":1.5}', ["1.5"]),
    ('[{"jsonrpc":"2.0","id":1,"result":0}, {"jsonrpc":"2.0","id":2,"error":0}]', ["1", "2"]),
    # Of the server: its own requests keep their ids, its progress names the client's token
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}', []),
    ('{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":[],"progressToken":"t"}}', ['"t"']),
    ('{"jsonrpc":"2.0","method":"notifications/other","params":{"progressToken":"t"}}', []),
    ('{"jsonrpc":"2.0","method":"notifications/progress","params":["progressToken"]}', []),
    # Nothing that could be meant
    ('{"id":1,"result":0}', []),
    ('{"jsonrpc":"2.0","id":null,"error":0}', []),
    ('{"jsonrpc":"2.0","id":1}', []),
    ('{"jsonrpc":"2.0","id":1,"id":1,"result":0}', []),
    ('{"jsonrpc":"2.0","id":1,"id":2,"result":0}', []),
    ("", []),
    ('{"jsonrpc":"2.0","id":1,"result":', []),
    ("[" * 100_000, []),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), ANSWERS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_the_places_of_ids_in_an_answer(body: str, expected: list[str], ending: str) -> None:
    """In a body, and in the data of an event with other events around it."""
    data = body.encode()
    found = find_places(data, events=False)
    assert [data[place.start : place.end].decode() for place in found] == expected
    lines = ["event: message", f"data: {body}", "id: 3", "", ": comment", "data:x", "", "data: y"]
    stream = ending.join(lines).encode()
    found = find_places(stream, events=True)
    assert [stream[place.start : place.end].decode() for place in found] == expected


def test_an_event_of_several_lines_is_one_message() -> None:
    """The lines of one event's data belong together; a byte order mark may stand before the first."""
    stream = b'\xef\xbb\xbfdata:{"jsonrpc":"2.0",\nretry: 1\ndata: "id":\ndata: 5,\ndata:"result":{}}\n\n'
    found = find_places(stream, events=True)
    assert [stream[place.start : place.end] for place in found] == [b"5"]


@pytest.mark.parametrize(
    "body",
    [
        b"\n" * (8 << 20) + b"jsonrpc",
        b"a\n" * (4 << 20) + b'data: {"jsonrpc":"2.0","id":1,"result":1}\n\n',
        b"data: {" + b'"jsonrpc"' * (1 << 20),
        b"data: {" + b",".join(b'"%d":1' % n for n in range(20_000)) + b',"jsonrpc":"2.0","id":1}',
        b"data: [" + b'{"jsonrpc":"2.0","id":1,"result":1},' * 2000 + b"1]",
    ],
)
def test_an_answer_that_is_no_message_is_left_alone(body: bytes) -> None:
    """Bounded, whatever a server once said."""
    assert find_places(body, events=True) == []
    assert find_places(body.removeprefix(b"data: "), events=False) == []


_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=4) | st.just("id"), _json, max_size=5), st.data())
def test_the_place_of_an_id_is_its_own(members: dict[str, Any], data: st.DataObject) -> None:
    """Whatever stands around it, and however the text is laid out."""
    named = {**members, "jsonrpc": "2.0", "id": 424242, "result": data.draw(_json)}
    named.pop("method", None)
    order = data.draw(st.permutations(list(named)))
    indent = data.draw(st.sampled_from([None, 1]))
    text = json.dumps({name: named[name] for name in order}, indent=indent).encode()
    (place,) = find_places(text, events=False)
    assert text[place.start : place.end] == b"424242"
    changed = json.loads(text[: place.start] + b'"x"' + text[place.end :])
    assert changed == {**named, "id": "x"}
