"""A value that a stream says in several events is one value to whoever reads the tape."""

import base64
import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.config import RedactRule
from playhead.tape.exchange import PIECE, Chunk, Headers, RawResponse, Request, Response, Secret
from playhead.tape.records.credential_parts import list_tokens
from playhead.tape.redaction.placeholders.split_values import list_values
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter

STORE = b"k" * 32
RULES = [RedactRule(pattern="acme_[0-9a-f]{16,}")]
ACME = "acme_9f3c07ab6d41e8527b0cd9e3"
KEY = "sk-proj-" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eXoQ2wE4rT6yU8"
EVENTS = (b"content-type", b"text/event-stream")
LINES = (b"content-type", b"application/x-ndjson")


def answer(body: bytes, *headers: tuple[bytes, bytes]) -> RawResponse:
    """Give an answer as it came."""
    return RawResponse(200, b"OK", "HTTP/1.1", headers, body, 1, (Chunk(1, len(body)),))


def say(*pieces: str, index: int = 0) -> bytes:
    """Give a stream of a model that says a text in pieces."""
    choices = [[{"index": index, "delta": {"content": piece}}] for piece in pieces]
    return b"".join(b"data: %b\n\n" % json.dumps({"choices": one}).encode() for one in choices)


def read(body: bytes) -> str:
    """Give the text that a stream says."""
    events = [json.loads(line[6:]) for line in body.decode().split("\n") if line]
    return "".join(one["choices"][0]["delta"]["content"] for one in events)


def send(value: str, *headers: tuple[bytes, bytes]) -> Request:
    """Give a request with a value in its body."""
    body = json.dumps({"v": value}).encode()
    return Request("POST", "https", "api.test", 443, "/use", "HTTP/1.1", headers, body)


def rewrite(raw: RawResponse) -> Response:
    """Give an answer that was recorded without rules, and rewritten under those of now."""
    old, _, _ = Redactor(STORE).response(raw)
    rewriter = Rewriter(STORE, RULES)
    return rewriter._response(old, {}, [])[0]


CUTS = [
    [ACME[:7], ACME[7:18], ACME[18:]],
    ["acme", "_", ACME[5:12], ACME[12:]],
    list(ACME),
]


@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.parametrize("rewritten", [False, True])
def test_what_a_pattern_names_is_replaced_and_known_again_over_events(
    pieces: list[str], rewritten: bool
) -> None:
    """The agent of a replay sends back the placeholder that it was given, as the tape has it in the request."""
    raw = answer(say("id ", *pieces, " ok"), EVENTS)
    kept = rewrite(raw) if rewritten else Redactor(STORE, RULES).response(raw)[0]
    placeholder = read(kept.body).split()[1]
    recorded, _ = Redactor(STORE, RULES).request(send(ACME))
    assert placeholder != ACME
    replay = Redactor(STORE, RULES)
    assert [value for _, value, _ in replay.learn(kept)] == [placeholder.encode()]
    asked, _ = replay.request(send(placeholder))
    assert (asked.body, asked.secrets) == (
        recorded.body,
        tuple(one._replace(kind="secret") for one in recorded.secrets),
    )


def test_pieces_of_a_value_are_no_values() -> None:
    """Another key that begins as one of them does is replaced whole."""
    kept, _, _ = Redactor(STORE).response(answer(say(KEY[:9], KEY[9:20], KEY[20:]), EVENTS))
    replay = Redactor(STORE)
    replay.learn(kept)
    other = read(kept.body)[:9] + KEY[9:][::-1]
    fresh = Redactor(STORE)
    assert replay.request(send(other))[0].body == fresh.request(send(other))[0].body


def test_values_beside_each_other_are_told_apart() -> None:
    """Two choices take turns, and each says a key of its own."""
    other = KEY[:8] + KEY[8:][::-1]
    events = [
        event
        for at in range(0, len(KEY), 8)
        for event in (say(KEY[at : at + 8]), say(other[at : at + 8], index=1))
    ]
    redactor = Redactor(STORE)
    kept, _, _ = redactor.response(answer(b"".join(events), EVENTS))
    told = {value for _, value, _ in Redactor(STORE).learn(kept)}
    assert told == {redactor.stands_for(one.encode()) for one in (KEY, other)}


ROWS = b'{"id": 1, "token": "%b"}\n{"id": 2, "token": "%b"}\n'


def test_a_token_in_each_line_is_one_value_each() -> None:
    """Each fills its string, as a piece does."""
    tokens = (b"v7Qm2pZ9xAb3LrfW0yC1kT5d", b"9xAb3LrfW0yC1kT5dv7Qm2pZ")
    body = ROWS % tokens
    places = [Secret("body", body.index(one), len(one), "secret") for one in tokens]
    # On a tape of before nothing says so: both readings are listed.
    both = list_values(body, places, events=False)
    assert both == [tokens[0], b"".join(tokens), tokens[1]]
    split = [places[0], places[1]._replace(coded=PIECE)]
    assert list_values(body, split, events=False) == [b"".join(tokens)]
    assert list_values(body, split, events=None) == list(tokens)


