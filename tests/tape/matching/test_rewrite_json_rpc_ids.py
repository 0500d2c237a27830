"""Answers of the tape carry the ids of now, and nothing else of them changes."""

import gzip
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.tape.exchange import Chunk, Exchange, RequestClass, Seq, Spilled
from playhead.tape.matching.rewrite_json_rpc_ids import IdRewriting
from playhead.tape.playback.script import StepKind, Steps, script
from playhead.tests.support.exchanges import make_exchange, make_request, make_response

JSON, EVENTS = b"application/json", b"text/event-stream"
CALL = "POST https://mcp.test/mcp"


def asking(body: bytes) -> Any:
    request = make_request(CALL, body)
    return replace(request, headers=((b"content-type", JSON),))


def call(id: object, token: object = None) -> bytes:  # Its name in JSON-RPC.
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": "m", "id": id}
    if token is not None:
        message["params"] = {"_meta": {"progressToken": token}}
    return json.dumps(message).encode()


def recorded(
    asked: bytes, body: bytes, kind: bytes, sizes: tuple[int, ...] = (), coding: bytes = b""
) -> Exchange:
    """An exchange whose answer came in pieces of these sizes; the rest is one more."""
    cut = [size for size in sizes if size]
    while sum(cut) > len(body):
        cut.pop()
    cut += [len(body) - sum(cut)] if sum(cut) < len(body) else []
    headers = [(b"Content-Type", kind), (b"Content-LENGTH", b"%d" % len(body))]
    headers.append((b"Content-MD5", b"of the recorded bytes"))
    if coding:
        headers.append((b"content-encoding", coding))
    response = make_response(
        body,
        headers=tuple(headers),
        chunks=tuple(Chunk(2000, size, Seq(0)) for size in cut) if len(cut) > 1 else (),
    )
    exchange = make_exchange(1, CALL, kind=RequestClass.EFFECT, response=response)
    return replace(exchange, request=asking(asked))


def played(
    exchange: Exchange, asked: Any, id_rewriting: IdRewriting | None = None
) -> tuple[Any, list[bytes]]:
    """Play an answer: its header fields, and its pieces."""
    answer, spelling = (id_rewriting or IdRewriting()).answer(asked, exchange)
    steps = Steps(script(answer, 0), spelling.take if spelling else None)
    pieces = []
    while steps.next is not None:
        step = steps.take()
        if step.kind is StepKind.DATA:
            pieces.append(step.data)
    assert answer.response is not None
    return dict(answer.response.headers), pieces


_ids = st.integers(-(10**12), 10**12) | st.text(max_size=12)
_payload = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_sizes = st.lists(st.integers(1, 20), max_size=12).map(tuple)


@settings(deadline=None)
@given(_ids, _ids, _payload, _sizes, st.booleans(), st.booleans())
def test_the_answer_is_the_recorded_one_with_the_id_of_now(
    old: object, new: object, payload: object, sizes: tuple[int, ...], events: bool, escape: bool
) -> None:
    """In a body and in a stream, split anywhere; where the ids are the same not one byte changes."""
    message = {"result": payload, "id": old, "jsonrpc": "2.0"}
    text = json.dumps(message, ensure_ascii=escape).encode("utf-8", "surrogatepass")
    body = b"event: message\ndata: " + text + b"\n\n: ping\n\n" if events else text
    exchange = recorded(call(old), body, EVENTS if events else JSON, sizes)
    headers, pieces = played(exchange, asking(call(new)))
    whole = b"".join(pieces)
    same = type(old) is type(new) and old == new
    if same:
        assert whole == body
    got = whole.split(b"data: ")[1].split(b"\n\n")[0] if events else whole
    assert json.loads(got) == {**message, "id": new}
    written = json.dumps(new).encode()
    if not same:
        assert whole == body.replace(text, text[:0] + _with_id(text, old, written, escape))
    assert headers[b"Content-LENGTH"] == b"%d" % len(whole)
    assert (b"Content-MD5" in headers) is same
    assert exchange.response is not None
    assert len(pieces) == max(1, len(exchange.response.chunks))


def _with_id(text: bytes, old: object, written: bytes, escape: bool) -> bytes:
    """Put an id in the place of the last one: nothing of the payload comes after it."""
    before, _, after = text.rpartition(b'"id": ')
    was = json.dumps(old, ensure_ascii=escape).encode("utf-8", "surrogatepass")
    assert after.startswith(was)
    return before + b'"id": ' + written + after[len(was) :]


