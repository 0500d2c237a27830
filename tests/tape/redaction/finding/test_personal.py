"""Personal data: found where a configuration asks for it, and replaced by pseudonyms that are valid."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import ConfigError, loads
from playhead.config.parse_values import PERSONAL_KINDS
from playhead.config.schema import RedactRule
from playhead.tape.canonical.canonical_request import BodyKind, canonical, compile_rules
from playhead.tape.exchange import RawResponse, RequestClass
from playhead.tape.redaction.looks_like_secret import is_card, is_iban
from playhead.tape.redaction.placeholders.placeholder import Placeholders
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import make_request, raw_request

ALL = (RedactRule(pii=PERSONAL_KINDS),)
CARD = "41" + "11111111111111"
IBAN = "DE89" + "370400440532013000"


def replaced(text: str) -> str:
    """Give a text without personal data."""
    return Redactor(b"k", ALL).text(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("write to bob.s@acme.org today", r"write to [a-z]{3}\.[a-z]@[a-z]{3}\.test today"),
        ('{"a": "\\nbob@x.org"}', r'\{"a": "\\n[a-z]{3}@[a-z]{2}\.zz"\}'),
        ("?to=bob%40mail.org", r"\?to=[a-z]{3}%40[a-z]{3}\.test"),
        ("<bob@mail.org>,", r"<[a-z]{3}@[a-z]{3}\.test>,"),
        ("call +49 30 1234567.", r"call \+49 \d{2} \d{7}\."),
        ("(415)555-0123", r"\([2-9]\d\d\)[2-9]\d\d-\d{4}"),
        ("415-555-0123", r"[2-9]\d\d-[2-9]\d\d-\d{4}"),
        ('"phone": "4155550123"', r'"phone": "[2-9]\d\d[2-9]\d{6}"'),
        (f"to {IBAN}.", r"to DE\d{20}\."),
        ("to DE89 3704 0044 0532 0130 00 NOW", r"to DE\d\d \d{4} \d{4} \d{4} \d{4} \d\d NOW"),
        (f"qty 2 {CARD}", r"qty 2 41\d{14}"),
        ("4111 1111 1111 1111", r"41\d\d \d{4} \d{4} \d{4}"),
        ('{"pan":378282246310005}', r'\{"pan":37\d{13}\}'),
        ('{"ssn": "219099998"}', r'\{"ssn": "\d{9}"\}'),
        ("SSN: 219 09 9998.", r"SSN: \d{3} \d\d \d{4}\."),
        ("tel: 0171 1234567", r"tel: \d{4} \d{7}"),
        ("mobile 07911 123456,", r"mobile \d{5} \d{6},"),
        ('{"phone":[14158817739]}', r'\{"phone":\[\d{11}\]\}'),
        (f"\x1b[1m{CARD}\x1b[0m", r"\x1b\[1m41\d{14}\x1b\[0m"),
        (f'{{"a":"\\u201c{CARD}"}}', r'\{"a":"\\u201c41\d{14}"\}'),
        ("123-45-6789", r"9\d\d-\d\d-\d{4}"),
        # Other blanks, signs, letters and cases.
        ("Tel. +49 (0)89 / 1234-5678", r"Tel\. \+49 \(\d\)\d\d / \d{4}-\d{4}"),
        ("Tel. +49\xa089\xa012345678", r"Tel\. \+49\xa0\d\d\xa0\d{8}"),
        ("+49\u202f89\u202f1234\u201312", r"\+49\u202f\d\d\u202f\d{4}\u2013\d\d"),
        ("415\xa0555\xa00123", r"[2-9]\d\d\xa0[2-9]\d\d\xa0\d{4}"),
        ("to ann.lee@müller-shop.de", r"to [a-z]{3}\.[a-z]{3}@[a-z][à-ö][a-z]{7}\.test"),
        ("to jörg.müller@firma.de", r"to [a-z][à-ö][a-z]{2}\.[a-z][à-ö][a-z]{4}@[a-z]{3}\.test"),
        ("Łukasz@żabka.pl", r"[À-Ö][a-z]{5}@[à-ö][a-z]{2}\.test"),
        ("иван@пример.com", r"[à-ö]{4}@[à-ö]{6}[a-z]\.zz"),
        ("iban gb82west12345698765432", r"iban gb\d\d[a-z]{4}\d{14}"),
        ("GB82\xa0WEST\xa01234\xa05698\xa07654\xa032", r"GB\d\d\xa0[A-Z]{4}(\xa0\d{4}){3}\xa0\d\d"),
        ("card 6011\xa01111\xa01111\xa01117", r"card 60\d\d(\xa0\d{4}){3}"),
        ("card 5105.1051.0510.5100.", r"card 51\d\d(\.\d{4}){3}\."),
    ],
)
def test_personal_data_is_replaced_in_its_form(text: str, kept: str) -> None:
    """By something else that is written as it is."""
    found = replaced(text)
    assert re.fullmatch(kept, found)
    assert found != text
    if not text.startswith("{"):  # the same in a document of JSON that is written in ASCII
        assert json.loads(replaced(json.dumps({"said": text}))) == {"said": found}


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:playhead/playhead.git",
        "npm install left-pad@1.3.0",
        "id 1234567890123456",
        "4111111111111112",
        "0.4111111111111111",
        '{"score": 0.4111111111111111}',
        "trace 41111111111111110000",
        "a4111111111111111",
        "DE88370400440532013000",
        "ZZ89370400440532013000",
        "2026-11-22T10:00:00+01:00",
        "1e+1000000000",
        "000-12-3456",
        "v1.2.3-415-555-01234",
        "+10 - 20 - 30 - 40 - 50",
        "+12 / 34 / 56 / 78",
        "1.5105.1051.0510.5100",
        "5105.1051.0510.5100.7",
        "5105.1051.0510.5101",
        "gb83west12345698765432",
        "Gb82WEST12345698765432",
        "xgb82west12345698765432",
        "Größe 12, übung@home",
    ],
)
def test_what_is_no_personal_data_stays(text: str) -> None:
    """A wrong check digit, a part of a longer word, something of another meaning."""
    assert replaced(text) == text


def test_a_value_has_one_pseudonym_however_it_is_written() -> None:
    """So that two mentions are one person's."""
    digits = re.sub(r"\D", "", replaced("4111 1111 1111 1111"))
    assert replaced(CARD) == digits
    assert replaced("Bob@Mail.org").lower() == replaced("bob@mail.org")
    said = json.loads(replaced(json.dumps({"to": "bob@mail.org", "said": "ask bob@mail.org"})))
    assert said["said"] == f"ask {said['to']}"


