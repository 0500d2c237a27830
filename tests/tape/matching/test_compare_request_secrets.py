"""Secrets in paths, queries and bodies: whose they are chooses, and decides whether an answer is exact."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest

from playhead.config import IgnoreRule, RedactRule, parse_match
from playhead.config.profiles.shipped_profiles import find_profiles
from playhead.tape.canonical.canonical_request import (
    Rules,
    canonical,
    compile_rules,
    fingerprint,
    same_bytes,
)
from playhead.tape.exchange import Exchange, Request, RequestClass, Response, Seq, Spilled
from playhead.tape.headers.swapped_values import RecordedValues
from playhead.tape.matching.header_agreement import Agreement
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_exchange, make_request, make_response

A, B, C = b"v7Qm2pZ9xAb3LrfW0y", b"kT5dR8wNc1Hj6VuEs4", b"zX2gYq7oPi9MbKt3Fa"
JSON = (b"Content-Type", b"application/json")
FORM = (b"Content-Type", b"application/x-www-form-urlencoded")
RULES = compile_rules()


def _headed(key: bytes) -> Request:
    request = make_request("POST https://api.test/login")
    return replace(request, headers=(*request.headers, (b"X-Api-Key", key)))


def _in_json(key: bytes) -> Request:
    request = make_request("POST https://api.test/v1", b'{"api_key": "' + key + b'"}')
    return replace(request, headers=(JSON,))


def _in_form(key: bytes) -> Request:
    return replace(make_request("POST https://api.test/v1", b"api_key=" + key), headers=(FORM,))


def _in_query(key: bytes) -> Request:
    return make_request(f"GET https://api.test/v1?api_key={key.decode()}")


def _in_path(key: bytes) -> Request:
    return make_request(f"DELETE https://api.test/keys/{key.decode()}")


class _Play:
    """A tape, and a playback of it by one redactor."""

    def __init__(
        self,
        *recorded: Request,
        answers: tuple[Response, ...] = (),
        rules: Rules = RULES,
        same_key: bool = False,
        redact: tuple[RedactRule, ...] = (),
        tape_key: bytes = b"key",
    ) -> None:
        self.rules = rules
        self.places: set[str] = set()
        """In which the last request was another one."""
        self.redactor = Redactor(tape_key, redact)
        self.tape = {
            Seq(at): replace(make_exchange(at), request=self.redactor.request(request)[0])
            for at, request in enumerate(recorded, 1)
        }
        for at, answer in enumerate(answers, 1):
            clean = self.redactor.response(answer)[0]
            self.tape[Seq(at)] = replace(self.tape[Seq(at)], response=clean)
        self.redactor = Redactor(b"key", redact)
        self.agreement = Agreement(
            rules,
            self.tape.get,
            self.redactor.inner_secrets,
            self.redactor.stands_for,
            same_key=same_key,
        )

    def find(self, seq: int) -> Exchange:
        return self.tape[Seq(seq)]

    def ask(self, request: Request, seq: int) -> tuple[bool, bool]:
        """Ask; say whether it is refused, and whether it is exact."""
        asked, recorded = self.redactor.request(request)[0], self.find(seq)
        prints = {
            fingerprint(
                canonical(one, RequestClass.EFFECT, self.rules, self.redactor.redacted_query(one))
            )
            for one in (asked, recorded.request)
        }
        assert len(prints) == 1, "the tape does not have it"
        exact = same_bytes(recorded.request, asked)
        exact = exact and self.agreement.has_same_secrets(asked, recorded)
        wrong = self.agreement.find_disagreements(asked, recorded, tuple)
        if wrong is None:
            self.agreement.take_values(RecordedValues(self.rules.fields.account))
            wrong = self.agreement.find_disagreements(asked, recorded, tuple)
        assert wrong is not None
        self.places = {one.difference.place for one in wrong}
        if wrong:
            return True, exact
        self.agreement.note(asked, recorded, tuple)
        if recorded.response is not None and recorded.response.secrets:
            self.agreement.give(recorded, self.redactor.learn(recorded.response))
        return False, exact

    def rank(self, request: Request) -> list[int]:
        """Give how well each recorded request agrees."""
        rank = self.agreement.ranking(self.redactor.request(request)[0])
        return [rank(seq) for seq in self.tape]


@pytest.mark.parametrize("make", [_in_json, _in_form, _in_query])
def test_another_secret_is_not_exact(make: object) -> None:
    """It counts by its kind, and its bytes are not those that were recorded."""
    assert callable(make)
    assert _Play(make(A)).ask(make(A), 1) == (False, True)
    assert _Play(make(A)).ask(make(B), 1) == (False, False)


@pytest.mark.parametrize("make", [_in_json, _in_form, _in_query])
def test_of_two_tenants_each_gets_its_own_answer(make: object) -> None:
    """In whatever order they ask, under the same keys and under others."""
    assert callable(make)
    play = _Play(make(A), make(B))
    assert play.rank(make(B))[1] < play.rank(make(B))[0]
    assert play.ask(make(B), 2) == (False, True)
    others = _Play(make(A), make(B), make(A))
    assert others.ask(make(C), 2) == (False, False)
    ranked = others.rank(make(C))
    assert ranked[1] < min(ranked[0], ranked[2])


@pytest.mark.parametrize("make", [_in_json, _in_form, _in_query, _in_path])
def test_a_key_of_the_tape_in_the_place_of_another_is_refused(make: object) -> None:
    """Both are known by their header fields: another account is asked for."""
    assert callable(make)
    tape = (_headed(A), _headed(B), make(A))
    play = _Play(*tape)
    assert [play.ask(one, at) for at, one in enumerate(tape, 1)] == [(False, True)] * 3
    play = _Play(*tape)
    assert play.ask(_headed(A), 1) == play.ask(_headed(B), 2) == (False, True)
    assert play.ask(make(B), 3)[0]


def _in_queries(*keys: bytes, name: str = "api_key") -> Request:
    query = "&".join(f"{name}={key.decode()}" for key in keys)
    return make_request(f"POST https://api.test/v1?{query}&amount=5")


@pytest.mark.parametrize("name", ["key", "api_key", "access_token", "X-Amz-Security-Token"])
@pytest.mark.parametrize(
    ("then", "now", "wrong"),
    [
        ((A, B), (A, B), False),
        ((A, B), (C, B), False),
        ((A, B), (B, A), True),
        ((A, B), (A, A), True),
        ((A, B), (B, B), True),
        ((A, A), (A, B), True),
        ((A, A), (C, C), False),
    ],
)
def test_each_value_of_a_query_key_counts(
    name: str, then: tuple[bytes, bytes], now: tuple[bytes, bytes], wrong: bool
) -> None:
    """In their order, as those of two keys."""
    play = _Play(_in_queries(*then, name=name), _in_query(B), same_key=True)
    assert play.ask(_in_queries(*now, name=name), 1) == (wrong, then == now)


def test_names_in_other_letters_are_other_query_keys() -> None:
    """Their order among each other does not count; which has which value does."""
    one, same, swapped = (
        make_request(
            f"POST https://api.test/v1?{query}".replace("ONE", A.decode()).replace(
                "TWO", B.decode()
            )
        )
        for query in ("Key=ONE&key=TWO", "key=TWO&Key=ONE", "Key=TWO&key=ONE")
    )
    assert not _Play(one, same_key=True).ask(same, 1)[0]
    assert _Play(one, same_key=True).ask(swapped, 1)[0]


def test_what_is_no_credential_beside_one_of_its_name_counts() -> None:
    """It may be what matters: of such a key the values alone that read like credentials are told apart by whose they are."""
    redactor = Redactor(b"key")

    def form(*values: bytes) -> bytes:
        request = redactor.request(_in_queries(*values, name="token"))[0]
        names = redactor.redacted_query(request)
        return fingerprint(canonical(request, RequestClass.EFFECT, RULES, names))

    assert form(A, b"alice") == form(C, b"alice")
    others = ((A, b"mallory"), (b"alice", A), (A, A), (A, b"alice", b"mallory"))
    assert form(A, b"alice") not in {form(*one) for one in others}


SIGNED = b"sk-proj-%b"
"""A key in two parts: a token is behind the sign."""


def _in_xml(key: bytes) -> Request:
    return make_request("POST https://api.test/v1", b"<a><b>" + key + b"</b></a>")


def _in_two(key: bytes) -> Request:
    return make_request("POST https://api.test/v1", b"one " + key + b" and " + key + b" two")


@pytest.mark.parametrize(
    ("make", "place"),
    [
        *((_in_path, "path"), (_in_query, "query"), (_in_json, "body"), (_in_form, "body")),
        *((_in_xml, "body"), (_in_two, "body")),
    ],
)
def test_the_place_of_a_token_in_a_key_is_named(
    make: Callable[[bytes], Request], place: str
) -> None:
    """Whether or not its place has a name of its own; the token in it is at the same place."""
    one, other = SIGNED % (A * 2), SIGNED % (B * 2)
    tape = (_headed(one), _headed(other), make(one))
    play = _Play(*tape, same_key=True)
    assert play.ask(_headed(one), 1) == play.ask(_headed(other), 2) == (False, True)
    assert play.ask(make(other), 3)[0]
    assert place in play.places
    assert all("#" not in one for one in play.places)
    told = [
        replace(make_response(b'{"api_key": "%b"}' % key), headers=(JSON,)) for key in (one, other)
    ]
    logins = [make_request(f"POST https://api.test/login/{at}") for at in (1, 2)]
    play = _Play(*logins, make(one), answers=tuple(told), same_key=True)
    assert [play.ask(login, at) for at, login in enumerate(logins, 1)] == [(False, True)] * 2
    given = play.find(2).response
    assert given is not None
    assert play.ask(make(given.body.partition(b': "')[2].rstrip(b'"}')), 3)[0]
    assert place in play.places
    assert all("#" not in one for one in play.places)


def test_other_keys_that_are_swapped_are_refused() -> None:
    """Each recorded key has its present one already."""
    play = _Play(_headed(A), _headed(B), _in_json(A))
    play.ask(_headed(C), 1)
    play.ask(_headed(b"wL4jUe8rSa1HpXd6Vn"), 2)
    assert play.ask(_in_json(C), 3) == (False, False)
    play = _Play(_headed(A), _headed(B), _in_json(A))
    play.ask(_headed(C), 1)
    play.ask(_headed(b"wL4jUe8rSa1HpXd6Vn"), 2)
    assert play.ask(_in_json(b"wL4jUe8rSa1HpXd6Vn"), 3)[0]


def test_a_new_secret_or_a_dummy_is_served() -> None:
    """Tokens are drawn at random, and a replay may have one word for all."""
    play = _Play(_headed(A), _headed(B), _in_json(A), _in_json(B))
    assert play.ask(_headed(b"dummy"), 1)[0] is play.ask(_headed(b"dummy"), 2)[0] is False
    queries = _Play(_in_query(A), _in_query(B))
    assert queries.ask(_in_query(b"dummy"), 1) == queries.ask(_in_query(b"dummy"), 2)
    assert queries.ask(_in_query(b"dummy"), 1) == (False, False)
    assert _Play(_headed(A), _in_json(A)).ask(_in_json(C), 2) == (False, False)


def test_the_order_of_members_mistakes_no_secret() -> None:
    """Documents are compared as values."""

    def make(*members: tuple[str, bytes]) -> Request:
        text = ", ".join(f'"{name}": "{value.decode()}"' for name, value in members)
        request = make_request("POST https://api.test/v1", f"{{{text}}}".encode())
        return replace(request, headers=(JSON,))

    one, other = ("api_key", A), ("client_secret", B)
    play = _Play(_headed(A), _headed(B), make(one, other))
    assert play.ask(_headed(A), 1) == play.ask(_headed(B), 2) == (False, True)
    assert play.ask(make(other, one), 3) == (False, False)


def test_a_token_of_an_answer_that_comes_back_is_exact() -> None:
    """The agent is given the tape's placeholder, and sends those very bytes."""
    answer = make_response(b'{"access_token": "' + A + b'"}')
    answer = replace(answer, headers=(JSON,))
    play = _Play(make_request("POST https://api.test/token"), _in_json(A), answers=(answer,))
    given = play.find(1).response
    assert given is not None
    assert A not in given.body
    assert play.ask(make_request("POST https://api.test/token"), 1) == (False, True)
    token = given.body.partition(b': "')[2].rstrip(b'"}')
    assert play.ask(_in_json(token), 2) == (False, True)


