"""Whether an earlier answer says, in plain, what a recorded placeholder stands for."""

import base64
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import Exchange, Response, Seq
from playhead.tape.matching.plaintext_of_credentials import PlainAnswers
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_exchange, make_response

TOKEN = b"4f0cD-81ab77e0c2"
PLACEHOLDER = Redactor(b"key").stands_for(TOKEN)


def look(*answers: Response | None, placeholder: bytes = PLACEHOLDER, key: bytes = b"key") -> bool:
    """Look for a placeholder's value in the answers before the last exchange."""
    tape: dict[Seq, Exchange] = {
        Seq(at): make_exchange(at, response=answer) for at, answer in enumerate(answers, 1)
    }
    found = PlainAnswers(tape.get, Redactor(key).stands_for)
    return found.say(placeholder, Seq(len(answers) + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"your session: " + TOKEN,
        b'<input name=csrf value="' + TOKEN + b'">',
        b'{"value": "' + TOKEN + b'"}',
        b"?next=" + TOKEN + b"&a=1",
        b"9" + TOKEN + b"9",
    ],
)
def test_a_value_is_found_wherever_it_is(body: bytes) -> None:
    """Whatever is around it; not under another key, not as another value, and not in no answer."""
    assert look(make_response(b"nothing"), None, make_response(body), make_response(b""))
    assert not look(make_response(body), key=b"another")
    assert not look(make_response(body.replace(b"4f0c", b"5f0c")))
    assert not look(None)


@pytest.mark.parametrize(
    "body",
    [rb'{"csrf": "a+b\/c81ab77e0c2="}', rb'{"csrf": "a\u002Bb/c81ab77e0c2="}', b"t=a%2Bb%2Fc81ab77e0c2%3D", b"<input value='a&#x2B;b/c81ab77e0c2='>"],
)  # fmt: skip
def test_escapes_are_undone(body: bytes) -> None:
    """Of JSON, URLs and HTML: the agent reads what they mean."""
    placeholder = Redactor(b"key").stands_for(b"a+b/c81ab77e0c2=")
    assert look(make_response(body), placeholder=placeholder)


@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"/", b"/a/b/"])
@pytest.mark.parametrize("url", [False, True])
def test_base64_is_decoded(before: bytes, url: bool) -> None:
    """Behind whatever is in its alphabet; what is binary has no value."""
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    coded = before + encode(b'?>~{"id": "' + TOKEN + b'"}')
    assert look(make_response(b'{"blob": "%b"}' % coded))
    assert look(make_response(b'{"blob": "%b"}' % coded.replace(b"/", rb"\/")))
    assert not look(make_response(before + encode(b"\0\1" + TOKEN)))


@pytest.mark.parametrize("code", [b"482913", b"Kx7mQ2", b"AB12-C3"])
def test_a_short_code_is_found_between_signs_alone(code: bytes) -> None:
    """As a mail has it; not as a part of a longer number, and no word without a digit."""
    placeholder = Redactor(b"key").stands_for(code)
    for body, found in ((b'{"value": "%b"}', True), (b"it is %b.", True), (b"17%b", False), (b"%b99", False)):  # fmt: skip
        assert look(make_response(body % code), placeholder=placeholder) is found
    assert not look(make_response(b"it is secret"), placeholder=Redactor(b"key").stands_for(b"secret"))  # fmt: skip
    assert not look(make_response(b"it is 4829"), placeholder=Redactor(b"key").stands_for(b"4829"))


def test_fields_are_read() -> None:
    """An authorization code is a parameter of where a browser is sent."""
    headers = ((b"Location", b"https://app.test/cb?code=" + TOKEN + b"&state=1"),)
    assert look(make_response(b"", headers=headers))


def test_an_answer_with_a_coding_is_read() -> None:
    """As servers send pages."""
    headers = ((b"Content-Encoding", b"gzip"),)
    assert look(make_response(gzip.compress(b"session " + TOKEN), headers=headers))


def test_a_request_is_read() -> None:
    """What it says is an agent's own; the recorded one itself is not among those before."""
    asked = make_exchange(1, body=b"it is " + TOKEN)
    found = PlainAnswers({Seq(1): asked}.get, Redactor(b"key").stands_for)
    assert not found.say(Redactor(b"key").stands_for(b"5f0cD-81ab77e0c2"), Seq(2))
    assert found.say(PLACEHOLDER, Seq(2))
    assert not PlainAnswers({Seq(1): asked}.get, Redactor(b"key").stands_for).say(
        PLACEHOLDER, Seq(1)
    )


def test_a_short_value_is_not_looked_for() -> None:
    """It may stand anywhere."""
    assert not look(make_response(b"abc12"), placeholder=Redactor(b"key").stands_for(b"abc12"))


@given(st.binary(min_size=8, max_size=40), st.binary(max_size=60), st.binary(max_size=60))
def test_any_value_is_found(value: bytes, before: bytes, behind: bytes) -> None:
    """Of whatever bytes it is."""
    placeholder = Redactor(b"key").stands_for(value)
    assert look(make_response(before + value + behind), placeholder=placeholder)


def test_what_would_take_long_is_left() -> None:
    """Bounded by bytes, by answers and by what is tried."""
    assert not look(make_response(b"9" * 3_000_000), placeholder=b"0" * 12)
    assert not look(make_response(TOKEN), *[make_response(b"x")] * 120)
