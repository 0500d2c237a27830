"""A generated password has any sign; what is written in the place of one is no password, and everywhere in documentation."""

import json
from base64 import b64encode
from dataclasses import replace

import pytest

from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request, raw_request

SIGNS = "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"


def _after(value: str) -> bytes:
    """Give the body of a request that says a value again, which the one before had in its own place."""
    redactor = Redactor(b"k")
    given = b64encode(f"joe:{value}".encode())
    first = replace(make_request(), headers=((b"Authorization", b"Basic " + given),))
    redactor.request(raw_request(first))
    body = json.dumps({"note": f"I use {value} there"}).encode()
    kept, _ = redactor.request(
        raw_request(replace(make_request("POST https://a.test/"), body=body))
    )
    return kept.body


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    "form", ["zK9{}rwfZshMCG8JBCNUsa", "zK9rwf{}Zs{}hMCG8JBCNUsa", "{}zK9rwfZshMCG8"]
)
def test_a_password_with_a_sign_is_found_again(form: str, sign: str) -> None:
    """Whichever sign it is."""
    value = form.replace("{}", sign)
    assert json.dumps(value)[1:-1].encode() not in _after(value)


@pytest.mark.parametrize(
    "value",
    [
        "<your password1>",
        "${SHOP_PASSWORD1}",
        "{{ shop.password1 }}",
        "Bearer-<token>",
        "{password12}",
    ],
)
def test_what_stands_for_a_password_is_none(value: str) -> None:
    """A prompt that explains the format stays as it is."""
    assert json.dumps(value)[1:-1].encode() in _after(value)
