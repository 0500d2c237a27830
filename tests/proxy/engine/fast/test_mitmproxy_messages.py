"""The cheaper fast paths give what mitmproxy's own give: whatever the names, values, case and number."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import tee
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import connection, hooks, http, options
from mitmproxy.coretypes import multidict
from mitmproxy.net.http import http1
from mitmproxy.net.http.http1 import read
from mitmproxy.proxy import commands, context, events, layer

from playhead.proxy.engine.fast import mitmproxy_messages as http_events

_PLACES: tuple[tuple[type, str], ...] = (
    (http.MessageData, "__post_init__"),
    (context.Context, "fork"),
    (http.Headers, "__init__"),
    (http.Headers, "get_all"),
    (http.Headers, "get"),
    (http.Headers, "__contains__"),
    (layer.Layer, "handle_event"),
)

_ORIGINALS = """
from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.proxy import context, layer
assert layer.Layer.__dict__["handle_event"].__module__ == "mitmproxy.proxy.layer"
assert http1.expected_http_body_size.__module__ == "mitmproxy.net.http.http1.read"
assert http.Headers.__dict__.keys() >= {"get_all", "__init__"}
assert not {"get", "__contains__"} & http.Headers.__dict__.keys()
assert "__post_init__" in http.MessageData.__dict__ and "fork" in context.Context.__dict__
"""


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    """Leave mitmproxy as it was found, with the fast paths or without."""
    before = [(owner, name, owner.__dict__.get(name)) for owner, name in _PLACES]
    size = http1.expected_http_body_size
    yield
    http1.expected_http_body_size = size
    for owner, name, stock in before:
        if stock is None:
            if name in owner.__dict__:
                delattr(owner, name)
        else:
            setattr(owner, name, stock)


class Original(http.Headers):
    """mitmproxy's look-ups, written out from its own parts, whether or not the fast paths are in place."""

    def get_all(self, name: str | bytes) -> list[str]:
        wanted = http._always_bytes(name)
        found = multidict._MultiDict.get_all(self, wanted)
        return [http._native(value) for value in found]

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True


_NAMES = st.sampled_from(
    [b"Accept", b"accept", b"ACCEPT", b"X-\xc3\x84", b"x-\xc3\xa4", b"x-\xff", b"", b"a b"]
)
_FIELDS = st.lists(st.tuples(_NAMES | st.binary(max_size=4), st.binary(max_size=6)), max_size=8)
_ASKED = (
    _NAMES
    | _NAMES.map(lambda name: name.decode("utf-8", "surrogateescape"))
    | st.sampled_from(["X-Ä", "x-ä", "İ", "ſ", "K"])
    | st.binary(max_size=4)
)


@given(_FIELDS, _ASKED, st.none() | st.text(max_size=3))
def test_a_field_is_found_as_mitmproxy_finds_it(
    fields: list[tuple[bytes, bytes]], name: str | bytes, default: str | None
) -> None:
    """All values in order, folded into one, or none; in any case, and beyond ASCII."""
    original, ours = Original(fields), http.Headers(fields)
    assert http_events.get_all(ours, name) == original.get_all(name)
    assert http_events.get(ours, name, default) == original.get(name, default)
    assert http_events.contains(ours, name) is (name in original)


@given(_FIELDS, _ASKED, st.binary(max_size=3))
def test_headers_are_changed_as_ever(
    fields: list[tuple[bytes, bytes]], name: str | bytes, value: bytes
) -> None:
    """What mitmproxy builds on look-ups, sets, adds, deletes and pops the same with the fast paths."""

    def play(headers: http.Headers) -> list[Any]:
        told: list[Any] = [list(headers.items()), list(headers.keys()), len(headers)]
        headers.setdefault(name, value)
        told.append(headers.fields)
        headers.add(name, value)
        told.append(headers.fields)
        headers[name] = value
        told.append(headers.fields)
        told.append(headers.pop(name, None))
        told.append(headers.fields)
        told.append(headers.pop(name, None))
        return told

    original = play(Original(fields))
    http_events.install()
    assert play(http.Headers(fields)) == original


