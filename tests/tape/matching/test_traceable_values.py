"""Values that stand in messages, and what depends on whom because of them."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.exchange import Chunk, Gone, RequestClass, Response, Seq
from playhead.tape.matching.dependence import (
    core,
    find_shared,
    may_stand_in_answer,
    may_stand_in_request,
    seen_answer,
    seen_values,
)
from playhead.tape.matching.traceable_values import answer_values, request_values
from playhead.tests.support.exchanges import make_exchange, make_request, make_response

ID = "ord-8841029375"


def said(body: object, kind: str = "application/json", **changes: Any) -> Response:
    """Give an answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return make_response(raw, headers=((b"Content-Type", kind.encode()),), **changes)


ANSWERS: list[tuple[Response, dict[str, str]]] = [
    (said({"a": [{"b c": ID}]}), {ID: "body $.a[0]['b c']"}),
    (said({"a": "short", "b": 12345678901}), {}),
    (said({"a": 123456789012, "b": 1.5}), {"123456789012": "body $.a"}),
    (said({"a": "authentication"}), {"authentication": "body $.a"}),
    (said({"a": f"see {ID}."}), {f"see {ID}.": "body $.a", ID: "body $.a"}),
    (said({"at": "2026-11-22T06:15:00Z"}), {}),
    (
        said({"args": json.dumps({"id": ID})}),
        {json.dumps({"id": ID}): "body $.args", ID: "body $.args"},
    ),
    (said(f"  {ID}\n".encode(), "text/plain"), {ID: "body"}),
    (said(b"authentication\xff" * 40, "application/pdf"), {}),
    (said(b'{"a": "' + ID.encode(), "application/json"), {'{"a": "' + ID: "body", ID: "body"}),
    (
        said(b'data: {"d": "ord-8841"}\n\ndata: {"d": "029375"}\n\n', "text/event-stream"),
        {ID: "body $.d"},
    ),
]


@pytest.mark.parametrize(("answer", "values"), ANSWERS)
def test_the_values_of_an_answer(answer: Response, values: dict[str, str]) -> None:
    """Strings, long numbers, ids in longer text, and what a stream spells; no words, no times."""
    assert answer_values(answer) == values


def test_a_coded_answer_is_opened() -> None:
    """What is compressed is read all the same."""
    coded = replace(
        said(gzip.compress(json.dumps({"a": ID}).encode())),
        headers=((b"content-type", b"application/json"), (b"content-encoding", b"gzip")),
    )
    assert answer_values(coded) == {ID: "body $.a"}
    assert may_stand_in_answer(coded, core(ID))


def test_the_values_of_a_request() -> None:
    """Of its path, its query, its fields and its body, each with its place; none of a redacted place."""
    request = replace(
        make_request(
            f"POST https://api.test/o/{ID}/x?q=quoted%20value%20here&key=secret-0123456789"
        ),
        headers=((b"User-Agent", b"something/1.2.3.4"), (b"X-Of", b"field-0123456789")),
        body=b'{"a": "a value of it"}',
    )
    assert request_values(request, frozenset({"request.query.key"})) == {
        ID: "path",
        "quoted value here": "query q",
        "field-0123456789": "header x-of",
        "a value of it": "body $.a",
    }
    assert "secret-0123456789" in request_values(request)


ANSWER = said({"id": ID})


@pytest.mark.parametrize("above", [["k" * 1_000_000], ["k" * 900, "l" * 900, "m" * 900, "n" * 900]])
def test_places_stay_short_whatever_names_are_long(above: list[str]) -> None:
    """A thousand values below long names take no thousand times their memory."""
    tree: Any = [[f"value-{number:012}"] for number in range(1000)]
    for name in above:
        tree = {name: tree}
    found = request_values(make_request(body=json.dumps(tree).encode()))
    assert len(found) == 1000
    assert max(map(len, found.values())) < 2200


def test_what_came_after_a_request_cannot_be_in_it() -> None:
    """Read from the order of arrival: pieces after it, and those after the client had left."""
    size = len(ANSWER.body)
    cases = [
        (ANSWER, None, size),
        (replace(ANSWER, chunks=(Chunk(1, size, Seq(1)),)), None, size),
        (replace(ANSWER, chunks=(Chunk(1, size, Seq(5)),)), None, None),
        (replace(ANSWER, chunks=(Chunk(1, 4, Seq(1)), Chunk(2, size - 4, Seq(5)))), None, 4),
        (replace(ANSWER, chunks=(Chunk(1, 4, Seq(1)), Chunk(2, size - 4, Seq(2)))), 1, 4),
    ]
    for response, left, seen in cases:
        gone = Gone(1, left, head=True) if left is not None else None
        exchange = make_exchange(1, response=response, gone=gone)
        found = seen_answer(exchange, Seq(3))
        assert (found and len(found.body)) == seen
    for nothing in (
        make_exchange(1, response=ANSWER, gone=Gone(1, 0, head=False)),
        make_exchange(1, response=None),
        make_exchange(1, response=ANSWER, kind=RequestClass.TELEMETRY),
    ):
        assert seen_values(nothing, Seq(3)) == {}


def test_shared_values_are_told_with_both_places() -> None:
    """The longest first."""
    asked = {"a value of it": "path", ID: "query q", "of nobody else": "path"}
    answered = {ID: "body $.a", "a value of it": "body $.b"}
    found = list(find_shared(asked, Seq(4), answered))
    assert [(one.tape_seq, one.place, one.source, one.value) for one in found] == [
        (4, "query q", "body $.a", ID),
        (4, "path", "body $.b", "a value of it"),
    ]


@pytest.mark.parametrize(
    "value", [ID, 'she said "no" twice\n', "größer als gedacht", "日本語のテキストです"]
)
def test_a_look_at_bytes_finds_a_value_however_it_is_written(value: str) -> None:
    """As it is, in JSON, in JSON inside JSON, and escaped: finding too much is allowed, too little is not."""
    needles = core(value)
    for body in (
        value.encode(),
        json.dumps({"a": value}).encode(),
        json.dumps({"a": value}, ensure_ascii=False).encode(),
        json.dumps({"a": json.dumps({"b": value})}).encode(),
    ):
        assert may_stand_in_answer(said(body), needles)
        assert may_stand_in_request(make_request(body=body), needles)
    assert not may_stand_in_answer(said({"a": "something else"}), needles)
    assert not may_stand_in_answer(None, needles)


def test_a_value_spelt_out_in_a_stream_is_found_whatever_the_case_of_its_type() -> None:
    """A media type has none."""
    spelt = b'data: {"d": "ord-8841"}\n\ndata: {"d": "029375"}\n\n'
    for kind in ("text/event-stream", "Text/Event-Stream; charset=utf-8"):
        assert may_stand_in_answer(said(spelt, kind), core("ord-8841029375"))