def test_a_masked_place_is_not_judged() -> None:
    """A rule of `ignore` says that its value means nothing."""
    rules = compile_rules(
        (IgnoreRule(parse_match("*://*"), json=("$.api_key",), query=("api_key",)),)
    )
    for make in (_in_json, _in_query):
        play = _Play(_headed(A), _headed(B), make(A), rules=rules)
        assert play.ask(_headed(A), 1) == play.ask(_headed(B), 2) == (False, True)
        assert play.ask(make(B), 3) == (False, False)


S, T, U, N = (
    b"3fa85f64-5717-4562-b3fc-2c963f66afa6",
    b"9b2d7c10-0f3e-4c55-8a1b-6d1e2f3a4b5c",
    b"c07e5d1a-9b3f-4468-ace0-13579bdf8642",
    b"5e1f7a20-3c4d-4b6e-9f80-a1b2c3d4e5f6",
)


def _in_session(head: bytes, inside: bytes = b"", turn: str = "") -> Request:
    """As Claude Code says its session: in a header field, and in JSON inside a string."""
    body = b'{"turn": "%s", "user_id": "{\\"session_id\\":\\"%s\\"}"}'
    request = make_request("POST https://api.test/v1", body % (turn.encode(), inside or head))
    return replace(request, headers=(JSON, (b"X-Claude-Code-Session-Id", head)))


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ([(S, S), (S, S)], [False, False]),
        ([(T, T), (T, T)], [False, False]),
        ([(T, U)], [True]),
        ([(S, U)], [True]),
        ([(T, T), (T, U)], [False, True]),
        ([(T, T), (U, U)], [False, True]),
        ([(T, T), (S, S)], [False, True]),
    ],
)
def test_an_id_of_the_run_that_redaction_replaced_in_a_body_is_linked(
    asked: list[tuple[bytes, bytes]], refused: list[bool]
) -> None:
    """By the field of the same request, which redaction replaces from the second one on."""
    turns = ("one", "two")
    play = _Play(*(_in_session(S, S, turn) for turn in turns), same_key=True)
    assert S in dict(play.find(1).request.headers).values()
    assert S not in play.find(1).request.body
    assert S not in dict(play.find(2).request.headers).values()
    said = [
        play.ask(_in_session(*one, turn), at)[0]
        for at, (one, turn) in enumerate(zip(asked, turns, strict=False), 1)
    ]
    assert said == refused


