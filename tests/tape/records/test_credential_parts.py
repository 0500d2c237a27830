"""Credentials in credentials: of HTTP Basic, of words behind a scheme, among subprotocols."""

import base64
import hmac
from dataclasses import replace

import pytest

from playhead.tape.headers.compared_fields import Linked, Space
from playhead.tape.headers.linked_values import LinkedValues
from playhead.tape.records.credential_parts import (
    find_in_protocols,
    find_open,
    find_parts,
    find_tokens,
    list_apart,
    list_tokens,
    write_pair,
    write_words,
)
from playhead.tape.redaction.credential_fields import is_credential
from playhead.tape.redaction.placeholders.same_form_value import reads_as_made
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request, make_response

TOKEN = b"kX9vQ2mL7pR4tZ8wB5nC1dF6gH3jK0sTyUqW"


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


JWT = b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.kX9vQ2mL7pR4tZ8wB5nC1dF6gH3jK0sTyUqW"


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (b"org7:" + TOKEN, [TOKEN]),
        (TOKEN + b".user", [TOKEN]),
        (b"acme/" + TOKEN, [TOKEN]),
        (TOKEN + b"|7", [TOKEN]),
        (b"a:b/" + TOKEN + b".c", [b"b/" + TOKEN + b".c", b"b/" + TOKEN, TOKEN]),
        (b"org7:" + JWT, [JWT]),
        (TOKEN, []),
        (JWT, []),
        (b"2026-11-26:12:00:00", []),
        (b"organisation-of-mine:name", []),
        (b"ghs_" + TOKEN, [TOKEN]),
        (b"org7:ghs_" + TOKEN, [b"ghs_" + TOKEN, TOKEN]),
        (b"https://a.test/" + TOKEN, []),
        (b"$6$rounds=5000$saltsaltsalt9$" + TOKEN, []),
    ],
)
def test_tokens_beside_signs(value: bytes, tokens: list[bytes]) -> None:
    """The widest first, each with its own; names, dates and texts are none."""
    found = list(list_tokens(value))
    assert [one for _, one in found] == tokens
    assert all(value[at:].startswith(one) for at, one in found)


BARE = b"kX9vQ2mL7pR4tZ8wB5nC1dF6"
UUID = b"0f4c81ab-77e0-4c2d-93b6-a1b2c3d4e5f6"
AROUND = (
    *(b'token="%b"', b'{"token":"%b"}', b'{"t": "%b"}', b"%%7B%%22token%%22%%3A%%22%b%%22%%7D", b"%b@acme", b"acme-%b"),
    *(b"acme_%b", b"%b-acme", b"u=%b", b"%b#1", b"%b+1", b"%b~1", b"%b!a", b"<%b>", b"(%b)", b"u=1&t=%b", b"Bearer %b"),
    *(b'Hawk id="%b", ts="1353832234"', b"Bearer org7:%b", b"[%b]", b"a\\%b", b"$%b", b"*%b*", b"`%b`", b"?%b", b"^%b"),
)  # fmt: skip


@pytest.mark.parametrize("form", AROUND)
@pytest.mark.parametrize("token", [BARE, UUID, BARE + b"=="])
def test_whatever_sign_is_beside_a_token(form: bytes, token: bytes) -> None:
    """A token is found there, has its own placeholder there, and is found in that of the whole, too."""
    if token.endswith(b"=") and form.startswith((b"%b-", b"%b+")):
        token = BARE
    value = form % token
    redactor = Redactor(b"key")
    given, made = redactor.stands_for(token), redactor.stands_for(value)
    assert token in list_tokens_of(value)
    assert given in list_tokens_of(made)
    again = Redactor(b"key")
    again._placeholders.keep(given)
    assert again.stands_for(form % given) == made


def test_tokens_have_their_own_placeholders_in_the_whole() -> None:
    """And of a token that was given, either gives the same whole."""
    redactor = Redactor(b"key")
    for form in (b"org7:%b", b"%b.user", b"acme/%b|7", b"a:b/%b.c"):
        made = redactor.stands_for(form % TOKEN)
        given = redactor.stands_for(TOKEN)
        assert list_tokens_of(made)[-1] == given
        assert given in made
        again = Redactor(b"key")
        again._placeholders.keep(given)
        assert again.stands_for(form % given) == made
        assert reads_as_made(made)
        assert not reads_as_made(form % TOKEN)
        assert not reads_as_made((form % given).replace(b"a", b"secret9"))


def list_tokens_of(value: bytes) -> list[bytes]:
    """Give the tokens in a credential alone."""
    return [one for _, one in list_tokens(value)]


def test_a_key_in_base64_is_made_alike_with_its_length_and_signs() -> None:
    """What is between its signs are no tokens, but may be taken for them."""
    for key in (
        b"kX9vQ2mL7pR4tZ8wB5/nC1dF6gH3jK0sTyUqW+A=",
        b"wT3nH6bJ1cF5yD0sQ7xZ/vB8wT3nH6bJ1cF5yD0s",
    ):
        made = Redactor(b"key").stands_for(key)
        base64.b64decode(made, validate=True)
        assert find_tokens(made) == find_tokens(key)
        assert made != key


