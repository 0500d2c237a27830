"""Signatures of URLs in further forms, and keys behind escapes: of quoted-printable, of JavaScript, of the colours of grep."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

KEY = "xai-Kq8vN2xPz7RtW4mYb1LcD9sFh3GjE6uAo5TiXw0ZKq8vN2xPz7RtW4mYb1LcD9sFh3GjE6uAo5TiXw0Z"


def _text(text: str) -> str:
    return Redactor(b"k" * 32).text(text.encode()).decode()


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("https://b.s3.amazonaws.test/k?Expires=1900000000&Signature={}", "LaANvb3PzMgdiWV8Wlth5YEtp0w%3D"),
        ("https://b.s3.amazonaws.test/k?Expires=1900000000&Signature={}", "9usa9J8UkwpHB8colgdri9UPLO8="),
        ("https://p.logic.azure.test/workflows/0a1b/triggers/manual/run?sv=1.0&sig={}", "dcoinob6QZKBvZXqj3a244SsCVs-txZ0aB1cD2eF3gH"),
    ],
)  # fmt: skip
def test_a_signature_is_replaced(url: str, secret: str) -> None:
    """Of SHA-1, and without the sign that fills base64."""
    assert secret not in _text(f"see {url.format(secret)} ok")


@pytest.mark.parametrize(
    "text",
    [
        "signature=inspect_signature_of_function(f)",
        "x?sig=a-word-that-is-long-enough-to-be-a-signature-of-43",
        "Signature=the_signature_of_the_request_is",
    ],
)
def test_words_stay(text: str) -> None:
    """Behind the same names."""
    assert _text(text) == text


@pytest.mark.parametrize("before", ["key=3D", 'var a = "key\\x3d', "a\\x20", "a=20"])
def test_a_key_behind_an_escape_is_replaced(before: str) -> None:
    """The escape stays."""
    kept = _text(before + KEY + '"\n')
    assert KEY[4:] not in kept
    assert kept.startswith(before)


@pytest.mark.parametrize("wrap", ["text", "json"])
def test_a_key_that_grep_has_coloured_is_replaced(wrap: str) -> None:
    """Whose codes have one that erases the rest of the line."""
    text = f".env:KEY \x1b[01;31m\x1b[Kxai-\x1b[m\x1b[K{KEY[4:]}\n"
    said = text if wrap == "text" else json.dumps({"content": text})
    kept = _text(said)
    assert KEY[4:] not in kept
    assert len(kept) == len(said)