def test_two_ids_of_the_run_that_redaction_replaced_are_kept_apart() -> None:
    """One that stands for two sessions, or in the place of the other, is refused."""
    tape = _in_session(S, S, "one"), _in_session(T, T, "two"), _in_session(S, S, "three")
    for third, refused in ((N, False), (U, True)):
        play = _Play(*tape, same_key=True)
        assert not play.ask(_in_session(N, N, "one"), 1)[0]
        assert not play.ask(_in_session(U, U, "two"), 2)[0]
        assert play.ask(_in_session(third, third, "three"), 3)[0] is refused


def _everywhere(head: bytes = b"", query: bytes = b"", *members: bytes) -> Request:
    """Have keys in a header field, a query and members of a body, where they are given."""
    url = "POST https://api.test/v1" + (f"?api_key={query.decode()}" if query else "")
    texts = [f'"m{at}": {{"api_key": "{one.decode()}"}}' for at, one in enumerate(members)]
    request = replace(make_request(url, f"{{{', '.join(texts)}}}".encode()), headers=(JSON,))
    return replace(request, headers=(JSON, (b"X-Api-Key", head))) if head else request


@pytest.mark.parametrize("same_key", [True, False])
@pytest.mark.parametrize("places", [(A, b"", A), (A, A), (b"", A, A), (b"", b"", A, A), (A, A, A)])
def test_one_key_of_a_request_stands_for_one_now(places: tuple[bytes, ...], same_key: bool) -> None:
    """In whichever of its places another one is, with the recorded one or a third in the others."""
    at = [number for number, one in enumerate(places) if one]
    for other in (A, B):
        for changed in at:
            now = [other if one else b"" for one in places]
            now[changed] = C
            play = _Play(_everywhere(*places), same_key=same_key)
            assert play.ask(_everywhere(*now), 1)[0], now
    for other in (A, B):
        now = [other if one else b"" for one in places]
        assert not _Play(_everywhere(*places), same_key=same_key).ask(_everywhere(*now), 1)[0]


