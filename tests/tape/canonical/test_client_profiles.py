"""What the profile of a client leaves out, and what it does not."""

import json
from dataclasses import replace

import pytest

from playhead.config import IgnoreRule, parse_match
from playhead.config.profiles.client_profile import Profile, ProfilePlace, Unconditional
from playhead.tape.canonical.canonical_request import (
    canonical,
    compile_rules,
    fingerprint,
    message_form,
    raw_key,
)
from playhead.tape.canonical.client_profiles import find_product
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import MessageKind, Request, RequestClass
from playhead.tape.matching.profile_use import find_message_use, find_profile_use
from playhead.tape.playback.websocket import is_same, message_differences

CHAT = parse_match("POST *://*/v1/chat")
SOCKET = parse_match("GET *://*/v1/socket")
UUID = "([0-9a-f]{8}-[0-9a-f]{4})"
PROFILE = Profile(
    "some-cli",
    3,
    "Some CLI",
    ("some-cli",),
    (
        ProfilePlace(CHAT, "$.system[*].text", r"^x-billing: .*\bcch=([0-9a-f]{5});"),
        ProfilePlace(CHAT, "$.user", rf'"session":"{UUID}"'),
        ProfilePlace(CHAT, "$.user", rf'"device":"{UUID}"'),
        ProfilePlace(CHAT, "$.made_ms", "^([0-9]{13})$"),
        ProfilePlace(CHAT, "$.calls[*].id", "^t_([0-9]{4})$", linked=True),
        ProfilePlace(CHAT, "$.results[*].id", "^t_([0-9]{4})$", linked=True),
        ProfilePlace(CHAT, "$.calls[*].id", "^n([0-9])$"),
        ProfilePlace(SOCKET, "$.input[*].id", f"^msg_{UUID}$"),
        ProfilePlace(SOCKET, "$.input[*].output", r"^Wall time ([0-9.]+) seconds$"),
    ),
    (Unconditional(parse_match("GET *://*/v1/settings")),),
)
RULES = compile_rules(profiles=(PROFILE,))
WITHOUT = compile_rules()
AGENT = b"Some-CLI/1.2 (external)"


def ask(
    body: object, agent: bytes = AGENT, path: str = "/v1/chat", method: str = "POST"
) -> Request:
    headers = ((b"content-type", b"application/json"), (b"User-Agent", agent))
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Request(method, "https", "api.test", 443, path, "HTTP/1.1", headers, data)


def same(one: Request, other: Request, kind: RequestClass = RequestClass.INFERENCE) -> bool:
    forms = {fingerprint(canonical(request, kind, RULES)) for request in (one, other)}
    assert bool(differences(one, other, RULES, kind)) is (len(forms) > 1)
    return len(forms) == 1


def billing(token: str, more: str = "") -> object:
    return {"system": [{"text": f"x-billing: v=1 cch={token}; x=1{more}"}, {"text": "You are"}]}


def user(session: str, device: str = "0123abcd-0000", more: str = "") -> object:
    return {
        "user": json.dumps({"session": session, "device": device}, separators=(",", ":")) + more
    }


def linked(calls: str, results: str) -> object:
    """Calls of tools by their ids, and results by theirs; one sign stands for an id."""

    def made(sign: str) -> dict[str, str]:
        return {"id": f"t_{ord(sign):04}"}

    return {
        "calls": [made(sign) for sign in calls],
        "results": {f"r{at}": made(sign) for at, sign in enumerate(results)},
    }


SAME = [
    (billing("3de0a"), billing("00000")),
    (user("0123abcd-0000"), user("ffffffff-ffff")),
    (user("0123abcd-0000"), user("ffffffff-ffff", "ffffffff-1111")),
    ({"made_ms": 1795374992270}, {"made_ms": 1795374999999}),
    ('{"made_ms":1795374992270,"a":1e0}', '{"a": 1e0, "made_ms": 1795374999999}'),
    ('{"made_ms":1795374992270,"a":NaN}', '{"made_ms":1795374999999,"a":NaN}'),
    # where escapes are written otherwise
    (
        '{"system":[{"text":"x-billing: cch=3de0a;"}]}',
        '{"system":[{"text":"x-billing\\u003a cch=00000;"}]}',
    ),
]

