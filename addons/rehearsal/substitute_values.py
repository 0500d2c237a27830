"""Put the words of one recording in the place of another's, in requests and messages of a WebSocket."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...tape.exchange import BODY, TARGET, Message, Request, Secret

_WORD = re.compile(rb"[A-Za-z0-9_-]{12,}")


def put_words(request: Request, words: Mapping[str, str]) -> Request:
    """Give a request with other words; one whose body is in a file keeps that."""
    if not words:
        return request
    target, secrets = _put(request.target.encode("latin-1"), words, request.secrets, TARGET)
    body, secrets = _put(request.body, words, secrets, BODY)
    headers = tuple(
        (name, _put_into_field(name, value, words, secrets)) for name, value in request.headers
    )
    return replace(
        request, target=target.decode("latin-1"), headers=headers, body=body, secrets=secrets
    )


def put_words_into_message(message: Message, words: Mapping[str, str]) -> Message:
    """Give a message with other words."""
    if not words:
        return message
    data, secrets = _put(message.data, words, message.secrets, BODY)
    return replace(message, data=data, secrets=secrets)


def _put_into_field(
    name: bytes, value: bytes, words: Mapping[str, str], secrets: Sequence[Secret]
) -> bytes:
    part = f"header {name.decode('latin-1').lower()}"
    put, _ = _put(value, words, (), part)
    holds_secret = any(one.part == part for one in secrets)
    # The places of secrets go on from one value of a field to the next.
    return value if holds_secret and len(put) != len(value) else put


def _put(
    text: bytes, words: Mapping[str, str], secrets: tuple[Secret, ...], part: str
) -> tuple[bytes, tuple[Secret, ...]]:
    """Put words into a text, and move the places of secrets behind them."""
    moved: list[tuple[int, int]] = []

    def put(found: re.Match[bytes]) -> bytes:
        word = words.get(found[0].decode())
        if word is None:
            return found[0]
        moved.append((found.start(), len(word) - len(found[0])))
        return word.encode()

    new = _WORD.sub(put, text)
    if not any(by for _, by in moved):
        return new, secrets
    return new, tuple([_move(one, moved) if one.part == part else one for one in secrets])


def _move(secret: Secret, moved: Sequence[tuple[int, int]]) -> Secret:
    end = secret.at + secret.size
    before = sum(by for at, by in moved if at < secret.at)
    inside = sum(by for at, by in moved if secret.at <= at < end)
    return secret._replace(at=secret.at + before, size=secret.size + inside)