@pytest.mark.parametrize(
    ("body", "sizes", "expected"),
    [
        # Only the touched pieces grow or shrink.
        (b'data: {"jsonrpc":"2.0","id":12,"result":1}\n\n', (10, 20), [10, 22, 14]),
        # Split inside the id: it stands where it began.
        (b'data: {"jsonrpc":"2.0","id":12,"result":1}\n\n', (29, 5), [32, 4, 10]),
        # A piece that was nothing but a part of the id says nothing any more.
        (b'data: {"jsonrpc":"2.0","id":12,"result":1}\n\n', (29, 1), [32, 0, 14]),
    ],
)
def test_boundaries_between_pieces_stay(
    body: bytes, sizes: tuple[int, ...], expected: list[int]
) -> None:
    """The id of now is two bytes longer than the recorded one."""
    _, pieces = played(recorded(call(12), body, EVENTS, sizes), asking(call(1234)))
    assert b"".join(pieces) == body.replace(b":12,", b":1234,")
    assert [len(piece) for piece in pieces] == expected


def test_a_batch_and_its_progress_are_rewritten_together() -> None:
    """Ids that change places among each other; tokens apart from ids."""
    asked = b"[" + call(1, 1) + b"," + call(2, "t") + b"]"
    now = b"[" + call(2, "u") + b"," + call(1, 5) + b"]"
    progress = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b}}\n\n'
    result = b'data: {"jsonrpc":"2.0","id":%b,"result":{}}\n\n'
    theirs = b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'
    body = progress % b"1" + progress % b'"t"' + theirs + result % b"1" + result % b"2"
    expected = progress % b'"u"' + progress % b"5" + theirs + result % b"2" + result % b"1"
    _, pieces = played(recorded(asked, body, EVENTS), asking(now))
    assert b"".join(pieces) == expected


GZIP = gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 99 + b'"}')


def test_a_coded_body_is_decoded_only_where_an_id_has_to_change() -> None:
    """Its field that names the coding goes with it, and its length is that of what is served."""
    exchange = recorded(call(1), GZIP, JSON, (20, 20), b"gzip")
    headers, pieces = played(exchange, asking(call(1)))
    assert b"".join(pieces) == GZIP
    assert headers[b"content-encoding"] == b"gzip"
    headers, pieces = played(exchange, asking(call(77)))
    whole = b"".join(pieces)
    assert json.loads(whole) == {"jsonrpc": "2.0", "id": 77, "result": "x" * 99}
    assert b"content-encoding" not in headers
    assert headers[b"Content-LENGTH"] == b"%d" % len(whole)
    assert len(pieces) == 3


def test_a_coded_stream_keeps_its_events_apart() -> None:
    """Each piece is what could be read of it when it came."""
    coder = zlib.compressobj(wbits=31)
    events = [b'data: {"jsonrpc":"2.0","id":1,"result":%d}\n\n' % n for n in (1, 2)]
    coded = [coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH) for event in events]
    coded.append(coder.flush())
    sizes = tuple(map(len, coded))
    exchange = recorded(call(1), b"".join(coded), EVENTS, sizes, b"gzip")
    _, pieces = played(exchange, asking(call(9)))
    assert pieces == [event.replace(b'"id":1', b'"id":9') for event in events] + [b""]