@pytest.mark.parametrize("name", [None, 1, ("accept",)])
def test_what_is_no_name_is_not_found(name: object) -> None:
    """Without an error."""
    assert not http_events.contains(http.Headers([(b"accept", b"1")]), name)


def _context() -> context.Context:
    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
    made = context.Context(client, options.Options())
    made.server.address = ("api.test", 443)
    made.layers = [object(), object()]  # type: ignore[list-item]  # any will do
    return made


def _stock_fork(of: context.Context) -> context.Context:
    """As mitmproxy does it."""
    copy = context.Context(of.client, of.options)
    copy.server = of.server
    copy.layers = of.layers.copy()
    return copy


@pytest.mark.parametrize("fork", [_stock_fork, http_events.fork])
def test_a_fork_shares_all_but_the_list_of_layers(
    fork: Callable[[context.Context], context.Context],
) -> None:
    """Nothing that a context has is left out of its copy."""
    of = _context()
    copy = fork(of)
    assert type(copy) is context.Context
    assert vars(copy).keys() == vars(of).keys() == vars(_stock_fork(of)).keys()
    for name, value in vars(of).items():
        assert (vars(copy)[name] is value) is (name != "layers"), name
    assert copy.layers == of.layers
    copy.layers.append(object())  # type: ignore[arg-type]  # any will do
    copy.server = connection.Server(address=None)
    assert len(of.layers) == 2
    assert of.server.address == ("api.test", 443)


@pytest.mark.parametrize("fast_paths", [False, True])
def test_messages_are_made_the_same(fast_paths: bool) -> None:
    """From parsed bytes, by mitmproxy's own makers, copied, and with fields that follow from others."""
    if fast_paths:
        http_events.install()
    fields = http.Headers([(b"Host", b"api.test")])
    request = http.Request(
        "api.test", 80, b"GET", b"http", b"", b"/x", b"HTTP/1.1", fields, b"", None, 1.0, None
    )
    answer = http.Response(b"HTTP/1.1", 200, b"OK", http.Headers(), b"body", None, 1.0, 2.0)
    assert request.copy().data == request.data
    assert answer.copy().data == answer.data
    assert (request.url, request.headers["host"]) == ("http://api.test/x", "api.test")
    made = http.Response.make(204, b"", {"x-a": "1"})
    assert (made.status_code, made.reason, made.headers["X-A"]) == (204, "No Content", "1")
    state = answer.data.get_state()
    assert http.ResponseData.from_state(state) == answer.data


_LENGTHS = st.sampled_from(
    [b"0", b"5", b"05", b"00", b"", b" 5", b"-1", b"5, 5", b"5x", b"\xb2", b"123456"]
)
_CODINGS = st.sampled_from([b"chunked", b"gzip", b"gzip, chunked", b"identity", b"x", b""])
_FRAMING = st.lists(
    st.tuples(st.sampled_from([b"content-length", b"Content-Length"]), _LENGTHS)
    | st.tuples(st.just(b"Transfer-Encoding"), _CODINGS)
    | st.tuples(st.sampled_from([b"accept-charset", b"Accept"]), _LENGTHS),
    max_size=3,
)


@given(
    _FRAMING,
    st.sampled_from([b"GET", b"get", b"HEAD", b"head", b"CONNECT", b"POST"]),
    st.none() | st.sampled_from([100, 101, 200, 204, 206, 304, 404]),
)
def test_bodies_are_as_long_as_mitmproxy_says(
    fields: list[tuple[bytes, bytes]], method: bytes, status: int | None
) -> None:
    """Lengths, codings, none, several and such as are none; of requests and of answers."""
    headers = http.Headers(fields)
    request = http.Request(
        "h", 1, method, b"http", b"", b"/", b"HTTP/1.1", headers, None, None, 0.0, None
    )
    response = None
    if status is not None:
        request.headers = http.Headers()
        response = http.Response(b"HTTP/1.1", status, b"", headers, None, None, 0.0, None)

    def size(of: Callable[..., int | None]) -> object:
        try:
            return of(request, response)
        except ValueError as error:
            return str(error)

    assert size(http_events.body_size) == size(read.expected_http_body_size)