SAME += [
    (linked("ab", "ab"), linked("xy", "xy")),
    (linked("ab", "ba"), linked("yx", "xy")),
    (linked("ab", "ba"), linked("ba", "ab")),
    (linked("aba", "c"), linked("xyx", "z")),
    # what another pattern finds in a linked place
    ({"calls": [{"id": "n1"}, {"id": "n1"}]}, {"calls": [{"id": "n1"}, {"id": "n2"}]}),
    # in another order of members, whose order does not count
    (
        '{"calls":[{"id":"t_0001"},{"id":"t_0002"}],"results":{"a":{"id":"t_0003"},"b":{"id":"t_0002"}}}',
        '{"results":{"b":{"id":"t_0008"},"a":{"id":"t_0009"}},"calls":[{"id":"t_0007"},{"id":"t_0008"}]}',
    ),
    # as the exact reader reads it
    (
        '{"calls":[{"id":"t_0001"},{"id":"t_0002"}],"n":NaN}',
        '{"calls":[{"id":"t_0003"},{"id":"t_0004"}],"n":NaN}',
    ),
]

DIFFERENT = [
    # which values of linked places are the same
    (linked("ab", "ab"), linked("ab", "ba")),
    (linked("ab", "ab"), linked("xy", "yx")),
    (linked("ab", "ab"), linked("xy", "xx")),
    (linked("ab", "ab"), linked("xx", "xx")),
    (linked("ab", "ab"), linked("xy", "xz")),
    (linked("aa", "a"), linked("xy", "x")),
    (
        '{"calls":[{"id":"t_0001"},{"id":"t_0002"}],"n":NaN}',
        '{"calls":[{"id":"t_0003"},{"id":"t_0003"}],"n":NaN}',
    ),
    # the text around it
    (billing("3de0a"), billing("3de0a", "!")),
    (billing("3de0a"), {"system": [{"text": "x-billing: v=2 cch=3de0a; x=1"}, {"text": "You are"}]}),
    (user("0123abcd-0000"), user("0123abcd-0000", more=" ")),
    # that it is there, and its form
    (billing("3de0a"), billing("3de0")),
    (billing("3de0a"), billing("3DE0A")),
    (billing("3de0a"), billing("3de0a1")),
    (user("0123abcd-0000"), user("alice")),
    ({"made_ms": 1795374992270}, {"made_ms": 179537499227}),
    ({"made_ms": 1795374992270}, {"made_ms": "1795374992270"}),
    ({"made_ms": 1795374992270}, {"made_ms": 1795374992270.0}),
    ({"made_ms": 1795374992270}, {"made_ms": None}),
    # another place
    ({"system": "x-billing: cch=3de0a;"}, {"system": "x-billing: cch=00000;"}),
    ({"messages": [{"text": "x-billing: cch=3de0a;"}]}, {"messages": [{"text": "x-billing: cch=00000;"}]}),
    ({"system": [{"text": "You are\nx-billing: cch=3de0a;"}]}, {"system": [{"text": "You are\nx-billing: cch=00000;"}]}),
    ({"user": ["0123abcd-0000"]}, {"user": ["ffffffff-ffff"]}),
    # how many there are, and in which order
    ({"system": [{"text": "x-billing: cch=3de0a;"}] * 2}, {"system": [{"text": "x-billing: cch=3de0a;"}]}),
    # a key that stands twice
    ('{"made_ms":1795374992270,"made_ms":1}', '{"made_ms":1795374999999,"made_ms":1}'),
    # what a mask looks like
    (billing("3de0a"), {"system": [{"text": "x-billing: v=1 cch=\x00*; x=1"}, {"text": "You are"}]}),
    ({"made_ms": 1795374992270}, {"made_ms": ["", ""]}),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_token_does_not_count(one: object, other: object) -> None:
    """What the group of a place finds is left out, in any request of the client to the endpoint but an effect."""
    assert same(ask(one), ask(other))
    assert same(ask(one), ask(other), RequestClass.READ)
    assert not same(ask(one), ask(other), RequestClass.EFFECT)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_all_around_a_token_counts(one: object, other: object) -> None:
    """Another text, form, type, place, number or order is another request."""
    assert not same(ask(one), ask(other))


@pytest.mark.parametrize("agent", [b"curl/8.0", b"", b"Other Some-CLI/1.2", b"some-cli2/1.0"])
def test_nothing_is_left_out_of_what_another_client_says(agent: bytes) -> None:
    """A client is known by the first product of its user agent alone."""
    one, other = ask(billing("3de0a"), agent), ask(billing("00000"), agent)
    assert not same(one, other)
    assert not same(ask(billing("3de0a")), ask(billing("3de0a"), agent))


def test_an_endpoint_that_a_profile_does_not_name_counts_whole() -> None:
    """A place is one of an endpoint."""
    assert not same(ask(billing("3de0a"), path="/v2/chat"), ask(billing("00000"), path="/v2/chat"))
    assert not same(ask(billing("3de0a"), method="PUT"), ask(billing("00000"), method="PUT"))


@pytest.mark.parametrize(
    ("agent", "product"),
    [
        (b"Some-CLI/1.2 (external)", b"some-cli"),
        (b"some-cli", b"some-cli"),
        (b"  some-cli/1", b"some-cli"),
        (b"/1", b""),
        (b"", b""),
        (b" ", b""),
        (b"\xff/1", b"\xff"),
    ],
)
def test_a_client_is_its_first_product(agent: bytes, product: bytes) -> None:
    """Without its version, in lower case."""
    assert find_product(((b"accept", b"*/*"), (b"USER-AGENT", agent))) == product


def test_the_raw_key_knows_the_client() -> None:
    """The same bytes of two clients may be two requests; two versions of one are found without parsing."""
    keys = {
        raw_key(ask({}, agent), RequestClass.INFERENCE)
        for agent in (AGENT, b"Some-CLI/9.9", b"curl/8.0")
    }
    assert len(keys) == 2


def test_an_index_made_without_a_profile_is_made_again() -> None:
    """The digest of the rules has each profile, with its version and its places."""
    newer = replace(PROFILE, version=4)
    fewer = replace(PROFILE, places=PROFILE.places[1:])
    rules = [compile_rules(profiles=(one,)) for one in (PROFILE, newer, fewer)]
    assert len({WITHOUT.digest, *(one.digest for one in rules)}) == 4
    assert compile_rules(profiles=(PROFILE,)).digest == RULES.digest


# ---- how a match is reported -------------------------------------------------------------------


def test_a_match_names_the_places_that_it_owes_to_the_profile() -> None:
    """Only those that differ, each once, in the profile's order."""
    one = ask({**dict(billing("3de0a")), **dict(user("0123abcd-0000")), "made_ms": 1795374992270})  # type: ignore[call-overload]
    other = ask({**dict(billing("00000")), **dict(user("ffffffff-ffff")), "made_ms": 1795374992270})  # type: ignore[call-overload]
    use = find_profile_use(one, other, RULES, RequestClass.INFERENCE)
    assert use is not None
    assert use.to_row() == ["some-cli", 3, ["$.system[*].text", "$.user"]]
    assert find_profile_use(one, one, RULES, RequestClass.INFERENCE) is None
    spaced = replace(one, body=json.dumps(json.loads(one.body), indent=1).encode())
    assert find_profile_use(one, spaced, RULES, RequestClass.INFERENCE) is None
    assert find_profile_use(one, other, WITHOUT, RequestClass.INFERENCE) is None


@pytest.mark.parametrize(
    "rule",
    [
        IgnoreRule(parse_match("*://api.test"), json=("$.system",)),
        IgnoreRule(parse_match("*://api.test"), json=("$.system[*].text",)),
        IgnoreRule(parse_match("*://api.test"), regex=("cch=([0-9a-f]{5})",)),
    ],
)
def test_a_rule_of_the_configuration_wins(rule: IgnoreRule) -> None:
    """What it leaves out is not the profile's doing."""
    rules = compile_rules((rule,), profiles=(PROFILE,))
    one, other = ask(billing("3de0a")), ask(billing("00000"))
    forms = {canonical(request, RequestClass.INFERENCE, rules) for request in (one, other)}
    assert len(forms) == 1
    assert find_profile_use(one, other, rules, RequestClass.INFERENCE) is None


# ---- messages of a WebSocket -------------------------------------------------------------------


def message(ident: str, seconds: str, more: str = "") -> bytes:
    items = [{"id": ident, "output": f"Wall time {seconds} seconds{more}"}]
    return json.dumps({"type": "create", "input": items}).encode()


def test_a_profile_speaks_of_messages_too() -> None:
    """A token in a message does not count, the text around it does."""
    handshake = ask("", path="/v1/socket", method="GET")
    masks = RULES.of(handshake, RequestClass.INFERENCE).masks
    one = message("msg_0123abcd-0000", "0.2")
    other, another = message("msg_ffffffff-ffff", "1.25"), message("msg_ffffffff-ffff", "2", "!")
    assert is_same(MessageKind.TEXT, one, other, masks)
    assert not is_same(MessageKind.TEXT, one, another, masks)
    assert not is_same(MessageKind.BINARY, one, other, masks)
    kind = RequestClass.INFERENCE
    use = find_message_use(handshake, one, other, RULES, kind)
    assert use is not None
    assert use.places == ("$.input[*].id", "$.input[*].output")
    (found,) = message_differences(handshake, MessageKind.TEXT, one, another, RULES, kind)
    assert found.place == "body $.input[0].output"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (b'{"text":"at 12:00"}', b'{"text":"at 13:30"}', True),
        (b'{"text":"at 12:00"}', b'{"text":"by 12:00"}', False),
        (b"said at 12:00", b"said at 13:30", True),
        (b"said at 12:00", b"told at 12:00", False),
        (b'{"id":1,"jsonrpc":"2.0","method":"x"}', b'{"id":2,"jsonrpc":"2.0","method":"x"}', False),
        (b'"said at 12:00"', b"said at 12:00", False),
    ],
)
def test_patterns_of_the_configuration_look_at_messages(
    one: bytes, other: bytes, alike: bool
) -> None:
    """In JSON and in other texts; what is JSON-RPC counts in a message as before."""
    rule = IgnoreRule(parse_match("*://api.test"), regex=("at ([0-9:]+)",))
    masks = compile_rules((rule,)).of(ask("", path="/v1/socket", method="GET")).masks
    assert is_same(MessageKind.TEXT, one, other, masks) is alike
    assert (message_form(one, masks) == message_form(other, masks)) is alike


