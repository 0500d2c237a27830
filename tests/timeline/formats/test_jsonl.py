"""Exchanges from JSON lines: what `show` prints comes back, and every mistake is named with its place."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import (
    NO_TEXT,
    Chunk,
    Exchange,
    FaultKind,
    RawMessage,
    Request,
    RequestClass,
    Response,
    Secret,
)
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import raw_request, raw_response
from playhead.tests.support.strategies import exchanges
from playhead.timeline.formats.jsonl import BadLine, read_line
from playhead.timeline.reading.exchange_json import exchange_json

PLAIN: dict[str, Any] = {
    "request": {"method": "GET", "url": "https://api.test/v1/things?a=1"},
    "response": {"status": 200},
}


WIRE = Request("PATCH", "https", "api.test", 8443, "/v1/a%2Fb?c=&c=%20", "HTTP/2.0", ())
PAIRS = ((b"A", b"1"), (b"b", b"\xe9"), (b"A", b""))


def line(**changes: Any) -> bytes:
    """Give a plain line with other keys; `a__b` is key b of a."""
    document: dict[str, Any] = json.loads(json.dumps(PLAIN))
    for name, value in changes.items():
        *path, last = name.rstrip("_").split("__")
        place = document
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return json.dumps(document).encode()


@tries(15)
@given(exchanges().filter(lambda one: one.response is None or one.response.spilled is None))
def test_what_show_prints_is_a_line(exchange: Exchange) -> None:
    """Everything that is not computed from the rest comes back, byte for byte."""
    wanted = exchange.request
    request = replace(WIRE, body=wanted.body, headers=PAIRS, trailers=PAIRS[:1])
    response = exchange.response
    if response is not None:
        response = replace(response, headers=PAIRS, trailers=(), reason=b"as sent \xe9")
    if response is None and exchange.fault is None and exchange.gone is None:
        response = Response(204, b"", "HTTP/2.0", (), b"", 7)
    interim = tuple(one._replace(headers=PAIRS, reason=b"\xe9") for one in exchange.interim)
    exchange = replace(
        exchange, request=request, response=response, websocket=None, interim=interim
    )
    told = read_line(json.dumps(exchange_json(exchange)).encode())
    assert told.request == raw_request(request)
    assert told.response == (raw_response(response) if response is not None else None)
    assert (told.gone, told.seq) == (exchange.gone, exchange.seq)
    fault = exchange.fault
    assert told.fault == (replace(fault, text=NO_TEXT) if fault is not None else None)
    assert told.fault_text == (fault.text if fault is not None else "")
    assert told.request_class is exchange.request_class
    assert (told.started_ns, told.end_us) == (exchange.started_ns, exchange.end_us)
    assert told.warnings == exchange.warnings
    assert told.withheld == exchange.withheld
    assert [*map(tuple, told.interim)] == [*map(tuple, exchange.interim)]


def test_the_shortest_line_has_the_plainest_values() -> None:
    """A method, a URL, a status."""
    told = read_line(line())
    request = told.request
    assert (request.scheme, request.host, request.port, request.target) == (
        *("https", "api.test", 443),
        "/v1/things?a=1",
    )
    assert (told.run, told.seq, told.request_class) == ("", 0, None)
    assert told.response is not None
    assert (told.response.status, told.response.body, told.response.complete) == (200, b"", True)


def test_headers_may_be_pairs_or_a_map() -> None:
    """A map for what has one value or several of a name; pairs keep every order."""
    pairs = read_line(line(request__headers=[["A", "1"], ["b", "2"], ["A", "3"]]))
    assert pairs.request.headers == ((b"A", b"1"), (b"b", b"2"), (b"A", b"3"))
    mapped = read_line(line(request__headers={"A": ["1", "3"], "b": "2"}))
    assert mapped.request.headers == ((b"A", b"1"), (b"A", b"3"), (b"b", b"2"))


SECRET: dict[str, Any] = {"part": "body", "at": 1, "size": 3, "kind": "secret"}
"""In a body of five bytes."""


def test_the_places_of_placeholders_come_back() -> None:
    """Of a target, of both bodies, of messages."""
    target: dict[str, Any] = {**SECRET, "part": "target"}
    read = read_line(
        line(request__secrets=[SECRET, target], request__body="abcde", response__secrets=[SECRET],
             response__body="abcde")
    )  # fmt: skip
    assert read.request.secrets == (Secret(**SECRET), Secret(**target))
    assert read.response is not None
    assert read.response.secrets == (Secret(**SECRET),)
    message = {"from_client": True, "body": "abcde", "secrets": [SECRET]}
    read = read_line(line(websocket={"messages": [message]}))
    assert read.messages[0].secrets == (Secret(**SECRET),)


def test_the_places_of_placeholders_in_header_fields_come_back() -> None:
    """`show` prints those of fields whose names do not say that they hold a secret."""
    told: dict[str, Any] = {**SECRET, "part": "header x-thing"}
    read = read_line(line(request__headers={"X-Thing": "abcde"}, request__secrets=[told]))
    assert read.request.secrets == (Secret(**told),)


@pytest.mark.parametrize(
    "told",
    [
        [{**SECRET, "at": 3}],
        [{**SECRET, "size": 0}],
        [SECRET, SECRET],
        [{**SECRET, "at": 2, "size": 1}, {**SECRET, "at": 0, "size": 1}],
        [{**SECRET, "part": "target", "at": 17}],
        [{**SECRET, "part": "header x-thing"}],
    ],
)
def test_a_place_outside_of_its_part_is_named(told: list[dict[str, Any]]) -> None:
    """It would be taken for something else."""
    with pytest.raises(BadLine, match=r"at `\$\.request\.secrets\[[01]\]`"):
        read_line(line(request__body="abcde", request__secrets=told))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_body(body: bytes) -> None:
    """As base64, or as text where they are."""
    coded = base64.b64encode(body).decode()
    found = read_line(line(response__body_base64=coded)).response
    assert found is not None
    assert found.body == body


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://api.test", "/"),
        ("https://api.test?", "/?"),
        ("https://api.test/a?b=/c?d", "/a?b=/c?d"),
        ("https://api.test/a%2Fb#part", "/a%2Fb"),
        ("http://[::1]:8080/x", "/x"),
    ],
)
def test_a_target_stands_as_it_was_sent(url: str, target: str) -> None:
    """Nothing is normalised; what never leaves a client is left out."""
    assert read_line(line(request__url=url)).request.target == target


def test_a_failure_needs_no_answer() -> None:
    """What happened stands under `fault`."""
    told = read_line(line(response=None, fault={"kind": "reset", "phase": "head"}))
    assert told.fault is not None
    assert told.fault.kind is FaultKind.RESET


def test_a_conversation_brings_its_messages() -> None:
    """Text, bytes, in order."""
    rows = [
        {"from_client": True, "body": "hello"},
        {"from_client": False, "kind": "binary", "body_base64": "AAE=", "at_us": 5},
    ]
    close = {"at_us": 9, "by_client": True, "code": 1000, "answer": [1000, ""]}
    told = read_line(line(response__status=101, websocket={"messages": rows, "close": close}))
    assert [message.data for message in told.messages] == [b"hello", b"\0\1"]
    assert all(isinstance(message, RawMessage) for message in told.messages)
    assert told.websocket is not None
    assert (told.websocket.messages, told.websocket.size) == (2, 7)


def test_pieces_keep_their_times() -> None:
    """[at_us, bytes], and what show adds to it."""
    told = read_line(line(response__body="abcd", response__chunks=[[5, 1], [9, 3, 2, 0]]))
    assert told.response is not None
    assert told.response.chunks == (Chunk(5, 1), Chunk(9, 3, 2, 0))


def test_a_class_may_be_given() -> None:
    """Else the rules say it."""
    assert read_line(line(class_="read")).request_class is RequestClass.READ


@pytest.mark.parametrize(
    ("data", "told"),
    [
        # no JSON, or not of the shape
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"run": "\xff"}', "utf-8|UTF-8"),
        (b"[]", "`object`"),
        (b"[" * 100_000, "."),
        (b'{"request": ' * 100_000, "."),
        (line(request=None), r"\$\.request"),
        (line(request__method=None), r"\$\.request\.method"),
        (line(response__status="200"), r"\$\.response\.status"),
        (line(response__body_base64="%%%"), r"base64.*\$\.response\.body_base64"),
        # a mistyped key is not an empty body
        (line(response__bodi="x"), "`bodi`"),
        (line(respons={"status": 200}), "`respons`"),
        # nothing came of it
        (line(response=None), "`response`, `fault` or `gone`"),
        # values that cannot be
        (line(request__method=""), r"a method.*\$\.request\.method"),
        (line(request__method="GE T"), r"\$\.request\.method"),
        (line(request__url="/v1"), "absolute URL"),
        (line(request__url="ftp://api.test/"), "absolute URL"),
        (line(request__url="https://api.test:x/"), "absolute URL"),
        (line(request__url="https://api.test/a b\n"), "absolute URL"),
        (line(request__url="https://me:pass@api.test/"), "without a user"),
        (line(request__headers=[["a", "b\r\nc: d"]]), r"header field.*\$\.request\.headers"),
        (line(request__headers=[["", "b"]]), "header field"),
        (line(request__headers=[["a", "\u20ac"]]), r"Latin-1.*\$\.request\.headers"),
        (line(response__status=20), "three digits"),
        (line(response__status=1 << 70), r"\$\.response\.status"),
        (line(response__body="x", response__body_base64="eA=="), "found both"),
        (
            line(response__body="abc", response__chunks=[[1, 2]]),
            "add up to the body's 3 bytes, found 2",
        ),
        (line(response__body="abc", response__chunks=[[1]]), r"\$\.response\.chunks\[0\]"),
        (line(response__body="abc", response__chunks=[[1, -3], [1, 6]]), r"chunks\[0\]"),
        (line(response__body_bytes=9_000_000, response__body_file="bodies/aa/bb"), "export --tape"),
        (line(fault={"kind": "bored", "phase": "head"}), r"\$\.fault\.kind"),
        (line(seq=-1), r"\$\.seq"),
        (line(started_ns=1 << 63), r"\$\.started_ns"),
        (
            line(websocket={"messages": [{"from_client": True, "body": "a", "frames": [2]}]}),
            "frames",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(data: bytes, told: str) -> None:
    """What was expected, what was found, where."""
    with pytest.raises(BadLine, match=told):
        read_line(data)


@pytest.mark.parametrize(
    ("response", "came_us"),
    [({}, 5_000_000), ({"chunks": [[4_000_000, 2]]}, 4_000_000), ({"head_us": 900_000}, 900_000)],
)
def test_an_answer_that_its_client_left_before_came_later(
    response: dict[str, Any], came_us: int
) -> None:
    """A client that had no head left before it came: with the first piece, or at the end, unless the line states when."""
    row = {
        "request": {"method": "POST", "url": "https://pay.test/x", "headers": []},
        "response": {"status": 200, "headers": [], "body": "{}"} | response,
        "gone": {"at_us": 1_000_000, "chunks": 0, "head": False},
        "end_us": 5_000_000,
    }
    told = read_line(json.dumps(row).encode())
    assert told.response is not None
    assert told.response.head_us == came_us