@pytest.mark.parametrize(
    ("first", "then"), [((C, b""), (b"", b"", A)), ((b"", b"", A), (C, b"")), ((b"", A), (C, b""))]
)
def test_a_key_that_stands_for_itself_stands_for_no_other(
    first: tuple[bytes, ...], then: tuple[bytes, ...]
) -> None:
    """In one request in the header field and in another in the body, in either order."""
    tape = [_everywhere(*(A if one else b"" for one in places)) for places in (first, then)]
    play = _Play(*tape, same_key=True)
    assert not play.ask(_everywhere(*first), 1)[0]
    assert play.ask(_everywhere(*then), 2)[0]


def test_a_key_that_an_answer_says_back_may_stand_beside_a_rotated_one() -> None:
    """The agent has the recorded one of the answer, and the new one of its environment."""
    answer = replace(make_response(b'{"api_key": "' + A + b'"}'), headers=(JSON,))
    play = _Play(_headed(A), _everywhere(A, b"", A), answers=(answer,), same_key=True)
    given = play.find(1).response
    assert given is not None
    assert not play.ask(_headed(C), 1)[0]
    said = given.body.partition(b': "')[2].rstrip(b'"}')
    assert not play.ask(_everywhere(C, b"", said), 2)[0]


@pytest.mark.parametrize(("now", "refused"), [((A, A), False), ((C, C), False), ((A, C), True)])
def test_one_key_of_a_message_stands_for_one_now(now: tuple[bytes, ...], refused: bool) -> None:
    """As in a request."""
    play = _Play(same_key=True)
    then, present = (
        play.redactor.request(_everywhere(b"", b"", *keys))[0] for keys in ((A, A), now)
    )
    found = play.agreement.compare_message(then, present, RequestClass.READ, Seq(1))
    assert bool(found.changed) is refused


