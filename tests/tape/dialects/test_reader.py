"""Any body is read or is None: its codings, its bounds, its framing, its times; and what may drift."""

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from playhead.tape.canonical.json import MAX_DEPTH
from playhead.tape.dialects import (
    DIALECTS,
    ApiError,
    InferenceResponse,
    read_request,
    read_response,
    reader,
)
from playhead.tape.dialects.common.untrusted_json import MAX_JSON
from playhead.tape.exchange import Chunk, Request, Response
from playhead.tape.records import zstd
from playhead.tests.support.dialects import make_request, make_response, make_stream

URL = "https://api.openai.com/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
REQUEST = make_request(URL, ASKED)
WORDS = ["", "He", "llo", ", ", "you ", "there"]


def chunks() -> list[dict[str, Any]]:
    """Give the chunks of a stream; the first carries nothing."""
    found = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in WORDS]
    return [*found, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def answer(response: Response, request: Request = REQUEST) -> InferenceResponse:
    """Read a response to it."""
    found = read_response(request, response)
    assert found is not None
    return found


def test_dialects_have_names_of_their_own() -> None:
    """They stand in what is shown."""
    names = [dialect.name for dialect in DIALECTS]
    assert len(names) == len(set(names))


# ---- what is no payload ------------------------------------------------------------------------------

_DEEP = b'{"messages":' + b"[" * 199 + b"]" * 199 + b"}"
_TOO_DEEP = b'{"messages":' + b"[" * 200 + b"]" * 200 + b"}"


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b"", False),
        (b"{", False),
        (b"null", False),
        (b"[]", False),
        (b'"messages"', False),
        (b"{}", False),
        (b'{"messages": 1}', False),
        (b"\xff\xfe", False),
        (b'{"messages": [], "model": "\xff"}', False),
        (_DEEP, True),
        (_TOO_DEEP, False),
        (b"[" * 1_000_000, False),
        (b'{"a":' * 1_000_000, False),
        # what the quick parser does not take and clients send
        (b'\xef\xbb\xbf{"messages": []}', True),
        (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}', True),
        (b'{"messages": [], "temperature": NaN}', True),
        # odd, but of the right shape
        (b'{"messages": [1, null, {"role": 1, "content": {"a": 1}}], "model": 7}', True),
    ],
)
def test_a_body_is_read_or_is_none(body: bytes, read: bool) -> None:
    """Whatever stands in it."""
    found = read_request(make_request(URL, body))
    assert (found is not None) == read
    if found is not None:
        assert isinstance(found.drift, dict)
    found_answer = read_response(REQUEST, make_response(body))
    assert found_answer is None


def test_depth_is_counted_as_elsewhere() -> None:
    """The bodies above stand at both sides of the bound."""
    assert (_DEEP.count(b"["), _TOO_DEEP.count(b"[")) == (MAX_DEPTH - 1, MAX_DEPTH)


def test_a_body_beyond_the_bound_is_none() -> None:
    """One byte more is too much."""
    rest = b'{"messages": [], "x": "'
    for size, read in ((MAX_JSON, True), (MAX_JSON + 1, False)):
        body = rest + b"a" * (size - len(rest) - 2) + b'"}'
        assert len(body) == size
        assert (read_request(make_request(URL, body)) is not None) == read


def test_a_body_that_unfolds_beyond_the_bound_is_none() -> None:
    """Coded bodies are bounded by what they become."""
    bomb = gzip.compress(b'{"messages": [], "x": "' + b"a" * (MAX_JSON * 5) + b'"}')
    coded = {"content-encoding": "gzip"}
    assert read_request(make_request(URL, bomb, coded)) is None
    headers = {"content-type": "application/json", **coded}
    assert read_response(REQUEST, make_response(bomb, headers=headers)) is None


def test_a_stream_of_nothing_known_is_none() -> None:
    """Whoever sends it."""
    assert read_response(REQUEST, make_stream({"a": 1}, {"b": 2})) is None
    assert read_response(REQUEST, make_stream("text", 1)) is None
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    assert read_response(REQUEST, make_response(b"\x00" * 40, headers=headers)) is None


