"""A secret with letters outside of ASCII is replaced in all that follows, however programs write them (docs/redaction.md)."""

import base64
import json
import re
import unicodedata
from dataclasses import replace
from urllib.parse import quote

import pytest

from playhead.config import RedactRule
from playhead.tape.exchange import Request
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tests.support.exchanges import make_exchange, make_request, make_response

VALUES = [
    "xK9ü7mQ2ö4vB8näw3Zs",
    "pa55-wörd-ünik-42",
    "öZk4vB8nQw3Zs7TyL1",
    "Zk4vB8nQw3Zs7TyLä",
    "秘密Zk4vB8nQw3Zs7Ty9",
    "Пароль-Секрет-9981-qq7",
    "Rk4vB8€Qw3Zs7Ty9aa",
    "Rk4vB8\U0001f511Qw3Zs7Ty9aa",
    'Rk4"B8é\\Qw3Zs7Ty9aa',
    "zü7kq9mb",
]
_TRIPLET = re.compile("%[0-9A-F]{2}")
PLAIN = [one for one in VALUES if "\\" not in one]
JSON, RULES = (b"content-type", b"application/json"), (RedactRule(json="ticket"),)


def _dump(text: str, *, times: int = 1, ascii: bool = True) -> bytes:
    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii)
    return text.encode()


def _raised(text: bytes) -> bytes:
    first, *rest = text.split(b"\\u")
    return b"\\u".join([first, *(part[:4].upper() + part[4:] for part in rest)])


def _spell(value: str) -> dict[str, bytes]:
    """Write a value as programs do."""
    said = f"I say {value} now"
    found = {
        "UTF-8": said.encode(),
        "JSON": _dump(said),
        "JSON as it is": _dump(said, ascii=False),
        "JSON in JSON": _dump(said, times=2),
        "JSON in JSON in JSON": _dump(said, times=3),
        "JSON in capitals": _raised(_dump(said)),
        "percent-encoded": quote(said, safe="").encode(),
        "percent-encoded twice": quote(quote(said, safe=""), safe="").encode(),
        "percent-encoded, small": _TRIPLET.sub(lambda one: one[0].lower(), quote(said)).encode(),
        "percent-encoded alone": quote(value, safe='\\"').encode(),
        "base64": base64.b64encode(said.encode()),
        "hex": value.encode().hex().encode(),
        "NFD": unicodedata.normalize("NFD", said).encode(),
    }
    try:
        latin = said.encode("latin-1")
    except UnicodeEncodeError:
        return found
    return {**found, "Latin-1": latin, "Latin-1 in base64": base64.b64encode(b"u:" + latin)}


def _ask(body: bytes, *head: tuple[bytes, bytes]) -> Request:
    return replace(make_request("POST https://api.test/v1", body), headers=head)


def _logins(value: str) -> list[Request]:
    """Give requests with the value in a declared place."""
    found = [_ask(b'{"ticket": %b}' % _dump(value, ascii=one), JSON) for one in (True, False)]
    for coding in ("utf-8", "latin-1"):
        pair = base64.b64encode(b"bob:" + value.encode(coding, "ignore"))
        if value.encode(coding, "ignore").decode(coding) == value:
            found.append(_ask(b"", (b"authorization", b"Basic " + pair)))
    return found


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_is_declared_once_is_replaced_in_all_that_follows(value: str) -> None:
    """Whatever was declared, and in whatever coding."""
    for login in _logins(value):
        redactor = Redactor(b"key", RULES)
        redactor.request(login)
        for name, text in _spell(value).items():
            made, _ = redactor.request(_ask(text))
            assert len(made.body) == len(text), name
            assert made.body != text, name
            assert made.secrets, name


@pytest.mark.parametrize(
    "value", ["tR5ÿ2wL8pQ4zN6vX1cß", "xK9ü7mQ2ö4vB8näw3Zs", "pa55-wörd-ünik-42"]
)
def test_a_password_is_found_in_its_member(value: str) -> None:
    """Without any rule, with escapes and without."""
    for escaped in (True, False):
        body = b'{"user": "bob", "password": %b}' % _dump(value, ascii=escaped)
        redactor = Redactor(b"key")
        assert redactor.request(_ask(body, JSON))[0].body != body
        said = _dump(f"I say {value}")
        assert redactor.request(_ask(said))[0].body != said


def _places(value: str, *, ascii: bool) -> dict[str, bytes]:
    """Write a value where its surroundings say that it is one."""
    texts = {
        "connection string": f"postgresql://bob:{value}@db.test/x",
        "curl": f"run curl -u 'bob:{value}' https://x.test",
        "mysql": f"run mysql -u bob -p{value} db",
        "setting": f'DB_PASSWORD="{value}"\nx',
        "JSON": json.dumps({"password": value}, ensure_ascii=ascii),
    }
    found = {name: b'{"c": %b}' % _dump(text, ascii=ascii) for name, text in texts.items()}
    found["slashes"] = found["connection string"].replace(b"/", b"\\/")
    found["member"] = b'{"access_token": %b}' % _dump(value, ascii=ascii)
    found["text"] = f"DB_PASSWORD={value}\n".encode()
    return found