@pytest.mark.parametrize(("now", "refused"), [((S, S), False), ((T, T), False), ((T, U), True)])
def test_an_id_that_a_profile_links_stands_in_two_places_of_a_message(
    now: tuple[bytes, ...], refused: bool
) -> None:
    """As Codex says its session and its thread, which redaction replaces in both."""
    play = _Play(rules=compile_rules(profiles=find_profiles(())), same_key=True)
    asked = make_request("GET https://api.openai.com/v1/responses")
    head = (JSON, (b"User-Agent", b"codex_exec/0.171.0"))
    body = b'{"client_metadata": {"session_id": "%s", "thread_id": "%s"}}'
    then, present = (
        play.redactor.request(replace(asked, headers=head, body=body % ids))[0]
        for ids in ((S, S), now)
    )
    assert S not in then.body
    found = play.agreement.compare_message(then, present, RequestClass.INFERENCE, Seq(1))
    assert bool(found.changed) is refused


def test_a_value_that_comes_by_itself_is_compared_as_one_of_a_body() -> None:
    """By its placeholder, or by consistent renaming on a tape of another store; what was learned may come in base64."""
    key, other = b"sk-proj-" + b"0a9B8c7D6e5F" * 4, b"sk-proj-" + b"1b8C7d6E5f4A" * 4
    redactor = Redactor(b"key")
    tape = dict[Seq, Exchange]()

    def compare(agreement: Agreement, stored: bytes, came: bytes) -> tuple[bool, bool, bool]:
        found = agreement.compare_value(*redactor.inner_secret(stored, came))
        return bool(found.changed), found.same, found.kind_alone

    same = Agreement(RULES, tape.get, redactor.inner_secrets, redactor.stands_for, same_key=True)
    made = redactor.stands_for(key)
    assert compare(same, made, key) == (False, True, False)
    assert compare(same, made, other) == (True, False, False)
    redactor.text(b"Authorization: Bearer " + key)
    coded = base64.b64encode(key)
    assert compare(same, redactor.text(coded), coded) == (False, True, False)
    far = Agreement(RULES, tape.get, redactor.inner_secrets, redactor.stands_for)
    old = Redactor(b"another").stands_for(key)
    assert [compare(far, old, one) for one in (key, key, other)] == [
        (False, False, True),
        (False, False, False),
        (True, False, False),
    ]
    assert compare(far, b"xoxb-" + b"1a" * 20, other)[0]