def test_a_stream_of_too_many_pieces_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before is there; an answer has no more pieces than tokens."""
    monkeypatch.setattr(reader, "MAX_PIECES", 3)
    found = answer(make_stream(*chunks(), done=True))
    assert (found.text, found.complete) == ("Hello", False)


def test_a_stream_of_which_nothing_came_is_incomplete() -> None:
    """It was to be one."""
    headers = {"content-type": "text/event-stream"}
    for body in (b"", b": ping\n\n", b'data: {"cho'):
        found = answer(make_response(body, headers=headers, complete=False))
        assert (found.choices, found.complete, found.first_token_us) == ((), False, None)


# ---- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": "model not found"}, ApiError("model not found")),
        ({"error": {"message": "m", "type": "t", "code": 7}}, ApiError("m", "t", "7")),
        ({"error": {"reason": "r"}}, ApiError('{"reason": "r"}')),
        ({"message": "m", "type": "t", "code": "3000"}, ApiError("m", "t", "3000")),
        ({"detail": "Not Found"}, ApiError("Not Found")),
        ({"detail": [{"loc": ["body"]}]}, ApiError('[{"loc": ["body"]}]')),
        (b"<html>Bad gateway</html>", ApiError("<html>Bad gateway</html>")),
        (b"x" * 5000, ApiError("x" * 500)),
        (b"", ApiError("HTTP 502")),
    ],
)
def test_an_error_status_gives_an_error(body: object, error: ApiError) -> None:
    """Whatever its body is."""
    found = answer(make_response(body, 502))
    assert (found.error, found.status, found.choices) == (error, 502, ())


def test_an_error_with_status_200_is_noted() -> None:
    """Gateways send that."""
    found = answer(make_response({"error": {"message": "No credits", "code": 402}}))
    assert found.error == ApiError("No credits", None, "402")


# ---- codings and framings ----------------------------------------------------------------------------

_BODY = json.dumps({"choices": [{"message": {"content": "Hello"}}]}).encode()


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstd.compress),
        # stored or handed on with its coding undone
        ("gzip", bytes),
    ],
)
def test_codings_are_undone(coding: str, encode: Callable[[bytes], bytes]) -> None:
    """Of requests and of responses."""
    headers = {"content-type": "application/json", "Content-Encoding": coding}
    assert answer(make_response(encode(_BODY), headers=headers)).text == "Hello"
    body = encode(json.dumps(ASKED).encode())
    asked = read_request(make_request(URL, body, {"content-encoding": coding}))
    assert asked is not None
    assert asked.model == "m"


def test_the_framing_is_seen_in_the_body() -> None:
    """A content type may say anything."""
    stream = make_stream(*chunks(), done=True)
    for content_type in ("text/event-stream", "text/plain", "application/json"):
        found = answer(replace(stream, headers=((b"Content-Type", content_type.encode()),)))
        assert (found.text, found.streamed) == ("Hello, you there", True)
    found = answer(replace(stream, headers=()))
    assert found.streamed
    headers = {"content-type": "text/event-stream"}
    found = answer(make_response(b" \n" * 100 + _BODY, headers=headers))
    assert (found.text, found.streamed) == ("Hello", False)


# ---- times -------------------------------------------------------------------------------------------


def test_the_first_token_is_the_first_piece_with_content() -> None:
    """Not the first piece, and not the head."""
    found = answer(make_stream(*chunks(), done=True))
    assert (found.first_token_us, found.total_us) == (2000, 8000)


def test_an_event_is_there_when_all_of_it_is() -> None:
    """Pieces are cut anywhere."""
    body = make_stream(*chunks(), done=True).body
    place = body.index(b'"He"')
    end = body.index(b"\n\n", place)
    cuts = [0, place, place + 2, end, end + 1, len(body)]
    sizes = [after - before for before, after in pairwise(cuts)]
    noted = tuple(Chunk(100 * at, size) for at, size in enumerate(sizes, start=1))
    stream = make_response(body, headers={"content-type": "text/event-stream"})
    assert answer(replace(stream, chunks=noted)).first_token_us == 300


def test_times_of_a_coded_stream_are_those_of_its_pieces() -> None:
    """Each piece flushed, as servers do."""
    packer = zlib.compressobj(wbits=31)
    pieces = [
        packer.compress(f"data: {json.dumps(chunk)}\n\n".encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
        for chunk in chunks()
    ]
    pieces.append(packer.flush())
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    stream = make_response(pieces=pieces, headers=headers)
    found = answer(stream)
    assert (found.text, found.first_token_us, found.total_us) == ("Hello, you there", 2000, 8000)
    assert found.complete
    size = len(b"".join(pieces[:3]))
    cut = replace(stream, body=stream.body[:size], chunks=stream.chunks[:3], complete=False)
    found = answer(cut)
    assert (found.text, found.first_token_us, found.complete) == ("Hello", 2000, False)


def test_without_pieces_there_is_no_first_token() -> None:
    """And the total is the head's time."""
    stream = make_stream(*chunks(), done=True)
    found = answer(replace(stream, chunks=()))
    assert (found.first_token_us, found.total_us) == (None, 500)