@pytest.mark.parametrize(
    "value",
    [
        "ä6Ah7ÖaSZkRß3b3ZC",
        "ПрIaЯHHuJRчQHrBд7q",
        "秘密Zk4vB8nQw3Zs7Ty9",
        "Rk4vB8\U0001f511Qw3Zs7Ty9aa",
    ],
)
def test_a_value_is_found_by_its_surroundings(value: str) -> None:
    """In its own place and in what follows, whether JSON writes it with escapes or not."""
    for escaped in (True, False):
        for name, body in _places(value, ascii=escaped).items():
            redactor = Redactor(b"key")
            made = redactor.request(_ask(body, JSON))[0].body
            assert made != body, name
            assert len(made) == len(body), name
            for said in (f"note {value} end".encode(), quote(value).encode()):
                assert redactor.request(_ask(said))[0].body != said, name


def _tell(text: str, size: int, *, ascii: bool) -> bytes:
    """Give a stream of events that says a text piece by piece."""
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        for piece in (text[at : at + size] for at in range(0, len(text), size))
    ]
    return b"".join(
        b"event: content_block_delta\ndata: %b\n\n" % json.dumps(one, ensure_ascii=ascii).encode()
        for one in events
    )


@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_value_is_found_in_a_stream(size: int) -> None:
    """Spread over events."""
    value = "ä6Ah7ÖaSZkRß3b3ZC"
    for escaped in (True, False):
        for text in (
            f'Do this:\nDB_PASSWORD="{value}"\n',
            f"Use postgresql://bob:{value}@db.test/x.",
        ):
            body = _tell(text, size, ascii=escaped)
            redactor = Redactor(b"key")
            answer = make_response(body, headers=((b"content-type", b"text/event-stream"),))
            made = redactor.response(answer)[0].body
            assert len(made) == len(body)
            assert made != body
            said = f"note {value} end".encode()
            assert redactor.request(_ask(said))[0].body != said


@pytest.mark.parametrize(
    "text",
    [
        "password: für2Geräte",
        "Пароль password: введите8цифр кода",
        "API_KEY=dein_schlüssel_hier1",
        "token: 用户输入3个字符",
        "access_token: Größe des Tokens2",
    ],
)
def test_prose_with_other_letters_stays(text: str) -> None:
    """Words are judged as they would be without their marks."""
    for body in (text.encode(), _dump(text)):
        assert Redactor(b"key").request(_ask(body))[0].body == body


@pytest.mark.parametrize("value", PLAIN)
def test_its_placeholder_is_the_same_in_each_coding(value: str) -> None:
    """So that an agent that is given it and sends it in another coding sends the recorded value."""
    redactor = Redactor(b"key", RULES)
    made = redactor.request(_logins(value)[0])[0].body
    placeholder = json.loads(made)["ticket"]
    spelt = _spell(placeholder)
    for name, text in _spell(value).items():
        assert redactor.request(_ask(text))[0].body == spelt[name], name


@pytest.mark.parametrize("value", [*PLAIN, "Ünïcode-Паролі-ế各-각𠀀-9q", "ëêÀß-42-xyzw"])
def test_letters_outside_of_ascii_are_replaced(value: str) -> None:
    """As all letters; signs stay."""
    redactor = Redactor(b"key", RULES)
    made = json.loads(redactor.request(_logins(value)[0])[0].body)["ticket"]
    assert len(made) == len(value)
    for old, new in zip(value, made, strict=True):
        assert (old == new) is not old.isalnum()


def test_a_run_is_rewritten_in_each_coding() -> None:
    """A value that a rule finds is replaced in the whole run, in what was before it, too."""
    value = VALUES[0]
    told = [replace(make_exchange(1), request=_ask(text)) for text in _spell(value).values()]
    told.append(replace(make_exchange(2), request=_logins(value)[0]))
    rewriter = Rewriter(b"key", RULES)
    for _ in range(2):
        rewritten = [rewriter.exchange(one)[0] for one in told]
    assert all(
        new.request.body != old.request.body for new, old in zip(rewritten, told, strict=True)
    )


@pytest.mark.parametrize("value", ["Пароль", "überraschend"])
def test_a_common_word_is_not_looked_for(value: str) -> None:
    """As one of ASCII."""
    redactor = Redactor(b"key", RULES)
    redactor.request(_logins(value)[0])
    for text in _spell(value).values():
        assert redactor.request(_ask(text))[0].body == text