@pytest.mark.parametrize(
    ("then", "now", "alone"),
    [
        ((), ((A, False),), True),
        ((), ((A, True),), False),
        ((), (), False),
        (((A, False),), ((A, False),), False),
    ],
)
def test_a_large_body_of_an_earlier_version_rests_on_kinds(
    then: tuple[tuple[bytes, bool], ...], now: tuple[tuple[bytes, bool], ...], alone: bool
) -> None:
    """Its tape says only that values were replaced there; on a tape of this version they are compared."""
    redactor = Redactor(b"key")

    def make(replaced: tuple[tuple[bytes, bool], ...]) -> Request:
        spilled = Spilled(b"d" * 32, 9 << 20, b"d" * 32, replaced=replaced)
        return replace(make_request("POST https://api.test/v1"), spilled=spilled)

    recorded = replace(make_exchange(1), request=make(then))
    agreement = Agreement(
        RULES, {Seq(1): recorded}.get, redactor.inner_secrets, redactor.stands_for, same_key=True
    )
    assert agreement.note(make(now), recorded, tuple[Seq, ...]).kind_alone is alone


MAIL, TOKEN = "a.b@shop.com", "kT5dR8wN~+/1Hj6VuEs4=="
TEXT = (b"Content-Type", b"text/plain")
HEX = TOKEN.encode().hex()
CODED = base64.b64encode(TOKEN.encode()).decode()
URL_CODED = base64.urlsafe_b64encode(TOKEN.encode()).decode()


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1].replace("/", "\\/")


def _respelled(head: tuple[bytes, bytes], body: str) -> Request:
    return replace(make_request("POST https://api.test/v1", body.encode()), headers=(head,))


def _aimed(target: str) -> Request:
    return make_request(f"GET https://api.test{target}")


