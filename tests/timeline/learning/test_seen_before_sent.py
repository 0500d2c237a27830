"""Whether values were there before the client sent them."""

import base64
import gzip
import hashlib
import json
import time
import uuid
from typing import Any

import pytest

from playhead.tape.exchange import RequestClass
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.timeline.learning.answer_texts import Spelling, read_answer_texts
from playhead.timeline.learning.identifying_words import find_parts, find_words, list_derived
from playhead.timeline.learning.seen_before_sent import Known, Told, find_first, is_told

OWN = "6f1c9d3e-2b7a-4c58-9e1f-0a3b5c7d9e11"


@pytest.mark.parametrize("text", [OWN, OWN.upper(), OWN.replace("-", ""), f"order_{OWN}, please"])
def test_a_uuid_is_known_in_all_its_spellings(text: str) -> None:
    """With and without hyphens, in either case."""
    assert find_words(OWN.encode()) <= find_words(text.encode())


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", "0305e82c3301"),
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", "9a0c0305e82c3301"),
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", "4F89-11D3"),
        ("AB12-CD34-EF56", "ab12cd34ef56"),
        ("ab12cd34ef56", "AB12-CD34-EF56"),
        ("AB12-CD34-EF56", "ef56-cd34"),
        ("ticket8D2F6A1B9C04", "8d2f6a1b9c04"),
        ("in.7c1e9b3d5f02.json", "7C1E9B3D5F02"),
        ("--ticket=8d2f6a1b9c04", "8D2F6A1B9C04"),
        ("https://a.example/t/9e3c5b7a1d06?x", "9e3c5b7a1d06"),
        ("ticket_1A2b9c8d7e06_x", "1a2b9c8d7e06"),
    ],
)
def test_a_part_of_what_was_told_is_known(told: str, value: str) -> None:
    """In either case, with and without hyphens, in the order in which it was told."""
    known = Known(dict.fromkeys(find_parts(told.encode()), (1, -1)))
    assert known.holds(value, (2, -1), is_time=False) is (value != "ef56-cd34")


def test_a_slice_of_what_the_command_has_is_known() -> None:
    """As `sys.argv[1][:12]`."""
    wanted = find_words(OWN[5:20].encode())
    told = Told((0, -2), f"--for={OWN.upper()}".encode())
    assert find_first([told], wanted).keys() & wanted


_GIVEN = "0f4c81ab-77e0-4c2d-93b6-a1b2c3d4e5f6"
MADE_OF_IT = [
    hashlib.sha256(_GIVEN.encode()).hexdigest(),
    hashlib.sha256(_GIVEN.encode()).hexdigest()[:32],
    base64.b64encode(uuid.UUID(_GIVEN).bytes).decode(),
    base64.urlsafe_b64encode(_GIVEN.encode()).decode().rstrip("="),
    str(uuid.uuid5(uuid.NAMESPACE_URL, _GIVEN)),
    uuid.uuid3(uuid.NAMESPACE_DNS, _GIVEN).hex,
    str(uuid.UUID(bytes=hashlib.sha256(_GIVEN.encode()).digest()[:16], version=4)),
    hashlib.md5(_GIVEN.encode()).hexdigest(),
]


@pytest.mark.parametrize("value", MADE_OF_IT)
def test_what_is_made_of_a_word_of_the_command_is_known(value: str) -> None:
    """A digest of the job that a command was given is no value that was made anew."""
    before = [make_exchange(1)]
    later = time.monotonic() + 60
    for word in (_GIVEN, f"--job={_GIVEN}"):
        assert is_told([value], ["agent", word], before, later)
    assert not is_told([value], ["agent", "another-7"], [], later)
    told = [Told((0, -2), text) for text in list_derived(_GIVEN.encode())]
    wanted = find_words(value.encode())
    assert Known(find_first(told, wanted)).holds(value, (5, -1), is_time=False)


def test_words_without_digits_say_nothing() -> None:
    """They are in every answer."""
    assert find_words(b"session complete: 12") == set()


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [((3, -1), (2, -1), False), ((3, -1), (3, -1), False), ((2, -1), (3, -1), True)],
)
def test_what_was_told_before_is_held(
    before: tuple[int, int], after: tuple[int, int], held: bool
) -> None:
    """Not what is told by the answer to the same request, or later."""
    known = Known(dict.fromkeys(find_words(OWN.encode()), before))
    assert known.holds(OWN, after, is_time=False) is held


def test_a_value_without_a_word_may_have_been_told() -> None:
    """`deadbeef` may be in every answer; a short time is in none but by chance."""
    assert Known({}).holds("deadbeef", (2, -1), is_time=False)
    assert not Known({}).holds("12:30", (2, -1), is_time=True)


def test_of_a_time_all_words_have_to_be_told() -> None:
    """An answer may be of the same second."""
    known = Known({b"1795478409": (1, -1)})
    assert not known.holds("1795478409.123456", (2, -1), is_time=True)
    assert known.holds("1795478409", (2, -1), is_time=True)


