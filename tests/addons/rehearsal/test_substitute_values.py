"""Words of one recording in the place of another's."""

from dataclasses import replace

import pytest

from playhead.addons.rehearsal.substitute_values import put_words, put_words_into_message
from playhead.tape.exchange import Message, MessageKind, Secret
from playhead.tests.support.dialects import make_request

WORDS = {"thread_of_two": "thread_1"}


def test_words_are_put_wherever_a_request_has_them() -> None:
    """In path, query, header fields and body; never in a part of a word."""
    body = b"see thread_of_two, not thread_of_twofold"
    request = make_request(
        "https://api.test/v1/thread_of_two?at=thread_of_two", body, {"x-thread": "thread_of_two"}
    )
    put = put_words(request, WORDS)
    assert put.target == "/v1/thread_1?at=thread_1"
    assert put.header(b"x-thread") == b"thread_1"
    assert put.body == b"see thread_1, not thread_of_twofold"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"thread_of_two SECRET", Secret("body", 9, 6, "x")),
        (b"SECRET thread_of_two", Secret("body", 0, 6, "x")),
        (b"thread_of_two SECRET thread_of_two", Secret("body", 9, 6, "x")),
    ],
)
def test_the_places_of_secrets_move_with_the_words(text: bytes, wanted: Secret) -> None:
    """In bodies and in messages of a WebSocket."""
    secret = Secret("body", text.index(b"SECRET"), 6, "x")
    request = replace(make_request("https://api.test/", text), secrets=(secret,))
    message = Message(0, True, MessageKind.TEXT, text, secrets=(secret,))
    assert put_words(request, WORDS).secrets == (wanted,)
    assert put_words_into_message(message, WORDS).secrets == (wanted,)