def test_a_client_may_be_known_by_a_field_beside_its_user_agent() -> None:
    """Others that have this product without the field are compared whole."""
    rules = compile_rules(profiles=(replace(PROFILE, sends=("x-initiator",)),))
    request = ask(billing("3de0a"))
    assert rules.profiles.find(request) is None
    sent = replace(request, headers=(*request.headers, (b"X-Initiator", b"user")))
    assert rules.profiles.find(sent) is not None
    assert rules.profiles.told != RULES.profiles.told


def test_a_client_may_be_known_by_what_its_bodies_say() -> None:
    """Near their beginning; others of the same SDK are compared whole, or by a profile that asks for less."""
    said = "You are an agent that looks after an invented shop."
    known = replace(PROFILE, name="shop", says=("You are the judge of an invented shop.", said))
    rules = compile_rules(profiles=(PROFILE, known))
    request = ask(f"{said} {billing('3de0a')}")
    late = ask(f"{' ' * 4096}{said}")
    found = [rules.profiles.find(one) for one in (request, late, ask(billing("3de0a")))]
    assert [one and one.name for one in found] == ["shop", PROFILE.name, PROFILE.name]
    assert rules.of(request, RequestClass.INFERENCE).masks.placed
    alone = compile_rules(profiles=(known,))
    assert alone.profiles.find(late) is None
    assert alone.profiles.told != RULES.profiles.told


def test_a_rule_of_the_configuration_comes_before_a_link() -> None:
    """What it leaves out does not count, linked or not."""
    rule = IgnoreRule(CHAT, regex=("t_[0-9]{4}",))
    rules = compile_rules((rule,), profiles=(PROFILE,))
    one, other = ask(linked("ab", "ab")), ask(linked("ab", "ba"))
    assert (
        len({fingerprint(canonical(each, RequestClass.INFERENCE, rules)) for each in (one, other)})
        == 1
    )


def test_a_link_is_shown_by_a_number() -> None:
    """Of the values of one request, in the order in which they come first."""
    found = differences(
        ask(linked("ab", "ab")), ask(linked("ab", "aa")), RULES, RequestClass.INFERENCE
    )
    assert [(one.recorded, one.asked) for one in found] == [('"t_(masked 2)"', '"t_(masked 1)"')]