@pytest.mark.parametrize(
    ("told", "command", "is_it"),
    [
        ({}, (), False),
        ({"response": make_response(f'{{"id": "{OWN}"}}'.encode())}, (), True),
        ({"response": make_response(b"x", headers=((b"x-id", OWN.encode()),))}, (), True),
        ({"kind": RequestClass.INFERENCE, "asks": OWN}, (), True),
        ({"kind": RequestClass.READ, "asks": OWN}, (), False),
        ({}, ("agent", f"--order={OWN}"), True),
    ],
    ids=["nothing", "answer", "header", "question", "read", "command"],
)
def test_a_rule_is_shown_only_for_what_nobody_has_told(
    told: dict[str, Any], command: tuple[str, ...], is_it: bool
) -> None:
    """As `learn` has it."""
    asks = {"messages": [{"content": f"look up {told.pop('asks', '')}"}]}
    request = make_request("https://api.test/v1/chat/completions", json.dumps(asks).encode())
    exchange = make_exchange(
        1, "POST https://api.test/v1/chat/completions", request=request, **told
    )
    until_s = time.monotonic() + 60
    assert is_told([OWN], command, [exchange], until_s) is is_it
    assert is_told([OWN], command, [exchange], 0.0)


def in_pieces(text: str, wrap: Any = json.dumps) -> bytes:
    """A stream of events, each with five characters of a text."""
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    return b"".join(b"data: %s\n\n" % str(wrap(one)).encode() for one in pieces)


def tool_call(text: str) -> str:
    """A piece of a tool call's arguments, as OpenAI sends it."""
    call = {"index": 0, "function": {"name": "decide", "arguments": text}}
    return json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


EVENTS = ((b"Content-Type", b"text/event-stream"),)
GZIPPED = ((b"Content-Encoding", b"gzip"),)
TOLD = json.dumps({"approve": OWN})


@pytest.mark.parametrize(
    "response",
    [
        make_response(in_pieces(TOLD, tool_call), headers=EVENTS),
        make_response(gzip.compress(in_pieces(TOLD, tool_call)), headers=(*EVENTS, *GZIPPED)),
        make_response(in_pieces(OWN, lambda text: json.dumps({"text": text})), headers=EVENTS),
        make_response(in_pieces(OWN, str), headers=EVENTS),
        make_response(in_pieces(f'{{"id": "{escaped(OWN)}"}}', tool_call), headers=EVENTS),
        make_response(b'{"id": "%s"}' % escaped(OWN).encode()),
        make_response(json.dumps({"x": json.dumps({"y": f'"{escaped(OWN)}"'})}).encode()),
        make_response(OWN.replace("-", "%2D").encode()),
        make_response(OWN.replace("-", "&#45;").encode()),
        make_response(OWN.encode("utf-16")),
        make_response(b"x " * (5_000_000 if FULL else 500_000) + OWN.encode()),
        make_response(headers=((b"Location", OWN.replace("-", "%2d").encode()),)),
    ],
    ids=[
        *("tool call", "in gzip", "events", "plain events", "escaped in a call", "JSON escapes"),
        *("JSON in JSON", "percent", "HTML", "UTF-16", "large", "header"),
    ],
)
def test_what_an_answer_says_is_found_however_it_is_written(response: Any) -> None:
    """Put together, and without escapes."""
    request = make_request("https://api.openai.com/v1/chat/completions", b'{"stream": true}')
    exchange = make_exchange(1, request=request, response=response)
    told = [Told((1, -1), text) for text in read_answer_texts(exchange)]
    assert find_first(told, find_words(OWN.encode())) == dict.fromkeys(
        find_words(OWN.encode()), (1, -1)
    )


@pytest.mark.parametrize(
    "response",
    [
        make_response(b"\x80\x81\x82", headers=((b"Content-Encoding", b"aes128gcm"),)),
        make_response(b"0" * (64 * 1024 * 1024 + 1)),
    ],
    ids=["coding", "size"],
)
def test_in_what_was_not_searched_may_be_any_word(response: Any) -> None:
    """For requests after it."""
    texts = list(read_answer_texts(make_exchange(1, response=response)))
    assert None in texts
    known = Known(find_first((Told((1, -1), text) for text in texts), set()))
    assert known.holds(OWN, (2, -1), is_time=False)
    assert not known.holds(OWN, (1, -1), is_time=False)


def test_messages_of_a_websocket_are_put_together() -> None:
    """A word is told by the message that ends it."""
    spelling, told = Spelling(), []
    for number in range(0, len(OWN), 6):
        message = json.dumps({"type": "delta", "delta": OWN[number : number + 6]}).encode()
        told += [Told((1, number // 6), text) for text in spelling.add(message)]
    assert find_first(told, find_words(OWN.encode())) == dict.fromkeys(
        find_words(OWN.encode()), (1, 5)
    )
