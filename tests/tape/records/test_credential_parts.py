"""Credentials in credentials: of HTTP Basic, of words behind a scheme, among subprotocols."""

import base64

import pytest

from playhead.tape.headers.counted_fields import Linked, Space
from playhead.tape.headers.linked_values import LinkedValues
from playhead.tape.records.credential_parts import (
    find_in_protocols,
    find_parts,
    write_pair,
    write_words,
)
from playhead.tape.redaction.places import is_credential
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request

TOKEN = b"ghs_kX9vQ2mL7pR4tZ8wB5nC1dF6gH3jK0sTyUqW"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (base64.b64encode(b"x-access-token:" + TOKEN), (b"x-access-token", TOKEN)),
        (base64.b64encode(TOKEN + b":"), (TOKEN, b"")),
        (base64.b64encode(b":" + TOKEN).rstrip(b"="), (b"", TOKEN)),
        (b"Bearer " + TOKEN, (b"Bearer", TOKEN)),
        (b'Token token="' + TOKEN + b'"', (b"Token", TOKEN)),
        (TOKEN, ()),
        (b"a:" + TOKEN, ()),
        (b'{"a": "b c"}', ()),
        (b"-----BEGIN A KEY-----", ()),
    ],
)
def test_parts(value: bytes, parts: tuple[bytes, ...]) -> None:
    """Each by itself, and nothing of a value that is one."""
    assert find_parts(value) == parts


def test_parts_have_their_own_placeholders() -> None:
    """Wherever the whole is: what an answer gave is known in it."""
    stands_for = Redactor(b"key").stands_for
    for value in (base64.b64encode(b"git2:" + TOKEN), b"Bearer " + TOKEN):
        made = stands_for(value)
        assert find_parts(made) == tuple(map(stands_for, find_parts(value)))
        assert len(made) == len(value)
    assert write_words(b"a b", bytes.upper) == b"A B"
    assert write_pair(b"YTpi", b"c", b"d") == base64.b64encode(b"c:d")


def test_a_token_in_a_url_and_in_basic_is_one() -> None:
    """As git sends it either way."""
    coded = base64.b64encode(b"x:" + TOKEN)
    request = make_request("GET https://a.test/")
    headers = (
        (b"Authorization", b"Basic " + coded),
        (b"X-Remote", b"https://x:%b@a.test/" % TOKEN),
    )
    made = Redactor(b"key").request(
        request.__class__("GET", "https", "a.test", 443, "/", "HTTP/1.1", headers)
    )[0]
    user, password = find_parts(made.headers[0][1].partition(b" ")[2])
    assert made.headers[1][1] == b"https://%b:%b@a.test/" % (user, password)
    assert TOKEN not in password


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        (b"realtime, openai-insecure-api-key.sk-abcdefghij", [b"sk-abcdefghij"]),
        (b"bearer, abcdefgh", [b"abcdefgh"]),
        (b"graphql-ws", []),
        (b"a,  sk-abcdefghijklmnopqrst ,b", [b"sk-abcdefghijklmnopqrst"]),
    ],
)
def test_subprotocols(value: bytes, secrets: list[bytes]) -> None:
    """Without what separates them."""
    assert [value[start:end] for start, end in find_in_protocols(value)] == secrets


def _part(value: str) -> list[Linked]:
    return [Linked(Space.CREDENTIAL, "authorization#2", value.encode(), part=True)]


def test_a_part_counts_where_an_answer_gave_it() -> None:
    """The other one that was given, and an invented one, are not the recorded one; else a part says nothing."""
    links = LinkedValues(is_credential)
    for value in (b"given1", b"given2"):
        links.give(Linked(Space.CREDENTIAL, "", value), value)
    split = [
        bool(links.compare(_part("given1"), _part(new)).split)
        for new in ("given1", "given2", "other3")
    ]
    assert split == [False, True, True]
    assert not links.compare(_part("before1"), _part("other3")).split
    assert links.compare(_part("before1"), _part("given2")).split


def _cookie(value: str) -> list[Linked]:
    return [Linked(Space.CREDENTIAL, "cookie sid", value.encode())]


def test_cookies_of_one_session_are_alike() -> None:
    """An answer renews one; the cookie of another session is another one."""
    links = LinkedValues(is_credential)
    for value, alike in ((b"alice1", ()), (b"alice2", (b"alice1",)), (b"bobby1", ())):
        links.give(Linked(Space.CREDENTIAL, "cookie sid", value), value, alike)
    assert not links.compare(_cookie("alice1"), _cookie("alice2")).split
    assert links.compare(_cookie("alice1"), _cookie("bobby1")).split
    assert links.compare(_cookie("alice2"), _cookie("nobody")).split
