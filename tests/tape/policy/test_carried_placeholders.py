"""In which spellings a placeholder is seen in a request, and in which it is not."""

import base64
import gzip
import json
from dataclasses import replace
from urllib.parse import quote

import pytest

from playhead.tape.exchange import Seq
from playhead.tape.policy.carried_placeholders import CarriedPlaceholders
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request

MADE = b"q8Zf3Kx9/Lm2Vt7Rw+Yp6Bn1Hs"
TEXT = MADE.decode()
FIELDS = {
    "bearer": b"Bearer " + MADE,
    "password of Basic": b"Basic " + base64.b64encode(b"user:" + MADE),
    "user of Basic": b"Basic " + base64.b64encode(MADE + b":"),
    "another user": b"Basic " + base64.b64encode(b"me:" + MADE),
    "in a cookie": b"a=1; session=" + quote(MADE, safe="").encode(),
}
BODIES = {
    "json": json.dumps({"key": TEXT}).encode(),
    "json with slashes escaped": json.dumps({"key": TEXT}).replace("/", "\\/").encode(),
    "json with signs escaped": json.dumps({"key": TEXT}).replace("+", "\\u002b").encode(),
    "json in json": json.dumps(json.dumps({"key": TEXT}).replace("/", "\\/")).encode(),
    "a form": b"a=1&key=" + quote(MADE, safe="").encode(),
    "base64": json.dumps({"key": base64.b64encode(MADE).decode()}).encode(),
    "base64 for URLs": base64.urlsafe_b64encode(b"x" + MADE + b"y"),
    "base64 in a form": b"key=" + quote(base64.b64encode(b"ab" + MADE), safe="").encode(),
    "hex": MADE.hex().encode(),
}


def given(*values: bytes) -> CarriedPlaceholders:
    found = CarriedPlaceholders()
    for number, value in enumerate(values, 5):
        found.give(Redactor.list_forms([value]), Seq(number))
    return found


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
def test_a_placeholder_is_seen_in_header_fields(value: bytes) -> None:
    """Credentials have a form of their own."""
    request = make_request("POST https://a.test/pay")
    carries = replace(request, headers=(*request.headers, (b"authorization", value)))
    assert given(b"another-placeholder", MADE).find(carries) == 6
    assert given(MADE).find(request) is None


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("coded", [False, True], ids=["", "gzip"])
def test_a_placeholder_is_seen_in_bodies(body: bytes, coded: bool) -> None:
    """Whatever the body's content coding."""
    request = make_request("POST https://a.test/pay", body=gzip.compress(body) if coded else body)
    if coded:
        request = replace(request, headers=((b"Content-Encoding", b"gzip"),))
    assert given(MADE).find(request) == 5
    assert given(b"another-placeholder").find(request) is None


def test_a_placeholder_is_seen_in_a_target() -> None:
    """In the path and the query, escaped."""
    request = make_request(f"GET https://a.test/x?key={quote(TEXT, safe='')}")
    assert given(MADE).find(request) == 5


def test_short_placeholders_are_not_looked_for() -> None:
    """They may stand anywhere."""
    found = given(b"1234567", b"gho_placeholder")
    assert found.find(make_request("GET https://a.test/1234567")) is None
    assert found.find(make_request("GET https://a.test/gho_placeholder")) == 6


def test_what_is_given_later_is_seen_too() -> None:
    """Each answer may give some."""
    found = given(MADE)
    request = make_request("GET https://a.test/gho_placeholder")
    assert found.find(request) is None
    found.give(Redactor.list_forms([b"gho_placeholder"]), Seq(9))
    assert found.find(request) == 9
