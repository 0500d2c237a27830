"""Secrets in the query of a URL in a text, whose names say something only there."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

VALUES = [
    "M8PkzcqzRzyCaTRpIieG",
    "9f3c07ab6d41e8527b0cd9e3461fa85d",
    "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eXoQr5",
]
NAMES = ["key", "sig", "signature", "hmac", "token", "secret", "auth", "Signature"]
URLS = [
    "https://maps.example.com/api?{}={}",
    "https://maps.example.com/api?a=1&{}={}",
    "https://maps.example.com/api?a=1&amp;{}={}&amp;b=2",
    r"https://maps.example.com/api?a=1\u0026{}={}",
    "https%3A%2F%2Fmaps.example.com%2Fapi%3F{}%3D{}%26b%3D2",
    "file:x.db?{}={}",
    "https://h.test/#{}={}",
]
TEXTS = ["get %s now", '{"messages":[{"role":"user","content":"get %s now"}]}', '{"links":["%s"]}']


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("name", NAMES)
def test_a_secret_in_a_url_of_a_text_is_found(text: str, url: str, name: str) -> None:
    """In a prompt, in an answer, with escapes; the rest of the URL stays."""
    for value in VALUES:
        said = text.replace("%s", url.format(name, value))
        shown = Redactor(b"key").redact_text(said)
        assert value not in shown
        before, after = said.split(value)
        assert shown.startswith(before)
        assert shown.endswith(after)


STAY = [
    "https://h.test/a?key=value",
    "https://h.test/a?key=my-article-of-2024-with-title",
    "https://h.test/a?key=uploads/2024/11/photo-0001.png",
    "https://h.test/a?key=${MAPS_API_KEY_PRODUCTION}",
    "https://h.test/a?key=YOUR_API_KEY_GOES_HERE_1",
    "https://h.test/a?signature=00000000000000000000",
    "https://h.test/a?sort_key=2024-11-28T13:51:55Z",
    "a=1&key=M8PkzcqzRzyCaTRpIieG&b=2",
]


@pytest.mark.parametrize("said", STAY)
def test_what_is_no_secret_stays(said: str) -> None:
    """Words, paths, templates; and fields of a form, which name other things so."""
    for text in ("get " + said, json.dumps({"content": "get " + said})):
        assert Redactor(b"key").redact_text(text) == text
