"""Where values were replaced that count, as a table of requests."""

from dataclasses import replace

import pytest

from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.replaced_places import find_inner_secrets
from playhead.tests.support.exchanges import make_request

KEY = "sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f"
OTHER = "sk-proj-Zy3xWv6uTs9rQp2oNm5lKj8iHg1fEd4c"
FORM = b"application/x-www-form-urlencoded"
PLACES = [
    ("a member", '{"a": [{"b": "KEY"}]}', ["body $.a[0].b"]),
    ("two in a text", '{"a": "KEY and OTHER"}', ["body $.a", "body $.a#2"]),
    ("JSON in JSON", r'{"a": "{\"b\": \"KEY\"}"}', ["body $.a"]),
    ("a name", '{"KEY": 1}', ["body $"]),
    ("a credential", '{"api_key": "KEY", "q": 1}', []),
    ("no JSON", "key KEY, OTHER", ["body", "body#2"]),
    ("nothing", '{"a": "b"}', []),
]
FORMS = [
    ("a field", "a=1&note=KEY", ["form note"]),
    ("a credential", "client_secret=KEY", []),
    ("a form for a token", "grant_type=password&password=KEY", []),
]
TARGETS = [
    ("a path", "/a/KEY/b", ["path"]),
    ("a query", "/a?x=1&note=KEY", ["query note"]),
    ("a credential", "/a?api_key=KEY", []),
]


def places(target: str, body: str = "", kind: bytes = b"application/json") -> list[str]:
    """Give the places of a request once it was redacted."""
    target, body = (text.replace("KEY", KEY).replace("OTHER", OTHER) for text in (target, body))
    made = make_request(f"POST https://api.test{target}", body.encode())
    kept, _ = Redactor(b"key").request(replace(made, headers=((b"content-type", kind),)))
    return [one.place for one in find_inner_secrets(kept, frozenset()) if one.counts]


@pytest.mark.parametrize(
    ("body", "found"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_values_of_a_body_have_places(body: str, found: list[str]) -> None:
    """By their members where it is JSON, else one after the other."""
    assert places("/", body) == found


@pytest.mark.parametrize(
    ("body", "found"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS]
)
def test_values_of_a_form_have_places(body: str, found: list[str]) -> None:
    """By their fields; a form for a token has credentials alone."""
    assert places("/", body, FORM) == found


@pytest.mark.parametrize(
    ("target", "found"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS]
)
def test_values_of_a_target_have_places(target: str, found: list[str]) -> None:
    """In its path, or by their keys."""
    assert places(target) == found