def test_an_answer_in_one_piece_has_no_first_token() -> None:
    """It comes at once, when all of it is there."""
    found = answer(make_response(pieces=[_BODY[:9], _BODY[9:]]))
    assert (found.first_token_us, found.total_us) == (None, 2000)


# ---- drift -------------------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
SYSTEM = {"role": "system", "content": "Be brief."}
FULL = {
    **ASKED,
    "messages": [SYSTEM, *ASKED["messages"]],
    "tools": TOOLS,
    "temperature": 0.5,
    "top_p": 1,
    "seed": 7,
}


def drift(body: object) -> dict[str, str]:
    """Give what may drift of a request."""
    found = read_request(make_request(URL, body))
    assert found is not None
    return dict(found.drift)


def test_what_may_drift_is_what_is_stated() -> None:
    """And nothing else."""
    assert drift(ASKED) == {"model": "m"}
    assert set(drift(FULL)) == {"model", "temperature", "top_p", "seed", "tools", "system"}


@pytest.mark.parametrize(
    ("change", "drifted"),
    [
        ({}, set()),
        ({"messages": [SYSTEM, {"role": "user", "content": "Ho"}]}, set()),
        ({"max_tokens": 1}, set()),
        ({"model": "n"}, {"model"}),
        ({"temperature": 0}, {"temperature"}),
        ({"temperature": None}, {"temperature"}),
        ({"top_p": 1.0}, {"top_p"}),
        ({"seed": 8}, {"seed"}),
        ({"tools": [*TOOLS, *TOOLS]}, {"tools"}),
        ({"tools": None}, {"tools"}),
        ({"messages": ASKED["messages"]}, {"system"}),
        ({"messages": [{**SYSTEM, "content": "Be kind."}]}, {"system"}),
        ({"messages": [{**SYSTEM, "content": [{"type": "text", "text": "Be brief."}]}]}, set()),
    ],
)
def test_a_change_drifts_in_its_own_field(change: dict[str, Any], drifted: set[str]) -> None:
    """Numbers as they are written."""
    old, new = drift(FULL), drift({**FULL, **change})
    assert {name for name in {*old, *new} if old.get(name) != new.get(name)} == drifted


def test_the_order_of_keys_is_no_drift() -> None:
    """Nor white space."""
    turned = [{"function": {"parameters": {"type": "object"}, "name": "f"}, "type": "function"}]
    body = json.dumps({**FULL, "tools": turned}, indent=3).encode()
    assert drift(body) == drift(FULL)


def test_what_cannot_be_written_plainly_has_a_hash_too() -> None:
    """Half a character, a number beyond any."""
    hashes = {
        drift({**FULL, "tools": [{"name": "\ud83d"}]})["tools"],
        drift({**FULL, "tools": [{"name": 10**30}]})["tools"],
        drift({**FULL, "messages": [{**SYSTEM, "content": "\ud83d"}]})["system"],
    }
    assert len(hashes) == 3
    assert {len(one) for one in hashes} == {32}