def test_a_coded_body_that_would_be_decoded_too_often_comes_in_one_piece() -> None:
    """Where its pieces end is not looked for without end."""
    plain = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 1_000_000 + b'"}'
    coded = gzip.compress(plain)
    exchange = recorded(call(1), coded, JSON, (9,) * (len(coded) // 9), b"gzip")
    _, pieces = played(exchange, asking(call(2)))
    assert len(pieces) > 33
    assert not any(pieces[:-1])
    assert pieces[-1] == plain.replace(b'"id":1', b'"id":2')


def test_a_long_id_is_rewritten_however_it_is_spelled() -> None:
    """By its characters, not by the escapes it takes."""
    was, now = "é" * 256, "😀" * 256
    result = json.dumps({"jsonrpc": "2.0", "id": was, "result": 1}).encode()
    _, pieces = played(recorded(call(was), result, JSON), asking(call(now)))
    assert json.loads(b"".join(pieces)) == {"jsonrpc": "2.0", "id": now, "result": 1}


LONG = b'{"jsonrpc":"2.0","method":"m","id":"%b"}' % (b"a" * 300)
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'
UNTOUCHED = [
    # No JSON-RPC, no id, one that is too long, an answer that is none
    (b'{"id":1}', b'{"id":2}', RESULT, JSON, b""),
    (call(1), LONG, RESULT, JSON, b""),
    (call(3), call(4), RESULT, JSON, b""),
    (call(1), call(2), b"no JSON", JSON, b""),
    (call(1), call(2), RESULT, EVENTS, b""),
    (call(1), call(2), b"", JSON, b""),
    # A coding that is not known, and one that is broken
    (call(1), call(2), RESULT, JSON, b"aes"),
    (call(1), call(2), b"no gzip", JSON, b"gzip"),
]


@pytest.mark.parametrize(("was", "now", "body", "kind", "coding"), UNTOUCHED)
def test_what_is_not_understood_stays(
    was: bytes, now: bytes, body: bytes, kind: bytes, coding: bytes
) -> None:
    """Bytes and header fields as recorded."""
    exchange = recorded(was, body, kind, (5,), coding)
    assert IdRewriting().answer(asking(now), exchange) == (exchange, None)


def test_a_spilled_body_is_left_alone() -> None:
    """It is not read for this."""
    exchange = recorded(call(1), b"", JSON)
    assert exchange.response is not None
    spilled = replace(exchange.response, spilled=Spilled(b"d" * 32, 9, b"d" * 32))
    exchange = replace(exchange, response=spilled)
    assert IdRewriting().answer(asking(call(2)), exchange) == (exchange, None)


def stream(*events: bytes, session: bytes = b"") -> tuple[Exchange, Any]:
    """A stream that answers calls on other connections, and the request for it."""
    chunks = tuple(Chunk(2000, len(event), Seq(0)) for event in events)
    response = make_response(b"".join(events), headers=((b"content-type", EVENTS),), chunks=chunks)
    asked = make_request("GET https://mcp.test/sse")
    if session:
        asked = replace(asked, headers=((b"Mcp-Session-Id", session),))
    return replace(make_exchange(1, response=response), request=asked), asked


def test_a_stream_of_the_same_origin_is_told_by_what_was_asked_meanwhile() -> None:
    """A piece is rewritten when it is played, by the calls that have come until then."""
    event = b'data: {"jsonrpc":"2.0","id":%d,"result":{}}\n\n'
    exchange, asked = stream(*(event % number for number in (1, 2, 1, 3)))
    id_rewriting = IdRewriting()
    answer, spelling = id_rewriting.answer(asked, exchange)
    assert answer is exchange
    assert spelling is not None
    assert spelling.take(event % 1) == event % 1
    accepted = recorded(call(2), b"", JSON)
    id_rewriting.answer(asking(call(20)), accepted)
    assert spelling.take(event % 2) == event % 20
    id_rewriting.answer(asking(call(10)), recorded(call(1), b"", JSON))
    assert spelling.take(event % 1) == event % 10
    # Called as on the tape, a name means itself again.
    id_rewriting.answer(asking(call(30)), recorded(call(3), b"", JSON))
    id_rewriting.answer(asking(call(3)), recorded(call(3), b"", JSON))
    assert spelling.take(event % 3) == event % 3


def test_sessions_of_mcp_do_not_know_of_each_other() -> None:
    """Each numbers its calls from the beginning."""
    event = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    id_rewriting = IdRewriting()
    mine = replace(asking(call(10)), headers=((b"content-type", JSON), (b"mcp-session-id", b"a")))
    id_rewriting.answer(mine, recorded(call(1), b"", JSON))
    for session, expected in ((b"a", event.replace(b"1,", b"10,")), (b"b", event), (b"", event)):
        exchange, asked = stream(event, session=session)
        _, spelling = id_rewriting.answer(asked, exchange)
        assert spelling is not None
        assert spelling.take(event) == expected


def cancel(which: object, method: str = "notifications/cancelled") -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": {"requestId": which}}
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("then", "now", "another"),
    [(1, 7, False), (1, 8, True), (2, 8, False), (2, 1, True), (3, 3, False), (3, 4, True)],
)
def test_a_cancelled_call_is_the_one_that_was_cancelled(then: int, now: int, another: bool) -> None:
    """By what its id stands for: 1 is 7 now and 2 is 8; an id of which nothing is known stands for itself."""
    rewriting = IdRewriting()
    for old, new in ((1, 7), (2, 8)):
        played(recorded(call(old), b"{}", JSON), asking(call(new)), rewriting)
    assert rewriting.cancels_another(asking(cancel(now)), asking(cancel(then))) is another


def test_an_id_in_another_method_is_no_cancelled_call() -> None:
    """Its value counts as any does."""
    asked = asking(cancel(2, "notifications/progress"))
    assert not IdRewriting().cancels_another(asked, asking(cancel(1, "notifications/progress")))