class Asking(layer.Layer):
    """Asks for what each event says it asks for, and says what it was told."""

    def __init__(self) -> None:
        client = connection.Client(peername=("", 1), sockname=("", 2), timestamp_start=0.0)
        super().__init__(context.Context(client, options.Options()))

    def _handle_event(self, event: Any) -> Any:
        for number, waits in enumerate(event.asks):
            command = commands.Command()
            command.blocking, command.said = waits, (event.name, number)  # type: ignore[attr-defined]
            command.told = yield command  # type: ignore[attr-defined]


def _events(plan: list[list[bool]]) -> list[Any]:
    return [SimpleNamespace(name=at, asks=asks) for at, asks in enumerate(plan)]


def _play(handle: Callable[[layer.Layer, Any], Any], plan: list[list[bool]]) -> list[Any]:
    """Give what a layer asks for, in order, and what it was told, where replies come after all events."""
    asking, seen, waiting = Asking(), list[Any](), list[commands.Command]()
    todo: list[Any] = _events(plan)
    while todo or waiting:
        event = todo.pop(0) if todo else _reply(waiting.pop(0))
        for command in handle(asking, event):
            seen.append((command.said, command.blocking is asking))
            if command.blocking:
                waiting.append(command)
        seen.append((asking._paused is not None, len(asking._paused_event_queue)))
    return seen


def _reply(command: commands.Command) -> events.CommandCompleted:
    return events.OpenConnectionCompleted(command, "told")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=6))
def test_a_layer_waits_as_ever(plan: list[list[bool]]) -> None:
    """What a layer asks for, what it waits for, and what is kept for it meanwhile, are mitmproxy's."""
    assert _play(http_events.handle_event, plan) == _play(_stock_layer().handle_event, plan)


@cache
def _stock_layer() -> type[layer.Layer]:
    """Give mitmproxy's layer as its file has it, whether or not its fast path is in place."""
    spec = importlib.util.spec_from_file_location("stock_layer", layer.__file__)
    assert spec is not None
    assert spec.loader is not None
    stock = importlib.util.module_from_spec(spec)
    with mock.patch.dict(hooks.all_hooks, clear=True):  # a hook of that file has its name only once
        spec.loader.exec_module(stock)
    found: type[layer.Layer] = stock.Layer
    return found


@pytest.mark.parametrize(
    "fields",
    [
        (),
        [],
        [(b"A", b"1"), (b"a", b"2")],
        ((b"A", b"1"),),
        [[b"A", b"1"]],
        iter([(b"A", b"1")]),
        [("A", "1")],
        [(b"A", None)],
        [(b"A", b"1", b"2")],
        [(b"A",)],
        [b"AB"],
        None,
        7,
    ],
)
def test_fields_are_taken_as_mitmproxy_takes_them(fields: Any) -> None:
    """What becomes of them, or why they are none, whatever they are."""
    ours, theirs = tee(fields) if hasattr(fields, "__next__") else (fields, fields)
    assert _taken(http_events.init_headers, ours) == _taken(http_events._stock_headers, theirs)
    assert _taken(http_events.init_headers, (), a_b="1") == _taken(
        http_events._stock_headers, (), a_b="1"
    )


def _taken(init: Callable[..., None], fields: Any, **named: str) -> Any:
    headers = http.Headers.__new__(http.Headers)
    try:
        init(headers, fields, **named)
    except (TypeError, ValueError) as error:
        return str(error)
    return headers.fields


def test_the_fast_paths_replace_what_they_name() -> None:
    """All of them; twice is once."""
    for _ in range(2):
        http_events.install()
        assert [getattr(owner, name) for owner, name in _PLACES] == [
            http_events.skip_type_checks,
            http_events.fork,
            http_events.init_headers,
            http_events.get_all,
            http_events.get,
            http_events.contains,
            http_events.handle_event,
        ]
        assert http1.expected_http_body_size is http_events.body_size


def test_mitmproxy_still_has_what_is_replaced_where_it_was() -> None:
    """In a process of its own, where nothing was replaced: another version may do without."""
    subprocess.run([sys.executable, "-c", _ORIGINALS], check=True, timeout=30)