_WAYS: list[tuple[str, Callable[[str], Request], str, str]] = [
    ("JSON", lambda text: _respelled(JSON, f'{{"to": "{text}"}}'), MAIL, _quoted(MAIL)),
    (
        "a text in JSON",
        lambda text: _respelled(JSON, f'{{"a": "to {text}"}}'),
        TOKEN,
        _quoted(TOKEN),
    ),
    (
        "JSON in JSON",
        lambda text: _respelled(JSON, json.dumps({"a": f"to {text}"})),
        TOKEN,
        _escaped(TOKEN),
    ),
    ("a form", lambda text: _respelled(FORM, f"to={_quoted(text)}"), MAIL, _quoted(MAIL)),
    ("a text", lambda text: _respelled(TEXT, f"to {text}"), MAIL, _quoted(MAIL)),
    ("a path", lambda text: _aimed(f"/to/{_quoted(text)}"), MAIL, _quoted(MAIL)),
    ("a query", lambda text: _aimed(f"/to?a={_quoted(text)}"), MAIL, _quoted(MAIL)),
    ("hex", lambda text: _respelled(JSON, f'{{"a": "{text}"}}'), HEX, HEX.upper()),
    ("base64", lambda text: _respelled(JSON, f'{{"a": "{text}"}}'), CODED, URL_CODED),
    (
        "a number",
        lambda text: _respelled(JSON, f'{{"a": {text}}}'),
        "4111111111111111",
        '"4111111111111111"',
    ),
]
RESPELLED = [(name, make(one), make(other)) for name, make, one, other in _WAYS]
ALIKE: list[tuple[str, list[Request]]] = [
    (
        "a string of JSON",
        [_respelled(JSON, f'{{"a": "to {text}"}}') for text in (TOKEN, _escaped(TOKEN))],
    ),
    (
        "a field of a form",
        [_respelled(FORM, f"to={t}") for t in (MAIL, _quoted(MAIL), _quoted(MAIL).lower())],
    ),
    ("a path", [_aimed(f"/to/{one}") for one in ("a%2Eb%40shop.com", "a.b%40shop.com")]),
]
MAILS = RedactRule(pii=("email", "card"))


def _play_respelled(recorded: Request, *, same_key: bool) -> _Play:
    play = _Play(
        _headed(TOKEN.encode()),
        recorded,
        same_key=same_key,
        redact=(MAILS,),
        tape_key=b"key" if same_key else b"another",
    )
    assert not play.ask(_headed(TOKEN.encode()), 1)[0]
    return play


@pytest.mark.parametrize("same_key", [True, False], ids=["this store", "another store"])
@pytest.mark.parametrize(
    ("then", "now"), [row[1:] for row in RESPELLED], ids=[row[0] for row in RESPELLED]
)
def test_a_replaced_value_counts_as_it_is_written(
    then: Request, now: Request, same_key: bool
) -> None:
    """To whoever reads the request, another spelling is another value."""
    assert canonical(then, RequestClass.EFFECT, RULES) != canonical(now, RequestClass.EFFECT, RULES)
    for one, other in ((then, now), (now, then)):
        play = _play_respelled(one, same_key=same_key)
        assert play.ask(other, 2)[0]
        assert not play.ask(one, 2)[0]


@pytest.mark.parametrize("requests", [row[1] for row in ALIKE], ids=[row[0] for row in ALIKE])
def test_a_replaced_value_is_the_same_in_an_escape_of_its_container(
    requests: list[Request],
) -> None:
    """As any value there is."""
    assert len({canonical(one, RequestClass.EFFECT, RULES) for one in requests}) == 1
    for one in requests:
        for other in requests:
            assert not _play_respelled(one, same_key=True).ask(other, 2)[0]


def test_of_requests_alike_the_one_whose_values_are_written_alike_answers() -> None:
    """Else the first one would."""
    _, plain, quoted = RESPELLED[1]
    play = _Play(_headed(TOKEN.encode()), plain, quoted, same_key=True)
    play.ask(_headed(TOKEN.encode()), 1)
    for request, best in ((plain, 1), (quoted, 2)):
        ranks = play.rank(request)[1:]
        assert ranks.index(min(ranks)) + 1 == best
        assert min(ranks) < max(ranks)