def test_placeholders_are_made_as_a_tape_has_them() -> None:
    """One of before has none of tokens; one of another key is another store's."""
    old, new, other = Redactor(b"key"), Redactor(b"key"), Redactor(b"other")
    value = b"org7:" + TOKEN
    before = hmac.digest(b"key", b"placeholders 3", "sha256")[:8].hex()
    assert new.key_id != before
    assert old.make_as(before)
    assert old.key_id == before
    assert old.stands_for(TOKEN) == new.stands_for(TOKEN)
    assert old.stands_for(TOKEN) not in old.stands_for(value)
    assert new.stands_for(TOKEN) in new.stands_for(value)
    assert not other.make_as(before)
    assert not other.make_as(new.key_id)
    assert new.make_as(new.key_id)


UUID = b"c3c2a7f0-1b2d-4c5e-8f90-a1b2c3d4e5f6"
HEX = b"0f12e3d4c5b6a79880716253443526f7"


@pytest.mark.parametrize(
    ("value", "stays"),
    [
        (b"urn:uuid:" + UUID, [b"urn:uuid:"]),
        (b"URN:UUID:" + UUID.upper(), [b"URN:UUID:"]),
        (b"v4.local." + TOKEN, [b"v4.local."]),
        (b"v1." + TOKEN, [b"v1."]),
        (TOKEN + b";exp=1999999999;ttl='60'", [b"exp=1999999999", b"ttl='60'"]),
        (TOKEN + b':x;scope="a:b c.d"', [b'scope="a:b c.d"']),
        (b"ASIAQWERTYUIOPASDF12/20261128/eu-west-1/s3/aws4_request", [b"/20261128/eu-west-1/s3/aws4_request"]),
        (b"urn:uuid:" + TOKEN, []),
        (b"v1.short." + TOKEN, []),
        (b"hunter2:" + TOKEN, []),
        (b"pass=hunter2;" + TOKEN, []),
        (TOKEN + b";scope=s3cret;exp=19999999990000", []),
        (TOKEN + b";myexp=12;exp=12.5;scope=abcd1", []),
        (b"v1.ab:exp=12", []),
        (b'{"exp=12": "' + TOKEN + b'"}', []),
        (b"asiaqwertyuiopasdf12/20261128/eu-west-1/s3/aws4_request", []),
    ],
)  # fmt: skip
def test_what_is_no_secret_beside_tokens_stays(value: bytes, stays: list[bytes]) -> None:
    """An agent may read it; it is found in the placeholder again, which is known as one, and has those of its tokens in it."""
    assert [value[start:end] for start, end in find_open(value)] == stays
    redactor = Redactor(b"key")
    made = redactor.stands_for(value)
    assert find_open(made) == find_open(value)
    assert [made[start:end] for start, end in find_open(made)] == stays
    assert [redactor.stands_for(one) for _, one in list_tokens(value)] == [
        one for _, one in list_tokens(made)
    ]
    assert not stays or reads_as_made(made)
    assert not stays or not reads_as_made(value)


def test_what_stays_among_words() -> None:
    """Each word has the placeholder that it has alone, but for a scope of several."""
    redactor = Redactor(b"key")
    value = b'v1.%b:%b;exp=1999999999; scope="a b"' % (UUID, HEX)
    made = redactor.stands_for(value)
    assert made == b'v1.%b:%b;exp=1999999999; scope="a b"' % (
        redactor.stands_for(UUID),
        redactor.stands_for(HEX),
    )
    older = Redactor(b"key")
    assert older.make_as(hmac.digest(b"key", b"placeholders 6", "sha256")[:8].hex())
    for one in (value, b"urn:uuid:" + UUID):
        assert older.stands_for(one) != redactor.stands_for(one)
        assert len(older.stands_for(one)) == len(one)
    assert older.stands_for(TOKEN) == redactor.stands_for(TOKEN)
    assert older.stands_for("pa55w\u00f6rd-of-\u00e9mile".encode()) == redactor.stands_for(
        "pa55w\u00f6rd-of-\u00e9mile".encode()
    )


@pytest.mark.parametrize(
    ("value", "apart"),
    [
        (b"urn:uuid:" + UUID, [UUID]),
        (b"org7:" + TOKEN, [TOKEN]),
        (b"v1.%b:%b;exp=1999999999" % (UUID, HEX), [b"v1." + UUID, HEX, UUID]),
        (b"id." + TOKEN, [TOKEN]),
        (b"ab/" + TOKEN + b"+1", []),
        (b"sk-proj-" + TOKEN, []),
        (TOKEN, []),
        (b"|".join([TOKEN] * 9), [TOKEN] * 4),
    ],
)
def test_what_is_taken_out_of_a_credential_is_replaced_by_itself(
    value: bytes, apart: list[bytes]
) -> None:
    """In whatever follows, and in the replay as well: its agent takes the placeholder out of the placeholder."""
    assert list_apart(value) == apart
    recorded, replay = Redactor(b"key"), Redactor(b"key")
    answer = replace(make_response(b"{}"), headers=((b"x-auth-token", value),))
    kept, places, _ = recorded.response(answer)
    replay.learn(kept, places)
    for one in apart:
        made = recorded.stands_for(one)
        body = b'{"id": "%b"}'
        came, _ = recorded.request(make_request("POST https://a.test/", body % one))
        again, _ = replay.request(make_request("POST https://a.test/", body % made))
        assert came.body == body % made
        assert (again.body, again.secrets) == (came.body, came.secrets)


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