def test_the_pseudonym_of_an_address_comes_back_as_it_is() -> None:
    """With letters beyond ASCII, too, as they are and as escapes: the agent sends what it was given."""
    body = json.dumps({"to": "jörg@müller.de"}).encode()
    given = json.loads(replaced(body.decode()))["to"]
    for told in (json.dumps({"to": given}), json.dumps({"to": given}, ensure_ascii=False)):
        redactor = Redactor(b"k", ALL)
        answer = RawResponse(200, b"OK", "HTTP/1.1", (), body, 1)
        redactor.learn(Redactor(b"k", ALL).response(answer)[0])
        assert json.loads(redactor.text(told.encode())) == {"to": given}


def test_what_follows_a_number_stays() -> None:
    """It is the next thing."""
    assert replaced("+49 89 12345678 - 123 Main St").endswith(" - 123 Main St")
    assert replaced("ask bob@mail.orgまで").endswith("まで")
    assert replaced("連絡先はbob@mail.org").startswith("連絡先は")


def test_without_a_rule_it_stays() -> None:
    """It is what the agent works with."""
    text = f"bob@mail.org {CARD} {IBAN} +493012345678 123-45-6789".encode()
    assert Redactor(b"k").text(text) == text
    assert Redactor(b"k", (RedactRule(pii=("card",)),)).text(text).startswith(b"bob@mail.org 41")


def _with_check(digits: str) -> str:
    return next(f"{digits}{n}" for n in range(10) if is_card(f"{digits}{n}".encode()))


@tries(50)
@given(st.from_regex(r"4[0-9]{13}[1-9]", fullmatch=True), st.binary(min_size=1, max_size=8))
def test_the_pseudonym_of_a_card_is_valid(digits: str, key: bytes) -> None:
    """A form takes it."""
    made = Placeholders(key).of(_with_check(digits).encode())
    assert is_card(made)
    assert made[:2] == digits[:2].encode()


@tries(50)
@given(st.from_regex(r"[0-9]{18}", fullmatch=True), st.binary(min_size=1, max_size=8))
def test_the_pseudonym_of_an_iban_is_valid(digits: str, key: bytes) -> None:
    """Its country and length stay."""
    value = next(f"DE{n:02}{digits}" for n in range(2, 99) if is_iban(f"DE{n:02}{digits}".encode()))
    made = Placeholders(key).of(value.encode())
    assert is_iban(made)
    assert made[:2] == b"DE"


def test_a_number_of_json_is_compared_as_json() -> None:
    """Two requests that differ in the blanks between members are one question."""
    forms = []
    for body in (f'{{"pan":{CARD},"b":[1]}}', f'{{"b":[1], "pan": {CARD}}}'):
        request = raw_request(make_request("POST https://a.test/", body.encode()))
        kept, _ = Redactor(b"k", ALL).request(request)
        assert CARD not in kept.body.decode()
        json.loads(kept.body)
        forms.append(canonical(kept, RequestClass.EFFECT, compile_rules()))
    assert forms[0] == forms[1]
    assert forms[0].kind is BodyKind.JSON
    kept, _ = Redactor(b"k", ALL).request(
        raw_request(make_request("POST https://a.test/", f'["a:{CARD},b", {CARD}]'.encode()))
    )
    shown = canonical(kept, RequestClass.EFFECT, compile_rules()).body
    assert json.loads(shown) == ["a:\0(secret),b", "\0(secret)"]


def test_the_rule_in_a_configuration() -> None:
    """As a list of entries, or in short; what is wrong is named."""
    short, entry = loads("redact: {pii: [email, card]}"), loads("redact: [{pii: [email, card]}]")
    assert short.redact == entry.redact == (RedactRule(pii=("email", "card")),)
    with pytest.raises(ConfigError, match="'mail' is no known kind of personal data; expected"):
        loads("redact: {pii: [mail]}")
    with pytest.raises(ConfigError, match="names nothing; expected a list of email, phone"):
        loads("redact: {pii: []}")