TOKENS = [
    b"v7Qm2pZ9xAb3LrfW0yC1kT5d",
    b"sk-proj-" + b"v7Qm2pZ9xAb3LrfW0yC1kT5d" * 2,
    b"v7Qm2pZ9xA+/3q",
]
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base64 of URLs": lambda plain: base64.urlsafe_b64encode(plain).rstrip(b"="),
    "data URL": lambda plain: b"data:application/json;base64," + base64.b64encode(plain),
}  # fmt: skip
FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "alone": lambda coded: coded,
    "member": lambda coded: b'{"blob": "%b"}' % coded,
    "escaped": lambda coded: b'{"blob": "%b"}' % coded.replace(b"/", rb"\/"),
    "stream": lambda coded: say(coded[:37].decode(), coded[37:].decode()),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("token", TOKENS)
def test_a_value_in_base64_is_known_as_the_agent_decodes_it(
    token: bytes, coding: str, frame: str
) -> None:
    """Behind 0, 1 and 2 other bytes, and also where the run had learned it before; without what is around it."""
    for before in range(3):
        plain = b"x" * before + b'{"access_token": "%b", "n": 1}' % token
        raw = answer(FRAMES[frame](CODINGS[coding](plain)), *[EVENTS][: frame == "stream"])
        redactor = Redactor(STORE)
        placeholder = redactor.stands_for(token)
        for _ in range(2):
            kept, places, _ = redactor.response(raw)
            assert token not in kept.body
            replay = Redactor(STORE)
            assert replay.learn(kept, places) == [("", placeholder, placeholder)]
            asked, _ = replay.request(send(placeholder.decode()))
            recorded, _ = redactor.request(send(token.decode()))
            assert (asked.body, asked.secrets) == (recorded.body, recorded.secrets)
            given = Redactor.list_given(kept)
            assert {placeholder, *(one for _, one in list_tokens(placeholder))} <= {*given}


@pytest.mark.parametrize("before", [b"", b"x", b"xy"])
def test_a_value_that_was_learned_is_known_where_base64_or_hex_says_it_back(before: bytes) -> None:
    """Nothing else in it announces a secret."""
    token = TOKENS[0]
    for coded in (base64.b64encode(before + token + b"|z"), token.hex().encode()):
        redactor = Redactor(STORE)
        redactor.text(b'"access_token": "%b"' % token)
        kept, _, _ = redactor.response(answer(b'{"z": "%b"}' % coded))
        placeholder = redactor.stands_for(token)
        assert Redactor(STORE).learn(kept) == [("", placeholder, placeholder)]


def test_what_no_place_tells_is_read_as_it_is() -> None:
    """On a tape from elsewhere it may be wrong."""
    body = base64.b64encode(b"abc" * 9)
    for coded in ("base64", "base64 0:2:900", "base64 3:2:1:1", "base64 url", "hex", "zip"):
        assert list_values(body, [Secret("body", 0, 20, "secret", coded)], events=None) == [body[:20]]  # fmt: skip
    assert list_values(b"abc", [Secret("body", 0, 3, "secret", "hex lower")], events=None) == [
        b"abc"
    ]


def test_pieces_of_requests_are_not_marked() -> None:
    """How their values are written counts in matching, also with tapes of before."""
    headers: Headers = (EVENTS,)
    body = say(KEY[:9], KEY[9:])
    request = Request("POST", "https", "api.test", 443, "/x", "HTTP/1.1", headers, body)
    kept, _ = Redactor(STORE).request(request)
    assert [one.coded for one in kept.secrets] == ["", ""]


CODED = [
    b"\xff" + KEY.encode() + b"\0",
    b"\0\x07password=hunt3rQ2xZk9\0",
    b'\x12\x20{"client_secret":"v7Qm2pZ9xAb3LrfW0yC1kT5d"}\0\x01',
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CODED), st.sets(st.integers(1, 70)))
def test_base64_over_events_is_replaced_as_it_is_in_one(plain: bytes, cuts: set[int]) -> None:
    """Wherever it is cut, what the client puts together means the placeholder."""
    text = base64.b64encode(plain).decode()
    ends = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    whole, _, _ = Redactor(STORE).response(answer(say(text, "."), EVENTS))
    kept, _, _ = Redactor(STORE).response(
        answer(say(*(text[at:end] for at, end in pairwise(ends)), "."), EVENTS)
    )
    assert read(kept.body) == read(whole.body) != text + "."
    assert len(base64.b64decode(read(kept.body)[:-1])) == len(plain)
