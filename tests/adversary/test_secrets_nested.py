"""Secrets that are written with escapes around escapes: a URL that is a parameter of a URL, JSON in a form."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request

TOKEN = "q8Zb+3kT/x7Vd2LmP9+sWq/4RfYh6NcJ0eA+bUg/1="
PASSWORD = "zK9@rT/4p&Lw+7xQm!a1b2c3"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def _coded(text: str, times: int) -> str:
    for _ in range(times):
        text = quote(text, "")
    return text


def _in_json(text: str, name: str, times: int) -> str:
    for _ in range(times):
        text = json.dumps({name: text})
    return text


WRITTEN: dict[str, Callable[[str, str, int], tuple[str, bytes]]] = {
    "query": lambda name, value, n: (f"/l?next={_coded(f'/cb?{name}={quote(value, "")}', n)}", b""),
    "path": lambda name, value, n: (f"/l/{_coded(f'/cb?{name}={quote(value, "")}', n)}", b""),
    "form": lambda name, value, n: (
        "/l",
        f"next={_coded(f'/cb?{name}={quote(value, "")}', n)}".encode(),
    ),
    "JSON in a form": lambda name, value, n: (
        "/l",
        f"d={quote(_in_json(value, name, n), '')}".encode(),
    ),
    "JSON in a query": lambda name, value, n: (f"/l?d={quote(_in_json(value, name, n), '')}", b""),
}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["t", "access_token", "password"])
@pytest.mark.parametrize("where", WRITTEN)
def test_a_secret_is_found_under_several_layers_of_escapes(
    where: str, name: str, depth: int
) -> None:
    """One that is known, and one behind a telling name: nothing of it is left in any spelling."""
    redactor = Redactor(b"a test")
    basic = base64.b64encode(f"bob:{PASSWORD}".encode()).decode()
    for credential in (f"Bearer {TOKEN}", f"Basic {basic}"):
        redactor.request(make_request("https://a.test/", b"", {"authorization": credential}))
    for value in (TOKEN, PASSWORD):
        target, body = WRITTEN[where](name, value, depth)
        kept, _ = redactor.request(make_request(f"https://a.test{target}", body, FORM))
        told = kept.target + kept.body.decode()
        assert len(told) == len(target + body.decode())
        for times in range(5):
            for inner in (value, json.dumps(value)[1:-1]):
                assert _coded(inner, times) not in told


@pytest.mark.parametrize("name", ["access_token", "password"])
def test_a_secret_nobody_knows_yet_is_found_by_its_name(name: str) -> None:
    """In a URL that is a parameter of a URL."""
    target = f"/login?next={_coded(f'/cb?{name}={quote(TOKEN, "")}', 1)}"
    kept, _ = Redactor(b"a test").request(make_request(f"https://a.test{target}", b"", FORM))
    assert _coded(TOKEN, 2) not in kept.target
    assert "next=%2Fcb%3F" in kept.target


@pytest.mark.parametrize("times", range(4))
@pytest.mark.parametrize(
    "value", ['pQ7"xz9/K&w3+Lm2=aB5', r"CORP\pQ7xz9-Kw3Lm2aB5vT8", r'a1"b\c2\d3"e4F5g6H7i8']
)
def test_a_value_with_quotes_is_found_in_json_in_json(value: str, times: int) -> None:
    """Each text of JSON in another one has more backslashes; percent-encoded as well."""
    redactor = Redactor(b"a test")
    body = json.dumps({"password": value}).encode()
    redactor.request(make_request("https://a.test/", body, {"content-type": "application/json"}))
    told = _in_json(value, "note", times)
    for text in (told, quote(told, "")):
        kept, _ = redactor.request(make_request("https://a.test/", text.encode()))
        spelled = [value]
        for _ in range(times):
            spelled.append(json.dumps(spelled[-1])[1:-1])
        assert len(kept.body) == len(text)
        assert not any(_coded(one, n) in kept.body.decode() for one in spelled for n in range(2))
